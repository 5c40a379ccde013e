"""Tier-3 policies on the reference engine: what they see, and how decisions are carried out."""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.parts import free_units, nodes_of_types, restricted
from windtunnel.errors import PolicyError, SpecError
from windtunnel.sim.contract import Move, Preempt, Resize, Start, Wake
from windtunnel.sim.jobs import JobView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.ledger import Ledger


#: Decisions in a row in which nothing runs, arrives or is started.
MAX_IDLE_DECISIONS = 10_000


class QueueView:
    """The waiting jobs in order of arrival.

    Iterating walks a snapshot, so that jobs may be started on the way. Any column of the jobs table
    is an attribute: an array of shape (len(queue),) in the same order.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider

    @property
    def arrived(self) -> list[JobView]:
        """Jobs that began to wait since the policy was last asked, in the order in which they did.

        They arrived, or a failure or a drain stopped them (`ClusterView.interrupted`).
        """
        return list(self._decider.arrived)

    def __len__(self) -> int:
        return len(self._decider.waiting)

    def __iter__(self) -> Iterator[JobView]:
        views = self._decider.views
        return iter([views[job] for job in self._decider.waiting])

    def __getitem__(self, index: int) -> JobView:
        return self._decider.views[self._decider.waiting[index]]

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        problem = self._decider.ledger.problem
        column: np.ndarray = getattr(problem.jobs, name)
        waiting: np.ndarray = column[problem.rows[self._decider.waiting]]
        return waiting


class ClusterView:
    """The cluster at this instant."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        problem = decider.ledger.problem
        self._units = problem.units
        self._restricted: dict[tuple[int, frozenset[str | None]], Any] = {}
        #: GPUs of the whole cluster.
        self.num_gpus = problem.quota / problem.units
        #: Distinct GPU types in node order; None = not told apart.
        self.gpu_types: tuple[str | None, ...] = tuple(dict.fromkeys(problem.types))

    @property
    def free_gpus(self) -> float:
        """GPUs nobody holds."""
        return self._decider.ledger.free.total / self._units

    @property
    def free_by_node(self) -> list[float]:
        """GPUs nobody holds, by node (on a pool, by GPU type), in node order."""
        return [units / self._units for units in free_units(self._decider.ledger.free)]

    @property
    def free_by_type(self) -> dict[str | None, float]:
        """GPUs nobody holds, by GPU type."""
        return self._by_type(free_units(self._decider.ledger.free))

    @property
    def gpus_by_type(self) -> dict[str | None, float]:
        """GPUs of the whole cluster, by GPU type."""
        return self._by_type(self._decider.ledger.problem.sizes.tolist())

    @property
    def usage_by_vc(self) -> dict[str | None, float]:
        """GPUs that running jobs asked for, by virtual cluster; None = jobs without one."""
        usage: dict[str | None, int] = {}
        ledger = self._decider.ledger
        for job in ledger.running:
            vc = self._decider.views[job].vc
            usage[vc] = usage.get(vc, 0) + ledger.gpus[job]
        return {vc: units / self._units for vc, units in usage.items()}

    @property
    def running(self) -> list[JobView]:
        """Running jobs in order of start, with ``remaining`` and ``run_time`` of this instant."""
        return [self._decider.refreshed(job) for job in self._decider.ledger.running]

    @property
    def finished(self) -> list[JobView]:
        """Jobs that are over since the policy was last asked, in order of completion.

        One that failed at its end and is to go on arrives again.
        """
        return list(self._decider.done)

    @property
    def interrupted(self) -> list[JobView]:
        """Jobs that failures and drains took off their GPUs since the policy was last asked.

        They wait again, and stand in ``queue.arrived``.
        """
        return list(self._decider.stopped)

    def where(self, job: JobView) -> Where | None:
        """Return where a job runs, or None if it waits."""
        stay = self._decider.ledger.running.get(self._decider.number(job))
        return None if stay is None else stay.where

    def demand_class(self, job: JobView) -> int:
        """Return the number of the job's class: jobs of one class fit in the same places."""
        return self._decider.ledger.class_of[self._decider.number(job)]

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
        decider = self._decider
        ledger = decider.ledger
        demand: Any
        if isinstance(job, JobView):
            number = decider.number(job)
            if gpu_types is None and not without:
                decider.offered = ledger.fit(number)
                return decider.offered
            demand = ledger.demand[number]
            key = int(ledger.problem.demand_of[number])
        else:
            demand, key = ledger.problem.plain_demand(job), None
        if gpu_types is not None:
            demand = self._on_types(demand, key, frozenset(gpu_types))
        free = self._free_without(without)
        if not isinstance(job, JobView):
            where = ledger.placement.place(free, demand)
        else:
            where = ledger.put(free, number, demand)
            gone = [decider.number(other) for other in without]
            if where is not None and not ledger.affords(number, where, gone):
                where = None
            if not without:
                decider.offered = where
        return where

    def _free_without(self, jobs: Sequence[JobView]) -> Any:
        ledger = self._decider.ledger
        if not jobs:
            return ledger.free
        free = ledger.free.copy()
        for job in jobs:
            number = self._decider.number(job)
            free.give(ledger.running[number].where, ledger.demand[number])
        return free

    def _on_types(self, demand: Any, key: int | None, types: frozenset[str | None]) -> Any:
        for name in types:
            if name not in self.gpu_types:
                known = [kind for kind in self.gpu_types if kind is not None]
                raise SpecError.unknown("gpu_types", str(name), known)
        if key is not None and (key, types) in self._restricted:
            return self._restricted[key, types]
        nodes = nodes_of_types(self._decider.ledger.problem.types, types)
        bound = restricted(demand, self._decider.ledger.free, nodes)
        if key is not None:
            self._restricted[key, types] = bound
        return bound

    def _by_type(self, units: Sequence[int]) -> dict[str | None, float]:
        found = dict.fromkeys(self.gpu_types, 0)
        for kind, number in zip(self._decider.ledger.problem.types, units, strict=True):
            found[kind] += number
        return {kind: number / self._units for kind, number in found.items()}


class Decider:
    """Asks a tier-3 policy and applies what it yields, one decision at a time.

    Raises (from `decide`):
        PolicyError: a decision that is impossible; names the instant and the job.
    """

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self.ledger = ledger
        self.policy = policy
        self.waiting: list[int] = []
        self.views: dict[int, JobView] = {}
        #: What `ClusterView.fit` said last; nothing has changed since, so it still fits.
        self.offered: Where | None = None
        #: Jobs that began to wait, that are over, and that an outage stopped, since the policy was
        #: last asked.
        self.arrived: list[JobView] = []
        self.done: list[JobView] = []
        self.stopped: list[JobView] = []
        #: Heap of instants at which the policy wants to be asked, s.
        self.alarms: list[float] = []
        self._idle = 0
        self._room_changes = ledger.room_changes
        self._now = 0.0
        self._rows: list[int] = ledger.problem.rows.tolist()
        self._queue = QueueView(self)
        self._cluster = ClusterView(self)

    def add(self, job: int, now: float) -> None:  # noqa: ARG002 - one contract with the queues
        """Queue a job that arrives, or comes back."""
        bisect.insort(self.waiting, job)
        view = JobView(self.ledger.problem.jobs, self._rows[job])
        view.number = job
        self.views[job] = view
        self.arrived.append(view)

    def finished(self, job: int) -> None:
        """Forget a job that completed."""
        view = self.views.pop(job)
        view.running = False
        view.remaining = 0.0
        self.done.append(view)

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that an outage stopped."""
        self._now = now
        view = self.refreshed(job)
        view.running = False
        bisect.insort(self.waiting, job)
        self.arrived.append(view)
        self.stopped.append(view)

    def rekey(self, now: float) -> None:
        """Do nothing: a tier-3 policy keeps no keys here."""

    def __len__(self) -> int:
        return len(self.waiting)

    def refreshed(self, job: int) -> JobView:
        """Return an active job's view, brought up to this instant."""
        view = self.views[job]
        view.run_time, view.remaining = self.ledger.attained(job, self._now)
        return view

    def number(self, view: JobView) -> int:
        """Return the arrival number of a job the policy names.

        Raises:
            PolicyError: the job is not active.
        """
        number = getattr(view, "number", -1)
        if self.views.get(number) is not view:
            raise self._impossible("names a job that is neither waiting nor running", view)
        return number

    def decide(self, now: float) -> None:
        """Ask the policy and apply its decisions."""
        self._now = now
        self.offered = None
        while self.alarms and self.alarms[0] <= now:
            heapq.heappop(self.alarms)
        self._refuse_idling()
        decisions: Any = self.policy.decide(now, self._queue, self._cluster)
        if not isinstance(decisions, Iterable):
            message = f"decide returned {decisions!r}; expected to yield Start, Preempt or Wake"
            raise self._impossible(message, None)
        for decision in decisions:
            self._apply(decision)
        self.arrived.clear()
        self.done.clear()
        self.stopped.clear()

    def _apply(self, decision: Any) -> None:
        """Carry out one decision."""
        if isinstance(decision, Start):
            self._start(decision)
        elif isinstance(decision, Preempt):
            self._preempt(decision)
        elif isinstance(decision, Wake):
            self._set_alarm(decision.at)
        elif isinstance(decision, Resize | Move):
            message = "resizes a job; only a policy with elastic=True may"
            raise self._impossible(message, decision.job)
        else:
            message = f"yielded {decision!r}; expected Start, Preempt or Wake"
            raise self._impossible(message, None)

    def _set_alarm(self, at: float) -> None:
        if self.policy.every is not None:
            raise self._impossible("decides in rounds; it cannot ask for another instant", None)
        if not self._now < at < math.inf:
            message = f"asks to decide at {at!r}; expected a later time, in seconds"
            raise self._impossible(message, None)
        if at not in self.alarms[:1] and self._idle <= MAX_IDLE_DECISIONS:
            heapq.heappush(self.alarms, at)

    def _refuse_idling(self) -> None:
        """Stop a policy that asks again and again to decide on an idle cluster, and starts nobody.

        Where room comes and goes its jobs may wait for some that is gone: then it is not asked
        again before something happens.

        Raises:
            PolicyError: it did so too many times in a row, and all room is there.
        """
        ledger = self.ledger
        changed = ledger.room_changes != self._room_changes
        self._room_changes = ledger.room_changes
        idle = not (ledger.running or self.arrived or self.done or changed)
        self._idle = self._idle + 1 if idle else 0
        if self._idle > MAX_IDLE_DECISIONS and ledger.room_changes is not None:
            self.alarms.clear()
        elif self._idle > MAX_IDLE_DECISIONS:
            message = f"starts none of {len(self)} waiting jobs on an idle cluster"
            raise self._impossible(message, None)

    def _start(self, decision: Start) -> None:
        view, ledger = decision.job, self.ledger
        job = self.number(view)
        if view.running:
            raise self._impossible("starts a job that already runs", view)
        where = decision.where
        if where is None:
            where = ledger.fit(job)
        elif where is not self.offered and not self._fits(where, job):
            where = None
        if where is None:
            raise self._impossible("starts a job where it does not fit", view)
        self.offered = None
        del self.waiting[bisect.bisect_left(self.waiting, job)]
        ledger.start(job, self._now, where)
        view.running = True

    def _fits(self, where: Where, job: int) -> bool:
        ledger = self.ledger
        if not ledger.affords(job, where):
            return False
        if not where:
            return bool(ledger.demand[job].is_nothing)
        return bool(ledger.opened(ledger.free, job).fits(where, ledger.demand[job]))

    def _preempt(self, decision: Preempt) -> None:
        job = self.number(decision.job)
        if not decision.job.running:
            raise self._impossible("preempts a job that does not run", decision.job)
        self.offered = None
        self.ledger.preempt(job, self._now)
        self.refreshed(job).running = False
        bisect.insort(self.waiting, job)

    def _impossible(self, message: str, view: JobView | None) -> PolicyError:
        job = getattr(view, "job_id", None)
        return PolicyError(self.policy.label, message, time=self._now, job=job)
