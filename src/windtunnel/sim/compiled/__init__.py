"""The compiled engine: numba kernels that return exactly what the reference engine returns.

The Python/numba boundary is crossed once a run. Kernels are compiled once and cached on disk;
nothing in them depends on the policy's code: a static order is an array of positions. Families of
runs have kernels of their own, loaded when one is flown, and a module here, ``..._flights``, that
goes from a problem to them and back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.sim.compiled import (
    cohort_flights,
    disrupted_flights,
    plain_flights,
    slowed_flights,
    usage_flights,
)
from windtunnel.sim.contract import BACKFILLING

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.rates import Rates

NAME = "compiled"
#: What this engine can run; what of it together, `windtunnel.sim.engines` knows.
FEATURES: frozenset[str] = frozenset(
    {
        *("tier1", "tier2", "preemption", "levels", "usage", "cohorts"),
        *("topology", "slow-downs", "disruptions", "event order", *BACKFILLING),
        *("tier1", "tier2", "preemption", "levels", "slow-downs", "usage"),
        *("disruptions", "event order", *BACKFILLING),
    }
)


def run(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    *,
    queueing: str,
    overhead: float = 0.0,
    until: float = math.inf,
    events: str = "batch",
    rates: Rates | None = None,
    disruptions: Plan | None = None,
    rates: Rates | None = None,
) -> Flight:
    """Fly the jobs under the policy; arguments and result as in `windtunnel.sim.reference.run`.

    Raises:
        PolicyError: the policy's order is unusable (NaN, wrong shape).
        SpecError: disruptions under which a job never gets anywhere.
    """
    overhead = float(overhead)
    given = problem, policy, placement
    if disruptions is not None or events != "batch":
        return disrupted_flights.fly(
            *given, disruptions, queueing=queueing, overhead=overhead, until=until, events=events
        )
    if rates is not None:
        return slowed_flights.fly(*given, rates, queueing=queueing, overhead=overhead, until=until)
    if policy.preemptive:
        return plain_flights.fly_preemptive(
            *given, queueing=queueing, overhead=overhead, until=until
        )
    if policy.cohort_order is not None:
        return cohort_flights.fly(problem, policy.cohort_order, placement, until)
    if policy.usage_order is not None:
        return usage_flights.fly(
            problem, policy.usage_order, placement, queueing=queueing, until=until
        )
    return plain_flights.fly(*given, queueing=queueing, until=until)
        if by_service:
            levels = policy.levels or Levels()
            progress, record, points = kernels["service_kernel"].fly(
                problem, tables, bounds=np.array(levels.bounds, dtype=np.float64),
                values=np.array(levels.keys, dtype=np.float64),
                attained=policy.levels is not None, every=float(policy.every or 0.0),
                placement=code, strict=strict, overhead=float(overhead), until=until,
            )  # fmt: skip
        else:
            progress, record, points = kernels["quota_kernel"].fly(
                problem, position, class_start, tables, placement=code, strict=strict,
                by_remaining=policy.by_remaining, overhead=float(overhead), until=until,
            )  # fmt: skip
        # Summed in the order of the segments, as the reference engine does.
        stays = np.where(np.isnan(record.end), until, record.end) - record.start
        run_time = np.bincount(record.job, weights=stays, minlength=len(problem.rows)) + 0.0
        parts = (
            progress.start, progress.end, run_time, progress.preemptions, record.job, record.start,
            record.end, record.offsets, record.nodes, record.gpus, points,
        )  # fmt: skip
    else:
        if by_usage is not None:
            shortest = queueing == "easy_sjbf"
            arrival = np.arange(len(problem.rows))
            started = usage_flights.fly(
                problem, by_usage, tables, placement=code, queueing=queueing,
                class_start=class_start, until=until,
                estimated=_places(problem.estimate) if shortest else (arrival, arrival),
            )  # fmt: skip
        elif queueing == "conservative":
            started = kernels["conservative_kernel"].fly(
                problem.submit, problem.duration, problem.estimate, position, order,
                problem.demand_of, room.slots(problem), *tables, code, until,
            )  # fmt: skip
        elif queueing in BACKFILLING:
            shortest = queueing == "easy_sjbf"
            estimated, by_estimate = _places(problem.estimate) if shortest else (order, position)
            started = kernels["easy_kernel"].fly(
                problem.submit, problem.duration, problem.estimate, position, order, by_estimate,
                estimated, problem.demand_of, *tables, code, shortest, room.places(problem),
                room.most_entries(problem), room.kept_rows(tables, code), until,
            )  # fmt: skip
        else:
            started = kernels["queue_kernel"].fly(
                problem.submit, problem.duration, position, order, problem.demand_of, class_start,
                *tables, code, strict, room.places(problem), room.groups(problem), until,
            )  # fmt: skip
        start, segment_job, offsets, where, gpus, points, _ = started
        end = start + problem.duration
        end[end > until] = math.nan
        run_time = np.where(np.isnan(start), 0.0, np.where(np.isnan(end), until, end) - start)
        never = np.zeros(len(start), dtype=np.int64)
        parts = (start, end, run_time, never, segment_job, start[segment_job], end[segment_job],
                 offsets, where, gpus, points)  # fmt: skip
    return _flight(problem, parts, until)


def _fly_in_steps(
    problem: Problem, policy: Policy, placement: Placement, room: Any, *, queueing: str,
    overhead: float, until: float, events: str, plan: Plan | None,
) -> Flight:  # fmt: skip
    """Fly the jobs with the kernels that know disruptions and other orders of events."""
    loaded = load_kernels(("flying", "tables"), f"{__name__}.disrupted")
    order, position = _order(problem, policy)
    rules = loaded["tables"].Rules(
        placement=room.code(problem, placement),
        strict=queueing == "strict",
        plans=queueing in BACKFILLING and plan is not None,
        shortest=queueing == "easy_sjbf",
        by_remaining=policy.preemptive and policy.by_remaining,
        weighted=policy.by_service,
        events=EVENT_ORDERS.index(events),
        overhead=float(overhead),
        until=until,
    )
    chosen = "preemptive" if policy.preemptive else queueing
    tables = room.tables(problem, placement)
    flight: Flight = loaded["flying"].fly(problem, plan, tables, order, position, rules, chosen)
    return flight


def _slowed(
    problem: Problem,
    policy: Policy,
    placement: Placement,
    rates: Rates,
    queueing: str,
    overhead: float,
    until: float,
) -> Flight:
    """Fly the jobs at rates that change, with the kernels made for that."""
    room = load_kernels()["room"]
    kernels = load_kernels(("run",), f"{__package__}.slowed")["run"]
    neighbours: Any = rates.neighbours
    tables, code = room.tables(problem, placement), room.code(problem, placement)
    by_service = policy.levels is not None or (policy.by_remaining and policy.by_service)
    order, position = (None, None) if by_service else _order(problem, policy)
    if policy.preemptive:
        parts, lost = kernels.fly_quota(
            problem, neighbours, tables, position, levels=policy.levels,
            by_remaining=policy.by_remaining, by_service=policy.by_service,
            every=float(policy.every or 0.0), placement=code, strict=queueing == "strict",
            overhead=overhead, until=until,
        )  # fmt: skip
    elif queueing in BACKFILLING:
        shortest = queueing == "easy_sjbf"
        estimated, by_estimate = _places(problem.estimate) if shortest else (order, position)
        parts, lost = kernels.fly_easy(
            problem, neighbours, tables, order, position, estimated, by_estimate, placement=code,
            shortest_first=shortest, until=until,
        )  # fmt: skip
    else:
        parts, lost = kernels.fly_queue(
            problem, neighbours, tables, order, position, placement=code,
            strict=queueing == "strict", until=until,
        )  # fmt: skip
    return _flight(problem, parts, until, lost)


def _order(problem: Problem, policy: Policy) -> tuple[np.ndarray, np.ndarray]:
    """Return the jobs in the policy's static order, and each job's place in it, shapes (m,).

    By remaining time there is no static order; the arrival order stands in, unused.
    """
    arrival = np.arange(len(problem.rows))
    if policy.by_remaining and policy.preemptive:
        return arrival, arrival
    return _places(_keys(problem, policy))


def _places(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the jobs by (key, arrival), and each job's place among them, shapes (m,)."""
    arrival = np.arange(len(keys))
    if (keys[1:] >= keys[:-1]).all():
        return arrival, arrival
    order = _stable_order(keys)
    position = np.empty_like(order)
    position[order] = arrival
    return order, position


def _stable_order(keys: np.ndarray) -> np.ndarray:
    """Return a stable argsort of float keys, twice as fast as numpy's own.

    numpy vectorises its unstable sorts only. So: sort unstably, number the runs of equal keys, and
    sort (run, index) packed into one integer.
    """
    order = np.argsort(keys)
    ordered = keys[order]
    runs = np.zeros(len(keys), dtype=np.int64)
    np.cumsum(ordered[1:] != ordered[:-1], out=runs[1:])
    bits = max(len(keys) - 1, 1).bit_length()
    packed = (runs << bits) | order
    packed.sort()
    stable: np.ndarray = packed & ((1 << bits) - 1)
    return stable


def _keys(problem: Problem, policy: Policy) -> np.ndarray:
    """Return each flown job's key at its arrival, shape (m,), arrival order.

    Without rounds a tier-2 key is asked once, when the job is queued, which is at its submit time:
    so it is as static as a rank.
    """
    if policy.tier == 1:
        return static_rank(policy, problem.jobs, problem.rows)
    keys: np.ndarray = np.empty(len(problem.rows))
    for job, row in enumerate(problem.rows.tolist()):
        view = JobView(problem.jobs, row)
        keys[job] = checked_key(policy, view, view.submit_time)
    return keys


def _flight(
    problem: Problem, parts: tuple[Any, ...], until: float, lost: np.ndarray | None = None
) -> Flight:
    """Return the kernel's arrays, which are in arrival order, as a flight in table order."""
    (start, end, run_time, preemptions, segment_job, segment_start, segment_end,
     offsets, where, gpus, points) = parts  # fmt: skip
    rows, total = problem.rows, len(problem.jobs)

    in_table_order = len(rows) == total and bool((rows[1:] > rows[:-1]).all())

    def by_row(values: np.ndarray, missing: float) -> np.ndarray:
        if in_table_order:
            return values
        result = np.full(total, missing)
        result[rows] = values
        return result

    running = np.zeros(len(rows), dtype=bool)
    running[segment_job[np.isnan(segment_end)]] = True
    status = np.full(total, REJECTED, dtype=np.int8)
    status[rows] = np.where(
        ~np.isnan(end),
        FINISHED,
        np.where(running, RUNNING, np.where(problem.submit > until, NOT_SUBMITTED, WAITING)),
    )
    return Flight(
        start=by_row(start, math.nan),
        end=by_row(end, math.nan),
        run_time=by_row(run_time, 0.0),
        preemptions=by_row(preemptions, 0),
        status=status,
        segment_job=rows[segment_job],
        segment_start=segment_start,
        segment_end=segment_end,
        **vars(places(problem, segment_job, offsets, (where, gpus))),
        scheduling_points=int(points),
        slowdown_time=None if lost is None else by_row(lost, 0.0),
    )
