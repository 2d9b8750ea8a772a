"""Captioners of transformers: BLIP, GIT, ViT-GPT2 and other vision-encoder-decoders, and Florence-2.

``hf:OWNER/NAME`` downloads the model, ``hf:FOLDER`` reads a saved one. Weights are read from safetensors only, and no
code of a model's repository is run. Images go through one at a time and are prepared here from the model's
``preprocessor_config.json``: the library's own image processors want torchvision.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from deixis.answering.sentences import Said
from deixis.errors import BadFileError, DeixisError, MissingExtraError
from deixis.models.hub import download, is_hub_name

CLASSES = {
    "blip": "BlipForConditionalGeneration",
    "git": "GitForCausalLM",
    "vision-encoder-decoder": "VisionEncoderDecoderModel",
    "florence2": "Florence2ForConditionalGeneration",
}
"""The class of each kind of model that is known here."""
TEXTS = ("*.txt",)
"""What tokenisers have beside JSON."""
QUESTION = "What does the image describe?"
"""What Florence-2 learned to answer with a caption (its task ``<CAPTION>``)."""
LONGEST = 40
"""Tokens of a sentence."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """How pixels become the network's input, as ``preprocessor_config.json`` says."""

    height: int
    width: int
    shortest: int | None = None
    """Resize so that the shorter side is this, then cut height x width from the middle; None: resize to them."""
    resample: int = int(Image.Resampling.BICUBIC)
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Read the parts of the configuration that matter."""
        size, crop = config.get("size", 224), config.get("crop_size")
        cuts = bool(config.get("do_center_crop", False)) and crop is not None
        height, width = _sides(crop if cuts else size)
        shortest = None
        if cuts and not (isinstance(size, dict) and "height" in size):
            shortest = int(size["shortest_edge"] if isinstance(size, dict) else size)
        normalise = config.get("do_normalize", True)
        return cls(
            height,
            width,
            shortest,
            int(config.get("resample", Image.Resampling.BICUBIC)),
            tuple(config.get("image_mean", (0.5, 0.5, 0.5))) if normalise else (0.0, 0.0, 0.0),
            tuple(config.get("image_std", (0.5, 0.5, 0.5))) if normalise else (1.0, 1.0, 1.0),
        )

    def __call__(self, image: NDArray[np.uint8]) -> Tensor:
        """Return the network's input, (1, 3, H, W)."""
        picture = Image.fromarray(image).convert("RGB")
        size = (self.width, self.height)
        if self.shortest is not None:
            short, long = min(picture.size), max(picture.size)
            other = int(self.shortest * long / short)
            size = (self.shortest, other) if picture.width <= picture.height else (other, self.shortest)
        picture = picture.resize(size, Image.Resampling(self.resample))
        if self.shortest is not None:
            left, top = (picture.width - self.width) // 2, (picture.height - self.height) // 2
            picture = picture.crop((left, top, left + self.width, top + self.height))
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255  # (3, H, W)
        mean, std = (torch.tensor(value).view(3, 1, 1) for value in (self.mean, self.std))
        return ((pixels - mean) / std)[None]


class HfCaptioner:
    """A captioner of transformers. Build one with :meth:`load`, or from a model in memory."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        preparation: Preparation,
        *,
        name: str,
        image_tokens: int = 0,
        device: str = "cpu",
    ) -> None:
        self.model: Any = model.eval().to(device)
        self.model.requires_grad_(False)
        self.tokenizer, self.preparation, self.device = tokenizer, preparation, device
        self._name = name
        self._question: dict[str, Tensor] = {}
        config: Any = model.config
        if config.model_type == "florence2":
            ids = tokenizer(QUESTION, add_special_tokens=False)["input_ids"]
            ids = [tokenizer.bos_token_id, *ids, tokenizer.eos_token_id]
            asked = torch.tensor([[config.image_token_id] * image_tokens + ids], device=device)
            self._question = {"input_ids": asked, "attention_mask": torch.ones_like(asked)}

    @classmethod
    def load(cls, name: str, *, device: str = "cpu") -> Self:
        """Load a model by its hub name or from a folder made by ``save_pretrained``."""
        try:
            transformers: Any = importlib.import_module("transformers")
        except ImportError as error:
            raise MissingExtraError("transformers", "hf", f"the captioner hf:{name}") from error
        folder = _folder(name)
        try:
            config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
            kind = getattr(transformers, CLASSES.get(config.model_type, ""), None)
            if kind is None:
                newer = f", which transformers {transformers.__version__} lacks" if config.model_type in CLASSES else ""
                raise DeixisError(
                    f"hf:{name} is a {config.model_type}{newer}: captioners of these kinds are read: "
                    f"{', '.join(CLASSES)}"
                )
            _require_safetensors(folder, name)
            transformers.logging.set_verbosity_error()
            model = kind.from_pretrained(folder, use_safetensors=True)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            base: Any = importlib.import_module("transformers.image_processing_base")
            prepared = base.ImageProcessingMixin.get_image_processor_dict(folder)[0]
            preparation = Preparation.from_config(prepared)
        except (OSError, ValueError, ImportError, KeyError, TypeError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise BadFileError(f"hf:{name} cannot be loaded: {reason}") from error
        tokens = int(prepared.get("image_seq_length") or 0)
        if config.model_type == "florence2" and not tokens:
            raise BadFileError(f"hf:{name} cannot be loaded: its preprocessor_config.json has no image_seq_length")
        return cls(model, tokenizer, preparation, name=f"hf:{name}", image_tokens=tokens, device=device)

    @property
    def name(self) -> str:
        """``hf:`` and what it was loaded by."""
        return self._name

    @torch.inference_mode()
    def say(self, image: NDArray[np.uint8], *, beam: int, count: int = 1) -> list[Said]:
        """Return at most ``count`` different sentences about an RGB image, best first; greedy search finds one."""
        pixels = self.preparation(image).to(self.device)
        out: Any = self.model.generate(
            pixel_values=pixels,
            **self._question,
            num_beams=beam,
            num_return_sequences=min(count, beam),
            do_sample=False,
            length_penalty=1.0,
            max_new_tokens=LONGEST,
            return_dict_in_generate=True,
            output_scores=True,
        )
        texts = self.tokenizer.batch_decode(out.sequences, skip_special_tokens=True)
        scores = [self._greedy_score(out)] if beam == 1 else out.sequences_scores.tolist()
        found: dict[str, float] = {}
        for text, score in zip(texts, scores, strict=True):
            found.setdefault(" ".join(text.split()), float(score))
        return [Said(text, score) for text, score in found.items()]

    def _greedy_score(self, out: Any) -> float:
        """Return the mean log-probability of the tokens of a greedy search."""
        logs = torch.stack([scores[0] for scores in out.scores]).float().log_softmax(-1)  # (T, words)
        chosen = out.sequences[0, -len(logs) :]  # (T,)
        return float(logs.gather(1, chosen[:, None]).mean())


def _sides(size: Any) -> tuple[int, int]:
    if isinstance(size, dict):
        both: Any = size.get("shortest_edge", 224)
        height: Any = size.get("height", both)
        width: Any = size.get("width", both)
        return int(height), int(width)
    return (int(size), int(size)) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _folder(name: str) -> Path:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not is_hub_name(name):
        raise BadFileError(f"hf:{name} is neither a folder here nor a name on the hub, such as microsoft/git-base-coco")
    return download(name, also=TEXTS)


def _require_safetensors(folder: Path, name: str) -> None:
    if any(folder.glob("*.safetensors")):
        return
    pickled = ", ".join(sorted(path.name for path in folder.glob("*.bin")))
    raise BadFileError(
        f"hf:{name} has no weights as safetensors{f' but {pickled}' if pickled else ''}: pickled weights (.bin) can "
        "run code and are not read. Save it with save_pretrained(..., safe_serialization=True) where you trust it"
    )
