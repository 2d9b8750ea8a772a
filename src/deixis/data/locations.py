"""Where the folders that recipes name are: recipes say ``flickr8k-entities``, not one machine's path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from deixis.errors import BadFileError
from deixis.home import cache_home


def find(name: str, what: Literal["data", "stores", "runs"]) -> Path:
    """Return an existing file or folder: as given, else under ``$DEIXIS_DATA`` (data only), else ``$DEIXIS_HOME``."""
    given = Path(name).expanduser()
    places = [given]
    if not given.is_absolute():
        if what == "data" and os.environ.get("DEIXIS_DATA"):
            places += [Path(part).expanduser() / given for part in os.environ["DEIXIS_DATA"].split(os.pathsep)]
        places.append(cache_home() / what / given)
    for place in places:
        if place.exists():
            return place
    if given.is_absolute():
        raise BadFileError(f"there is no file or folder {given}")
    hint = " (set DEIXIS_DATA to the folder that holds your datasets)" if what == "data" else ""
    raise BadFileError(f"found no {name!r}; looked for {', '.join(map(str, places))}{hint}")
