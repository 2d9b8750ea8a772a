"""The other formats, each read by the library it is for or by its documented layout, and the table of all of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import DeixisError
from deixis.export import activitynet, fiftyone, supervision, table
from deixis.export.formats import FORMATS, ExportOptions, write_export
from deixis.export.things import Answer, read_answers, things_of
from deixis.metrics.files.grounding import read_submission
from deixis.metrics.files.json_lines import read_json_file
from deixis.metrics.scoring import ScoreOptions, score_files
from deixis.text.classes import ObjectClasses
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.types import GroundedCaption, GroundedPhrases
from tests.export.answers import CLIP, DOG, PHRASES, caption, captions

SCHEMA = Path(__file__).parents[2] / "docs" / "grounded.schema.json"


@settings(max_examples=15)
@given(st.lists(captions(), min_size=1, max_size=4))
def test_our_json_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, answers: list[Answer]) -> None:
    file = tmp_path_factory.mktemp("json") / "a.jsonl"
    write_export(file, answers, "json")
    assert read_answers(file) == answers
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for line in file.read_text().rstrip("\n").split("\n"):
        schema.validate(json.loads(line))


# FiftyOne's importer (fiftyone.utils.data.importers.FiftyOneImageDetectionDatasetImporter, read in version 1.22) wants
# classes and, by the path of the image without its ending, boxes as [x, y, width, height] in shares of the image.
FIFTYONE = {
    "type": "object",
    "required": ["classes", "labels"],
    "additionalProperties": False,
    "properties": {
        "classes": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "labels": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["label", "bounding_box", "confidence"],
                    "properties": {
                        "label": {"type": "string"},
                        "bounding_box": {
                            "type": "array",
                            "items": {"type": "number", "minimum": 0, "maximum": 1.000001},
                            "minItems": 4,
                            "maxItems": 4,
                        },
                        "confidence": {"type": "number"},
                        "attributes": {"type": "object"},
                    },
                },
            },
        },
    },
}


def test_fiftyone_names_and_boxes() -> None:
    data = fiftyone.labels([DOG, PHRASES])
    jsonschema.validate(data, FIFTYONE)
    assert list(data["labels"]) == ["photos/dog", "photos/cat"]
    dogs, _ = data["labels"]["photos/dog"]
    assert (dogs["label"], dogs["bounding_box"]) == ("dog", [0.1, 0.1, 0.5, 0.8])
    assert data["classes"] == ["ball", "dog", "ghost", "hat"]
    assert fiftyone.uuid_of("/data/a.b.jpg") == "/data/a.b.jpg", "absolute paths are taken whole"
    assert fiftyone.uuid_of("1000.2") == "1000.2", "an id that looks as if it had an ending"
    with pytest.raises(DeixisError, match=r"a\.jpg.*a\.png"):
        fiftyone.labels([caption("a.jpg", "x", {}), caption("a.png", "x", {})])


def names() -> st.SearchStrategy[str]:
    return st.from_regex(r"[a-z]{1,9}", fullmatch=True)


@settings(max_examples=30)
@given(st.lists(captions(names()), min_size=1, max_size=3, unique_by=lambda answer: answer.image))
def test_fiftyone_boxes_come_back(answers: list[Answer]) -> None:
    data = fiftyone.labels(answers)
    jsonschema.validate(data, FIFTYONE)
    for answer in answers:
        width, height = answer.size
        rows = data["labels"][answer.image]
        for row, thing in zip(rows, things_of(answer, doubtful=True), strict=True):
            x, y, across, down = row["bounding_box"]
            back = (x * width, y * height, (x + across) * width, (y + down) * height)
            assert back == pytest.approx(thing.box, abs=1e-6)
            assert row["label"] in data["classes"]


def test_supervision_takes_our_detections() -> None:
    sv = pytest.importorskip("supervision", reason="supervision is not installed")
    found = supervision.to_detections(DOG)
    assert isinstance(found, sv.Detections)
    assert found.xyxy.tolist() == [[20, 10, 120, 90], [150, 60, 170, 80]]
    assert found.data["class_name"].tolist() == ["dog", "ball"]
    assert found.area.tolist() == [8000, 400]
    assert found[found.class_id == 1].data["phrase"].tolist() == ["dogs"]
    assert len(found.with_nms(0.5)) == 2
    shared = ["dog", "hat"]
    both = sv.Detections.merge([supervision.to_detections(answer, shared) for answer in (DOG, PHRASES)])
    assert both.class_id.tolist() == [0, 1], "one list of classes makes answers agree; what it lacks is left out"
    assert len(supervision.to_detections(GroundedPhrases("x", (9, 9), ()))) == 0


def test_supervision_json_has_the_fields_of_detections() -> None:
    sv = pytest.importorskip("supervision", reason="supervision is not installed")
    dog, cat = supervision.records([DOG, PHRASES])
    assert (dog["image"], dog["class_id"], cat["class_id"]) == ("photos/dog.jpg", [1, 0], [2])
    read = sv.Detections(
        xyxy=np.array(dog["xyxy"], dtype=float),
        confidence=np.array(dog["confidence"]),
        class_id=np.array(dog["class_id"]),
        data={"class_name": np.array(dog["class_name"])},
    )
    assert len(read) == 2


def test_a_submission_of_clips_is_read_by_the_evaluation(tmp_path: Path) -> None:
    file = tmp_path / "submission.json"
    write_export(file, [CLIP], "anet")
    submission = read_submission(read_json_file(file), lemmatise_noun)
    assert submission.kind == "clips"
    ((word,),) = submission.words["v_abc", "3"]
    assert (word.label, word.index) == ("man", 1)
    assert word.boxes[0] == (0, 0, 50, 100)
    assert word.boxes[4] == (10, 0, 60, 100)
    assert word.boxes[1] == (0, 0, 0, 0), "a frame without a box never hits"


def test_the_evaluation_scores_what_was_exported(tmp_path: Path) -> None:
    note = {
        "tokens": ["a", "man", "rides"], "process_idx": [[1]], "process_clss": [["man"]], "frame_ind": [4],
        "process_bnd_box": [[10, 0, 60, 100]], "timestamps": [3, 8], "crowds": [0],
    }  # fmt: skip
    reference = tmp_path / "reference.json"
    reference.write_text(json.dumps({"vocab": ["man"], "annotations": {"v_abc": {"segments": {"3": note}}}}))
    lemmas = tmp_path / "lemmas.json"
    lemmas.write_text("{}")
    write_export(tmp_path / "submission.json", [CLIP], "anet")
    moved = replace(CLIP, words=(replace(CLIP.words[1], boxes=((200.0, 0.0, 300.0, 50.0),) * 2),))
    write_export(tmp_path / "moved.json", [moved], "anet")
    options = ScoreOptions(lemmas=lemmas, replicates=0)
    good, bad = (
        score_files(tmp_path / name, reference, options).report.sections[0].scores
        for name in ("submission.json", "moved.json")
    )
    assert {name: value for name, value in good.items() if "f1" in name.lower()}
    for name, value in good.items():
        if "f1" in name.lower():
            assert value == 1.0
            assert bad[name] == 0.0


def test_segments_that_share_their_clips_name_are_numbered() -> None:
    rows = [
        GroundedCaption("clips/run.mp4", CLIP.size, CLIP.text, CLIP.words, segment=(at, at + 5.0)) for at in (0.0, 5.0)
    ]
    assert {video: list(found) for video, found in activitynet.submission(rows)["results"].items()} == {
        "run": ["0", "1"]
    }


def test_a_submission_of_photos_keeps_to_the_classes() -> None:
    data = activitynet.submission([DOG], ObjectClasses(["dog", "cat"]))
    assert data["results"] == {"dog": [{"clss": ["dog"], "idx_in_sent": [1], "bbox": [[20, 10, 120, 90]]}]}
    with pytest.raises(DeixisError, match="photos and clips"):
        activitynet.submission([DOG, CLIP])
    with pytest.raises(DeixisError, match="phrases among"):
        activitynet.submission([PHRASES])
    with pytest.raises(DeixisError, match="two captions"):
        activitynet.submission([DOG, DOG])


@settings(max_examples=30)
@given(st.lists(captions(), min_size=1, max_size=3))
def test_the_table_has_a_row_for_every_box(answers: list[Answer]) -> None:
    rows = list(csv.DictReader(io.StringIO(table.table(answers), newline="")))
    wanted = [(answer, thing) for answer in answers for thing in things_of(answer, doubtful=True)]
    assert len(rows) == len(wanted)
    for row, (answer, thing) in zip(rows, wanted, strict=True):
        assert row["text"] == thing.text
        assert tuple(float(row[side]) for side in ("x1", "y1", "x2", "y2")) == thing.box
        assert row["image"] == answer.image
        assert bool(int(row["trusted"])) == thing.trusted


def test_the_table_knows_the_time_of_a_frame() -> None:
    rows = list(csv.DictReader(io.StringIO(table.table([CLIP]))))
    assert [(row["frame"], row["time"], row["segment_start"]) for row in rows] == [
        ("0", "3.25", "3.0"),
        ("4", "5.25", "3.0"),
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_whole_files_or_none(name: str, tmp_path: Path) -> None:
    written = write_export(tmp_path / "deep" / "out.json", [DOG], name)
    assert written[0] == tmp_path / "deep" / "out.json"
    assert sorted(written) == sorted((tmp_path / "deep").iterdir()), "nothing else is left"
    with pytest.raises(DeixisError, match="no predictions"):
        write_export(tmp_path / "empty.json", [], name)
    assert not (tmp_path / "empty.json").exists()


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match=r"'tfrecord'.*labelstudio"):
        write_export(tmp_path / "x", [DOG], "tfrecord", ExportOptions())
