"""Means and gathers over processes, against the same computed in one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from deixis.processes import gather_rows, masked_mean, processes


def test_one_process_is_plain_torch() -> None:
    values = torch.tensor([[1.0, 2.0, torch.nan], [4.0, torch.inf, 6.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    mean = masked_mean(values, mask)
    mean.backward()  # type: ignore[no-untyped-call]
    assert processes() == 1
    assert mean.item() == pytest.approx(7 / 3)
    assert values.grad is not None
    assert values.grad.tolist() == [[pytest.approx(1 / 3), pytest.approx(1 / 3), 0], [pytest.approx(1 / 3), 0, 0]]
    rows = torch.rand(3, 2)
    assert gather_rows(rows) is rows


def test_nothing_to_average_is_zero_with_zero_gradient() -> None:
    values = torch.rand(3, requires_grad=True)
    mean = masked_mean(values, torch.zeros(3, dtype=torch.bool))
    mean.backward()  # type: ignore[no-untyped-call]
    assert mean.item() == 0
    assert values.grad is not None
    assert values.grad.abs().sum() == 0


def loss_of(weight: Tensor, rows: Tensor) -> Tensor:
    """A loss with in-batch negatives over all processes: every row against every other."""
    everyone = gather_rows(torch.tanh(rows @ weight))
    return (everyone @ everyone.T).logsumexp(1).mean()


SHARDS = ((0, 5), (5, 7))  # uneven on purpose


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(7, 4, generator=generator)
    mask = torch.rand(7, 4, generator=generator) > 0.4
    return rows, mask, torch.randn(4, 3, generator=generator)


def work(rank: int, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    rows, mask, weight = inputs()
    first, last = SHARDS[rank]
    results = []
    for loss in (loss_of, lambda w, r: masked_mean(torch.tanh(r @ w), mask[first:last, :3])):
        learned = weight.clone().requires_grad_()
        value = loss(learned, rows[first:last])
        value.backward()  # type: ignore[no-untyped-call]
        assert learned.grad is not None
        shared = torch.cat([value.detach().reshape(1), learned.grad.flatten()])
        dist.all_reduce(shared)  # data-parallel training averages
        results.append(shared / 2)
    if rank == 0:
        torch.save(results, f"{folder}/results.pt")
    dist.destroy_process_group()


@pytest.mark.recipe
def test_two_processes_give_the_loss_and_gradient_of_one(tmp_path: Path) -> None:
    both = [subprocess.Popen([sys.executable, __file__, str(rank), str(tmp_path)]) for rank in range(2)]
    assert [process.wait(timeout=240) for process in both] == [0, 0]
    found = torch.load(tmp_path / "results.pt", weights_only=True)
    rows, mask, weight = inputs()

    def plain_mean(weight: Tensor, rows: Tensor) -> Tensor:
        return (torch.tanh(rows @ weight) * mask[:, :3]).sum() / mask[:, :3].sum()

    for number, loss in enumerate((loss_of, plain_mean)):
        learned = weight.clone().requires_grad_()
        value = loss(learned, rows)
        value.backward()  # type: ignore[no-untyped-call]
        assert learned.grad is not None
        expected = torch.cat([value.detach().reshape(1), learned.grad.flatten()])
        assert torch.allclose(found[number], expected, atol=1e-6), number


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2])
