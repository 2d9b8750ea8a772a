"""What Deixis is made of.

python -m supply lock                # writes requirements.lock and torch.lock (needs the registry)
python -m supply licences            # the licence of every dependency that is installed, as a table
python -m supply sbom -o sbom.json   # a bill of materials, CycloneDX JSON
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from deixis.atomic import write_text
from supply.licences import licences, table
from supply.lock import make_lock, wanted_pins
from supply.sbom import make_bill
from supply.torch_lock import FILE, make_torch_lock

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do one of the three."""
    parser = argparse.ArgumentParser(prog="python -m supply", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=["lock", "licences", "sbom"])
    parser.add_argument("-o", "--output", type=Path, help="write here; else the lock to its place, the rest to stdout")
    options = parser.parse_args(arguments)
    pins = wanted_pins(ROOT)
    code = 0
    if options.what == "lock":
        text = make_lock(pins)
        if options.output is None:
            lock = ROOT / FILE
            write_text(lock, make_torch_lock(pins["torch"], lock.read_text() if lock.is_file() else ""))
        options.output = options.output or ROOT / "requirements.lock"
    elif options.what == "licences":
        found = licences(pins)
        text = table(found) + "\n"
        code = int(any(item.licence == "UNKNOWN" for item in found))
    else:
        text = json.dumps(make_bill(pins), indent=1, ensure_ascii=False) + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_text(options.output, text)
    return code


if __name__ == "__main__":
    sys.exit(main())
