"""The compiled engine: sets up the kernel for a run, answers what it asks, and closes the books.

The kernel (`windtunnel.kernel`) runs by itself until it needs Python: keys of a policy of the
user's, the decisions of one that decides all by itself, and what happens rarely (outages, the rows
of a power cap, nodes that fall asleep). Between answers signals are handled, so that Ctrl-C ends
a run at once, and progress is reported.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.errors import PolicyError
from windtunnel.sim.closing import as_flight, losses
from windtunnel.sim.deciding import Driver
from windtunnel.sim.disruptions.source import Outages
from windtunnel.sim.headway import Headway
from windtunnel.sim.kernel_run import KernelRun
from windtunnel.sim.on_kernel import OnKernel
from windtunnel.sim.power.sources import PowerSources
from windtunnel.sim.progress import tell
from windtunnel.sim.queue_rules import rule_of
from windtunnel.sim.run_rules import Rules
from windtunnel.sim.verdicts import Verdicts

if TYPE_CHECKING:
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.problem import Problem

NAME = "compiled"
#: Why the kernel comes back, as in `windtunnel.kernel.loop`.
OVER, SLICE, ARRIVED, SOURCES, ROUND, DECIDE, AFTER, END, IDLE = range(9)


def run(problem: Problem, policy: Policy, placement: Placement, **rules: Any) -> Flight:
    """Fly the jobs under the policy; see `windtunnel.sim.engines.choose_engine`."""
    return Flying(KernelRun(problem, policy, placement, Rules(**rules))).fly()


class Flying:
    """A run with its rule and its sources, and the answers to what the kernel asks.

    Attributes:
        driver: what drives a policy that decides all by itself; None = the policy does not.
        outages, powered: sources of the run; None = it has none.
        sources: those that it has, in order.
        headway: stops a policy under which no job gets on.
    """

    def __init__(self, run: KernelRun) -> None:
        self.run, self.problem = run, run.problem
        self.driver = Driver(run) if run.decides else None
        self.rule = rule_of(run) if self.driver is None else self.driver.rule
        run.begin(self.rule)
        self.sim = run.sim
        self.headway = Headway(run.policy, run.rules, run.tables.work_left)
        lent = OnKernel(run, self.rule, self.driver)
        self.outages = None if run.plan is None else Outages(lent, run.problem, run.plan)
        if self.outages is not None:
            self.sim.note_up(run.problem.quota)
        self.powered = None if run.power is None else PowerSources(run.power, run.problem, lent)
        self.sources = [s for s in (self.outages, self.powered) if s is not None]
        self._next_source()

    def fly(self) -> Flight:
        """Fly, and return the flight."""
        while (why := self.sim.run()) != OVER:
            if not self._answer(why):
                break
        self.sim.check()
        self.run.tell()
        return self._flight()

    def _answer(self, why: int) -> bool:
        """Do what the kernel stopped for; return False if the run is over."""
        if why == ARRIVED:
            self._arrived()
        elif why == SOURCES:
            return self._sources()
        elif why == DECIDE:
            assert self.driver is not None  # noqa: S101 - it asks nobody else
            if self.sim.points >= self.headway.due:
                self._look_at_headway()
            self.driver.decide()
            return not self.run.is_stopped
        elif why == ROUND:
            if self.sim.points >= self.headway.due:
                self._look_at_headway()
            self.run.tell()
            self.run.ask_again()
        elif why == AFTER:
            self.run.tell()
        elif why == END:
            assert self.powered is not None  # noqa: S101 - ditto
            self.powered.after_decisions(self.sim.now)
            self._next_source()
        elif why == IDLE:
            return self._waits_on()
        else:
            tell(int(self.run.tables.counts[2]) / max(len(self.problem.rows), 1))
        return True

    def _look_at_headway(self) -> None:
        self.headway.look(self.sim.now, self.sim.points, self.run.tables.num_stays)

    def _flight(self) -> Flight:
        """Return what happened, jobs that still run cut off at the horizon."""
        self.sim.close_at(self.run.rules.until)
        columns = self.run.tables.columns()
        has_rates = self.driver is not None and self.driver.deciding.rates
        slowed = self.run.slowed or (self.run.plan is not None and has_rates)
        if self.run.order is not None:
            self.run.order.report_put_back(self.rule.put_back())
        problem, until, power, verdicts = self.problem, self.run.rules.until, None, None
        if self.powered is not None:
            power = self.powered.record(
                columns["stay_start"],
                self.run.tables.levels(),
                capped_time=self.sim.time_capped,
                arrived=self.sim.arrived,
            )
        if self.run.rules.record:
            verdicts = Verdicts.of(problem, *self.run.tables.recorded())
        lost = losses(problem, self.run.policy, columns, self.outages, self.sim.ups)
        flight = as_flight(
            problem,
            columns,
            until,
            self.sim.points,
            slowed=slowed,
            interruptions=lost,
            power=power,
            verdicts=verdicts,
        )
        return flight if self.driver is None else self.driver.finish(flight, columns, until)

    def _arrived(self) -> None:
        self.run.tell()
        for job in self.sim.take_fresh():
            if self.powered is None or not self.powered.holds(job, self.sim.now):
                self.run.queue_again(job)
        if self.powered is not None:
            self._next_source()

    def _waits_on(self) -> bool:
        """Return whether anybody who waits may be started some time.

        Raises:
            PolicyError: nobody may, and all capacity and power is there.
        """
        if not self.sim.gave_up:
            return self.sim.next_alarm < math.inf or not self._nothing_will_change()
        if not self.run.rules.may_wait(self.run.policy):
            message = f"starts none of {self.run.tables.counts[1]} waiting jobs on an idle cluster"
            raise PolicyError(self.run.policy.label, message, time=self.sim.now)
        return False

    def _sources(self) -> bool:
        """Let happen what is due; return False if it is of no more use to anybody."""
        is_quiet = not self.sim.has_news and not self.sim.is_pending
        if is_quiet and self.sim.next_alarm == math.inf and self._nothing_will_change():
            self.sim.undo_instant()
            return False
        now = self.sim.now
        changes_cap = self.powered is not None and self.powered.next_cap[0] <= now
        if changes_cap and self.sim.points >= self.headway.cap_due:
            self._look_at_headway()
        for source in self.sources:
            if source.apply(now):
                self.sim.news = True
            self.run.tell()
        self._next_source()
        return True

    def _nothing_will_change(self) -> bool:
        """Return whether all jobs are over, or those that wait will do so for ever.

        Nothing runs, arrives or comes back, no more power either, and of what is up, all of which
        is free, the policy gave them nothing; further failures do not help.
        """
        if self.outages is None:
            return False
        running, waiting, over = self.run.tables.counts
        jobs = len(self.problem.rows)
        if over == jobs:
            return True
        arrived = self.sim.arrived == jobs
        if not arrived or running or self._certain or not waiting:
            return False
        if self.powered is not None and self.powered.cap_changes:
            return False
        return self.run.every == math.inf or self.run.none_fits()

    @property
    def _certain(self) -> int:
        """Changes that will come, whatever chance brings."""
        return sum(source.certain for source in self.sources)

    def _next_source(self) -> None:
        times = (source.next_time() for source in self.sources)
        self.sim.source_time = min(times, default=math.inf)
        self.sim.certain = self._certain
        if self.powered is not None:
            self.sim.num_held = self.powered.held
