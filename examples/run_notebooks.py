"""Run the notebooks of this folder from their first cell to their last, and write them back with what they show.

    python examples/run_notebooks.py            # after a change, or when a better model ships
    python examples/run_notebooks.py --check    # only see whether they run; nothing is written

They run in a copy of the folder, so that what they make is not left behind and no path of this machine is printed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

HERE = Path(__file__).resolve().parent
PATIENCE = 1200  # seconds a cell may take on a busy machine


def main() -> None:
    """Run all notebooks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, default=sorted(HERE.glob("*.ipynb")))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for path in options.notebooks:
        notebook = run(path)
        if not options.check:
            path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells run")


def run(path: Path) -> Any:
    """Return a notebook with the outputs of a fresh run; a cell that fails raises ``CellExecutionError``."""
    notebook: Any = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "examples"
        shutil.copytree(HERE / "photos", work / "photos")
        # Commands are those of the Python that runs this; what is kept for later is kept in the copy.
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ["DEIXIS_HOME"] = str(work / "home")
        os.environ["TTY_COMPATIBLE"] = "0"  # commands draw no moving bars, of which every frame would be kept
        client = nbclient.NotebookClient(
            notebook,
            timeout=PATIENCE,
            startup_timeout=PATIENCE,
            kernel_name="python3",
            resources={"metadata": {"path": str(work)}},
        )
        client.execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times of day, which change every time
            for output in cell.get("outputs", ()):
                if "text" in output:
                    output["text"] = re.sub(re.escape(str(work)) + "/?", "", output["text"])
    notebook.metadata.pop("language_info", None)
    return notebook


if __name__ == "__main__":
    main()
