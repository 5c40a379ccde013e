"""Max-min fairness and finish-time fairness.

Narayanan et al., OSDI'20, sections 4.1 and 4.2; finish-time fairness: Mahajan et al., "Themis",
NSDI'20.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.gavel.closed_forms import isolated_throughputs, proportional_throughputs
from windtunnel.policies.gavel.shares import Solved, share_model

if TYPE_CHECKING:
    from windtunnel.policies.gavel.allocation import Asked
    from windtunnel.policies.gavel.instance import Instance
    from windtunnel.policies.gavel.shares import ShareModel

#: Finish-time fairness is found to this relative accuracy.
_RHO = 1e-10
_MAX_STEPS = 100


def normalised(instance: Instance) -> np.ndarray:
    """Return the factor s / prop of each job: throughput times it is 1 at an equal share.

    Shape (jobs,). A gang of s GPUs counts s-fold, as its speed is that of the whole gang.
    """
    factors: np.ndarray = instance.scale_factors / proportional_throughputs(instance)
    return factors


def believed(asked: Asked, instance: Instance) -> tuple[Instance, np.ndarray]:
    """Return the instance as max-min policies see it, and the factors s / prop, shape (jobs,).

    A blind policy counts time: one step a second wherever the job is.

    Raises:
        InfeasibleError: a job can run nowhere.
    """
    instance.require_runnable(asked.policy)
    if not asked.blind:
        return instance, normalised(instance)
    seen = replace(instance, throughputs=np.ones_like(instance.throughputs))
    return seen, instance.scale_factors


def same_speed(asked: Asked, instance: Instance) -> Instance:
    """Return the instance as makespan and finish-time policies see it.

    Raises:
        InfeasibleError: a job can run nowhere.
        SpecError: a job's steps are not known.
    """
    instance.require_runnable(asked.policy)
    instance.require_steps(asked.policy)
    if not asked.blind:
        return instance
    return replace(instance, throughputs=same_speeds(instance.throughputs, instance.gpu_types))


def same_speeds(speeds: np.ndarray, gpu_types: tuple[str, ...]) -> np.ndarray:
    """Return what blind makespan and finish-time policies take for speeds, (jobs, types).

    Each job's speed on V100s for every type, as published; without V100s, or for a job that does
    not run there, its fastest.
    """
    taken = speeds.max(axis=1, initial=0.0)
    spelt = [name.lower() for name in gpu_types]
    if "v100" in spelt:
        known = speeds[:, spelt.index("v100")]
        taken = np.where(known > 0, known, taken)
    return np.tile(taken[:, None], (1, len(gpu_types)))


def max_min(asked: Asked, instance: Instance) -> Solved:
    """Maximise the smallest ``factor x throughput / weight`` over the jobs."""
    seen, factors = believed(asked, instance)
    model, scale, unit = max_min_model(
        asked, seen, factors / instance.weights, asked.usable(instance)
    )
    solution = model.lp.solve(then=model.tie_breaks(scale))
    best = solution.objective * unit
    need = best / scale
    return Solved(best, model, model.topped_up(solution.values, need), need=need)


def max_min_model(
    asked: Asked, seen: Instance, factors: np.ndarray, usable: np.ndarray
) -> tuple[ShareModel, np.ndarray, float]:
    """Return the program of `max_min`, unsolved, the factor of each class, and its unit.

    Its last rows are the classes' levels, its last column is the smallest of them, in that unit.
    Each row is divided by the job's best speed, so that weights of any size leave entries of
    order 1: a solver drops entries and bounds far below that without a word.

    Args:
        asked: the policy.
        seen: the jobs; speeds are those that the policy believes.
        factors: of the throughputs, shape (jobs,).
        usable: where a job may have a share, shape (jobs, types).
    """
    model = share_model(asked, seen, usable, (factors,))
    scale = model.per_class(factors)
    best = _best_alone(model)
    highest = scale * best
    unit = float(highest.min())
    smallest = model.lp.add_columns("smallest", ["level"], lower=-np.inf, cost=1.0)
    levels = model.lp.add_rows("level of job", model.labels(), lower=0.0)
    of, columns = model.entries.T
    model.lp.add_coefficients(levels[of], columns, model.speeds / best[of])
    model.lp.add_coefficients(levels, smallest, -unit / highest)
    return model, scale, unit


def finish_time(asked: Asked, instance: Instance) -> Solved:
    """Minimise the largest rho = (t + R/thr) / (I + R/iso) over the jobs.

    For a fixed rho the condition is linear: thr >= need(rho) = R / (rho D - t) with
    D = I + R/iso. The program finds the largest z with thr >= z need; its duals price the needs,
    and the rho at which those prices just pay is a lower bound and the next guess. The bounds
    rise to the optimum as Newton's do.
    """
    usable, instance = asked.usable(instance), same_speed(asked, instance)
    own = isolated_throughputs(instance)
    traits = (instance.steps_left, instance.time_since_start, instance.isolated_time)
    model = share_model(asked, instance, usable, traits)
    steps = model.per_class(instance.steps_left)
    since = model.per_class(instance.time_since_start)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(steps > 0, steps / model.per_class(own), 0.0)
    due = model.per_class(instance.isolated_time) + alone
    going = steps > 0
    best = _best_alone(model)
    rho = float(np.max((since + steps / best)[going] / due[going], initial=0.0))
    unit = best  # rows are divided by the job's best speed: entries of order 1
    z = model.lp.add_columns("smallest", ["ratio of speed to need"], cost=1.0)
    rows = model.lp.add_rows("finish of job", model.labels(), lower=0.0)
    of, columns = model.entries.T
    model.lp.add_coefficients(rows[of], columns, model.speeds / unit[of])
    model.lp.add_coefficients(rows, z, -1.0)
    if not going.any():
        model.lp.set_column_bounds(z, 0.0, 1.0)
        return Solved(0.0, model, model.lp.solve().values)
    weights = 1 / model.per_class(own)
    fastest = steps / best

    def speed_for(bound: float) -> np.ndarray:
        # No rho asks for more than a job's best speed. What is left of a job that is all but done
        # would drown in the digits of its age.
        seconds = np.maximum(bound * due - since, fastest)
        speeds: np.ndarray = np.divide(steps, seconds, out=np.zeros_like(steps), where=going)
        return speeds

    for count in range(1, _MAX_STEPS + 1):
        need = speed_for(rho)
        model.lp.set_coefficients(rows, z, -need / unit)
        solution = model.lp.solve()
        if solution.objective >= 1 - _RHO or count == _MAX_STEPS:
            break
        prices = np.maximum(-solution.duals[rows], 0.0) / unit
        on = going & (prices > 0)
        costs, least = prices[on] * steps[on], fastest[on]
        rho = _paid_rho(costs, due[on], since[on], least, worth=solution.objective, rho=rho)
    solution = model.lp.solve(then=model.tie_breaks(weights))
    values = model.topped_up(solution.values, need)
    speeds = model.class_throughputs(values)[going]
    reached = float(((since[going] + steps[going] / speeds) / due[going]).max())
    return Solved(reached, model, values, count + 1, speed_for(reached))


def _best_alone(model: ShareModel) -> np.ndarray:
    """Return each class's speed if its jobs had the cluster to themselves, shape (classes,).

    The fastest type on which they have a column; an upper bound of what any allocation gives.
    """
    best = np.zeros(len(model.classes.counts))
    of, kind = model.single[:, 0], model.single[:, 1]
    np.maximum.at(best, of, model.instance.throughputs[model.classes.first[of], kind])
    of = model.entries[len(model.single) :, 0]
    # Time in pairs of all jobs of a class together is at most their number.
    counts = model.classes.counts[of]
    np.maximum.at(best, of, model.speeds[len(model.single) :] * counts)
    return best


def _paid_rho(
    costs: np.ndarray,
    due: np.ndarray,
    since: np.ndarray,
    least: np.ndarray,
    *,
    worth: float,
    rho: float,
) -> float:
    """Return the rho at which sum costs / (rho due - since) falls to what the GPUs are worth.

    At the present rho the sum is 1, and the GPUs are worth ``worth`` < 1. ``least`` are the seconds
    that rho due - since is at least, but for rounding.
    """

    def total(guess: float) -> float:
        return float((costs / np.maximum(guess * due - since, least)).sum())

    low, high = rho, rho * 2
    while total(high) > worth:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if total(middle) > worth else (low, middle)
    return high
