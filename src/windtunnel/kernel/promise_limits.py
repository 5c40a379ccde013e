"""`PromiseLimits`: which waiting jobs may hold a promise, as far as quotas go."""

from __future__ import annotations

import cython

from windtunnel.kernel.lines import Lines
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.promises import PROMISE_NEVER, PROMISE_PLANNED, Promises
from windtunnel.kernel.state import State


@cython.final
@cython.cclass
class PromiseLimits:
    """Whether quotas let jobs be promised a start: without quotas everybody.

    Args:
        promises: what jobs are promised.

    Attributes:
        first_over: the first that waits for quota, where that holds up those behind; -1 = nobody.
    """

    promises: Promises
    state: State
    lines: Lines
    first_over: cython.int

    def __init__(self, promises: Promises) -> None:
        self.promises, self.state = promises, promises.state
        self.lines = promises.state.lines
        self.first_over = -1

    @compiled
    def see_first_over(self) -> cython.void:
        """See who holds up those behind."""
        self.first_over = -1
        if not self.state.quotas.blocks:
            return
        for top in range(self.lines.num_tops):
            line = self.lines.tops[top]
            job = self.lines.head(line)
            if self.promises.what[job] == PROMISE_PLANNED:  # it has its quota once others gave way
                if self.lines.length[line] == 1:
                    continue
                job = self.lines.slab[self.lines.begin[line] + 1]
            if not self.state.quotas.admits(job) and (
                self.first_over < 0 or self.lines.before(job, self.first_over)
            ):
                self.first_over = job

    @compiled
    def is_held_up(self, job: cython.int) -> cython.bint:
        """Return whether a job stands behind one that waits for quota, or is that one."""
        return self.first_over >= 0 and not self.lines.before(job, self.first_over)

    @compiled
    def admits_line(self, line: cython.int) -> cython.bint:
        """Return whether the jobs of a line that has any have the quota, held up or not."""
        return not self.state.has_quotas or self.state.quotas.admits(self.lines.head(line))

    @compiled
    def may_be_promised(self, job: cython.int) -> cython.bint:
        """Return whether quotas let a waiting job be promised a start."""
        if not self.state.has_quotas:
            return True
        return not self.is_held_up(job) and self.state.quotas.admits(job)

    @compiled
    def may_keep(self, job: cython.int) -> cython.bint:
        """Return whether quotas let a job keep its promise: on the GPU type that it is bound to."""
        if not self.may_be_promised(job):
            return False
        if not self.state.has_quotas or not self.state.quotas.binds:
            return True
        if self.state.quotas.accounts.amount[job] == 0:
            return True
        return self.promises.what[job] != PROMISE_NEVER and self.state.quotas.allows_kind(
            job, self.state.kind[job]
        )

    @compiled
    def may_all_keep(self, line: cython.int) -> cython.bint:
        """Return whether it is known at once that all of a line may keep their promises."""
        return self.first_over < 0 and not self.state.quotas.binds and self.admits_line(line)
