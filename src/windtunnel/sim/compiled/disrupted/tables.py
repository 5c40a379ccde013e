"""What these kernels work on: columns of the tables, and the tables with nothing running.

Everything that belongs to a run is in one `State` of arrays, handed to every function as a whole.
"""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.free import NOBODY
from windtunnel.sim.compiled.nodes import COUNT, POOL
from windtunnel.sim.compiled.room import ON_DEVICES, class_entries, kept_rows, most_entries
from windtunnel.sim.disruptions.spec import ON_START as WAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.disruptions.plan import Hold, NodeStream, Places, Plan
    from windtunnel.sim.problem import Problem

#: Columns of ``secs``, one row a job, in s: see `windtunnel.sim.disruptions.ledger`. `BEGAN` = the
#: last start, `PROJECTED` = when it completes, `FAIL_AT` = seconds run at which it fails by itself
#: (NaN = not drawn), `WEIGHT` = what its remaining time counts for, `EXPECTED` = expected end.
SUBMIT, ESTIMATE, REMAINING, OWED, PAID, BEGAN, USEFUL, OVERHEAD, LOST, RUN_BEFORE = range(10)
PROJECTED, FAIL_AT, WEIGHT, EXPECTED = range(10, 14)
#: Columns of ``ints``, one row a job. `POSITION` = its place in the order, `KIND` = demand class,
#: `CLASS` = class of jobs that are interchangeable to the queue, `ENTRIES` = most entries of its
#: node list, `ACCESS` = reservations it may use, a bit each; `SEGMENT` = its last stay, `DRAWS` =
#: draws used so far, `AT` = its place among the running jobs.
POSITION, KIND, CLASS, GPUS, ENTRIES, ACCESS, ONCE, HAZARD, STATE, SEGMENT = range(10)
PREEMPTIONS, FAILURES, RESTARTS, VAIN, RESTARTING, DRAWS, AT = range(10, 17)
#: Values of `STATE`; `OVER` = ended by a failure.
AHEAD, WAITS, RUNS, DONE, OVER = range(5)
#: Numbers in ``sums`` of a room: GPU units of nodes that nobody holds and nobody may use, and how
#: often a node is kept for a reservation.
DOWN, KEPT_NODES = range(2)
#: Columns of ``shut``, one row a node: holds for nobody, reservations (a bit each), whether its
#: room is shown now, and scratch paper.
CLOSED, KEPT, SEEN, MARK = range(4)
#: Columns of ``holds``: first place, the place behind the last, bit (`NOBODYS` = nobody's),
#: what becomes of jobs there, planned. Random failures follow behind the plan's holds.
FIRST, LAST, BIT, ON_START, PLANNED = range(5)
NOBODYS = 1
#: Values of `ON_START`, as `windtunnel.sim.disruptions.spec.ON_START`.
WAIT, KILL, SAVE = range(3)
#: Columns of ``events``, one row a slot, and kinds of events in the order of an instant.
EVENT_KIND, NUMBER = range(2)
RESTORE, WITHHOLD, STRIKE = range(3)
#: Numbers in ``seconds``: constants of the run, and the instant.
INTERVAL, COST, RESTART, RESUME, UNTIL, FIRST_SUBMIT, NOW = range(7)
#: Numbers in ``rules``: constants of the run.
PLACEMENT, ENDS, PLANS, DISRUPTED, ORDER_OF_EVENTS, MOST, QUOTA, STRICT, BY_REMAINING = range(9)
SHORTEST, NUM_HOLDS, KEPT_ROWS, IS_POOL, WEIGHTED = range(9, 14)
BATCH, SUBMISSIONS_FIRST, COMPLETIONS_FIRST = range(3)
#: Numbers in ``counts``: the state of the run. `CAME` jobs are to be queued, `LEFT` jobs left their
#: GPUs at this instant; `FREED` = room was given back; `WANTED` = entries that waiting jobs may
#: need; `THIRSTY` = jobs and random failures that need draws.
(ARRIVED, POINTS, SEGMENTS, NUM_ENDS, NUM_FAILS, NUM_EVENTS, NEXT_NUMBER, CERTAIN, UNFINISHED,
 RUNNING, WAITING, WANTED, CAME, LEFT, FREED, UPS, PHASE, RESUMING, JOBS_THIRSTY, STREAMS_THIRSTY,
 VAIN_JOB, NEXT_PLANNED) = range(22)  # fmt: skip
#: What the kernels return: the run is over; they need room, or draws; a job never gets anywhere.
FINISHED, DECIDE, GROW, DRAW, IN_VAIN = range(5)
#: Draws kept ahead for each random failure of nodes, and for each job that may fail.
AHEAD_DRAWS = 8

Room = namedtuple("Room", "node rows classes saved shut sums")  # noqa: PYI024 - numba needs this kind
State = namedtuple(  # noqa: PYI024 - numba needs this kind
    "State",
    "room secs ints order holds places events times heap planned planned_at bits pairs pair_used "
    "draws thirsty seg_job seg_time offsets nodes gpus ends ending fails failing came left running "
    "scratch spare_nodes spare_gpus up rules seconds counts",
)
#: Fields that grow with the number of stays, of their entries, and of changes of capacity.
BY_SEGMENT = ("seg_job", "seg_time", "offsets", "ends", "ending", "fails", "failing")
BY_ENTRY = ("nodes", "gpus")


@dataclass(frozen=True)
class Rules:
    """How a run is flown.

    Attributes:
        placement: the placement's code.
        strict: stop at the first job that does not fit.
        plans: jobs are not started where a planned hold would come before their expected end.
        shortest: backfill the shortest first.
        by_remaining: order by time left.
        weighted: that time counts once for each GPU.
        events: place in `windtunnel.sim.contract.EVENT_ORDERS`.
        overhead: seconds that a preempted job pays when it resumes.
        until: horizon, s.
    """

    placement: int
    strict: bool
    plans: bool
    shortest: bool
    by_remaining: bool
    weighted: bool
    events: int
    overhead: float
    until: float


def build(
    problem: Problem,
    plan: Plan | None,
    tables: tuple[np.ndarray, np.ndarray, np.ndarray],
    order: np.ndarray,
    position: np.ndarray,
    rules: Rules,
) -> State:
    """Return a run's state before anything has happened, without draws.

    Args:
        problem: jobs and cluster.
        plan: what will happen; None = nothing.
        tables: free state and demand classes (`windtunnel.sim.compiled.room.tables`).
        order: Int array (m,), jobs in the static order.
        position: Int array (m,), each job's place in it.
        rules: how the run is flown.
    """
    count, num_nodes = len(problem.rows), len(problem.sizes)
    holds = () if plan is None else plan.holds
    streams = () if plan is None else plan.streams
    bits = _bits(plan)
    planned = _planned(holds)
    hold_table, places = _holds(holds, [stream.places for stream in streams], bits)
    most = most_entries(problem)
    capacity, entries = count + count // 4 + 64, count + count // 4 + most + 64
    slots_of_events = 3 * len(holds) + len(streams)
    state = State(
        room=_room(tables, num_nodes, rules.placement),
        secs=_secs(problem),
        ints=_ints(problem, plan, position, bits),
        order=order,
        holds=hold_table,
        places=places,
        events=np.zeros((slots_of_events, 2), dtype=np.int64),
        times=np.zeros(slots_of_events),
        heap=np.zeros(slots_of_events, dtype=np.int64),
        planned=np.array([entry[1:] for entry in planned], dtype=np.int64).reshape(-1, 2),
        planned_at=np.array([entry[0] for entry in planned], dtype=np.float64),
        bits=np.array(list(bits.values()), dtype=np.int64),
        pairs=np.zeros((len(streams), AHEAD_DRAWS, 2)),
        pair_used=np.zeros(len(streams), dtype=np.int64),
        draws=np.zeros((0, AHEAD_DRAWS)),
        thirsty=np.zeros(count + len(streams), dtype=np.int64),
        seg_job=np.empty(capacity, dtype=np.int64),
        seg_time=np.empty((capacity, 2)),
        offsets=np.zeros(capacity + 1, dtype=np.int64),
        nodes=np.empty(entries, dtype=np.int32),
        gpus=np.empty(entries, dtype=np.int64),
        ends=np.empty(capacity),
        ending=np.empty(capacity, dtype=np.int64),
        fails=np.empty(capacity if plan is not None else 0),
        failing=np.empty(capacity if plan is not None else 0, dtype=np.int64),
        came=np.empty(count, dtype=np.int64),
        left=np.empty(count, dtype=np.int64),
        running=np.empty(count, dtype=np.int64),
        scratch=np.zeros(max(count, num_nodes) + 1, dtype=np.int64),
        spare_nodes=np.empty(most + 1, dtype=np.int32),
        spare_gpus=np.empty(most + 1, dtype=np.int64),
        up=np.empty((64, 2)),
        rules=np.zeros(16, dtype=np.int64),
        seconds=np.zeros(8),
        counts=np.zeros(32, dtype=np.int64),
    )
    _set_constants(state, problem, plan, tables, rules)
    return state


def _set_constants(
    state: State, problem: Problem, plan: Plan | None, tables: Any, rules: Rules
) -> None:
    """Write what does not change during a run, and push the first events."""
    state.rules[: WEIGHTED + 1] = (
        rules.placement, plan is not None and plan.ends, rules.plans, plan is not None,
        rules.events, len(state.spare_nodes) - 1, problem.quota, rules.strict, rules.by_remaining,
        rules.shortest, 0 if plan is None else len(plan.holds),
        kept_rows(tables, rules.placement), problem.is_pool, rules.weighted,
    )  # fmt: skip
    state.seconds[: NOW + 1] = (
        math.inf if plan is None else plan.interval,
        0.0 if plan is None else plan.checkpoint_cost,
        0.0 if plan is None else plan.restart_cost,
        rules.overhead,
        rules.until,
        -math.inf if plan is None else plan.first,
        -math.inf,
    )
    state.counts[UNFINISHED] = len(problem.rows)
    state.counts[VAIN_JOB] = -1
    if plan is not None:
        _push_first(state, plan)


def _push_first(state: State, plan: Plan) -> None:
    """Push every hold's events in the order of the description, and each first random failure."""
    pushed: list[tuple[float, int, int, int]] = []
    for index, hold in enumerate(plan.holds):
        parts = ((hold.begin, WITHHOLD), (hold.start, STRIKE), (hold.end, RESTORE))
        pushed += [
            (time, kind, len(pushed) + at, 3 * index + at)
            for at, (time, kind) in enumerate(parts)
            if kind != RESTORE or time < math.inf
        ]
    state.counts[CERTAIN] = len(pushed)
    for index, stream in enumerate(plan.streams):
        state.pairs[index] = draw_pairs(stream, AHEAD_DRAWS)
        time = plan.first + state.pairs[index, 0, 0]
        pushed.append((time, WITHHOLD, len(pushed), 3 * len(plan.holds) + index))
    state.counts[NEXT_NUMBER] = state.counts[NUM_EVENTS] = len(pushed)
    for at, (time, kind, number, slot) in enumerate(sorted(pushed)):  # sorted: a heap
        state.times[slot] = time
        state.events[slot] = kind, number
        state.heap[at] = slot


def draw_pairs(stream: NodeStream, count: int) -> list[tuple[float, float]]:
    """Return a node's next times to failure and to repair, drawn in turn."""
    return [(stream.lifetime(), stream.repair()) for _ in range(count)]


def _bits(plan: Plan | None) -> dict[int, int]:
    """Return each reservation's bit, lower ones for those that begin sooner, in index order."""
    if plan is None:
        return {}
    begins = [(hold.begin, i, hold.group) for i, hold in enumerate(plan.holds) if hold.group]
    ranks = {group: rank for rank, (_, _, group) in enumerate(sorted(begins))}
    return {group: NOBODYS << 1 + ranks[group] for group in sorted(ranks)}


def _planned(holds: Sequence[Hold]) -> list[tuple[float, int, int]]:
    """Return what is known in advance: (time, 1 begins or 0 ends, hold), in order."""
    return sorted(
        (time, change, index)
        for index, hold in enumerate(holds)
        if hold.planned
        for time, change in ((hold.begin, 1), (hold.end, 0))
        if math.isfinite(time)
    )


def _holds(
    holds: Sequence[Hold], streams: Sequence[Places], bits: dict[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    table = np.zeros((len(holds) + len(streams), 5), dtype=np.int64)
    places: list[tuple[int, int]] = []
    for index, hold in enumerate(holds):
        bit = NOBODYS if hold.group == NOBODY else bits[hold.group]
        last = len(places) + len(hold.places)
        table[index] = (len(places), last, bit, WAYS.index(hold.on_start), hold.planned)
        places += hold.places
    for index, there in enumerate(streams, start=len(holds)):
        table[index] = (len(places), len(places) + len(there), NOBODYS, KILL, 0)
        places += there
    return table, np.array(places, dtype=np.int64).reshape(-1, 2)


def _room(tables: tuple[np.ndarray, np.ndarray, np.ndarray], count: int, placement: int) -> Room:
    node, rows, classes = tables
    if placement == POOL:
        rows[-1, COUNT] = 1 << 60  # a pool may lack units, so that their sum says nothing
    saved = np.zeros(node.shape if placement >= ON_DEVICES else (1, count), dtype=np.int64)
    shut = np.zeros((count, MARK + 1), dtype=np.int64)
    shut[:, SEEN] = 1
    return Room(node, rows, classes, saved, shut, np.zeros(2, dtype=np.int64))


def _secs(problem: Problem) -> np.ndarray:
    secs = np.zeros((len(problem.rows), 14))
    secs[:, SUBMIT] = problem.submit
    secs[:, ESTIMATE] = problem.estimate
    secs[:, REMAINING] = problem.duration
    secs[:, FAIL_AT] = math.nan
    secs[:, WEIGHT] = problem.jobs.num_gpus[problem.rows]
    return secs


def _ints(
    problem: Problem, plan: Plan | None, position: np.ndarray, bits: dict[int, int]
) -> np.ndarray:
    ints = np.zeros((len(problem.rows), 17), dtype=np.int64)
    ints[:, POSITION] = position
    ints[:, KIND] = problem.demand_of
    ints[:, GPUS] = problem.gpus
    ints[:, ENTRIES] = class_entries(problem)[problem.demand_of]
    ints[:, SEGMENT] = -1
    ints[:, CLASS] = problem.demand_of
    if plan is None:
        return ints
    ints[list(plan.fails_once), ONCE] = 1
    ints[:, HAZARD] = plan.hazard > 0
    if bits:
        ints[:, ACCESS] = [sum(bits[group] for group in groups) for groups in plan.access]
        pairs = ints[:, [KIND, ACCESS]]
        ints[:, CLASS] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return ints


def larger(state: State) -> State:
    """Return the state with twice the room, or what is needed, for what has too little of it."""
    counts = state.counts
    segments = int(counts[SEGMENTS] + counts[WAITING]) + 1
    entries = int(state.offsets[counts[SEGMENTS]] + counts[WANTED] + state.rules[MOST]) + 1
    grown = {}
    for names, needed in (
        (BY_SEGMENT, segments),
        (BY_ENTRY, entries),
        (("up",), int(counts[UPS]) + 2),
    ):
        if needed <= len(getattr(state, names[0])):
            continue
        for name in names:
            old = getattr(state, name)
            new = np.zeros((2 * max(len(old), needed), *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            grown[name] = new
    return state._replace(**grown)
