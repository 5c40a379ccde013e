"""What tier-3 policies see: the waiting jobs, and the cluster at this instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.parts import free_units
from windtunnel.sim.elastic.views import ElasticView
from windtunnel.sim.jobs import JobView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.reference.decisions import Deciding


class QueueView:
    """The waiting jobs in order of arrival.

    A walk goes along those who waited when it began, and still do. Any column of the jobs
    table is an attribute, as are ``remaining``, ``run_time``, ``number`` and ``row``: an array of
    shape (len(queue),) in the same order.
    """

    def __init__(self, deciding: Deciding) -> None:
        self.deciding, self._state = deciding, deciding.state

    @property
    def arrived(self) -> list[JobView]:
        """Jobs that began to wait since the policy was last asked, in the order in which they did.

        They arrived, or a failure or a drain stopped them (`ClusterView.interrupted`).
        """
        return [self._state.view(job) for job in self.deciding.arrived]

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
            if still and (not fitting or self._fits(job)):
                yield state.view(job)

    def _fits(self, job: int) -> bool:
        """Return whether a job fits now; an elastic one on the nodes where it may have GPUs."""
        if self._state.works is not None and self.deciding.differs_by_node:
            return self.deciding.cluster.fit(self._state.view(job)) is not None
        return self._state.fit(job) is not None

    def __contains__(self, job: object) -> bool:
        number = getattr(job, "number", -1)
        return number in self._state.waiting and self._state.view(number) is job

    def __getitem__(self, index: Any) -> Any:
        found = sorted(self._state.waiting)[index]
        if isinstance(found, list):
            return [self._state.view(job) for job in found]
        return self._state.view(found)

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        numbers = np.array(sorted(self._state.waiting), dtype=np.int32)
        return self._state.columns(numbers, name)


class ClusterView:
    """The cluster at this instant; more on it in `windtunnel.kernel.policy_views`."""

    def __init__(self, deciding: Deciding) -> None:
        self.deciding = self.driver = deciding
        self._state = deciding.state
        problem = deciding.state.problem
        self._units = problem.units
        #: GPUs of the whole cluster.
        self.num_gpus = problem.quota / problem.units
        #: Distinct GPU types in node order; None = not distinguished.
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
        return [self._state.view(job) for job in self.deciding.over]

    @property
    def interrupted(self) -> list[JobView]:
        """Jobs that failures, drains and the power cap stopped since the policy was last asked.

        They wait again, and stand in ``queue.arrived``.
        """
        return [self._state.view(job) for job in self.deciding.stopped]

    @property
    def moved(self) -> list[JobView]:
        """Running jobs of which another node took a failed one's place since then."""
        return [self._state.view(job) for job in self.deciding.moved]

    def where(self, job: JobView) -> Where | None:
        """Return where a job runs, or None if it waits."""
        stay = self._state.running.get(self.deciding.active(job))
        return None if stay is None else [*stay.where]

    def rate(self, job: JobView) -> float | None:
        """Return a running job's rate before what slows everybody, or None if it waits."""
        stay = self._state.running.get(self.deciding.active(job))
        return None if stay is None else stay.base

    def beside(self, job: JobView) -> JobView | None:
        """Return the job that shares a running job's GPUs, or None."""
        number = self.deciding.active(job)
        stay = self._state.running.get(number)
        others = [] if stay is None else [o for o in stay.place.jobs if o != number]
        return self._state.view(others[0]) if others else None

    def may_share(self, job: JobView, beside: JobView) -> bool:
        """Return whether a job could be started beside a running one now."""
        number, other = self.deciding.active(job), self.deciding.active(beside)
        if other not in self._state.running:
            return False
        shares = len(self._state.running[other].place.jobs) > 1
        return not self.deciding.why_not_beside(number, other, None, shares)

    def start(self, job: JobView, where: Where | None = None, rate: float = 1.0) -> bool:
        """Start a waiting job at once, as ``Start`` does; return False if it does not fit."""
        return self.deciding.start_if_it_fits(job, where, rate)

    def demand_class(self, job: JobView) -> int:
        """Return the number of the job's class: jobs of one class fit in the same places."""
        return self._state.class_of[self.deciding.active(job)]

    def fit(
        self,
        job: JobView | float,
        gpu_types: Iterable[str | None] | None = None,
        without: Iterable[JobView] | None = None,
    ) -> Where | None:
        """Return where a job, or so many GPUs of any type, would go on some types, others gone."""
        deciding, state = self.deciding, self._state
        types = None if gpu_types is None else deciding.types(gpu_types)
        gone = [deciding.active(other) for other in deciding.several(without)]
        if not isinstance(job, JobView):
            demand: Any = state.problem.plain_demand(deciding.gpus(job))
            demand = demand if types is None else deciding.on_types(demand, types)
            return state.placement.place(state.free_without(gone), demand)
        number = deciding.active(job)
        if types is None and not gone:
            return state.fit(number)
        asked = state.demand[number]
        demand = asked if types is None else deciding.on_types(asked, types)
        if deciding.fits_in_turn(number):
            return deciding.fit_in_turn(number, asked, gone, types)
        return deciding.fit_without(number, demand, gone)

    def fit_without(self, number: int, demand: Any, gone: Sequence[int]) -> Where | None:
        """Return where a job would go with a demand if some jobs were gone, by number, or None."""
        return self.deciding.fit_without(number, demand, gone)

    def _by_type(self, units: Sequence[int]) -> dict[str | None, float]:
        found = dict.fromkeys(self.gpu_types, 0)
        for kind, number in zip(self._state.problem.types, units, strict=True):
            found[kind] += number
        return {kind: number / self._units for kind, number in found.items()}


class ElasticClusterView(ElasticView, ClusterView):
    """The cluster at this instant, with the jobs' options."""
