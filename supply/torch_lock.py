"""``torch.lock``: the hash of the build of torch that CI installs.

torch comes in many builds of one version. CI computes on plain processors and takes the build for those, which lies in
a folder of wheels (``PIP_FIND_LINKS``) and not on the registry, by its full version (2.13.0+cpu) and its hash: named
by the version alone, pip would prefer the registry's build for GPUs, whose hash it learns before it loads a file.
People may install any build. Hashes that an earlier lock of the same build had stay in it, for other machines.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from packaging.utils import parse_wheel_filename

FILE = "torch.lock"
BUILD = "cpu"
HEAD = """\
# Made by `make lock`: do not edit. The build of torch that CI installs, see supply/torch_lock.py.
"""


def make_torch_lock(version: str, before: str = "") -> str:
    """Return the text of the lock, of the wheels in ``PIP_FIND_LINKS`` and the lock before."""
    wanted = f"{version}+{BUILD}"
    known = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", before)) if f"torch=={wanted} " in before else set()
    for folder in os.environ.get("PIP_FIND_LINKS", "").split():
        wheels = Path(folder).glob("torch-*.whl")
        known |= {_digest(wheel) for wheel in wheels if str(parse_wheel_filename(wheel.name)[1]) == wanted}
    if not known:
        raise SystemExit(f"there is no wheel of torch {wanted}: name the folder that has it in PIP_FIND_LINKS")
    return HEAD + " \\\n    ".join([f"torch=={wanted}", *(f"--hash=sha256:{one}" for one in sorted(known))]) + "\n"


def _digest(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
