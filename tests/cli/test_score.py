"""`deixis score` and `deixis compare` as people call them: every format, every kind of wrong file, every output."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from deixis.cli.main import main

FAR = [80.0, 80.0, 99.0, 99.0]
A = [0.0, 0.0, 9.0, 9.0]


def deixis(*arguments: object) -> None:
    """Run the command line; it must succeed."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert not stop.value.code


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run what must be refused; return the one line on stderr."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    assert stop.value.code == 2
    assert said.out == ""
    assert said.err.startswith("deixis: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    return said.err


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
    return path


def lines(path: Path, *records: dict[str, Any]) -> Path:
    return write(path, "".join(json.dumps(record) + "\n" for record in records))


def result(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    deixis(*arguments, "--json")
    data = json.loads(capsys.readouterr().out)
    assert isinstance(data, dict)
    return data


def segment(tokens: str, *words: tuple[int, str, list[float], int]) -> dict[str, Any]:
    return {
        "tokens": tokens.split(),
        "timestamps": [0, 3],
        "process_idx": [[index] for index, *_ in words],
        "process_clss": [[label] for _, label, *_ in words],
        "process_bnd_box": [box for _, _, box, _ in words],
        "frame_ind": [frame for *_, frame in words],
    }


def answer(*words: tuple[str, list[float]]) -> dict[str, Any]:
    return {
        "clss": [label for label, _ in words],
        "idx_in_sent": list(range(1, len(words) + 1)),
        "bbox_for_all_frames": [[box] * 10 for _, box in words],
    }


REFERENCE = {
    "vocab": ["man", "dog", "hat"],
    "annotations": {
        "v_a": {
            "segments": {"0": segment("A man and dogs", (1, "man", A, 2)), "1": segment("A dog", (1, "dog", A, 0))}
        },
        "v_b": {"segments": {"0": segment("A man in a hat", (1, "man", A, 9), (4, "hat", FAR, 9))}},
        "v_c": {"segments": {"0": segment("Nothing here")}},
    },
}
SUBMISSION = {
    "results": {
        "v_a": {"0": answer(("man", A), ("dog", FAR)), "1": answer(("dog", FAR))},
        "v_b": {"0": answer(("hat", FAR), ("kite", A))},
    },
    "eval_mode": "gen",
    "external_data": {"used": True, "details": "Visual Genome detector"},
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    return (
        write(tmp_path / "submission.json", SUBMISSION),
        write(tmp_path / "reference.json", REFERENCE),
        write(tmp_path / "lemmas.json", {"dogs": "dog"}),
    )


def test_activitynet_submission_by_hand(files: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    submission, reference, lemmas = files
    data = result(capsys, "score", submission, reference, "--lemmas", lemmas)
    scores = data["scores"]
    # precision: man 1/1; dog of segment 0 is ignored (its lemma is an un-annotated token), dog of segment 1 misses;
    # hat 1/1; kite is hallucinated. 3 classes. recall: man 1 of 2, dog 0 of 1, hat 1 of 1.
    assert scores["precision_all"] == pytest.approx(2 / 3)
    assert scores["recall_all"] == pytest.approx(1.5 / 3)
    assert scores["F1_all"] == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    assert scores["recall_loc"] == pytest.approx(2 / 3)
    # sentences: a/0 P 1 R 1; a/1 0 0; b/0 P 1/2 R 1/2
    assert scores["precision_all_per_sent"] == pytest.approx(1.5 / 3)
    assert scores["F1_all_per_sent"] == pytest.approx(1.5 / 3)
    assert scores["F1_loc_per_sent"] == pytest.approx(2 / 3)
    assert data["region_source"] == "Visual Genome detector"
    assert data["split"] == "all"
    assert any("v_c/0" in note for note in data["notes"])  # left out, and said so


def test_splits_come_from_a_file_beside_the_reference(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submission, reference, lemmas = files
    write(tmp_path / "split_ids_anet.json", {"training": ["v_b", "v_c"], "validation": ["v_a"]})
    data = result(capsys, "score", submission, reference, "--lemmas", lemmas, "--split", "validation")
    assert data["scores"]["precision_all"] == 0.5  # man 1, dog 0
    assert data["scores"]["F1_all_per_sent"] == pytest.approx(1 / 3)  # v_b divides, as in the original
    assert any("not in the split" in note for note in data["notes"])
    assert "no split 'nowhere'" in refused(capsys, "score", submission, reference, "--split", "nowhere")


def test_ground_truth_mode_and_its_attention_accuracy(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = {"results": {"v_a": {"0": answer(("man", A))}}, "eval_mode": "GT"}
    data = result(capsys, "score", write(tmp_path / "gt.json", truth), files[1], "--lemmas", files[2])
    assert data["scores"] == {"attention_accuracy": pytest.approx(0.5 / 3)}  # man 1 of 2, dog and hat 0


def test_without_a_table_lemmas_come_from_the_parser(
    files: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("spacy")
    data = result(capsys, "score", *files[:2])
    assert data["scores"]["precision_all"] == pytest.approx(2 / 3)  # dogs -> dog, as in the table
    assert "spaCy" in data["lemmas"]


def test_reports_are_written_whole(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    deixis("score", files[0], files[1], "--lemmas", files[2], "-o", out)
    printed = capsys.readouterr().out
    for text in ("F1_all", "57.14", "split: all", "Visual Genome detector", "95 % interval"):
        assert text in printed
    assert sorted(path.name for path in out.iterdir()) == ["scores.html", "scores.json", "scores.md"]
    assert "| F1_all | 57.14 |" in (out / "scores.md").read_text()
    page = (out / "scores.html").read_text()
    assert page.count("<svg") == 3
    assert "http" not in page  # nothing is loaded from elsewhere

    class Balance(HTMLParser):
        opened: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in ("meta", "rect", "line", "circle", "polyline"):
                self.opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("rect", "line", "circle", "polyline"):
                assert self.opened.pop() == tag

    parser = Balance()
    parser.feed(page)
    assert parser.opened == []


def test_html_escapes_what_comes_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "<script>alert(1)</script>"
    reference = {"annotations": {"v": {"segments": {"0": segment("A man", (1, evil, A, 0))}}}}
    submission = {"results": {"v": {"0": answer((evil, A))}}, "external_data": {"details": evil}}
    out = tmp_path / "out"
    ref, sub = write(tmp_path / "r.json", reference), write(tmp_path / "s.json", submission)
    deixis("score", sub, ref, "--lemmas", write(tmp_path / "l.json", {}), "-o", out)
    assert "<script" not in (out / "scores.html").read_text()


def broken(**changes: Any) -> dict[str, Any]:
    """The submission with results["v_b"]["0"] changed."""
    data: dict[str, Any] = json.loads(json.dumps(SUBMISSION))
    data["results"]["v_b"]["0"].update(changes)
    return data


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (broken(bbox_for_all_frames=[[FAR] * 10, [[9.0, 9.0, 0.0, 0.0]] * 10]), "[9.0, 9.0, 0.0, 0.0]"),
        (broken(bbox_for_all_frames=[[FAR] * 10, [[0.0, 0.0, float("nan"), 9.0]] * 10]), "NaN"),
        (broken(bbox_for_all_frames=[[FAR] * 10, [A] * 9]), "9 frames"),
        (broken(bbox_for_all_frames=[[FAR] * 10]), "2 classes, 2 word indices and 1 boxes"),
        (broken(bbox_for_all_frames=[[FAR] * 10, [[1.0, 2.0, 3.0]] * 10]), "[1.0, 2.0, 3.0]"),
        (broken(bbox_for_all_frames=[[FAR] * 10, [[0, 0, 10**40, 9]] * 10]), "should be a finite number"),
        (broken(clss=["hat", 7]), "got 7"),
        (broken(clss=None), "should be a list of object classes, got null"),
        ({"results": {**SUBMISSION["results"], "v_z": {"0": answer()}}}, "unknown id"),  # type: ignore[dict-item]
        ({"results": {"v_a": {"7": answer()}}}, "unknown id"),
        ({"results": {}}, "nothing was submitted"),
        ({"results": {"v_a": {"0": answer()}}, "eval_mode": "val"}, '"val"'),
        ([{"something": 1}], "none of the formats"),
        ({"a": 1}, "none of the formats"),
        ("", "is empty"),
        ("  \n", "is empty"),
        ("[]", "empty list"),
        ("{broken", "line 1: not JSON"),
        ('{"results": {"v_a": ' + "9" * 5000 + "}}", "not JSON that can be read"),
        ("[" * 50_000, "nested too deeply"),
        ("\x80PK", "none of the formats"),
    ],
)
def test_wrong_submissions_name_line_and_value(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], data: Any, said: str
) -> None:
    path = tmp_path / "wrong.json"
    if data == "\x80PK":
        path.write_bytes(b"\x80PK\x03\x04")
        said = "not UTF-8"
    else:
        write(path, data)
    out = tmp_path / "out"
    error = refused(capsys, "score", path, files[1], "--lemmas", files[2], "-o", out)
    assert said in error
    assert "wrong.json" in error
    if isinstance(data, dict) and "results" in data:
        line = int(error.split("line ")[1].split(":")[0])
        written = path.read_text().split("\n")
        assert 1 <= line <= len(written)
    assert not out.exists()  # nothing half-written


def test_the_line_is_the_line_of_the_value(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = broken(bbox_for_all_frames=[[FAR] * 10, [A] * 7 + [[0.0, 0.0, float("inf"), 9.0]] + [A] * 2])
    path = write(tmp_path / "wrong.json", data)
    error = refused(capsys, "score", path, files[1], "--lemmas", files[2])
    line = int(error.split("line ")[1].split(":")[0])
    assert "Infinity" in path.read_text().split("\n")[line - 1]
    assert 'results.v_b["0"].bbox_for_all_frames[1][7][2]' in error


def test_a_key_that_is_there_twice(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = json.dumps(answer())
    text = f'{{"results": {{\n"v_a": {{"0": {one}}},\n"v_b": {{"0": {one}}},\n"v_a": {{"1": {one}}}}}}}'
    error = refused(capsys, "score", write(tmp_path / "twice.json", text), files[1], "--lemmas", files[2])
    assert 'line 4: the key "v_a" is there twice' in error


def test_wrong_references(files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no file" in refused(capsys, "score", files[0], tmp_path / "nowhere.json")
    other = write(tmp_path / "other.json", {"annotations": {}, "x": 1})
    assert "other.json" in refused(capsys, "score", files[0], other)
    late = json.loads(json.dumps(REFERENCE))
    late["annotations"]["v_a"]["segments"]["0"]["frame_ind"] = [10]
    error = refused(capsys, "score", files[0], write(tmp_path / "late.json", late), "--lemmas", files[2])
    assert "frames are numbered 0 to 9" in error
    far = json.loads(json.dumps(REFERENCE))
    far["annotations"]["v_a"]["segments"]["0"]["process_idx"] = [[44]]
    error = refused(capsys, "score", files[0], write(tmp_path / "far.json", far), "--lemmas", files[2])
    assert "points at word 44 of 4" in error


def test_photos_in_the_form_of_gvd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def caption(tokens: str, *words: tuple[int, str, list[float]]) -> dict[str, Any]:
        return {
            "tokens": tokens.split(),
            "process_idx": [index for index, *_ in words],
            "process_clss": [label for _, label, _ in words],
            "process_bnd_box": [box for *_, box in words],
        }

    notes = [{"image_id": 36, "captions": [caption("A man", (1, "man", A)), caption("A man runs", (1, "man", FAR))]}]
    reference = write(tmp_path / "flickr.json", {"annotations": notes})
    words = {"clss": ["man"], "idx_in_sent": [1], "bbox": [A]}
    lemmas = write(tmp_path / "lemmas.json", {})
    data = result(
        capsys, "score", write(tmp_path / "s.json", {"results": {"36": [words]}}), reference, "--lemmas", lemmas
    )
    assert data["scores"]["F1_all"] == 0.5  # the two references separately
    assert data["scores"]["F1_all_per_sent"] == 1  # pooled
    truth = write(tmp_path / "gt.json", {"results": {"36": [words, words]}})
    data = result(capsys, "score", truth, reference, "--lemmas", lemmas)
    assert data["scores"] == {"attention_accuracy": 0.5}
    error = refused(capsys, "score", truth, reference, "--lemmas", lemmas, "--protocol", "gen")
    assert "2 sentences" in error
    twice = write(tmp_path / "twice.json", {"annotations": notes * 2})
    assert "is there twice" in refused(capsys, "score", truth, twice, "--lemmas", lemmas)


# Captions


def coco(*captions: tuple[int, str]) -> dict[str, Any]:
    return {
        "images": [{"id": image, "file_name": f"{image}.jpg"} for image in dict.fromkeys(i for i, _ in captions)],
        "annotations": [{"image_id": image, "caption": text} for image, text in captions],
    }


def test_coco_captions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = write(
        tmp_path / "reference.json",
        coco((1, "a man rides a horse"), (1, "a man on a horse"), (2, "two dogs play in the snow")),
    )
    results = [{"image_id": 1, "caption": "a man rides a horse"}, {"image_id": 2, "caption": "two cats sleep"}]
    data = result(capsys, "score", write(tmp_path / "c.json", results), reference)
    assert 0 < data["scores"]["ROUGE-L"] < 1
    assert data["scores"]["CIDEr"] > 0
    assert set(data["sections"][0]["intervals"]) == {"ROUGE-L", "CIDEr"}
    error = refused(capsys, "score", write(tmp_path / "one.json", results[:1]), reference)
    assert 'image "2" is missing' in error
    part = result(capsys, "score", tmp_path / "one.json", reference, "--partial")
    assert part["scores"]["BLEU-4"] == pytest.approx(1)
    assert any("partial" in note for note in part["notes"])
    twice = lines(tmp_path / "twice.jsonl", *results, results[0])
    assert 'line 3: image_id is a duplicate id: "1"' in refused(capsys, "score", twice, reference)
    unknown = lines(tmp_path / "unknown.jsonl", *results, {"image_id": 9, "caption": "x"})
    assert 'line 3: has an unknown id: the reference has no captions for image "9"' in refused(
        capsys, "score", unknown, reference
    )
    wrong = lines(tmp_path / "null.jsonl", {"image_id": 1, "caption": None})
    assert "line 1: caption should be a caption, a string, got null" in refused(capsys, "score", wrong, reference)


# Phrases


def test_plain_phrases_under_both_protocols(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = lines(
        tmp_path / "reference.jsonl",
        {"image": "1", "phrase": "two men", "boxes": [A, [20, 0, 29, 9]], "types": ["people"]},
        {"image": "1", "phrase": "a hat", "boxes": [FAR], "types": ["clothing"]},
        {"image": "2", "phrase": "the air", "boxes": []},
    )
    found = lines(
        tmp_path / "found.jsonl",
        {"image": "1", "phrase": "Two men", "boxes": [A]},
        {"image": "1", "phrase": "a hat", "boxes": [A, FAR]},
    )
    data = result(capsys, "score", found, reference, "--regions", "lite, 100 regions")
    any_box, merged = data["sections"]
    assert any_box["protocol"].startswith("any-box")
    assert any_box["scores"]["R@1"] == 0.5
    assert any_box["scores"]["R@5"] == 1
    assert merged["scores"]["R@1"] == 0  # 9 x 9 of 29 x 9
    assert any_box["items"] == 2
    assert data["region_source"] == "lite, 100 regions"
    assert any("1 phrases without a reference box" in note for note in data["notes"])
    boxes = lines(tmp_path / "regions.jsonl", {"image": "1", "boxes": [A, [0, 0, 29, 9]]})
    one = result(capsys, "score", found, reference, "--protocol", "merged-box", "--proposals", boxes)
    assert list(one["scores"]) == [*list(merged["scores"]), "bound"]
    assert one["scores"]["bound"] == 0.5
    error = refused(capsys, "score", found, reference, "--protocol", "gen")
    assert "any-box or merged-box" in error


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"image": "9", "phrase": "a hat", "boxes": [A]}, 'line 2: has an unknown id: the reference has no image "9"'),
        (
            {"image": "1", "phrase": "a dog", "boxes": [A]},
            'line 2: names a phrase the reference does not have: "a dog"',
        ),
        ({"image": "1", "phrase": "two men", "boxes": [A]}, "line 2: is a duplicate"),
        ({"image": "1", "phrase": "a hat", "boxes": [[5, 5, 1, 9]]}, "line 2: boxes[0] is [5, 5, 1, 9]"),
        ({"image": "1", "phrase": "a hat", "boxes": [[5, 5, float("nan"), 9]]}, "got NaN"),
        ({"image": "1", "phrase": "a hat", "box": [5, 5, 8]}, "line 2: box should be a box"),
        ({"image": "1", "phrase": 3, "boxes": [A]}, "line 2: caption should be the number of a caption"),
        ({"image": None, "phrase": "a hat", "boxes": [A]}, "line 2: image should be an image id, got null"),
        ({"phrase": "a hat", "boxes": [A]}, "line 2: image_id should be an image id, got null"),
    ],
)
def test_wrong_phrases_name_line_and_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record: dict[str, Any], said: str
) -> None:
    reference = lines(
        tmp_path / "reference.jsonl",
        {"image": "1", "phrase": "two men", "boxes": [A]},
        {"image": "1", "phrase": "a hat", "boxes": [FAR]},
    )
    found = lines(tmp_path / "found.jsonl", {"image": "1", "phrase": "two men", "boxes": [A]}, record)
    assert said in refused(capsys, "score", found, reference, "--partial")


def test_a_missing_image_is_an_error_unless_told_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = lines(
        tmp_path / "reference.jsonl",
        {"image": "1", "phrase": "a man", "boxes": [A]},
        {"image": "2", "phrase": "a hat", "boxes": [FAR]},
    )
    found = lines(tmp_path / "found.jsonl", {"image": "1", "phrase": "a man", "boxes": [A]})
    error = refused(capsys, "score", found, reference)
    assert 'image "2" is missing' in error
    assert '"a hat"' in error
    data = result(capsys, "score", found, reference, "--partial")
    assert data["sections"][0]["scores"]["R@1"] == 0.5


# Comparing


def phrase_run(folder: Path, name: str, hits: list[bool], capsys: pytest.CaptureFixture[str], *more: object) -> Path:
    reference = lines(
        folder / "reference.jsonl", *({"image": str(at), "phrase": "a man", "boxes": [A]} for at in range(len(hits)))
    )
    found = lines(
        folder / f"{name}.jsonl",
        *({"image": str(at), "phrase": "a man", "boxes": [A if hit else FAR]} for at, hit in enumerate(hits)),
    )
    deixis("score", found, reference, "-o", folder / name, "--replicates", 50, *more)
    capsys.readouterr()
    return folder / name


def test_compare_runs_and_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = phrase_run(tmp_path, "base", [at < 20 for at in range(60)], capsys)
    one = phrase_run(tmp_path, "one", [at < 30 for at in range(60)], capsys)
    two = phrase_run(tmp_path, "two", [at < 36 for at in range(60)], capsys)
    best = phrase_run(tmp_path, "best", [True] * 60, capsys)
    deixis(
        "compare",
        base,
        f"ours={one},{two}",
        best / "scores.json",
        "--unsupervised",
        "base",
        "--supervised",
        "best",
        "--json",
    )
    data = json.loads(capsys.readouterr().out)
    assert [section["protocol"].split()[0] for section in data["sections"]] == ["any-box", "merged-box"]
    ours = data["sections"][0]["metrics"]["R@1"]["ours"]
    assert ours["mean"] == pytest.approx(33 / 60)
    assert ours["deviation"] == pytest.approx(0.1 / 2**0.5)
    assert ours["difference"]["value"] == pytest.approx(13 / 60)
    assert ours["difference"]["p"] < 0.05
    assert ours["gain"] == pytest.approx(13 / 40)
    deixis("compare", base, f"ours={one},{two}")
    printed = capsys.readouterr().out
    assert "55.00 ± 7.07" in printed
    assert "+21.67" in printed


def test_compare_refuses_what_cannot_be_compared(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = phrase_run(tmp_path, "run", [True, False], capsys, "--protocol", "any-box")
    merged = phrase_run(tmp_path, "merged", [True, False], capsys, "--protocol", "merged-box")
    assert "protocols never share a table" in refused(capsys, "compare", run, merged)
    (tmp_path / "more").mkdir()
    longer = phrase_run(tmp_path / "more", "longer", [True] * 3, capsys, "--protocol", "any-box")
    assert "other items" in refused(capsys, "compare", run, longer)
    data = json.loads((run / "scores.json").read_text())
    other = write(tmp_path / "other.json", data | {"split": "test"})
    assert "'test'" in refused(capsys, "compare", run, other)
    assert "at least two runs" in refused(capsys, "compare", run)
    assert "not the JSON that `deixis score` writes" in refused(capsys, "compare", run, files[0])
    assert "go together" in refused(capsys, "compare", run, run, "--supervised", "run")
    assert "no run called 'x'" in refused(capsys, "compare", run, run, "--supervised", "run", "--unsupervised", "x")
    data["sections"][0]["samples"]["R@1"] = {"kind": "mean"}
    assert "sample R@1" in refused(capsys, "compare", run, write(tmp_path / "cut.json", data))


def test_grounding_runs_compare_too(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    better = json.loads(json.dumps(SUBMISSION))
    better["results"]["v_a"]["1"] = answer(("dog", A))
    for name, data in (("plain", SUBMISSION), ("better", better)):
        deixis("score", write(tmp_path / f"{name}.json", data), files[1], "--lemmas", files[2], "-o", tmp_path / name)
    capsys.readouterr()
    deixis("compare", tmp_path / "plain", tmp_path / "better", "--json")
    metrics = json.loads(capsys.readouterr().out)["sections"][0]["metrics"]
    assert metrics["precision_all"]["better"]["difference"]["value"] == pytest.approx(1 / 3)
    assert metrics["recall_all"]["better"]["difference"]["value"] == pytest.approx(1 / 3)
    assert metrics["F1_all"]["better"]["mean"] > metrics["F1_all"]["plain"]["mean"]
