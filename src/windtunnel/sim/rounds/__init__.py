"""Time shares of GPU types made real in rounds: who runs where until the next decision.

Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI'20, section 5. The shares come from a function that is given; no policy is known here.
"""

from windtunnel.sim.rounds.contract import ALONE, Allocator, Decision, Rules, Work
from windtunnel.sim.rounds.ideal import fly_ideal
from windtunnel.sim.rounds.owed import fly_by_owed_time
from windtunnel.sim.rounds.published import fly_as_published
from windtunnel.sim.rounds.record import RoundLog

__all__ = [
    "ALONE",
    "Allocator",
    "Decision",
    "RoundLog",
    "Rules",
    "Work",
    "fly_as_published",
    "fly_by_owed_time",
    "fly_ideal",
]
