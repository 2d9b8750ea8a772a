"""The options of a captioner: what a recipe sets, as plain frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from deixis.registry import require_name


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Grounding-aware region encoding (GVD; Cyclical appendix D) and what stands beside the regions."""

    feature: Literal["given", "class", "none"] = "given"
    """``class``: a learnt embedding of the region's class in place of its feature (the perfect detector of Cyclical
    section 4.4)."""
    detector_width: int = 0
    """Above 0, region features first go through a layer of this width. Trained on human boxes with
    ``region_classification`` and then frozen, it is the grounding-biased detector of Cyclical section 4.4."""
    similarity: Literal["none", "learned", "classes", "words", "classes+words"] = "none"
    """Region-class similarity: softmax of learnt classifiers, or the probabilities that the regions bring along."""
    learned_classes: int = 0
    """How many object classes ``similarity: learned`` has; 0 takes the number of detector classes."""
    location: bool = True
    location_width: int = 300
    min_objectness: float = 0.0
    """Regions at or below it are not looked at (GVD: 0.2)."""
    self_attention_layers: int = 0
    """GVD: 2."""
    self_attention_heads: int = 6
    map: Literal["none", "feature_map", "frames"] = "none"
    """What is attended beside the regions (Distributed eq. 4): the cells of the feature map, or for clips the frame
    features after a bi-GRU."""
    dropout: float = 0.5


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """How a step looks at the regions."""

    kind: str = "soft"
    """``soft``, ``distributed``, ``multi_head``, or ``package.module:Class`` of your own."""
    width: int = 0
    """Width of the additive score; 0 takes the model's."""
    project_regions: bool = True
    """False adds the encoded region itself (Cyclical eq. 2) and needs ``width`` equal to the model's."""
    state: Literal["current", "previous"] = "current"
    """Which state of the attention LSTM asks: this step's (text of all papers) or the last (Distributed eqs. 2, 7)."""
    branches: int = 4
    """Branches of distributed, heads of multi-head attention."""
    elimination: bool = True
    """Distributed eq. 7: a branch does not see what earlier branches chose."""
    join: Literal["copy", "random"] = "copy"
    """A branch that joins starts as a copy of the first, or from its own random weights (as it must without
    elimination, where copies would stay equal for ever)."""
    exclusion: Literal["frame", "clip"] = "frame"
    """In clips, a branch gives up its best region of each frame, or its best one of the clip."""
    language_state: Literal["separate", "shared"] = "separate"
    """Whether each branch keeps a language-LSTM state of its own or all start from their mean."""
    ties: Literal["mean", "first"] = "mean"
    """Equal votes: the word with the larger mean probability, or the first branch's word."""
    vote: Literal["plurality", "mean"] = "plurality"
    """Greedy search with branches: the word most branches say, or the one with the largest mean probability."""

    def __post_init__(self) -> None:
        require_name("attention", self.kind, "model.attention.kind")


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The two-LSTM decoder."""

    form: Literal["gvd", "updown", "cyclical"] = "cyclical"
    """Attention-LSTM input: ``gvd`` [global; word], ``updown`` [language state; mean region; word], ``cyclical``
    [global; language state; word]."""
    word_width: int = 0
    """Width of the word embedding; 0 takes the model's."""
    word_dropout: float = 0.5
    output_dropout: float = 0.5
    tie_embeddings: bool = False
    """Share the word embedding with the output layer; needs ``word_width`` equal to the model's width."""


@dataclass(frozen=True, slots=True)
class CaptionerConfig:
    """A captioner is an encoder, a decoder and an attention."""

    width: int = 512
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)

    def __post_init__(self) -> None:
        attention = self.attention
        if not attention.project_regions and attention.width not in (0, self.width):
            raise ValueError(f"attention.width {attention.width} must be width {self.width} without project_regions")
        if attention.kind != "soft" and attention.branches < 1:
            raise ValueError(f"attention.branches must be at least 1, got {attention.branches}")
        if self.decoder.tie_embeddings and self.decoder.word_width not in (0, self.width):
            raise ValueError("decoder.tie_embeddings needs decoder.word_width equal to width")
