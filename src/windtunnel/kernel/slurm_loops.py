"""`SlurmLoops`: the two loops of slurmctld that start jobs, the main loop and the backfill cycle.

Both look at the present state and start jobs; when they are called is another's business
(`windtunnel.sim.slurm.controller`), so that they can be asked about a recorded state, too. All
times are whole seconds.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.slurm_backfill import SlurmBackfill
from windtunnel.kernel.slurm_candidates import SlurmCandidates
from windtunnel.kernel.slurm_choice import SlurmChoice
from windtunnel.kernel.slurm_jobs import SLURM_OVER, SlurmJobs
from windtunnel.kernel.slurm_limits import SlurmLicenses, SlurmLimits
from windtunnel.kernel.slurm_loop import SlurmLoop
from windtunnel.kernel.slurm_main import SlurmMain
from windtunnel.kernel.slurm_nodes import SlurmNodes, SlurmStays
from windtunnel.kernel.slurm_queue import SlurmQueue
from windtunnel.kernel.slurm_running import SlurmRunning
from windtunnel.kernel.slurm_victims import SlurmVictims


@cython.final
@cython.cclass
class SlurmLoops:
    """The cluster's state, and the two loops, as Python asks them.

    Args:
        victims, limits, licenses: the parts; the first knows the nodes, the jobs and who has what.
        site: partitions, reservations, masks: those of `SlurmCandidates`, ``part_tier``,
            ``array_limit``.
        settings: those of `SlurmMain` and `SlurmBackfill`.
    """

    nodes: SlurmNodes
    jobs: SlurmJobs
    stays: SlurmStays
    choice: SlurmChoice
    limits: SlurmLimits
    queue: SlurmQueue
    running: SlurmRunning
    candidates: SlurmCandidates
    main: SlurmMain
    backfill: SlurmBackfill
    last: SlurmLoop  # the one that ran last

    def __init__(
        self,
        victims: SlurmVictims,
        limits: SlurmLimits,
        licenses: SlurmLicenses,
        site: Any,
        settings: Any,
    ) -> None:
        self.nodes, self.jobs, self.stays = victims.nodes, victims.jobs, victims.stays
        self.choice, self.limits = victims.choice, limits
        self.queue = SlurmQueue(victims, site["part_tier"])
        self.running = SlurmRunning(self.nodes, limits, licenses, site["array_limit"])
        self.candidates = SlurmCandidates(self.nodes, self.choice, site)
        self.main = SlurmMain(settings, self.queue, self.running, self.candidates)
        self.backfill = SlurmBackfill(settings, self.queue, self.running, self.candidates)
        self.last = self.main

    def set_holds(self, site: Any) -> None:
        """Say which advance reservations there are."""
        self.candidates.set_holds(site)
        self.main.expect_holds()

    def clear(self) -> None:
        """Let nobody run or wait."""
        self.nodes.empty()
        self.nodes.completing = numpy.zeros(self.nodes.count, dtype=numpy.int32)
        self.limits.clear()
        self.running.clear()
        self.queue.count = 0
        self.stays.count = 0

    def put_running(self, job: int, part: int, start: int, rows: Any) -> None:
        """Let a job run since ``start`` on these nodes: (node, cpus, memory, GPUs) rows."""
        self.stays.put(job, rows)
        self.running.run(job, part, start)

    def notice(self, job: int, end: int) -> None:
        """Say that a running job was asked to end by then: another wants its place."""
        self.jobs.noticed[job] = True
        self.running.expect(job, end)

    def noticed(self, now: int) -> list[int]:
        """Return the running jobs whose time after such a notice is over."""
        return [
            int(self.running.by_end[at])
            for at in range(self.running.count)
            if self.jobs.noticed[self.running.by_end[at]]
            and self.jobs.end[self.running.by_end[at]] <= now
        ]

    def first_notice(self) -> int:
        """Return when the first job that was asked to end must have, s; -1 = none was asked."""
        for at in range(self.running.count):
            if self.jobs.noticed[self.running.by_end[at]]:
                return int(self.jobs.end[self.running.by_end[at]])
        return -1

    def last_stopped(self) -> list[int]:
        """Return the jobs that the last call stopped for others; their nodes are completing."""
        return [int(self.last.stopped.job[at]) for at in range(self.last.stopped.count)]

    def put_pending(self, job: int) -> None:
        """Let a job wait."""
        self.queue.enqueue(job)

    def preempts(self) -> bool:
        """Return whether jobs may be stopped for others at all."""
        return bool(self.main.victims.any_rule)

    def may_begin_later(self) -> bool:
        """Return whether a later cycle may find somebody to start, nobody being stopped for it."""
        return bool(self.backfill.prospects.may_any_begin())

    def fits_alone(self, job: int) -> bool:
        """Return whether a job could run in one of its partitions with nobody else there."""
        at: cython.int
        number: cython.int = job
        for at in range(self.jobs.first_part[number], self.jobs.first_part[number + 1]):
            self.candidates.mark(number, self.jobs.parts[at])
            if self.candidates.count() < self.jobs.min_nodes[number]:
                continue
            if self.choice.fit(self.main.bare, number, self.jobs.parts[at]):
                return True
        return False

    def leave_now(self, job: int) -> None:
        """Let a job that runs have given back its nodes."""
        self.running.leave(job)

    def withdraw(self, job: int) -> None:
        """Let a job wait no longer: it was cancelled."""
        self.jobs.status[job] = SLURM_OVER
        self.queue.sweep()

    def sort_queue(self) -> None:
        """Put the queue in order again: priorities have changed."""
        self.queue.reorder()

    def set_up(self, node: int, is_up: bool) -> None:
        """Say whether a node may be given to jobs."""
        self.nodes.up[node] = is_up

    def queued(self) -> list[tuple[int, int]]:
        """Return the jobs that wait, by partition, in order."""
        return [
            (int(self.queue.job[at]), int(self.queue.part[at])) for at in range(self.queue.count)
        ]

    def run_main(self, now: int, *, is_full: bool = False) -> list[int]:
        """Run the main loop; return the jobs that it started."""
        self.main.run(now, is_full)
        return self._last_started(self.main)

    def run_backfill(self, now: int) -> list[int]:
        """Run a backfill cycle; return the jobs that it started."""
        self.backfill.run(now)
        return self._last_started(self.backfill)

    def _last_started(self, loop: SlurmLoop) -> list[int]:
        self.last = loop
        return [int(loop.started.job[at]) for at in range(loop.started.count)]
