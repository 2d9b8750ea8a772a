"""Pages of the site that are made when it is built: an API reference per room, and the two files beside `docs/`.

A hook of mkdocs (`hooks` in mkdocs.yml). A room that is added to `src/deixis` has its page without further work.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "deixis"
BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the reference into the place that the navigation leaves for them."""
    pages = ["reference/index.md", *(f"reference/{name}.md" for name in rooms())]
    config.nav = [{"API reference": pages} if "API reference" in entry else entry for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference, the changelog and the page for contributors."""
    made = {f"reference/{name}.md": f"# `deixis.{name}`\n\n::: deixis.{name}\n" for name in rooms()}
    made["reference/index.md"] = _index()
    made |= {page: _moved((ROOT / name).read_text(encoding="utf-8")) for name, page in BESIDE.items()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def rooms() -> list[str]:
    """The folders and modules of the package, in alphabetical order."""
    folders = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    modules = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    return sorted([*folders, *modules])


def _index() -> str:
    lines = ["# API reference", "", "Made from the docstrings.", "", "::: deixis", "    options:"]
    lines += ["      show_submodules: false", "", "| module | what |", "|---|---|"]
    lines += [f"| [`deixis.{name}`]({name}.md) | {_first_line(name)} |" for name in rooms()]
    return "\n".join(lines) + "\n"


def _first_line(name: str) -> str:
    file = PACKAGE / name / "__init__.py" if (PACKAGE / name).is_dir() else PACKAGE / f"{name}.py"
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0] if text else ""


def _moved(text: str) -> str:
    """Links as seen from inside `docs/`."""
    return re.sub(r"\]\((?:docs/)?(?!\w+:)([\w./-]+\.md(?:#[\w-]+)?)\)", lambda m: f"]({_home(m[1])})", text)


def _home(link: str) -> str:
    name, _, anchor = link.partition("#")
    return BESIDE.get(name, name) + (f"#{anchor}" if anchor else "")
