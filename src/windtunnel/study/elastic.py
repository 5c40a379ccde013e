"""One elastic run: from a jobs table, throughput models and a penalty to an outcome.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.cluster.devices import CORE_UNITS, device_nodes
from windtunnel.errors import PolicyError, SchemaError, SpecError, Violation, quote
from windtunnel.placements import (
    checked_topology,
    label_of,
    resolve_placement,
    split_placement,
    tree_of,
)
from windtunnel.placements.scored import ScoredPlacement
from windtunnel.placements.tree import Tree
from windtunnel.placements.whole import BestFit
from windtunnel.schema import source_of
from windtunnel.sim import problem as problems
from windtunnel.sim.contract import policy_of_run
from windtunnel.sim.elastic.domains import Domains
from windtunnel.sim.elastic.nodes import FreeShares
from windtunnel.sim.elastic.scores import Elastic, Scores
from windtunnel.sim.elastic.work import PENALTY, Option, RigidOption, Work
from windtunnel.sim.engines import choose_engine
from windtunnel.sim.expected_work import expected_parts
from windtunnel.sim.outcome import Outcome
from windtunnel.sim.topology_asks import Asks
from windtunnel.study.around import around, workload_of_jobs
from windtunnel.study.left_waiting import left_waiting
from windtunnel.study.offered_load import with_arrivals
from windtunnel.study.option_sizes import Needs
from windtunnel.study.predictions import Predictions, checked_estimates
from windtunnel.study.resolving import settings_of
from windtunnel.study.resume_costs import span_of, trace_costs
from windtunnel.study.run_options import check_no_request
from windtunnel.throughput.options import shapes_of
from windtunnel.throughput.requests import requested_option

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.free import Demand
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.problem import Problem
    from windtunnel.site.conditions import Conditions
    from windtunnel.site.scheduler import Scheduler

#: Cores a GPU where the nodes do not say how many they have: Morphling's machines (96 for 8).
CORES_PER_GPU = 12
#: Options of a flight that an elastic run has no use for, what says nothing, and why.
_UNUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "sharing": ((None,), "its options are of whole GPUs"),
    "save_time": ((0.0,), "its penalty says what a launch costs"),
    "restore_time": ((None, 0.0), "its penalty says what a launch costs"),
    "preemption": (("feasible",), "the policy takes every decision itself"),
}


def fly_elastic(
    table: pa.Table,
    cluster: ClusterSpec,
    policy: Policy,
    conditions: Conditions,
    predictions: Predictions | None = None,
) -> Outcome:
    """Fly a validated jobs table under a policy that may resize jobs.

    Args:
        table: jobs table.
        cluster: where; with nodes.
        policy: who runs next and how.
        conditions: see `windtunnel.site`; ``penalty`` and ``models`` count here.
        predictions: predictions for this table; None = those that the run needs are made.

    Raises:
        SchemaError: a job breaks the schema or fits the cluster in no way.
        SpecError: the cluster is a pool, or an option is unknown, out of range or of no use.
        PolicyError: the policy decided something impossible.
    """
    _check_unused(policy, conditions)
    if policy.tier != 3:  # noqa: PLR2004 - the tier's number is its name
        raise PolicyError(policy.label, "an elastic policy decides: decide(now, queue, cluster)")
    if cluster.is_pool:
        raise SpecError("cluster", "elastic jobs run on nodes; expected such as 8x8, not a pool.")
    scheduler, site = conditions.scheduler, conditions.site
    models = _models_of(scheduler.models)
    until = math.inf if conditions.until is None else conditions.until
    predicted = (predictions or Predictions(table, conditions.seed)).for_policy(
        policy, checked_estimates(scheduler.estimates or "perfect", policy)
    )
    if site.arrivals is not None:
        table = with_arrivals(table, site.arrivals, None)
    problem = problems.build(
        predicted.onto(table),
        cluster,
        as_pool=False,
        bind_types=scheduler.bind_types,
        estimates=predicted.estimates,
        oversize=scheduler.oversize,
        incomplete=scheduler.incomplete,
        asks=_asks(scheduler, cluster),
    )
    if scheduler.compat == "morphling":
        from windtunnel.study.morphling_ticks import fly_artifact

        return fly_artifact(table, cluster, policy, conditions, problem)
    cores = _cores(cluster, constrain=site.resources == "all")
    plain, scores = _placement(cluster, conditions, cores, table)
    elastic = Elastic((), cores, scores, _domains(scheduler, cluster, scores))
    if scheduler.oversize == "reject":
        problem = _rejecting(problem, elastic, models)
    rules = around(conditions, as_pool=False)

    def least(problem: Problem) -> np.ndarray:
        """Return the GPUs of each job's smallest option, Float array (m,)."""
        works = _works_of(problem, elastic, penalty=scheduler.penalty, models=models)[0]
        usable = (work.usable(promises=policy.keeps_promises) for work in works)
        return np.array([min(o.num_gpus for o in options) for options in usable], float)

    def needs(problem: Problem) -> Needs:
        """Return what jobs do with on some nodes."""
        works = _works_of(problem, elastic, penalty=scheduler.penalty, models=models)[0]
        return Needs(problem, elastic, works, policy)

    smallest = least if policy.resizes else None
    problem, extra, more = rules.extras(problem, cluster, conditions, least=smallest, needs=needs)
    works, notes = _works_of(problem, elastic, penalty=scheduler.penalty, models=models)
    flown = policy_of_run(policy, problem)
    engine = choose_engine(conditions.engine)
    flight = engine.run(
        problem,
        flown,
        plain,
        queueing="strict",
        until=until,
        events=scheduler.events,
        decide_every=rules.decide_every,
        elastic=replace(elastic, works=works),
        record=conditions.record is not None,
        **extra,
    )
    settings = {
        "policy": policy.label,
        **settings_of(conditions, rules.governing, without=("models", "throughputs")),
        **rules.settings(),
        "penalty": _stated_penalty(scheduler.penalty, problem),
        "queueing": "policy",
        "placement": label_of(scheduler.placement) or plain.name,
        "estimates": predicted.estimates,
        "engine": engine.NAME,
    }
    if isinstance(scheduler.models, str | Path):
        settings["models"] = {"folder": str(scheduler.models), "names": sorted(models)}
    if flown.parameters:
        settings["parameters"] = dict(flown.parameters)
    waiting = left_waiting(flight, until, flown, {})
    notes = (*problem.notes, *flown.notes, *predicted.notes, *notes, *more, *waiting)
    return Outcome(table, cluster, flight, settings, problem.reasons, notes)


def _placement(
    cluster: ClusterSpec, conditions: Conditions, cores: tuple[int | None, ...], table: pa.Table
) -> tuple[Placement, Scores | None]:
    """Return where plain numbers of GPUs go, and the scores of options; None = best fit."""
    name, words, _ = split_placement(conditions.scheduler.placement)
    checked_topology(conditions.scheduler.placement, cluster)
    if words.get("gang", "node") != "node":
        asked = label_of(conditions.scheduler.placement)
        message = f"{asked!r}: an elastic job's options say how its GPUs lie on nodes."
        raise SpecError("placement", message)
    plain = resolve_placement("spread" if name == "spread" else "best_fit", cluster)
    if name == Tree.name or (name in (None, "best_fit") and not words):
        return plain, None
    scored = resolve_placement(
        conditions.scheduler.placement,
        cluster,
        devices=True,
        seed=conditions.seed,
        workload=lambda: workload_of_jobs(table),
    )
    assert isinstance(scored, ScoredPlacement)  # noqa: S101 - so it is where devices are modelled
    nodes = zip(device_nodes(cluster), cores, strict=True)
    return plain, Scores(scored, [replace(node, cores=limit) for node, limit in nodes])


def _asks(scheduler: Scheduler, cluster: ClusterSpec) -> Asks | None:
    """Return what jobs ask of the tree in which their options are placed; None = there is none.

    Raises:
        SpecError: what is preferred is to be spread evenly, or jobs are to ask for levels, and the
            placement looks at none.
    """
    tree = tree_of(scheduler.placement, cluster)
    if tree is None:
        check_no_request(scheduler, label_of(scheduler.placement) or BestFit.name)
        return None
    if tree.fill == "balanced":
        message = (
            "'tree:balanced' spreads pods of one size evenly, and the pieces of an elastic job's "
            "options are of unlike size."
        )
        raise SpecError("placement", message)
    return Asks(tree, scheduler.topology_request, in_pieces=True)


def _domains(scheduler: Scheduler, cluster: ClusterSpec, scores: Scores | None) -> Domains | None:
    """Return the domains in which the pieces of options lie together; None = anywhere."""
    tree = tree_of(scheduler.placement, cluster)
    if tree is not None:
        return Domains.of_tree(tree)
    if scores is None:
        return None
    return Domains.of_racks(scores.devices.racks, scores.placement.topology)


def _check_unused(policy: Policy, conditions: Conditions) -> None:
    """Check that a run has no options that elastic jobs have no use for."""
    for name, (quiet, why) in _UNUSED.items():
        if conditions.value(name) not in quiet:
            message = f"policy {policy.label!r} is elastic; such runs have no {name}: {why}."
            raise SpecError(name, message)
    placement = split_placement(conditions.scheduler.placement).name
    if placement == "pool":
        raise SpecError("placement", "elastic jobs run on nodes; expected a placement for nodes.")
    if conditions.scheduler.compat not in (None, "morphling"):
        raise SpecError("compat", f"policy {policy.label!r} is elastic; expected 'morphling'.")


def _works_of(
    problem: Problem,
    elastic: Elastic,
    *,
    penalty: float | Mapping[str, float] | None,
    models: Mapping[str, Any],
) -> tuple[list[Work], tuple[str, ...]]:
    """Return what each flown job is, in order of arrival, and notes.

    Args:
        problem: jobs and cluster.
        elastic: where they may run; without works yet.
        penalty: seconds of a launch or change, or by model, the others at the default; None = the
            default: what the jobs say, else `PENALTY`.
        models: throughput models by name.

    Raises:
        SchemaError: a job's plan cannot run on its GPUs, or it fits the cluster in no way.
        SpecError: a penalty is negative, also in the jobs' own column.
    """
    maker = _Maker(problem, elastic, penalty, models)
    works = [maker.work(job) for job in range(len(problem.rows))]
    rigid = sum(not work.model for work in works)
    notes = []
    paid = np.array([work.penalty for work in works])[np.isfinite(maker.trace_costs)]
    if penalty is None and len(paid):
        rest = "" if len(paid) == len(works) else f"; the others pay {PENALTY:g} s"
        notes.append(
            f"A launch or change costs {len(paid):,} jobs {span_of(paid)}, as the trace says{rest}."
        )
    if rigid:
        notes.append(
            f"{rigid:,} jobs name no throughput model in their template; they run as asked for."
        )
    if any(limit is None for limit in elastic.cores) and rigid < len(works):
        notes.append(
            f"Nodes do not say how many cores they have; options have up to {CORES_PER_GPU} a GPU, "
            "and cores do not constrain."
        )
    return works, tuple(notes)


def _rejecting(problem: Problem, elastic: Elastic, models: Mapping[str, Any]) -> Problem:
    """Return the problem without the jobs that cannot run here as they were asked for."""
    maker = _Maker(problem, elastic, None, models)
    reasons = {}
    for job in range(len(problem.rows)):
        try:
            maker.work(job)
        except SchemaError as error:
            reasons[job] = f"expected {error.violations[0].rule}"
    return problem.without(reasons)


def _models_of(given: Any) -> Mapping[str, Any]:
    """Return throughput models by name: those given, of a folder, or else the published ones."""
    if given is None:
        from windtunnel.throughput.morphling_models import THROUGHPUTS

        return THROUGHPUTS
    if isinstance(given, str | Path):
        from windtunnel.throughput.model_file import read_models

        return read_models(given)
    if not isinstance(given, Mapping):
        raise SpecError("models", f"found {quote(given)}; expected a folder, or models by name.")
    return given


class _Maker:
    """Makes the works of a problem's jobs; options of one model are made once."""

    def __init__(
        self,
        problem: Problem,
        elastic: Elastic,
        penalty: float | Mapping[str, float] | None,
        models: Mapping[str, Any],
    ) -> None:
        self.problem = problem
        self.jobs = problem.jobs
        self.trace_costs = trace_costs(problem)
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
        """Return what a job, by order of arrival, is."""
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
            gpus = max(self.sizes)
            limits = [limit for limit in self.cores if limit is not None]
            cpus = min(limits) // CORE_UNITS if limits else gpus * CORES_PER_GPU
            offered = self.models[model].options(
                node_gpus=gpus, node_cpus=cpus, num_nodes=len(self.sizes)
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
        cost = float(self.trace_costs[job])
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


def _stated_penalty(
    penalty: float | Mapping[str, float] | None, problem: Problem
) -> float | dict[str, float] | None:
    """Return the given penalty; None = each job's own, as the trace says."""
    if penalty is None:
        return PENALTY if np.isnan(trace_costs(problem)).all() else None
    return dict(penalty) if isinstance(penalty, Mapping) else penalty


def _cores(cluster: ClusterSpec, *, constrain: bool) -> tuple[int | None, ...]:
    """Return the thousandths of cores of each node, None = not constrained."""
    return tuple(
        round(kind.cpus * CORE_UNITS) if constrain and kind.cpus is not None else None
        for kind in cluster.node_types
        for _ in range(kind.count)
    )
