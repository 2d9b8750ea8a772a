"""The extractor we ship: one pass of a small network gives boxes, features, classes, words and maps, on a CPU."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from deixis.atomic import write_bytes
from deixis.errors import BadFileError, DeixisError
from deixis.reading.files import read_bytes
from deixis.reading.plain import expect_object, parse_json
from deixis.reading.tensors import check_sizes
from deixis.regions.network.detector import Dense, LiteNetwork, LiteShape
from deixis.regions.network.eight_bits import POSSIBLE, in_eight_bits, in_single_precision
from deixis.regions.network.packing import packed, unpacked
from deixis.regions.network.resize import fit
from deixis.regions.network.select import Kept, Ranking, select
from deixis.text.coco_names import COCO_NAMES
from deixis.types import Regions

if TYPE_CHECKING:
    from deixis.interfaces import Pixels

VERSION = 1
MAP_SIDE = 7  # the coarse feature map is MAP_SIDE x MAP_SIDE whatever the image's shape
AT_ONCE = 8  # images of one shape that share a pass
Precision = Literal["int8", "bf16", "float32"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
WEIGHTS, CARD = "regions.safetensors", "regions.json"
_UNFIT = (ValueError, LookupError, TypeError, ArithmeticError, RuntimeError)  # what a card that fits nothing raises


class LiteExtractor:
    """Finds and describes regions with :class:`~deixis.regions.network.detector.LiteNetwork`.

    >>> extractor = LiteExtractor.load()  # doctest: +SKIP
    >>> regions = extractor.extract([pixels])[0]  # doctest: +SKIP
    """

    def __init__(
        self,
        network: LiteNetwork,
        words: Sequence[str],
        ranking: Ranking,
        fingerprint: str,
        device: str = "cpu",
        untaught: str = "",
    ) -> None:
        self.network = network.eval().to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.words = tuple(words)
        self.ranking = ranking
        self.device = torch.device(device)
        self.untaught = untaught
        """The fingerprint of the extractor whose regions its namer learned from; "" for one without a namer."""
        self._fingerprint = fingerprint
        self._half = False

    def computing_in(self, precision: Precision) -> Self:
        """Choose how networks compute: "float32" as weights were loaded, "int8" or "bf16" for less time.

        "int8" is for any processor: the namer's large products in eight bits, as its weights are kept (tokens have a
        cosine of .998 to the exact ones, boxes are the same). "bf16" is for processors that compute in it (AMX,
        AVX512-BF16): all in bfloat16 (.9997, and 95 of 100 boxes are found alike), from which there is no way back.
        Regions keep the fingerprint either way: what is trained on some answers about the others.
        """
        if precision not in PRECISIONS:
            raise DeixisError(f"the precision should be one of {', '.join(PRECISIONS)}, got {precision!r}")
        if self.network.namer is not None:
            namer = self.network.namer.network
            in_single_precision(namer)
            namer.to(torch.bfloat16 if precision == "bf16" else torch.float32)
            if precision == "int8" and POSSIBLE and self.device.type == "cpu":
                in_eight_bits(namer.blocks[1:])  # half of the error would come from the first: its tokens are uneven
        self._half = precision == "bf16"
        return self

    def exact_network(self) -> LiteNetwork:
        """Return a copy of the network that computes in single precision."""
        network: LiteNetwork = deepcopy(self.network)
        in_single_precision(network)
        return network

    @property
    def fingerprint(self) -> str:
        """Name, version and hash of weights and settings."""
        return self._fingerprint

    @classmethod
    def load(cls, folder: Path | None = None, *, suppress: float | None = None, device: str = "cpu") -> Self:
        """Load the weights of a folder, by default those that come with the package.

        ``suppress`` is the overlap from which on the lesser of two proposals goes, if it should be another than the one
        the weights were made with; such regions have a fingerprint of their own.
        """
        folder = folder or Path(__file__).parent.parent / "weights" / "lite"
        try:
            weights, card_bytes = read_bytes(folder / WEIGHTS), read_bytes(folder / CARD)
            card = expect_object(parse_json(card_bytes, CARD), CARD)
            shape = LiteShape(**card["shape"])
            words = [str(word) for word in card["words"]]
            if suppress is not None:
                card["ranking"]["suppress"] = suppress
            ranking = Ranking(**card["ranking"])
            state = load_tensors(weights)
            check_sizes(card["shape"], {name: tuple(value.shape) for name, value in state.items()}, "its shape")
            network = LiteNetwork(shape)
            network.load_state_dict(unpacked(state))
        except (BadFileError, SafetensorError, *_UNFIT) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise BadFileError(f"the lite extractor in {folder} cannot be read: {reason}") from error
        if card.get("version") != VERSION or len(words) != shape.words:
            raise BadFileError(f"the lite extractor in {folder} has version {card.get('version')!r}, not {VERSION}")
        settings = {name: card[name] for name in ("version", "shape", "words", "ranking")}
        digest = hashlib.sha256(weights + json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        about = card.get("about")
        untaught = str(about.get("untaught", "")) if isinstance(about, Mapping) else ""
        return cls(network, words, ranking, f"lite-{VERSION}-{digest}", device, untaught)

    @torch.inference_mode()
    def extract(self, images: Sequence[Pixels], *, max_regions: int = 100) -> list[Regions]:
        """Return at most ``max_regions`` regions of each RGB image (H, W, 3), best first, and the whole image, last."""
        if max_regions < 0:
            raise ValueError(f"max_regions is {max_regions}; it cannot be negative")
        fitted = [fit(image) for image in images]
        by_shape: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for at, pixels in enumerate(fitted):
            by_shape[pixels.shape].append(at)
        found: dict[int, Regions] = {}
        for rows in by_shape.values():
            for first in range(0, len(rows), AT_ONCE):
                group = rows[first : first + AT_ONCE]
                batch = torch.stack([torch.from_numpy(fitted[at].copy()) for at in group]).permute(0, 3, 1, 2)
                sizes = [(images[at].shape[1], images[at].shape[0]) for at in group]
                found |= dict(zip(group, self._extract(batch, sizes, max_regions), strict=True))
        return [found[at] for at in range(len(images))]

    @torch.inference_mode()
    def describe(self, image: Pixels, boxes: Tensor) -> Regions:
        """Return the regions of given boxes (N, 4), in pixels of the RGB image (H, W, 3), and of the whole image, last.

        Scores of "one whole thing" and "a coherent region" are 1: whoever gave the boxes says so.
        """
        pixels = torch.from_numpy(fit(image).copy()).permute(2, 0, 1).unsqueeze(0)
        shape, size = (pixels.shape[-1], pixels.shape[-2]), (image.shape[1], image.shape[0])
        scale = torch.tensor([shape[0] / size[0], shape[1] / size[1]] * 2)
        limit = torch.tensor([*shape, *shape], dtype=torch.float32)
        given = torch.minimum((boxes.float() * scale).clamp(min=0), limit)
        every = torch.cat([given, torch.tensor([[0.0, 0.0, *map(float, shape)]])]).to(self.device)
        sure = torch.ones(len(every), device=self.device)
        return self._describe(self._look(pixels), [Kept(every, sure, sure)], shape, [size])[0]

    def _look(self, pixels: Tensor) -> Dense:
        given = pixels.to(self.device).float().contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._half):
            dense: Dense = self.network(given)
        return dense

    def _extract(self, pixels: Tensor, sizes: list[tuple[int, int]], count: int) -> list[Regions]:
        shape = pixels.shape[-1], pixels.shape[-2]
        dense = self._look(pixels)
        kept = [select(dense.scores[at], dense.boxes[at], shape, count, self.ranking) for at in range(len(sizes))]
        return self._describe(dense, kept, shape, sizes)

    def _describe(
        self, dense: Dense, kept: Sequence[Kept], shape: tuple[int, int], sizes: Sequence[tuple[int, int]]
    ) -> list[Regions]:
        """Say what the kept boxes show; they are in pixels of ``shape``, the network's input."""
        image_of = torch.cat([torch.full((len(one.boxes),), at, device=self.device) for at, one in enumerate(kept)])
        described = self.network.describe_boxes(dense, torch.cat([one.boxes for one in kept]), image_of)
        everything = self.network.describe_whole(dense)
        maps = F.adaptive_avg_pool2d(dense.describing, MAP_SIDE).permute(0, 2, 3, 1)  # (B, 7, 7, M)
        results: list[Regions] = []
        for at, size in enumerate(sizes):
            mine = image_of == at
            boxes = kept[at].boxes
            scale = boxes.new_tensor([size[0] / shape[0], size[1] / shape[1]] * 2)
            results.append(
                Regions(
                    boxes=boxes * scale,
                    features=described.features[mine],
                    objectness=kept[at].objectness,
                    regionness=kept[at].regionness,
                    size=size,
                    fingerprint=self._fingerprint,
                    class_probs=described.classes[mine],
                    class_names=COCO_NAMES,
                    word_probs=described.words[mine],
                    word_names=self.words,
                    global_features=everything[at : at + 1],
                    feature_map=maps[at : at + 1],
                )
            )
        return results


def load_lite(*, device: str = "cpu") -> LiteExtractor:
    """The extractor that ships with the package."""
    return LiteExtractor.load(device=device)


def save_lite(
    folder: Path, network: LiteNetwork, words: Sequence[str], ranking: Ranking, about: Mapping[str, Any] | None = None
) -> None:
    """Write small weights (``packing.py``) and their card, each to a temporary name first; the card is written last."""
    folder.mkdir(parents=True, exist_ok=True)
    state = packed(network.state_dict())
    card = {
        "version": VERSION,
        "shape": asdict(network.shape),
        "ranking": asdict(ranking),
        "classes": list(COCO_NAMES),
        "words": list(words),
        "about": dict(about or {}),
    }
    for name, data in ((WEIGHTS, save_tensors(state)), (CARD, (json.dumps(card, indent=1) + "\n").encode())):
        write_bytes(folder / name, data)
