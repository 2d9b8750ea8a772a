"""Five groups of words by how their boxes lie: things, what is worn, parts of bodies, places, and everything else.

Captions say what a picture shows, not how far it extends; that a shirt is part of the box around its wearer and that a
street fills the view is knowledge about English words. The lists were written by hand, after a look at which head words
failed on Flickr8k's validation photos; no box enters training.
"""

from __future__ import annotations

from enum import IntEnum

from deixis.text.caption_words import is_thing_word


class WordGroup(IntEnum):
    """How the box of a word lies."""

    THING = 0
    WORN = 1
    BODY = 2
    PLACE = 3
    OTHER = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORN = _words(
    """
    apron backpack bandana bandanna beanie belt bikini blouse boot bow bra bracelet cap cape cloak clothes clothing coat
    collar costume dress earring garb gear glasses glove goggles gown harness hat headband headphone headphones
    headscarf heel helmet hood hoodie jacket jean jeans jersey jumpsuit kilt kimono leash leotard mask muzzle necklace
    outfit overalls pajama pajamas pant pants robe sandal sari scarf shirt shoe short shorts skirt sleeve sneaker sock
    suit sunglasses suspenders sweater sweatshirt swimsuit swimwear t-shirt tee tie top trouser trousers trunk trunks
    turban tutu tuxedo underwear uniform veil vest visor watch wetsuit wig
    """
)

BODY = _words(
    """
    ankle arm back beard belly body cheek chest chin ear elbow eye face finger fist foot forehead fur hair hand head hip
    knee lap leg lip mohawk moustache mouth mustache neck nose paw pigtail ponytail shoulder snout stomach tail teeth
    thigh thumb toe tongue tooth waist wrist
    """
)

PLACE = _words(
    """
    air airport alley area arena asphalt background backyard bank bar bathroom bathtub beach bedroom bleachers bridge
    brush building bush cafe canyon carpet cave church city classroom cliff cloud coast concrete countertop countryside
    court creek crosswalk desert dirt dock downtown driveway farm field floor foliage forest fountain garden gate grass
    gravel ground gym gymnasium hall hallway hill hillside home house ice intersection island jungle kitchen lake
    landscape lawn leaf leaves library lobby lot mall market meadow mountain mountainside mud museum neighborhood ocean
    office park parking pasture path pathway patio pavement pier plain playground plaza pond pool porch puddle railroad
    rain ramp range restaurant rink river road roadway rocks room runway sand scenery sea seashore shop shore shoreline
    sidewalk sky slope snow square stadium stage stair staircase stairs station steps store stream street studio sunset
    surf swamp terrain tide town track tracks traffic trail tunnel valley wall water waterfall wave wilderness woods
    yard
    """
)


def word_group(word: str, lemma: str) -> WordGroup:
    """Return the group of a word in lower case.

    >>> word_group("shirts", "shirt").name
    'WORN'
    """
    for group, words in ((WordGroup.WORN, WORN), (WordGroup.BODY, BODY), (WordGroup.PLACE, PLACE)):
        if lemma in words or word in words:
            return group
    return WordGroup.THING if is_thing_word(lemma) else WordGroup.OTHER
