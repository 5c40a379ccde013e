"""Arrows of a time-line: who was stopped for whom, and whom a job waited behind.

Flow events of the Trace Event Format; only of runs that were recorded (`--record`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from windtunnel.sim import verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windtunnel.sim.flight import Flight

_NAMES = {
    verdicts.PREEMPTED: "stopped for",
    verdicts.BEHIND: "waited behind",
    verdicts.WOULD_DELAY: "would have delayed",
}
#: What time-lines count in, s.
_TICK = 1e-6


class Arrow(NamedTuple):
    """From one stay to another.

    Attributes:
        name: what it says.
        source, target: stays: rows of the segments.
        leaves, arrives: s.
    """

    name: str
    source: int
    leaves: float
    target: int
    arrives: float


def arrows(flight: Flight) -> Iterator[Arrow]:
    """Yield the arrows of a run, by the stays at which they end; none if it was not recorded.

    A stop's goes from the end of the stay that was stopped to the stay it made room for; a wait's
    from the start of the job that was in the way last to the start of the job that waited.
    """
    found = flight.verdicts
    if found is None:
        return
    stays: dict[int, list[int]] = {}
    for stay, row in enumerate(flight.segment_job.tolist()):
        stays.setdefault(row, []).append(stay)
    start, end = flight.segment_start, flight.segment_end
    named = np.flatnonzero(found.blocker >= 0)
    for at in named[found.verdict[named] == verdicts.PREEMPTED].tolist():
        time, row, other = found.time[at], int(found.row[at]), int(found.blocker[at])
        source = next((s for s in stays[row] if end[s] == time), None)
        target = next((s for s in stays.get(other, ()) if start[s] == time), None)
        if source is not None and target is not None:
            # At its very end a slice is over, and the arrow would leave the next one.
            leaves = max(time - _TICK, float(start[source]))
            yield Arrow(_NAMES[verdicts.PREEMPTED], source, leaves, target, time)
    waited = named[found.verdict[named] != verdicts.PREEMPTED]
    last = dict(zip(found.row[waited].tolist(), waited.tolist(), strict=True))
    for row, at in last.items():
        code, other = int(found.verdict[at]), int(found.blocker[at])
        target = next((s for s in stays.get(row, ()) if start[s] >= found.time[at]), None)
        ways = stays.get(other, ())
        if target is None or not ways or start[ways[0]] > start[target]:
            continue
        source = next(s for s in reversed(ways) if start[s] <= start[target])
        yield Arrow(_NAMES[code], source, float(start[source]), target, float(start[target]))


def flow_events(
    flight: Flight, threads: Mapping[int, tuple[int, int]], window: tuple[float, float]
) -> Iterator[bytes]:
    """Yield the arrows as flow events, those within a window.

    Args:
        flight: what happened.
        threads: (process, thread) of the first slice of each stay that is drawn.
        window: from when until when, s.
    """
    first, last = window
    for number, arrow in enumerate(arrows(flight)):
        times = arrow.leaves, arrow.arrives
        drawn = arrow.source in threads and arrow.target in threads
        if not drawn or not all(first <= time < last for time in times):
            continue
        ends = ((arrow.source, arrow.leaves, {"ph": "s"}),
                (arrow.target, arrow.arrives, {"ph": "f", "bp": "e"}))  # fmt: skip
        for stay, time, kind in ends:
            pid, tid = threads[stay]
            event = {
                **kind, "id": number, "cat": "why", "name": arrow.name, "pid": pid, "tid": tid,
                "ts": round(time * 1e6),
            }  # fmt: skip
            yield json.dumps(event, separators=(",", ":")).encode("ascii")
