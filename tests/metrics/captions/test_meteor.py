"""METEOR's life as a process; that its numbers are the original's is in test_caption_parity.py."""

from __future__ import annotations

import os
import signal

import pytest

from deixis.errors import DeixisError
from deixis.metrics.captions.meteor import Meteor

pytest.importorskip("pycocoevalcap", reason="METEOR needs the java extra")


@pytest.mark.recipe
def test_it_survives_being_killed_and_leaves_when_told() -> None:
    captions = [["a", "dog", "runs"], [], ["a", "|||", "cat"], ["café"]]
    references = [[["a", "dog", "is", "running"], ["dogs"]], [["a", "dog"]], [["a", "cat"]], [["café"], ["bar"]]]
    with Meteor() as meteor:
        corpus, each = meteor.score(captions, references)
        assert each[1] == 0.0
        assert each[2] == meteor.score([["a", "cat"]], [[["a", "cat"]]])[0] == 1.0
        assert each[3] == 1.0
        assert 0 < each[0] < 1
        assert corpus != each.mean()
        first = meteor.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        again, each_again = meteor.score(captions, references)
        assert (again, each_again.tolist()) == (corpus, each.tolist())
        assert meteor.pid not in (first, None)
    assert meteor.pid is None


def test_wrong_input_is_named_before_java_starts() -> None:
    meteor = Meteor()
    with pytest.raises(DeixisError, match="no captions"):
        meteor.score([], [])
    with pytest.raises(DeixisError, match="1 captions but references for 2"):
        meteor.score([["a"]], [[["a"]], [["b"]]])
    with pytest.raises(DeixisError, match="no references"):
        meteor.score([["a"]], [[]])
    assert meteor.pid is None
