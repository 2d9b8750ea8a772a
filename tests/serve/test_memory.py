"""Freed memory goes back: a process that has held much is small again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from deixis.serve.memory import give_back

PROGRAM = """
import sys, time, psutil
from deixis.serve.memory import give_back, staying_small
size = lambda: psutil.Process().memory_info().rss / 2**20
few = size()
blocks = [bytearray(b"x") * 60_000 for _ in range(3000)]
last = bytearray(b"x") * 60_000  # above all others on the heap: it cannot shrink by itself
much = size()
del blocks
held = size()
if sys.argv[1] == "once":
    give_back()
else:
    with staying_small(0.05):
        time.sleep(1)
print(few, much, held, size())
"""


@pytest.mark.skipif(not give_back(), reason="this C library cannot give memory back")
@pytest.mark.parametrize("how", ["once", "again and again"])
def test_what_was_freed_goes_back_to_the_system(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    few, much, held, after = map(float, done.stdout.split())
    assert much - few > 150
    assert held - few > 100  # or there would be nothing to do
    assert after - few < 30
