"""How fast jobs run: measured tables of training speeds, and models of them."""

from windtunnel.throughput.measured import ThroughputTable, gavel_speeds, read_throughputs
from windtunnel.throughput.model_file import read_model
from windtunnel.throughput.morphling_models import training_model, training_models
from windtunnel.throughput.options import Option, parse_placement, placement_name
from windtunnel.throughput.plans import Plan
from windtunnel.throughput.published import artifact_iteration_time
from windtunnel.throughput.training import TrainingModel

__all__ = [
    "Option",
    "Plan",
    "ThroughputTable",
    "TrainingModel",
    "artifact_iteration_time",
    "gavel_speeds",
    "parse_placement",
    "placement_name",
    "read_model",
    "read_throughputs",
    "training_model",
    "training_models",
]
