"""How untrue are the "untrue" nouns? A judge of negatives that knows wider names and what other captions say.

InfoGround (Gupta et al., ECCV 2020, section 2.4) re-ranks candidates so that synonyms and hypernyms, which stay true of
the image, fall out. Whether they do depends on the language model; a row that trains on negatives is only as good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deixis.errors import DeixisError
from deixis.text.negative_table import CorpusCaption, chosen_nouns, said_lemmas
from deixis.text.negatives import LanguageModel, NegativeMaker, NegativeOptions, corpus_nouns
from deixis.text.rules.hypernyms import wider_names
from deixis.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with the nouns kept for a corpus. Shares run from 0 to 1."""

    captions: int
    kept: float
    """Negatives a caption, on average."""
    judged: int
    """Captions whose noun has wider names that the corpus uses, such as a man, who is a person."""
    wider_kept: float
    """Of these, the share whose negatives still contain a wider name: a negative that is true."""
    wider_proposed: float
    """The same before the last candidates were rejected."""
    said: float
    """Share of the negatives that some caption of the photo says."""
    same_lemma: float
    """Share of the negatives that are another form of the noun itself."""
    examples: tuple[tuple[str, str, tuple[str, ...]], ...]
    """A few captions with their noun and the wider names among its negatives."""


def judge(
    captions: Sequence[CorpusCaption],
    vocabulary: Vocabulary,
    model: LanguageModel,
    options: NegativeOptions,
    *,
    seed: int = 0,
    batch: int = 256,
    shown: int = 5,
    on_progress: Callable[[int, int], None] | None = None,
) -> Judgement:
    """Find the negatives of one noun of each caption, as training does, and judge them."""
    chosen = chosen_nouns(captions, vocabulary, seed)
    if not chosen:
        raise DeixisError("none of these captions has a known noun: there is nothing to judge")
    maker = NegativeMaker(model, corpus_nouns(vocabulary), options, vocabulary.lemma)
    said = said_lemmas(captions, vocabulary)
    used = {vocabulary.lemma(word) for word in corpus_nouns(vocabulary)}
    kept = judged = wider_kept = wider_proposed = told = same = 0
    examples: list[tuple[str, str, tuple[str, ...]]] = []
    for first in range(0, len(chosen), batch):
        part = chosen[first : first + batch]
        texts = [[vocabulary.words[number] for number in caption.words] for caption, _ in part]
        spared = None if options.allow_said else [said[caption.image] for caption, _ in part]
        made = maker(texts, [place for _, place in part], spared)
        for (caption, place), words, found in zip(part, texts, made, strict=True):
            own = vocabulary.lemma(words[place])
            lemmas = [vocabulary.lemma(candidate.word) for candidate in found.kept]
            rejected = {vocabulary.lemma(candidate.word) for candidate in found.rejected}
            kept += len(lemmas)
            told += sum(lemma in said[caption.image] for lemma in lemmas)
            same += lemmas.count(own)
            wider = wider_names(own) & used
            if wider:
                judged += 1
                wider_kept += bool(wider & {*lemmas})
                wider_proposed += bool(wider & ({*lemmas} | rejected))
                if wider & {*lemmas} and len(examples) < shown:
                    examples.append((" ".join(words), words[place], tuple(sorted(wider & {*lemmas}))))
        if on_progress is not None:
            on_progress(min(first + batch, len(chosen)), len(chosen))
    return Judgement(
        captions=len(chosen),
        kept=kept / len(chosen),
        judged=judged,
        wider_kept=wider_kept / max(judged, 1),
        wider_proposed=wider_proposed / max(judged, 1),
        said=told / max(kept, 1),
        same_lemma=same / max(kept, 1),
        examples=tuple(examples),
    )
