"""The documentation against the repository: lengths, links, and files that pages name. `make docs` builds the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDES = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*GUIDES, *sorted((ROOT / "docs" / "reports").glob("*.md"))]
PAGES += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([\w-]+))?\)")
NAMED = re.compile(r"(?<![\w/.-])((?:tests|benchmarks|examples|docs)/[\w/.-]+\.(?:py|md|json|yaml|txt))(?![\w/])")


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_the_readme_and_the_guides_are_short() -> None:
    assert len(GUIDES) > 10
    lines = {page.name: len(page.read_text().splitlines()) for page in GUIDES}
    assert not {name: count for name, count in lines.items() if count > 150}
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text()
    wrong = []
    for target, anchor in LINK.findall(text):
        file = page.parent / target if target else page
        # two pages of the site are made of files at the top (docs/site/generated.py)
        made = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}.get(target)
        file = ROOT / made if made and page.parent == ROOT / "docs" else file
        if not file.exists() or (anchor and anchor not in anchors(file)):
            wrong.append(f"{target}#{anchor}")
    if page.name != "CHANGELOG.md":  # which also tells of what is gone
        wrong += [name for name in NAMED.findall(text) if not (ROOT / name).exists()]
    assert not wrong


def test_every_page_has_its_place_in_the_site() -> None:
    import yaml

    text = (ROOT / "mkdocs.yml").read_text()
    nav = yaml.safe_load(text)["nav"]
    listed = {
        page for entry in nav for page in ([entry] if isinstance(entry, str) else next(iter(entry.values())))
    }  # fmt: skip
    ours = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert ours <= listed
