"""The option that a job's user asked for: a plan on so many GPUs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.throughput.options import Option


def requested_option(
    options: Iterable[Option],
    num_gpus: float,
    plan: str | None = None,
    num_cpus: float = math.nan,
) -> Option | None:
    """Return the option that a request stands for; None = the model cannot run so.

    A request names no nodes: it stands for the fewest. Where a plan's time depends on CPU cores, it
    stands for the measured time, else for the fastest with no more cores than were asked for.

    Args:
        options: every option of the job's model on the cluster.
        num_gpus: GPUs asked for.
        plan: the plan's word; None = the plan that is fastest.
        num_cpus: CPU cores asked for; NaN = unknown, which binds nothing.

    >>> from windtunnel.throughput.morphling_models import training_models
    >>> options = training_models()["llama30"].options(node_gpus=8, node_cpus=96, num_nodes=8)
    >>> requested_option(options, 48, "344").shape
    (8, 8, 8, 8, 8, 8)
    """
    same = [o for o in options if o.num_gpus == num_gpus and plan in {None, o.plan.name}]
    if not same:
        return None
    within = [o for o in same if not o.num_cpus > num_cpus] or [min(same, key=_cpus)]
    return min(
        within,
        key=lambda o: (len(o.shape), not o.measured, o.iteration_time, o.num_cpus),
    )


def _cpus(option: Option) -> int:
    return option.num_cpus
