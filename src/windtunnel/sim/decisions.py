"""`Decisions`: what is done about decisions of policies that decide all by themselves (tier 3).

Here stands, for every engine, what is rare: instants at which the policy wants to be asked, jobs
that move or change, and why a decision is impossible. An engine asks, starts and stops.
"""

from __future__ import annotations

import heapq
import math
import operator
import sys
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.devices import MILLI
from windtunnel.cluster.free import EVERY_NODE
from windtunnel.cluster.parts import reserved_first
from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.sim.closing import ByRow
from windtunnel.sim.contract import Move, Rerate, Resize, Stop, Wake
from windtunnel.sim.places import gpu_time
from windtunnel.sim.refusals import (
    DECISIONS,
    free_gpus,
    is_float,
    is_whole,
    pairs_of,
    whole,
    why_not,
    why_not_beside,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Policy
    from windtunnel.sim.elastic.headroom import Headroom
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.run_rules import Rules


class Decisions:
    """What a policy decides.

    Attributes:
        works: what each job of an elastic run is; None = it is none.
        differs_by_node: quotas or power let a job have GPUs on some nodes and not on others.
        state: where the engine has jobs running.
        deciding: what carries out in the engine: `windtunnel.kernel.deciding.Deciding`, or that of
            `windtunnel.sim.reference.decisions`.
        cluster: what the policy sees of the cluster.
        alarms: heap of instants at which it wants to be asked, s.
    """

    state: Any
    deciding: Any
    cluster: Any

    def __init__(self, policy: Policy, problem: Problem, rules: Rules) -> None:
        self.policy, self.problem, self.plan = policy, problem, rules.disruptions
        self.works = None if rules.elastic is None else rules.elastic.works
        self.may_wait, self.differs_by_node = rules.may_wait(policy), rules.differs_by_node
        self.alarms: list[float] = []
        #: The same: a policy may ask for one instant at every decision, for every job that waits.
        self._wanted: set[float] = set()

    # What an engine says.

    def stop(self) -> None:
        """End the run once the policy has decided at this instant."""
        raise NotImplementedError

    def kind_of(self, job: int, option: Any) -> Any:
        """Return what an option of a job is to the engine: itself, unless that numbers them."""
        del job
        return option

    def demand_of(self, kind: Any) -> Any:
        """Return the demand that is a kind to the engine: itself, unless that numbers them.

        None = it is an option's.
        """
        return kind

    def kind_on(self, kind: Any, gpu_types: frozenset[str | None]) -> Any:
        """Return what a kind asks for, on some GPU types alone, to the engine.

        Raises:
            SpecError: the cluster has no such GPU type.
        """
        return self.on_types(kind, gpu_types)

    def headroom(self) -> Headroom | None:
        """Return what admission leaves besides who runs now; None = it does not limit the run."""
        raise NotImplementedError

    def free_shares(self) -> FreeShares:
        """Return a copy of what is free on each node, and of what admission leaves besides."""
        raise NotImplementedError

    def closed_to(self, job: int) -> set[int]:
        """Return the nodes on which a job may not start, though others may run there."""
        raise NotImplementedError

    def grants_on(
        self, free: Any, kind: Any, node: int, tasks: int, first: int
    ) -> Sequence[int] | None:
        """Return what so many tasks get on a node with devices, None if they do not fit there.

        ``first``: how many of its tasks are placed elsewhere already.
        """
        raise NotImplementedError

    # What the policy says.

    def groups_of(self, job: int) -> tuple[int, ...]:
        """Return the reservations that a job may use."""
        return () if self.plan is None else self.plan.access[job]

    def opened(self, free: Any, job: int) -> Any:
        """Return a free state with a job's reservations open to it."""
        groups = self.groups_of(job)
        return free.opened(groups) if groups else free

    def forget_alarms(self, now: float) -> None:
        """Forget the instants that the policy wanted to be asked at up to ``now`` (s), or all."""
        if self.policy.renews_wakes:
            self._forget_all_alarms()
        while self.alarms and self.alarms[0] <= now:
            self._wanted.remove(heapq.heappop(self.alarms))

    def idles(self, waiting: int) -> None:
        """Stop a policy that asks again and again to decide on an idle cluster, and starts nobody.

        Where capacity comes and goes its jobs may wait for some that is gone: then it is not asked
        again before something happens.

        Raises:
            PolicyError: it did so too many times in a row, and all capacity is there.
        """
        if not self.may_wait:
            message = f"starts none of {waiting} waiting jobs on an idle cluster"
            raise self.impossible(message, None)
        self._forget_all_alarms()

    def _forget_all_alarms(self) -> None:
        self.alarms.clear()
        self._wanted.clear()

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
            self.stop()
        else:
            message = f"yielded {decision!r}; expected {DECISIONS}"
            raise self.impossible(message, None)

    def _set_alarm(self, at: Any) -> None:
        if self.policy.every is not None:
            raise self.impossible("decides in rounds; it cannot ask for another instant", None)
        if not isinstance(at, Real) or not self.deciding.now < at <= sys.float_info.max:
            message = f"asks to decide at {quote(at)}; expected a later time, in seconds"
            raise self.impossible(message, None)
        instant = float(at)
        if instant not in self._wanted and not self.deciding.is_idle:
            self._wanted.add(instant)
            heapq.heappush(self.alarms, instant)

    def _move(self, decision: Move) -> None:
        view = decision.job
        if self.works is None:
            where = decision.where
            if where is None and self.fits_in_turn(self.deciding.running(view, "moves")):
                where = self.cluster.fit(view, without=[view])
            self.deciding.move(view, where, decision.rate)
            return
        self.rate(1.0 if decision.rate is None else decision.rate, view)
        self.deciding.running(view, "moves")
        option = self.cluster.option(view)
        self._resize(view, option, decision.where)

    def _resize(self, view: Any, option: Any, where: Any) -> None:
        if self.works is None:
            message = "resizes a job; only a policy with elastic=True may"
            raise self.impossible(message, view)
        job = self.deciding.active(view)
        work = self.works[job]
        if all(option is not known and option != known for known in work.options):
            raise self.impossible(f"runs a job in {option!r}, which is none of its options", view)
        if where is None and self.differs_by_node:
            where = self.cluster.place(view, option)
        rate = work.requested.iteration_time / option.iteration_time
        self.deciding.resize(view, option, self.kind_of(job, option), rate, where)

    def check_loses(self, view: Any) -> None:
        """Check that jobs that the policy stops may lose work: otherwise the run counts none.

        Raises:
            PolicyError: it does not say so.
        """
        if not self.policy.loses:
            message = "lets a job lose work; only a policy with loses=True may"
            raise self.impossible(message, view)

    # Where.

    def gpus(self, num_gpus: Any) -> float:
        """Return a number of GPUs that a policy asks for a place for, checked.

        More than the cluster has are one GPU more, which fit nowhere either.

        Raises:
            PolicyError: it is no number, or the cluster gives out no such parts of GPUs.
        """
        asked: Any = num_gpus if isinstance(num_gpus, Real) else math.nan
        if not 0 <= asked < math.inf:
            message = f"asks where {quote(num_gpus)} would go; expected a job, or a number of GPUs"
            raise self.impossible(message, None)
        value = float(min(asked, self.problem.quota / self.problem.units + 1))
        split = bool(self.problem.devices) and not self.problem.pooled and value > 1
        if not is_whole(value if split else value * self.problem.units):
            message = f"asks where {quote(num_gpus)} GPUs would go; expected whole GPUs, or a job"
            raise self.impossible(message, None)
        return value

    def types(self, gpu_types: Any) -> frozenset[str | None]:
        """Return the GPU types that a policy names, as a set.

        Raises:
            PolicyError: they are none.
        """
        try:
            return frozenset([gpu_types] if isinstance(gpu_types, str) else gpu_types)
        except TypeError:
            message = f"asks for GPU types {quote(gpu_types)}; expected their names, as in ['A100']"
            raise self.impossible(message, None) from None

    def several(self, jobs: Any) -> list[Any]:
        """Return the jobs that a policy would do without, as a list.

        Raises:
            PolicyError: they are none.
        """
        try:
            return [] if jobs is None else list(jobs)
        except TypeError:
            message = f"asks what would fit without {quote(jobs)}; expected running jobs"
            raise self.impossible(message, None) from None

    def in_grants(self, where: Any, kind: Any, free: Any) -> Where:
        """Return a policy's own choice in the cluster's units.

        A whole number is a grant, as ``cluster.fit`` returns them; a float is a number of GPUs. Of
        a node with devices the placement says which those are.

        Raises:
            TypeError, ValueError: it is none, or the devices of a node do not serve.
        """
        found: Where = []
        placed = 0
        for node, grant in where:
            if not is_float(grant):
                found.append(self.integers(node, grant))
                placed += 1
            elif not self.problem.devices:
                found.append((operator.index(node), whole(grant * self.problem.units)))
            else:
                amount = self.demand_of(kind).amount
                if not amount:
                    raise ValueError("a job without GPUs is given none")
                tasks = whole(grant * MILLI / amount)
                grants = self.grants_on(free, kind, operator.index(node), tasks, placed)
                if grants is None:
                    raise ValueError(f"node {node} has no room for {tasks} tasks")
                found += [(operator.index(node), one) for one in grants]
                placed += tasks
        return found

    def on_types(self, demand: Any, types: frozenset[str | None]) -> Any:
        """Return a demand that accepts some GPU types alone.

        Raises:
            SpecError: the cluster has no such GPU type.
        """
        known = self.cluster.gpu_types
        for name in types:
            if name not in known:
                given = [kind for kind in known if kind is not None]
                raise SpecError.unknown("gpu_types", str(name), given)
        return self.problem.on_types(demand, types)

    # What is impossible.

    def impossible(self, message: str, view: Any) -> PolicyError:
        """Return the error of a decision that is impossible."""
        job = getattr(view, "job_id", None)
        return PolicyError(self.policy.label, message, time=self.deciding.now, job=job)

    def no_decisions(self, found: Any) -> PolicyError:
        """Return the error of a policy that returned something else than decisions."""
        message = f"decide returned {found!r}; expected to yield {DECISIONS}"
        if found is None:
            message += ", or to return (): cluster.start has started nobody so far"
        return self.impossible(message, None)

    def no_place(self, does: str, view: Any, demand: Any, free: Sequence[int]) -> PolicyError:
        """Return the error of a job that fits nowhere, with GPU units free by node."""
        why = self._kept_out(view, demand, None) or free_gpus(self.problem, free)
        return self.impossible(f"{does} a job where it does not fit: {why}", view)

    def no_such_place(
        self, does: str, view: Any, where: Any, demand: Any, free: Sequence[int]
    ) -> PolicyError:
        """Return the error of a place that a policy chose, and that is none."""
        why = self._kept_out(view, demand, where) or why_not(self.problem, demand, where, free)
        return self.impossible(f"{does} a job where it does not fit: {why}", view)

    def _kept_out(self, view: Any, demand: Any, where: Any) -> str:
        """Return what to say of a job that quota or power keeps out; empty if neither does.

        What the job holds itself is left out of account.
        """
        room, job = self.headroom(), self.deciding.active(view)
        if room is None:
            return ""
        room.end(job)
        gpus = self.problem.gpus[job] / self.problem.units
        if self.works is not None:
            gpus = demand.num_gpus
        chosen = pairs_of(self.problem, where)
        if not room.has_quota(job, gpus, chosen):
            assert room.books is not None  # noqa: S101 - it has said no
            queue, left = quote(view.vc or "(none)"), room.books.left(job)
            asked = f"it asks for {gpus:g} GPUs, and has {left} left"
            return f"the quota of {queue} does not suffice: {asked}"
        return "" if room.has_power(job, gpus, chosen) else "there is too little power"

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
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not 0 < value < math.inf:
            message = f"gives a job the rate {rate!r}; expected a number above 0"
            raise self.impossible(message, view)
        return value

    def place_option(self, free: FreeShares, job: int, option: Option) -> Where | None:
        """Return where an option of a job would go with so much free, or None."""
        asked = self.problem.demand(job)
        free.draws, shown = self.deciding.stays, self.opened(free, job)

        def place(allowed: int) -> Where | None:
            return reserved_first(
                shown, len(free.sizes), lambda nodes: nodes.place(option, allowed, asked.topology)
            )

        if free.headroom is None:
            return place(asked.allowed)
        for allowed in free.headroom.tried(job, option.num_gpus, asked.allowed):
            where = place(allowed)
            if where is not None and free.headroom.admits(job, where):
                return where
        return None

    def place_without(self, job: int, option: Option, gone: Sequence[int]) -> Where | None:
        """Return where an option of a job would go if some jobs were gone, or None.

        The placement is asked among the nodes on which quotas and power allow it.
        """
        free = self.free_shares()
        for other in gone:
            if free.headroom is not None and other in free.headroom.running:
                free.give(self.state.where(other), self.deciding.option_of(other), other)
        return self.place_option(free, job, option)

    def fits_in_turn(self, job: int) -> bool:
        """Return whether a job's place has to be sought as in `fit_in_turn`."""
        return self.differs_by_node and bool(self.problem.gpus[job])

    def fit_in_turn(
        self, job: int, kind: Any, gone: Sequence[int], types: frozenset[str | None] | None
    ) -> Where | None:
        """Return where a job that has one size would go if some jobs were gone, or None.

        As when it starts, the placement is asked on one GPU type after the other of which its
        queue has the quota, and where there is too little power, on the types where there is.
        """
        room = self.headroom()
        assert room is not None  # noqa: S101 - who asks has seen to it
        for other in gone:
            if other in room.running:
                room.end(other)
        for nodes in room.tried(job, self.problem.gpus[job] / self.problem.units, EVERY_NODE):
            chosen = frozenset(t for n, t in enumerate(self.problem.types) if nodes >> n & 1)
            chosen = chosen if types is None else chosen & types
            if chosen:
                where: Where | None
                where = self.cluster.fit_without(job, self.kind_on(kind, chosen), gone)
                if where is not None:
                    return where
        return None

    def why_not_beside(self, job: int, other: int, where: Any, shares: bool) -> str:  # noqa: FBT001 - of the kernel
        """Return why a job may not share the GPUs of a running one; empty if it may."""
        if self.works is not None:
            return "another in an elastic run"
        place = self.state.where(other)
        message = why_not_beside(
            self.problem, job, other, place, shares=shares, says=where is not None
        )
        if not (message or self.problem.is_pool) and self.closed_to(job) & {n for n, _ in place}:
            message = "one on a node where it may not start now"
        if not message and not self.deciding.affords_beside(job, other):
            message = "one where there is too little power for both"
        if not message and not self.deciding.allows_beside(job, other):
            message = "one though its queue's quota does not suffice"
        return message

    def check_beside(self, view: Any, job: int, other: int, where: Any, shares: bool) -> None:  # noqa: FBT001 - ditto
        """Check that a job may share the GPUs of a running one.

        Raises:
            PolicyError: it may not.
        """
        message = self.why_not_beside(job, other, where, shares)
        if message:
            raise self.impossible(f"starts a job beside {message}", view)

    # What it has come to.

    def finish(self, flight: Flight, columns: dict[str, np.ndarray], horizon: float) -> Flight:
        """Return a flight with what policies alone bring about: shared places, options."""
        if self.deciding.colocated:
            shared = self.deciding.colocated
            seconds, portions = gpu_time(self.problem, columns, shared, horizon)
            seconds = ByRow(self.problem)(seconds, 0.0)
            flight = replace(flight, gpu_time=seconds, portions=portions)
        if self.works is not None:
            from windtunnel.sim.elastic.stretches import stretches_of

            ways, left = self.deciding.ways_of_stays(), np.asarray(self.deciding.work_left())
            by_row = ByRow(self.problem)
            found = stretches_of(by_row, self.works, columns, ways, left=left, horizon=horizon)
            flight = replace(flight, stretches=found)
        return flight
