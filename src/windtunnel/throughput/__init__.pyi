"""The public names of `windtunnel.throughput`, and where they come from."""

from windtunnel.throughput.measured import (
    ThroughputTable as ThroughputTable,
    gavel_speeds as gavel_speeds,
    read_throughputs as read_throughputs,
)
from windtunnel.throughput.model_file import read_model as read_model
from windtunnel.throughput.morphling_models import (
    training_model as training_model,
    training_models as training_models,
)
from windtunnel.throughput.options import (
    Option as Option,
    parse_placement as parse_placement,
    placement_name as placement_name,
)
from windtunnel.throughput.plans import Plan as Plan
from windtunnel.throughput.published import artifact_iteration_time as artifact_iteration_time
from windtunnel.throughput.training import TrainingModel as TrainingModel
