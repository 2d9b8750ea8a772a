"""One model out of several that come from one another: the mean of their weights.

A model that was tuned to one kind of photos has forgotten some of the others. Half way between the weights before and
after tuning it keeps most of both (Wortsman et al., *Robust fine-tuning of zero-shot models*, CVPR 2022), and it costs
nothing in use, unlike an ensemble.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from deixis.atomic import whole_folder, write_json
from deixis.errors import BadFileError, DeixisError
from deixis.models.checkpoint import CONFIG, VOCABULARY, WEIGHTS, digest, load_config
from deixis.models.names import Part, find_model
from deixis.reading.plain import read_json_object
from deixis.reading.tensors import load_tensors
from deixis.text.vocabulary import Vocabulary
from deixis.training.start import with_new_words


def find_alike(names: Sequence[str]) -> list[Path]:
    """Return the folders of models of one kind: of a bundle, such as ``lite``, the part that the others are."""
    parts: tuple[Part, ...] = ("captioner", "grounder")
    for part in parts:
        try:
            folders = [find_model(name, part=part) for name in names]
        except BadFileError:
            if part == parts[-1]:
                raise
            continue
        if len({load_config(folder).model.kind for folder in folders}) == 1:
            return folders
    return folders


def average(folders: Sequence[Path], target: Path) -> None:
    """Write a model folder whose weights are the mean of those of other model folders; its config is the last one's.

    A child that learned new words has a mean with its parent too: the parent takes part with the rows that the child's
    new words began with, and the config is that of the last of those with the most words.

    >>> average([find_model("runs/general"), find_model("runs/tuned")], Path("both"))  # doctest: +SKIP
    """
    from safetensors.torch import save_file

    if len(folders) < 2:
        raise DeixisError("a mean needs at least two models: name another run")
    if target.exists():
        raise DeixisError(f"{target} exists already: choose another folder")
    for folder in folders:
        load_config(folder)  # refuses what is no model, or a damaged one
    vocabularies = [Vocabulary.load(folder / VOCABULARY).words for folder in folders]
    # the last of those with the most words: a child may have learned words that its parent never heard
    at = max(range(len(folders)), key=lambda row: (len(vocabularies[row]), row))
    last, words = folders[at], vocabularies[at]
    others = [
        (folder, known) for row, (folder, known) in enumerate(zip(folders, vocabularies, strict=True)) if row != at
    ]
    weights = load_tensors(last / WEIGHTS)
    total = {name: value.double() if value.is_floating_point() else value for name, value in weights.items()}
    for folder, known in others:
        if words[: len(known)] != known:
            raise BadFileError(f"{folder} knows other words than {last}: start one from the other (start_from)")
        more = with_new_words(load_tensors(folder / WEIGHTS), weights, len(known), len(words))
        if {name: value.shape for name, value in more.items()} != {name: v.shape for name, v in weights.items()}:
            raise BadFileError(f"{folder} is built otherwise than {last}: only models of one recipe have a mean")
        total = {name: value + more[name] if value.is_floating_point() else value for name, value in total.items()}
    count = len(folders)
    means = {n: (v / count).to(weights[n].dtype) if v.is_floating_point() else v for n, v in total.items()}

    with whole_folder(target) as place:
        for file in sorted(last.iterdir()):
            if file.is_file() and not file.name.startswith(("state.", ".")):
                shutil.copyfile(file, place / file.name)
        save_file(means, place / WEIGHTS)
        data = read_json_object(place / CONFIG)
        data["files"] = {name: digest(place / name) for name in data["files"]}
        write_json(place / CONFIG, data)
