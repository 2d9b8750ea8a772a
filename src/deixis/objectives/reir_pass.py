"""The pass of ReIR that all its objectives share."""

from __future__ import annotations

from typing import cast

from deixis.grounding.reir.forward_pass import ReirPass
from deixis.grounding.reir.model import Reir
from deixis.objectives.base import Context


def reir_pass(context: Context) -> ReirPass:
    """Return the pass over the batch of this step, computed once for all objectives."""
    if "reir" not in context.shared:
        context.shared["reir"] = context.trained(Reir)(context.batch, context.step)
    return cast(ReirPass, context.shared["reir"])
