"""``python -m deixis.portable FOLDER PHOTO``: captions and phrases from exported networks, without torch."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from deixis.errors import DeixisError
from deixis.portable.runner import Portable


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer photos; each answer is a line of JSON, or of text."""
    parser = argparse.ArgumentParser(prog="python -m deixis.portable", description=__doc__)
    parser.add_argument("folder", help="what `deixis export-model` wrote")
    parser.add_argument("photos", nargs="+", metavar="photo")
    parser.add_argument("-p", "--phrase", action="append", help="find this instead of captioning; may be repeated")
    parser.add_argument("--threads", type=int, default=0, help="of each network; 0: onnxruntime's choice")
    parser.add_argument("--json", action="store_true", help="print the documented JSON, a line a photo")
    asked = parser.parse_args(arguments)
    try:
        model = Portable.load(asked.folder, threads=asked.threads)
        for photo in asked.photos:
            answer = model.ground(photo, asked.phrase) if asked.phrase else model.caption(photo)
            print(json.dumps(answer.to_json()) if asked.json else repr(answer), flush=True)
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
