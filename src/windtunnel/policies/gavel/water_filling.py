"""Water filling: lexicographic max-min fairness, flat or between entities.

Narayanan et al., OSDI'20, section 4.3. All active jobs rise at the pace of their weights until
some cannot rise without pushing another below its level; those freeze, and the others go on. Who
is stuck is found exactly, by linear programs alone: a job whose level row has a price is stuck;
of the others, as many as possible are raised together a little, until none can be.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import InfeasibleError, SpecError, quote
from windtunnel.policies.gavel.fairness import believed
from windtunnel.policies.gavel.shares import Solved, share_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.optimize import Solution
    from windtunnel.policies.gavel.allocation import Asked
    from windtunnel.policies.gavel.instance import Instance
    from windtunnel.policies.gavel.shares import ShareModel

#: How far, as a share of the level, a job is raised to see whether it can be.
_LIFT = 1e-4
#: A raise below this share of `_LIFT` is rounding.
_RAISED = 1e-3
#: A price of a level row below this is none.
_PRICE = 1e-7
#: Slack, as a share of the level, with which levels are kept: they are known to a solver's
#: tolerance only, so the smallest that leaves a solution is taken.
_SLACKS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6)


def fill(asked: Asked, instance: Instance, *, hierarchical: bool = False) -> Solved:
    """Fill an instance.

    Args:
        asked: the policy.
        instance: the jobs.
        hierarchical: weigh by entities instead of the jobs' own weights alone.

    Returns:
        The objective is the first and lowest water level, the smallest weighted normalised
        throughput; levels are each in the unit of its published check values: between entities the
        weights change.

    Raises:
        SpecError: hierarchical, and there are no entities or a job has none.
    """
    if hierarchical and not instance.entities:
        raise SpecError("instance.entities", f"{asked.policy} needs at least one entity.")
    usable = asked.usable(instance)
    instance, factors = believed(asked, instance)
    rank = _ranks(instance) if hierarchical else np.zeros(instance.num_jobs)
    if hierarchical and (instance.job_entities < 0).any():
        who = quote(instance.job_ids[int(np.argmin(instance.job_entities))])
        raise SpecError("entity", f"{asked.policy}: job {who} has no entity.")
    traits = (factors, instance.weights, instance.job_entities * hierarchical, rank)
    model = share_model(asked, instance, usable, traits)
    basin = _Basin(model, model.per_class(factors))
    frozen = np.zeros(len(model.classes.counts), bool)
    levels = np.zeros(len(frozen))
    heights: list[float] = []
    while not frozen.all():
        if hierarchical:
            weights = _entity_weights(model, frozen, model.per_class(rank))
        else:
            weights = np.where(frozen, 0.0, model.per_class(instance.weights))
        height, stuck = basin.rise(levels, weights)
        heights.append(height)
        levels = levels + weights * height
        frozen |= stuck
    values = basin.settled(levels)
    unit = instance.scale_factors if hierarchical else instance.weights
    need, levels = model.class_throughputs(values), levels[model.classes.of] / unit
    return Solved(heights[0], model, values, len(heights), need, levels)


class _Basin:
    """The program whose level rows rise: factor x thr - weight x height - lift >= level."""

    def __init__(self, model: ShareModel, factors: np.ndarray) -> None:
        self._model, self._factors = model, factors
        lp = model.lp
        labels = model.labels()
        self._height = lp.add_columns("height", ["of the water"], cost=1.0)
        self._lift = lp.add_columns("lift of job", labels, upper=0.0)
        self._rows = lp.add_rows("level of job", labels, lower=0.0)
        of, columns = model.entries.T
        lp.add_coefficients(self._rows[of], columns, model.speeds * factors[of])
        lp.add_coefficients(self._rows, self._height, -1.0)
        lp.add_coefficients(self._rows, self._lift, -1.0)

    def rise(self, levels: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Raise the jobs with a weight as far as all can; return the height and who is stuck.

        Args:
            levels: kept by every job, shape (classes,).
            weights: pace of the active jobs, 0 = not active; shape (classes,).
        """
        lp, active, unit = self._model.lp, weights > 0, float(weights.max())
        weights = weights / unit  # only their ratios count, and the solver's tolerance is absolute
        lp.set_coefficients(self._rows, self._height, -weights)
        lp.set_column_bounds(self._height, 0.0, np.inf)
        solution = self._keeping(levels)
        height = max(solution.objective, 0.0)
        priced = np.abs(solution.duals[self._rows]) * weights > _PRICE
        stuck = active & priced
        reached = levels + weights * height
        free = self._raisable(reached, active & ~stuck)
        stuck = active & ~free
        if not stuck.any():  # rounding: the job with the highest price is stuck in any case
            prices = np.where(active, np.abs(solution.duals[self._rows]) * weights, -1.0)
            stuck[int(np.argmax(prices))] = True
        return height / unit, stuck

    def _raisable(self, reached: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Return which of the asked jobs can rise while every job keeps what it has reached."""
        lp = self._model.lp
        free = np.zeros_like(asked)
        open_ = asked.copy()
        most = _LIFT * np.maximum(reached, reached.max(initial=0.0) * _LIFT)
        most = np.where(most > 0, most, _LIFT)
        lp.set_column_bounds(self._height, 0.0, 0.0)
        lp.set_costs(self._height, 0.0)
        try:
            while open_.any():
                lp.set_column_bounds(self._lift, 0.0, np.where(open_, most, 0.0))
                lp.set_costs(self._lift, np.where(open_, most.max() / most, 0.0))
                raised = open_ & (self._keeping(reached).values[self._lift] > _RAISED * most)
                if not raised.any():
                    break
                free |= raised
                open_ &= ~raised
        finally:
            lp.set_costs(self._height, 1.0)
            lp.set_costs(self._lift, 0.0)
            lp.set_column_bounds(self._lift, 0.0, 0.0)
        return free

    def settled(self, levels: np.ndarray) -> np.ndarray:
        """Return a solution with every job at its level or above, shape (columns,)."""
        lp = self._model.lp
        lp.set_column_bounds(self._height, 0.0, 0.0)
        first, second = self._model.tie_breaks(self._factors)
        lp.set_costs(np.arange(lp.num_columns), first)
        values = self._keeping(levels, _SLACKS[1:], then=[second]).values
        return self._model.topped_up(values, levels / self._factors)

    def _keeping(
        self,
        levels: np.ndarray,
        slacks: tuple[float, ...] = _SLACKS,
        *,
        then: Sequence[np.ndarray] = (),
    ) -> Solution:
        """Solve with every job at its level or above, levels of shape (classes,)."""
        lp = self._model.lp
        *tight, loosest = slacks
        for slack in tight:
            lp.set_row_bounds(self._rows, levels * (1 - slack), np.inf)
            with suppress(InfeasibleError):
                return lp.solve(then=then)
        lp.set_row_bounds(self._rows, levels * (1 - loosest), np.inf)
        return lp.solve(then=then)


def _ranks(instance: Instance) -> np.ndarray:
    """Return each job's place in its entity's queue, longest-waiting first; 0 without a queue."""
    ranks = np.zeros(instance.num_jobs)
    order = np.lexsort((np.arange(instance.num_jobs), -instance.time_since_start))
    for number, entity in enumerate(instance.entities):
        if entity.policy == "fifo":
            queue = [row for row in order if instance.job_entities[row] == number]
            ranks[queue] = np.arange(len(queue))
    return ranks


def _entity_weights(model: ShareModel, frozen: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the pace of each class, 0 = not active; shape (classes,)."""
    instance = model.instance
    own, of = model.per_class(instance.weights), model.per_class(instance.job_entities)
    weights = np.zeros(len(frozen))
    for number, entity in enumerate(instance.entities):
        mine = np.flatnonzero((of == number) & ~frozen)
        if not len(mine):
            continue
        if entity.policy == "fifo":
            weights[mine[np.argmin(rank[mine])]] = entity.weight
        else:
            total = float((own * model.classes.counts)[mine].sum())
            weights[mine] = entity.weight * own[mine] / total
    return weights
