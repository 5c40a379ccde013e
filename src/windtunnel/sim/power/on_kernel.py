"""`KernelPower`: a run on the kernel as policies of power see it.

What is asked at every instant stands in the kernel: the least that jobs draw, their power limits,
time without power, the nodes in use. The rest is asked when something is due.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.power.limits import levels_of
from windtunnel.sim.power.sources import PowerSources

if TYPE_CHECKING:
    from collections.abc import Collection

    from windtunnel.sim.flight import PowerRecord
    from windtunnel.sim.kernel_run import KernelRun
    from windtunnel.sim.power.plan import PowerPlan

#: For whom nodes are withheld that sleep: no reservation has this number.
ASLEEP = 1 << 20  # windtunnel.kernel.free_holds.HOLD_ASLEEP


class KernelPower:
    """Lends a run's tables as `windtunnel.sim.reference.lent` does, and is a source of the run.

    Args:
        run: the run.
        plan: its policies of power.
    """

    def __init__(self, run: KernelRun, plan: PowerPlan) -> None:
        self.run, self.plan = run, plan
        self.sim, self.state, self.free = run.sim, run.state, run.free
        self.policies = PowerSources(plan, run.problem, self)
        self._shown = self.free.twin() if plan.sleep is not None else None
        self._tell_kernel()
        if plan.cap is not None and plan.cap.period < math.inf:
            rows = plan.cap.rows(plan.first_submit(run.problem))
            next(rows)
            run.announced.cap(rows, plan.cap.period)

    # A source.

    def next_time(self) -> float:
        """Return when something happens next, s."""
        return self.policies.next_but_cap()

    def apply(self, now: float) -> None:
        """Let happen what is due."""
        if self.policies.apply(now):
            self.sim.watch("news", 1.0)
        self._tell_kernel()

    def after(self, now: float) -> None:
        """Look at who was started, and call nodes for those who wait."""
        self.policies.after_decisions(now)
        self._tell_kernel()

    @property
    def certain(self) -> int:
        """Changes that will come: jobs let into the queue later, nodes that are waking."""
        return self.policies.certain

    def _tell_kernel(self) -> None:
        """Tell the kernel the budget, and which nodes sleep or wake."""
        cap, sleeper = self.plan.cap, self.policies.sleeper
        self.sim.watch("cap_time", self.policies.next_cap)
        if cap is not None:
            self.state.know_cap(self.policies.cap_w, self.policies.base_w, cap.pue)
        if sleeper is not None:
            waking = sorted(sleeper.waking)
            nodes = [node for _, node in waking] + sorted(sleeper.asleep)
            times = [time for time, _ in waking] + [-1.0] * len(sleeper.asleep)
            self.run.announced.sleeping(nodes, times, sleeper.plan.wake_time, ASLEEP)
        busy = sleeper is not None and bool(sleeper.asleep)
        looks = self.plan.shift is not None and self.plan.shift.interruptible
        self.sim.watch("ends_instants", busy or looks)

    def record(self, columns: dict[str, np.ndarray], by_row: Any) -> PowerRecord:
        """Return what the policies did."""
        levels = levels_of(columns["stay_start"], *self.state.levels())
        if self.policies.shifter is None:  # nobody was held, and so nobody was asked
            came = np.arange(len(self.run.problem.rows)) < self.sim.num_arrived
            self.policies.note_arrivals(np.where(came, self.run.problem.submit, math.nan))
        return self.policies.record(levels, by_row, self.sim.capped_seconds)

    # What is so.

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""
        return len(self.run.problem.rows) - int(self.state.counts[2])

    def running_jobs(self) -> list[int]:
        """Return running jobs in order of start."""
        found: list[int] = self.state.running()
        return found

    def waiting_jobs(self) -> list[int]:
        """Return the jobs in the queue, in order of coming."""
        found: list[int] = self.state.queued_jobs()
        return found

    def stay_of(self, job: int) -> int:
        """Return the number of a running job's stay."""
        return int(self.state.stay_number(job))

    def attained(self, job: int, now: float) -> tuple[float, float]:  # noqa: ARG002 - the kernel knows when it is
        """Return (seconds on GPUs so far, work left) of an active job."""
        run_time, left = self.state.attained(job)
        return run_time, left

    def time_left(self, job: int, now: float) -> float:  # noqa: ARG002 - ditto
        """Return an active job's work left with what it owes for resuming, s."""
        return float(self.state.time_to_go(job))

    def resume_cost(self, job: int) -> float:
        """Return the seconds that a job pays when it goes on after a stop."""
        return float(self.run.jobs.resume_cost[job])

    def nodes_in_use(self) -> set[int]:
        """Return the nodes on which any job runs."""
        return {node for job in self.state.running() for node, _ in self.state.where(job)}

    def most_nodes_in_use(self) -> int:
        """Return the most nodes in use at any instant since this was asked last."""
        return int(self.state.take_peak())

    def nodes_for_waiting(self, nodes: Collection[int]) -> list[int]:
        """Return which of some nodes waiting jobs would get if all of them were restored."""
        shown, run = self._shown, self.run
        assert shown is not None  # noqa: S101 - asked where nodes sleep
        shown.become(self.free)
        for node in nodes:
            shown.restore_node(node, ASLEEP)
        needed: dict[int, None] = {}
        hopeless: set[int] = set()
        for job in self.state.queued_jobs():
            line = int(run.line_of[job])
            if line in hopeless:
                continue
            where = run.admission.take_in(shown, job)
            if where is None:
                hopeless.add(line)
                continue
            needed |= {node: None for node, _ in where if node in nodes}
        return list(needed)

    def floor(self, job: int) -> int:
        """Return the least that a running job adds to the draw, nanowatts."""
        return int(self.state.floor_of(job))

    def floor_sum(self) -> int:
        """Return the sum of that over running jobs, nanowatts."""
        return 0 if self.plan.cap is None else int(self.state.power_state()[1])

    # What is done.

    def set_budget(self, nanowatts: int) -> None:
        """Let jobs add so much to the draw from now on; whoever was refused may try again."""
        if self.plan.cap is not None:
            self.state.set_budget(nanowatts)

    def withhold(self, node: int) -> None:
        """Keep a node from everybody: it sleeps. It is not down."""
        self.free.withhold_node(node, ASLEEP)
        self.sim.room_changed()

    def restore(self, node: int) -> None:
        """Undo that: the node is awake."""
        self.free.restore_node(node, ASLEEP)
        self.sim.room_changed()

    def queue(self, job: int, now: float) -> None:  # noqa: ARG002 - the kernel knows when it is
        """Let a job enter the queue that was held, its work saved."""
        self.run.queue_again(job)

    def pause(self, job: int, now: float) -> None:  # noqa: ARG002 - ditto
        """Take a running job off its GPUs with its work saved; it counts as preempted."""
        self.sim.pause(job)

    def cut(self, job: int, now: float) -> None:  # noqa: ARG002 - ditto
        """Do the same, and queue it again."""
        self.sim.pause(job)
        self.run.queue_again(job)
