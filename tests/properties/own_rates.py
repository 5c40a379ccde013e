"""How fast jobs are whose policies choose it: by the options of elastic jobs, by measured speeds.

As in `rates` nothing here is the engine's: it goes by what the run was given, by where its stays
were, and of elastic jobs by the option that each stay tells of itself (`Stretches`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rates import Rates, Terms, count_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import windtunnel as wt
    from windtunnel.throughput.measured import ThroughputTable

#: Seconds that a launch takes where nothing says it: docs/reference/morphling.md.
PENALTY = 260.0


class OptionRates(Rates):
    """The rates of an elastic run's stays, each of which needs what its option does.

    Args:
        out: the outcome.
        model: of slow-downs.
    """

    def __init__(self, out: wt.Outcome, model: wt.Slowdown) -> None:
        super().__init__(out, model)
        told: Any = out.flight.stretches
        for stay, gpus, cpus in zip(
            self.stays, told.gpus.tolist(), told.cpus.tolist(), strict=True
        ):
            stay["option_gpus"], stay["option_cpus"] = gpus, cpus

    def _needs(self, stay: Mapping[str, Any]) -> tuple[int, int]:
        """Return the nodes of its option, and the racks that so many such nodes need."""
        nodes, job = len(stay["nodes"]), self.jobs[stay["row"]]
        of_nodes = [
            int(self.may_use(job, kind) and kind.gpus >= max(stay["node_gpus"]))
            for kind in self.kinds
        ]
        return nodes, count_of(self.by_rack(of_nodes), nodes)

    def _cores(self, stay: Mapping[str, Any], node: int) -> float:
        """Return the cores of its option that a stay holds on a node, in whole thousandths."""
        here = zip(stay["nodes"], stay["node_gpus"], strict=True)
        own = sum(gpus for its, gpus in here if its == node)
        return round(stay["option_cpus"] * 1000 * own / stay["option_gpus"]) / 1000


def option_speeds(out: wt.Outcome) -> list[float]:
    """Return how fast each stay's option is, beside the one that its job's user asked for."""
    told: Any = out.flight.stretches
    promised = told.promise[out.flight.segment_job]
    speeds: list[float] = (1 / (promised * told.iteration_time)).tolist()
    return speeds


def option_terms(out: wt.Outcome, options: Mapping[str, Any]) -> list[Terms]:
    """Return what elastic jobs have to do, in the options asked for, and pay at each launch."""
    told: Any = out.flight.stretches
    jobs = out.jobs.to_pylist()
    terms = []
    for job, iterations, promise in zip(jobs, told.iterations, told.promise, strict=True):
        work = 0.0 if math.isnan(promise) else float(iterations / promise)
        terms.append(Terms(work, launch=_penalty(job, options)))
    return terms


def _penalty(job: Mapping[str, Any], options: Mapping[str, Any]) -> float:
    """Return what a launch of a job takes, s: as given, of its model, else as its trace says."""
    given = options.get("penalty")
    if isinstance(given, (int, float)):
        return float(given)
    models: Mapping[str, Any] = options.get("models") or {}
    name = job["template"] if job.get("template") in models else ""
    for known in (name, ""):
        if given and known in given:
            return float(given[known])
    own = job.get("restore_time")
    return PENALTY if own is None else float(own)


def table_speeds(rates: Rates, table: ThroughputTable) -> list[float]:
    """Return how fast each stay was where it was, beside its job's fastest type."""
    found = []
    for stay in rates.stays:
        kind = rates.kinds[stay["nodes"][0]] if stay["nodes"] else rates.kinds[0]
        name = (kind.gpu_type or "") + "_unconsolidated" * (len(stay["nodes"]) > 1)
        job = rates.jobs[stay["row"]]
        found.append(table.alone[name][_measured(job)] / _fastest(rates, table, job))
    return found


def table_terms(rates: Rates, table: ThroughputTable, costs: Sequence[float]) -> list[Terms]:
    """Return what jobs have to do: their steps, at the speed of their fastest type."""
    terms = []
    for job, cost in zip(rates.jobs, costs, strict=True):
        speed = _fastest(rates, table, job)
        terms.append(Terms(job["total_steps"] / speed if speed else 0.0, cost))
    return terms


def _fastest(rates: Rates, table: ThroughputTable, job: Mapping[str, Any]) -> float:
    """Return the steps per second of a job on the type, of those that it accepts, best for it."""
    kinds = [kind for kind in rates.kinds if kind.gpus and rates.may_use(job, kind)]
    of_kinds = (table.alone[kind.gpu_type or ""].get(_measured(job), 0.0) for kind in kinds)
    return max(of_kinds, default=0.0)


def _measured(job: Mapping[str, Any]) -> tuple[str, int]:
    return job["template"], int(job["num_gpus"])
