"""What goes wrong, or is planned, during a run: failures, repair, checkpoints, holds."""

from windtunnel.sim.disruptions.shorthand import parse_disruptions
from windtunnel.sim.disruptions.spec import (
    CapacityChange,
    Checkpointing,
    Disruptions,
    FailureModel,
    JobFailures,
    Maintenance,
    NodeFailure,
    RecordedFailures,
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
