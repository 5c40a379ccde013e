"""`Instance`: one allocation problem: jobs with their speeds on each GPU type, and the GPUs.

Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI'20, section 3.1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import InfeasibleError, SpecError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.policies.gavel.queue_quotas import QueueQuotas

_NAMES = frozenset({"cluster", "jobs", "pairs", "entities", "instance_costs", "SLO_seconds_left"})
_JOB_NAMES = frozenset(
    {"id", "throughputs", "scale_factor", "priority_weight", "num_steps_remaining"}
    | {"time_since_start", "isolated_time", "slo_seconds_left", "entity", "job_type"}
)
#: Names as alike as that are taken for one misspelt (`windtunnel.errors.nearest`).
_MISSPELT = 0.85
#: Arrays of an instance that have an entry a job.
_OF_JOBS = (
    *("throughputs", "scale_factors", "weights", "steps_left", "time_since_start"),
    *("isolated_time", "slo_seconds_left", "job_entities"),
)
#: A job's name: any hashable value, usually its number or `job_id`.
JobId: TypeAlias = Hashable


@dataclass(frozen=True)
class Entity:
    """A tenant who shares the cluster with others and rules over his own jobs.

    Attributes:
        id: its name.
        weight: its share relative to the other entities, > 0.
        policy: its inner rule: ``fairness`` or ``fifo``.
    """

    id: Hashable
    weight: float = 1.0
    policy: str = "fairness"


@dataclass(frozen=True)
class Instance:
    """One allocation problem. Every array of jobs is in the order of ``job_ids``.

    Attributes:
        gpu_types: names, sorted; shape (types,).
        num_gpus: GPUs of each type, may be fractional; shape (types,).
        job_ids: names of the jobs, each once; shape (jobs,).
        throughputs: steps per second of the whole gang on each type, 0 = cannot run; shape
            (jobs, types).
        scale_factors: GPUs of the gang, > 0; shape (jobs,).
        weights: priority weights, > 0; shape (jobs,).
        steps_left: steps to go, NaN = unknown; shape (jobs,).
        time_since_start: seconds since submission; shape (jobs,).
        isolated_time: seconds the job would have needed so far on its own equal share of the
            cluster, for finish-time fairness; shape (jobs,).
        slo_seconds_left: seconds to the deadline, infinite = none; shape (jobs,).
        pairs: rows of the two jobs that may share GPUs; shape (pairs, 2).
        pair_throughputs: steps per second of the first and the second; shape (pairs, types, 2).
        costs: dollars per GPU hour of each type, NaN = unknown; shape (types,).
        largest_gangs: GPUs of each type that one gang can span: those of the whole cluster, also
            in a part of it; shape (types,).
        entities: tenants, empty = none.
        job_entities: index of each job's tenant, -1 = none; shape (jobs,).
        num_sharing: how many jobs an equal share is counted among; None = those of the instance.
            In a part of an instance it is the whole's jobs over the parts, so that a job's equal
            share is the same in both.
        quotas: of the jobs' queues, where ids are the jobs' numbers there; None = none limit them.
    """

    gpu_types: tuple[str, ...]
    num_gpus: np.ndarray
    job_ids: tuple[JobId, ...]
    throughputs: np.ndarray
    scale_factors: np.ndarray
    weights: np.ndarray
    steps_left: np.ndarray
    time_since_start: np.ndarray
    isolated_time: np.ndarray
    slo_seconds_left: np.ndarray
    pairs: np.ndarray
    pair_throughputs: np.ndarray
    costs: np.ndarray
    largest_gangs: np.ndarray
    entities: tuple[Entity, ...] = ()
    job_entities: np.ndarray = field(default_factory=lambda: np.empty(0, int))
    num_sharing: float | None = None
    quotas: QueueQuotas | None = None

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return len(self.job_ids)

    @property
    def runnable(self) -> np.ndarray:
        """Where a job can run at all: it has a speed there and its gang fits; (jobs, types)."""
        mask: np.ndarray = (self.throughputs > 0) & self.fits
        return mask

    @property
    def fits(self) -> np.ndarray:
        """Where a job's gang fits; (jobs, types)."""
        fits: np.ndarray = self.scale_factors[:, None] <= self.largest_gangs[None, :]
        return fits

    def position(self, job_id: JobId) -> int:
        """Return a job's row.

        Raises:
            SpecError: there is no such job.
        """
        if job_id not in self.job_ids:
            raise SpecError("job", f"there is no job {quote(job_id)} in the instance.")
        return self.job_ids.index(job_id)

    def keep(self, rows: np.ndarray) -> Instance:
        """Return the instance of some jobs only, with the pairs among them.

        Args:
            rows: indices of the jobs to keep, in the order wanted.
        """
        place = np.full(self.num_jobs, -1)
        place[rows] = np.arange(len(rows))
        kept = np.all(place[self.pairs] >= 0, axis=1) if len(self.pairs) else np.empty(0, bool)
        return replace(
            self,
            job_ids=tuple(self.job_ids[row] for row in rows),
            **{name: getattr(self, name)[rows] for name in _OF_JOBS},
            pairs=place[self.pairs[kept]].reshape(-1, 2),
            pair_throughputs=self.pair_throughputs[kept],
        )

    def require_runnable(self, model: str) -> None:
        """Check that every job can run somewhere.

        Raises:
            InfeasibleError: one cannot; names it and says why.
        """
        able = self.runnable.any(axis=1)
        if able.all():
            return
        row = int(np.argmin(able))
        who = f"job {quote(self.job_ids[row])}"
        if not (self.throughputs[row] > 0).any():
            raise InfeasibleError(model, f"{who} has throughput 0 on every GPU type")
        gang = f"its gang of {self.scale_factors[row]:g}"
        raise InfeasibleError(model, f"{who}: {gang} fits on no GPU type on which it can run")

    def require_steps(self, model: str) -> None:
        """Check that the steps left of every job are known.

        Raises:
            SpecError: those of one are not; names it.
        """
        unknown = np.flatnonzero(np.isnan(self.steps_left))
        if len(unknown):
            who = quote(self.job_ids[int(unknown[0])])
            raise SpecError("num_steps_remaining", f"{model} needs it; job {who} has none.")


def as_instance(source: Instance | Mapping[str, Any]) -> Instance:
    """Return an allocation problem, checked.

    Args:
        source: an `Instance`, or plain data: ``cluster`` (GPUs by type), ``jobs`` (list of ``id``,
            ``throughputs`` by type, and optionally ``scale_factor``, ``priority_weight``,
            ``num_steps_remaining``, ``time_since_start``, ``isolated_time``,
            ``slo_seconds_left``, ``entity``), and optionally ``pairs`` (list of ``jobs`` and
            ``throughputs`` by type), ``entities`` (list of ``id``, ``weight``, ``policy``),
            ``instance_costs`` (by type) and ``SLO_seconds_left`` (by job).

    Raises:
        SpecError: something is missing, unknown or out of range; says where.
    """
    if isinstance(source, Instance):
        return source
    if not isinstance(source, Mapping):
        raise SpecError("instance", f"expected an Instance or a mapping, not {quote(source)}.")
    cluster = _mapping(source, "cluster", "instance")
    if not cluster or not all(isinstance(name, str) for name in cluster):
        raise SpecError("instance.cluster", "expected GPU types by name, at least one.")
    types = tuple(sorted(cluster))
    _check_names(source, _NAMES, "instance")
    gpus = np.array([_number(cluster[t], f"instance.cluster.{t}", least=0) for t in types])
    jobs = source.get("jobs")
    if not isinstance(jobs, Sequence) or isinstance(jobs, str):
        raise SpecError("instance.jobs", f"expected a list, not {quote(jobs)}.")
    ids = _ids(jobs)
    entities = _entities(_listed(source, "entities"))
    pairs, pair_speeds = _pairs(_listed(source, "pairs"), ids, types)
    instance = Instance(
        gpu_types=types,
        num_gpus=gpus,
        job_ids=ids,
        throughputs=np.array([_speeds(j, types, k) for k, j in enumerate(jobs)]).reshape(
            -1, len(types)
        ),
        scale_factors=_each(jobs, "scale_factor", 1.0, above=0),
        weights=_each(jobs, "priority_weight", 1.0, above=0),
        steps_left=_each(jobs, "num_steps_remaining", np.nan, least=0),
        time_since_start=_each(jobs, "time_since_start", 0.0, least=0),
        isolated_time=_each(jobs, "isolated_time", 0.0, least=0),
        slo_seconds_left=_each(jobs, "slo_seconds_left", np.inf),
        pairs=pairs,
        pair_throughputs=pair_speeds,
        costs=np.full(len(types), np.nan),
        largest_gangs=gpus,
        entities=entities,
        job_entities=_job_entities(jobs, entities),
    )
    if source.get("instance_costs") is not None:
        instance = with_costs(instance, _mapping(source, "instance_costs", "instance"))
    if source.get("SLO_seconds_left") is not None:
        instance = with_slos(instance, _mapping(source, "SLO_seconds_left", "instance"))
    return instance


def with_costs(instance: Instance, costs: Mapping[str, float]) -> Instance:
    """Return the instance with dollars per GPU hour by type.

    Raises:
        SpecError: an unknown type, or a price that is not > 0.
    """
    if not isinstance(costs, Mapping):
        raise SpecError("instance_costs", f"expected a mapping, not {quote(costs)}.")
    values = instance.costs.copy()
    for name, price in costs.items():
        checked_choice("instance_costs", name, instance.gpu_types)
        where = f"instance_costs.{name}"
        values[instance.gpu_types.index(name)] = _number(price, where, above=0)
    return replace(instance, costs=values)


def with_slos(instance: Instance, seconds_left: Mapping[Any, float]) -> Instance:
    """Return the instance with seconds to the deadline by job (its id, or that as text).

    Raises:
        SpecError: an unknown job, or no number.
    """
    if not isinstance(seconds_left, Mapping):
        raise SpecError("slo_seconds_left", f"expected a mapping, not {quote(seconds_left)}.")
    values = instance.slo_seconds_left.copy()
    spelt = {str(name): row for row, name in enumerate(instance.job_ids)}
    for name, seconds in seconds_left.items():
        if str(name) not in spelt:
            raise SpecError("slo_seconds_left", f"there is no job {quote(name)} in the instance.")
        values[spelt[str(name)]] = _number(seconds, f"slo_seconds_left.{name}")
    return replace(instance, slo_seconds_left=values)


def _ids(jobs: Sequence[Any]) -> tuple[JobId, ...]:
    ids: list[JobId] = []
    for row, job in enumerate(jobs):
        named = isinstance(job, Mapping) and job.get("id") is not None
        if not named or not _is_name(job["id"]):
            raise SpecError(f"instance.jobs[{row}]", "expected a mapping with an 'id'.")
        _check_names(job, _JOB_NAMES, f"instance.jobs[{row}]")
        ids.append(job["id"])
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise SpecError("instance.jobs", f"the id {quote(twice)} appears twice.")
    return tuple(ids)


def _speeds(job: Mapping[str, Any], types: tuple[str, ...], row: int) -> list[float]:
    where = f"instance.jobs[{row}]"
    speeds = _mapping(job, "throughputs", where)
    return [_number(speeds.get(t, 0.0), f"{where}.throughputs.{t}", least=0) for t in types]


def _each(
    jobs: Sequence[Mapping[str, Any]],
    name: str,
    default: float,
    *,
    least: float = -np.inf,
    above: float = -np.inf,
) -> np.ndarray:
    values = [
        default
        if job.get(name) is None
        else _number(job[name], f"instance.jobs[{row}].{name}", least=least, above=above)
        for row, job in enumerate(jobs)
    ]
    return np.array(values, float)


def _pairs(
    pairs: Iterable[Any], ids: tuple[JobId, ...], types: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    rows = {name: row for row, name in enumerate(ids)}
    members: list[list[int]] = []
    speeds = []
    found: set[frozenset[int]] = set()
    for number, pair in enumerate(pairs):
        where = f"instance.pairs[{number}]"
        names = pair.get("jobs") if isinstance(pair, Mapping) else None
        if not isinstance(names, Sequence) or len(names) != 2 or names[0] == names[1]:  # noqa: PLR2004
            raise SpecError(where, "expected two different jobs under 'jobs'.")
        for name in names:
            if not _is_name(name) or name not in rows:
                raise SpecError(f"{where}.jobs", f"there is no job {quote(name)}.")
        members.append([rows[names[0]], rows[names[1]]])
        if frozenset(members[-1]) in found:
            message = f"jobs {quote(names[0])} and {quote(names[1])} are a pair already."
            raise SpecError(f"{where}.jobs", message)
        found.add(frozenset(members[-1]))
        table = _mapping(pair, "throughputs", where)
        speeds.append([_both(table.get(t, (0.0, 0.0)), f"{where}.throughputs.{t}") for t in types])
    shape = (-1, len(types), 2)
    return np.array(members, int).reshape(-1, 2), np.array(speeds, float).reshape(shape)


def _both(pair: Any, where: str) -> list[float]:
    """Return the speeds of the first and the second of two jobs."""
    listed = isinstance(pair, Sequence | np.ndarray) and not isinstance(pair, str)
    if not listed or len(pair) != 2:  # noqa: PLR2004 - a pair
        raise SpecError(where, f"expected the speeds of both jobs, not {quote(pair)}.")
    return [_number(value, where, least=0) for value in pair]


def _entities(entries: Iterable[Any]) -> tuple[Entity, ...]:
    entities: list[Entity] = []
    for number, entry in enumerate(entries):
        where = f"instance.entities[{number}]"
        if not isinstance(entry, Mapping) or not _is_name(entry.get("id")):
            raise SpecError(where, "expected a mapping with an 'id'.")
        if any(entity.id == entry["id"] for entity in entities):
            raise SpecError(where, f"the id {quote(entry['id'])} appears twice.")
        rule = str(entry.get("policy", "fairness"))
        checked_choice(f"{where}.policy", rule, ("fairness", "fifo"))
        weight = _number(entry.get("weight", 1.0), f"{where}.weight", above=0)
        entities.append(Entity(entry["id"], weight, rule))
    return tuple(entities)


def _job_entities(jobs: Sequence[Mapping[str, Any]], entities: tuple[Entity, ...]) -> np.ndarray:
    place = {entity.id: row for row, entity in enumerate(entities)}
    found = np.full(len(jobs), -1)
    for row, job in enumerate(jobs):
        name = job.get("entity")
        if name is not None and place:
            if not _is_name(name) or name not in place:
                raise SpecError(f"instance.jobs[{row}].entity", f"no entity {quote(name)}.")
            found[row] = place[name]
    return found


def _is_name(value: Any) -> bool:
    """Return whether a value can name something: it is hashable, there and equal to itself."""
    return value is not None and isinstance(value, Hashable) and bool(value == value)  # noqa: PLR0124


def _check_names(source: Mapping[Any, Any], known: frozenset[str], where: str) -> None:
    """Check that no name is a known one misspelt; others are the caller's own.

    Raises:
        SpecError: one is; names both.
    """
    for name in source.keys() - known:
        near = nearest(str(name), known, alike=_MISSPELT)
        if near:
            raise SpecError(f"{where}.{name}", f"unknown name.{near}")


def _listed(source: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = source.get(name)
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise SpecError(f"instance.{name}", f"expected a list, not {quote(value)}.")
    return value


def _mapping(source: Mapping[str, Any], name: str, where: str) -> Mapping[Any, Any]:
    value = source.get(name)
    if not isinstance(value, Mapping):
        raise SpecError(f"{where}.{name}", f"expected a mapping, not {quote(value)}.")
    return value


def _number(value: Any, where: str, *, least: float = -np.inf, above: float = -np.inf) -> float:
    number = value if isinstance(value, int | float | np.number) else None
    if number is None or isinstance(value, bool) or not np.isfinite(number):
        raise SpecError(where, f"expected a finite number, not {quote(value)}.")
    if number < least or number <= above:
        bound = f">= {least:g}" if number < least else f"> {above:g}"
        raise SpecError(where, f"expected a number {bound}, not {quote(value)}.")
    return float(number)
