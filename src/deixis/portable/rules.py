"""``rules.json``: the word lists and the pattern of tokens that reading a sentence needs outside Python."""

from __future__ import annotations

from typing import Any

from deixis.answering.apart import NO_THING, NUMBERS, PAIRS, PLURAL_WORDS
from deixis.portable.patterns import in_javascript
from deixis.text.parsed import BEFORE_PLACE, GROUP_NOUNS, PLACES
from deixis.text.rules.chunker import BE, CLOSED
from deixis.text.rules.english import IRREGULAR_NOUNS, IRREGULAR_VERBS, UNCHANGED_NOUNS
from deixis.text.tokens import TOKEN

FILE = "rules.json"


def rules() -> dict[str, Any]:
    """Return every list by the name under which the page knows it."""
    return {
        "token": in_javascript(TOKEN),
        "closed": CLOSED,
        "be": sorted(BE),
        "irregular_nouns": IRREGULAR_NOUNS,
        "unchanged_nouns": sorted(UNCHANGED_NOUNS),
        "irregular_verbs": IRREGULAR_VERBS,
        "group_nouns": sorted(GROUP_NOUNS),
        "places": sorted(PLACES),
        "before_place": sorted(BEFORE_PLACE),
        "numbers": NUMBERS,
        "pairs": sorted(PAIRS),
        "no_thing": sorted(NO_THING),
        "plural_words": sorted(PLURAL_WORDS),
    }
