"""The two optimisers of one simulation, asked together and checked."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NoReturn

from windtunnel.energy.catalogue import resolve_optimizer, resolve_power_limits
from windtunnel.energy.contract import Trial
from windtunnel.energy.costs import Pricing
from windtunnel.energy.runs import REFUSED_COST, Run, Runner
from windtunnel.errors import PolicyError, SpecError, quote

if TYPE_CHECKING:
    from windtunnel.energy.workload import Workload

#: Runs that one recurrence may take before its target counts as out of reach.
MAX_TRIES = 20

Knobs = tuple[int, int | None]


class Tuning:
    """A workload with its optimisers and the threshold of early stopping.

    Args:
        workload: what is trained.
        optimizer: chooses batch sizes; see `windtunnel.energy.catalogue`.
        power_limits: chooses power limits.
        eta: weight of energy, 0 to 1.
        beta: runs are stopped at this multiple of the lowest cost of a recurrence so far; infinite
            = never.
        seed: of the paths and of the optimiser.

    Attributes:
        optimizer: the batch-size optimiser, begun.
        min_cost: lowest cost of a recurrence so far, J; infinite before the first.

    Raises:
        SpecError: an unknown name, or a number out of range.
        PolicyError: an object that is no optimiser.
    """

    def __init__(
        self,
        workload: Workload,
        optimizer: Any,
        power_limits: Any,
        *,
        eta: float,
        beta: float,
        seed: int,
    ) -> None:
        if not beta > 0:  # also refuses NaN
            raise SpecError("beta", f"found {beta}; expected a factor > 0, or inf.")
        self._workload = workload
        self._pricing = Pricing(workload, eta)
        self._beta = beta
        self.optimizer = resolve_optimizer(optimizer)
        self.optimizer.begin(workload, self._pricing, seed)
        self._limits = resolve_power_limits(power_limits)
        self._limits.begin(workload, self._pricing)
        self._runner = Runner(workload, self._pricing, seed)
        self._unpaid: set[int] = set()
        self.min_cost = math.inf

    @property
    def power_limits(self) -> str:
        """Name of the power-limit optimiser."""
        return self._limits.name

    @property
    def threshold(self) -> float:
        """Cost at which a run is stopped, J; infinite = never."""
        return self._beta * self.min_cost if self.optimizer.early_stop else math.inf

    def ask(self) -> Knobs | None:
        """Return what the batch-size optimiser proposes: a size, and a limit or None.

        Returns:
            None = it waits for a result.

        Raises:
            PolicyError: what it proposes was not measured.
        """
        proposed = self.optimizer.predict()
        if proposed is None:
            return None
        pair: tuple[Any, ...] = proposed if isinstance(proposed, tuple) else (proposed, None)
        try:
            size, limit = pair
            size = operator.index(size)
        except (TypeError, ValueError) as error:
            expected = "expected a batch size, or one and a power limit"
            message = f"proposed {quote(proposed)}; {expected}"
            raise PolicyError(self.optimizer.name, message) from error
        sweep = self._workload.sweeps.get(size)
        if sweep is None:
            self._refuse(f"proposed batch size {size}", self._workload.batch_sizes)
        elif limit is not None and limit not in sweep.power_limits:
            self._refuse(f"proposed {limit} W at batch size {size}", sweep.power_limits)
        return size, limit

    def run(self, knobs: Knobs, *, refusal_profiles: bool = False) -> Run:
        """Run once, at a limit of the power-limit optimiser's where the knobs leave it open.

        Args:
            knobs: from `ask`.
            refusal_profiles: a run that may not start pays for its profile all the same, so that
                the next one at this size need not (as the published simulator has it).
        """
        size, limit = knobs
        if limit is None:
            limit, profiles = self._chosen_limit(size), size in self._unpaid
        else:
            profiles = False
        run = self._runner.run(size, limit, self.threshold, profiles=profiles)
        if profiles and (run.started or refusal_profiles):
            self._unpaid.discard(size)
        return run

    def _chosen_limit(self, size: int) -> int:
        """Return the power-limit optimiser's choice, after the profile that it may ask for."""
        limit = self._limits.predict(size)
        if limit is None:
            self._limits.observe(size, self._pricing.profiles[size])
            self._unpaid.add(size)
            limit = self._limits.predict(size)
        measured = self._workload.sweeps[size].power_limits
        if limit is None or limit not in measured:
            self._refuse(f"proposed {limit} W at batch size {size}", measured, self._limits.name)
        return int(limit)

    def tell(self, run: Run, *, refused_cost: float | None = None) -> None:
        """Tell the batch-size optimiser how a run ended.

        Args:
            run: that ended, or may not start.
            refused_cost: the cost that it hears of a run that may not start; None =
                `REFUSED_COST` times the threshold, which is never attractive.
        """
        cost = run.cost_j
        if not run.started:
            cost = REFUSED_COST * self.threshold if refused_cost is None else refused_cost
        self.optimizer.observe(
            Trial(run.batch_size, run.power_limit, cost, run.reached, run.started)
        )

    def _refuse(self, what: str, measured: tuple[int, ...], who: str | None = None) -> NoReturn:
        known = ", ".join(map(str, measured))
        raise PolicyError(
            who or self.optimizer.name, f"{what}; {self._workload.name} was measured at {known}"
        )
