"""Runs with disruptions, or one event at a time, on the compiled engine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import PolicyError
from windtunnel.sim.compiled.disrupted import easy_rules, queue_rules, walk_rules
from windtunnel.sim.compiled.disrupted.instants import begin
from windtunnel.sim.compiled.disrupted.stays import account_running
from windtunnel.sim.compiled.disrupted.tables import (
    AHEAD_DRAWS,
    CLASS,
    DONE,
    DRAW,
    DRAWS,
    FAILURES,
    FINISHED,
    GROW,
    HAZARD,
    IN_VAIN,
    JOBS_THIRSTY,
    LOST,
    NOW,
    OVER,
    OVERHEAD,
    POINTS,
    PREEMPTIONS,
    RESTARTS,
    RUNS,
    SEGMENTS,
    STATE,
    STREAMS_THIRSTY,
    UPS,
    USEFUL,
    VAIN,
    VAIN_JOB,
    State,
    build,
    draw_pairs,
    larger,
)
from windtunnel.sim.compiled.handles import Handle
from windtunnel.sim.disruptions.ledger import failed_in_vain
from windtunnel.sim.flight import (
    FAILED,
    NOT_SUBMITTED,
    REJECTED,
    RUNNING,
    WAITING,
    Flight,
    Interruptions,
)
from windtunnel.sim.flight import FINISHED as COMPLETED
from windtunnel.sim.places import places

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.compiled.disrupted.tables import Rules
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.problem import Problem

#: The rule of policies that preempt, which need no head of line.
PREEMPTIVE = "preemptive"


def fly(
    problem: Problem,
    plan: Plan | None,
    tables: tuple[np.ndarray, np.ndarray, np.ndarray],
    order: np.ndarray,
    position: np.ndarray,
    rules: Rules,
    queueing: str,
) -> Flight:
    """Fly a problem's m jobs.

    Args:
        problem: jobs and cluster.
        plan: what will happen; None = nothing.
        tables: free state and demand classes.
        order: Int array (m,), jobs in the static order.
        position: Int array (m,), each job's place in it.
        rules: how the run is flown.
        queueing: the head-of-line rule, or `PREEMPTIVE`.

    Raises:
        SpecError: disruptions under which a job never gets anywhere.
    """
    state = build(problem, plan, tables, order, position, rules)
    if plan is not None and state.ints[:, HAZARD].any():
        state = state._replace(draws=_first_draws(problem, plan))
    advance = _advancing(problem, state, rules, queueing)
    handle = Handle(state)
    begin(handle)
    while (code := advance(handle)) != FINISHED:
        if code == GROW:
            state = larger(state)
            handle = Handle(state)
        elif code == DRAW and plan is not None:
            _draw(state, problem, plan)
        elif code == IN_VAIN:
            job = int(state.counts[VAIN_JOB])
            count, now = int(state.ints[job, VAIN]), float(state.seconds[NOW])
            raise failed_in_vain(problem, job, count, now)
        else:  # a kernel that stops for a reason unknown
            raise PolicyError(queueing, f"the kernel stopped with code {code}")
    account_running(handle, rules.until)
    return _flight(problem, plan, state, rules.until)


def _advancing(
    problem: Problem, state: State, rules: Rules, queueing: str
) -> Callable[[Handle], int]:
    """Return what flies a state on: the kernel of the rule, with its own tables."""
    kernel: Any = queue_rules
    own: Any
    if queueing == PREEMPTIVE:
        kernel, own = walk_rules, walk_rules.walk(len(problem.rows))
    elif queueing in ("easy", "easy_sjbf"):
        kernel, own = easy_rules, easy_rules.waiting(state, *_by_estimate(problem, rules))
    else:
        own = queue_rules.queues(state.ints[:, CLASS], strict=rules.strict)
    tables = Handle(own)
    return lambda handle: int(kernel.fly(handle, tables))


def _by_estimate(problem: Problem, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Return the jobs by (estimate, arrival), and each one's place; unused where not asked for."""
    order = np.arange(len(problem.rows))
    if rules.shortest:
        order = np.argsort(problem.estimate, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return order, place


def _first_draws(problem: Problem, plan: Plan) -> np.ndarray:
    """Return the first times to failure of every job that may fail, shape (m, ahead), s."""
    draws = np.full((len(problem.rows), AHEAD_DRAWS), math.nan)
    for job in np.flatnonzero(plan.hazard > 0).tolist():
        random = plan.job_random(int(problem.rows[job]))
        draws[job] = random.exponential(1 / plan.hazard[job], AHEAD_DRAWS)
    return draws


def _draw(state: State, problem: Problem, plan: Plan) -> None:
    """Draw anew what the kernel has used up."""
    counts, thirsty = state.counts, state.thirsty
    for job in thirsty[: counts[JOBS_THIRSTY]].tolist():
        random = plan.job_random(int(problem.rows[job]))
        mean = 1 / plan.hazard[job]
        random.exponential(mean, int(state.ints[job, DRAWS]))  # those used before
        state.draws[job] = random.exponential(mean, AHEAD_DRAWS)
    half = AHEAD_DRAWS // 2
    for stream in thirsty[len(thirsty) - counts[STREAMS_THIRSTY] :].tolist():
        used_half = (int(state.pair_used[stream]) // half - 1) % 2
        drawn = draw_pairs(plan.streams[stream], half)
        state.pairs[stream, used_half * half : (used_half + 1) * half] = drawn
    counts[JOBS_THIRSTY] = counts[STREAMS_THIRSTY] = 0


def _flight(problem: Problem, plan: Plan | None, state: State, until: float) -> Flight:
    """Return the run as arrays in jobs-table order, summed as `Ledger.close` sums."""
    rows, total, count = problem.rows, len(problem.jobs), len(problem.rows)
    segments = int(state.counts[SEGMENTS])
    used = int(state.offsets[segments])
    job = state.seg_job[:segments]
    began, ended = state.seg_time[:segments, 0].copy(), state.seg_time[:segments, 1].copy()
    held = np.where(np.isnan(ended), until, ended) - began
    start, end = np.full(count, math.nan), np.full(count, math.nan)
    start[job[::-1]] = began[::-1]  # the first stay is written last
    end[job] = ended
    over = state.ints[:, STATE]
    end[(over != DONE) & (over != OVER)] = math.nan
    status = np.where(problem.submit > until, NOT_SUBMITTED, WAITING)
    for code, name in ((RUNS, RUNNING), (DONE, COMPLETED), (OVER, FAILED)):
        status[over == code] = name

    def by_row(values: Any, missing: float, kind: type = float) -> np.ndarray:
        result: np.ndarray = np.full(total, missing, dtype=kind)
        result[rows] = values
        return result

    offsets = state.offsets[: segments + 1]
    flight = Flight(
        start=by_row(start, math.nan),
        end=by_row(end, math.nan),
        run_time=by_row(np.bincount(job, weights=held, minlength=count), 0.0),
        preemptions=by_row(state.ints[:, PREEMPTIONS], 0, int),
        status=by_row(status, REJECTED, int).astype(np.int8),
        segment_job=rows[job],
        segment_start=began,
        segment_end=ended,
        **vars(places(problem, job, offsets, (state.nodes[:used], state.gpus[:used]))),
        scheduling_points=int(state.counts[POINTS]),
    )
    if plan is None:
        return flight
    up = state.up[: state.counts[UPS]]
    return flight.with_interruptions(
        Interruptions(
            useful_time=by_row(state.secs[:, USEFUL], 0.0),
            overhead_time=by_row(state.secs[:, OVERHEAD], 0.0),
            lost_time=by_row(state.secs[:, LOST], 0.0),
            failures=by_row(state.ints[:, FAILURES], 0, int),
            restarts=by_row(state.ints[:, RESTARTS], 0, int),
            up_time=up[:, 0].copy(),
            up_gpus=up[:, 1] / problem.units,
        )
    )
