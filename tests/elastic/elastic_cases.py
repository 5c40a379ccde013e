"""Toy throughput models and elastic runs for several folders of tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.throughput.options import Option
from windtunnel.throughput.plans import Plan


@dataclass(frozen=True)
class ToyModel:
    """A throughput model that is a list of options.

    Attributes:
        rows: (plan, shape, cores a GPU, seconds an iteration).
    """

    rows: tuple[tuple[str, tuple[int, ...], int, float], ...]

    def options(self, *, node_gpus: int, node_cpus: int, num_nodes: int) -> tuple[Option, ...]:
        """Return the options that fit, as `TrainingModel.options` does."""
        found = [
            Option(Plan.parse(plan), shape, cpus * sum(shape), seconds, measured=True)
            for plan, shape, cpus, seconds in self.rows
            if shape[0] <= node_gpus and len(shape) <= num_nodes and cpus * shape[0] <= node_cpus
        ]
        return tuple(sorted(found, key=Option.order))


#: Scales well to 4 GPUs, not at all to 3, a little to 8.
STEEP = ToyModel(
    (
        ("ga", (1,), 1, 8.0),
        ("ga", (2,), 1, 4.0),
        ("zero-dp", (3,), 1, 4.0),
        ("ga", (4,), 1, 2.0),
        ("zero-dp", (4,), 1, 2.5),
        ("ga", (8,), 1, 1.75),
        ("ga", (8, 8), 1, 1.0),
    )
)
#: Hardly gains from more GPUs.
FLAT = ToyModel((("ga", (1,), 1, 2.0), ("ga", (2,), 1, 1.8), ("ga", (4,), 1, 1.6)))
#: Lives on cores.
OFFLOAD = ToyModel(
    (
        ("zero-offload", (1,), 1, 16.0),
        ("zero-offload", (1,), 4, 8.0),
        ("zero-offload", (1,), 8, 4.0),
        ("zero-offload", (2,), 8, 2.0),
    )
)
MODELS: dict[str, Any] = {"steep": STEEP, "flat": FLAT, "offload": OFFLOAD}
NODES = ClusterSpec.uniform(nodes=2, gpus_per_node=8, cpus_per_node=16)


def jobs_of(*rows: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Return a jobs table: (submit time, model, GPUs, plan, steps[, guaranteed[, vc]]) a job."""
    full = [(*row, *(0, None)[len(row) - 5 :]) for row in rows]
    submit, model, gpus, plan, steps, promised, vc = (list(c) for c in zip(*full, strict=True))
    return {
        "job_id": [f"j{i}" for i in range(len(full))],
        "submit_time": submit,
        "duration": [1.0] * len(full),
        "num_gpus": gpus,
        "template": model,
        "plan": plan,
        "steps": steps,
        "is_sla": promised,
        "vc": vc,
    }
