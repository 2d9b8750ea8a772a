"""From regions to what the decoder looks at: grounding-aware region encoding, a global vector, and map cells.

GVD's encoding as told in Cyclical appendix D: the region feature, its similarity to object classes, and its location,
each layer-normalised, concatenated and projected to the width of the model. Everything is done once per image.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.captioning.model.config import EncoderConfig
from deixis.data.batch import RegionBatch
from deixis.data.sizes import InputSizes
from deixis.errors import DeixisError


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the decoder needs of B images. ``cells`` are attended beside the regions, where the encoder has them."""

    regions: Tensor  # (B, N, D)
    mask: Tensor  # (B, N)
    pooled: Tensor  # (B, D) global image vector
    frame: Tensor  # (B, N)
    cells: Tensor | None = None  # (B, M, D)
    cell_mask: Tensor | None = None  # (B, M)
    class_logits: Tensor | None = None  # (B, N, C) of the learnt classifiers

    def __len__(self) -> int:
        return len(self.regions)

    def select(self, rows: Tensor) -> Encoded:
        """Return the images at ``rows``, which may repeat."""

        def take(value: Tensor | None) -> Tensor | None:
            return None if value is None else value[rows]

        return Encoded(
            self.regions[rows],
            self.mask[rows],
            self.pooled[rows],
            self.frame[rows],
            take(self.cells),
            take(self.cell_mask),
            take(self.class_logits),
        )

    def for_captions(self, image_of: Tensor | None, captions: int | None = None) -> Encoded:
        """Return images such that captions come in equal groups per image, in order; repeat them only if they do not.

        ``image_of`` (C,) names each caption's image; without it, ``captions`` divide over the images in order.
        """
        images = len(self)
        count = len(image_of) if image_of is not None else int(captions or 0)
        even = images > 0 and count % images == 0
        if image_of is None:
            if not even:
                raise ValueError(f"{count} captions do not divide over {images} images: pass image_of")
            return self
        if even and torch.equal(
            image_of, torch.arange(images, device=image_of.device).repeat_interleave(count // images)
        ):
            return self
        return self.select(image_of)


class SelfAttention(nn.Module):
    """One layer of self-attention over regions, as in GVD: heads, residual sum, layer norm, feed-forward the same way.

    The width of a head is rounded up, so any number of heads goes with any width (GVD has 6).
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.head_width, self.dropout = heads, -(-width // heads), dropout
        self.project = nn.Linear(width, 3 * heads * self.head_width)
        self.join = nn.Linear(heads * self.head_width, width)
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.contract = nn.Linear(2 * width, width)
        self.final_norm = nn.LayerNorm(width)

    def forward(self, regions: Tensor, mask: Tensor) -> Tensor:
        """(B, N, D), (B, N) -> (B, N, D)."""
        images, count, _ = regions.shape
        q, k, v = self.project(regions).view(images, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask[:, None, None], dropout_p=self.dropout if self.training else 0.0
        )  # (B, heads, N, head width)
        regions = self.norm(regions + self.join(mixed.transpose(1, 2).flatten(2)))
        result: Tensor = self.final_norm(regions + self.contract(F.relu(self.expand(regions))))
        return result


class RegionEncoder(nn.Module):
    """Encode a :class:`RegionBatch`; each part can be switched off in the config."""

    def __init__(self, config: EncoderConfig, sizes: InputSizes, width: int, *, pool_regions: bool) -> None:
        """``pool_regions``: the global vector is the mean of the encoded regions (Up-Down) and not a global feature."""
        super().__init__()
        self.config, self.sizes, self.pool_regions = config, sizes, pool_regions
        self.freeze_detector = False
        self.dropout = nn.Dropout(config.dropout)
        features = sizes.features
        if config.detector_width:
            self.detector = nn.Linear(features, config.detector_width)
            features = config.detector_width
        parts = 0
        if config.feature != "none":
            source = features if config.feature == "given" else sizes.classes
            self.feature = nn.Linear(_needed(source, "class_probs" if config.feature == "class" else "features"), width)
            self.feature_norm = nn.LayerNorm(width)
            parts += width
        if config.similarity == "learned":
            classes = config.learned_classes or _needed(sizes.classes, "class_probs (or set encoder.learned_classes)")
            self.classifier = nn.Linear(features, classes)
            similarity = classes
        else:
            similarity = (_needed(sizes.classes, "class_probs") if "classes" in config.similarity else 0) + (
                _needed(sizes.region_words, "word_probs") if "words" in config.similarity else 0
            )
        if similarity:
            self.similarity_norm = nn.LayerNorm(similarity)
            parts += similarity
        if config.location:
            self.location = nn.Linear(5, config.location_width)
            self.location_norm = nn.LayerNorm(config.location_width)
            parts += config.location_width
        if parts == 0:
            raise DeixisError("the region encoder has every part switched off: keep feature, similarity or location")
        self.join = nn.Linear(parts, width)
        self.layers = nn.ModuleList(
            SelfAttention(width, config.self_attention_heads, 0.1) for _ in range(config.self_attention_layers)
        )
        if not pool_regions:
            # without global features the mean of the region features stands in for them
            self.image = nn.Linear(sizes.global_features or sizes.features, width)
        if config.map == "feature_map":
            self.cell = nn.Linear(_needed(sizes.feature_map, "feature_map"), width)
        elif config.map == "frames":
            self.cell = nn.Linear(_needed(sizes.global_features, "global_features"), width)
            self.frames = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, regions: RegionBatch) -> Encoded:
        """Encode B images or clips."""
        config = self.config
        features = regions.features.float()
        if config.detector_width:
            features = F.relu(self.detector(features))
            features = features.detach() if self.freeze_detector else features
        mask = self.visible(regions)
        parts: list[Tensor] = []
        class_logits: Tensor | None = None
        if config.feature != "none":
            given = features if config.feature == "given" else _present(regions.class_probs, "class_probs").float()
            parts.append(self.feature_norm(self.dropout(F.relu(self.feature(given)))))
        if config.similarity == "learned":
            logits: Tensor = self.classifier(features)
            class_logits = logits.detach() if self.freeze_detector else logits
            parts.append(self.similarity_norm(class_logits.softmax(-1)))
        elif config.similarity != "none":
            known = [_present(regions.class_probs, "class_probs")] if "classes" in config.similarity else []
            known += [_present(regions.word_probs, "word_probs")] if "words" in config.similarity else []
            parts.append(self.similarity_norm(torch.cat(known, -1).float()))
        if config.location:
            parts.append(self.location_norm(self.dropout(F.relu(self.location(locations(regions))))))
        encoded = self.dropout(F.relu(self.join(torch.cat(parts, -1))))  # (B, N, D)
        for layer in self.layers:
            encoded = layer(encoded, mask)
        cells, cell_mask = self._cells(regions)
        return Encoded(encoded, mask, self._pooled(regions, encoded), regions.frame, cells, cell_mask, class_logits)

    def visible(self, regions: RegionBatch) -> Tensor:
        """Regions that may be looked at, (B, N): real, and surely enough an object; an image keeps at least all."""
        if self.config.min_objectness <= 0:
            return regions.mask
        sure = regions.mask & (regions.objectness > self.config.min_objectness)
        return torch.where(sure.any(-1, keepdim=True), sure, regions.mask)

    def _pooled(self, regions: RegionBatch, encoded: Tensor) -> Tensor:
        if self.pool_regions:
            return mean_of_real(encoded, regions.mask)
        if self.sizes.global_features:
            given = _present(regions.global_features, "global_features").float()  # (B, F, G)
            mean = given.mean(1) if regions.frame_mask is None else mean_of_real(given, regions.frame_mask)
        else:
            mean = mean_of_real(regions.features.float(), regions.mask)
        pooled: Tensor = self.dropout(F.relu(self.image(mean)))
        return pooled

    def _cells(self, regions: RegionBatch) -> tuple[Tensor | None, Tensor | None]:
        if self.config.map == "none":
            return None, None
        if self.config.map == "feature_map":
            grid = _present(regions.feature_map, "feature_map").float()  # (B, F, H, W, M)
            height, width = grid.shape[2:4]
            cells = self.dropout(F.relu(self.cell(grid.flatten(1, 3))))  # (B, F*H*W, D)
            return cells, _real_frames(regions, grid).repeat_interleave(height * width, 1)
        given = _present(regions.global_features, "global_features").float()  # (B, F, G)
        steps = self.dropout(F.relu(self.cell(given)))
        mask = _real_frames(regions, given)
        # packing lets the backward GRU start at the last real frame, whatever the padding
        packed = nn.utils.rnn.pack_padded_sequence(
            steps, mask.sum(1).clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        out, _ = nn.utils.rnn.pad_packed_sequence(self.frames(packed)[0], batch_first=True, total_length=given.shape[1])
        return out, mask


def locations(regions: RegionBatch) -> Tensor:
    """Normalised x1 y1 x2 y2 and the position of the frame in its clip, 0 for photos, (B, N, 5)."""
    if regions.frame_mask is not None:
        frames = regions.frame_mask.sum(1)
    else:
        frames = torch.where(regions.mask, regions.frame, 0).amax(1) + 1
    position = regions.frame / frames.clamp(min=1).unsqueeze(1)  # GVD: frame / 10, with 10 frames
    return torch.cat([regions.boxes_normalised.float(), position.unsqueeze(-1).float()], -1)


def mean_of_real(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over axis 1 of what is real, (B, N, D), (B, N) -> (B, D)."""
    weights = mask.to(values.dtype)
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1)
    return (weights.unsqueeze(1) @ values).squeeze(1)


def _real_frames(regions: RegionBatch, per_frame: Tensor) -> Tensor:
    if regions.frame_mask is not None:
        return regions.frame_mask
    return torch.ones(per_frame.shape[:2], dtype=torch.bool, device=per_frame.device)


def _needed(width: int, what: str) -> int:
    if width == 0:
        raise DeixisError(f"the recipe's encoder needs regions with {what}, and these regions have none")
    return width


def _present(value: Tensor | None, what: str) -> Tensor:
    if value is None:
        raise DeixisError(f"the captioner was trained with {what} of regions, and these regions have none")
    return value
