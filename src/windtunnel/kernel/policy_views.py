"""`QueueView` and `ClusterView`: what policies that decide all by themselves are shown."""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.deciding import Deciding
from windtunnel.kernel.free import Free
from windtunnel.kernel.job_views import JobView, view_pairs
from windtunnel.kernel.state import STATE_RUNNING, STATE_WAITING


@cython.final
@cython.cclass
class QueueWalk:
    """A walk along those who wait, in order of arrival; jobs may be started on the way.

    Args:
        deciding: the run.
        fitting: pass over those who do not fit when their turn comes.
    """

    deciding: Deciding
    last: cython.int
    at: cython.longlong
    serial: cython.longlong
    fitting: cython.bint
    by_node: cython.bint

    def __init__(self, deciding: Deciding, fitting: bool) -> None:
        self.deciding = deciding
        self.fitting = fitting
        driver = deciding.driver
        #: Elastic jobs may have GPUs on some nodes alone, among which their places are sought.
        self.by_node = fitting and driver.works is not None and driver.differs_by_node
        self.last = -1
        self.at = -1
        self.serial = deciding.asked.serial

    def __iter__(self) -> QueueWalk:
        return self

    def __next__(self) -> JobView:
        job: cython.int = self._next()
        if job < 0:
            raise StopIteration
        return self.deciding.views.of(job)

    @cython.cfunc
    def _next(self) -> cython.int:
        end: cython.longlong = self.deciding.lines.begin[0] + self.deciding.lines.length[0]
        at: cython.longlong = self._behind_last(self.deciding.lines.begin[0], end)
        job: cython.int
        if self.fitting:
            self.deciding.search.forget()
        while at < end:
            job = self.deciding.lines.slab[at]
            if self.deciding.asked.came_at[job] <= self.serial and (
                not self.fitting or self._fits(job)
            ):
                self.last = job
                self.at = at
                return job
            at += 1
        return -1

    @cython.cfunc
    def _fits(self, job: cython.int) -> cython.bint:
        if self.by_node:
            view: JobView = self.deciding.views.of(job)
            return self.deciding.driver.cluster.fit(view) is not None
        return self.deciding.search.looks_for(job)

    @cython.cfunc
    def _behind_last(self, low: cython.longlong, high: cython.longlong) -> cython.longlong:
        """Return where the walk goes on: whoever it met last may have been started since."""
        middle: cython.longlong
        if low <= self.at < high and self.deciding.lines.slab[self.at] == self.last:
            return self.at + 1
        while low < high:
            middle = (low + high) >> 1
            if self.deciding.lines.slab[middle] <= self.last:
                low = middle + 1
            else:
                high = middle
        return low


@cython.final
@cython.cclass
class QueueView:
    """The waiting jobs in order of arrival.

    A walk goes along those who waited when it began, and still do. Any column of the jobs
    table is an attribute, as are ``remaining``, ``run_time``, ``number`` and ``row``: an array of
    shape (len(queue),) in the same order.
    """

    deciding: Deciding

    def __init__(self, deciding: Deciding) -> None:
        self.deciding = deciding

    @property
    def arrived(self) -> list:
        """Jobs that began to wait since the policy was last asked, in the order in which they did.

        They arrived, or something stopped them (`ClusterView.interrupted`).
        """
        return self.deciding.views.listed(self.deciding.asked.arrived)

    @property
    def startable(self) -> QueueWalk:
        """A walk along those who fit when their turn comes.

        What one job is refused, no other of its demand class is asked for, before capacity is given
        back.
        """
        return QueueWalk(self.deciding, True)

    def __len__(self) -> int:
        return self.deciding.lines.count

    def __iter__(self) -> QueueWalk:
        return QueueWalk(self.deciding, False)

    def __contains__(self, job: object) -> bool:
        if not isinstance(job, JobView):
            return False
        mine: JobView = job
        known = mine._state is self.deciding.state
        return known and self.deciding.state.status[mine.number] == STATE_WAITING

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        count: cython.longlong = self.deciding.lines.count
        at: cython.longlong = index
        if at < 0:
            at += count
        if not 0 <= at < count:
            raise IndexError(f"job {index} of {count} that wait")
        return self.deciding.views.of(self.deciding.lines.slab[self.deciding.lines.begin[0] + at])

    def __getattr__(self, name: str) -> numpy.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        begin = self.deciding.lines.begin[0]
        slab = numpy.asarray(self.deciding.lines.slab)
        waiting = slab[begin : begin + self.deciding.lines.length[0]].copy()
        return self.deciding.views.columns(waiting, name)


@cython.cclass
class ClusterView:
    """The cluster at this instant.

    Attributes:
        num_gpus: GPUs of the whole cluster.
        gpu_types: distinct GPU types in node order; None = not distinguished.
    """

    deciding = cython.declare(Deciding, visibility="readonly")
    driver = cython.declare(object, visibility="readonly")
    units: cython.longlong
    num_gpus = cython.declare(cython.double, visibility="readonly")
    gpu_types = cython.declare(object, visibility="readonly")
    type_of: object

    def __init__(self, deciding: Deciding) -> None:
        problem = deciding.driver.problem
        self.deciding, self.driver = deciding, deciding.driver
        self.units = problem.units
        self.num_gpus = problem.quota / problem.units
        self.gpu_types = tuple(dict.fromkeys(problem.types))
        self.type_of = numpy.array([self.gpu_types.index(kind) for kind in problem.types], int)

    @property
    def free_gpus(self) -> float:
        """GPUs nobody holds."""
        return cython.cast(cython.double, self.deciding.search.free.total) / self.units

    @property
    def free_by_node(self) -> list:
        """GPUs nobody holds, by node (on a pool, by GPU type), in node order."""
        return (self.deciding.search.free.free_by_node() / self.units).tolist()

    @property
    def free_by_type(self) -> dict:
        """GPUs nobody holds, by GPU type."""
        return self._by_type(self.deciding.search.free.free_by_node())

    @property
    def gpus_by_type(self) -> dict:
        """GPUs of the whole cluster, by GPU type."""
        return self._by_type(self.driver.problem.sizes)

    def _by_type(self, units: numpy.ndarray) -> dict:
        sums = numpy.bincount(self.type_of, units, len(self.gpu_types)) / self.units
        return dict(zip(self.gpu_types, sums.tolist(), strict=True))

    @property
    def usage_by_vc(self) -> dict:
        """GPUs that running jobs asked for, by virtual cluster; None = jobs without one."""
        usage: dict = {}
        job: cython.int = self.deciding.state.first_running
        while job >= 0:
            vc = self.deciding.views.of(job).vc
            usage[vc] = usage.get(vc, 0) + self.deciding.state.units[job]
            job = self.deciding.state.following[job]
        return {vc: units / self.units for vc, units in usage.items()}

    @property
    def running(self) -> list:
        """Running jobs in order of start."""
        found: list = []
        job: cython.int = self.deciding.state.first_running
        while job >= 0:
            found.append(self.deciding.views.of(job))
            job = self.deciding.state.following[job]
        return found

    @property
    def finished(self) -> list:
        """Jobs that are over since the policy was last asked, in order.

        One that failed at its end and is to go on arrives again.
        """
        return self.deciding.views.listed(self.deciding.asked.over)

    @property
    def interrupted(self) -> list:
        """Jobs that failures, drains or a falling power cap took off their GPUs since then.

        They wait again, and stand in ``queue.arrived``.
        """
        return self.deciding.views.listed(self.deciding.asked.stopped)

    @property
    def moved(self) -> list:
        """Running jobs of which another node took a failed one's place since then."""
        return self.deciding.views.listed(self.deciding.asked.moved)

    def where(self, job: object) -> list | None:
        """Return where a job runs, or None if it waits."""
        number: cython.int = self.deciding.number(job)
        if self.deciding.state.status[number] != STATE_RUNNING:
            return None
        stay: cython.int = self.deciding.state.stay[number]
        return view_pairs(
            self.deciding.state.stays.pairs,
            self.deciding.state.stays.first[stay],
            self.deciding.state.stays.last(stay),
        )

    def rate(self, job: object) -> float | None:
        """Return a running job's rate before what slows everybody, or None if it waits."""
        number: cython.int = self.deciding.number(job)
        if self.deciding.state.status[number] != STATE_RUNNING:
            return None
        return self.deciding.state.base_rate[number]

    def beside(self, job: object) -> JobView | None:
        """Return the job that shares a running job's GPUs, or None."""
        number: cython.int = self.deciding.number(job)
        mate: cython.int = self.deciding.state.mate[number]
        return None if mate < 0 else self.deciding.views.of(mate)

    def may_share(self, job: object, beside: object) -> bool:
        """Return whether a job could be started beside a running one now."""
        other: cython.int = self.deciding.number(beside)
        if self.deciding.state.status[other] != STATE_RUNNING:
            return False
        shares: cython.bint = self.deciding.state.mate[other] >= 0
        return not self.driver.why_not_beside(self.deciding.number(job), other, None, shares)

    def demand_class(self, job: object) -> int:
        """Return the number of the job's class: jobs of one class fit in the same places."""
        return self.deciding.search.class_of[self.deciding.number(job)]

    def start(self, job: object, where: object = None, rate: object = 1.0) -> bool:
        """Start a waiting job at once, as ``Start`` does; return False if it does not fit."""
        return self.deciding.start_if_it_fits(job, where, rate)

    def fit(self, job: object, gpu_types: object = None, without: object = None) -> list | None:
        """Return where a job (or so many GPUs, of any type) would go, or None.

        Args:
            job: an active job, or a number of GPUs.
            gpu_types: only on nodes with these GPU types, of those that the job accepts; None =
                wherever it accepts.
            without: jobs whose places count as free: where would it go if they were preempted? Who
                waits holds none. None = nobody's.

        Raises:
            SpecError: the cluster has no such GPU type.
            PolicyError: something else than a job, a number of GPUs, their types, running jobs.
        """
        kind: cython.int
        if not isinstance(job, JobView):
            kind = self.driver.plain_kind(job, gpu_types)
            self.deciding.search.forget()
            return self._fit_free(kind, self.driver.several(without))
        number: cython.int = self.deciding.number(job)
        if gpu_types is None and without is None:
            return self.deciding.search.find(number)
        gone = [self.deciding.number(other) for other in self.driver.several(without)]
        if gpu_types is None:
            if not gone:
                return self.deciding.search.find(number)
            kind = self.deciding.state.kind[number]
        else:
            gpu_types = self.driver.types(gpu_types)
            kind = self.driver.kind_on(self.deciding.state.kind[number], gpu_types)
        if self.driver.fits_in_turn(number):
            kind = self.deciding.state.kind[number]
            return self.driver.fit_in_turn(number, kind, gone, gpu_types)
        if not gone:
            return self.deciding.search.find_as(number, kind)
        return self.fit_without(number, kind, gone)

    def fit_without(self, number: int, kind: int, jobs: list) -> list | None:
        """Return where a job of a kind would go if these jobs, by number, were gone, or None."""
        free: Free = self.deciding.search.without(jobs)
        self.deciding.search.forget()
        if not self.deciding.search.fit_as(free, number, kind):
            return None
        return view_pairs(free.place, 0, free.place.count)

    def _fit_free(self, kind: cython.int, without: list) -> list | None:
        free: Free = self.deciding.search.free
        if without:
            numbers = [self.deciding.number(other) for other in without]
            free = self.deciding.search.without(numbers)
        if not free.fit(kind):
            return None
        return view_pairs(free.place, 0, free.place.count)
