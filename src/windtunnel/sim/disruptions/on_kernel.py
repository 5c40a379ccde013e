"""`KernelOutages`: the outages of a run on the kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.sim.disruptions.source import Outages

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.free import Where
    from windtunnel.sim.disruptions.plan import Plan
    from windtunnel.sim.kernel_run import KernelRun


class KernelOutages:
    """Lends a run's tables as `windtunnel.sim.reference.lent` does, and is a source of the run.

    Args:
        run: the run.
        plan: what will happen.
    """

    def __init__(self, run: KernelRun, plan: Plan) -> None:
        self.run, self.sim = run, run.sim
        state, free = run.state, run.free
        self.running_on, self.where, self.saved_last = (
            state.running_on, state.where, state.saved_last,
        )  # fmt: skip
        self.failing, self.fail_at, self.owes = self.sim.failing, self.sim.fail_at, self.sim.owes
        self.end_failed, self.launch_cost = self.sim.end_failed, run.launch_cost
        self.sharing, self.may_go_on = state.sharing, run.policy.may_go_on
        self._lost = state.columns()["lost"]
        self.hold, self.release = free.withhold_node, free.restore_node
        self.outages = Outages(self, run.problem, plan)
        self.next_time, self.apply = self.outages.next_time, self.outages.apply
        self.sim.watch("news", 0.0)
        self.sim.note_up(run.problem.quota)

    @property
    def certain(self) -> int:
        """Changes that will come, whatever chance brings."""
        return self.outages.certain

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""
        return len(self.run.problem.rows) - int(self.run.state.counts[2])

    def free_in(self, place: int) -> int:
        """Return the GPU units free in a pool."""
        return int(self.run.free.free_by_node()[place])

    def run_time(self, job: int) -> float:
        """Return the seconds on GPUs so far of an active job."""
        return float(self.run.state.attained(job)[0])

    def lost(self, job: int) -> float:
        """Return the seconds of work that failures undid so far."""
        return float(self._lost[job])

    def take_failed(self) -> list[int]:
        """Return the jobs that failed at their end since this was asked last, in order."""
        failed: list[int] = self.sim.take_failed()
        if failed:
            self.sim.watch("news", 1.0)
        return failed

    def secured(self, job: int) -> float:
        """Return a running job's work left if it failed now, s at full speed."""
        return float(self.run.state.secured(job))

    def undo(self, job: int, left: float) -> None:
        """Let so much work be left (s) of a job that runs nowhere."""
        columns = self.run.state.columns()
        more = left - columns["left"][job]
        if more > 0:
            columns["left"][job] = left
            columns["useful"][job] -= more
            columns["lost"][job] += more

    def slow(self, place: int, speed: float) -> None:
        """Let what runs on a node go at this speed."""
        self.run.pace.set_speed(place, speed)

    def room_changes(self, *, announced: bool) -> None:
        """Note that room is taken out now or comes back."""
        if not announced:
            self.sim.surprise()
        self.sim.room_changed()

    def interrupt(self, job: int, *, loses: bool, goes_on: bool = False) -> None:
        """Take a running job off its GPUs."""
        self.sim.interrupt(job, loses, goes_on)

    def without(self, job: int) -> tuple[Callable[[int], int], Callable[[Where], bool]]:
        """Return the units free on a node without a job, and whether it could run elsewhere."""
        run, state = self.run, self.run.state
        free, kind, access = run.free.twin(), state.kind_of(job), run.access_of(job)
        free.give_pairs(kind, self.where(job))

        def fits(where: Where) -> bool:
            return bool(free.fits_pairs(kind, where, access)) and bool(state.affords(job, where))

        return free.units_on, fits

    def go_on(self, job: int, where: Where) -> None:
        """Let a job that was interrupted go on elsewhere."""
        self.run.state.go_on(job, where)
        self.run.went_on(job)

    def queue(self, job: int, now: float) -> None:  # noqa: ARG002 - the kernel knows when it is
        """Let a job enter the queue again."""
        self.run.queue_again(job)

    def is_idle(self, *, cap_changes: bool) -> bool:
        """Return whether all jobs are over, or those that wait will do so for ever.

        Nothing runs or comes back, no more power either (``cap_changes``), and of what is up, all
        of which is free, the policy gave them nothing; further failures do not help.
        """
        if not self.unfinished:
            return True
        run = self.run
        running, waiting, _ = run.state.counts
        arrived = self.sim.num_arrived == len(run.problem.rows)
        if not arrived or running or run.certain or not waiting or cap_changes:
            return False
        return run.every == math.inf or run.none_fits()
