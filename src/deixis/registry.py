"""The registry: every name that a recipe or an option may use for a part, and how parts are built from their options.

A part is named by a short name of :data:`REGISTRY`, or as ``package.module:Class``: any class of any installed package,
if it is of the right kind. Options in the YAML are the keyword parameters of the class, or the fields of the dataclass
it takes as ``config`` or ``options``; what the run knows (vocabulary, sizes, model …) is passed to parameters of that
name. A wrong option names the nearest right one.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_type_hints

from deixis.errors import BadRecipeError, DeixisError
from deixis.strict import to_dataclass, to_type, unknown_key

Kind = Literal["model", "objective", "validation", "attention", "word encoder", "reader", "extractor", "export"]

REGISTRY: dict[Kind, dict[str, str]] = {
    "model": {
        "captioner": "deixis.captioning.model.captioner:Captioner",
        "scan": "deixis.grounding.scan:Scan",
        "infoground": "deixis.grounding.infoground:InfoGround",
        "reir": "deixis.grounding.reir.model:Reir",
        "lite": "deixis.grounding.lite.model:LiteGrounder",
        "maf": "deixis.grounding.maf:Maf",
        "masked_language_model": "deixis.text.masked_model:MaskedLanguageModel",
    },
    "objective": {
        "cross_entropy": "deixis.objectives.cross_entropy:CrossEntropy",
        "supervision": "deixis.objectives.supervision:Supervision",
        "region_classification": "deixis.objectives.region_classification:RegionClassification",
        "grounding": "deixis.objectives.gvd_grounding:Grounding",
        "cyclical": "deixis.objectives.cyclical:Cyclical",
        "attention_consistency": "deixis.objectives.attention_consistency:AttentionConsistency",
        "distillation": "deixis.objectives.distillation:Distillation",
        "self_critical": "deixis.objectives.self_critical:SelfCritical",
        "matching": "deixis.objectives.matching:Matching",
        "image_contrast": "deixis.objectives.info_nce:ImageContrast",
        "language_contrast": "deixis.objectives.info_nce:LanguageContrast",
        "reconstruction": "deixis.objectives.reconstruction:Reconstruction",
        "visual_consistency": "deixis.objectives.visual_consistency:VisualConsistency",
        "phrase_ranking": "deixis.objectives.phrase_ranking:PhraseRanking",
        "self_taught": "deixis.objectives.self_taught:SelfTaught",
        "relation_classification": "deixis.objectives.relation_classification:RelationClassification",
        "evidence": "deixis.objectives.evidence:Evidence",
        "phrase_contrast": "deixis.objectives.phrase_contrast:PhraseContrast",
        "paraphrase_consistency": "deixis.objectives.paraphrase:ParaphraseConsistency",
        "teaching": "deixis.objectives.teaching:Teaching",
        "masked_words": "deixis.objectives.masked_words:MaskedWords",
    },
    "validation": {
        "captions": "deixis.training.validate:CaptionValidation",
        "phrases": "deixis.training.phrase_validation:PhraseValidation",
        "retrieval": "deixis.training.retrieval_validation:RetrievalValidation",
    },
    "attention": {
        "soft": "deixis.captioning.model.attention:SoftAttention",
        "distributed": "deixis.captioning.model.distributed_attention:DistributedAttention",
        "multi_head": "deixis.captioning.model.multi_head:MultiHeadAttention",
    },
    "word encoder": {
        "embedding": "deixis.text.word_encoders:LearnedWords",
        "contextual": "deixis.text.word_encoders:ContextualWords",
        "minilm": "deixis.text.word_encoders:TransformersWords",
        "hf": "deixis.text.word_encoders:TransformersWords",
    },
    "reader": {  # in the order they are asked whether a folder is theirs: the more particular layouts first
        "flickr30k-entities": "deixis.data.flickr30k_entities:Flickr30kEntities",
        "activitynet-entities": "deixis.data.activitynet_entities:ActivityNetEntities",
        "referit": "deixis.data.referit:ReferIt",
        "coco": "deixis.data.coco:Coco",
        "folder": "deixis.data.folder:Folder",
        "photos": "deixis.data.photo_folder:PhotoFolder",
        "webdataset": "deixis.data.webdataset:WebDataset",
        "captions-tsv": "deixis.data.captions_tsv:CaptionsTsv",
    },
    "extractor": {  # by what stands before ":" or "@" in its name
        "lite": "deixis.regions.registry:lite",
        "selective-search": "deixis.regions.registry:selective_search",
        "torchvision": "deixis.regions.registry:torchvision",
        "hf": "deixis.regions.registry:hf",
    },
    "export": {},
}
"""Names and where they live (``module:attribute``); imported when they are used. Formats add themselves."""

BASES: dict[Kind, str] = {
    "model": "deixis.interfaces:Model",
    "objective": "deixis.objectives.base:Objective",
    "attention": "deixis.captioning.model.attention:Attention",
    "word encoder": "deixis.text.word_encoders:WordEncoderModule",
    "reader": "deixis.data.dataset:Dataset",
    "extractor": "deixis.interfaces:Extractor",
    "export": "deixis.export.formats:ExportFormat",
}
"""What a part of one's own has to be."""

_OUTSIDE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
TRUSTED = "DEIXIS_PACKAGES"
OWN: set[str] = set()
"""Packages that a recipe of this process names: who trains with them trusts them."""


def register(kind: Kind, name: str, where: str) -> None:
    """Give a part of one's own a short name: ``register("objective", "mine", "my_package.mine:MyObjective")``."""
    REGISTRY[kind][name] = where


def is_outside(name: str) -> bool:
    """Whether a name has the form ``package.module:Class``."""
    return _OUTSIDE.fullmatch(name) is not None


def find_class(kind: Kind, name: str, where: str) -> Any:
    """Return what a name stands for; ``where`` is the place of the name, for messages."""
    known = REGISTRY[kind]
    if name in known:
        return _found(known[name])
    if not is_outside(name):
        raise unknown_key(name, known, where, kind)
    try:
        found = _found(name)
    except (ImportError, AttributeError) as error:
        raise BadRecipeError(
            f"{where} names '{name}', which cannot be imported: {error}; is the package installed, or on PYTHONPATH?"
        ) from error
    base = _found(BASES[kind]) if kind in BASES else object
    if kind in ("extractor", "export"):  # made by a function or a class, or there already
        return found
    if not inspect.isclass(found) or not issubclass(found, base):
        raise BadRecipeError(f"{where} names '{name}', which is no {kind}: it should be a subclass of {BASES[kind]}")
    return found


def require_name(kind: Kind, name: str, where: str) -> None:
    """Refuse a name that stands for nothing; what is known is not imported for it."""
    if name not in REGISTRY[kind]:
        find_class(kind, name, where)


def package_of(name: str) -> str:
    """Return the package of ``package.module:Class``."""
    return name.partition(":")[0].partition(".")[0]


def require_trusted(name: str, where: str) -> None:
    """Refuse code outside Deixis that a file asks for which may come from somebody else, such as a model's folder.

    Who wrote the package says so: ``DEIXIS_PACKAGES=my_package`` (several with commas).
    """
    package = package_of(name)
    trusted = OWN | {part.strip() for part in os.environ.get(TRUSTED, "").split(",")}
    if is_outside(name) and package != "deixis" and package not in trusted:
        raise DeixisError(
            f"{where} asks for '{name}', which is code outside Deixis: if you trust it, set {TRUSTED}={package}"
        )


def _found(where: str) -> Any:
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(module), attribute)


def build(kind: Kind, name: str, options: Mapping[str, Any], where: str, **known: Any) -> Any:
    """Build something a recipe names from its options and from what the run knows."""
    target = find_class(kind, name, where)
    values = read_options(target, options, where, known)
    try:
        return target(**values)
    except ValueError as error:
        raise BadRecipeError(f"{where} ({name}): {error}") from error


def read_options(
    target: Any, options: Mapping[str, Any], where: str, known: Mapping[str, Any], also: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the arguments of a call of ``target``: its options checked, and those of ``known`` that it asks for.

    ``also`` names keys of the same mapping that somebody else reads, so that a hint may name them too.
    """
    parameters = inspect.signature(target).parameters
    hints = get_type_hints(target.__init__ if inspect.isclass(target) else target)
    values = {name: known[name] for name in parameters if name in known}
    for name in ("config", "options"):
        config = _dataclass_in(hints.get(name)) if name in parameters else None
        if config is not None:
            values[name] = to_dataclass(config, options, where, also)
            return values
    free = {
        name: parameter
        for name, parameter in parameters.items()
        if name not in known and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    for key, value in options.items():
        if key not in free:
            raise unknown_key(key, (*free, *also), where, "option")
        values[key] = to_type(hints.get(key, Any), value, f"{where}.{key}")
    for name, parameter in free.items():
        if parameter.default is parameter.empty and name not in values:
            raise BadRecipeError(f"{where} lacks '{name}'")
    return values


def _dataclass_in(hint: Any) -> type[Any] | None:
    """Return the dataclass a hint names, also where None is allowed."""
    for option in (hint, *get_args(hint)):
        if dataclasses.is_dataclass(option) and isinstance(option, type):
            return option
    return None
