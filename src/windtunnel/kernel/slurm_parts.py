"""`SlurmParts`: what slurmctld's loops work on."""

from __future__ import annotations

import cython

from windtunnel.kernel.slurm_choice import SlurmChoice
from windtunnel.kernel.slurm_jobs import SlurmJobs
from windtunnel.kernel.slurm_limits import SlurmLimits
from windtunnel.kernel.slurm_nodes import SlurmNodes, SlurmStays
from windtunnel.kernel.slurm_queue import SlurmQueue
from windtunnel.kernel.slurm_running import SlurmRunning
from windtunnel.kernel.slurm_victims import SlurmVictims


@cython.cclass
class SlurmParts:
    """The cluster's state and its rules.

    Attributes:
        nodes, stays: what is free of each node, and who has what of it.
        jobs: what they ask for, and how they fare.
        choice, limits, victims: which nodes a job gets, how much of them, and in whose place.
        queue, running: who waits and who runs.
    """

    nodes: SlurmNodes
    jobs: SlurmJobs
    stays: SlurmStays
    choice: SlurmChoice
    limits: SlurmLimits
    victims: SlurmVictims
    queue: SlurmQueue
    running: SlurmRunning

    def _share(self, parts: SlurmParts) -> None:
        """Work on the same."""
        self.nodes, self.jobs, self.stays = parts.nodes, parts.jobs, parts.stays
        self.choice, self.limits, self.victims = parts.choice, parts.limits, parts.victims
        self.queue, self.running = parts.queue, parts.running
