"""Energy and time: of training that recurs, and of any run of a cluster.

After Zeus (You, Chung, Chowdhury, NSDI'23): measured training runs say how many epochs a batch size
needs and what an epoch costs at a power limit; optimisers choose both, recurrence by recurrence.
"""

from windtunnel.energy.account import Account, account, shared_end
from windtunnel.energy.cluster_power import GpuPower, PowerModel
from windtunnel.energy.contract import BatchSizeOptimizer, PowerLimitOptimizer, Trial
from windtunnel.energy.costs import Pricing
from windtunnel.energy.governed import governed
from windtunnel.energy.group_tables import GroupTable, groups_of_jobs, read_groups, synthetic_groups
from windtunnel.energy.groups import GroupResult, simulate_group
from windtunnel.energy.intensity import Series
from windtunnel.energy.limit_tables import Level, LimitTable
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
from windtunnel.energy.power_cap import Capped, best_limits, uniform_limits
from windtunnel.energy.power_policies import NodeSleep, PowerCap, StartShift
from windtunnel.energy.quirks import Sweep
from windtunnel.energy.recurring import Recurrences, simulate_recurrences
from windtunnel.energy.seeds import EnergyStudy, band, study
from windtunnel.energy.series_files import parse_series, read_series
from windtunnel.energy.shifting import Shift, shift
from windtunnel.energy.workload import TrainingJob, Workload
from windtunnel.sim.power.ces import PUBLISHED as CES_RULES
from windtunnel.sim.power.ces import CesRule, sleeping, smape

__all__ = [
    "CES_RULES",
    "Account",
    "BatchSizeOptimizer",
    "Capped",
    "CesRule",
    "Configuration",
    "EnergyStudy",
    "GpuPower",
    "GroupResult",
    "GroupTable",
    "Level",
    "LimitTable",
    "NodeSleep",
    "PowerCap",
    "PowerLimitOptimizer",
    "PowerModel",
    "Pricing",
    "Recurrences",
    "Series",
    "Shift",
    "StartShift",
    "Sweep",
    "TrainingJob",
    "Trial",
    "Workload",
    "account",
    "band",
    "best_limits",
    "configurations",
    "default_configuration",
    "energy_potential",
    "governed",
    "groups_of_jobs",
    "open_published",
    "open_workload",
    "optimum",
    "pareto_front",
    "parse_series",
    "ranked",
    "read_groups",
    "read_series",
    "shared_end",
    "shift",
    "simulate_group",
    "simulate_recurrences",
    "sleeping",
    "smape",
    "study",
    "synthetic_groups",
    "uniform_limits",
]
