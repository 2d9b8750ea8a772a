"""Means and gathers that run over every process of a training run, so that the loss is that of the global batch.

Data-parallel training averages the gradients of the processes. A mean over the words of each shard would then weigh
the words of a short shard more than those of a long one, and two processes would not give the loss of one. Dividing
each shard's sum by the *global* count per process gives exactly the global mean. Without processes all is plain torch.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


def processes() -> int:
    """Return how many processes train together; 1 outside a distributed run."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of ``values`` where ``mask`` is True over all processes; 0 where nothing is True anywhere.

    The result of one process is its own sum over (global count / processes): the mean of the results over the processes
    is the global mean, and so are the averaged gradients. ``mask`` may broadcast against ``values``.
    """
    mask = mask.expand_as(values)
    total = torch.where(mask, values, values.new_zeros(())).sum()  # where, not *: a masked NaN must not pass
    return total / global_count(mask)


def global_count(mask: Tensor) -> Tensor:
    """Return the number of True entries over all processes, divided by the number of processes, at least tiny."""
    count = mask.sum().to(torch.float32)
    if processes() > 1:
        count = count.clone()
        dist.all_reduce(count)
        count = count / processes()
    return torch.where(count > 0, count, torch.ones_like(count))


class _Gather(torch.autograd.Function):
    """Concatenates rows of all processes; the gradient of a row returns to the process it came from."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, rows: Tensor, sizes: list[int]) -> Tensor:
        ctx.sizes = sizes  # type: ignore[attr-defined]
        most = max(sizes)
        padded = rows.new_zeros((most, *rows.shape[1:]))
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient = gradients[0].contiguous().clone()
        dist.all_reduce(gradient)  # the rows enter the loss of every process
        sizes: list[int] = ctx.sizes  # type: ignore[attr-defined]
        first = sum(sizes[: dist.get_rank()])
        return gradient[first : first + sizes[dist.get_rank()]], None


def gather_rows(rows: Tensor) -> Tensor:
    """Return the rows of all processes one after another, (n, ...) -> (sum of n, ...), with gradients.

    For objectives with in-batch negatives: gather, compute the loss of the global batch on every process.
    """
    if processes() == 1:
        return rows
    size = torch.tensor([len(rows)], device=rows.device)
    sizes = [torch.empty_like(size) for _ in range(processes())]
    dist.all_gather(sizes, size)
    gathered: Tensor = _Gather.apply(rows, [int(s) for s in sizes])  # type: ignore[no-untyped-call]
    return gathered
