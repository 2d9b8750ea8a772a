"""What `make demo` shows: an example photo, its phrases with their boxes, and where to look next."""

from __future__ import annotations

from pathlib import Path

from deixis.cli.main import main

HERE = Path(__file__).parent
OUT = HERE.parent / "demo"


def run(*arguments: str) -> None:
    """Show a command as one would type it, and run it."""
    print(f"\n$ deixis {' '.join(arguments)}")
    try:
        main(list(arguments))
    except SystemExit as left:
        if left.code:
            raise


OUT.mkdir(exist_ok=True)
photos = str((HERE / "photos").relative_to(Path.cwd()) if Path.cwd() in HERE.parents else HERE / "photos")
run("data", "info", photos)
run("data", "show", photos, "astronaut", "-o", str(OUT / "astronaut.png"))
run("data", "show", photos, "astronaut", "-o", str(OUT / "astronaut.html"))
print(f"\nOpen {OUT / 'astronaut.html'} in a browser: point at a word and its box lights up.")
