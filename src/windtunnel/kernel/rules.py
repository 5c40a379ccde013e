"""The queueing rules that look at the first jobs only: strict, and skip."""

from __future__ import annotations

import cython

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.free import Free
from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.state import State


@cython.cclass
class Rule:
    """What happens at a decision.

    Attributes:
        alarm: when the rule wants to decide next, even if nothing happens; inf = never.
    """

    state: State
    free: Free
    lines: Lines
    admission: Admission
    alarm: cython.double

    def __init__(self, state: State, admission: Admission) -> None:
        self.state = state
        self.free = state.free
        self.lines = state.lines
        self.admission = admission
        self.alarm = float("inf")

    def admission_of(self) -> Admission:
        """Return what says who may start."""
        return self.admission

    def planned_starts(self) -> list:
        """Return when waiting jobs are planned to start, s, and on which nodes, if the rule plans.

        By what is so now, and by the last decision.
        """
        return []

    def giving_way(self, line: int) -> tuple:
        """Return a line's first job, and the running jobs that are ranked below it."""
        return -1, []

    @compiled
    def decide(self) -> cython.void:
        """Start what may start."""

    @compiled
    def comes(self, job: cython.int) -> cython.void:
        """Note that a job is about to wait; the rule may give it a key of its own."""

    @compiled
    def came(self, job: cython.int) -> cython.void:
        """Note that a job waits; it is in its line."""

    @compiled
    def went(self, job: cython.int, is_over: cython.bint) -> cython.void:
        """Note that a job left its GPUs; before it waits again, if it does."""

    @compiled
    def moves(self, job: cython.int) -> cython.void:
        """Note that a job left its GPUs and goes on with others at once; it never waits."""

    @compiled
    def failed(self, job: cython.int) -> cython.void:
        """Note that a job failed as its work was done; it is over then, or waits again."""
        self.went(job, True)

    @compiled
    def surprised(self) -> cython.void:
        """Note that capacity was lost or came back that nobody had announced."""

    @compiled
    def rekeyed(self) -> cython.void:
        """Note that keys have changed; the lines are in order."""

    @compiled
    def ranks_running(self) -> cython.bint:
        """Return whether running jobs have keys, too."""
        return False


@cython.final
@cython.cclass
class StrictRule(Rule):
    """Start jobs in order; stop at the first that does not fit.

    One that waits for quota holds up nobody, unless quotas are to block.
    """

    refused: cython.int
    version: cython.longlong

    def __init__(self, state: State, admission: Admission) -> None:
        Rule.__init__(self, state, admission)
        self.refused = -1

    @compiled
    def decide(self) -> cython.void:
        """Start what may start."""
        if self.version != self.free.version:
            self.lines.reopen()  # those that waited for quota
        while self.lines.num_tops > 0:
            line = self.lines.tops[0]
            job = self.lines.head(line)
            if line != self.refused or self.version != self.free.version:
                if self.admission.fit(job):
                    self.lines.pop(line)
                    self.state.begin(job, self.admission.kind)
                    continue
                self.refused = line
                self.version = self.free.version
            if not self.admission.is_over(job) or self.state.quotas.blocks:
                return
            self.lines.close(line)


@cython.final
@cython.cclass
class SkipRule(Rule):
    """Try every waiting job in order, going on past those that do not fit.

    What the first job of a line is refused no other of it gets, until there is more capacity. Where
    quotas are to block, a job that waits for quota holds up all behind it.
    """

    version: cython.longlong

    def __init__(self, state: State, admission: Admission) -> None:
        Rule.__init__(self, state, admission)
        self.version = -1

    @compiled
    def decide(self) -> cython.void:
        """Start what may start."""
        if self.version != self.free.version or self.admission.blocks():
            self.version = self.free.version
            self.lines.reopen()
        while self.lines.num_tops > 0:
            line = self.lines.tops[0]
            job = self.lines.head(line)
            if self.admission.fit(job):
                self.lines.pop(line)
                self.state.begin(job, self.admission.kind)
            elif self.admission.blocks() and self.admission.is_over(job):
                return
            else:
                self.lines.close(line)
