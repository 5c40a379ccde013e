"""A policy that watches hears of every start and stop, at its time and in its order."""

from __future__ import annotations

from dataclasses import replace

from flight_cases import Case, cases
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt


class Watcher(wt.Policy):
    """Shortest first; notes what it hears."""

    name = "watcher"

    def __init__(self, *, preemptive: bool) -> None:
        self.preemptive = preemptive
        self.heard: list[tuple[str, int, float]] = []

    def key(self, job: wt.JobView, now: float) -> float:
        """Return the duration, as it is."""
        return job.duration

    def started(self, job: wt.JobView, now: float) -> None:
        """Note a start."""
        assert job.running
        self.heard.append(("start", job.row, now))

    def stopped(self, job: wt.JobView, now: float) -> None:
        """Note a stop."""
        assert not job.running
        self.heard.append(("stop", job.row, now))


@settings(max_examples=150, deadline=None)
@given(cases(policy=st.just("sjf")), st.sampled_from(("preemptive", "not")))
def test_starts_and_stops_are_the_segments(case: Case, kind: str) -> None:
    watcher = Watcher(preemptive=kind == "preemptive")
    out = replace(case, policy=watcher, queueing=None).fly("reference")
    segments = out.segments
    rows, begins, ends = (segments[name].to_pylist() for name in ("row", "start", "end"))
    starts = list(zip(rows, begins, strict=True))
    stops = [(row, end) for row, end in zip(rows, ends, strict=True) if end is not None]
    assert [(row, at) for kind, row, at in watcher.heard if kind == "start"] == starts
    heard = sorted((row, at) for kind, row, at in watcher.heard if kind == "stop")
    assert heard == sorted(stops)
    assert [at for _, _, at in watcher.heard] == sorted(at for _, _, at in watcher.heard)
