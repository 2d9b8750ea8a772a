"""One submission against one reference: find out what both are, lay them side by side, and report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.bootstrap import REPLICATES
from deixis.metrics.captions.scores import score_captions
from deixis.metrics.files.grounding import GroundingReference, Mode, read_reference, read_submission, words_in
from deixis.metrics.files.json_lines import JsonFile, Key, read_json_file, show
from deixis.metrics.files.phrases import pair_phrases
from deixis.metrics.files.references import (
    Reference,
    clip_key,
    match_ids,
    open_reference,
    reference_phrases,
    reference_texts,
)
from deixis.metrics.files.results import (
    read_captions,
    read_coco_captions,
    read_phrases,
    read_plain_phrases,
    read_proposals,
    recognise,
)
from deixis.metrics.grounding.attention_accuracy import score_attention
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_caption, words_of_examples
from deixis.metrics.grounding.lemmas import Lemmas, parsed_lemmas, read_lemma_table, table_lemmas
from deixis.metrics.grounding.object_words import GroundedItem
from deixis.metrics.grounding.pairs import GroundingTask, pair
from deixis.metrics.grounding.phrases import PROTOCOLS
from deixis.metrics.report import Report, Section
from deixis.metrics.sections import (
    attention_section,
    caption_section,
    dense_section,
    grounding_section,
    phrase_section,
)
from deixis.text.classes import ObjectClasses
from deixis.types import Box, GroundedCaption

NOT_STATED = "not stated (--regions)"


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """How to score; the fields are the options of ``deixis score``."""

    splits: tuple[str, ...] = ()
    split_file: Path | None = None
    protocol: str | None = None
    """``any-box`` or ``merged-box`` for phrases (both by default), ``gen`` or ``GT`` for grounding submissions."""
    lemmas: Path | None = None
    classes: Path | None = None
    metrics: tuple[str, ...] = ("bleu", "rouge", "cider")
    regions: str | None = None
    proposals: Path | None = None
    frequencies: Path | None = None
    partial: bool = False
    replicates: int = REPLICATES
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A report, and the items of generated captions, from which a submission file can be written."""

    report: Report
    items: tuple[GroundedItem, ...] = ()
    clips: bool = False


def score_files(submission: Path, reference: Path, options: ScoreOptions | None = None) -> Scored:
    """Score a file of results; what is wrong with it is an error that names line and value."""
    return _Scoring(submission, reference, options or ScoreOptions()).run()


class _Drawing(TypedDict):
    replicates: int
    seed: int


class _Scoring:
    def __init__(self, submission: Path, reference: Path, options: ScoreOptions) -> None:
        self.options = options
        self.file = read_json_file(submission)
        self.format = recognise(self.file)
        self._check_protocol()
        if self.format == "dense captions":  # its references are times and sentences, which no other format is
            self.reference = Reference(reference, "caption file", "all")
        else:
            self.reference = open_reference(reference, options.splits, options.split_file)
        self.notes: list[str] = []
        self.lemma_source = ""
        self.model = ""
        self.regions = options.regions
        self.drawing = _Drawing(replicates=options.replicates, seed=options.seed)

    def run(self) -> Scored:
        if self.format == "grounding submission":
            return self._grounding()
        if self.format in ("phrases", "plain phrase boxes"):
            return self._phrases()
        if self.format == "captions":
            return self._grounded_captions()
        if self.format == "dense captions":
            return self._dense_captions()
        captions = read_coco_captions(self.file)
        return self._report(self._captions({image: (place, text) for image, (place, text) in captions.items()}))

    def _check_protocol(self) -> None:
        chosen = self.options.protocol
        allowed: tuple[str, ...] = ()
        if self.format == "grounding submission":
            allowed = ("gen", "GT")
        elif self.format in ("phrases", "plain phrase boxes"):
            allowed = tuple(PROTOCOLS)
        if chosen is not None and chosen not in allowed:
            known = f"choose {' or '.join(allowed)}" if allowed else "it has only one"
            raise DeixisError(f"--protocol {chosen} does not fit {self.file.path}, a file of {self.format}: {known}")

    def _report(self, *sections: Section, items: tuple[GroundedItem, ...] = (), clips: bool = False) -> Scored:
        report = Report(
            submission=str(self.file.path),
            reference=str(self.reference.path),
            split=self.reference.split,
            region_source=self.regions or NOT_STATED,
            sections=sections,
            lemmas=self.lemma_source,
            model=self.model,
            notes=tuple(dict.fromkeys(self.notes)),
        )
        return Scored(report, items, clips)

    # Lemmas

    def _lemmas(self, *files: JsonFile) -> Lemmas:
        """Return the given table, or lemmas for every word and class of some files."""
        if self.options.lemmas is not None:
            self.lemma_source = f"table {self.options.lemmas}"
            return table_lemmas(read_lemma_table(self.options.lemmas))
        lemma, self.lemma_source = parsed_lemmas(word for file in files for word in words_in(file.data))
        return lemma

    # Grounding submissions

    def _grounding(self) -> Scored:
        mode: Mode | None = "GT" if self.options.protocol == "GT" else "gen" if self.options.protocol == "gen" else None
        if self.reference.kind == "data set":
            return self._grounding_on_dataset(mode)
        if self.reference.kind != "grounding file":
            raise BadFileError(
                f"{self.file.path} is a grounding submission, {self.reference.path} a {self.reference.kind}: score it "
                "against an ActivityNet-Entities or GVD reference file, or a data set with boxes"
            )
        lemma = self._lemmas(self.reference.json(), self.file)
        submission = read_submission(self.file, lemma)
        known = read_reference(self.reference.json(), lemma, self.reference.ids)
        task = pair(submission, known, self.file, mode)
        return self._task(task, submission.kind == "photos", submission.region_source)

    def _grounding_on_dataset(self, mode: Mode | None) -> Scored:
        if mode == "GT":
            raise DeixisError("--protocol GT needs the reference file whose sentences were fed, not a data set folder")
        words = self._dataset_words()
        submission = read_submission(self.file, words.classes.lemma)
        clips = submission.kind == "clips"
        known = GroundingReference(
            submission.kind,
            {clip_key(name) if clips else (name,): sentences for name, sentences in words.sentences.items()},
            frozenset(),
            frozenset(words.classes.names),
        )
        return self._task(pair(submission, known, self.file, "gen"), not clips, submission.region_source)

    def _task(self, task: GroundingTask, photos: bool, region_source: str | None) -> Scored:
        self.notes += task.notes
        self.regions = self.regions or region_source
        if task.mode == "GT":
            accuracy = score_attention(task.sentences)
            return self._report(attention_section(accuracy, photos=photos, **self.drawing))
        section = grounding_section(task.items, photos=photos, frequency=self._frequency(), **self.drawing)
        return self._report(section, items=task.items, clips=not photos)

    def _frequency(self) -> dict[str, int] | None:
        """Return how often each class was annotated in training, by which classes are put into groups."""
        if self.options.frequencies is None:
            self.notes.append(
                "classes are grouped by how often this reference has them (--frequencies: as in training)"
            )
            return None
        file = read_json_file(self.options.frequencies)
        table = file.object_at(file.data, [], "class to number of boxes")
        return {label: file.whole_at(count, [label], "a number of boxes") for label, count in table.items()}

    def _dataset_words(self) -> DatasetWords:
        examples, notes = self.reference.examples
        lemma = None
        if self.options.lemmas is not None:
            lemma = table_lemmas(read_lemma_table(self.options.lemmas))
            self.lemma_source = f"table {self.options.lemmas}"
        else:
            self.lemma_source = "rules for nouns; spaCy for the references where it is installed"
        words = words_of_examples(examples, lemma, self.options.classes)
        self.notes += [*notes, *words.notes]
        return words

    # Our captions

    def _grounded_captions(self) -> Scored:
        captions = read_captions(self.file)
        models = Counter(caption.model for _, caption in captions.values() if caption.model)
        self.model = ", ".join(models)
        texts = self._captions({image: (place, caption.text) for image, (place, caption) in captions.items()})
        grounded = any(word.boxes for _, caption in captions.values() for word in caption.words)
        if not grounded or self.reference.kind not in ("data set", "grounding file"):
            self.notes.append("no boxes on both sides: captions were scored, grounding was not")
            return self._report(texts)
        try:
            items, photos = self._caption_items(captions)
        except DeixisError as error:
            if self.reference.kind != "data set" or "have no boxes" not in str(error):
                raise
            self.notes.append(f"grounding was not scored: {error}")
            return self._report(texts)
        section = grounding_section(items, photos=photos, frequency=self._frequency(), **self.drawing)
        return self._report(texts, section, items=items, clips=not photos)

    def _caption_items(
        self, captions: dict[str, tuple[tuple[Key, ...], GroundedCaption]]
    ) -> tuple[tuple[GroundedItem, ...], bool]:
        if self.reference.kind == "grounding file":
            lemma = self._lemmas(self.reference.json(), self.file)
            known = read_reference(self.reference.json(), lemma, self.reference.ids)
            names = sorted(known.vocabulary) or sorted(
                {label for sentences in known.sentences.values() for s in sentences for label in s.first}
            )
            classes = ObjectClasses(names, lemma)
            if self.options.classes is not None:
                classes = ObjectClasses.from_list(self.options.classes, lemma)
            photos = known.kind == "photos"
            sentences = {"/".join(key): value for key, value in known.sentences.items()}
            sizes: dict[str, tuple[int, int] | None] = {}
        else:
            words = self._dataset_words()
            classes, sentences = words.classes, dict(words.sentences)
            examples, _ = self.reference.examples
            sizes = {example.id: example.size for example in examples}
            photos = not any(caption.segment is not None for _, caption in captions.values())
        names_of = {known: given for given, known in match_ids(captions, sentences).items()}
        items = []
        for name, references in sentences.items():
            predicted = None
            if name in names_of:
                predicted = words_of_caption(captions[names_of[name]][1], classes, sizes.get(name))
            items.append(GroundedItem(name, references, predicted, group=_group(name)))
        return tuple(items), photos

    def _captions(self, captions: dict[str, tuple[tuple[Key, ...], str]]) -> Section:
        """Score texts by id against the references' texts."""
        references = reference_texts(self.reference, self.notes)
        matched = match_ids(captions, references)
        for name, (place, _) in captions.items():
            if name not in matched:
                raise self.file.error(place, f"has an unknown id: the reference has no captions for image {show(name)}")
        missing = [name for name in references if name not in set(matched.values())]
        if missing and not self.options.partial:
            raise BadFileError(
                f"{self.file.path}: image {show(missing[0])} is missing: {len(missing)} of {len(references)} images of "
                "the reference have no caption; --partial scores the others alone"
            )
        if missing:
            self.notes.append(f"partial: {len(missing)} of {len(references)} images have no caption and were left out")
        candidates = {matched[name]: text for name, (_, text) in captions.items()}
        if len(candidates) != len(captions):
            raise BadFileError(f"{self.file.path} has several captions for one image: ids that differ only by folder")
        result = score_captions(candidates, {name: references[name] for name in candidates}, self.options.metrics)
        return caption_section(result, **self.drawing)

    def _dense_captions(self) -> Scored:
        from deixis.metrics.captions.densecap import score_dense_captions
        from deixis.metrics.files.densecap import read_dense_references, read_dense_submission

        predictions = read_dense_submission(self.file.path)
        result = score_dense_captions(predictions, [read_dense_references(self.reference.path)], self.options.metrics)
        return self._report(dense_section(result, **self.drawing))

    # Phrases

    def _phrases(self) -> Scored:
        references, notes = reference_phrases(self.reference)
        if self.format == "phrases":
            grounded = read_phrases(self.file)
            self.model = ", ".join(dict.fromkeys(result.model for _, result in grounded if result.model))
            paired = pair_phrases(references, grounded, self.file, partial=self.options.partial)
        else:
            paired = pair_phrases(references, read_plain_phrases(self.file), self.file, partial=self.options.partial)
        self.notes += [*notes, *paired.notes]
        dropped = sum(not case.boxes for case in paired.cases)
        if dropped:
            self.notes.append(f"{dropped} phrases without a reference box were dropped, as both protocols do")
        proposals = self._proposals({case.image for case in paired.cases if case.boxes})
        chosen = [self.options.protocol] if self.options.protocol is not None else list(PROTOCOLS)
        sections = [phrase_section(paired.cases, PROTOCOLS[name], proposals, **self.drawing) for name in chosen]
        return self._report(*sections)

    def _proposals(self, images: set[str]) -> dict[str, tuple[Box, ...]] | None:
        """Return the regions of the photos from a file, or from a region store, which also says where they are from."""
        path = self.options.proposals
        if path is None:
            return None
        if not path.is_dir():
            return read_proposals(read_json_file(path))
        from deixis.regions.store.reader import RegionStore

        store = RegionStore.open(path)
        self.regions = self.regions or store.fingerprint
        found: dict[str, tuple[Box, ...]] = {}
        for image in sorted(images):
            if image in store:
                boxes = store.get(image, ()).boxes.double().tolist()
                found[image] = tuple((x1, y1, x2, y2) for x1, y1, x2, y2 in boxes)
        return found


def _group(name: str) -> str:
    """Return what an item is drawn with: the clip its segment belongs to."""
    return name.rpartition("_segment_")[0] or name.partition("/")[0]
