"""``python -m deixis`` is ``deixis``."""

from deixis.cli.main import main

main()
