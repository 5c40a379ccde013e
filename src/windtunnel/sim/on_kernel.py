"""A run on the kernel as outages and policies of power see it, and as the loop sees them.

What is asked at every instant stands in the kernel: the least that jobs draw, their power limits,
time without power, the nodes in use. The rest is asked when something is due.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from windtunnel.sim.disruptions.spares import Without

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.deciding import Driver
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.kernel_run import KernelRun
    from windtunnel.sim.power.sources import PowerSources

#: For whom nodes are withheld that sleep: no reservation has this number.
ASLEEP = 1 << 20  # windtunnel.kernel.free_holds.HOLD_ASLEEP


class OnKernel:
    """Lends a run's tables; see `windtunnel.sim.reference.lent.Lent` for each method."""

    def __init__(self, run: KernelRun, rule: Any, driver: Driver | None) -> None:
        self.driver = driver
        self.run, self.sim, self.state, self.free = run, run.sim, run.state, run.free
        self.scheduler, self.class_of = rule, run.line_of
        self.tables = tables = run.tables
        state, sim = run.state, run.sim
        self.running_jobs, self.running_on = tables.running, tables.running_on
        self.waiting_jobs, self.stay_of = tables.waiting_jobs, tables.stay_number
        self.where, self.sharing = tables.where, tables.sharing
        self.attained, self.time_to_end = tables.attained, tables.time_to_end
        self.rate = tables.rate
        self.secured, self.saved_last = tables.secured, tables.saved_last
        self.floor, self.most_nodes_in_use = tables.floor_of, state.node_use.take_peak
        self.failing, self.fail_at, self.take_failed = sim.failing, sim.fail_at, sim.take_failed
        self.set_start_overhead = sim.set_start_overhead
        self.interrupt, self.end_failed, self.pause = sim.interrupt, sim.end_failed, sim.pause
        self.hold, self.release = self.free.withhold_node, self.free.restore_node
        self.queue, self.works = run.queue_again, run.works
        self.may_go_on, self.node_sets_for = run.policy.may_go_on, run.policy.node_sets_for
        #: Quotas that are tried stand in what would be free.
        self.trying_quotas = nullcontext
        self._kinds: dict[tuple[int, frozenset[int]], int] = {}
        self.asks_below = run.rules.preemption == "feasible" and run.rules.quotas is None
        columns = tables.columns()
        self._columns = {name: columns[name] for name in ("left", "useful", "lost")}

    # What is so.

    @cached_property
    def _shown(self) -> Any:
        """A free state to look in what would be."""
        return self.free.twin()

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""
        return len(self.run.problem.rows) - int(self.tables.counts[2])

    def free_in(self, place: int) -> int:
        """Return the GPU units free in a pool."""
        return int(self.free.free_by_node()[place])

    def lost(self, job: int) -> float:
        """Return the seconds of work that failures undid so far."""
        return float(self._columns["lost"][job])

    def resume_cost(self, job: int) -> float:
        """Return the seconds that a job pays when it goes on after a stop."""
        return float(self.run.jobs.resume_cost[job])

    def nodes_in_use(self) -> set[int]:
        """Return the nodes on which any job runs."""
        return {node for job in self.running_jobs() for node, _ in self.where(job)}

    def look_in(
        self, shown: Any, job: int, nodes: frozenset[int] | None, *, takes: bool = False
    ) -> Where | None:
        """Return where a waiting job would go in what would be free, on some nodes alone."""
        look_in: Any = self.run.admission.look_in
        where: Where | None
        if nodes is None:
            where = look_in(shown, job, takes, -1)
            return where
        others = [n for n in range(len(self.run.problem.sizes)) if n not in nodes]
        for node in others:
            shown.withhold_node(node, ASLEEP)
        where = look_in(shown, job, takes, self._kind_on(job, nodes))
        if where is None:  # quotas and power are seen to type by type there
            where = look_in(shown, job, takes, -1)
        for node in others:
            shown.restore_node(node, ASLEEP)
        return where

    def _kind_on(self, job: int, nodes: frozenset[int]) -> int:
        """Return the kind of what a job asks for, on some nodes alone."""
        asked = int(self.run.problem.demand_of[job])
        if (asked, nodes) not in self._kinds:
            problem = self.run.problem
            bound = problem.on_nodes(problem.demands[asked], sum(1 << node for node in nodes))
            self._kinds[asked, nodes] = self.free.add_kind(bound)
        return self._kinds[asked, nodes]

    def give_in(self, shown: Any, job: int) -> None:
        """Let the place of a running job be free in what would be free."""
        shown.give_pairs(self.tables.kind_of(job), self.where(job))

    def with_awake(self, nodes: Collection[int]) -> Any:
        """Return what is free now, some nodes that are not awake restored."""
        self._shown.become(self.free)
        for node in nodes:
            self._shown.restore_node(node, ASLEEP)
        return self._shown

    def shares_with_awake(self, nodes: Collection[int]) -> FreeShares:
        """Return the same to elastic jobs, with what admission leaves."""
        assert self.driver is not None  # noqa: S101 - of an elastic run
        shown = self.driver.free_shares()
        for node in nodes:
            shown.restore(node, ASLEEP)
        return shown

    def floor_sum(self) -> int:
        """Return what all running jobs add to the draw at least, nanowatts."""
        return int(self.tables.power_state()[1]) if self.run.capped else 0

    def without(self, job: int) -> Without:
        """Return what would be, were a running job gone."""
        tables, access = self.tables, self.run.access_of(job)
        free, kind, where = self.free.twin(), tables.kind_of(job), self.where(job)
        free.give_pairs(kind, where)
        own = {node for node, _ in where}
        for node, group in free.held():
            if node in own:  # it runs on where nobody else may start
                free.restore_node(node, group)

        def fits(where: Where) -> bool:
            return bool(free.fits_pairs(kind, where, access)) and bool(tables.affords(job, where))

        def grants(node: int, tasks: int, first: int) -> Sequence[int] | None:
            tables.draw_for(free)
            found: Sequence[int] | None = free.grants_on(kind, node, tasks, first)
            return found

        return Without(free.units_on, grants, fits)

    # What is done.

    def undo(self, job: int, left: float) -> None:
        """Let so much work be left (s) of a job that runs nowhere."""
        columns = self._columns
        more = left - columns["left"][job]
        if more > 0:
            columns["left"][job] = left
            columns["useful"][job] -= more
            columns["lost"][job] += more

    def slow(self, place: int, speed: float) -> None:
        """Let what runs on a node go at this speed."""
        self.run.pace.set_speed(place, speed)

    def capacity_changed(self, *, announced: bool) -> None:
        """Note that capacity is taken out now or comes back."""
        if not announced:
            self.sim.surprise()

    def go_on(self, job: int, where: Where) -> None:
        """Let a job that was interrupted go on elsewhere."""
        self.state.go_on(job, where)
        self.run.went_on(job)

    def cut(self, job: int) -> None:
        """Take a running job off its GPUs with its work saved, and queue it again."""
        self.sim.pause(job)
        self.run.queue_again(job)

    def set_budget(self, nanowatts: int) -> None:
        """Let jobs add so much to the draw from now on; whoever was refused may try again."""
        if self.run.capped:
            self.state.set_budget(nanowatts)

    def withhold(self, node: int) -> None:
        """Keep a node from everybody: it sleeps. It is not down."""
        self.free.withhold_node(node, ASLEEP)

    def restore(self, node: int) -> None:
        """Undo that: the node is awake."""
        self.free.restore_node(node, ASLEEP)

    def note_power(self, power: PowerSources) -> None:
        """Tell the kernel the budget, and which nodes sleep or wake."""
        sim, cap, sleeper = self.sim, power.plan.cap, power.sleeper
        sim.cap_time = power.next_cap[0]
        if cap is not None:
            self.state.budget.know(power.cap_w, power.base_w, cap.pue)
        if sleeper is not None:
            waking = sorted(sleeper.waking)
            nodes = [node for _, node in waking] + sorted(sleeper.asleep)
            times = [time for time, _ in waking] + [-1.0] * len(sleeper.asleep)
            self.run.announced.sleeping(nodes, times, sleeper.plan.wake_time, ASLEEP)
        busy = sleeper is not None and bool(sleeper.asleep)
        looks = power.plan.shift is not None and power.plan.shift.interruptible
        sim.ends_instants = busy or looks
