"""`Powered`: the reference's tables as policies of power see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.reference.rules import Scheduler
    from windtunnel.sim.reference.state import State


class Powered:
    """A `windtunnel.sim.power.contract.PoweredRun`.

    Args:
        state: the run.

    Attributes:
        scheduler: holds the waiting jobs; set before anything is queued.
    """

    scheduler: Scheduler

    def __init__(self, state: State) -> None:
        self.state = state
        self.attained, self.time_left = state.attained, state.time_left
        self.set_budget = state.set_budget

    @property
    def unfinished(self) -> int:
        """Jobs that are not over."""
        return self.state.unfinished

    def running_jobs(self) -> list[int]:
        """Return running jobs in order of start."""
        return list(self.state.running)

    def waiting_jobs(self) -> list[int]:
        """Return queued jobs in order of coming."""
        return list(self.state.waiting)

    def stay_of(self, job: int) -> int:
        """Return the number of a running job's stay."""
        return self.state.running[job].number

    def where(self, job: int) -> Where:
        """Return where a job runs."""
        return self.state.running[job].where

    def sharing(self, job: int) -> Sequence[int]:
        """Return the jobs of a place."""
        return self.state.running[job].place.jobs

    def resume_cost(self, job: int) -> float:
        """Return what going on costs a job, s."""
        return self.state.overhead[job]

    def nodes_in_use(self) -> Collection[int]:
        """Return the nodes that have jobs."""
        return self.state.users.keys()

    def most_nodes_in_use(self) -> int:
        """Return the most nodes that had jobs since this was asked last."""
        most, self.state.most_in_use = self.state.most_in_use, len(self.state.users)
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
            where = state.put(state.opened(shown, job), job, state.demand_of(job))
            if where is None or not state.affords(job, where):
                hopeless.add(state.class_of[job])
                continue
            shown.take(where, state.demand_of(job))
            needed |= {node: None for node, _ in where if node in nodes}
        return list(needed)

    def floor(self, job: int) -> int:
        """Return what a running job adds at least, nanowatts."""
        return self.state.floors.get(job, 0)

    def floor_sum(self) -> int:
        """Return what all running jobs add at least, nanowatts."""
        return self.state.floor_sum

    def lacks_power(self) -> bool:
        """Return whether somebody waits for power alone."""
        return self.state.capped

    def withhold(self, node: int) -> None:
        """Let a node sleep."""
        self.state.sleeping.add(node)
        self.state.withhold(node)

    def restore(self, node: int) -> None:
        """Let a node be awake."""
        self.state.sleeping.remove(node)
        self.state.restore(node)

    def queue(self, job: int, now: float) -> None:
        """Let a job enter the queue."""
        self.state.waiting[job] = None
        self.scheduler.add(job, now)

    def pause(self, job: int, now: float) -> None:
        """Stop a job that goes on later."""
        self.state.pause(job, now)
        self.scheduler.gone(job)

    def cut(self, job: int, now: float) -> None:
        """Stop a job for want of power."""
        self.state.preempt(job, now)
        self.scheduler.returned(job, now)
