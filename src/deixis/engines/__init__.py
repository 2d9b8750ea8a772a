"""Where much work is done: in this process, in several of this machine, or on many machines with Ray."""

from deixis.engines.run import ENGINES, Engine, run_tasks

__all__ = ["ENGINES", "Engine", "run_tasks"]
