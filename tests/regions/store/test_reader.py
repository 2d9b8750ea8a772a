from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deixis.data.batch import RegionBatch
from deixis.errors import BadFileError, DeixisError
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.shards import Shard, encode, pack
from deixis.regions.store.writer import StoreWriter, make_part, write_store
from deixis.types import Regions

CLASSES = tuple(f"class {number}" for number in range(5))
WORDS = tuple(f"word {number}" for number in range(300))
FINGERPRINT = "made:1"


def made_regions(
    seed: int, count: int = 7, frames: int = 1, width: int = 12, fingerprint: str = FINGERPRINT
) -> Regions:
    rng = torch.Generator().manual_seed(seed)
    rows = (count + 1) * frames
    corner = torch.rand(rows, 2, generator=rng) * 200
    boxes = torch.cat([corner, corner + torch.rand(rows, 2, generator=rng) * 100 + 1], 1)
    boxes[count :: count + 1] = torch.tensor([0.0, 0.0, 300.0, 301.0])
    return Regions(
        boxes=boxes,
        features=torch.randn(rows, width, generator=rng),
        objectness=torch.rand(rows, generator=rng),
        regionness=torch.rand(rows, generator=rng),
        class_probs=torch.rand(rows, len(CLASSES), generator=rng).softmax(-1),
        class_names=CLASSES,
        word_probs=torch.rand(rows, len(WORDS), generator=rng),
        word_names=WORDS,
        frame=torch.arange(frames).repeat_interleave(count + 1),
        global_features=torch.randn(frames, 6, generator=rng),
        feature_map=torch.randn(frames, 2, 3, 4, generator=rng),
        size=(300, 301),
        fingerprint=fingerprint,
    )


def make_store(path: Path, counts: list[int], **options: bool) -> tuple[RegionStore, dict[str, Regions]]:
    images = {f"photo {at}": made_regions(at, count) for at, count in enumerate(counts)}
    return write_store(path, images.items(), list(images), FINGERPRINT, {"max_regions": 9}, **options), images


def test_what_is_read_is_what_was_written_in_half_precision(tmp_path: Path) -> None:
    store, images = make_store(tmp_path / "store", [3, 0, 7])
    assert store.ids == ("photo 0", "photo 1", "photo 2")
    for name, written in images.items():
        read = store.get(name)
        assert torch.equal(read.boxes, written.boxes)
        assert read.features.dtype == torch.half
        for field in ("features", "objectness", "regionness", "class_probs", "global_features", "feature_map"):
            assert torch.equal(getattr(read, field), getattr(written, field).half()), field
        assert torch.equal(read.frame, written.frame)
        assert (read.size, read.fingerprint) == (written.size, written.fingerprint)
        assert (read.class_names, read.word_names) == (written.class_names, written.word_names)


def test_wide_distributions_keep_their_largest_entries(tmp_path: Path) -> None:
    store, images = make_store(tmp_path / "store", [4])
    written = images["photo 0"].word_probs
    assert written is not None
    written = written.half()
    read = store.get("photo 0", ["word_probs"]).word_probs
    assert read is not None
    assert read.shape == written.shape
    kept = read > 0
    assert kept.sum(1).tolist() == [16] * 5
    assert torch.equal(read[kept], written[kept])
    for row in range(5):
        assert written[row][~kept[row]].max() <= read[row][kept[row]].min()


def test_wide_distributions_are_whole_when_asked(tmp_path: Path) -> None:
    store, images = make_store(tmp_path / "store", [4], dense=True)
    written, read = images["photo 0"].word_probs, store.get("photo 0").word_probs
    assert written is not None
    assert read is not None
    assert torch.equal(read, written.half())


def test_a_reader_gets_only_the_fields_it_asks_for(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path / "store", [3])
    read = store.get("photo 0", ["objectness"])
    assert read.features.shape == (4, 0)
    assert read.class_probs is None
    assert store.batch(["photo 0"]).keys() >= {"features", "class_probs", "global_features"}
    assert "word_probs" not in store.batch(["photo 0"])
    with pytest.raises(DeixisError, match="no 'colour'"):
        store.get("photo 0", ["colour"])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=20),
    max_regions=st.one_of(st.none(), st.integers(1, 10)),
    data=st.data(),
)
def test_a_batch_is_the_padded_single_images(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], max_regions: int | None, data: st.DataObject
) -> None:
    store, images = make_store(tmp_path_factory.mktemp("store") / "store", counts)
    chosen = data.draw(st.lists(st.sampled_from(sorted(images)), min_size=1, max_size=5))
    fields = ["features", "objectness", "regionness", "class_probs", "word_probs", "global_features", "feature_map"]
    batch = RegionBatch(ids=tuple(chosen), **store.batch(chosen, fields, max_regions=max_regions))
    for row, name in enumerate(chosen):
        single = store.get(name)
        if max_regions is not None:
            single = single.top(max_regions)
        count = len(single)
        assert batch.mask[row].tolist() == [at < count for at in range(batch.mask.shape[1])]
        for field in ("boxes", "frame", "features", "objectness", "regionness", "class_probs", "word_probs"):
            padded, alone = getattr(batch, field)[row], getattr(single, field)
            assert torch.equal(padded[:count], alone.to(padded.dtype)), field
            assert not padded[count:].any(), field
        assert batch.sizes[row].tolist() == [300, 301]
        for field in ("global_features", "feature_map"):
            assert torch.equal(getattr(batch, field)[row], getattr(single, field).float()), field


def test_a_batch_of_clips_keeps_the_best_of_each_frame(tmp_path: Path) -> None:
    images = {"clip": made_regions(0, 5, frames=3), "photo": made_regions(1, 2)}
    store = write_store(tmp_path / "store", images.items(), list(images), FINGERPRINT, {})
    batch = store.batch(["clip", "photo"], ["objectness", "global_features"], max_regions=2)
    assert batch["frame"][0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    expected = images["clip"].top(2)
    assert torch.equal(batch["boxes"][0], expected.boxes)
    assert batch["mask"].sum(1).tolist() == [9, 3]
    assert batch["frame_mask"].tolist() == [[True] * 3, [True, False, False]]
    assert not batch["global_features"][1, 1:].any()


READ_ALL = """
import sys
from deixis.regions.store.reader import RegionStore
store = RegionStore.open(sys.argv[1])
print(sum(float(store.batch(store.ids)["features"].double().sum()) for _ in range(20)))
"""


def test_several_processes_read_at_once(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path / "store", [5] * 40)
    call = [sys.executable, "-c", READ_ALL, str(store.path)]
    readers = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    expected = 20 * sum(float(store.get(name).features.double().sum()) for name in store)
    for reader in readers:
        assert float(reader.communicate(timeout=60)[0]) == pytest.approx(expected)


def test_a_store_can_be_sent_to_another_process(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path / "store", [2])
    again = pickle.loads(pickle.dumps(store))
    assert torch.equal(again.get("photo 0").features, store.get("photo 0").features)


def test_a_flipped_bit_is_found_when_touched_and_by_verify(tmp_path: Path) -> None:
    store, images = make_store(tmp_path / "store", [5, 5])
    assert store.verify() == []
    file = tmp_path / "store" / "00000.safetensors"
    raw = bytearray(file.read_bytes())
    target = images["photo 1"].features.half().numpy().tobytes()
    raw[raw.index(target) + 3] ^= 1
    file.write_bytes(raw)
    damaged = RegionStore.open(tmp_path / "store")
    assert torch.equal(damaged.get("photo 0").features, images["photo 0"].features.half())
    with pytest.raises(BadFileError, match=r"00000\.safetensors is damaged"):
        damaged.get("photo 1")
    assert torch.equal(damaged.get("photo 1", ["objectness"]).boxes, images["photo 1"].boxes)
    assert ["00000.safetensors" in line for line in damaged.verify()] == [True]


@pytest.mark.parametrize("harm", ["cut", "gone", "header", "index"])
def test_a_damaged_store_is_refused_by_name(tmp_path: Path, harm: str) -> None:
    path = make_store(tmp_path / "store", [5, 5])[0].path
    file = path / "00000.safetensors"
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:-1])
    elif harm == "gone":
        file.unlink()
    elif harm == "header":
        raw = file.read_bytes()
        file.write_bytes(b"\xff" * 30 + raw[30:])
    else:
        file = path / "index.json"
        file.write_text(file.read_text().replace("photo 1", "photo 9"))
    with pytest.raises(BadFileError, match=file.name):
        RegionStore.open(path).get("photo 0")


def test_a_store_of_another_extractor_is_refused(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path / "store", [1])
    store.require(FINGERPRINT)
    with pytest.raises(DeixisError, match="holds regions of made:1, expected lite:abc"):
        store.require("lite:abc")


def test_a_shard_of_another_store_is_refused(tmp_path: Path) -> None:
    path = make_store(tmp_path / "store", [1])[0].path
    stranger = replace(made_regions(0, 1), fingerprint="made:2")
    other = write_store(tmp_path / "other", [("photo 0", stranger)], ["photo 0"], "made:2", {}).path
    data = (other / "00000.safetensors").read_bytes()
    assert len(data) == (path / "00000.safetensors").stat().st_size
    (path / "00000.safetensors").write_bytes(data)
    with pytest.raises(BadFileError, match="does not belong"):
        RegionStore.open(path).get("photo 0")


@pytest.mark.parametrize("name", ["frame", "boxes", "objectness"])
def test_a_header_that_does_not_name_what_the_shards_hold_is_refused(tmp_path: Path, name: str) -> None:
    path = make_store(tmp_path / "store", [3, 5])[0].path
    header = json.loads((path / "store.json").read_text())
    header["widths"][f"{name}?"] = header["widths"].pop(name)
    (path / "store.json").write_text(json.dumps(header))
    with pytest.raises(BadFileError, match="does not belong"):
        RegionStore.open(path).batch(["photo 0", "photo 1"])


@pytest.mark.parametrize(("name", "shape"), [("frame", (12, 1)), ("boxes", (12, 5)), ("objectness", (12, 2))])
def test_rows_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    arrays = encode([made_regions(0, 5), made_regions(1, 5)])
    assert len(arrays[name]) == shape[0]
    arrays[name] = np.zeros(shape, dtype=arrays[name].dtype)
    with pytest.raises(BadFileError, match=f"a row of {name} has the shape"):
        Shard.parse(pack(arrays, {}), "made")


def test_things_that_are_no_store_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="not a region store"):
        RegionStore.open(tmp_path)
    path = make_store(tmp_path / "store", [1])[0].path
    header = json.loads((path / "store.json").read_text())
    (path / "store.json").write_text(json.dumps(header | {"version": 99}))
    with pytest.raises(BadFileError, match="version 99"):
        RegionStore.open(path)
    (path / "store.json").write_text("{")
    with pytest.raises(BadFileError, match="broken JSON"):
        RegionStore.open(path)


def test_an_unknown_id_is_named(tmp_path: Path) -> None:
    store, _ = make_store(tmp_path / "store", [1])
    assert "photo 7" not in store
    with pytest.raises(DeixisError, match="photo 7"):
        store.get("photo 7")


def test_bytes_do_not_depend_on_order_or_interruption(tmp_path: Path) -> None:
    images: dict[str, Regions | str] = {f"{at:03}": made_regions(at, at % 5) for at in range(40)}
    images["007"] = "cannot be read"
    ids = list(images)
    write_store(tmp_path / "whole", images.items(), ids, FINGERPRINT, {"a": 1})

    for stop in (0, 1, 5, None):  # each round leaves a few parts, in reverse order
        writer = StoreWriter(tmp_path / "pieces", ids, FINGERPRINT, {"a": 1})
        for number in writer.pending[::-1][:stop]:
            writer.add(make_part(number, [(name, images[name]) for name in writer.part_ids(number)], FINGERPRINT))
        (tmp_path / "pieces" / ".00000.safetensors.1.partial").write_bytes(b"half")
        writer.close()
    writer = StoreWriter(tmp_path / "pieces", ids, FINGERPRINT, {"a": 1})
    assert writer.pending == []
    store = writer.finish()
    assert folder_bytes(tmp_path / "pieces") == folder_bytes(tmp_path / "whole")
    assert store.header.failed == ({"id": "007", "reason": "cannot be read"},)
    assert "007" not in store
    assert len(store) == 39


def folder_bytes(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_many_shards_join_to_one_store(tmp_path: Path) -> None:
    images: dict[str, Regions | str] = {f"{at:03}": made_regions(at, 1 + at % 3) for at in range(22)}
    for name in list(images)[4:8]:
        images[name] = "cannot be read"  # a whole shard without an image
    writer = StoreWriter(tmp_path / "store", list(images), FINGERPRINT, {}, per_shard=4, per_part=2)
    for number in writer.pending:
        writer.add(make_part(number, [(name, images[name]) for name in writer.part_ids(number)], FINGERPRINT))
    store = writer.finish()
    assert [shard["images"] for shard in store.header.shards] == [4, 0, 4, 4, 4, 2]
    assert store.verify() == []
    for name, regions in images.items():
        if isinstance(regions, Regions):
            assert torch.equal(store.get(name).boxes, regions.boxes)
    assert store.word_names == WORDS


def test_a_part_cut_short_by_a_crash_is_made_again(tmp_path: Path) -> None:
    images = {f"{at:03}": made_regions(at) for at in range(12)}
    writer = StoreWriter(tmp_path / "store", list(images), FINGERPRINT, {})
    for number in (0, 1):
        writer.add(make_part(number, [(name, images[name]) for name in writer.part_ids(number)], FINGERPRINT))
    writer.close()
    file = tmp_path / "store" / "parts" / "0000001.safetensors"
    raw = file.read_bytes()
    file.write_bytes(raw[:-100] + bytes(byte ^ 255 for byte in raw[-100:]))
    assert StoreWriter(tmp_path / "store", list(images), FINGERPRINT, {}).pending == [1, 2]


def test_a_job_that_was_killed_before_it_said_what_it_is_goes_on(tmp_path: Path) -> None:
    (tmp_path / "store" / "parts").mkdir(parents=True)
    (tmp_path / "store" / ".lock").touch()
    assert len(make_store(tmp_path / "store", [3, 5])[0]) == 2
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(DeixisError, match="exists and is not a region store"):
        make_store(tmp_path / "other", [3])


def test_another_job_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", ["a", "b"], FINGERPRINT, {"max_regions": 5})
    with pytest.raises(DeixisError, match=rf"is being written by process {os.getpid()} on "):
        StoreWriter(tmp_path / "store", ["a", "b"], FINGERPRINT, {"max_regions": 5})
    writer.close()
    with pytest.raises(DeixisError, match="unfinished"):
        RegionStore.open(tmp_path / "store")
    with pytest.raises(DeixisError, match="was begun with settings"):
        StoreWriter(tmp_path / "store", ["a", "b"], FINGERPRINT, {"max_regions": 6})
    with pytest.raises(DeixisError, match="was begun with fingerprint"):
        StoreWriter(tmp_path / "store", ["a", "b"], "other:1", {"max_regions": 5})
    with pytest.raises(DeixisError, match="was begun with"):
        StoreWriter(tmp_path / "store", ["a", "c"], FINGERPRINT, {"max_regions": 5})
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("x")
    with pytest.raises(DeixisError, match="not a region store"):
        StoreWriter(tmp_path / "letters", ["a"], FINGERPRINT, {})
    with pytest.raises(DeixisError, match="'a' occurs twice"):
        StoreWriter(tmp_path / "new", ["a", "b", "a"], FINGERPRINT, {})


def test_regions_that_do_not_fit_half_precision_fail_alone(tmp_path: Path) -> None:
    good, huge = made_regions(0), made_regions(1)
    huge = replace(huge, features=huge.features * 1e6)
    stranger = made_regions(2, fingerprint="made:2")
    images = [("a", good), ("b", huge), ("c", stranger)]
    store = write_store(tmp_path / "store", images, ["a", "b", "c"], FINGERPRINT, {})
    assert store.ids == ("a",)
    assert [(item["id"], item["reason"].split()[0]) for item in store.header.failed] == [
        ("b", "features"),
        ("c", "its"),
    ]


def test_no_image_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match=r"no image could be read: a: cut off"):
        write_store(tmp_path / "store", [("a", "cut off")], ["a"], FINGERPRINT, {})
