"""Schedulers of reconfigurable jobs: Morphling, what it is measured against, and its ablations.

Yuan et al., "Morphling: Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling",
MLSys'25 (preprint arXiv 2408.08586, where it is called Rubick).
"""

from windtunnel.policies.morphling.fixed_plan import FixedPlan, LeastAreaFirst, ShortestFirst
from windtunnel.policies.morphling.rivals import AntMan, EqualShare, Synergy
from windtunnel.policies.morphling.scheduler import (
    Morphling,
    Neither,
    PlansOnly,
    Priced,
    ResourcesOnly,
)

__all__ = [
    "AntMan",
    "EqualShare",
    "FixedPlan",
    "LeastAreaFirst",
    "Morphling",
    "Neither",
    "PlansOnly",
    "Priced",
    "ResourcesOnly",
    "ShortestFirst",
    "Synergy",
]
