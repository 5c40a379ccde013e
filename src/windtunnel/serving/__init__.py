"""Model serving: arrivals, profiles, simulators of model-parallel groups, placement search.

The questions of AlpaServe (Li et al., OSDI'23): which models share which GPUs, and does cutting
them over several GPUs let bursts be shared?
"""

from __future__ import annotations

from windtunnel.serving.arrivals import Deterministic, Gamma, MarkovModulated, model_rates, poisson
from windtunnel.serving.cases import Case, evaluate, read_cases
from windtunnel.serving.fleet_files import FleetSpec, read_fleet
from windtunnel.serving.llm_capacity import LlmCapacity, LlmSetup, llm_capacity, llm_choices
from windtunnel.serving.llm_engine import Engine, Power, Split
from windtunnel.serving.llm_files import read_llm_model
from windtunnel.serving.llm_fit import LlmFit, fit_llm, fit_llms
from windtunnel.serving.llm_limits import Limits
from windtunnel.serving.llm_model import LlmModel, synthetic_llm
from windtunnel.serving.llm_outcome import LlmOutcome
from windtunnel.serving.llm_replay import fit_log, replay_log
from windtunnel.serving.llm_simulate import goodput_by_rate, simulate_llm
from windtunnel.serving.llm_sweep import llm_sweep
from windtunnel.serving.outcome import ServingOutcome
from windtunnel.serving.overheads import Overheads
from windtunnel.serving.parallel import Parallel
from windtunnel.serving.partition import Partition, partition_layers
from windtunnel.serving.placement import MEM_BUDGET, Group, Placement, as_placement
from windtunnel.serving.profile import Profile, Stages, read_profile
from windtunnel.serving.refit import from_minutes, refit, replay
from windtunnel.serving.request_traces import MinuteCounts, RequestTrace, read_requests
from windtunnel.serving.schedule import Schedule, Switch, simulate_schedule
from windtunnel.serving.search.capacity import Capacity, fewest_gpus
from windtunnel.serving.search.fleet import Fleet, LlmReplicas, LlmService, search_fleet
from windtunnel.serving.search.policies import SearchResult, search
from windtunnel.serving.search.replacing import search_schedule
from windtunnel.serving.simulate import Delays, simulate, simulate_batches, simulate_events
from windtunnel.serving.sweep import Sweep, sweep
from windtunnel.serving.synthetic_profile import synthetic_profile
from windtunnel.serving.workload import Workload, generate, merge, slos
from windtunnel.serving.workload_spec import WorkloadSpec, read_workload

__all__ = [
    "MEM_BUDGET",
    "Capacity",
    "Case",
    "Delays",
    "Deterministic",
    "Engine",
    "Fleet",
    "FleetSpec",
    "Gamma",
    "Group",
    "Limits",
    "LlmCapacity",
    "LlmFit",
    "LlmModel",
    "LlmOutcome",
    "LlmReplicas",
    "LlmService",
    "LlmSetup",
    "MarkovModulated",
    "MinuteCounts",
    "Overheads",
    "Parallel",
    "Partition",
    "Placement",
    "Power",
    "Profile",
    "RequestTrace",
    "Schedule",
    "SearchResult",
    "ServingOutcome",
    "Split",
    "Stages",
    "Sweep",
    "Switch",
    "Workload",
    "WorkloadSpec",
    "as_placement",
    "evaluate",
    "fewest_gpus",
    "fit_llm",
    "fit_llms",
    "fit_log",
    "from_minutes",
    "generate",
    "goodput_by_rate",
    "llm_capacity",
    "llm_choices",
    "llm_sweep",
    "merge",
    "model_rates",
    "partition_layers",
    "poisson",
    "read_cases",
    "read_fleet",
    "read_llm_model",
    "read_profile",
    "read_requests",
    "read_workload",
    "refit",
    "replay",
    "replay_log",
    "search",
    "search_fleet",
    "search_schedule",
    "simulate",
    "simulate_batches",
    "simulate_events",
    "simulate_llm",
    "simulate_schedule",
    "slos",
    "sweep",
    "synthetic_llm",
    "synthetic_profile",
]


def __dir__() -> list[str]:
    return __all__
