from __future__ import annotations

import pytest

from deixis.serve.admission import CLIPS, DRAWINGS, Admission
from deixis.serve.limits import Limits
from deixis.serve.problems import Problem

CAPTION = "/v1/caption"


def refused(admission: Admission, path: str, client: str = "a", size: int = 10) -> int:
    """Return the status with which one more question is refused, 0 if it finds a place."""
    try:
        with admission.place(path, client, size):
            return 0
    except Problem as problem:
        return problem.status_code if problem.headers and int(problem.headers["Retry-After"]) >= 1 else -1


def test_places_are_held_while_a_question_is_answered_and_given_back() -> None:
    admission = Admission(Limits(waiting=1, batch=1, per_client=0))
    with admission.place(CAPTION, "a", 10), admission.place("/v1/ground", "b", 10):
        assert refused(admission, CAPTION, "c") == 503
        assert refused(admission, CLIPS[0]) == refused(admission, DRAWINGS) == 0  # which have places of their own
    assert refused(admission, CAPTION) == 0
    with pytest.raises(ValueError), admission.place(CAPTION, "a", 10):
        raise ValueError("an error gives the place back too")
    with admission.place(CAPTION, "a", 10):
        assert refused(admission, CAPTION) == 0


def test_all_questions_about_clips_stand_in_one_line() -> None:
    admission = Admission(Limits(waiting_clips=0, per_client=0))
    with admission.place(CLIPS[0], "a", 10):
        assert admission.held == 1
        assert refused(admission, CLIPS[1], "b") == 503


def test_one_client_does_not_take_all() -> None:
    admission = Admission(Limits(per_client=2))
    with admission.place(CAPTION, "a", 10), admission.place(CLIPS[0], "a", 10):
        assert refused(admission, CAPTION, "a") == 429
        assert refused(admission, CAPTION, "b") == 0
    assert refused(admission, CAPTION, "a") == 0


def test_bytes_are_counted_before_they_come() -> None:
    admission = Admission(Limits(waiting_bytes=100, per_client=0))
    assert refused(admission, CAPTION, size=1000) == 0  # alone it may come, the guard limits it
    with admission.place(CAPTION, "a", 60):
        assert refused(admission, CAPTION, size=41) == 503
        assert refused(admission, CAPTION, size=40) == 0
