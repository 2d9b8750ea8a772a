"""Feature sets of other projects, written here in their formats, are read as what they hold."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from deixis.errors import BadFileError, DeixisError
from deixis.regions.imports import import_regions
from deixis.regions.store.reader import RegionStore

h5py = pytest.importorskip("h5py", reason="needs h5py: pip install 'deixis[imports]'")

NAMES = ["dog", "grass", "red ball"]
Array = NDArray[np.float32]


def arrays(seed: int, count: int = 4, width: int = 6) -> tuple[Array, Array, Array]:
    """Return boxes, features and scores with values that half precision holds exactly."""
    rng = np.random.default_rng(seed)
    boxes = np.sort(rng.integers(0, 100, (count, 2, 2)), axis=1).reshape(count, 4).astype(np.float32)
    features = (rng.integers(-64, 64, (count, width)) / 8).astype(np.float32)
    scores = (rng.permutation(count) / 8 + 0.125).astype(np.float32)
    return boxes, features, scores


def b64(array: NDArray[np.generic]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def names_file(folder: Path) -> Path:
    (folder / "names.txt").write_text("\n".join(NAMES) + "\n")
    return folder / "names.txt"


def check_whole(store: RegionStore, name: str, features: Array, size: tuple[int, int]) -> None:
    read = store.get(name)
    assert read.size == size
    assert read.boxes[-1].tolist() == [0, 0, *size]
    np.testing.assert_allclose(read.features[-1].float(), features.mean(0), atol=2e-3)
    assert read.objectness[-1] == 0


def test_original_bottom_up_tsv(tmp_path: Path) -> None:
    rows = []
    for name, seed in (("42", 0), ("7", 1), ("42", 2)):
        boxes, features, _ = arrays(seed, 3 + seed)
        rows.append("\t".join([name, "120", "110", str(len(boxes)), b64(boxes), b64(features)]))
    (tmp_path / "a.tsv").write_text(rows[0] + "\n")
    (tmp_path / "b.tsv").write_text(rows[1] + "\n" + rows[2] + "\n")
    store, notes = import_regions(
        [tmp_path / "a.tsv", tmp_path / "b.tsv"], tmp_path / "store", format="bottom-up-tsv", name="vg"
    )
    assert store.ids == ("42", "7")
    assert store.fingerprint == "import:bottom-up-tsv:vg"
    assert "1 images occur more than once" in notes[0]
    boxes, features, _ = arrays(0, 3)
    read = store.get("42")
    np.testing.assert_array_equal(read.boxes[:-1], boxes)
    np.testing.assert_array_equal(read.features[:-1], features)
    assert read.objectness[:-1].tolist() == [1, 1, 1]
    check_whole(store, "42", features, (120, 110))


def test_bottom_up_tsv_with_labels_is_sorted_by_score(tmp_path: Path) -> None:
    boxes, features, scores = arrays(3)
    labels = np.array([2, 0, 1, 0], dtype=np.int64)
    columns = ["x", "110", "120", b64(labels), b64(scores), b64(labels), b64(scores), "4", b64(boxes), b64(features)]
    (tmp_path / "a.tsv").write_text("\t".join(columns) + "\n")
    store, _ = import_regions(
        [tmp_path / "a.tsv"], tmp_path / "store", format="bottom-up-tsv", class_names=names_file(tmp_path)
    )
    order = np.argsort(-scores)
    read = store.get("x")
    np.testing.assert_array_equal(read.objectness[:-1], scores[order])
    np.testing.assert_array_equal(read.boxes[:-1], boxes[order])
    assert read.class_probs is not None
    assert read.class_names == tuple(NAMES)
    for row, at in enumerate(order):
        expected = np.zeros(3)
        expected[labels[at]] = scores[at]
        np.testing.assert_array_equal(read.class_probs[row], expected)
    assert not read.class_probs[-1].any()
    check_whole(store, "x", features, (120, 110))


def test_damaged_tsv_rows_are_left_out_and_other_files_refused(tmp_path: Path) -> None:
    boxes, features, _ = arrays(0)
    good = ["good", "120", "110", "4", b64(boxes), b64(features)]
    short = ["short", "120", "110", "5", b64(boxes), b64(features)]
    garbled = ["garbled", "120", "110", "4", "*" + b64(boxes), b64(features)]
    (tmp_path / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in (good, short, garbled)))
    store, _ = import_regions([tmp_path / "a.tsv"], tmp_path / "store", format="bottom-up-tsv")
    assert store.ids == ("good",)
    assert [item["id"] for item in store.header.failed] == ["short", "garbled"]
    (tmp_path / "b.tsv").write_text("id\tcaption\n1\ta dog\n")
    with pytest.raises(BadFileError, match="not a bottom-up TSV"):
        import_regions([tmp_path / "b.tsv"], tmp_path / "none", format="bottom-up-tsv")
    with pytest.raises(BadFileError, match=r"nothing\.tsv"):
        import_regions([tmp_path / "nothing.tsv"], tmp_path / "none", format="bottom-up-tsv")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("turned", [False, True])
def test_bottom_up_npz(tmp_path: Path, turned: bool) -> None:
    boxes, features, _ = arrays(5)
    folder = tmp_path / "npz"
    folder.mkdir()
    # Some tools pickle the labels into the member 'info'; reading it would run whatever is in the pickle.
    info = np.array({"objects_id": [1]}, dtype=object)
    held = features.T if turned else features
    np.savez(folder / "77.npz", x=held, bbox=boxes, num_bbox=4, image_w=120, image_h=110, info=info)
    probs = np.full((4, 4), 0.125, dtype=np.float32)
    probs[:, 2] = [0.25, 0.5, 0.375, 0.75]
    np.savez(folder / "78.npz", x=features, bbox=boxes, image_w=120, image_h=110, cls_prob=probs)
    (folder / "bad.npz").write_bytes(b"PK\x03\x04 not a zip")
    store, notes = import_regions([folder], tmp_path / "store", format="bottom-up-npz")
    assert store.ids == ("77", "78")
    assert "unpickling" in notes[0]
    assert "bad.npz" in store.header.failed[0]["reason"]
    np.testing.assert_array_equal(store.get("77").features[:-1], features)
    assert store.get("78").objectness.tolist() == [0.75, 0.5, 0.375, 0.25, 0]
    check_whole(store, "77", features, (120, 110))


def write_gvd(folder: Path, depth: int) -> tuple[list[Path], dict[str, tuple[NDArray[np.float32], Array]]]:
    count, frames = (4, 1) if depth == 6 else (6, 3)
    held = {}
    table = np.zeros((2, count + 2, depth), dtype=np.float32)
    (folder / "features").mkdir()
    for at, name in enumerate(("a_1", "b_2")):
        boxes, features, scores = arrays(at, count)
        table[at, :count, :4] = boxes
        table[at, :count, -1] = scores
        table[at, :count, -2] = [0, 1, 2, 3, 1, 2][:count]
        if depth == 7:
            table[at, :count, 4] = [0, 0, 1, 1, 2, 2]
            np.save(folder / "features" / f"{name}.npy", features.reshape(frames, count // frames, -1))
        else:
            np.save(folder / "features" / f"{name}.npy", features)
        held[name] = (table[at, :count].copy(), features)
    with h5py.File(folder / "proposals.h5", "w") as file:
        file["dets_labels"] = table
        file["nms_num"] = np.array([count, count])
        file["dets_num"] = np.array([count, count])
    (folder / "dic.json").write_text(json.dumps({"images": [{"id": "a_1"}, {"id": "b_2"}], "wtoi": {}}))
    return [folder / "proposals.h5", folder / "dic.json", folder / "features"], held


def test_gvd_photos_with_sizes_from_the_photos(tmp_path: Path) -> None:
    paths, held = write_gvd(tmp_path, 6)
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (120, 110)).save(tmp_path / "photos" / "a_1.jpg")
    store, _ = import_regions(
        paths, tmp_path / "store", format="gvd", class_names=names_file(tmp_path), sizes=tmp_path / "photos"
    )
    assert store.ids == ("a_1",)
    assert "no photo b_2" in store.header.failed[0]["reason"]
    table, features = held["a_1"]
    order = np.argsort(-table[:, 5])
    read = store.get("a_1")
    np.testing.assert_array_equal(read.boxes[:-1], table[order, :4])
    np.testing.assert_array_equal(read.features[:-1], features[order])
    assert read.class_probs is not None
    for row, at in enumerate(order):
        label = int(table[at, 4])
        assert read.class_probs[row].sum() == (table[at, 5] if label else 0)  # class 0 is the background
        assert not label or read.class_probs[row, label - 1] == table[at, 5]
    check_whole(store, "a_1", features, (120, 110))


def test_gvd_clips_have_a_whole_region_per_frame(tmp_path: Path) -> None:
    paths, held = write_gvd(tmp_path, 7)
    (tmp_path / "sizes.json").write_text(json.dumps({"a_1": [120, 110], "b_2": [90, 80]}))
    store, _ = import_regions(paths, tmp_path / "store", format="gvd", sizes=tmp_path / "sizes.json")
    read = store.get("b_2")
    assert read.frame.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert read.boxes[[2, 5, 8]].tolist() == [[0, 0, 90, 80]] * 3
    _, features = held["b_2"]
    assert read.global_features is not None
    np.testing.assert_allclose(read.global_features.float(), features.reshape(3, 2, -1).mean(1), atol=2e-3)


def test_gvd_needs_all_its_files(tmp_path: Path) -> None:
    paths, _ = write_gvd(tmp_path, 6)
    with pytest.raises(DeixisError, match="--sizes"):
        import_regions(paths, tmp_path / "store", format="gvd")
    with pytest.raises(DeixisError, match="proposal file"):
        import_regions(paths[1:], tmp_path / "store", format="gvd", sizes=tmp_path)
    (tmp_path / "proposals.h5").write_bytes(b"\x89HDF broken")
    with pytest.raises(BadFileError, match="HDF5"):
        import_regions(paths, tmp_path / "store", format="gvd", sizes=tmp_path)


def test_plain_npz(tmp_path: Path) -> None:
    boxes, features, scores = arrays(9)
    probs = np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]
    folder = tmp_path / "npz"
    folder.mkdir()
    np.savez(folder / "p.npz", boxes=boxes, features=features, size=[120, 110], objectness=scores, class_probs=probs)
    np.savez(folder / "no size.npz", boxes=boxes, features=features)
    np.savez(folder / "odd.npz", boxes=boxes[:3], features=features, size=[120, 110])
    np.savez(folder / "nan.npz", boxes=boxes, features=features * np.nan, size=[120, 110])
    store, _ = import_regions([folder], tmp_path / "store", format="npz", class_names=names_file(tmp_path))
    assert store.ids == ("p",)
    reasons = {item["id"]: item["reason"] for item in store.header.failed}
    assert "has no size" in reasons["no size"]
    assert "do not go together" in reasons["odd"]
    assert "not finite" in reasons["nan"]
    order = np.argsort(-scores)
    read = store.get("p")
    assert read.class_probs is not None
    np.testing.assert_array_equal(read.class_probs[:-1], probs[order])
    np.testing.assert_array_equal(read.features[:-1], features[order])


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match="unknown format 'pickle'; there are bottom-up-tsv"):
        import_regions([tmp_path], tmp_path / "store", format="pickle")


def test_one_damaged_file_is_counted_and_the_rest_imported(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        boxes, features, _ = arrays(ord(name))
        np.savez_compressed(folder / f"{name}.npz", boxes=boxes, features=features, size=np.array([120, 110]))
    damaged = bytearray((folder / "b.npz").read_bytes())
    damaged[60:100] = b"\xff" * 40
    (folder / "b.npz").write_bytes(bytes(damaged))
    boxes, features, _ = arrays(9, width=5)
    np.savez(folder / "c.npz", boxes=boxes, features=features, size=np.array([120, 110]))
    np.savez(folder / "d.npz", boxes=boxes, features=np.float64(1e300) * features, size=np.array([120, 110]))
    store, _ = import_regions([folder], tmp_path / "store", format="npz")
    assert store.ids == ("a",)
    reasons = {failed["id"]: failed["reason"] for failed in store.header.failed}
    assert "b.npz is not a readable npz file" in reasons["b"]
    assert reasons["c"] == "its features have 5 numbers, those of a have 6"
    assert "not finite" in reasons["d"]


def test_gvd_features_of_no_shape_are_counted(tmp_path: Path) -> None:
    paths, _ = write_gvd(tmp_path, 6)
    np.save(tmp_path / "features" / "a_1.npy", np.array(5.0))
    (tmp_path / "sizes.json").write_text(json.dumps({"a_1": [120, 110], "b_2": [120, 110]}))
    store, _ = import_regions(paths, tmp_path / "store", format="gvd", sizes=tmp_path / "sizes.json")
    assert store.ids == ("b_2",)
    assert "features of shape ()" in store.header.failed[0]["reason"]


@pytest.mark.parametrize("part", [b"TREE", b"HEAP", b"SNOD"])
def test_a_damaged_hdf5_is_named(part: bytes, tmp_path: Path) -> None:
    """Each part that leads to the arrays is broken by itself, wherever this version of HDF5 puts it."""
    paths, _ = write_gvd(tmp_path, 6)
    (tmp_path / "sizes.json").write_text(json.dumps({"a_1": [120, 110], "b_2": [120, 110]}))
    good = paths[0].read_bytes()
    assert part in good
    paths[0].write_bytes(good.replace(part, b"\xff\xff\xff\xff"))
    with pytest.raises(BadFileError, match=r"proposals\.h5"):
        import_regions(paths, tmp_path / "store", format="gvd", sizes=tmp_path / "sizes.json")
    assert not (tmp_path / "store" / "store.json").exists()


def test_hdf5_arrays_of_other_files_are_named(tmp_path: Path) -> None:
    paths, _ = write_gvd(tmp_path, 6)
    (tmp_path / "sizes.json").write_text(json.dumps({"a_1": [120, 110], "b_2": [120, 110]}))
    paths[0].rename(tmp_path / "other.h5")
    with h5py.File(paths[0], "w") as file:
        file["dets_labels"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "dets_labels")
        file["nms_num"] = np.array([1, 1])
    with pytest.raises(BadFileError, match="lie in other files"):
        import_regions(paths, tmp_path / "store2", format="gvd", sizes=tmp_path / "sizes.json")
