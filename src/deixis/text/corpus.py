"""What a corpus of captions gives once it is parsed: vocabulary, relation vocabulary, object classes, lemmas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from deixis.atomic import write_json
from deixis.errors import DeixisError
from deixis.text.classes import HeadRule, ObjectClasses
from deixis.text.relations import RelationVocabulary
from deixis.text.vocabulary import Vocabulary
from deixis.types import Sentence

VOCABULARY, RELATIONS, CLASSES, LEMMAS = "vocabulary.json", "relations.json", "classes.txt", "lemmas.json"


@dataclass(frozen=True)
class Corpus:
    """The tables that training, grounding and scoring take from one corpus."""

    vocabulary: Vocabulary
    relations: RelationVocabulary
    classes: ObjectClasses
    lemmas: dict[str, str]
    """Every word of the corpus with its lemma, rare ones too, so that metrics need no tagger."""
    sentences: int
    phrases: int

    @classmethod
    def build(
        cls,
        sentences: Sequence[Sentence],
        *,
        threshold: int = 5,
        relations_more_than: int = 100,
        relations_at_most: int | None = None,
        class_threshold: int = 50,
        classes: ObjectClasses | None = None,
        head: HeadRule = "syntactic",
        pronouns: bool = False,
    ) -> Self:
        """Build the tables from parsed sentences; given ``classes`` are taken as they are."""
        if not sentences:
            raise DeixisError("there is no caption to prepare")
        everything = Vocabulary.build(sentences, threshold=1)
        lemmas = everything.lemma_table
        return cls(
            vocabulary=Vocabulary((e for e in everything.entries if e.count >= threshold), threshold),
            relations=RelationVocabulary.build(sentences, relations_more_than, relations_at_most),
            classes=classes
            or ObjectClasses.from_corpus(sentences, class_threshold, head=head, pronouns=pronouns, lemmatise=lemmas),
            lemmas=lemmas,
            sentences=len(sentences),
            phrases=sum(len(sentence.phrases) for sentence in sentences),
        )

    def save(self, folder: str | Path) -> None:
        """Write the four files."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.vocabulary.save(folder / VOCABULARY)
        self.relations.save(folder / RELATIONS)
        self.classes.save(folder / CLASSES)
        write_json(folder / LEMMAS, self.lemmas, indent=0)

    def summary(self) -> dict[str, Any]:
        """Return the counts, for people and programs."""
        return {
            "captions": self.sentences,
            "phrases": self.phrases,
            "different_words": len(self.lemmas),
            "vocabulary": len(self.vocabulary.entries),
            "groundable_words": sum(self.vocabulary.is_groundable),
            "relations": len(self.relations) - 1,
            "classes": len(self.classes),
        }
