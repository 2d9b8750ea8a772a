from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.fuzz import attacks
from deixis.errors import BadFileError
from deixis.images import image_size, load_image
from deixis.reading.images import MAX_SCANS, MAX_SEGMENTS, check_image, exif_is_plain

EXAMPLES = Path(__file__).parents[2] / "examples" / "photos"

BOMBS = {
    "scans": (attacks.many_scans(256, MAX_SCANS + 1), "more than 100 scans"),
    "segments": (attacks.many_segments(400_000), "more than 5,000 segments"),
    "stray bytes": (attacks.stray_bytes(200_000), "between the segments of its header"),
    "exif": (attacks.overlapping_exif(2000, 30_000), "lie over each other"),
    "chunks": (attacks.many_chunks(200_000), "more than 100,000 chunks"),
    "blocks": (attacks.many_blocks(50_000), "more than 10,000 blocks"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_within_a_moment(name: str, tmp_path: Path) -> None:
    data, says = BOMBS[name]
    (tmp_path / "photo").write_bytes(data)
    began = time.process_time()
    for source in (data, tmp_path / "photo"):
        with pytest.raises(BadFileError, match=says):
            load_image(source)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("name", ["segments", "stray bytes", "exif", "chunks", "blocks"])
def test_headers_are_counted_before_the_size_is_read(name: str) -> None:
    data, says = BOMBS[name]
    with pytest.raises(BadFileError, match=says):
        image_size(data)


def test_the_size_of_a_photo_of_many_scans_needs_none_of_them() -> None:
    assert image_size(attacks.many_scans(256, 200)) == (256, 256)


def test_a_bomb_with_one_part_less_is_read() -> None:
    # the attacks are real files: below the limits the decoder takes every one of them
    assert load_image(attacks.many_scans(64, MAX_SCANS - 1)).size == (64, 64)
    assert load_image(attacks.many_segments(MAX_SEGMENTS - 100)).size == (64, 48)
    assert load_image(attacks.many_chunks(1000)).size == (64, 48)
    assert load_image(attacks.many_blocks(1000)).size == (64, 48)


def test_photos_of_cameras_and_programs_pass() -> None:
    for path in sorted(EXAMPLES.glob("*.jpg")):
        check_image(path.read_bytes(), path.name)
        with Image.open(path) as image:
            for options in ({"progressive": True}, {"optimize": True}, {"quality": 100, "subsampling": 0}):
                file = io.BytesIO()
                image.save(file, "JPEG", **options)
                check_image(file.getvalue(), path.name)
                assert load_image(file.getvalue()).size == image.size


def test_a_photo_with_a_film_behind_it_is_read() -> None:
    # phones put a clip behind the end of the picture; its bytes look like thousands of scans
    check_image(attacks.photo() + b"\xff\xda" * 100_000, "film.jpg")
    # and a picture may hold another one in its header
    thumbnail = attacks.segment(0xE2, b"\xff\xda" * 30_000)
    good = attacks.photo()
    check_image(good[:2] + thumbnail * 4 + good[2:], "pictures.jpg")


def test_exif_of_cameras_is_plain_and_damaged_exif_too() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "x" * 5000
    assert exif_is_plain(exif.tobytes())
    assert exif_is_plain(b"")
    assert exif_is_plain(b"II*\0\xff\xff\xff\xff")
    assert exif_is_plain(b"MM\0*\0\0\0\x08\xff\xff")


def test_webp_may_have_half_the_pixels() -> None:
    data = attacks.photo("WEBP", (100, 100))
    assert load_image(data, max_pixels=20_000).size == (100, 100)
    with pytest.raises(BadFileError, match="at most 7,500"):
        load_image(data, max_pixels=15_000)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_is_laid_over_white_band_by_band(mode: str) -> None:
    made = Image.new("RGBA", (30, 700), (200, 10, 10, 128))
    made.putpixel((3, 600), (0, 0, 0, 0))
    data = io.BytesIO()
    made.convert(mode).save(data, "PNG", **({"transparency": 0} if mode == "P" else {}))
    with Image.open(io.BytesIO(data.getvalue())) as image:
        whole = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA")).convert("RGB")
    assert load_image(data.getvalue()).tobytes() == whole.tobytes()
