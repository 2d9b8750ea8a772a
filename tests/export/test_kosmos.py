"""Kosmos-2's tags as transformers reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from deixis.errors import DeixisError
from deixis.export.kosmos import BINS, patches, records
from deixis.export.things import things_of
from deixis.types import GroundedCaption, GroundedPhrase, GroundedPhrases
from tests.export.answers import CLIP, DOG, PHRASES, caption, captions

kosmos2 = pytest.importorskip("transformers.models.kosmos2.processing_kosmos2", reason="transformers: extra hf")


def test_a_hand_worked_case() -> None:
    (record,) = records([DOG])
    # 200x100 pixels: x 20 is 3.2 of 32 columns, x 120 ends in column 19; y 10 is row 3, y 90 ends in row 28.
    assert record["grounded"].startswith(
        f"<grounding> two<phrase> dogs</phrase><object><patch_index_{3 * 32 + 3:04d}><patch_index_{28 * 32 + 19:04d}>"
        "</object> chase a<phrase> ball</phrase><object>"
    )
    assert record["entities"][0] == ["dogs", [4, 8], [[0.1, 0.1, 0.6, 0.9]]]


def test_transformers_reads_text_spans_and_boxes() -> None:
    (record,) = records([DOG])
    text, entities = kosmos2.clean_text_and_extract_entities_with_bboxes(record["grounded"])
    assert text == DOG.text
    assert [(name, span) for name, span, _ in entities] == [("dogs", (4, 8)), ("ball", (17, 21))]
    for (_, _, found), thing in zip(entities, things_of(DOG), strict=True):
        wanted = [thing.box[0] / 200, thing.box[1] / 100, thing.box[2] / 200, thing.box[3] / 100]
        assert list(found[0]) == pytest.approx(wanted, abs=1 / BINS)


def test_several_boxes_and_phrases_alone() -> None:
    several = GroundedPhrase("men", ((0, 0, 50, 50), (50, 50, 100, 100)), (0, 0), 0.9)
    (record,) = records([GroundedPhrases("x", (100, 100), (several, GroundedPhrase("a cup", ((0, 0, 9, 9),), (0,))))])
    text, entities = kosmos2.clean_text_and_extract_entities_with_bboxes(record["grounded"])
    assert text == "men, a cup"
    assert [len(found) for _, _, found in entities] == [2, 1]
    assert records([PHRASES])[0]["grounded"].count("<phrase>") == 1, "what was not found has no tag"
    with pytest.raises(DeixisError, match="clip"):
        records([CLIP])


def test_what_reads_as_a_tag_is_no_tag() -> None:
    (record,) = records([caption("x", "a <phrase>dog</phrase> here", {"<phrase>dog</phrase>": (0, 0, 50, 50)})])
    text, entities = kosmos2.clean_text_and_extract_entities_with_bboxes(record["grounded"])
    assert text == "a ‹phrase›dog‹/phrase› here"
    assert len(entities) == 1


@settings(max_examples=30)
@given(captions())
def test_whatever_is_written_is_read_again(answer: GroundedCaption) -> None:
    (record,) = records([answer])
    found = kosmos2.extract_entities_with_patch_indices(record["grounded"])
    assert len(found) == len(record["entities"])
    for (name, _, cells), (text, _, shares) in zip(found, record["entities"], strict=True):
        assert name.strip() == text.strip()
        assert len(cells) == len(shares)
        for first, last in cells:
            assert 0 <= first <= last < BINS * BINS


@settings(max_examples=30)
@given(captions())
def test_cells_are_those_of_transformers(answer: GroundedCaption) -> None:
    width, height = answer.size
    for thing in things_of(answer):
        x1, y1, x2, y2 = thing.box
        share = (x1 / width, y1 / height, x2 / width, y2 / height)
        # It refuses lines, to which we give one cell, and loses itself where a box is thinner than rounding.
        if share[0] + 1e-6 < share[2] and share[1] + 1e-6 < share[3]:
            assert patches(thing.box, answer.size) == kosmos2.coordinate_to_patch_index(share, BINS)
