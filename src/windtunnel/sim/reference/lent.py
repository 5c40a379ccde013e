"""`Lent`: the reference's tables as outages and policies of power see and change them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from windtunnel.cluster.free import Where
    from windtunnel.sim.reference.progress import Stay
    from windtunnel.sim.reference.rules import Scheduler
    from windtunnel.sim.reference.state import State


class Lent:
    """A `windtunnel.sim.disruptions.contract.DisruptedRun`, and `...power.contract.PoweredRun`.

    Args:
        state: the run.
        scheduler: decides about the waiting jobs.
    """

    def __init__(self, state: State, scheduler: Scheduler) -> None:
        self.state, self.scheduler = state, scheduler
        self.attained, self.time_left = state.attained, state.time_left
        self.where, self.nodes_in_use = state.where, state.nodes_in_use
        self.may_go_on = state.policy.may_go_on
        self._fails_at = [math.inf] * len(state.gpus)
        #: Jobs that were taken off their GPUs, and are not in the queue again.
        self._off: set[int] = set()
        #: The stay of a job that goes on elsewhere.
        self._left: Any = None

    # What is so.

    @property
    def unfinished(self) -> int:
        """Jobs that are not over."""
        return self.state.unfinished

    def running_jobs(self) -> list[int]:
        """Return running jobs in order of start."""
        return list(self.state.running)

    def running_on(self, places: set[int]) -> list[int]:
        """Return the jobs on some nodes, in order of start."""
        running = self.state.running.items()
        return [job for job, stay in running if any(node in places for node, _ in stay.where)]

    def waiting_jobs(self) -> list[int]:
        """Return queued jobs in order of coming."""
        return list(self.state.waiting)

    def stay_of(self, job: int) -> int:
        """Return the number of a running job's stay."""
        return self.state.running[job].number

    def free_in(self, place: int) -> int:
        """Return the units free in a pool."""
        return int(self.state.free.free[place])

    def run_time(self, job: int) -> float:
        """Return the seconds on GPUs so far."""
        return self.attained(job, self.state.now)[0]

    def resume_cost(self, job: int) -> float:
        """Return what going on costs a job, s."""
        return self.state.overhead[job]

    def launch_cost(self, job: int) -> float:
        """Return what every launch costs an elastic job, s."""
        return 0.0 if self.state.works is None else self.state.works[job].penalty

    def lost(self, job: int) -> float:
        """Return the seconds of work that failures undid so far."""
        return self.state.lost[job]

    def secured(self, job: int) -> float:
        """Return a running job's work left if it failed now."""
        stay = self.state.running[job]
        reached = stay.at(self.state.now)
        return stay.work - (reached.written * stay.checkpoints.interval if reached.written else 0.0)

    def undo(self, job: int, left: float) -> None:
        """Let so much work be left of a job that runs nowhere."""
        more = left - self.state.left[job]
        if more > 0:
            self.state.left[job] = left
            self.state.useful[job] -= more
            self.state.lost[job] += more

    def slow(self, place: int, speed: float) -> None:
        """Let what runs on a node go at this speed."""
        assert self.state.pace is not None  # noqa: S101 - a run whose nodes may be slow has one
        self.state.pace.set_speed(place, speed)

    def saved_last(self, job: int) -> bool:
        """Return whether work of the last stay was saved."""
        return next(stay for stay in reversed(self.state.stays) if stay.job == job).kept > 0

    def most_nodes_in_use(self) -> int:
        """Return the most nodes that had jobs since this was asked last."""
        most, self.state.most_in_use = self.state.most_in_use, len(self.nodes_in_use())
        return most

    def nodes_for_waiting(self, nodes: Collection[int]) -> list[int]:
        """Return which of some nodes waiting jobs would get if they were restored."""
        state, shown = self.state, self.state.free.copy()
        for node in nodes:
            shown.restore(node)
        needed: dict[int, None] = {}
        hopeless: set[int] = set()
        for job in state.waiting:
            if state.class_of[job] in hopeless:
                continue
            where, _ = state.search(job, shown, state.now, state.spare)
            if where is None:
                hopeless.add(state.class_of[job])
                continue
            shown.take(where, state.demand[job])
            needed |= {node: None for node, _ in where if node in nodes}
        return list(needed)

    def floor(self, job: int) -> int:
        """Return what a running job adds at least, nanowatts."""
        return self.state.floors.get(job, 0)

    def floor_sum(self) -> int:
        """Return what all running jobs add at least, nanowatts."""
        return self.state.floor_sum

    # Jobs that fail.

    def fail_at(self, job: int, run_time: float) -> None:
        """Let a job fail after so long on GPUs."""
        self._fails_at[job] = run_time

    def next_failure(self) -> float:
        """Return when a running job fails by itself next, s."""
        return min(map(self._failure_of, self.state.running.values()), default=math.inf)

    def failing(self) -> int:
        """Return the next job that fails by now."""
        stay = min(self.state.running.values(), key=self._failure_of, default=None)
        return -1 if stay is None or self._failure_of(stay) > self.state.now else stay.job

    def _failure_of(self, stay: Stay) -> float:
        before = self.state.run_before[stay.job]
        return stay.start + max(0.0, self._fails_at[stay.job] - before)

    def take_failed(self) -> list[int]:
        """Return the jobs that failed at their end."""
        failed, self.state.failed = self.state.failed, []
        return failed

    def interrupt(self, job: int, *, loses: bool, goes_on: bool = False) -> None:
        """Take a job off its GPUs."""
        self.state.moving = goes_on
        stay = self.state.leave(job, self.state.now, loses=loses)
        if goes_on:
            self._left = stay
        else:
            self._off.add(job)

    def sharing(self, job: int) -> list[int]:
        """Return who shares a running job's place."""
        return self.state.running[job].place.jobs

    def without(self, job: int) -> tuple[Callable[[int], int], Callable[[Where], bool]]:
        """Return the units free on a node without a job, and whether it could run elsewhere."""
        state, place = self.state, self.state.running[job].place
        free = state.free.copy()
        free.give(place.where, place.demand)
        shown = state.opened(free, job)

        def fits(where: Where) -> bool:
            has = state.has(shown, job, where, place.demand)
            return has and state.affords(job, where, [job])

        return free.free_units, fits

    def go_on(self, job: int, where: Where) -> None:
        """Let a job that was interrupted go on elsewhere."""
        stay = self._left
        self.state.begin(job, self.state.now, where, rate=stay.base, option=stay.place.demand)
        self.state.moving = False
        self.scheduler.moves(job)

    def owes(self, job: int, seconds: float, *, restarts: bool) -> None:
        """Let a job pay when it starts, or goes on."""
        self.state.owed[job] = seconds
        if restarts:
            self.state.to_restart.add(job)

    def end_failed(self, job: int) -> None:
        """Let a job be over."""
        self.state.ended_failed.add(job)
        if job in self._off:
            self.scheduler.gone(job)

    # Who waits, and for what.

    def queue(self, job: int, now: float) -> None:
        """Let a job enter the queue."""
        self.state.wait(job)
        self.scheduler.came(job, now, was_stopped=job in self._off)
        self._off.discard(job)

    def pause(self, job: int, now: float) -> None:
        """Stop a job that goes on later."""
        self.state.preempt(job, now)
        del self.state.waiting[job]
        self.scheduler.gone(job)

    def cut(self, job: int, now: float) -> None:
        """Stop a job for want of power."""
        self.state.preempt(job, now)
        self.scheduler.came(job, now, was_stopped=True)

    def set_budget(self, nanowatts: int) -> None:
        """Let jobs add so much to the draw."""
        self.state.budget = nanowatts
        self.state.more_room()

    def withhold(self, node: int) -> None:
        """Let a node sleep."""
        self.state.sleeping.add(node)
        self.state.free.withhold(node)
        self.state.changes += 1

    def restore(self, node: int) -> None:
        """Let a node be awake."""
        self.state.sleeping.remove(node)
        self.state.free.restore(node)
        self.state.more_room()

    def hold(self, place: int, group: int, units: int) -> None:
        """Keep a node, or units of a pool, for a group or for nobody."""
        self.state.free.withhold(place, group, units)
        self.state.changes += 1

    def release(self, place: int, group: int, units: int) -> None:
        """Undo that."""
        self.state.free.restore(place, group, units)
        self.state.more_room()

    def room_changes(self, *, announced: bool) -> None:
        """Do nothing: `hold` and `release` say it all."""
