"""One job that recurs: each recurrence is tried until it reaches its target.

The rules are those of the Zeus artifact's simulator (NSDI'23); with the same seed the runs are the
same to the last one. A run costs what it used until it reached the target or was stopped; the
threshold is beta times the cheapest recurrence so far, its failed tries included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_count
from windtunnel.energy.tuning import MAX_TRIES, Tuning
from windtunnel.errors import InfeasibleError, PolicyError

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.energy.runs import Run
    from windtunnel.energy.workload import Workload


@dataclass(frozen=True)
class Recurrences:
    """What happened in the recurrences of one job.

    Attributes:
        workload: what was trained.
        settings: ``optimizer``, ``power_limits``, ``eta``, ``beta``, ``seed``, ``recurrences``.
        runs: (recurrence, from 1; run), in order; runs that could not start are not among them.
        refused: (recurrence, batch size) of those that the threshold did not let start.
        notes: what a reader of the numbers must know.
    """

    workload: Workload
    settings: dict[str, Any]
    runs: tuple[tuple[int, Run], ...]
    refused: tuple[tuple[int, int], ...]
    notes: tuple[str, ...]

    @property
    def table(self) -> pa.Table:
        """The runs: ``recurrence``, ``batch_size``, ``power_limit`` and the rest of `Run`."""
        import pyarrow as pa

        from windtunnel.energy.runs import Run

        columns: dict[str, list[Any]] = {"recurrence": [at for at, _ in self.runs]}
        for place, name in enumerate(Run._fields):
            columns[name] = [run[place] for _, run in self.runs]
        return pa.table(columns)

    @property
    def energy_j(self) -> float:
        """Energy of all runs, J."""
        return sum(run.energy_j for _, run in self.runs)

    @property
    def time_s(self) -> float:
        """Time of all runs, s."""
        return sum(run.time_s for _, run in self.runs)

    @property
    def cost_j(self) -> float:
        """Cost of all runs, J."""
        return sum(run.cost_j for _, run in self.runs)

    def by_recurrence(self, measure: str) -> np.ndarray:
        """Return ``energy_j``, ``time_s`` or ``cost_j`` of each recurrence, failed tries included.

        Returns:
            float64, shape (recurrences,), in order.
        """
        at = np.array([number for number, _ in self.runs]) - 1
        values = np.array([float(getattr(run, measure)) for _, run in self.runs])
        return np.bincount(at, weights=values, minlength=int(self.settings["recurrences"]))


def simulate_recurrences(
    workload: Workload,
    optimizer: Any = "zeus",
    *,
    power_limits: Any = "jit",
    recurrences: int | None = None,
    eta: float = 0.5,
    beta: float = 2.0,
    seed: int = 1,
) -> Recurrences:
    """Simulate the recurrences of one job, one after the other.

    Args:
        workload: what is trained, and where.
        optimizer: chooses batch sizes: ``zeus``, ``default``, ``grid``, ``oracle``,
            ``package.module:name``, or an object (see `windtunnel.energy.contract`).
        power_limits: chooses power limits where the optimiser leaves them open: ``jit``,
            ``known``, ``largest``, or an object.
        recurrences: how many; None = the paper's number, 2 |B| |P|.
        eta: weight of energy against time, 0 to 1.
        beta: a run is stopped at so many times the cheapest recurrence's cost; infinite = never.
        seed: of everything random.

    Raises:
        SpecError: an unknown name, or a number out of range.
        PolicyError: an optimiser proposes what was not measured.
        InfeasibleError: the very first run fails, or a recurrence fails `MAX_TRIES` times.
    """
    count = workload.paper_recurrences if recurrences is None else recurrences
    checked_count("recurrences", count)
    tuning = Tuning(workload, optimizer, power_limits, eta=eta, beta=beta, seed=seed)
    runs: list[tuple[int, Run]] = []
    refused: list[tuple[int, int]] = []
    for number in range(1, count + 1):
        spent = _recur(tuning, number, runs, refused, workload)
        tuning.min_cost = min(tuning.min_cost, spent)
    settings = {
        "optimizer": tuning.optimizer.name,
        "power_limits": tuning.power_limits,
        "eta": eta,
        "beta": beta,
        "seed": seed,
        "recurrences": count,
    }
    return Recurrences(workload, settings, tuple(runs), tuple(refused), tuning.optimizer.notes)


def _recur(
    tuning: Tuning,
    number: int,
    runs: list[tuple[int, Run]],
    refused: list[tuple[int, int]],
    workload: Workload,
) -> float:
    """Try until the target is reached; return the cost of all tries, J."""
    spent = 0.0
    for _ in range(MAX_TRIES):
        knobs = tuning.ask()
        if knobs is None:
            raise PolicyError(tuning.optimizer.name, "waits for a result, but nothing is running")
        run = tuning.run(knobs)
        tuning.tell(run)
        if not run.started:
            refused.append((number, run.batch_size))
            continue
        spent += run.cost_j
        runs.append((number, run))
        if run.reached:
            return spent
        if number == 1:
            raise InfeasibleError(
                f"{workload.name}, {tuning.optimizer.name}",
                f"the very first run, batch size {run.batch_size}, did not reach "
                f"{workload.job.target_metric:g} within {run.epochs} epochs; start from a batch "
                "size that always does",
            )
    raise InfeasibleError(
        f"{workload.name}, {tuning.optimizer.name}",
        f"recurrence {number} failed {MAX_TRIES} times; a larger beta stops fewer runs",
    )
