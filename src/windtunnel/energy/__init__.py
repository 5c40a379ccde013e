"""Energy and time of training that recurs: batch sizes and power limits.

After Zeus (You, Chung, Chowdhury, NSDI'23): measured training runs say how many epochs a batch size
needs and what an epoch costs at a power limit; optimisers choose both, recurrence by recurrence.
"""

from windtunnel.energy.contract import BatchSizeOptimizer, PowerLimitOptimizer, Trial
from windtunnel.energy.group_tables import (
    GroupTable,
    groups_of_jobs,
    read_groups,
    synthetic_groups,
)
from windtunnel.energy.groups import GroupResult, simulate_group
from windtunnel.energy.open import open_published, open_workload
from windtunnel.energy.optimum import (
    Configuration,
    configurations,
    default_configuration,
    energy_potential,
    optimum,
    pareto_front,
    ranked,
)
from windtunnel.energy.recurring import Recurrences, simulate_recurrences
from windtunnel.energy.seeds import EnergyStudy, band, study
from windtunnel.energy.workload import Sweep, TrainingJob, Workload

__all__ = [
    "BatchSizeOptimizer",
    "Configuration",
    "EnergyStudy",
    "GroupResult",
    "GroupTable",
    "PowerLimitOptimizer",
    "Recurrences",
    "Sweep",
    "TrainingJob",
    "Trial",
    "Workload",
    "band",
    "configurations",
    "default_configuration",
    "energy_potential",
    "groups_of_jobs",
    "open_published",
    "open_workload",
    "optimum",
    "pareto_front",
    "ranked",
    "read_groups",
    "simulate_group",
    "simulate_recurrences",
    "study",
    "synthetic_groups",
]
