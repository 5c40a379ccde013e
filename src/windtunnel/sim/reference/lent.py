"""`Lent`: the reference's tables as outages and policies of power see and change them.

What happens by itself is written once for all engines (`windtunnel.sim.disruptions.source`,
`windtunnel.sim.power.sources`), in Python, because it is rare. An engine lends it its tables: the
compiled one through `windtunnel.sim.on_kernel`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.free import NOBODY
from windtunnel.sim.disruptions.spares import Without
from windtunnel.sim.reference.state import State

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.power.sources import PowerSources
    from windtunnel.sim.reference.decisions import Deciding
    from windtunnel.sim.reference.progress import Stay
    from windtunnel.sim.reference.rules import Rule


class Lent(State):
    """A run that sources may change.

    Attributes:
        scheduler: decides about the waiting jobs.
    """

    scheduler: Rule | Deciding

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.may_go_on, self.node_sets_for = self.policy.may_go_on, self.policy.node_sets_for
        self.asks_below = given[-1].preemption == "feasible" and self.quotas is None
        self._fails_at = [math.inf] * len(self.gpus)
        #: Jobs that were taken off their GPUs, and are not in the queue again.
        self._off: set[int] = set()

    # What is so.

    def running_jobs(self) -> list[int]:
        """Return running jobs in order of start."""
        return list(self.running)

    def running_on(self, places: set[int]) -> list[int]:
        """Return the jobs that run on any of these nodes, or pools, in order of start."""
        running = self.running.items()
        return [job for job, stay in running if any(node in places for node, _ in stay.where)]

    def waiting_jobs(self) -> list[int]:
        """Return the jobs in the queue, in order of coming."""
        return list(self.waiting)

    def sharing(self, job: int) -> list[int]:
        """Return the jobs that share a running job's place, itself included."""
        return self.running[job].place.jobs

    def stay_of(self, job: int) -> int:
        """Return the number of a running job's stay, -1 = it does not run."""
        return self.running[job].number if job in self.running else -1

    def time_to_end(self, job: int) -> float:
        """Return how long a running job still takes as things are, s."""
        return self.running[job].due - self.now

    def start_cost(self, job: int) -> float:
        """Return the seconds that a waiting job pays as it starts."""
        return self.start_overhead[job]

    def rate(self, job: int) -> float:
        """Return the work that a running job does a second."""
        return self.running[job].rate

    def free_in(self, place: int) -> int:
        """Return the GPU units free in a pool; negative where jobs hold more than there is."""
        return int(self.free.free[place])

    def resume_cost(self, job: int) -> float:
        """Return the seconds that a job pays when it goes on after a stop."""
        return self.overhead[job]

    def lost(self, job: int) -> float:
        """Return the seconds of work that failures undid so far."""
        return self.lost_work[job]

    def secured(self, job: int) -> float:
        """Return a running job's work left if it failed now, s at full speed."""
        stay = self.running[job]
        return stay.work - stay.kept(stay.at(self.now))

    def saved_last(self, job: int) -> bool:
        """Return whether any work of a job's last stay was saved."""
        last = self._last_stay(job)
        return last.kept(last.reached) > 0

    def _last_stay(self, job: int) -> Stay:
        return next(stay for stay in reversed(self.stays) if stay.job == job)

    def most_nodes_in_use(self) -> int:
        """Return the most nodes in use since this was asked last, counted as each job starts."""
        most, self.most_in_use = self.most_in_use, len(self.nodes_in_use())
        return most

    def look_in(
        self, shown: Any, job: int, nodes: frozenset[int] | None, *, takes: bool = False
    ) -> Where | None:
        """Return where a waiting job would go in what would be free; None of nodes = on all."""
        free, where = shown, None
        if nodes is not None:
            free = shown.copy()
            for node in range(len(self.problem.sizes)):
                if node not in nodes:
                    free.withhold(node)
            where = self._look_on(free, job, nodes)
        if where is None:  # quotas and power are seen to type by type there
            where, _ = self.search(job, free, self.now, self.spare)
        if where is not None and takes:
            shown.take(where, self.demand[job])
            if self.quotas is not None:
                self.quotas.begin(job, where)
        return where

    def _look_on(self, free: Any, job: int, nodes: frozenset[int]) -> Where | None:
        """Return where a job would go that asks for what it does on some nodes alone."""
        bound = self.problem.on_nodes(self.demand[job], sum(1 << node for node in nodes))
        where = self.put(self.opened(free, job), job, bound)
        return where if where is not None and self.affords(job, where) else None

    def give_in(self, shown: Any, job: int) -> None:
        """Let the place of a running job be free in what would be free."""
        shown.give(self.running[job].where, self.demand[job])

    def with_awake(self, nodes: Collection[int]) -> Any:
        """Return what is free now, some nodes that are not awake restored."""
        shown = self.free.copy()
        for node in nodes:
            shown.restore(node)
        return shown

    @property
    def driver(self) -> Deciding:
        """What drives a policy that decides by itself, such as those of elastic runs."""
        return self.scheduler  # type: ignore[return-value] # it is no rule then

    def shares_with_awake(self, nodes: Collection[int]) -> FreeShares:
        """Return the same to elastic jobs, with what admission leaves."""
        shown: FreeShares = self.driver.free_shares()
        for node in nodes:
            shown.restore(node)
        return shown

    def floor(self, job: int) -> int:
        """Return the least that a running job adds to the draw, nanowatts; 0 = it counts nowhere.

        Of jobs that share a place, the first counts for all.
        """
        return self.floors.get(job, 0)

    def without(self, job: int) -> Without:
        """Return what would be, were a running job gone."""
        place, free = self.running[job].place, self.free_without([job])
        for node, _ in place.where:  # it runs on where nobody else may start
            for group in free.withheld.get(node, ()):
                free.restore(node, group)
        shown = self.opened(free, job)

        def fits(where: Where) -> bool:
            has = self.has(shown, job, where, place.demand)
            return has and self.affords(job, where, [job])

        def grants(node: int, tasks: int, first: int) -> Sequence[int] | None:
            return self.grants_on(shown, place.demand, node, tasks, first)

        return Without(free.free_units, grants, fits)

    # Jobs that fail, or are interrupted.

    def fail_at(self, job: int, run_time: float) -> None:
        """Let a job fail by itself once it has been on its GPUs for so long, s."""
        self._fails_at[job] = run_time

    def next_failure(self) -> float:
        """Return when a running job fails by itself next, s."""
        return min(map(self._failure_of, self.running.values()), default=math.inf)

    def failing(self) -> int:
        """Return the next job that fails by itself by now, -1 if there is none."""
        stay = min(self.running.values(), key=self._failure_of, default=None)
        return -1 if stay is None or self._failure_of(stay) > self.now else stay.job

    def _failure_of(self, stay: Stay) -> float:
        return stay.start + max(0.0, self._fails_at[stay.job] - self.run_before[stay.job])

    def take_failed(self) -> list[int]:
        """Return the jobs that failed at their end since this was asked last, in order."""
        failed, self.failed = self.failed, []
        return failed

    def interrupt(self, job: int, *, loses: bool, goes_on: bool = False) -> None:
        """Take a running job off its GPUs; it loses what its checkpoints have not secured, or not.

        It is in no queue then; where it ``goes_on``, `go_on` follows.
        """
        self.moving = goes_on
        self.leave(job, loses=loses)
        if not goes_on:
            self._off.add(job)

    def go_on(self, job: int, where: Where) -> None:
        """Let a job that was interrupted just now go on elsewhere at once."""
        stay = self._last_stay(job)
        self.begin(job, where, rate=stay.base, option=stay.place.demand)
        self.moving = False
        self.scheduler.moves(job)

    def undo(self, job: int, left: float) -> None:
        """Let so much work be left (s) of a job that runs nowhere; more than that is lost."""
        more = left - self.left[job]
        if more > 0:
            self.left[job] = left
            self.useful[job] -= more
            self.lost_work[job] += more

    def set_start_overhead(self, job: int, seconds: float, *, restarts: bool) -> None:
        """Let a job pay so much (s) as it starts, or restarts: it was interrupted or failed."""
        self.start_overhead[job] = seconds
        if restarts:
            self.to_restart.add(job)

    def end_failed(self, job: int) -> None:
        """Let a job that waits nowhere be over: it failed."""
        self.ended_failed.add(job)
        if job in self._off:
            self.scheduler.gone(job)

    def slow(self, place: int, speed: float) -> None:
        """Let what runs on a node go at this speed, 1 = as usual."""
        assert self.pace is not None  # noqa: S101 - a run whose nodes may be slow has one
        self.pace.set_speed(place, speed)

    # Who waits, and for what.

    def queue(self, job: int) -> None:
        """Let a job enter the queue: it arrives, was interrupted, or was held until now."""
        self.wait(job)
        self.scheduler.came(job, was_stopped=job in self._off)
        self._off.discard(job)

    def pause(self, job: int) -> None:
        """Take a running job off its GPUs with its work saved; it counts as preempted."""
        self.preempt(job)
        del self.waiting[job]
        self.scheduler.gone(job)

    def cut(self, job: int) -> None:
        """Do the same, and queue it again."""
        self.preempt(job)
        self.scheduler.came(job, was_stopped=True)

    def set_budget(self, nanowatts: int) -> None:
        """Let jobs add so much to the draw from now on; whoever was refused may try again."""
        self.budget = nanowatts
        self.forget_refusals()

    def note_power(self, power: PowerSources) -> None:
        """Do nothing: what policies of power have done is looked up."""

    def withhold(self, node: int) -> None:
        """Keep a node from everybody: it sleeps. It is not down."""
        self.sleeping.add(node)
        self.hold(node, NOBODY)

    def restore(self, node: int) -> None:
        """Undo that: the node is awake."""
        self.sleeping.remove(node)
        self.release(node, NOBODY)

    def hold(self, place: int, group: int, units: int | None = None) -> None:
        """Keep a node, or GPU units of a pool, for a group of jobs or for nobody."""
        self.free.withhold(place, group, units)
        self.changes += 1

    def release(self, place: int, group: int, units: int | None = None) -> None:
        """Undo one `hold`."""
        self.free.restore(place, group, units)
        self.forget_refusals()

    def capacity_changed(self, *, announced: bool) -> None:
        """Note that capacity is taken out now or comes back, as was announced or not."""
