"""From the tables of a run to a `Flight`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.closing import as_flight, losses
from windtunnel.sim.decisions import Decisions
from windtunnel.sim.flight import FAILED, FINISHED, RUNNING, WAITING, Flight

if TYPE_CHECKING:
    from windtunnel.sim.reference.loop import Loop
    from windtunnel.sim.reference.state import State


def flight(loop: Loop, horizon: float, *, powered: bool) -> Flight:
    """Return a run that is over, or was cut at a horizon (s), as arrays in jobs-table order."""
    state, problem = loop.state, loop.state.problem
    for stay in state.running.values():
        state.book(stay, horizon)
    columns, power = _columns(state), None
    paced = state.pace is not None or loop.limits is not None
    paced |= state.plan is not None and state.has_rates
    if powered:
        notes = np.array([] if loop.limits is None else loop.limits.notes).reshape(-1, 3)
        power = loop.power.record(
            columns["stay_start"], notes.T, capped_time=loop.capped_time, arrived=loop.arrived
        )
    found = as_flight(
        problem, columns, horizon, loop.clock.points, slowed=paced, power=power,
        interruptions=losses(problem, state.policy, columns, loop.outages, loop.up),
        verdicts=None if state.recorder is None else state.recorder.verdicts(),
    )  # fmt: skip
    if isinstance(state.scheduler, Decisions):
        found = state.scheduler.finish(found, columns, horizon)
    return found


def _columns(state: State) -> dict[str, np.ndarray]:
    """Return the run's tables as arrays, by arrival number and by stay."""
    stays, status = state.stays, np.full(len(state.gpus), WAITING)
    status[list(state.running)] = RUNNING
    status[list(state.finished)] = FINISHED
    status[list(state.ended_failed)] = FAILED
    counts = {"preemptions": state.preemptions, "restarts": state.restarts}
    seconds = {
        "useful": state.useful, "overhead": state.overhead_time, "writing": state.writing_time,
        "lost": state.lost_work, "slowed": state.slowed,
        "stay_start": [stay.start for stay in stays], "stay_end": [stay.end for stay in stays],
    }  # fmt: skip
    pairs = np.array([pair for stay in stays for pair in stay.where], dtype=np.int64)
    nodes, grants = pairs.reshape(-1, 2).T
    return {
        **{name: np.array(column, dtype=np.int64) for name, column in counts.items()},
        **{name: np.array(column, dtype=np.float64) for name, column in seconds.items()},
        "status": status,
        "stay_job": np.array([stay.job for stay in stays], dtype=np.int64),
        "stay_first": np.cumsum([0, *(len(stay.where) for stay in stays)], dtype=np.int64),
        "nodes": nodes,
        "grants": grants,
    }
