"""Training jobs whose size and plan may change: models whose speed was measured in many plans."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.sim.elastic.work import plan_name
from windtunnel.throughput.morphling_models import training_models
from windtunnel.throughput.requests import requested_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

#: What each launch or change costs, s; jobs that keep their size pay it once, in their duration.
PENALTY = 60.0
#: Machines of the scenario, on which options are counted.
MACHINES: Mapping[str, int] = {"node_gpus": 8, "node_cpus": 96, "num_nodes": 4}
#: Models and the GPUs that their users ask for.
_ASKED: tuple[tuple[str, int], ...] = (
    *(("vit", 1), ("roberta", 2), ("bert", 4), ("bert", 8), ("t5", 4), ("gpt2", 8)),
    *(("gpt2", 16), ("vit", 4), ("roberta", 8), ("llama7", 8)),
)


@cache
def options_of(model: str) -> tuple[Any, ...]:
    """Return every option of a model on the scenario's machines."""
    return tuple(training_models()[model].options(**MACHINES))


def elastic_jobs(count: int, rng: np.random.Generator) -> pa.Table:
    """Return so many training jobs, submitted evenly at random, of 5 minutes to 5 hours.

    Their ``duration`` is that of the plan asked for, launching included; ``steps`` is the work.
    """
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        model, gpus = _ASKED[int(rng.integers(len(_ASKED)))]
        asked = requested_option(options_of(model), gpus)
        if asked is None:
            continue
        wanted = int(rng.integers(300, 5 * 3_600)) if rng.integers(4) else int(rng.integers(300))
        steps = max(int(wanted / asked.iteration_time), 1)
        rows.append(
            {
                "submit_time": float(rng.integers(0, 1_000_000)),
                "num_gpus": float(gpus),
                "template": model,
                "plan": plan_name(asked),
                "steps": float(steps),
                "duration": steps * asked.iteration_time + PENALTY,
                "user": f"u{int(rng.integers(12)):02d}",
                "vc": f"team{int(rng.integers(3))}",
            }
        )
    rows.sort(key=lambda row: row["submit_time"])
    return pa.Table.from_pylist(rows)
