"""What the models say of a plan on a shape, whether or not it was measured there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.throughput.analytic import data_parallel
from windtunnel.throughput.three_d import cards, features, predict

if TYPE_CHECKING:
    from windtunnel.throughput.facts import TrainingFacts
    from windtunnel.throughput.options import Shape
    from windtunnel.throughput.plans import Plan

#: Measured rows that a model of 3D plans needs before its predictions are used: twice its costs.
ENOUGH_ROWS = 14


def predicted_time(
    model: TrainingFacts, plan: Plan, shape: Shape, threads: int | None = None
) -> float | str:
    """Return the fitted model's seconds per iteration, or why it says nothing.

    Args:
        model: the training model.
        plan: the plan, which the shape must suit.
        shape: GPUs on each node, descending.
        threads: CPU threads with each GPU; None = those of the model's measurements.
    """
    if plan.family == "3d":
        return _three_d(model, plan, shape)
    if model.fitted is None or model.bandwidths is None:
        return "no model is fitted to data-parallel plans"
    if model.forward_time is None or model.parameters is None:
        return "the model's size is unknown"
    if len(shape) > 1 and model.network is None:
        return "the bandwidth between nodes is unknown"
    if plan.family != "zero-offload":
        threads = 1
    elif (threads := threads or model.offload_threads) is None:
        return "it needs CPUs, and their number is unknown"
    gpus = sum(shape)
    network = None
    if len(shape) > 1 and model.network is not None:
        network = model.network * cards(shape, model.gpus_per_card)
    phases = data_parallel(
        model.fitted,
        model.bandwidths,
        plan,
        forward=1000 * model.forward_time / model.forward_divisors.get(gpus, gpus),
        theta=model.parameters / 2**20,
        gpus=gpus,
        threads=threads,
        network=network,
    )
    return phases.total / 1000


def within_reach(model: TrainingFacts, plan: Plan, shape: Shape) -> str | None:
    """Return why a prediction would extrapolate; None = measurements stand on both sides of it.

    A data-parallel plan must have been measured with no more and with no fewer GPUs, and, for
    several nodes, on several nodes; a 3D plan's degrees may not exceed the measured ones, of
    which there must be `ENOUGH_ROWS`.

    Args:
        model: the training model.
        plan: the plan.
        shape: GPUs on each node, descending.
    """
    gpus = sum(shape)
    if plan.family == "3d":
        rows = three_d_rows(model)
        if len(rows) < ENOUGH_ROWS:
            return f"{len(rows)} measured 3D placements are too few to predict others from"
        most = [max(each) for each in zip(*(p.degrees(sum(s)) for p, s, _ in rows), strict=True)]
        if any(own > top for own, top in zip(plan.degrees(gpus), most, strict=True)):
            return f"its degrees exceed those measured, {most}"
        return None
    sizes = model.sizes_of(plan)
    if not sizes:
        return "it was not measured anywhere"
    if not min(sizes) <= gpus <= max(sizes):
        return f"it was measured on {min(sizes)} to {max(sizes)} GPUs only"
    spread = any(p == plan and len(s) > 1 for p, s in model.table.keys)
    return None if len(shape) == 1 or spread else "it was not measured on several nodes"


def three_d_rows(model: TrainingFacts) -> list[tuple[Plan, Shape, float]]:
    """Return a model's measured 3D plans with degrees of their own: plan, shape, seconds."""
    return [
        (row.plan, row.shape, row.iteration_time)
        for row in model.table.rows
        if row.plan.family == "3d" and row.plan.num_gpus and row.iteration_time is not None
    ]


def _three_d(model: TrainingFacts, plan: Plan, shape: Shape) -> float | str:
    if model.three_d is None:
        return "no model is fitted to 3D plans"
    if model.sizes is None:
        return "the model's size is unknown"
    paid = features(plan, shape, model.sizes)
    return predict(model.three_d, paid)
