"""Find the image file of an entry and its real size, noting what is missing or broken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deixis.data.dataset import Problems
from deixis.data.files import MISSING_IMAGE, ImageFolder
from deixis.errors import BadFileError
from deixis.images import image_size
from deixis.types.example import ImageFile

BROKEN_IMAGE = "broken image"


class ImageFinder:
    """Looks for images by file name in several folders: the exact name first, then the same name of another type."""

    def __init__(self, folders: Sequence[Path], problems: Problems) -> None:
        self.folders = [folder for folder in dict.fromkeys(folders) if folder.is_dir()]
        self.problems = problems
        self._listed = [ImageFolder(folder, problems) for folder in self.folders]

    @property
    def any(self) -> bool:
        """Whether there are image files at all; a dataset of captions alone has none, which is no fault of each."""
        return any(len(listed) for listed in self._listed)

    def find(self, file_name: str) -> Path | None:
        """Return the file, or None."""
        stem = Path(file_name).stem
        return next((found for listed in self._listed if (found := listed.get(stem)) is not None), None)

    def source(
        self, file_name: str, annotated: tuple[int, int] | None, place: str
    ) -> tuple[ImageFile, tuple[int, int] | None]:
        """Return an entry's image and the size of the file, or the annotated size where there is no readable file."""
        path = self.find(file_name)
        if path is None:
            if self.any:
                self.problems.note(MISSING_IMAGE, f"{place}: {file_name}")
            return ImageFile(Path(file_name)), annotated
        return ImageFile(path), file_size(path, annotated, self.problems)


def file_size(path: Path, annotated: tuple[int, int] | None, problems: Problems) -> tuple[int, int] | None:
    """Return a file's own size; if its header cannot be read, note that and return the annotated one."""
    try:
        return image_size(path)
    except BadFileError as error:
        problems.note(BROKEN_IMAGE, str(error))
        return annotated


def annotated_size(width: object, height: object) -> tuple[int, int] | None:
    """Return a size given in a file, if it is one."""
    if isinstance(width, int) and isinstance(height, int) and 0 < width < 10**6 and 0 < height < 10**6:
        return int(width), int(height)
    return None
