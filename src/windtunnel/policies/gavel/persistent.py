"""`PersistentMaxMin`: the program of max-min fairness, kept from one decision of a run to the next.

Between two decisions a job or two come or go: the kinds of jobs stay, their numbers change by
one. The program has a column for each kind of job of the whole run on each GPU type. A decision
changes the numbers, bars kinds of which no job is here, and goes on from the last basis. Its
objectives, tie-breaks included, are those of `windtunnel.policies.gavel.allocate` on the jobs
that are here, so its shares are the same but for rounding.

Narayanan et al., OSDI'20, section 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.optimize import distinct_costs
from windtunnel.policies.gavel.allocation import Asked
from windtunnel.policies.gavel.fairness import max_min_model
from windtunnel.policies.gavel.shares import within_limits

if TYPE_CHECKING:
    from windtunnel.policies.gavel.instance import Instance

#: Decimals to which shares are rounded.
_DIGITS = 9


class PersistentMaxMin:
    """Max-min fairness of whichever of a run's jobs are here.

    Args:
        name: what to call the model in errors.
        jobs: all jobs of the run; speeds are those that the policy believes. Each can run on some
            type.
        factors: of the levels, see `windtunnel.policies.gavel.fairness.max_min`; shape (jobs,).
        usable: where a job may have a share, shape (jobs, types).
        kind_of: kind of each job, shape (jobs,); jobs of a kind are equal in speeds, gang, factor
            and usable types.

    Attributes:
        num_kinds: kinds of jobs.
    """

    def __init__(
        self,
        name: str,
        jobs: Instance,
        factors: np.ndarray,
        *,
        usable: np.ndarray,
        kind_of: np.ndarray,
    ) -> None:
        self.kind_of = kind_of
        first = np.unique(kind_of, return_index=True)[1]
        self.num_kinds = len(first)
        self._shape = (self.num_kinds, len(jobs.gpu_types))
        one_each = jobs.keep(first)
        self._no_pairs = np.empty((0, len(jobs.gpu_types)))
        self._model, scale, _ = max_min_model(
            Asked(name, merge=False), one_each, factors[first], usable[first]
        )
        self._gangs = one_each.scale_factors
        columns = self._model.single
        self._of, self._on, self._columns = columns.T
        self._gains = self._model.speeds * scale[self._of]
        lp = self._model.lp
        self._levels = np.arange(lp.num_rows - self.num_kinds, lp.num_rows)
        self._counts = np.ones(self.num_kinds, int)
        self._costs = distinct_costs(len(self._columns))

    def shares(self, active: np.ndarray) -> np.ndarray:
        """Return the shares of the jobs that are here, shape (active, types).

        Args:
            active: rows of those jobs, ascending; shape (active,).

        Raises:
            InfeasibleError: the solver found no optimum.
        """
        if not len(active):
            return np.empty((0, self._shape[1]))
        here = self.kind_of[active]
        self._set_counts(np.bincount(here, minlength=self.num_kinds))
        worth = np.zeros(self._model.lp.num_columns)
        worth[self._columns] = self._gains * self._counts[self._of]
        values = self._model.lp.solve(then=[worth, lambda: self._spread(here)]).values
        shares = np.zeros(self._shape)
        shares[self._of, self._on] = np.maximum(values[self._columns], 0.0)
        within, _ = within_limits(self._model.instance, shares, self._no_pairs)
        # The last digits depend on the bases that the solver came through: a run's order must not.
        return np.asarray(within.round(_DIGITS)[here])

    def _set_counts(self, counts: np.ndarray) -> None:
        """Let the program be about so many jobs of each kind, shape (kinds,)."""
        lp, changed = self._model.lp, counts != self._counts
        changed_columns = (changed & (counts > 0))[self._of]
        of, columns = self._of[changed_columns], self._columns[changed_columns]
        # The rows of GPUs are the model's first.
        lp.set_coefficients(self._on[changed_columns], columns, self._gangs[of] * counts[of])
        barred = counts == 0
        turned = barred != (self._counts == 0)
        if turned.any():
            kinds, columns = turned.nonzero()[0], turned[self._of].nonzero()[0]
            upper = np.where(barred[self._of[columns]], 0.0, np.inf)
            lp.set_column_bounds(self._columns[columns], 0.0, upper)
            lower = np.where(barred[kinds], -np.inf, 0.0)
            lp.set_row_bounds(self._levels[kinds], lower, np.inf)
        self._counts = counts

    def _spread(self, here: np.ndarray) -> np.ndarray:
        """Return the last objective: `distinct_costs` in the order in which `allocate` has columns.

        Kinds come in the order of their first jobs.

        Args:
            here: kinds of the jobs that are here, shape (active,).
        """
        rank = np.full(self.num_kinds, len(here))
        rank[here[::-1]] = np.arange(len(here))[::-1]
        present = (self._counts > 0)[self._of].nonzero()[0]
        order = present[np.argsort(rank[self._of[present]], kind="stable")]
        spread = np.zeros(self._model.lp.num_columns)
        spread[self._columns[order]] = -self._costs[: len(order)]
        return spread
