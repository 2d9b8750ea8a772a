"""onnxruntime-web, which runs ONNX files in a browser: one pinned version, from what npm packed, never fetched."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

from deixis.errors import BadFileError, DeixisError
from deixis.reading.files import read_bytes

VERSION = "1.30.0"
PACKED = f"onnxruntime-web-{VERSION}.tgz"
"""What ``npm pack`` calls its file."""
FILES = {
    "ort.wasm.bundle.min.mjs": "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    "ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
"""SHA-256 of what a page needs of it; both lie in the package's ``dist``."""
_LARGEST = 64 * 2**20


def runtime_files(given: Path | None) -> dict[str, bytes]:
    """Return the files of onnxruntime-web by name, each of the pinned version.

    Args:
        given: The packed file, an unpacked package, or a folder with ``node_modules``; None looks in this folder.
    """
    place = _find(Path() if given is None else given)
    if place is None:
        where = "here" if given is None else f"at {given}"
        raise DeixisError(
            f"there is no onnxruntime-web {where}: `npm pack onnxruntime-web@{VERSION}` fetches it, "
            f"then add --runtime {PACKED}"
        )
    files = _packed(place) if place.is_file() else {name: read_bytes(place / "dist" / name) for name in FILES}
    for name, expected in FILES.items():
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise BadFileError(
                f"{name} in {place} is not that of onnxruntime-web {VERSION} (another checksum): "
                f"`npm pack onnxruntime-web@{VERSION}` fetches the right one"
            )
    return files


def _find(given: Path) -> Path | None:
    """Return the packed file or the package's folder."""
    if given.is_file():
        return given
    folders = (given, given / "package", given / "onnxruntime-web", given / "node_modules" / "onnxruntime-web")
    whole = (folder for folder in folders if all((folder / "dist" / name).is_file() for name in FILES))
    packed = given / PACKED
    return next(whole, packed if packed.is_file() else None)


def _packed(path: Path) -> dict[str, bytes]:
    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = member.name.removeprefix("package/dist/")
                if name in FILES and member.isfile() and member.size <= _LARGEST:
                    inside = archive.extractfile(member)
                    found[name] = inside.read() if inside is not None else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise BadFileError(f"{path} is not a file that npm packed, or is cut short: {error}") from error
    missing = sorted(set(FILES) - set(found))
    if missing:
        raise BadFileError(f"{path} lacks {' and '.join(missing)}: `npm pack onnxruntime-web@{VERSION}` makes one")
    return found
