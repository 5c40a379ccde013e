"""Random runs of Gavel's policies in which every feature may meet every other, from a seed."""

from __future__ import annotations

import itertools
import random

from composition_cases import Composed, composed

from windtunnel.throughput.measured import ThroughputTable

#: Steps per second of each model on each GPU type, as many times that as the gang has GPUs.
SPEEDS = {"A": {"m0": 4.0, "m1": 1.0, "m2": 0.0}, "B": {"m0": 1.0, "m1": 0.5, "m2": 2.0}}
SIZES = (1, 2, 3, 4, 8)
POLICIES = (
    *("max_min_fairness_perf", "max_min_fairness", "max_min_fairness_packed", "fifo", "fifo_perf"),
    *("isolated", "gandiva", "min_total_duration_perf", "finish_time_fairness_perf", "allox"),
)
#: Options that say how jobs queue: Gavel's policies decide that themselves.
_QUEUEING = ("queueing", "preemption")


def speeds(pick: random.Random) -> ThroughputTable:
    """Return speeds of three models alone, in pairs, and of gangs spread over nodes."""
    kinds = list(itertools.product(("m0", "m1", "m2"), SIZES))
    alone = {
        name: {(model, size): models[model] * size for model, size in kinds}
        for name, models in SPEEDS.items()
    }
    slow = pick.choice((0.5, 0.75))
    spread = {
        f"{name}_unconsolidated": {kind: speed * slow for kind, speed in found.items()}
        for name, found in alone.items()
    }
    ratios = {pair: pick.choice((0.0, 0.5, 0.75)) for pair in itertools.combinations(kinds, 2)}
    together = {
        name: {
            (one, other): (found[one] * ratio, found[other] * ratio)
            for (a, b), ratio in ratios.items()
            if a[1] == b[1] and min(found[a], found[b]) > 0
            for one, other in ((a, b), (b, a))
        }
        for name, found in alone.items()
    }
    return ThroughputTable(tuple(sorted({*alone, *spread})), alone | spread, together)


def gavel_composed(seed: int) -> Composed:
    """Return the run of a seed: as in `composed`, but whole GPUs and one of Gavel's policies."""
    case = composed(seed)
    pick = random.Random(f"gavel {seed}")  # noqa: S311 - a test's own chance
    for name in _QUEUEING:
        case.options.pop(name, None)
    jobs = case.jobs
    jobs["num_gpus"] = [float(max(1, round(gpus))) for gpus in jobs["num_gpus"]]
    jobs["priority"] = [1 + priority for priority in jobs["priority"]]
    case.options["incomplete"] = "reject"  # of jobs that run on no type that they accept
    if case.cluster == "pool:12":
        case.cluster = "pool:12:A"
    policy = pick.choice(POLICIES)
    if policy == "allox":  # it takes jobs of one GPU
        jobs["num_gpus"] = [1.0] * len(jobs["num_gpus"])
    if pick.random() < 0.6:
        jobs["template"] = [pick.choice(("m0", "m0", "m1", "m2")) for _ in jobs["num_gpus"]]
        jobs["total_steps"] = [float(pick.choice((1, 8, 40, 100, 300))) for _ in jobs["num_gpus"]]
        case.options["throughputs"] = speeds(pick)
    case.options["restore_time"] = pick.choice((0.0, 1.0, {1: 1.0, 4: 3.0}))
    case.policy = f"gavel:{policy}:round={pick.choice((8, 20))}"
    case.policy += pick.choice(("", "", ":fill=true", ":fill=all"))
    return case
