"""`SlurmLoop`: a loop of slurmctld's: whom its last run started, and whom it stopped for them."""

from __future__ import annotations

import cython

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.slurm_candidates import SlurmCandidates
from windtunnel.kernel.slurm_choice import SlurmChoice
from windtunnel.kernel.slurm_jobs import SlurmJobs
from windtunnel.kernel.slurm_limits import SlurmLimits
from windtunnel.kernel.slurm_nodes import SlurmNodes, SlurmStays
from windtunnel.kernel.slurm_queue import SlurmQueue
from windtunnel.kernel.slurm_running import SlurmRunning
from windtunnel.kernel.slurm_victims import SlurmVictims


@cython.cclass
class SlurmLoop:
    """What a loop works on, and what its last run did.

    Args:
        queue, running: who waits and who runs.
        candidates: which nodes a job may use.

    Attributes:
        started: jobs that the run started, in order.
        stopped: jobs that it stopped so that others may start; their nodes are completing until
            they leave.
    """

    nodes: SlurmNodes
    jobs: SlurmJobs
    stays: SlurmStays
    choice: SlurmChoice
    limits: SlurmLimits
    victims: SlurmVictims
    queue: SlurmQueue
    running: SlurmRunning
    candidates: SlurmCandidates
    started: JobList
    stopped: JobList

    def __init__(
        self, queue: SlurmQueue, running: SlurmRunning, candidates: SlurmCandidates
    ) -> None:
        self.queue, self.running, self.candidates = queue, running, candidates
        self.nodes, self.jobs, self.stays = running.nodes, running.jobs, running.stays
        self.limits, self.victims, self.choice = running.limits, queue.victims, candidates.choice
        self.started, self.stopped = JobList(), JobList()

    @compiled
    def begin(self) -> cython.void:
        """Begin a run."""
        self.started.count = self.stopped.count = 0

    @compiled
    def preempt_for(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.void:
        """Stop those in whose place a job may start on the candidates; it starts in a later run.

        Where it has stopped some a moment ago (which may take until now), they are left alone.
        """
        since: cython.longlong = self.jobs.preempts_since[job]
        if not self.victims.any_rule:
            return
        if self.victims.find(job, part, now, self.running.by_end, self.running.count) == 0:
            return
        if not self.victims.pick(job, part) or self.victims.chosen.count == 0:
            return
        self.choice.write(self.nodes, self.stays, job)
        if self.limits.admits_stay(job):
            return
        self.jobs.is_preempting[job] = True
        if since >= 0 and since > now - self.victims.patience:
            return
        if since < 0:
            self.jobs.preempts_since[job] = now
        for at in range(self.victims.chosen.count):
            other = self.victims.chosen.job[at]
            if self.jobs.noticed[other] and now < self.jobs.end[other]:
                continue
            if not self.jobs.noticed[other] and self.victims.grace_of(other) > 0:
                self.jobs.noticed[other] = True
                self.running.expect(
                    other, min(self.jobs.end[other], now + self.victims.grace_of(other))
                )
                continue
            self.running.complete(other, now)
            self.stopped.add(other)

    @compiled
    def start(self, job: cython.int, part: cython.int, now: cython.longlong) -> cython.void:
        """Let a job run from now on, on the nodes of its stay."""
        self.running.run(job, part, now)
        self.started.add(job)

    @compiled
    def end(self) -> cython.void:
        """Drop those who have started from the queue; who preempts may be looked at again."""
        for at in range(self.queue.count):
            self.jobs.is_preempting[self.queue.job[at]] = False
        self.queue.sweep()
