"""Detectors of transformers as extractors: the DETR family, OWLv2, and Grounding DINO as a class-agnostic proposer.

``hf:facebook/detr-resnet-50`` downloads the model, ``hf:FOLDER`` reads a saved one. Weights are read from safetensors
only. Images go through one at a time, so a result never depends on what else is in the batch, and are prepared here
from the model's ``preprocessor_config.json``: the library's own image processors want torchvision.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from deixis.errors import BadFileError, DeixisError, MissingExtraError
from deixis.regions.adapters.common import Detections, choose_regions, fingerprint_of
from deixis.types import Regions

SOFTMAX_KINDS = ("detr", "table-transformer", "yolos")
"""Models whose last class is "nothing here"; the others of the family score every class by itself."""
FAMILY = (
    *SOFTMAX_KINDS, "conditional_detr", "dab-detr", "deformable_detr", "rt_detr", "rt_detr_v2", "d_fine",
)  # fmt: skip
PROMPT = "object. thing. person. animal. place."
"""What Grounding DINO is asked for, so that it proposes whatever is there."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """How pixels become the network's input, as ``preprocessor_config.json`` says."""

    size: dict[str, int]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    square: bool = False
    """Pad to a square at the right and below first (OWLv2)."""

    @classmethod
    def from_config(cls, config: dict[str, Any], *, square: bool) -> Self:
        """Read the parts of the configuration that matter."""
        size = config.get("size", {"shortest_edge": 800, "longest_edge": 1333})
        if isinstance(size, int):
            size = {"shortest_edge": size, "longest_edge": int(config.get("max_size", 1333))}
        normalise = config.get("do_normalize", True)
        mean = tuple(config.get("image_mean", (0.485, 0.456, 0.406))) if normalise else (0.0, 0.0, 0.0)
        std = tuple(config.get("image_std", (0.229, 0.224, 0.225))) if normalise else (1.0, 1.0, 1.0)
        return cls({key: int(value) for key, value in size.items() if value}, mean, std, square)

    def __call__(self, image: NDArray[np.uint8]) -> tuple[Tensor, tuple[int, int]]:
        """Return the input (1, 3, H, W), and the width and height in original pixels that boxes are shares of."""
        height, width = image.shape[:2]
        if self.square:
            side = max(height, width)
            padded = np.full((side, side, 3), 128, dtype=np.uint8)
            padded[:height, :width] = image
            image, (height, width) = padded, (side, side)
        resized = Image.fromarray(image).resize(self._target(width, height), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.array(resized)).permute(2, 0, 1).float() / 255  # (3, H, W)
        mean, std = (torch.tensor(value).view(3, 1, 1) for value in (self.mean, self.std))
        return ((pixels - mean) / std)[None], (width, height)

    def _target(self, width: int, height: int) -> tuple[int, int]:
        if "height" in self.size and "width" in self.size:
            return self.size["width"], self.size["height"]
        if "max_height" in self.size:
            ratio = min(self.size["max_height"] / height, self.size["max_width"] / width)
        else:
            ratio = self.size["shortest_edge"] / min(height, width)
            ratio = min(ratio, self.size.get("longest_edge", 10**9) / max(height, width))
        return max(1, round(width * ratio)), max(1, round(height * ratio))


class HfExtractor:
    """A detector of transformers. Build one with :meth:`load`, or from a model in memory."""

    def __init__(
        self,
        model: nn.Module,
        preparation: Preparation,
        *,
        tokens: dict[str, Tensor] | None = None,
        device: str = "cpu",
    ) -> None:
        self.model = model.eval().to(device)
        self.preparation = preparation
        self.device = device
        config: Any = model.config
        self.kind = str(config.model_type)
        self._tokens = {key: value.to(device) for key, value in (tokens or {}).items()}
        self._detect: Callable[[Tensor], Detections] = self._choose_detect()
        labels: dict[int, str] = config.id2label if self.kind in FAMILY else {}
        self.class_names = tuple(labels[number] for number in sorted(labels))
        settings = {"preparation": preparation, "prompt": PROMPT if self._tokens else ""}
        self._fingerprint = fingerprint_of(f"hf:{self.kind}", model, settings)

    @classmethod
    def load(cls, name: str, *, device: str = "cpu") -> Self:
        """Load a model by its hub name or from a folder made by ``save_pretrained``."""
        try:
            transformers: Any = importlib.import_module("transformers")
        except ImportError as error:
            raise MissingExtraError("transformers", "hf", f"the extractor hf:{name}") from error
        tokens = None
        try:
            config = transformers.AutoConfig.from_pretrained(name)
            if config.model_type == "owlv2":
                model = transformers.Owlv2ForObjectDetection.from_pretrained(name, use_safetensors=True)
            elif config.model_type == "grounding-dino":
                model = transformers.GroundingDinoForObjectDetection.from_pretrained(name, use_safetensors=True)
                tokens = dict(transformers.AutoTokenizer.from_pretrained(name)(PROMPT, return_tensors="pt"))
            elif config.model_type in FAMILY:
                model = transformers.AutoModelForObjectDetection.from_pretrained(name, use_safetensors=True)
            else:
                known = ", ".join((*FAMILY, "owlv2", "grounding-dino"))
                raise DeixisError(f"hf:{name} is a {config.model_type}, not one of the detectors {known}")
            base: Any = importlib.import_module("transformers.image_processing_base")
            prepared = base.ImageProcessingMixin.get_image_processor_dict(name)[0]
        except (OSError, ValueError, ImportError) as error:
            raise BadFileError(f"hf:{name} cannot be loaded: {str(error).strip().splitlines()[0]}") from error
        square = config.model_type == "owlv2"
        return cls(model, Preparation.from_config(prepared, square=square), tokens=tokens, device=device)

    @property
    def fingerprint(self) -> str:
        """Kind of model, and a hash of its weights and of how images are prepared."""
        return self._fingerprint

    @torch.inference_mode()
    def extract(self, images: Sequence[NDArray[np.uint8]], *, max_regions: int = 100) -> list[Regions]:
        """Return at most ``max_regions`` regions and the whole image for each image."""
        results = []
        for image in images:
            pixels, (width, height) = self.preparation(image)
            found = self._detect(pixels.to(self.device))
            scale = found.boxes.new_tensor([width, height, width, height])
            boxes = _corners(found.boxes) * scale
            found = Detections(boxes, found.features, found.objectness, found.class_probs)
            size = image.shape[1], image.shape[0]
            results.append(choose_regions(found, size, max_regions, self.fingerprint, self.class_names))
        return results

    def _choose_detect(self) -> Callable[[Tensor], Detections]:
        if self.kind == "owlv2":
            return self._owlv2
        if self.kind == "grounding-dino":
            return self._grounding_dino
        if self.kind in FAMILY:
            return self._family
        raise DeixisError(f"no adapter for models of type {self.kind}")

    def _family(self, pixels: Tensor) -> Detections:
        """DETR and its relatives: a region is a query, its feature the decoder's last state."""
        out: Any = self.model(pixel_values=pixels)
        logits = out.logits[0].float()  # (Q, C) or (Q, C + 1)
        states = out.last_hidden_state[0, -len(logits) :]  # YOLOS keeps its patches before the queries
        if self.kind in SOFTMAX_KINDS:
            probs = logits.softmax(-1)
            objectness, probs = 1 - probs[:, -1], probs[:, :-1]
        else:
            probs = logits.sigmoid()
            objectness = probs.amax(-1)
        return Detections(out.pred_boxes[0], states, objectness, probs[:, : len(self.class_names)])

    def _owlv2(self, pixels: Tensor) -> Detections:
        """OWLv2 (Minderer et al., 2023): its objectness head ranks the patches' boxes without any text."""
        model: Any = self.model
        grid, _ = model.image_embedder(pixel_values=pixels)  # (1, h, w, D)
        patches = grid.flatten(1, 2)  # (1, Q, D)
        objectness = model.objectness_predictor(patches)[0].sigmoid()
        return Detections(model.box_predictor(patches, grid)[0], patches[0], objectness)

    def _grounding_dino(self, pixels: Tensor) -> Detections:
        """Grounding DINO (Liu et al., 2023) asked for things in general: objectness is its best match with any word."""
        out: Any = self.model(pixel_values=pixels, **self._tokens)
        objectness = out.logits[0].float().sigmoid().nan_to_num(0.0).amax(-1)
        return Detections(out.pred_boxes[0], out.last_hidden_state[0], objectness)


def _corners(boxes: Tensor) -> Tensor:
    """Turn centre and size into corners, (Q, 4)."""
    centre, size = boxes[:, :2].float(), boxes[:, 2:].float()
    return torch.cat([centre - size / 2, centre + size / 2], 1)
