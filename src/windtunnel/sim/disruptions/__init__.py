"""What goes wrong, or is planned, during a run: failures, repair, checkpoints, holds."""

from windtunnel.sim.disruptions.failures import (
    Checkpointing,
    FailureModel,
    JobFailures,
    NodeFailure,
    RecordedFailures,
)
from windtunnel.sim.disruptions.shorthand import parse_disruptions
from windtunnel.sim.disruptions.spec import (
    CapacityChange,
    Disruptions,
    Maintenance,
    Reservation,
)

__all__ = [
    "CapacityChange",
    "Checkpointing",
    "Disruptions",
    "FailureModel",
    "JobFailures",
    "Maintenance",
    "NodeFailure",
    "RecordedFailures",
    "Reservation",
    "parse_disruptions",
]
