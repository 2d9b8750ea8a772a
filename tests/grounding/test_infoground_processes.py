"""The image loss on two processes is that of one: images of both are negatives, gradients agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from deixis.data.batch import Batch, RegionBatch, WordKind
from deixis.data.sizes import InputSizes
from deixis.grounding.infoground import InfoGround, InfoGroundConfig
from deixis.objectives.base import Context
from deixis.objectives.info_nce import ImageContrast
from deixis.text.vocabulary import END, Entry, Vocabulary
from deixis.text.word_encoders import WordEncoderConfig

VOCABULARY = Vocabulary([Entry(word, 1, "NN") for word in ("dog", "cat", "horse", "boat", "tree")])
WORDS = [[4, 5, END], [6, END, 0], [7, 8, END], [8, END, 0], [5, 6, END]]
SHARDS = ((0, 3, 4), (3, 5, 2))  # first and last image, and how many regions each has: uneven on purpose


def make() -> InfoGround:
    torch.manual_seed(0)
    config = InfoGroundConfig(width=6, encoder=WordEncoderConfig("embedding", width=5))
    # in evaluation mode: the statistics of BatchNorm are each process's own
    return InfoGround(config, InputSizes(words=len(VOCABULARY), features=3), VOCABULARY).eval()


def batch(first: int, last: int, regions: int) -> Batch:
    features = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(1))
    mask = torch.ones(5, 4, dtype=torch.bool)
    mask[3:, 2:] = False  # the last two images have two regions
    count = last - first
    words = torch.tensor(WORDS[first:last])
    return Batch(
        RegionBatch(
            tuple(map(str, range(count))),
            features[first:last, :regions],
            torch.zeros(count, regions, 4),
            mask[first:last, :regions],
            torch.ones(count, 2),
            torch.ones(count, regions),
            torch.zeros(count, regions, dtype=torch.long),
        ),
        words,
        torch.arange(count),
        torch.where(words > END, int(WordKind.NOUN), int(WordKind.OTHER)),
    )


def learned(model: InfoGround, part: Batch) -> Tensor:
    """Return loss, bound and all gradients in one row."""
    losses = ImageContrast()(Context(model, part))
    losses["image_contrast"].backward()
    gradients = [p.grad.flatten() if p.grad is not None else p.new_zeros(p.numel()) for p in model.parameters()]
    return torch.cat([losses["image_contrast"].detach().reshape(1), losses["_bound"].reshape(1), *gradients])


def work(rank: int, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    found = learned(make(), batch(*SHARDS[rank]))
    dist.all_reduce(found)  # data-parallel training averages
    if rank == 0:
        torch.save(found / 2, f"{folder}/found.pt")
    dist.destroy_process_group()


@pytest.mark.recipe
def test_two_processes_give_the_loss_of_one(tmp_path: Path) -> None:
    both = [subprocess.Popen([sys.executable, __file__, str(rank), str(tmp_path)]) for rank in range(2)]
    assert [process.wait(timeout=240) for process in both] == [0, 0]
    found = torch.load(tmp_path / "found.pt", weights_only=True)
    torch.testing.assert_close(found, learned(make(), batch(0, 5, 4)), atol=1e-5, rtol=1e-4)


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2])
