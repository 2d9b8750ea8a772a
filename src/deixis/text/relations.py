"""Relations between noun phrases, read off the dependency parse: woman - holding - dog, cup - on - table.

ReIR (paper 4, sections 3.2.3 and 3.3) joins two phrases in its graph when such a relation holds between them, and
classifies its predicate, keeping those seen more than 100 times in the corpus as classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from deixis.atomic import write_json
from deixis.errors import BadFileError
from deixis.reading.plain import read_json
from deixis.text.parsed import Parsed, is_place_before_of
from deixis.text.rules.lemmas import gerund
from deixis.types import Phrase, Relation, Sentence, Token

_SUBJECT, _PASSIVE = ("nsubj", "csubj"), ("nsubjpass", "csubjpass")
_RELATIVE = frozenset(["WP", "WDT"])  # who, which, that
_INHERITS = frozenset(
    ["advcl", "xcomp", "conj", "pcomp"]
)  # a verb so attached has its governor's subject, if none of its own
_MAX_STEPS = 8  # guards against chains no caption has


def find_relations(parsed: Parsed, tokens: Sequence[Token], phrases: Sequence[Phrase]) -> tuple[Relation, ...]:
    """Return the relations between the phrases of a sentence, in the order of the text and each once."""
    finder = _Finder(parsed, [token.text.lower() for token in tokens], phrases)
    return tuple(dict.fromkeys(finder.all()))


class _Finder:
    def __init__(self, parsed: Parsed, words: list[str], phrases: Sequence[Phrase]) -> None:
        self.parsed, self.words = parsed, words
        self.tags, self.labels, self.heads = parsed.tags, parsed.labels, parsed.heads
        self.owner: dict[int, int] = {}
        # Phrases may lie in one another (annotations do): a token belongs to the shortest that holds it.
        for index in sorted(range(len(phrases)), key=lambda i: phrases[i].first - phrases[i].last):
            self.owner |= dict.fromkeys(range(phrases[index].first, phrases[index].last), index)
        self.kids: list[list[int]] = [[] for _ in words]
        for child, head in enumerate(self.heads):
            if child != head:
                self.kids[head].append(child)

    def all(self) -> Iterator[Relation]:
        for at, tag in enumerate(self.tags):
            if tag.startswith("VB"):
                yield from self.of_verb(at)
            elif at in self.owner:
                yield from self.of_noun(at)

    def of_noun(self, noun: int) -> Iterator[Relation]:
        for preposition, thing in self.prepositional(noun):
            yield from self.join([noun], preposition, [thing])
        for owner in self.children(noun, "poss"):
            yield from self.join([noun], "of", [owner])

    def of_verb(self, verb: int) -> Iterator[Relation]:
        active, patients = self.subjects(verb)
        if self.parsed.lemmas[verb] == "be":
            # "there is a cup on the table", "a cup is on the table": the preposition says it all
            active = active or list(self.children(verb, "attr"))
            name, done = "", ""
        else:
            particle = "".join(f" {self.words[at]}" for at in self.children(verb, "prt"))
            active_form = self.words[verb] if self.tags[verb] == "VBG" else gerund(self.parsed.lemmas[verb])
            name, done = active_form + particle, self.words[verb] + particle
        things = [at for at in self.children(verb, "dobj", "dative") if self.tags[at] not in _RELATIVE]
        things += self.object_clauses(verb)
        if name:
            yield from self.join(active, name, things)
        for by in self.children(verb, "agent"):
            yield from self.join(list(self.children(by, "pobj")), name, patients)
        for preposition, thing in self.prepositional(verb):
            yield from self.join(active, f"{name} {preposition}".strip(), [thing])
            yield from self.join(patients, f"{done} {preposition}".strip(), [thing])

    def subjects(self, verb: int) -> tuple[list[int], list[int]]:
        """Return who does what the verb says, and to whom it is done."""
        at = verb
        for _ in range(_MAX_STEPS):
            active = [self.antecedent(child) for child in self.children(at, *_SUBJECT)]
            passive = [self.antecedent(child) for child in self.children(at, *_PASSIVE)]
            if not active and not passive and self.labels[at] in ("acl", "relcl"):
                (passive if self.tags[at] == "VBN" else active).append(self.heads[at])
            if active or passive:
                # A verb that only shares the subject of a passive one is itself active: "is tied up and barks".
                if at != verb and passive:
                    return ([], passive) if self.tags[verb] == "VBN" else (passive, [])
                if at != verb and active and self.tags[verb] == "VBN" and self.labels[verb] != "conj":
                    return [], active
                return active, passive
            if self.labels[at] not in _INHERITS or self.heads[at] == at:
                break
            at = self.heads[at]
            if not self.tags[at].startswith("VB"):  # "a man, then riding": the clause hangs on the noun itself
                return ([at], []) if at in self.owner else ([], [])
        return [], []

    def antecedent(self, subject: int) -> int:
        """Return what a relative pronoun stands for: the man who ..."""
        clause = self.heads[subject]
        for _ in range(_MAX_STEPS):
            if self.tags[subject] not in _RELATIVE or self.labels[clause] == "relcl" or self.heads[clause] == clause:
                break
            clause = self.heads[clause]
        return self.heads[clause] if self.tags[subject] in _RELATIVE and self.labels[clause] == "relcl" else subject

    def object_clauses(self, verb: int) -> list[int]:
        """Return the noun that a relative clause takes as its object: the dog that a woman holds."""
        if self.labels[verb] != "relcl" or not list(self.children(verb, *_SUBJECT)):
            return []
        own = [at for at in self.children(verb, "dobj") if self.tags[at] in _RELATIVE]
        return [self.heads[verb]] if own else []

    def prepositional(self, at: int) -> Iterator[tuple[str, int]]:
        """Yield each preposition below a token with its noun, those of several words in one piece."""
        for child in self.children(at, "prep", "advmod", "acomp"):
            if self.labels[child] == "prep" or any(True for _ in self.children(child, "prep")):
                yield from self.preposition(child, self.words[child], 0)

    def preposition(self, at: int, name: str, depth: int) -> Iterator[tuple[str, int]]:
        if depth > _MAX_STEPS:
            return
        for noun in self.children(at, "pobj"):
            of = next((kid for kid in self.children(noun, "prep") if self.words[kid] == "of"), None)
            if of is not None and noun not in self.owner and is_place_before_of(self.words, noun):
                yield from self.preposition(of, f"{name} {self.words[noun]} of", depth + 1)
            else:
                yield name, noun
        for further in self.children(at, "prep"):  # out of, next to, away from
            yield from self.preposition(further, f"{name} {self.words[further]}", depth + 1)

    def join(self, subjects: Sequence[int], predicate: str, things: Sequence[int]) -> Iterator[Relation]:
        for subject in self.with_conjuncts(subjects):
            for thing in self.with_conjuncts(things):
                a, b = self.owner.get(subject), self.owner.get(thing)
                if a is not None and b is not None and a != b:
                    yield Relation(a, predicate, b)

    def with_conjuncts(self, nouns: Iterable[int]) -> Iterator[int]:
        waiting = list(nouns)
        seen: set[int] = set()
        while waiting:
            at = waiting.pop(0)
            if at not in seen:
                seen.add(at)
                yield at
                waiting += [kid for kid in self.children(at, "conj") if not self.tags[kid].startswith("VB")]

    def children(self, at: int, *labels: str) -> Iterator[int]:
        return (child for child in self.kids[at] if self.labels[child] in labels)


class RelationVocabulary:
    """Predicates by falling count; class 0 is "no relation" (paper 4, section 3.3)."""

    def __init__(self, counts: Iterable[tuple[str, int]], more_than: int = 100) -> None:
        self.more_than = more_than
        self.counts = tuple(counts)
        self.predicates = ("", *(predicate for predicate, _ in self.counts))
        self._ids = {predicate: at for at, predicate in enumerate(self.predicates)}
        if len(self._ids) != len(self.predicates):
            raise BadFileError("the relation vocabulary holds an empty predicate or one of them twice")

    @classmethod
    def build(cls, sentences: Iterable[Sentence], more_than: int = 100, at_most: int | None = None) -> Self:
        """Collect the predicates seen more than so many times, or the most frequent of these (88 in the paper)."""
        counts = Counter(relation.predicate for sentence in sentences for relation in sentence.relations)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls([item for item in ranked if item[1] > more_than][:at_most], more_than)

    def __len__(self) -> int:
        return len(self.predicates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RelationVocabulary) and (self.counts, self.more_than) == (
            other.counts,
            other.more_than,
        )

    def __hash__(self) -> int:
        return hash((self.counts, self.more_than))

    def id(self, predicate: str) -> int:
        """Return a predicate's class, or 0 where it is none."""
        return self._ids.get(predicate, 0)

    def save(self, path: str | Path) -> None:
        """Write ``relations.json``."""
        data = {"deixis_relations": 1, "more_than": self.more_than, "predicates": dict(self.counts)}
        write_json(path, data)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read ``relations.json``."""
        if not Path(path).exists():
            raise BadFileError(f"there is no relation vocabulary at {path}: `deixis text prepare` makes one")
        data = read_json(Path(path))
        if not isinstance(data, dict) or data.get("deixis_relations") != 1:
            raise BadFileError(f'{path} should have "deixis_relations": 1')
        counts, more_than = data.get("predicates"), data.get("more_than")
        if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
            raise BadFileError(f'{path}: "predicates" should give each predicate its count')
        if type(more_than) is not int or more_than < 0:
            raise BadFileError(f'{path}: "more_than" should be a number of at least 0, got {more_than!r}')
        return cls(counts.items(), more_than)
