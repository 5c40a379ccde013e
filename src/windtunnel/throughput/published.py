"""What Morphling's published simulator and scheduler look up, right or not: for ``compat`` only."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.throughput.analytic import data_parallel
from windtunnel.throughput.plans import Plan

if TYPE_CHECKING:
    from windtunnel.throughput.training import TrainingModel

_GA = Plan.parse("ga")
_ZERO_DP, _ZERO_OFFLOAD = Plan.parse("zero-dp"), Plan.parse("zero-offload")
#: Plans in the order that the scheduler tries them; of equals the first wins.
_TRIED = tuple(
    Plan(plan.family, checkpointing=again)
    for plan in (_ZERO_OFFLOAD, _ZERO_DP, _GA)
    for again in (False, True)
)


@lru_cache(maxsize=4096)
def artifact_iteration_time(model: TrainingModel, placement: str, plan: Plan) -> float:
    """Return the seconds per iteration that the published simulator runs a job at.

    The digits' lexicographically smallest rotation is looked up with the plan, of which only
    ``zero-dp`` and ``zero-offload`` are understood; every other plan is looked up as ``ga``. Where
    the table has neither, it is the mean over all plans and placements of as many nodes and GPUs,
    between those interpolated linearly, outside of their hull NaN.

    Args:
        model: one of the models that come with us.
        placement: digits, one a node, in the order of the nodes.
        plan: the plan that the job believes it runs.

    Raises:
        SpecError: scipy, which the interpolation needs, is missing.
    """
    word = min(placement[i:] + placement[:i] for i in range(len(placement)))
    looked_up = plan if plan in {_ZERO_DP, _ZERO_OFFLOAD} else _GA
    times = {(row.plan, row.placement): row.iteration_time for row in model.table.rows}
    for wanted in (looked_up, _GA):
        found = times.get((wanted, word))
        if found is not None:
            return found
    sizes: dict[tuple[int, int], list[float]] = {}
    for row in model.table.rows:
        size = len(row.placement), sum(map(int, row.placement))
        sizes.setdefault(size, []).append(row.iteration_time or 0.0)
    means = {size: sum(many) / len(many) for size, many in sizes.items()}
    size = len(word), sum(map(int, word))
    return means[size] if size in means else _interpolated(means, size)


def _interpolated(means: dict[tuple[int, int], float], size: tuple[int, int]) -> float:
    """Return the published interpolation over (nodes, GPUs): linear on a triangulation."""
    if len({nodes for nodes, _ in means}) < 2 or len({gpus for _, gpus in means}) < 2:  # noqa: PLR2004 - a triangle needs two of each
        return math.nan
    try:
        from scipy.interpolate import LinearNDInterpolator
    except ImportError as error:
        raise SpecError(
            "compat",
            "this placement was never measured, and interpolating as published needs scipy; "
            'install it with: pip install "windtunnel[ml]".',
        ) from error
    return float(LinearNDInterpolator(list(means), list(means.values()))(*size))


@lru_cache(maxsize=4096)
def published_best(
    model: TrainingModel, gpus: int, *, threads: int = 1
) -> tuple[float, Plan, int] | None:
    """Return samples per second, plan and GPUs of the published curve at one size.

    The best data-parallel plan by the analytic model with the stored parameters, inside one node;
    where the largest feasible size below is within 1 % of it, or ``gpus`` itself is not feasible,
    that smaller size's (MLSys'25 artifact, ``best[g][threads][0]``). None where there is none.

    Args:
        model: one of the models that come with us.
        gpus: 1 to 8.
        threads: CPU threads with each GPU.
    """
    smaller = None if gpus == 1 else published_best(model, gpus - 1, threads=threads)
    own = _best_plan(model, gpus, threads)
    if own is None or (smaller is not None and smaller[0] * 1.01 >= own[0]):
        return smaller
    return (*own, gpus)


def published_prediction(
    model: TrainingModel, plan: Plan, gpus: int, *, threads: int = 1
) -> float | None:
    """Return the seconds per iteration that the published scheduler expects inside one node.

    By the analytic model with the stored parameters. None where the plan is infeasible by the
    published limits, or the GPUs do not divide the batch.

    Args:
        model: one of the models that come with us.
        plan: a data-parallel plan.
        gpus: 1 to 8.
        threads: CPU threads with each GPU.
    """
    stored = model.stored
    if stored is None or model.forward_time is None or plan.family == "3d":
        return None
    samples, rest = divmod(model.global_batch_size, gpus)
    if rest or samples > model.limits[plan.family][plan.checkpointing]:
        return None
    phases = data_parallel(
        stored.fitted,
        stored.bandwidths,
        plan,
        forward=1000 * model.forward_time / model.forward_divisors.get(gpus, gpus),
        theta=stored.parameters / 2**20,
        gpus=gpus,
        threads=threads,
    )
    return phases.total / 1000


def _best_plan(model: TrainingModel, gpus: int, threads: int) -> tuple[float, Plan] | None:
    times = ((published_prediction(model, plan, gpus, threads=threads), plan) for plan in _TRIED)
    speeds = [(model.global_batch_size / time, plan) for time, plan in times if time is not None]
    return max(speeds, key=lambda known: known[0], default=None)
