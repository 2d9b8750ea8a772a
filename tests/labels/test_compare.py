from __future__ import annotations

from deixis.labels.compare import compare, distinct
from deixis.labels.read import LabelledThing, PhotoLabels
from deixis.types import Box

WHOLE = (0.0, 0.0, 100.0, 100.0)


def photo(*things: tuple[str, Box]) -> dict[str, PhotoLabels]:
    return {"a.jpg": PhotoLabels("a.jpg", (300, 300), tuple(LabelledThing(label, box) for label, box in things))}


def test_every_kind_of_change_by_hand() -> None:
    draft = photo(
        ("dog", WHOLE),  # kept
        ("cat", (200.0, 0.0, 300.0, 100.0)),  # moved: half of it shared, 5000 of 15000
        ("hat", (0.0, 200.0, 50.0, 250.0)),  # relabelled to cap
        ("ghost", (200.0, 200.0, 220.0, 220.0)),  # deleted
    )
    after = photo(
        ("cap", (0.0, 200.0, 50.0, 250.0)),
        ("dog", (0.0, 0.0, 100.0, 99.0)),
        ("cat", (150.0, 0.0, 250.0, 100.0)),
        ("dog", (100.0, 150.0, 140.0, 190.0)),  # added
    )
    found = compare(draft, after)
    assert (found.kept, found.moved, found.relabelled, found.deleted, found.added) == (1, 1, 1, 1, 1)
    assert found.mean_overlap == 5000 / 15000
    assert found.renamed == {("hat", "cap"): 1}
    assert found.new_labels == {"cap": 1}
    assert (found.photos, found.changed_photos) == (1, 1)


def test_nothing_changed_and_everything_new() -> None:
    same = photo(("dog", WHOLE))
    left = compare(same, same)
    assert (left.kept, left.changed_photos, left.mean_overlap) == (1, 0, None)
    new = compare({}, same)
    assert (new.added, new.kept, new.new_labels) == (1, 0, {"dog": 1})
    gone = compare(same, photo())
    assert (gone.deleted, gone.changed_photos) == (1, 1)


def test_two_boxes_of_a_class_are_matched_with_the_nearest() -> None:
    left, right = (0.0, 0.0, 10.0, 10.0), (8.0, 0.0, 18.0, 10.0)
    found = compare(photo(("dog", left), ("dog", right)), photo(("dog", right)))
    assert (found.kept, found.deleted, found.moved) == (1, 1, 0)


def test_what_five_captions_name_counts_once() -> None:
    things = [LabelledThing("dog", WHOLE), LabelledThing("dog", (0.0, 0.0, 100.0, 99.0)), LabelledThing("cat", WHOLE)]
    assert distinct(things) == [things[0], things[2]]
