"""Wider names of things in captions: whatever is called a boy may be called a child, a person or one of the people.

Written by hand for the nouns that captions use most; what is not listed here is not judged. It judges negatives
(:mod:`deixis.text.judge_negatives`), says which of the detector's classes a word names
(:mod:`deixis.grounding.lite.labels`), and trains nothing.
"""

from __future__ import annotations

_WIDER: dict[str, str] = {
    # narrower names: one wider name
    "man woman lady guy gentleman adult child kid teenager player rider worker skier surfer skateboarder snowboarder "
    "climber cyclist biker runner swimmer dancer musician performer artist officer soldier pedestrian spectator fan "
    "athlete baby infant toddler friend couple": "person",
    "boy girl toddler baby infant": "child",
    "group crowd crew family audience team": "person",
    "person": "human",
    "boy gentleman guy": "male",
    "girl lady": "female",
    "puppy poodle terrier retriever greyhound collie dalmatian bulldog labrador": "dog",
    "dog cat bird horse cow sheep elephant giraffe zebra bear duck goat monkey fish pony kitten puppy": "animal",
    "kitten": "cat",
    "pony": "horse",
    "duck parrot pigeon seagull goose": "bird",
    "car truck bus van taxi motorcycle bicycle scooter train boat jeep tractor airplane": "vehicle",
    "bike": "bicycle",
    "motorbike": "motorcycle",
    "kayak canoe raft ship sailboat": "boat",
    "plane jet": "airplane",
    "shirt t-shirt jacket coat sweater dress skirt jean pant short hat cap uniform suit vest hoodie": "clothing",
    "t-shirt": "shirt",
    "jean": "pant",
    "cap helmet": "hat",
    "uniform suit dress": "outfit",
    "chair couch sofa table bench bed desk": "furniture",
    "armchair stool": "chair",
    "house church store shop skyscraper tower": "building",
    "lake river ocean sea pool wave pond stream": "water",
    "meadow lawn pasture": "field",
    "street highway path": "road",
    "pizza sandwich cake salad fruit banana apple orange hotdog donut": "food",
    "football soccerball baseball basketball softball": "ball",
    "guitar violin drum piano trumpet": "instrument",
    "frisbee ball doll": "toy",
}

SYNONYMS: dict[str, tuple[str, ...]] = {"person": ("people", "someone"), "child": ("kid",), "water": ("body",)}
"""Other words for a wider name, by its lemma."""


def _table() -> dict[str, frozenset[str]]:
    direct: dict[str, set[str]] = {}
    for narrow, wide in _WIDER.items():
        for word in narrow.split():
            if word != wide:
                direct.setdefault(word, set()).add(wide)

    def above(word: str) -> set[str]:
        wider = direct.get(word, set())
        return wider.union(*(above(other) for other in wider)) if wider else set()

    return {word: frozenset(above(word)) for word in direct}


WIDER = _table()
"""The lemmas of all wider names of a noun's lemma, also those of its wider names."""


def wider_names(lemma: str) -> frozenset[str]:
    """Return the lemmas that are true of whatever the noun is true of; empty for a noun that is not listed.

    >>> sorted(wider_names("puppy"))
    ['animal', 'dog']
    """
    wider = WIDER.get(lemma, frozenset())
    return wider | {synonym for name in wider for synonym in SYNONYMS.get(name, ())}
