from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from deixis import __version__
from deixis.cli import main as cli
from deixis.cli.examples import EXAMPLES
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


def every_command() -> list[tuple[str, ...]]:
    """All commands, and those below them."""
    found: list[tuple[str, ...]] = []
    for name in cli.COMMANDS:
        below = getattr(cli._load(name), "commands", {})
        found += [(name, one) for one in below] or [(name,)]
    return found


def test_help_cuts_no_option_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in every_command():
        shown = CliRunner().invoke(cli.app, [*command, "--help"], catch_exceptions=False)
        assert shown.exit_code == 0
        real = cli._load(command[0])
        real = real.commands[command[1]] if len(command) > 1 else real
        for parameter in real.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in shown.output, (command, option)


def test_every_command_shows_what_people_type() -> None:
    assert set(EXAMPLES) == set(cli.COMMANDS)
    for command, examples in EXAMPLES.items():
        shown = " ".join(CliRunner().invoke(cli.app, [command, "--help"]).output.split())
        for example in examples:
            assert example.startswith(f"deixis {command}")
            assert example in shown
            options = [word for word in example.split() if word.startswith("--")]
            real = cli._load(command)
            if not hasattr(real, "commands"):
                assert set(options) <= {option for parameter in real.params for option in parameter.opts}


@pytest.mark.parametrize(
    ("typed", "completed"), [("deixis sea", "search"), ("deixis caption --che", "--check"), ("deixis data i", "info")]
)
def test_shells_complete_commands_and_options(typed: str, completed: str) -> None:
    asked = {"_DEIXIS_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "deixis"], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert completed in done.stdout.split(), done.stderr
