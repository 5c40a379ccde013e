"""Does a policy know what no scheduler can? Found by flying it in a world with another future.

At an instant, everything that is hidden then is exchanged: how long the jobs that have not ended
will really take, what is submitted later, which nodes fail later. Whoever decides by what has
happened decides the same up to that instant. A policy whose schedule differs before it knew: it is
*clairvoyant*, whatever it says. (A non-anticipating policy in the sense of stochastic control.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.board.flights import fly
from windtunnel.board.workloads import HIDDEN, failing

if TYPE_CHECKING:
    from windtunnel.board.workloads import Drawn
    from windtunnel.sim.disruptions import Disruptions
    from windtunnel.sim.outcome import Outcome

#: Where the future is exchanged: at these parts of the submissions.
CUTS: tuple[float, ...] = (0.3, 0.6)


def foreseen(drawn: Drawn, policy: Any) -> str:
    """Return what a policy decided otherwise in a world that differs later only; empty = nothing.

    Raises:
        WindtunnelError: the policy cannot fly these jobs.
    """
    outcome = fly(drawn, policy)
    submit = np.sort(np.asarray(drawn.jobs["submit_time"].to_numpy(), float))
    for cut in CUTS:
        at = float(submit[int(cut * len(submit))]) + 0.25
        other = fly(with_other_future(drawn, outcome, at), policy)
        found = difference(outcome, other, at)
        if found:
            return found
    return ""


def with_other_future(drawn: Drawn, outcome: Outcome, at: float) -> Drawn:
    """Return a world that is the same up to an instant, and another one behind it.

    Args:
        drawn: the scenario.
        outcome: of the policy in it.
        at: the instant, s.
    """
    rng = np.random.default_rng([drawn.seed, int(at)])
    jobs = drawn.jobs
    submit = np.asarray(jobs["submit_time"].to_numpy(), float)
    ends = outcome.table["end_time"].to_numpy(zero_copy_only=False).astype(float)
    starts = outcome.table["start_time"].to_numpy(zero_copy_only=False).astype(float)
    come = submit <= at
    open_ = come & ~(ends <= at)
    factor = _other_lengths(jobs, open_, open_ & ~(starts <= at), rng)
    later = np.flatnonzero(~come)
    order = np.arange(len(submit))
    order[later] = rng.permutation(later)
    columns: dict[str, Any] = {}
    for name in jobs.column_names:
        column = jobs[name]
        if name in {"job_id", "submit_time"}:
            columns[name] = column
        elif name == "deadline":
            allowed = np.asarray(column.to_numpy(), float) - submit
            columns[name] = pa.array(submit + allowed[order], from_pandas=True)
        elif name in HIDDEN and column.null_count < len(column):
            values = np.asarray(column.to_numpy(), float) * factor
            columns[name] = pa.array(np.ceil(values)[order], from_pandas=True)
        else:
            columns[name] = column.take(pa.array(order))
    table = pa.table(columns, schema=jobs.schema)
    return replace(drawn, jobs=table, disruptions=_until(drawn.disruptions, at))


def _other_lengths(
    jobs: pa.Table, running: np.ndarray, waiting: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return by what the true lengths are multiplied: 1 of those that are over.

    What runs takes longer, up to what its user asked for; what waits may take anything up to it.
    """
    length = np.asarray(jobs["duration"].to_numpy(), float)
    most = np.maximum(np.asarray(jobs["estimate"].to_numpy(), float) / length, 1.0)
    drawn = rng.random(len(length))
    factor = np.where(running, 1 + drawn * (most - 1), 1.0)
    return np.where(waiting, np.maximum(drawn * most, 1 / length), factor)


def _until(disruptions: Disruptions | None, at: float) -> Disruptions | None:
    """Return the failures up to an instant."""
    if disruptions is None:
        return None
    kept = [f for f in disruptions.node_failures if float(f.time) <= at]
    return failing([{"time": f.time, "node": f.node, "until": f.until} for f in kept])


def difference(one: Outcome, other: Outcome, at: float) -> str:
    """Return where two schedules differ first up to an instant; empty = nowhere."""
    mine, theirs = _events(one, at), _events(other, at)
    for event in sorted(set(mine) ^ set(theirs)):
        time, what, row = event[0], event[1], event[2]
        job = one.jobs["job_id"][row].as_py()
        return (
            f"at {time:,.0f} s it {what} job {job} in one world and not in another that differs "
            f"from it only after {at:,.0f} s"
        )
    return ""


def _events(outcome: Outcome, at: float) -> list[tuple[Any, ...]]:
    """Return starts and stops up to an instant: (time, word, row, where)."""
    found: list[tuple[Any, ...]] = []
    for stay in outcome.segments.select(["row", "start", "end", "nodes", "node_gpus"]).to_pylist():
        where = (tuple(stay["nodes"]), tuple(stay["node_gpus"]))
        if stay["start"] <= at:
            found.append((stay["start"], "starts", stay["row"], where))
        if stay["end"] is not None and stay["end"] <= at:
            found.append((stay["end"], "stops", stay["row"], where))
    return found
