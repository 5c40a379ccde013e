"""Random elastic runs in which every feature may meet every other, from a seed alone."""

from __future__ import annotations

import random
from typing import Any

from composition_cases import Composed, composed

import windtunnel as wt
from windtunnel.throughput.options import Option
from windtunnel.throughput.plans import Plan

POLICIES = (
    *(
        "fixed-plan",
        "synergy",
        "antman",
        "morphling",
        "morphling:priced:margin=0:patience=5:yielding=0",
    ),
    *("shortest-first", "least-area-first"),
    *("equal-share:interval=20", "morphling:priced:ageing=40", "morphling:neither"),
    *(f"pollux:{name}:interval=10" for name in ("tiresias", "optimus", "pollux", "sia")),
)
#: (model, GPUs, plan) that users ask for; of the last no throughput model is known.
REQUESTS = (
    *(("steep", 1, "ga"), ("steep", 4, "zero-dp"), ("steep", 4, "ga"), ("steep", 8, "ga")),
    *(("offload", 1, "zero-offload"), ("offload", 2, "zero-offload"), ("unheard", 3, None)),
)
#: Where options go: best fit half the time.
PLACEMENTS = (
    *("best_fit", "best_fit", "best_fit", "best_fit", "best_fit", "spread", "first_fit", "random"),
    *("fgd", "gpu_clustering", "least_idle:ties=random", "spread:topology=rack", "dot_prod"),
)
#: Options that elastic runs have no use for.
_WITHOUT = ("queueing", "preemption", "restore_time")


class Toy:
    """A throughput model that is a list of (plan, shape, cores a GPU, seconds an iteration)."""

    def __init__(self, *rows: tuple[str, tuple[int, ...], int, float]) -> None:
        self.rows = rows

    def options(self, *, node_gpus: int, node_cpus: int, num_nodes: int) -> tuple[Option, ...]:
        """Return the options that fit, as `TrainingModel.options` does."""
        found = [
            Option(Plan.parse(plan), shape, cpus * sum(shape), seconds, measured=True)
            for plan, shape, cpus, seconds in self.rows
            if shape[0] <= node_gpus and len(shape) <= num_nodes and cpus * shape[0] <= node_cpus
        ]
        return tuple(sorted(found, key=Option.order))


MODELS: dict[str, Any] = {
    "steep": Toy(
        *(("ga", (1,), 1, 8.0), ("ga", (2,), 1, 4.0), ("zero-dp", (3,), 1, 4.0)),
        *(("ga", (4,), 1, 2.0), ("zero-dp", (4,), 1, 2.5), ("ga", (4, 4), 1, 1.0)),
    ),
    "offload": Toy(
        *(("zero-offload", (1,), 1, 16.0), ("zero-offload", (1,), 4, 8.0)),
        *(("zero-offload", (1,), 8, 4.0), ("zero-offload", (2,), 8, 2.0)),
    ),
}
CLUSTER = wt.ClusterSpec(
    (
        wt.NodeType(2, 4, "A", 16.0, nodes_per_rack=2),
        wt.NodeType(3, 4, "B", 16.0, nodes_per_rack=2),
    )
)


def elastic_composed(seed: int) -> Composed:
    """Return the run of a seed: as in `composed` on nodes, but jobs with options, under a rival."""
    # A seed of `composed` whose run is on nodes; the features drawn there are of five nodes.
    number = seed
    while (case := composed(number)).options.get("placement") not in ("best_fit", "spread"):
        number += 1_000_000
    pick = random.Random(f"elastic {seed}")  # noqa: S311 - a test's own chance
    for name in _WITHOUT:
        case.options.pop(name, None)
    jobs, count = case.jobs, len(case.jobs["submit_time"])
    asked = [pick.choice(REQUESTS) for _ in range(count)]
    jobs["template"] = [model for model, _, _ in asked]
    jobs["num_gpus"] = [float(gpus) for _, gpus, _ in asked]
    jobs["plan"] = [plan for _, _, plan in asked]
    jobs["num_cpus"] = [None] * count
    jobs["steps"] = [pick.choice((0, 1, 5, 20)) for _ in range(count)]
    jobs["is_sla"] = [pick.randrange(2) for _ in range(count)]
    case.options |= {
        "models": MODELS,
        "penalty": pick.choice((0.0, 1.0, {"steep": 3.0, "offload": 0.5, "": 2.0})),
    }
    case.options["placement"] = pick.choice(PLACEMENTS)
    case.options["estimates"] = pick.choice((None, "perfect", "noise:sigma=1", "rolling"))
    case.seed, case.cluster, case.policy = seed, CLUSTER, pick.choice(POLICIES)
    if "slowdown" in case.options:
        case.options["slowdown"]["cpu"] = pick.choice((0.0, 0.25))
    if "checkpoint" in case.options.get("disruptions", {}):
        case.options["disruptions"]["checkpoint"]["startup_cost"] = pick.choice((0.0, 2.0))
    return case
