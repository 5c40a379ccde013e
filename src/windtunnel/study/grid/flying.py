"""One run of a study, as a worker flies it: plain data in, one row out, errors included."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import windtunnel
from windtunnel.cluster.spec import ClusterSpec
from windtunnel.errors import SpecError, WindtunnelError
from windtunnel.predictors.features import numbers
from windtunnel.sim.flight import REJECTED
from windtunnel.site.site import Site
from windtunnel.study.closed_loop import is_closed
from windtunnel.study.grid.measure import failed, measured
from windtunnel.study.offered_load import at_load, offered_load
from windtunnel.study.predictions import Predictions
from windtunnel.study.resolving import cluster_of, conditions_of, resolved
from windtunnel.study.simulate import fly
from windtunnel.users_code import raised_by_user

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.grid.inputs import EnergyModels
    from windtunnel.study.grid.plan import Run


class ShippedTable(Protocol):
    """A jobs table on its way to a worker; equal ones hold the same jobs."""

    def __hash__(self) -> int: ...

    def load(self) -> pa.Table:
        """Return the table."""


@dataclass(frozen=True)
class Order:
    """What a worker needs for one run.

    Attributes:
        run: the run.
        table: its jobs.
        cluster: where, as `ClusterSpec.to_mapping` gives it.
        energy: what energy is accounted with; None = it is not.
        version: windtunnel's, which the worker must have, too.
    """

    run: Run
    table: ShippedTable
    cluster: dict[str, Any]
    energy: EnergyModels | None = None
    version: str = windtunnel.__version__


def fly_order(order: Order) -> tuple[pa.Table, float]:
    """Fly one run.

    Returns:
        Its row (`measure.SCHEMA`), which tells an error where it gave one, and the seconds it took.

    Raises:
        SpecError: the worker has another windtunnel.
    """
    if order.version != windtunnel.__version__:
        raise SpecError(
            "--on", f"a worker has windtunnel {windtunnel.__version__}; expected {order.version}."
        )
    begin = time.perf_counter()
    try:
        row = _flown(order)
    except WindtunnelError as error:
        row = failed(order.run, f"{type(error).__name__}: {error}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - one run's fault must not stop the others
        fault = f"a fault in windtunnel: {type(error).__name__}: {error}"
        row = failed(order.run, raised_by_user(error) or fault)
    return row, time.perf_counter() - begin


def _flown(order: Order) -> pa.Table:
    run = order.run
    jobs = order.table.load()
    cluster = ClusterSpec.from_mapping(order.cluster)
    given = conditions_of(cluster, run.flown, seed=run.seed, **run.options)
    asked = given.having(queueing=run.queueing, placement=run.placement)
    conditions = resolved(asked, several=True)
    predictions = _predictions(order.table, run.seed)
    table = jobs if run.load is None else jobs_at_load(jobs, conditions, run.load)
    outcome = fly(table, conditions, predictions)
    # Further attempts of a closed loop are behind the log's jobs, and submitted in the run alone.
    recorded = np.append(numbers(jobs, "submit_time"), outcome.submit_time[jobs.num_rows :])
    return measured(run, outcome, recorded, _energy(order.energy, outcome))


@lru_cache(maxsize=4)
def _predictions(table: ShippedTable, seed: int) -> Predictions:
    """Return the predictions of a jobs table, which several runs of a worker share."""
    return Predictions(table.load(), seed)


def jobs_at_load(jobs: pa.Table, conditions: Conditions, load: float) -> pa.Table:
    """Return the jobs at an offered load; those that the cluster rejects do not count.

    Raises:
        SpecError: users decide when jobs come (``--arrivals closed``), or there is no load.
    """
    if is_closed(conditions.site.arrivals):
        message = (
            "in a closed loop the load is what comes out; expected recorded, or open arrivals."
        )
        raise SpecError("loads", message)
    # A run of no length tells which jobs are rejected; that depends on neither load nor policy.
    site, scheduler = conditions.site, conditions.scheduler
    kept = ("placement", "sharing", "bind_types", "oversize", "incomplete")
    plain = {name: getattr(scheduler, name) for name in kept}
    bare = Site(cluster=site.cluster, resources=site.resources)
    rehearsal = fly(jobs, resolved(conditions_of(bare, **plain, until=0.0)))
    flown: np.ndarray = np.asarray(rehearsal.flight.status != REJECTED)
    num_gpus = cluster_of(conditions).num_gpus
    return at_load(jobs, offered_load(jobs, num_gpus, flown), load, flown)


def _energy(models: EnergyModels | None, outcome: Outcome) -> dict[str, Any]:
    if models is None:
        return {}
    from windtunnel.energy import account

    model, carbon, tariff = models
    found: dict[str, Any] = account(outcome, model, carbon=carbon, tariff=tariff).summary()
    return found
