"""The networks of an exported model, run by onnxruntime on arrays that go by their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from deixis.errors import BadFileError, MissingExtraError
from deixis.portable.manifest import PARTS, Manifest

Arrays = Mapping[str, NDArray[Any]]


class Networks:
    """One onnxruntime session for each part of a model."""

    def __init__(self, sessions: Mapping[str, Any]) -> None:
        self._sessions = sessions

    @classmethod
    def load(cls, folder: Path, manifest: Manifest, threads: int = 0) -> Self:
        """Load the files that the manifest lists; 0 threads leave their number to onnxruntime."""
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("onnxruntime", "onnx", "an exported model") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # errors; what it warns of concerns whoever wrote the file
        sessions = {}
        for part in PARTS:
            data = manifest.read(folder, f"{part}.onnx")
            try:
                sessions[part] = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            except Exception as error:  # onnxruntime has errors of its own, one for each way to fail
                why = " ".join(str(error).split())[:200]
                raise BadFileError(f"{folder / part}.onnx cannot be read by onnxruntime: {why}") from error
        return cls(sessions)

    def run(self, part: str, values: Arrays) -> dict[str, NDArray[Any]]:
        """Run a network on what it takes of the values; return what it gives by name."""
        session = self._sessions[part]
        names = [one.name for one in session.get_outputs()]
        given = {one.name: values[one.name] for one in session.get_inputs()}
        return dict(zip(names, session.run(names, given), strict=True))
