"""From the tables of a run to a `Flight`."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.closing import ByRow, as_flight, interruptions_of, only_preempted
from windtunnel.sim.decisions import Decisions
from windtunnel.sim.flight import FAILED, FINISHED, RUNNING, WAITING, Flight
from windtunnel.sim.power.limits import levels_of

if TYPE_CHECKING:
    from windtunnel.sim.reference.loop import Loop
    from windtunnel.sim.reference.state import State


def flight(loop: Loop, horizon: float, *, powered: bool) -> Flight:
    """Return a run as arrays in jobs-table order.

    Args:
        loop: the run, over.
        horizon: where it was cut, s; inf if it ran to its end.
        powered: it was under policies of power.
    """
    state, problem = loop.state, loop.state.problem
    for job, stay in state.running.items():
        stay.advance(horizon)
        state.left[job] = stay.reached.left
        state.useful[job] += stay.reached.done
        state.overhead_time[job] += stay.overhead(horizon)
        state.writing_time[job] += stay.seconds_writing
        state.slowed[job] = stay.slowed
    columns, by_row = _columns(state), ByRow(problem)
    paced = state.pace is not None or loop.limits is not None
    paced |= state.plan is not None and state.has_rates
    found = as_flight(problem, columns, horizon, loop.clock.points, slowed=paced)
    if isinstance(loop.scheduler, Decisions):
        found = loop.scheduler.finish(found, columns, horizon)
    if loop.outages is not None:
        times, units = zip(*loop.up, strict=True)
        ups = np.array(times), np.array(units)
        found = found.with_interruptions(interruptions_of(problem, columns, loop.outages, ups))
    elif state.policy.loses:
        found = found.with_interruptions(only_preempted(problem, columns))
    if powered:
        notes = np.array([] if loop.limits is None else loop.limits.notes).reshape(-1, 3)
        levels = levels_of(columns["stay_start"], *notes.T)
        found = found.with_power(loop.power.record(levels, by_row, loop.capped_time))
    if state.recorder is not None:
        found = replace(found, verdicts=state.recorder.verdicts())
    return found


def _columns(state: State) -> dict[str, np.ndarray]:
    """Return the run's tables as arrays, by arrival number and by stay."""
    stays, status = state.stays, np.full(len(state.gpus), WAITING)
    for code, jobs in (
        (RUNNING, state.running), (FINISHED, state.finished), (FAILED, state.ended_failed),
    ):  # fmt: skip
        status[list(jobs)] = code
    pairs = np.array(list(chain.from_iterable(stay.where for stay in stays)), dtype=np.int64)
    nodes, grants = pairs.reshape(-1, 2).T
    return {
        "status": status,
        "preemptions": np.array(state.preemptions, dtype=np.int64),
        "restarts": np.array(state.restarts, dtype=np.int64),
        "useful": np.array(state.useful, dtype=np.float64),
        "overhead": np.array(state.overhead_time, dtype=np.float64),
        "writing": np.array(state.writing_time, dtype=np.float64),
        "lost": np.array(state.lost, dtype=np.float64),
        "slowed": np.array(state.slowed, dtype=np.float64),
        "stay_job": np.array([stay.job for stay in stays], dtype=np.int64),
        "stay_start": np.array([stay.start for stay in stays], dtype=np.float64),
        "stay_end": np.array([stay.end for stay in stays], dtype=np.float64),
        "stay_first": np.cumsum([0, *(len(stay.where) for stay in stays)], dtype=np.int64),
        "nodes": nodes,
        "grants": grants,
    }
