"""A table for spreadsheets and data frames: one row for every box."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from deixis.export.things import Answer, text_of, things_of
from deixis.types import GroundedCaption

COLUMNS = (
    "image", "width", "height", "kind", "sentence", "text", "label", "start", "end", "x1", "y1", "x2", "y2", "score",
    "trusted", "frame", "time", "segment_start", "segment_end", "model",
)  # fmt: skip


def table(answers: Sequence[Answer]) -> str:
    """Return CSV (RFC 4180) with a header. Numbers keep all their digits; what does not apply is empty.

    Texts stand as they are: whoever opens a table of hostile file names in a spreadsheet should import it as text.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for answer in answers:
        caption = answer if isinstance(answer, GroundedCaption) else None
        segment = caption.segment if caption is not None else None
        times = caption.frame_times if caption is not None else ()
        for thing in things_of(answer, doubtful=True):
            writer.writerow(
                [
                    answer.image,
                    *answer.size,
                    "caption" if caption is not None else "phrases",
                    text_of(answer),
                    thing.text,
                    thing.label,
                    *(thing.span or (None, None)),
                    *thing.box,
                    thing.score,
                    int(thing.trusted),
                    thing.frame,
                    times[thing.frame] if thing.frame < len(times) else None,
                    *(segment or (None, None)),
                    answer.model,
                ]
            )
    return out.getvalue()
