"""Policies that decide all by themselves (tier 3) on the compiled engine.

The kernel asks and carries out (`windtunnel.kernel.deciding`); here stands what it does not need at
every decision: instants at which the policy wants to be asked, kinds of demands that only a policy
asks for, and why a decision is impossible.
"""

from __future__ import annotations

import heapq
import math
import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import kernel
from windtunnel.cluster.parts import nodes_of_types, restricted
from windtunnel.errors import PolicyError, SpecError
from windtunnel.sim.closing import ByRow
from windtunnel.sim.contract import Move, Preempt, Rerate, Resize, Start, Stop, Wake
from windtunnel.sim.jobs import JobView
from windtunnel.sim.refusals import DECISIONS, check_gpus, no_company, no_room, why_not
from windtunnel.sim.shared_places import gpu_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.cluster.free import Where
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.kernel_run import KernelRun
    from windtunnel.sim.problem import Problem


class Driver:
    """Drives a policy of tier 3.

    Args:
        run: its state is there, its loop not yet.

    Attributes:
        rule: what the loop tells of what happens.
        kinds: the classes of the two decisions that the kernel carries out without a question.
        works: what each job of an elastic run is; None = it is none.
        may_wait: jobs may wait for ever: room or power that they ask for may be gone.
    """

    def __init__(self, run: KernelRun) -> None:
        JobView.register(kernel.JobView)
        self.run, self.policy = run, run.policy
        self.problem: Problem = run.problem
        self.state, self.free = run.state, run.free
        self.works, self.shapes = run.works, run.shapes
        self.kinds = (Start, Preempt)
        self.may_wait = run.plan is not None or run.power is not None
        count = max(len(self.problem.rows), 1)
        one = np.zeros(count, dtype=np.int32)
        self.state.use_lines(kernel.Lines(1, one, np.zeros(count), is_sorted=True))
        admission = run.admission()
        self.rule = kernel.Asked(self.state, admission, run.views)
        search = kernel.Search(self.state, admission, run.line_of)
        self.deciding = kernel.Deciding(self.state, self.rule, search, self)
        cluster: Any = kernel.ClusterView
        if self.works is not None:
            from windtunnel.sim.elastic.views import ElasticView

            cluster = ElasticView
        self.cluster = cluster(self.deciding)
        self.deciding.shows(kernel.QueueView(self.deciding), self.cluster)
        self.alarms: list[float] = []
        self._plain_kinds: dict[Any, int] = {}
        self._kinds_on: dict[Any, int] = {}
        self._demands: dict[int, Any] = dict(enumerate(self.problem.demands))
        self._sizes: Any = None

    # Asking.

    def decide(self) -> None:
        """Ask the policy, and carry out what it decides.

        Raises:
            PolicyError: a decision that is impossible; names the instant and the job.
        """
        alarms = self.alarms
        if not alarms:
            self.deciding.decide()
        else:
            while alarms and alarms[0] <= self.deciding.now:
                heapq.heappop(alarms)
            self.deciding.decide()
        if alarms:
            self.run.sim.watch("alarm", alarms[0])

    def finish(self, flight: Flight, columns: dict[str, np.ndarray], horizon: float) -> Flight:
        """Return a flight with what policies alone bring about: shared places, options.

        Args:
            flight: the flight so far.
            columns: the kernel's log.
            horizon: where the run was cut, s.
        """
        if self.deciding.company:
            shared = self.deciding.company
            seconds = gpu_time(self.problem, columns, shared, horizon)
            flight = replace(flight, gpu_time=ByRow(self.problem)(seconds, 0.0))
        if self.works is not None:
            from windtunnel.sim.elastic.recording import stretches_of

            ways, left = self.deciding.ways_of_stays(), self.deciding.work_left()
            found = stretches_of(
                self.problem, self.works, columns, ways, left=left, horizon=horizon
            )
            flight = replace(flight, stretches=found)
        return flight

    def groups(self, job: int) -> tuple[int, ...]:
        """Return the reservations that a job may use."""
        return () if self.run.plan is None else self.run.plan.access[job]

    def idles(self, waiting: int) -> None:
        """Stop a policy that asks again and again to decide on an idle cluster, and starts nobody.

        Where room comes and goes its jobs may wait for some that is gone: then it is not asked
        again before something happens.

        Raises:
            PolicyError: it did so too many times in a row, and all room is there.
        """
        if not self.may_wait:
            message = f"starts none of {waiting} waiting jobs on an idle cluster"
            raise self.impossible(message, None)
        self.alarms.clear()

    def carry_out(self, decision: Any) -> None:
        """Carry out a decision of the rarer kinds."""
        if isinstance(decision, Wake):
            self._set_alarm(decision.at)
        elif isinstance(decision, Rerate):
            rate = self.rate(decision.rate, decision.job)
            self.deciding.rerate(decision.job, rate)
        elif isinstance(decision, Move):
            self._move(decision)
        elif isinstance(decision, Resize):
            self._resize(decision.job, decision.option, decision.where)
        elif isinstance(decision, Stop):
            self.run.stop()
        else:
            message = f"yielded {decision!r}; expected {DECISIONS}"
            raise self.impossible(message, None)

    def _set_alarm(self, at: float) -> None:
        if self.policy.every is not None:
            raise self.impossible("decides in rounds; it cannot ask for another instant", None)
        if not self.deciding.now < at < math.inf:
            message = f"asks to decide at {at!r}; expected a later time, in seconds"
            raise self.impossible(message, None)
        if at not in self.alarms[:1] and not self.deciding.is_idle:
            heapq.heappush(self.alarms, at)

    # Places.

    def plain_kind(self, num_gpus: float, gpu_types: Iterable[str | None] | None) -> int:
        """Return the kind of so many GPUs, of any type or some.

        Raises:
            SpecError: the cluster has no such GPU type, or cannot give such parts of GPUs.
        """
        types = None if gpu_types is None else frozenset(gpu_types)
        found = self._plain_kinds.get((num_gpus, types))
        if found is None:
            check_gpus(self.problem, num_gpus)
            demand = self.problem.plain_demand(num_gpus)
            if types is not None:
                demand = self._on_types(demand, types)
            found = self._plain_kinds[num_gpus, types] = self._new_kind(demand)
        return found

    def kind_on(self, kind: int, gpu_types: Iterable[str | None]) -> int:
        """Return what a kind asks for, on some GPU types alone.

        Raises:
            SpecError: the cluster has no such GPU type.
        """
        types = gpu_types if isinstance(gpu_types, frozenset) else frozenset(gpu_types)
        found = self._kinds_on.get((kind, types))
        if found is None:
            demand = self._on_types(self._demands[kind], types)
            found = self._kinds_on[kind, types] = self._new_kind(demand)
        return found

    def _new_kind(self, demand: Any) -> int:
        kind: int = self.free.add_kind(demand)
        self._demands[kind] = demand
        return kind

    def _on_types(self, demand: Any, types: frozenset[str | None]) -> Any:
        known = self.cluster.gpu_types
        for name in types:
            if name not in known:
                given = [kind for kind in known if kind is not None]
                raise SpecError.unknown("gpu_types", str(name), given)
        if self._sizes is None:
            self._sizes = self.problem.free_state()
        return restricted(demand, self._sizes, nodes_of_types(self.problem.types, types))

    # Decisions that move jobs.

    def _move(self, decision: Move) -> None:
        view = decision.job
        if self.works is None:
            self.deciding.move(view, decision.where, decision.rate)
            return
        self.rate(1.0 if decision.rate is None else decision.rate, view)
        self.deciding.running(view, "moves")
        option = self.cluster.option(view)
        self._resize(view, option, decision.where)

    def _resize(self, view: Any, option: Any, where: Where | None) -> None:
        if self.works is None:
            message = "resizes a job; only a policy with elastic=True may"
            raise self.impossible(message, view)
        job = self.deciding.active(view)
        work = self.works[job]
        if all(option is not known and option != known for known in work.options):
            raise self.impossible(f"runs a job in {option!r}, which is none of its options", view)
        assert self.shapes is not None  # noqa: S101 - of an elastic run
        kind = self.shapes.kind(job, option)
        rate = work.requested.iteration_time / option.iteration_time
        self.deciding.resize(view, option, kind, rate, where)

    # What is impossible.

    def impossible(self, message: str, view: Any) -> PolicyError:
        """Return the error of a decision that is impossible."""
        job = getattr(view, "job_id", None)
        return PolicyError(self.policy.label, message, time=self.deciding.now, job=job)

    def no_decisions(self, found: Any) -> PolicyError:
        """Return the error of a policy that returned something else than decisions."""
        return self.impossible(f"decide returned {found!r}; expected to yield {DECISIONS}", None)

    def unfit(self, does: str, view: Any) -> PolicyError:
        """Return the error of a job that fits nowhere now."""
        room = no_room(self.problem, self.free.free_by_node().tolist())
        return self.impossible(f"{does} a job where it does not fit: {room}", view)

    def misfit(self, does: str, view: Any, where: Any, kind: int, free: Any) -> PolicyError:
        """Return the error of a place that a policy chose, and that is none."""
        units = free.free_by_node().tolist()
        demand = self._demands.get(kind)
        if self.shapes is not None:
            demand = self.shapes.option(kind)
        why = why_not(self.problem, demand, where, units)
        return self.impossible(f"{does} a job where it does not fit: {why}", view)

    def integers(self, node: Any, grant: Any) -> tuple[int, int]:
        """Return a policy's own node and GPUs as Python's numbers.

        Raises:
            TypeError: they are none.
        """
        return operator.index(node), operator.index(grant)

    def rate(self, rate: Any, view: Any) -> float:
        """Return a rate that a policy gives, checked."""
        if self.works is not None:
            if rate == 1.0:
                return 1.0
            message = "gives a rate in an elastic run; the option says how fast a job is"
            raise self.impossible(message, view)
        try:
            value = float(rate)
        except (TypeError, ValueError):
            value = math.nan
        if not 0 < value < math.inf:
            message = f"gives a job the rate {rate!r}; expected a number above 0"
            raise self.impossible(message, view)
        return value

    def no_company(self, job: int, other: int, where: Any, shares: bool) -> str:  # noqa: FBT001 - of the kernel
        """Return why a job may not share the GPUs of a running one; empty if it may."""
        if self.works is not None:
            return "another in an elastic run"
        message = no_company(
            self.problem, job, other, self.state.where(other), shares=shares, says=where is not None
        )
        if not message and not self.deciding.affords_beside(job, other):
            message = "one where there is too little power for both"
        return message

    def check_beside(self, view: Any, job: int, other: int, where: Any, shares: bool) -> None:  # noqa: FBT001 - ditto
        """Check that a job may share the GPUs of a running one.

        Raises:
            PolicyError: it may not.
        """
        message = self.no_company(job, other, where, shares)
        if message:
            raise self.impossible(f"starts a job beside {message}", view)
