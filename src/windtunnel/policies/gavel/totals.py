"""Policies that add up over jobs: makespan, total throughput, throughput per dollar, SLOs.

Narayanan et al., OSDI'20, section 4.2; the quickest job is the lecture's shortest-job objective.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import InfeasibleError, SpecError, quote
from windtunnel.policies.gavel.fairness import same_speed
from windtunnel.policies.gavel.shares import Solved, share_model

if TYPE_CHECKING:
    from windtunnel.policies.gavel.allocation import Asked
    from windtunnel.policies.gavel.instance import Instance
    from windtunnel.policies.gavel.shares import ShareModel

#: Dollars per GPU hour where an instance names none: the published code's fall-back prices.
DEFAULT_COSTS = {"k80": 0.135, "p100": 0.43, "v100": 0.74}


def makespan(asked: Asked, instance: Instance) -> Solved:
    """Minimise the time T until all jobs are done: maximise u = 1/T with thr >= steps x u."""
    usable, instance = asked.usable(instance), same_speed(asked, instance)
    model = share_model(asked, instance, usable, (instance.steps_left,))
    steps = model.per_class(instance.steps_left)
    fastest = model.per_class(np.where(usable, instance.throughputs, 0.0).max(axis=1))
    alone = steps / fastest
    unit = float(alone.max(initial=0.0))  # the program's unit of time: T is at least this or so
    pace = model.lp.add_columns("pace", ["1/makespan"], cost=1.0)
    if unit == 0:
        model.lp.set_column_bounds(pace, 0.0, 1.0)
        return Solved(0.0, model, model.lp.solve().values)
    rows = model.lp.add_rows("work of job", model.labels(), lower=0.0)
    of, columns = model.entries.T
    model.lp.add_coefficients(rows[of], columns, model.speeds / fastest[of])
    model.lp.add_coefficients(rows, pace, -alone / unit)
    solution = model.lp.solve(then=model.tie_breaks(1 / fastest))
    best = unit / solution.objective
    need = steps / best
    return Solved(best, model, model.topped_up(solution.values, need), need=need)


def total_throughput(
    asked: Asked, instance: Instance, costs: np.ndarray | None = None, *, slos: bool = False
) -> Solved:
    """Maximise the sum of steps per second, over dollars per GPU hour where ``costs`` are given.

    Args:
        asked: the policy.
        instance: the jobs.
        costs: of each type, shape (types,).
        slos: whether every job with a deadline ahead must be able to meet it.

    Raises:
        InfeasibleError: the deadlines cannot be met; names the jobs.
    """
    apart = (instance.steps_left, instance.slo_seconds_left) if slos else ()
    model = share_model(asked, instance, asked.usable(instance), apart)
    ones = np.ones(len(model.classes.counts))
    worth = model.throughput_costs(ones)
    if costs is not None:
        for columns in (model.single, model.paired):
            worth[columns[:, 2]] /= costs[columns[:, 1]]
    # The solver's tolerance is absolute, and speeds of any size may come.
    unit = float(worth.max(initial=0.0)) or 1.0
    model.lp.set_costs(np.arange(model.lp.num_columns), worth / unit)
    if slos:
        _add_deadlines(asked.policy, model)
    breaks = model.tie_breaks(ones)[1:]
    solution = model.lp.solve(then=breaks)
    return Solved(solution.objective * unit, model, solution.values)


def _add_deadlines(name: str, model: ShareModel) -> None:
    """Add the rows thr >= steps / seconds left of the jobs whose deadline lies ahead."""
    instance = model.instance
    seconds = model.per_class(instance.slo_seconds_left)
    bound = np.flatnonzero(np.isfinite(seconds) & (seconds > 0))
    unknown = bound[np.isnan(model.per_class(instance.steps_left)[bound])]
    if len(unknown):
        who = quote(model.labels()[unknown[0]])
        raise SpecError("num_steps_remaining", f"{name} needs it for job {who}, which has an SLO.")
    need = np.zeros(len(seconds))
    need[bound] = model.per_class(instance.steps_left)[bound] / seconds[bound]
    fastest = model.per_class(instance.throughputs.max(axis=1))
    hopeless = np.flatnonzero(need > fastest * (1 + 1e-12))
    if len(hopeless):
        row = int(hopeless[0])
        raise InfeasibleError(
            name,
            f"job {quote(model.labels()[row])} needs {need[row]:.6g} steps/s to meet its SLO and "
            f"reaches at most {fastest[row]:.6g}",
        )
    unit = np.where(need > 0, need, 1.0)
    rows = np.full(len(seconds), -1)
    names = [model.labels()[row] for row in bound]
    rows[bound] = model.lp.add_rows("SLO of job", names, lower=(need / unit)[bound])
    of, columns = model.entries.T
    has = rows[of] >= 0
    model.lp.add_coefficients(rows[of[has]], columns[has], (model.speeds / unit[of])[has])


def costs_of(instance: Instance) -> np.ndarray:
    """Return dollars per GPU hour by type: the instance's, else `DEFAULT_COSTS`; (types,).

    Raises:
        SpecError: a type has neither.
    """
    values = instance.costs.copy()
    for at, name in enumerate(instance.gpu_types):
        if np.isnan(values[at]):
            if name not in DEFAULT_COSTS:
                raise SpecError(f"instance_costs.{name}", "expected a price: no default is known.")
            values[at] = DEFAULT_COSTS[name]
    return values


def quickest_job(asked: Asked, instance: Instance) -> tuple[float, np.ndarray]:
    """Give the job that can finish first its fastest GPU type; the others get nothing.

    Minimising min_i steps/thr is not convex, but it is the best of one trivial program a job.

    Returns:
        Seconds until it is done, and shares, shape (jobs, types); ties go to the first job.
    """
    instance.require_steps(asked.policy)
    instance.require_runnable(asked.policy)
    usable = asked.usable(instance)
    speeds = np.where(usable & instance.runnable, instance.throughputs, 0.0)
    with np.errstate(divide="ignore"):
        seconds = instance.steps_left / speeds.max(axis=1)
    job = int(np.argmin(seconds))
    shares = np.zeros_like(speeds)
    shares[job, int(np.argmax(speeds[job]))] = 1.0
    return float(seconds[job]), shares
