"""`WorkMaker`: what each job of an elastic run is: its iterations, its options, its penalty.

A job whose ``template`` names a throughput model can run in any of the model's options; the one its
user asked for has the job's ``num_gpus`` and ``plan``. It has ``steps`` iterations to run, or,
where the table does not say, as many as take its ``duration`` in that option. A job of which no
model is known runs as it was asked for, at the speed at which it was recorded. Where no penalty
is given, it is what the jobs' column ``restore_time`` says, else `PENALTY`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.cluster.devices import CORE_UNITS
from windtunnel.errors import SchemaError, Violation, quote
from windtunnel.schema import source_of
from windtunnel.sim.elastic.nodes import FreeShares
from windtunnel.sim.elastic.work import PENALTY, Option, RigidOption, Work
from windtunnel.sim.expected_work import expected_parts
from windtunnel.study.resume_costs import trace_costs
from windtunnel.throughput.options import shapes_of
from windtunnel.throughput.requests import requested_option

if TYPE_CHECKING:
    from windtunnel.cluster.free import Demand
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.problem import Problem

#: Cores a GPU where the nodes do not say how many they have: Morphling's machines (96 for 8).
CORES_PER_GPU = 12


class WorkMaker:
    """Makes the works of a problem's jobs; options of one model are made once.

    Args:
        problem: jobs and cluster.
        elastic: where they may run; without works yet.
        penalty: seconds of a launch or change, or by model, the others at the default; None = the
            default: what the jobs say, else `PENALTY`.
        models: throughput models by name.

    Raises:
        SpecError: a penalty is negative, also in the jobs' own column.
    """

    def __init__(
        self,
        problem: Problem,
        elastic: Elastic,
        penalty: float | Mapping[str, float] | None,
        models: Mapping[str, Any],
    ) -> None:
        self.problem = problem
        self.jobs = problem.jobs
        self._trace_costs = trace_costs(problem)
        self._penalties = _penalties(penalty)
        self.models = models
        self.sizes: list[int] = problem.sizes.tolist()
        assert problem.cluster is not None  # noqa: S101 - it was built of one
        nodes = problem.cluster.node_types
        self.types = [node.gpu_type for node in nodes for _ in range(node.count)]
        self.cores = elastic.cores
        self.empty = FreeShares(self.sizes, self.cores, elastic.scores, elastic.domains)
        self._options: dict[tuple[str, int, Any], tuple[Any, ...]] = {}
        self._expected = expected_parts(problem)
        self._columns = set(problem.jobs.table.column_names)

    def work(self, job: int) -> Work:
        """Return what a job, by order of arrival, is.

        Raises:
            SchemaError: its plan cannot run on its GPUs, or it fits the cluster in no way.
        """
        row = int(self.problem.rows[job])
        model = self.jobs.template[row]
        demand = self.problem.demands[self.problem.demand_of[job]]
        if model not in self.models:
            return self._rigid(job, demand)
        options = self._options_of(model, demand)
        requested = self._requested(row, options)
        steps = self._number("steps", row)
        if math.isnan(steps):
            steps = float(self.problem.duration[job]) / requested.iteration_time
        return Work(
            iterations=steps,
            requested=requested,
            options=options,
            penalty=self._penalty(job, model),
            guaranteed=self._number("is_sla", row) > 0,
            model=model,
            expected=self._expected_of(job),
        )

    def _options_of(self, model: str, demand: Demand) -> tuple[Any, ...]:
        key = model, demand.allowed, demand.topology
        if key not in self._options:
            # The largest node's; what no node holds is left out below.
            cores = [
                size * CORES_PER_GPU if limit is None else limit // CORE_UNITS
                for size, limit in zip(self.sizes, self.cores, strict=True)
                if size
            ]
            offered = self.models[model].options(
                node_gpus=max(self.sizes), node_cpus=max(cores), num_nodes=len(self.sizes)
            )
            typed = (self._on_its_type(option) for option in offered)
            fitting = (o for o in typed if self._is_held(o, demand))
            self._options[key] = tuple(fitting)
        return self._options[key]

    def _is_held(self, option: Option, demand: Demand) -> bool:
        """Return whether the empty cluster holds an option of a job with this demand."""
        return self.empty.place(option, demand.allowed, demand.topology) is not None

    def _on_its_type(self, option: Any) -> Any:
        """Return an option of a model, on nodes with GPUs of its type alone."""
        if option.gpu_type is None:
            return option
        kind = option.gpu_type.casefold()
        nodes = [node for node, own in enumerate(self.types) if (own or "").casefold() == kind]
        return replace(option, nodes=sum(1 << node for node in nodes))

    def _requested(self, row: int, options: tuple[Any, ...]) -> Option:
        """Return the option that a job's user asked for, on the GPU type recorded if there is."""
        gpus, cpus = self.jobs.num_gpus[row], self.jobs.num_cpus[row]
        plan = self.jobs.plan[row] if "plan" in self._columns else None
        kind = (self.jobs.gpu_type[row] or "").casefold()
        alike = tuple(
            o for o in options if o.gpu_type is not None and o.gpu_type.casefold() == kind
        )
        found = requested_option(alike or options, gpus, plan, cpus)
        if found is None:
            asked = f"plan {quote(plan)} on {gpus:g} GPUs" if plan else f"{gpus:g} GPUs"
            rule = (
                f"a request its model can run on this cluster; job {quote(self.jobs.job_id[row])} "
                f"asks for {asked} of {quote(self.jobs.template[row])}"
            )
            violation = Violation("plan", rule, 1, row + 1, plan, unit="row")
            raise SchemaError(source_of(self.jobs.table), [violation])
        option: Option = found
        return option

    def _penalty(self, job: int, model: str) -> float:
        penalty = self._penalties.get(model, self._penalties.get(""))
        if penalty is not None:
            return penalty
        cost = float(self._trace_costs[job])
        return PENALTY if math.isnan(cost) else cost

    def _expected_of(self, job: int) -> float | None:
        return None if self._expected is None else float(self._expected[job])

    def _rigid(self, job: int, demand: Demand) -> Work:
        row = int(self.problem.rows[job])
        gpus, cpus = round(self.jobs.num_gpus[row]), self.jobs.num_cpus[row]
        asked = 0 if np.isnan(cpus) else math.ceil(cpus)
        found: list[Option] = []
        for size in sorted(set(self.sizes), reverse=True):
            shapes = shapes_of(gpus, node_gpus=max(size, 1), num_nodes=len(self.sizes))
            option = RigidOption(next(shapes, ()), asked, 1.0)
            if option.shape and option not in found and self._is_held(option, demand):
                found.append(option)
        if not found:
            where = "on a node" if demand.topology is None else "of what its topology leaves it"
            rule = (
                f"a request that nodes of this cluster can hold, with {asked} cores; job "
                f"{quote(self.jobs.job_id[row])} asks for more {where}"
            )
            violation = Violation("num_gpus", rule, 1, row + 1, gpus, unit="row")
            raise SchemaError(source_of(self.jobs.table), [violation])
        duration = float(self.jobs.duration[row])
        expected = self._expected_of(job)
        return Work(duration, found[0], tuple(found), self._penalty(job, ""), expected=expected)

    def _number(self, column: str, row: int) -> float:
        if column not in self._columns:
            return math.nan
        value = getattr(self.jobs, column)[row]
        return math.nan if value is None else float(value)


def _penalties(given: float | Mapping[str, float] | None) -> dict[str, float]:
    """Return the given penalties, s, by model; that of all others under the empty name."""
    if given is None:
        return {}
    by_model = dict(given) if isinstance(given, Mapping) else {"": given}
    for name, value in by_model.items():
        checked_number(f"penalty.{name}".rstrip("."), value, "seconds >= 0", least=0)
    return {name: float(value) for name, value in by_model.items()}


def stated_penalty(
    penalty: float | Mapping[str, float] | None, problem: Problem
) -> float | dict[str, float] | None:
    """Return the given penalty; None = each job's own, as the trace says."""
    if penalty is None:
        return PENALTY if np.isnan(trace_costs(problem)).all() else None
    return dict(penalty) if isinstance(penalty, Mapping) else penalty
