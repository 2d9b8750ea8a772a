"""Folders as Hugging Face writes them: metadata.jsonl and metadata.csv."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from deixis.data import open_dataset


def test_phrases_boxes_objects_and_several_captions(folder: Path) -> None:
    dataset = open_dataset(folder)
    assert dataset.format == "folder"
    assert dataset.splits == ("all",)
    examples = {example.id: example for example in dataset.examples()}
    assert set(examples) == {"sub/a.png", "b.jpg", "gone.jpg"}
    first = examples["sub/a.png"]
    (caption,) = first.captions
    dog, sofa = caption.phrases
    assert [caption.phrase_text(phrase) for phrase in (dog, sofa)] == ["a dog", "a sofa"]
    assert dog.boxes == ((5.0, 5.0, 30.0, 20.0),), "annotated on 100x50, the file has half of that"
    assert (sofa.entity, sofa.label) == ("5", "couch")
    second = examples["b.jpg"]
    assert [caption.text for caption in second.captions] == ["One.", "Two."]
    assert [(thing.label, thing.box) for thing in second.objects] == [("cup", (10.0, 20.0, 40.0, 30.0))]
    problems = dataset.problems
    assert {kind: problems.count(kind) for kind in problems.kinds} == {
        "broken record": 1,
        "phrase that is not in its caption": 1,
        "file name that leaves the folder": 1,
        "missing image": 1,
        "empty caption": 1,
    }
    assert "metadata.jsonl, line 6" in problems.places("broken record")[0]


def test_csv_in_split_folders(tmp_path: Path, photo: Callable[..., bytes]) -> None:
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "a.jpg").write_bytes(photo())
        (tmp_path / split / "metadata.csv").write_text(f'file_name,text\na.jpg,"A photo, for {split}"\n')
    dataset = open_dataset(tmp_path)
    assert dataset.splits == ("train", "test")
    assert dataset.ids() == ("train/a.jpg", "test/a.jpg"), "equal names in two splits are two photos"
    assert [example.captions[0].text for example in dataset.examples("test")] == ["A photo, for test"]


def test_two_files_with_one_id(tmp_path: Path, photo: Callable[..., bytes]) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jpg").write_bytes(photo())
    lines = ['{"id": 1, "file_name": "a.jpg", "text": "x"}', '{"id": 1, "file_name": "b.jpg", "text": "y"}']
    (tmp_path / "metadata.jsonl").write_text("\n".join(lines))
    dataset = open_dataset(tmp_path)
    assert len(list(dataset.examples())) == 1
    assert dataset.problems.count("two images with one id") == 1
