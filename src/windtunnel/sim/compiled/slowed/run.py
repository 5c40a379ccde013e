"""One run with slow-downs on the kernels: tables from a problem and its neighbours, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import CORE_UNITS
from windtunnel.sim.compiled import conservative_kernel
from windtunnel.sim.compiled.offsets import class_starts
from windtunnel.sim.compiled.records import Record, cut, empty_record, larger_record
from windtunnel.sim.compiled.room import class_entries, groups, kept_rows, most_entries, slots
from windtunnel.sim.compiled.room import places as most_places
from windtunnel.sim.compiled.slowed import easy_kernel, queue_kernel, quota_kernel
from windtunnel.sim.compiled.slowed.ledger import (
    ASKED,
    BY_COMPANY,
    BY_SHARING,
    COUNTERS,
    EACH,
    END,
    FIRST,
    GRANTS,
    GROUP,
    KIND,
    LAST,
    LEFT,
    LIMIT,
    LOCALITY,
    LOST,
    NAME,
    NODES,
    OF_DEVICES,
    OF_GPUS,
    OF_MILLI,
    OF_POOL,
    PART,
    POINTS,
    PREEMPTIONS,
    RACK,
    RACKS,
    RATE,
    RESUMED,
    SEGMENT,
    SEGMENTS,
    SINCE,
    SPARE,
    SPREAD,
    START,
    TASKS,
    Ledger,
)

if TYPE_CHECKING:
    from windtunnel.sim.contract import Levels
    from windtunnel.sim.neighbours import Neighbours
    from windtunnel.sim.problem import Problem

#: More nodes, or racks, than any job is on.
MANY = 1 << 40


def fly_queue(
    problem: Problem, neighbours: Neighbours, tables: Any, order: np.ndarray, position: np.ndarray,
    *, placement: int, strict: bool, until: float,
) -> tuple[tuple[Any, ...], np.ndarray]:  # fmt: skip
    """Fly m jobs without preemption, strict or skip.

    Args:
        problem: jobs and cluster.
        neighbours: what slows them.
        tables: free room and demand classes (`windtunnel.sim.compiled.room.tables`).
        order: Int array (m,), the jobs in order.
        position: Int array (m,), each job's place in it.
        placement: placement code.
        strict: stop at the first job that does not fit.
        until: horizon, s.

    Returns:
        What `windtunnel.sim.compiled` makes a flight of, and the s that each job lost, (m,).
    """
    ledger = _fresh(problem, neighbours, most_places(problem))
    queue_kernel.fly(
        ledger, *tables, problem.submit, position, order, class_starts(problem), placement, strict,
        until,
    )  # fmt: skip
    return _result(ledger, until)


def fly_easy(
    problem: Problem, neighbours: Neighbours, tables: Any, order: np.ndarray, position: np.ndarray,
    estimated: np.ndarray, by_estimate: np.ndarray, *, placement: int, shortest_first: bool,
    until: float,
) -> tuple[tuple[Any, ...], np.ndarray]:  # fmt: skip
    """Fly m jobs with EASY backfilling; see `fly_queue`.

    Args:
        problem: jobs and cluster.
        neighbours: what slows them.
        tables: free room and demand classes.
        order: Int array (m,), the jobs in order.
        position: Int array (m,), each job's place in it.
        estimated: Int array (m,), the jobs by (estimate, arrival).
        by_estimate: Int array (m,), each job's place among them.
        placement: placement code.
        shortest_first: candidates are tried by estimate.
        until: horizon, s.
    """
    ledger = _fresh(problem, neighbours, most_places(problem))
    easy_kernel.fly(
        ledger, *tables, problem.submit, problem.estimate, position, order, by_estimate, estimated,
        placement, shortest_first, most_entries(problem), kept_rows(tables, placement), until,
    )  # fmt: skip
    return _result(ledger, until)


def fly_conservative(
    problem: Problem, neighbours: Neighbours, tables: Any, order: np.ndarray, position: np.ndarray,
    *, placement: int, kept: int, until: float,
) -> tuple[tuple[Any, ...], np.ndarray]:  # fmt: skip
    """Fly m jobs with conservative backfilling; see `fly_queue`.

    Args:
        problem: jobs and cluster.
        neighbours: what slows them.
        tables: free room and demand classes.
        order: Int array (m,), the jobs in order.
        position: Int array (m,), each job's place in it.
        placement: the placement's code among those on devices, or among those that are not.
        kept: rows of the table that a copy needs.
        until: horizon, s.
    """
    ledger = _fresh(problem, neighbours, most_places(problem))
    profile = conservative_kernel.empty_profile(tables, devices=bool(problem.devices))
    conservative_kernel.fly(
        problem.submit, problem.duration, problem.estimate, position, order, problem.demand_of,
        slots(problem), *tables, placement, kept, *profile, ledger, until,
    )  # fmt: skip
    return _result(ledger, until)


def fly_quota(
    problem: Problem, neighbours: Neighbours, tables: Any, position: np.ndarray | None, *,
    levels: Levels | None, by_remaining: bool, by_service: bool, every: float, placement: int,
    strict: bool, overhead: float, until: float,
) -> tuple[tuple[Any, ...], np.ndarray]:  # fmt: skip
    """Fly m jobs under a preemptive policy; see `fly_queue`.

    Args:
        problem: jobs and cluster.
        neighbours: what slows them.
        tables: free room and demand classes.
        position: Int array (m,), each job's place in the static order; None = there is none.
        levels: of attained service, where the order is by that.
        by_remaining: the order is by the time left.
        by_service: that time counts once for each GPU.
        every: seconds between rounds, 0 = none.
        placement: placement code.
        strict: stop the walk at the first job beyond the quota.
        overhead: seconds a preempted job pays when it resumes.
        until: horizon, s.
    """
    count, most = len(problem.rows), most_entries(problem)
    ledger = _fresh(problem, neighbours, most_places(problem) + most)
    by = quota_kernel.STATIC
    if levels is not None:
        by = quota_kernel.ATTAINED
    elif by_remaining:
        by = quota_kernel.SERVICE if by_service else quota_kernel.REMAINING
    lists = quota_kernel.Lists(
        np.empty(count),
        np.empty(count, dtype=np.int64),
        np.empty(count),
        np.empty(count, dtype=np.int64),
        np.empty(count),
        np.zeros(count),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.zeros(1),
    )
    bounds, values = ((), ()) if levels is None else (levels.bounds, levels.keys)
    while not quota_kernel.advance(
        ledger, *tables, lists, problem.submit, problem.demand_of,
        np.arange(count) if position is None else position,
        np.ascontiguousarray(problem.jobs.num_gpus[problem.rows]), class_entries(problem),
        np.array(bounds, dtype=np.float64), np.array(values, dtype=np.float64), by, every,
        placement, strict, problem.quota, overhead, until,
    ):  # fmt: skip
        ledger = ledger._replace(**larger_record(_record(ledger))._asdict())
    return _result(ledger, until)


def _fresh(problem: Problem, neighbours: Neighbours, places: int) -> Ledger:
    """Return the tables with nothing running.

    Args:
        problem: jobs and cluster.
        neighbours: what slows them.
        places: how many entries of nodes to have room for.
    """
    model, count = neighbours.model, len(problem.rows)
    work = np.zeros((count, ASKED + 1))
    work[:, [START, END]] = np.nan
    work[:, LEFT] = problem.duration
    work[:, [RATE, LOCALITY]] = 1.0
    work[:, SPREAD] = neighbours.spread_rates()
    work[:, ASKED] = neighbours.cpus * CORE_UNITS
    jobs = np.zeros((count, 8), dtype=np.int64)
    jobs[:, KIND] = problem.demand_of
    jobs[:, [SEGMENT, PART]] = -1
    jobs[:, NAME], pairs = neighbours.share_rates()
    by_company = neighbours.has_company and not problem.is_pool
    counters = np.zeros(COUNTERS, dtype=np.int64)
    counters[SPARE] = -1
    counters[BY_COMPANY] = by_company
    counters[BY_SHARING] = model.by_sharing
    counters[GRANTS] = _grants(problem)
    record = empty_record(count, places)
    return Ledger(
        work=work,
        jobs=jobs,
        parts=np.empty((places if by_company else 0, 8), dtype=np.int64),
        sites=_sites(neighbours),
        racks=np.zeros(max(neighbours.racks, default=0) + 1, dtype=np.int64),
        touched=np.empty(max(len(neighbours.limits), count), dtype=np.int64),
        least=_least(problem, neighbours),
        pairs=np.array([pairs, 1.0 / pairs - 1.0]),
        model=np.array([model.cpu, model.rack]),
        count=counters,
        **record._asdict(),
    )


def _grants(problem: Problem) -> int:
    if problem.is_pool:
        return OF_POOL
    if not problem.devices:
        return OF_GPUS
    return OF_MILLI if problem.pooled else OF_DEVICES


def _sites(neighbours: Neighbours) -> np.ndarray:
    """Return the nodes, with nobody on them."""
    sites = np.zeros((len(neighbours.limits), 6), dtype=np.int64)
    sites[:, [FIRST, LAST]] = -1
    sites[:, RACK] = neighbours.racks or -1
    sites[:, LIMIT] = [limit or 0 for limit in neighbours.limits]
    return sites


def _least(problem: Problem, neighbours: Neighbours) -> np.ndarray:
    """Return what is known of the demand classes, columns as in `Ledger`."""
    least = np.full((len(problem.demands), GROUP + 1), MANY, dtype=np.int64)
    least[:, GROUP] = groups(problem)
    for kind, demand in enumerate(problem.demands):
        if not problem.devices:
            least[kind, [TASKS, EACH]] = demand.gpus, 1
        else:
            least[kind, [TASKS, EACH]] = (
                demand.count,
                (demand.amount if problem.pooled else demand.gpus),
            )
        if neighbours.model.by_locality and not problem.is_pool:
            least[kind, [NODES, RACKS]] = neighbours.fewest_places(kind)
    return least


def _record(ledger: Ledger) -> Record:
    return Record(*(getattr(ledger, name) for name in Record._fields))


def _result(ledger: Ledger, until: float) -> tuple[tuple[Any, ...], np.ndarray]:
    work, jobs = ledger.work, ledger.jobs
    segments = int(ledger.count[SEGMENTS])
    record = cut(_record(ledger), segments)
    # Summed in the order of the segments, as the reference engine does.
    stays = np.where(np.isnan(record.end), until, record.end) - record.start
    run_time = np.bincount(record.job, weights=stays, minlength=len(work)) + 0.0
    lost = work[:, LOST].copy()
    running = np.flatnonzero(jobs[:, SEGMENT] >= 0)
    worked = until - np.maximum(work[running, SINCE], work[running, RESUMED])
    booked = running[worked > 0]
    lost[booked] += worked[worked > 0] * (1.0 - work[booked, RATE])
    parts = (
        work[:, START].copy(), work[:, END].copy(), run_time, jobs[:, PREEMPTIONS].copy(),
        record.job, record.start, record.end, record.offsets, record.nodes, record.gpus,
        int(ledger.count[POINTS]),
    )  # fmt: skip
    return parts, lost
