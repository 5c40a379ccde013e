"""Nodes in use over time, as a site recorded them and as a replay has them.

Some traces tell no starts, but somebody published how many nodes were in use each minute: Philly's,
for Helios (Hu et al., SC'21, "CES"). That much of a replay can then be checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError, TraceError
from windtunnel.sim.timeline import resample, steps
from windtunnel.traces.tabular import read_text
from windtunnel.traces.wallclock import to_utc

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.sim.outcome import Outcome

_HOUR = 3600.0


@dataclass(frozen=True)
class NodesInUse:
    """Nodes in use, means of hours that both know.

    Attributes:
        time: Float array (h,), left edges, s.
        recorded: Float array (h,).
        replayed: Float array (h,).
    """

    time: np.ndarray
    recorded: np.ndarray
    replayed: np.ndarray

    def summary(self) -> dict[str, Any]:
        """Return it in numbers.

        Keys: ``hours``, ``recorded`` and ``replayed`` (means), ``error`` (mean absolute
        difference), ``correlation`` (Pearson's; null where one of them never changes).
        """
        moves = len(self.time) > 1 and bool(self.recorded.std() > 0 and self.replayed.std() > 0)
        return {
            "hours": len(self.time),
            "recorded": float(self.recorded.mean()),
            "replayed": float(self.replayed.mean()),
            "error": float(np.abs(self.recorded - self.replayed).mean()),
            "correlation": (
                float(np.corrcoef(self.recorded, self.replayed)[0, 1]) if moves else None
            ),
        }


def read_nodes_in_use(
    path: str | Path, *, epoch: float | None, zone: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Read recorded numbers of nodes in use.

    Args:
        path: CSV, plain or gzip, with the columns ``time`` (wall clock) and ``active``.
        epoch: UTC seconds since 1970 of the trace's time 0; None = it has no date.
        zone: IANA zone of the times; None = UTC.

    Returns:
        Times, rising, s since the trace's epoch, and nodes in use from each until the next, shape
        (n,) each.

    Raises:
        SpecError: the trace has no date that times could be counted from.
        TraceError: the file is no such table.
    """
    if epoch is None:
        raise SpecError(
            "--nodes-in-use", "the trace has no date of its own, so times cannot be set beside it."
        )
    text = read_text(path)
    text.require("time", "active")
    instants, _ = to_utc(text.clock("time"), zone or "UTC")
    active = np.asarray(text.floats("active", what="a number of nodes").to_numpy())
    known = ~np.isnan(instants) & ~np.isnan(active)
    if not known.any():
        raise TraceError(text.file, "at least one row with a time and a number of nodes")
    # In the hour that autumn repeats times go back; they then count from its first pass on.
    return np.maximum.accumulate(instants[known] - epoch), active[known]


def busy_nodes(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of nodes on which a run has a job: instants, rising, and counts from each.

    Raises:
        SpecError: the run does not tell nodes apart.
    """
    flight = outcome.flight
    if not len(flight.nodes):
        raise SpecError("--nodes-in-use", "the replay tells no nodes apart; it needs a cluster.")
    stay = np.repeat(np.arange(len(flight.segment_job)), np.diff(flight.node_offset))
    start, end = flight.segment_start[stay], flight.segment_end[stay]
    end = np.where(np.isnan(end), np.inf, end)
    node = np.concatenate([flight.nodes, flight.nodes])
    time = np.concatenate([start, end])
    change = np.concatenate([np.ones(len(start)), -np.ones(len(end))])
    # Starts before ends, so that a node handed over at once stays in use.
    order = np.lexsort((-change, time, node))
    node, time, change = node[order], time[order], change[order]
    held = np.cumsum(change)  # every node's own changes add up to 0
    before = held - change
    edge = np.where((before == 0) & (held > 0), 1.0, np.where((before > 0) & (held == 0), -1.0, 0))
    moves = (edge != 0) & np.isfinite(time)
    instants, counts = steps(time[moves], edge[moves])
    return instants, counts


def nodes_in_use(outcome: Outcome, times: np.ndarray, active: np.ndarray) -> NodesInUse:
    """Set recorded nodes in use beside a replay's, hour by hour.

    Args:
        outcome: the replay.
        times: see `read_nodes_in_use`.
        active: see `read_nodes_in_use`.

    Raises:
        SpecError: the replay tells no nodes apart, or less than an hour is known to both.
    """
    instants, counts = busy_nodes(outcome)
    start, stop = max(times[0], instants[0]), min(times[-1], instants[-1])
    hours = int((stop - start) // _HOUR)
    if hours < 1:
        raise SpecError("--nodes-in-use", "less than an hour lies both in the trace and the file.")
    stop = start + hours * _HOUR
    edges, recorded = resample(times, active, start=start, stop=stop, bins=hours)
    _, replayed = resample(instants, counts, start=start, stop=stop, bins=hours)
    return NodesInUse(edges, recorded, replayed)
