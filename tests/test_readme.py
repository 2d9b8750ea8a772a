"""The README's commands, word for word, in an empty environment: `make readme`, which downloads; not in `make test`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from deixis.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Every fenced block of the README: its language, its text."""
    return [(match[1], match[2]) for match in BLOCK.finditer((ROOT / "README.md").read_text())]


def commands(program: str) -> list[str]:
    """The lines of the README that call a program."""
    lines = (line for language, text in blocks() if not language for line in text.splitlines())
    return [line for line in lines if line.startswith(f"{program} ")]


def test_the_readme_names_only_commands_that_exist() -> None:
    named = [shlex.split(line, comments=True)[1] for line in commands("deixis")]
    assert len(named) >= 5
    assert set(named) <= set(COMMANDS)
    assert len(commands("pip")) >= 2
    assert sum(language == "python" for language, _ in blocks()) == 1


GIVEN = {"photo.jpg", "photos/", "my-photos", "clip.mp4"}
"""What the README's commands are shown with; the test below puts it there."""


def test_the_readme_asks_for_nothing_that_its_test_does_not_bring() -> None:
    asked = [shlex.split(line, comments=True)[1:] for line in commands("deixis")]
    assert {words[1] for words in asked if words[0] != "serve"} == GIVEN


CLIP = """
import av, numpy as np
from PIL import Image
photo = np.asarray(Image.open("photo.jpg").convert("RGB").resize((320, 240)))
with av.open("clip.mp4", "w") as container:
    stream = container.add_stream("mpeg4", rate=5)
    stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
    for at in range(30):
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.roll(photo, at, axis=1), format="rgb24")))
    container.mux(stream.encode())
"""


@pytest.mark.install
def test_the_readme_works_word_for_word_in_an_empty_environment(tmp_path: Path) -> None:
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    home.mkdir()
    for name in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, checkout / name)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    environment = {key: value for key, value in os.environ.items() if key.startswith("PIP_") or key == "LANG"}
    environment |= {
        "PATH": f"{tmp_path / 'venv' / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "PIP_CONSTRAINT": str(checkout / "constraints.txt"),  # the versions we test; the words stay the README's
        "HF_HUB_OFFLINE": "1",
    }

    def call(command: str, timeout: float = 900) -> str:
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=checkout, env=environment, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    for line in commands("pip"):
        call(line, timeout=3600)
    found = blocks()
    number = next(at for at, (language, _) in enumerate(found) if language == "python")
    (tmp_path / "snippet.py").write_text(found[number][1])
    assert call(f"python {tmp_path / 'snippet.py'}") == found[number + 1][1]  # and the output shown is the real one
    shutil.copyfile(ROOT / "examples" / "photos" / "astronaut.jpg", checkout / "photo.jpg")
    for folder in ("my-photos", "photos"):  # what `label` and `search` are shown with
        shutil.copytree(ROOT / "examples" / "photos", checkout / folder)
    (tmp_path / "clip.py").write_text(CLIP)
    call(f"python {tmp_path / 'clip.py'}")
    for line in commands("deixis"):
        if shlex.split(line, comments=True)[1] == "serve":
            _serve(line, checkout, environment)
        else:
            assert call(line).strip()
    assert (checkout / "out.mp4").stat().st_size > 0
    assert (checkout / "labels.json").stat().st_size > 0


def _serve(line: str, folder: Path, environment: dict[str, str]) -> None:
    """Start the page as the README says, and see that it answers."""
    server = subprocess.Popen(["/bin/bash", "-c", f"exec {line}"], cwd=folder, env=environment)
    try:
        until = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen("http://127.0.0.1:8008/healthz", timeout=5) as answer:
                    assert answer.status == 200
                    return
            except OSError:
                assert server.poll() is None
                assert time.monotonic() < until
                time.sleep(0.5)
    finally:
        server.terminate()
        server.wait(30)
