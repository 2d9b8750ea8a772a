from __future__ import annotations

import subprocess
import sys

import pytest

from deixis import __version__
from deixis.cli import main as cli
from deixis.errors import DeixisError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "deixis", *arguments], capture_output=True, text=True, check=False)


def test_the_help_page_lists_every_command_without_importing_torch() -> None:
    listing = (
        "import sys; from deixis.cli.main import app, COMMANDS\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules and 'spacy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in cli.COMMANDS:
        assert f" {name} " in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_loads_and_explains_itself(name: str) -> None:
    command = cli._load(name)
    assert command.name == name
    assert command.help, f"deixis {name} has no help text"


def test_version_and_unknown_command() -> None:
    assert run("--version").stdout.strip() == f"deixis {__version__}"
    wrong = run("captoin")
    assert wrong.returncode == 2
    assert "captoin" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_errors_are_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DeixisError("the split 'trian' does not exist; there are train, val, test")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as left:
        cli.main(["data"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "deixis: the split 'trian' does not exist; there are train, val, test\n"
    with pytest.raises(DeixisError):
        cli.main(["data", "--debug"])
