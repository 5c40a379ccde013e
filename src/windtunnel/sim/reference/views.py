"""What tier-3 policies see: the waiting jobs, and the cluster at this instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.parts import free_units, nodes_of_types, restricted
from windtunnel.errors import SpecError
from windtunnel.sim.contract import Start
from windtunnel.sim.jobs import JobView
from windtunnel.sim.refusals import check_gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.elastic.work import Option, Work
    from windtunnel.sim.reference.decisions import Decider


class QueueView:
    """The waiting jobs in order of arrival.

    A walk goes along those who waited when it began, and still do. Any column of the jobs
    table is an attribute, as are ``remaining``, ``run_time``, ``number`` and ``row``: an array of
    shape (len(queue),) in the same order.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider, self._state = decider, decider.state

    @property
    def arrived(self) -> list[JobView]:
        """Jobs that began to wait since the policy was last asked, in the order in which they did.

        They arrived, or a failure or a drain stopped them (`ClusterView.interrupted`).
        """
        return [self._state.view(job) for job in self._decider.arrived]

    @property
    def startable(self) -> Iterator[JobView]:
        """A walk along those who fit when their turn comes."""
        return self._walk(dict(self._state.waiting), fitting=True)

    def __len__(self) -> int:
        return len(self._state.waiting)

    def __iter__(self) -> Iterator[JobView]:
        return self._walk(dict(self._state.waiting), fitting=False)

    def _walk(self, waiting: dict[int, int], *, fitting: bool) -> Iterator[JobView]:
        state = self._state
        for job in sorted(waiting):
            still = state.waiting.get(job) == waiting[job]
            if still and (not fitting or state.fit(job) is not None):
                yield state.view(job)

    def __contains__(self, job: object) -> bool:
        number = getattr(job, "number", -1)
        return number in self._state.waiting and self._state.view(number) is job

    def __getitem__(self, index: int) -> JobView:
        return self._state.view(sorted(self._state.waiting)[index])

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        numbers = np.array(sorted(self._state.waiting), dtype=np.int32)
        return self._state.columns(numbers, name)


class ClusterView:
    """The cluster at this instant."""

    def __init__(self, decider: Decider) -> None:
        self._decider, self._state = decider, decider.state
        problem = decider.state.problem
        self._units = problem.units
        self._restricted: dict[tuple[int, frozenset[str | None]], Any] = {}
        #: GPUs of the whole cluster.
        self.num_gpus = problem.quota / problem.units
        #: Distinct GPU types in node order; None = not told apart.
        self.gpu_types: tuple[str | None, ...] = tuple(dict.fromkeys(problem.types))

    @property
    def free_gpus(self) -> float:
        """GPUs nobody holds."""
        return float(self._state.free.total / self._units)

    @property
    def free_by_node(self) -> list[float]:
        """GPUs nobody holds, by node (on a pool, by GPU type), in node order."""
        return [units / self._units for units in free_units(self._state.free)]

    @property
    def free_by_type(self) -> dict[str | None, float]:
        """GPUs nobody holds, by GPU type."""
        return self._by_type(free_units(self._state.free))

    @property
    def gpus_by_type(self) -> dict[str | None, float]:
        """GPUs of the whole cluster, by GPU type."""
        return self._by_type(self._state.problem.sizes.tolist())

    @property
    def usage_by_vc(self) -> dict[str | None, float]:
        """GPUs that running jobs asked for, by virtual cluster; None = jobs without one."""
        usage: dict[str | None, int] = {}
        for job in self._state.running:
            vc = self._state.view(job).vc
            usage[vc] = usage.get(vc, 0) + self._state.gpus[job]
        return {vc: units / self._units for vc, units in usage.items()}

    @property
    def running(self) -> list[JobView]:
        """Running jobs in order of start, with ``remaining`` and ``run_time`` of this instant."""
        return [self._state.view(job) for job in self._state.running]

    @property
    def finished(self) -> list[JobView]:
        """Jobs that are over since the policy was last asked, in order of completion.

        One that failed at its end and is to go on arrives again.
        """
        return [self._state.view(job) for job in self._decider.done]

    @property
    def interrupted(self) -> list[JobView]:
        """Jobs that failures, drains and the power cap stopped since the policy was last asked.

        They wait again, and stand in ``queue.arrived``.
        """
        return [self._state.view(job) for job in self._decider.stopped]

    def where(self, job: JobView) -> Where | None:
        """Return where a job runs, or None if it waits."""
        stay = self._state.running.get(self._decider.number(job))
        return None if stay is None else stay.where

    def rate(self, job: JobView) -> float | None:
        """Return a running job's rate before what slows everybody, or None if it waits."""
        stay = self._state.running.get(self._decider.number(job))
        return None if stay is None else stay.base

    def beside(self, job: JobView) -> JobView | None:
        """Return the job that shares a running job's GPUs, or None."""
        number = self._decider.number(job)
        stay = self._state.running.get(number)
        others = [] if stay is None else [o for o in stay.place.jobs if o != number]
        return self._state.view(others[0]) if others else None

    def may_share(self, job: JobView, beside: JobView) -> bool:
        """Return whether a job could be started beside a running one now."""
        number, other = self._decider.number(job), self._decider.number(beside)
        return other in self._state.running and not self._decider.no_company(number, other)

    def start(self, job: JobView, where: Where | None = None, rate: float = 1.0) -> bool:
        """Start a waiting job at once, as ``Start`` does; return False if it does not fit."""
        return self._decider.start_if_it_fits(Start(job, where, rate))

    def demand_class(self, job: JobView) -> int:
        """Return the number of the job's class: jobs of one class fit in the same places."""
        return self._state.class_of[self._decider.number(job)]

    def fit(
        self,
        job: JobView | float,
        gpu_types: Iterable[str | None] | None = None,
        without: Sequence[JobView] = (),
    ) -> Where | None:
        """Return where a job (or so many GPUs, of any type) would go, or None.

        Args:
            job: an active job, or a number of GPUs.
            gpu_types: only on nodes with these GPU types, of those that the job accepts; None =
                wherever it accepts.
            without: running jobs whose places count as free: where would it go if they were
                preempted?

        Raises:
            SpecError: the cluster has no such GPU type.
        """
        decider, state = self._decider, self._state
        types = None if gpu_types is None else frozenset(gpu_types)
        if not isinstance(job, JobView):
            check_gpus(state.problem, job)
            demand: Any = state.problem.plain_demand(job)
            demand = demand if types is None else self._on_types(demand, None, types)
            return state.placement.place(self._free_without(without), demand)
        number = decider.number(job)
        if types is None and not without:
            decider.offered = state.fit(number)
            return decider.offered
        demand = state.demand[number]
        if types is not None:
            demand = self._on_types(demand, int(state.problem.demand_of[number]), types)
        free = state.opened(self._free_without(without), number)
        where = state.put(free, number, demand)
        gone = [decider.number(other) for other in without]
        if where is not None and not state.affords(number, where, gone):
            where = None
        if not without:
            decider.offered = where
        return where

    def _free_without(self, jobs: Sequence[JobView]) -> Any:
        """Return what is free without some jobs; a place that others share is not."""
        state = self._state
        if not jobs:
            return state.free
        free = state.free.copy()
        gone = dict.fromkeys(self._decider.number(job) for job in jobs)
        places = {state.running[job].place: None for job in gone if job in state.running}
        for place in places:
            if all(job in gone for job in place.jobs):
                free.give(place.where, place.demand)
        return free

    def _on_types(self, demand: Any, key: int | None, types: frozenset[str | None]) -> Any:
        for name in types:
            if name not in self.gpu_types:
                known = [kind for kind in self.gpu_types if kind is not None]
                raise SpecError.unknown("gpu_types", str(name), known)
        if key is not None and (key, types) in self._restricted:
            return self._restricted[key, types]
        nodes = nodes_of_types(self._state.problem.types, types)
        bound = restricted(demand, self._state.free, nodes)
        if key is not None:
            self._restricted[key, types] = bound
        return bound

    def _by_type(self, units: Sequence[int]) -> dict[str | None, float]:
        found = dict.fromkeys(self.gpu_types, 0)
        for kind, number in zip(self._state.problem.types, units, strict=True):
            found[kind] += number
        return {kind: number / self._units for kind, number in found.items()}


class ElasticView(ClusterView):
    """The cluster at this instant, with the jobs' options."""

    def work(self, job: JobView) -> Work:
        """Return what the job is: iterations, what was asked for, penalty, whether guaranteed."""
        assert self._state.works is not None  # noqa: S101 - an elastic run
        work: Work = self._state.works[self._decider.number(job)]
        return work

    def options(self, job: JobView) -> tuple[Option, ...]:
        """Return every way in which the job can run on this cluster, fewest GPUs first."""
        return self.work(job).options

    def option(self, job: JobView) -> Option | None:
        """Return how the job runs, or None if it waits."""
        stay = self._state.running.get(self._decider.number(job))
        return None if stay is None else stay.place.demand

    def iterations_left(self, job: JobView) -> float:
        """Return the iterations that the job has left, as a fraction within one."""
        left = self._state.attained(self._decider.number(job), self._state.now)[1]
        return max(0.0, left / self.work(job).requested.iteration_time)

    def time_left(self, job: JobView, option: Option | None = None) -> float:
        """Return the seconds until a job completes.

        Args:
            job: an active job.
            option: as if it were launched in this option now; None = as a running job goes on.
        """
        if option is None:
            return self._state.running[self._decider.number(job)].due - self._state.now
        return self.work(job).penalty + self.iterations_left(job) * option.iteration_time

    def place(self, job: JobView, option: Option, without: Sequence[JobView] = ()) -> Where | None:
        """Return where an option of a job would go, or None.

        Args:
            job: an active job; what it holds counts as free.
            option: one of its options.
            without: running jobs whose places count as free, too.
        """
        where = self.place_in(self._free_without([job, *without]), job, option)
        gone = [self._decider.number(other) for other in (job, *without)]
        if where is None or not self._state.affords(gone[0], where, gone):
            return None
        return where

    def fit(
        self,
        job: JobView | float,
        gpu_types: Iterable[str | None] | None = None,
        without: Sequence[JobView] = (),
    ) -> Where | None:
        """Return where a job would go as its user asked, or so many GPUs of any node; or None.

        Args:
            job: an active job, or a number of GPUs.
            gpu_types: of a number of GPUs only; None = wherever it fits.
            without: running jobs whose places count as free.

        Raises:
            SpecError: GPU types for a job, whose options are of those that it accepts anyway.
        """
        if not isinstance(job, JobView):
            return super().fit(job, gpu_types, without)
        if gpu_types is not None:
            raise SpecError("gpu_types", "an elastic job's options are of the types it accepts.")
        return self.place(job, self.work(job).requested, without)

    def place_in(self, free: FreeShares, job: JobView, option: Option) -> Where | None:
        """Return where an option of a job would go with so much free, or None."""
        number = self._decider.number(job)
        return self._state.put(self._state.opened(free, number), number, option)

    def fits(self, job: JobView, option: Option, where: Where) -> bool:
        """Return whether a place is free for an option, what the job holds counting as free."""
        return self._decider.has(self._decider.number(job), where, option)

    @property
    def free_state(self) -> FreeShares:
        """A copy of what is free on each node, to plan with."""
        free: FreeShares = self._state.free.copy()
        return free
