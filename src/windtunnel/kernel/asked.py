"""`Asked`: the rule of policies that decide all by themselves: it notes what happens.

The loop comes back to Python for every decision (``LOOP_DECIDE``), and `windtunnel.kernel.deciding`
asks the policy then.
"""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.admission import Admission
from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.job_views import JobViews
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.rules import Rule
from windtunnel.kernel.state import State

#: What became of a job that left its GPUs: nothing that is not known; taken off, it may wait
#: again; it failed as its work was done.
ASKED_KNOWN = cython.declare(cython.int, 0)
ASKED_TAKEN_OFF = cython.declare(cython.int, 1)
ASKED_FAILED = cython.declare(cython.int, 2)


@cython.final
@cython.cclass
class Asked(Rule):
    """Who waits, and what has happened since the policy was asked last.

    Args:
        state: the run; its lines are one, in order of arrival.
        admission: whether jobs may start.
        views: of its jobs.

    Attributes:
        arrived: jobs that came to wait since.
        over: those that are over, or out of the queue.
        stopped: those that were taken off their GPUs and wait again.
        moved: those that go on with other GPUs, as a node of theirs failed.
        came_at: when each waiting job came to wait, by a count of all that did.
        serial: that count.
    """

    views: JobViews
    arrived: JobList
    over: JobList
    stopped: JobList
    moved: JobList
    off: JobList
    came_at: cython.longlong[::1]
    serial: cython.longlong
    noted: cython.char[::1]
    off_at: cython.double[::1]

    def __init__(self, state: State, admission: Admission, views: JobViews) -> None:
        Rule.__init__(self, state, admission)
        count = max(state.num_jobs, 1)
        self.views = views
        self.arrived, self.over = JobList(), JobList()
        self.stopped, self.moved, self.off = JobList(), JobList(), JobList()
        self.came_at = numpy.zeros(count, dtype=numpy.int64)
        self.serial = 0
        self.noted = numpy.zeros(count, dtype=numpy.int8)
        self.off_at = numpy.zeros(count)

    @compiled
    def note_wait(self, job: cython.int) -> cython.void:
        """Note when a job came to wait."""
        self.serial += 1
        self.came_at[job] = self.serial

    @compiled
    def came(self, job: cython.int) -> cython.void:
        """Note that a job waits; it is in its line."""
        self.note_wait(job)
        if self.noted[job] == ASKED_TAKEN_OFF:
            if self.off_at[job] == self.state.now:
                self.stopped.add(job)
            else:
                self.over.add(job)
        self.noted[job] = ASKED_KNOWN
        self.arrived.add(job)

    @compiled
    def failed(self, job: cython.int) -> cython.void:
        """Note that a job failed as its work was done; it is over, or comes again."""
        self.over.add(job)
        self.noted[job] = ASKED_FAILED

    @compiled
    def went(self, job: cython.int, is_over: cython.bint) -> cython.void:
        """Note that a job left its GPUs; before it waits again, if it does."""
        if not is_over:
            self.noted[job] = ASKED_TAKEN_OFF
            self.off_at[job] = self.state.now
            self.off.add(job)
            return
        if self.noted[job] != ASKED_FAILED:
            self.over.add(job)
        self.noted[job] = ASKED_KNOWN

    @compiled
    def moves(self, job: cython.int) -> cython.void:
        """Note that a job goes on with other GPUs."""
        self.moved.add(job)

    @compiled
    def look_again(self) -> cython.void:
        """Count those among what is over that were taken off their GPUs, and are not queued."""
        at: cython.longlong
        for at in range(self.off.count):
            if self.noted[self.off.job[at]] == ASKED_TAKEN_OFF:
                self.over.add(self.off.job[at])
                self.noted[self.off.job[at]] = ASKED_KNOWN
        self.off.count = 0

    @compiled
    def forget(self) -> cython.void:
        """Begin a new list of what happens: the policy has been asked."""
        self.arrived.count = 0
        self.over.count = 0
        self.stopped.count = 0
        self.moved.count = 0
