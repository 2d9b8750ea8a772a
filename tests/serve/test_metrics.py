from __future__ import annotations

import re

from deixis.serve.metrics import Metrics

LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')


def parse(text: str) -> dict[tuple[str, str], float]:
    """Read the text format by its grammar: comments, then name, labels and value on each line."""
    assert text.endswith("\n")
    found = {}
    for line in text.splitlines():
        if line.startswith("# "):
            assert line.split()[1] in ("HELP", "TYPE")
            continue
        match = LINE.fullmatch(line)
        assert match is not None, line
        found[match[1], match[2] or ""] = float(match[3])
    return found


def test_counters_and_cumulative_buckets() -> None:
    metrics = Metrics({"deixis_waiting_photos": ("Photos that wait.", lambda: 3.0)})
    for seconds in (0.004, 0.01, 0.2, 99.0):
        metrics.request("/v1/caption", 200, seconds)
    metrics.request("/v1/caption", 503, 0.5)
    metrics.batch("photos", 3, 0.1)
    values = parse(metrics.text())
    assert values["deixis_requests_total", 'route="/v1/caption",status="200"'] == 4
    assert values["deixis_requests_total", 'route="/v1/caption",status="503"'] == 1
    buckets = {edge: values["deixis_request_seconds_bucket", f'route="/v1/caption",le="{edge}"']
               for edge in ("0.01", "0.1", "0.25", "0.5", "30", "+Inf")}  # fmt: skip
    assert buckets == {"0.01": 2, "0.1": 2, "0.25": 3, "0.5": 4, "30": 4, "+Inf": 5}
    assert values["deixis_request_seconds_count", 'route="/v1/caption"'] == 5
    assert values["deixis_request_seconds_sum", 'route="/v1/caption"'] == 99.714  # %g keeps six digits
    assert values["deixis_batch_size_bucket", 'line="photos",le="2"'] == 0
    assert values["deixis_batch_size_bucket", 'line="photos",le="4"'] == 1
    assert values["deixis_waiting_photos", ""] == 3


def test_labels_cannot_break_out_of_their_quotes() -> None:
    metrics = Metrics({})
    metrics.request('a"b\\c\nd', 200, 1.0)
    values = parse(metrics.text())
    assert values["deixis_requests_total", r'route="a\"b\\c\nd",status="200"'] == 1
