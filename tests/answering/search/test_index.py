"""The index of a folder: what it holds, what it does when photos come, go, break and change, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import deixis
from deixis.answering.load import Deixis
from deixis.answering.search import index as module
from deixis.answering.search.index import PhotoIndex
from deixis.answering.search.manifest import FILE, model_fingerprint
from deixis.answering.search.segments import REGIONS, WORDS
from deixis.answering.search.words import match_sentence, word_scores
from deixis.atomic import DiskFullError, write_bytes
from deixis.data.pad import pad_regions
from deixis.errors import BadFileError, DeixisError
from deixis.regions.store.shards import Shard, pack
from deixis.text.rules.chunker import chunk

PHOTOS = Path(__file__).parents[3] / "examples" / "photos"
QUERIES = {"a woman in a suit": "astronaut.jpg", "a cat": "chelsea.jpg", "a cup of coffee on a table": "coffee.jpg"}


@pytest.fixture(scope="module")
def small(small_bundle: Path) -> Deixis:
    return deixis.load(small_bundle)


@pytest.fixture
def album(tmp_path: Path) -> Path:
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    for name in ("astronaut.jpg", "chelsea.jpg"):
        shutil.copy(PHOTOS / name, tmp_path / "photos")
    shutil.copy(PHOTOS / "coffee.jpg", tmp_path / "photos" / "deep")
    return tmp_path / "photos"


@pytest.fixture
def index(small: Deixis, album: Path) -> PhotoIndex:
    made = PhotoIndex(small, album)
    made.update()
    return made


def names(index: PhotoIndex) -> list[str]:
    return sorted(Path(path).name for path in index.photos)


def test_the_photo_that_is_meant_comes_first_with_its_boxes(index: PhotoIndex, album: Path) -> None:
    assert len(index) == 3
    for query, name in QUERIES.items():
        found = index.search(query, top=2)
        assert (found[0].path.name, len(found)) == (name, 2)
        assert found[0].score >= found[1].score
    answer = index.search("a cup of coffee on a table")[0].answer
    assert [phrase.text for phrase in answer.phrases] == ["a cup", "coffee", "a table"]
    assert answer.image == str(album / "deep" / "coffee.jpg")
    assert all(phrase.boxes for phrase in answer.phrases)


def test_the_second_stage_is_the_grounders_own_match(index: PhotoIndex, small: Deixis, album: Path) -> None:
    sentence = chunk("a cup of coffee on a table", small.words)
    part = small.grounder
    assert part is not None
    found = {one.path: one.score for one in index.search(sentence.text)}
    for path in found:
        regions = pad_regions(small.regions([path]), max_regions=part.config.inputs.regions)
        own = match_sentence(part.grounder(), small.words, sentence, regions)
        assert found[path] == pytest.approx(float(own[0]), abs=1e-4)


def test_word_scores_of_the_shipped_grounder_add_up_to_its_match() -> None:
    """Its match of a sentence is the mean over nouns and adjectives: the first stage ranks as the second does."""
    model = deixis.load("lite")
    part = model.grounder
    assert part is not None
    regions = pad_regions([one.top(part.config.inputs.regions) for one in model.regions([*PHOTOS.glob("*.jpg")])])
    sentence = chunk("a white cup on a wooden table", model.words)
    own = match_sentence(part.grounder(), model.words, sentence, regions)
    table = word_scores(part.grounder(), model.words, ["white", "cup", "wooden", "table"], regions)
    np.testing.assert_allclose(table.mean(0), own, atol=1e-3)


def test_word_scores_of_any_grounder_are_its_match_of_the_word(small: Deixis) -> None:
    part = small.grounder
    assert part is not None
    regions = pad_regions(small.regions([*PHOTOS.glob("*.jpg")]), max_regions=20)
    table = word_scores(part.grounder(), small.words, ["cat", "cup"], regions)
    for row, word in enumerate(("cat", "cup")):
        own = match_sentence(part.grounder(), small.words, chunk(word, small.words), regions)
        np.testing.assert_allclose(table[row], own, atol=1e-5)


def test_photos_come_go_and_change(index: PhotoIndex, small: Deixis, album: Path) -> None:
    shutil.copy(PHOTOS / "coffee.jpg", album / "new.jpg")
    (album / "astronaut.jpg").unlink()
    shutil.copy(PHOTOS / "coffee.jpg", album / "chelsea.jpg")  # another photo under the old name
    done = index.update()
    assert (done.added, done.removed, done.failed, done.unsettled) == (2, 1, (), 0)
    assert names(index) == ["chelsea.jpg", "coffee.jpg", "new.jpg"]
    again = PhotoIndex(small, album)
    assert names(again) == names(index)
    scores = [one.score for one in again.search("a cup of coffee on a table")]
    assert scores == pytest.approx([scores[0]] * 3), "all three are the same photo now"
    assert index.update() == module.Update(0, 0, (), 0)


def test_a_photo_that_is_deleted_after_the_update_is_not_shown(index: PhotoIndex, album: Path) -> None:
    (album / "chelsea.jpg").unlink()
    assert {one.path.name for one in index.search("a cat")} == {"astronaut.jpg", "coffee.jpg"}


def test_broken_photos_are_told_once_and_tried_again_when_they_change(
    index: PhotoIndex, album: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (album / "broken.jpg").write_bytes(b"\xff\xd8\xff no photo")
    ((path, why),) = index.update().failed
    assert path == "broken.jpg"
    assert "damaged" in why
    monkeypatch.setattr(index, "_add", lambda photos, progress: pytest.fail("asked again") if photos else 0)
    assert [path for path, _ in index.update().failed] == ["broken.jpg"]
    monkeypatch.undo()
    shutil.copy(PHOTOS / "coffee.jpg", album / "broken.jpg")
    assert (index.update().failed, len(index)) == ((), 4)


def test_a_folder_that_changes_while_it_is_read(small: Deixis, album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One photo is written and one deleted after their bytes were read: neither may be taken for what it is now."""
    look = small.regions

    def meanwhile(images: Any) -> Any:
        Image.new("RGB", (64, 48)).save(album / "chelsea.jpg")
        (album / "astronaut.jpg").unlink(missing_ok=True)
        return look(images)

    index = PhotoIndex(small, album)
    monkeypatch.setattr(small, "regions", meanwhile)
    done = index.update()
    monkeypatch.undo()
    assert (done.added, done.unsettled) == (1, 2)
    assert names(index) == ["coffee.jpg"]
    assert (index.update().added, names(index)) == (1, ["chelsea.jpg", "coffee.jpg"])


def test_a_killed_update_goes_on_and_leaves_nothing_half(
    small: Deixis, album: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PER_SEGMENT", 1)
    look, asked = small.regions, []

    def dies(images: Any) -> Any:
        asked.append(len(images))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return look(images)

    index = PhotoIndex(small, album)
    monkeypatch.setattr(small, "regions", dies)
    with pytest.raises(KeyboardInterrupt):
        index.update()
    (index.place / "segment-000003").mkdir()  # what a kill in the middle of writing leaves
    again = PhotoIndex(small, album)
    assert len(again) == 2
    again.update()
    assert (len(again), len(asked)) == (3, 4), "only the third photo was looked at again"
    assert {path.name for path in again.place.glob("segment-*")} == set(again.manifest.segments)


def test_small_segments_are_joined_and_say_the_same(
    small: Deixis, album: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PER_SEGMENT", "MANY_SMALL"):
        monkeypatch.setattr(module, name, 1 if name == "PER_SEGMENT" else 99)
    index = PhotoIndex(small, album)
    index.update()
    assert len(index.manifest.segments) == 3
    before = [(one.path, one.score, one.answer) for one in index.search("a cat")]
    monkeypatch.setattr(module, "MANY_SMALL", 2)
    index.update()
    assert len(index.manifest.segments) == 1
    assert [(one.path, one.score, one.answer) for one in index.search("a cat")] == before
    assert [(one.path, one.score, one.answer) for one in PhotoIndex(small, album).search("a cat")] == before
    (album / "chelsea.jpg").unlink()
    (album / "astronaut.jpg").unlink()
    index.update()
    assert [len(gone) for gone in index.manifest.segments.values()] == [0], "half of it was waste"
    assert names(index) == ["coffee.jpg"]


def test_an_index_of_another_model_is_refused_with_the_way_out(small: Deixis, index: PhotoIndex, album: Path) -> None:
    other = deixis.load("lite")
    with pytest.raises(DeixisError, match=r"made with another model .*--model.*--index.*--rebuild"):
        PhotoIndex(other, album)
    assert model_fingerprint(small) == index.manifest.fingerprint != model_fingerprint(other)
    rebuilt = PhotoIndex(other, album, rebuild=True)
    assert len(rebuilt) == 0
    rebuilt.update()
    assert rebuilt.search("a cat")[0].path.name == "chelsea.jpg"
    with pytest.raises(DeixisError, match="is of the folder"):
        PhotoIndex(other, album / "deep", rebuilt.place)


def test_a_weight_that_changes_makes_another_model(small_bundle: Path, index: PhotoIndex) -> None:
    model = deixis.load(small_bundle)
    assert model_fingerprint(model) == index.manifest.fingerprint
    assert model.grounder is not None
    with torch.no_grad():
        next(iter(model.grounder.model.parameters())).view(-1)[0] += 1e-3
    assert model_fingerprint(model) != index.manifest.fingerprint


def test_damage_and_bad_input_are_said_in_words(small: Deixis, index: PhotoIndex, album: Path, tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match="knows no word of 'zyzzyva'"):
        index.search("zyzzyva")
    with pytest.raises(DeixisError, match="is empty"):
        index.search("  ")
    with pytest.raises(DeixisError, match="at least 1, got 0"):
        index.search("a cat", top=0)
    with pytest.raises(BadFileError, match="does not exist: name a folder"):
        PhotoIndex(small, tmp_path / "gone", tmp_path / "x").update()
    (tmp_path / "none").mkdir()
    with pytest.raises(BadFileError, match="there is no photo"):
        PhotoIndex(small, tmp_path / "none", tmp_path / "x").update()
    words = next(index.place.glob(f"segment-*/{WORDS}"))
    whole = words.read_bytes()
    words.write_bytes(whole[:-10])
    with pytest.raises(BadFileError, match=r"index is damaged.*--rebuild"):
        PhotoIndex(small, album)
    words.write_bytes(whole)
    data = json.loads((index.place / FILE).read_text())
    (index.place / FILE).write_text(json.dumps(data | {"segments": {"../../etc": []}}))
    with pytest.raises(BadFileError, match="no search index of ours"):
        PhotoIndex(small, album)
    with pytest.raises(DeixisError, match=r"not empty \(astronaut.jpg\) and no search index"):
        PhotoIndex(small, album, album, rebuild=True)
    assert len(os.listdir(album)) == 3, "no photo was deleted"


def test_two_writers_do_not_meet(index: PhotoIndex, small: Deixis, album: Path) -> None:
    told = rf"the search index in {re.escape(str(index.place))} is being written by process {os.getpid()} on "
    with index._locked():
        with pytest.raises(DeixisError, match=told):
            PhotoIndex(small, album).update()
        with pytest.raises(DeixisError, match=told):
            PhotoIndex(small, album, rebuild=True)
    assert len(PhotoIndex(small, album)) == 3, "nothing was deleted under the first writer"


def test_folders_that_are_no_segments_are_left_alone(small: Deixis, album: Path, tmp_path: Path) -> None:
    (tmp_path / "work" / "segment-a").mkdir(parents=True)
    with pytest.raises(DeixisError, match=r"not empty \(segment-a\) and no search index"):
        PhotoIndex(small, album, tmp_path / "work").update()
    assert os.listdir(tmp_path / "work") == ["segment-a"]


@pytest.mark.parametrize("fact", ["class_names", "word_names", "fingerprint"])
def test_regions_whose_facts_miss_are_one_line(small: Deixis, index: PhotoIndex, album: Path, fact: str) -> None:
    (file,) = index.place.glob(f"*/{REGIONS}")
    shard = Shard.open(file)
    write_bytes(file, pack(shard.arrays, {name: value for name, value in shard.facts.items() if name != fact}))
    with pytest.raises(BadFileError, match=r"search index is damaged: .*make it anew \(--rebuild\)$"):
        PhotoIndex(small, album).search("a cat")


def test_a_rebuild_that_was_killed_is_done_by_the_next(small: Deixis, index: PhotoIndex, album: Path) -> None:
    (index.place / FILE).unlink()  # the first thing that a rebuild does
    assert len(list(index.place.glob("segment-*"))) == 1
    again = PhotoIndex(small, album, rebuild=True)
    assert list(index.place.iterdir()) == []
    again.update()
    assert len(again) == 3


def test_a_full_disk_names_the_file(
    small: Deixis, album: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", no_room)
    with pytest.raises(DiskFullError, match=r"cannot write .*segment-000001/words.npy: the disk is full; make room"):
        PhotoIndex(small, album, tmp_path / "x").update()


def test_a_captioner_alone_cannot_search(small_bundle: Path, album: Path) -> None:
    with pytest.raises(DeixisError, match="no grounder"):
        PhotoIndex(deixis.load(small_bundle / "captioner"), album)
