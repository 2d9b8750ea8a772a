"""Extraction of photos and clips into a store: bad photos, kills, engines."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from PIL import Image

from deixis.errors import BadFileError, DeixisError
from deixis.regions.extraction.extract import Progress, extract, folder_images
from deixis.regions.extraction.tasks import Settings, join_frames
from deixis.regions.selective_search import SelectiveSearch
from deixis.regions.store.reader import RegionStore
from deixis.types import ClipSegment, ImageFile

SETTINGS = Settings(extractor="selective-search", max_regions=20)


def picture(seed: int, size: tuple[int, int] = (64, 48)) -> Image.Image:
    """Return flat coloured rectangles on a flat ground."""
    rng = np.random.default_rng(seed)
    pixels = np.zeros((size[1], size[0], 3), dtype=np.uint8) + rng.integers(0, 255, 3).astype(np.uint8)
    for _ in range(4):
        x, y = rng.integers(0, size[0] - 16), rng.integers(0, size[1] - 16)
        pixels[y : y + rng.integers(8, 16), x : x + rng.integers(8, 16)] = rng.integers(0, 255, 3)
    return Image.fromarray(pixels)


def folder_bytes(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def png_header(width: int, height: int) -> bytes:
    """Return a PNG that claims a size and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_every_kind_of_photo_is_extracted_or_named(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    picture(0).save(photos / "plain.png")
    picture(1).convert("L").save(photos / "grey.png")
    picture(2).convert("CMYK").save(photos / "cmyk.jpg")
    picture(3).convert("P").save(photos / "palette.gif")
    picture(4).convert("RGBA").save(photos / "alpha.webp")
    picture(5, (17, 300)).save(photos / "narrow.png")
    Image.new("RGB", (1, 1)).save(photos / "one pixel.png")
    buffer = io.BytesIO()
    picture(6, (300, 300)).save(buffer, "JPEG")
    (photos / "cut.jpg").write_bytes(buffer.getvalue()[:400])
    (photos / "noise.jpg").write_bytes(bytes(range(256)))
    (photos / "huge.png").write_bytes(png_header(30_000, 30_000))
    (photos / "empty.png").write_bytes(b"")
    images = folder_images(photos)
    store = extract(list(images), images.__getitem__, tmp_path / "store", SETTINGS, processes=0)
    assert store.ids == ("alpha", "cmyk", "grey", "narrow", "one pixel", "palette", "plain")
    reasons = {item["id"]: item["reason"] for item in store.header.failed}
    assert reasons.keys() == {"cut", "noise", "huge", "empty"}
    assert "pixels" in reasons["huge"]
    for name in store:
        regions = store.get(name)
        width, height = regions.size
        assert regions.boxes[-1].tolist() == [0, 0, width, height]
        assert (regions.boxes >= 0).all()
        assert (regions.boxes <= torch.tensor([width, height, width, height])).all()
        assert 1 <= len(regions) <= 21
        assert torch.isfinite(regions.features).all()
    assert len(store.get("one pixel")) == 1


def test_a_folder_names_photos_by_their_path(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/one.png", "one.png", "two.png", "two.jpg", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert sorted(folder_images(tmp_path)) == ["a/one", "one", "two.jpg", "two.png"]


def test_processes_make_the_same_bytes_and_tell_how_far_they_are(tmp_path: Path) -> None:
    photos = {f"{at:02}": ImageFile(Path(f"archive/{at}"), _png_reader(at)) for at in range(20)}
    seen: list[Progress] = []
    extract(list(photos)[::-1], photos.__getitem__, tmp_path / "a", SETTINGS, processes=0)
    extract(list(photos), photos.__getitem__, tmp_path / "b", SETTINGS, processes=2, progress=seen.append)
    assert folder_bytes(tmp_path / "a") == folder_bytes(tmp_path / "b")
    assert sorted(step.done for step in seen) == [step.done for step in seen]
    assert (seen[-1].done, seen[-1].total, seen[-1].remaining) == (20, 20, 0)
    again: list[Progress] = []
    extract(list(photos), photos.__getitem__, tmp_path / "b", SETTINGS, processes=2, progress=again.append)
    assert again == []


def _png_reader(seed: int) -> Callable[[], bytes]:
    buffer = io.BytesIO()
    picture(seed).save(buffer, "PNG")
    return buffer.getvalue


def test_an_example_that_cannot_be_found_is_counted(tmp_path: Path) -> None:
    picture(0).save(tmp_path / "a.png")

    def find(name: str) -> ImageFile:
        if name == "b":
            raise BadFileError("its annotation is damaged")
        return ImageFile(tmp_path / f"{name}.png")

    store = extract(["a", "b", "c"], find, tmp_path / "store", SETTINGS, processes=0)
    assert store.ids == ("a",)
    assert store.header.failed[0] == {"id": "b", "reason": "its annotation is damaged"}


def test_a_clip_gives_regions_of_each_frame(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for at in range(30):
            shown = av.VideoFrame.from_ndarray(np.asarray(picture(at // 10)), format="rgb24")
            container.mux(stream.encode(shown))
        container.mux(stream.encode())
    sources = {"clip": ClipSegment(path, 0.0, 3.0, frames=3), "none": ClipSegment(None, 0.0, 3.0)}
    store = extract(list(sources), sources.__getitem__, tmp_path / "store", SETTINGS, processes=0)
    assert store.ids == ("clip",)
    assert "no clip" in store.header.failed[0]["reason"]
    regions = store.get("clip")
    assert regions.frames == 3
    assert regions.global_features is not None
    assert regions.global_features.shape[0] == 3
    for frame in range(3):
        own = regions.boxes[regions.frame == frame]
        assert own[-1].tolist() == [0, 0, 64, 48]


def test_frames_join_in_order() -> None:
    pixels = [np.asarray(picture(seed)) for seed in range(3)]
    single = SelectiveSearch().extract(pixels, max_regions=5)
    clip = join_frames(single)
    for number, regions in enumerate(single):
        rows = clip.frame == number
        assert torch.equal(clip.boxes[rows], regions.boxes)
        assert torch.equal(clip.features[rows], regions.features)
    assert clip.feature_map is not None
    assert clip.feature_map.shape[0] == 3


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    no_photos: dict[str, ImageFile] = {}
    with pytest.raises(DeixisError, match="no images"):
        extract([], no_photos.__getitem__, tmp_path / "store", SETTINGS)
    with pytest.raises(DeixisError, match="unknown extractor 'yolo'; there are lite"):
        extract(["a"], no_photos.__getitem__, tmp_path / "store", Settings(extractor="yolo"))
    with pytest.raises(DeixisError, match="0"):
        Settings(max_regions=0)
    assert not (tmp_path / "store").exists()


def _command(photos: Path, store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "deixis", "regions", "extract", str(photos), "-o", str(store), "--json",
            "--extractor", "selective-search", "--max-regions", "30", "--processes", "1", *more]  # fmt: skip


@pytest.fixture
def real_photos(flickr8k: Path | None, scenes: Path, tmp_path: Path) -> Path:
    """Twelve photos (or drawn scenes) in a folder: three parts of work."""
    (tmp_path / "photos").mkdir()
    images = (flickr8k / "images").iterdir() if flickr8k else (scenes / "train").glob("*.png")
    for file in sorted(images)[:12]:
        shutil.copy(file, tmp_path / "photos")
    return tmp_path / "photos"


@pytest.mark.recipe
def test_killed_twice_and_resumed_the_store_is_byte_identical(real_photos: Path, tmp_path: Path) -> None:
    subprocess.run(_command(real_photos, tmp_path / "whole"), check=True, capture_output=True)
    killed = tmp_path / "killed"
    left = []
    for parts in (1, 2):
        process = subprocess.Popen(
            _command(real_photos, killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 300
        while len(list(killed.glob("parts/*.safetensors"))) < parts:
            assert process.poll() is None, "finished before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        left.append({file.name: file.stat().st_mtime_ns for file in killed.glob("parts/*.safetensors")})
        with pytest.raises(BadFileError, match="unfinished"):
            RegionStore.open(killed)
    kept = {name: stamp for name, stamp in left[1].items() if name in left[0]}
    assert kept == left[0], "a finished part was made again"
    done = subprocess.run(_command(real_photos, killed), check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["resumed"] >= 4 * len(left[1])
    assert folder_bytes(killed) == folder_bytes(tmp_path / "whole")


@pytest.mark.recipe
def test_ray_makes_the_same_bytes(real_photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="needs Ray: pip install 'deixis[ray]'")
    subprocess.run(_command(real_photos, tmp_path / "local"), check=True, capture_output=True)
    done = subprocess.run(
        _command(real_photos, tmp_path / "ray", "--engine", "ray", "--processes", "2"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["images"] == 12
    assert folder_bytes(tmp_path / "ray") == folder_bytes(tmp_path / "local")


@pytest.mark.recipe
def test_the_command_line_reports_errors_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for arguments, word in (
        (["extract", str(tmp_path / "photos"), "-o", str(tmp_path / "s")], "photos"),
        (["info", str(tmp_path)], "not a region store"),
        (["extract", str(tmp_path / "nowhere"), "-o", str(tmp_path / "s")], "nowhere"),
        (["import", str(tmp_path / "photos"), "-o", str(tmp_path / "s"), "--format", "npz"], ".npz"),
    ):
        done = subprocess.run([sys.executable, "-m", "deixis", "regions", *arguments], capture_output=True, text=True)
        assert done.returncode == 2
        assert word in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert not (tmp_path / "s").exists()
