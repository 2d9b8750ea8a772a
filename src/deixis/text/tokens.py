"""Tokens with exact character spans, cut where the Penn Treebank tokeniser of the caption metrics cuts.

Caption metrics are defined on the output of Stanford's Java tokeniser (lower case, a short list of punctuation
dropped). The rules below were found by putting questions to that program, and agree with it on captions
(``docs/text.md`` has the figures), so scoring needs no Java and every word still knows where it stands in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from deixis.types import Token

# A letter, with the accents that some texts keep as separate characters. Superscripts, fractions and circled numbers
# count as "word characters" for Python but stand alone in PTB.
_L = r"[^\W\d_\u00aa\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u2070-\u209c\u2150-\u218b\u2460-\u24ff\u3220-\u32ff]"
_L = rf"(?:{_L}[\u0300-\u036f]*)"
_A = r"['’]"
_ALNUM = rf"(?:{_L}|\d)"
_WORD = rf"{_L}{_ALNUM}*(?:[.!?]{_L}{_ALNUM}*)*"  # a full stop inside a word does not end it: "sand.one"
_ACRONYM = rf"{_L}(?:\.{_L})+\."

# Abbreviations that keep their full stop.
_ABBREVIATIONS = (
    "adj|adm|adv|al|ala|alex|apr|ariz|assn|assoc|asst|atty|aug|ave|bhd|bldg|blvd|brig|bros|calif|capt|cf|cie|cmdr|"
    "co|col|colo|comdr|conn|corp|cos|cpl|ct|dak|dec|dept|det|dr|drs|ens|esq|est|etc|ext|feb|fla|fri|ft|ga|gen|gov|"
    "hon|inc|ind|insp|invt|jan|jos|jr|jul|jun|kan|kans|ky|lieut|lt|ltd|maj|mar|md|messrs|mfg|mich|minn|mlle|mme|"
    "mo|mon|mont|mr|mrs|ms|msgr|mt|mtg|natl|neb|nev|nov|oct|okla|penn|pfc|ph|plc|pres|prof|profs|pte|pty|pvt|rd|"
    "rep|reps|rev|rt|sen|sens|sep|sept|seq|sfc|sgt|spc|sq|sr|st|ste|supt|sys|tel|tenn|thu|thurs|treas|tue|tues|"
    "univ|va|vs|vt|wed|wis|wisc|wm|wyo"
)
_CAPITAL_ABBREVIATIONS = "ark|az|del|ill|la|mass|miss|ore|pa|tex|wash"  # words too, when in lower case
_NUMBERED_ABBREVIATIONS = "art|ca|fig|figs|no|nos|op|pp|prop"  # abbreviations only before a number
# After a single letter's full stop, these in capitals open a new sentence: "lying on I. The cat".
_OPENERS = (
    "a|about|according|after|an|as|at|but|earlier|he|her|here|however|if|in|it|last|many|more|now|once|one|other|"
    "our|she|since|so|some|such|that|the|their|then|there|these|they|this|we|what|when|while|yet|you"
)

# The order matters: Python takes the first alternative that fits.
TOKEN = re.compile(
    "|".join(
        [
            r"https?://[^\s\"<>|(){}]+[^\s\"<>|.!?(){},;]",
            r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*\w",
            r"</?[a-z][^\s<>]*>|&(?:amp|lt|gt|quot|apos|nbsp);",
            r"\(\d{3}\)[ \u00a0]?\d{3}-\d{4}(?!\d)|\d+[ \u00a0]\d+/\d+(?!\d)|\d{4}(?=-\d\d-\d\d(?!\d))",
            rf"\b(?:can(?=not)|gon(?=na)|wan(?=na)|got(?=ta)|gim(?=me)|lem(?=me))(?={_L}{{2,3}}(?![\w'’-]))",
            rf"{_L}+?(?=n{_A}t(?!{_ALNUM}))|n{_A}t(?!{_ALNUM})",  # do n't
            rf"{_A}n{_A}|{_A}(?:s|d|m|re|ve|ll|em|til|till|cause|n)(?!{_ALNUM})|{_A}t(?=(?:is|was)(?!{_ALNUM}))",
            rf"{_A}\d\ds?(?![\w'’])",
            rf"(?:o{_A}clock|ma{_A}am|s{_A}mores|c{_A}mon|nor{_A}easter|cap{_A}n|li{_A}l|ol{_A}|dunkin{_A}|somethin{_A})"
            rf"(?!{_ALNUM})",
            rf"[dlno]{_A}{_L}{{2,}}|[dlj]{_A}(?={_L})|y{_A}(?={_L})|{_L}*[aeiouy]{_A}[aeiou]{_L}*",
            rf"(?:{_ACRONYM}|\d+(?:[.,]\d+)+|{_WORD}|{_ALNUM}+)(?:[-_/](?:{_ACRONYM}(?!{_L})|{_ALNUM}+))+",
            rf"{_ACRONYM}(?!{_ALNUM})",
            rf"(?:{_ABBREVIATIONS})\.(?!{_L})|(?-i:(?=[A-Z]))(?:{_CAPITAL_ABBREVIATIONS})\.(?!{_L})",
            rf"(?:{_NUMBERED_ABBREVIATIONS})\.(?=\s*\d)",
            rf"ph\.d\.|{_L}\.(?!{_L}|\s+(?-i:(?=[A-Z]))(?:{_OPENERS})\s)|{_WORD}\.(?=[,;])",
            r"(?-i:[A-Z]+&[A-Z]+)",
            r"(?-i:US)\$|\bc(?:\+\+|#)",
            rf"#{_L}+|@(?:{_L}|_)\w*",
            r"(?:\d+(?:[.,:]\d+)+|[-+.,:]\d+(?:[.,:]\d+)*|[-+][.,:]\d+)",
            _WORD,
            rf"{_ALNUM}+",
            r"\.{3,}|[!?]{2,}|-{2,}|\*{2,}|_{2,}|''|``|[:;=]-?[()]|:[dp](?!\w)",
            r"\S",
        ]
    ),
    re.IGNORECASE,
)

# What is a token may depend on what follows a space: "1 1/2", "No. 5", "I. The".
_REACHES_OVER_SPACE = re.compile(r"\d|\b\w\.\s+[A-Z]")

_SCORED = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_SCORED |= {
    "£": "#",
    "€": "$",
    "¢": "cents",
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "½": "1/2",
    "¼": "1/4",
    "¾": "3/4",
}
# The metrics' list has the brackets in capitals and so never removes them from lower-case text; neither do we.
_DROPPED = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])
_DROPPED |= frozenset(['"', "“", "”", "‘", "’", "«", "»", "–", "—", "…", "&quot;", "&apos;", "&nbsp;"])

_CHUNK = re.compile(r"\S+")


def tokenise(text: str) -> tuple[Token, ...]:
    """Cut a text into tokens; each token's text is exactly ``text[token.start:token.end]``, case and all."""
    if _REACHES_OVER_SPACE.search(text):
        return tuple(Token(match.group(), match.start(), match.end()) for match in TOKEN.finditer(text))
    tokens: list[Token] = []
    for chunk in _CHUNK.finditer(text):
        at = chunk.start()
        tokens += [Token(piece, at + start, at + end) for piece, start, end in _pieces(chunk.group())]
    return tuple(tokens)


def scoring_words(text: str) -> list[str]:
    """Return the words that caption metrics compare: PTB tokens in lower case without punctuation."""
    if _REACHES_OVER_SPACE.search(text):
        return [word for match in TOKEN.finditer(text) for word in _scored(match.group())]
    return [word for chunk in text.split() for word in _scored_chunk(chunk)]


# Captions repeat their words, so each stretch between spaces is cut once and remembered.
@lru_cache(maxsize=100_000)
def _pieces(chunk: str) -> tuple[tuple[str, int, int], ...]:
    return tuple((match.group(), match.start(), match.end()) for match in TOKEN.finditer(chunk))


@lru_cache(maxsize=100_000)
def _scored_chunk(chunk: str) -> tuple[str, ...]:
    return tuple(word for match in TOKEN.finditer(chunk) for word in _scored(match.group()))


def normal_word(token: str) -> str | None:
    """Return a token as vocabularies hold it, in lower case, or None for punctuation and symbols."""
    word = token.lower().replace("’", "'")
    return word if word == "&" or any(map(str.isalnum, word)) else None


def vocabulary_words(text: str) -> list[str]:
    """Return the words of a text as vocabularies hold them, one for each token that :func:`normal_word` keeps."""
    return [word for token in tokenise(text) if (word := normal_word(token.text)) is not None]


def detokenise(words: Iterable[str]) -> tuple[str, list[tuple[int, int]]]:
    """Join words into a text that reads well, with each word's span: do + n't becomes don't, dog + 's dog's."""
    text, spans = "", []
    for word in words:
        if text and not (word.startswith("'") and len(word) > 1 and word != "'n'") and word != "n't":
            text += " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return text, spans


def sentence_text(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Join words into a sentence with a capital letter and a full stop; return it with the span of each word."""
    text, spans = detokenise(words)
    if not text:
        return "", []
    first = text[0].upper()
    return (first if len(first) == 1 else text[0]) + text[1:] + ".", spans


def tokens_in(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """Return the tokens (first, last exclusive) that lie in, or reach into, the characters from start to end."""
    inside = [at for at, token in enumerate(tokens) if token.start < end and token.end > start]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _scored(token: str) -> tuple[str, ...]:
    if token in _DROPPED or token.strip(".") == "" or token in ("---", "----"):
        return ()
    if token.isalpha():
        return (token.lower(),)
    if len(token) == 1 and ord(token) > 0xFFFF:  # the Java program cannot read these and leaves them out
        return ()
    word = _SCORED.get(token, token.lower())
    if word.startswith("’") or (word.startswith("n’") and len(word) == 3):
        word = word.replace("’", "'")
    for bracket, name in (("(", "-lrb-"), (")", "-rrb-")):
        if bracket in word:  # telephone numbers and faces
            word = word.replace(bracket, name)
    return (word.replace(" ", "\u00a0"),)
