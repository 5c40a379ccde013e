"""Choosing a plan under shrinking limits: figure 7 of MLSys'25.

LLaMA-2-7B with 16 samples on 32, 16, 4 and 1 GPUs. The published form of the model picks the plan;
what counts is how fast that plan was measured. Its rivals may only choose among some plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.throughput.analytic import data_parallel, published_3d
from windtunnel.throughput.options import parse_placement, placement_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.throughput.options import Shape
    from windtunnel.throughput.plans import Plan
    from windtunnel.throughput.training import TrainingModel

#: Limits of the figure: placement and CPU threads with each GPU.
LIMITS: tuple[tuple[str, int], ...] = (("8888", 2), ("4444", 2), ("4", 2), ("1", 2), ("1", 4))
#: What a forward pass costs more for each further GPU of a tensor group, as published.
_SLOWER_BY_TENSOR = 1.15


@dataclass(frozen=True, slots=True)
class PickedPlan:
    """A plan that an approach would run at a limit.

    Attributes:
        approach: who picks.
        placement: GPUs on each node.
        threads: CPU threads with each GPU.
        plan: the plan; None = the approach has none that runs.
        predicted: samples per second that the published model expects; None = it was not asked.
        iteration_time: measured seconds.
    """

    approach: str
    placement: str
    threads: int
    plan: Plan | None
    predicted: float | None
    iteration_time: float | None


#: Rival -> what it may run; each takes the fastest measured plan of those.
RIVALS: Mapping[str, str] = {
    "TP+DP": "tensor groups that fill a node, and replicas",
    "TP+PP": "tensor groups that fill a node, and stages",
    "Megatron 3D": "two stages, tensor groups of two, and replicas",
    "ZeRO-offload+GC": "the optimizer on CPUs, activations recomputed",
}


def _may(rival: str, plan: Plan, shape: Shape) -> bool:
    if plan.family != "3d":
        return rival == "ZeRO-offload+GC" and plan.checkpointing
    if rival == "Megatron 3D":
        return (plan.pipeline, plan.tensor) == (2, 2)
    stages, replicas = plan.pipeline, plan.data
    return plan.tensor == shape[0] and (rival, 1) in {("TP+DP", stages), ("TP+PP", replicas)}


def figure7(model: TrainingModel) -> tuple[PickedPlan, ...]:
    """Return what Morphling and its rivals would run at each limit.

    Args:
        model: one with the published scheduler's record, and measured there.

    Raises:
        SpecError: the published scheduler does not know the model.
    """
    rows = []
    for placement, threads in LIMITS:
        shape = parse_placement(placement)
        rows.append(_picked(model, shape, threads))
        for rival in RIVALS:
            known = [
                (seconds, plan)
                for plan in model.table.plans
                if _may(rival, plan, shape) and (seconds := _measured(model, plan, shape, threads))
            ]
            time, plan = min(known, key=lambda pair: pair[0], default=(None, None))
            rows.append(PickedPlan(rival, placement, threads, plan, None, time))
    return tuple(rows)


def _picked(model: TrainingModel, shape: Shape, threads: int) -> PickedPlan:
    """Return the measured plan that the published model rates highest."""
    rated = [
        (published_speed_of(model, plan, shape, threads), plan)
        for plan in model.table.plans
        if _measured(model, plan, shape, threads)
        and (plan.family != "3d" or shape in model.placements.get(plan, ()))
    ]
    speed, plan = max(rated, key=lambda pair: pair[0], default=(None, None))
    seconds = None if plan is None else _measured(model, plan, shape, threads)
    return PickedPlan("Morphling", placement_name(shape), threads, plan, speed, seconds)


def published_speed_of(model: TrainingModel, plan: Plan, shape: Shape, threads: int) -> float:
    """Return the samples per second that the published scheduler expects of a plan.

    Args:
        model: one with the published scheduler's record.
        plan: the plan.
        shape: equal GPUs on each node.
        threads: CPU threads with each GPU.

    Raises:
        SpecError: the published scheduler does not know the model.
    """
    stored = model.stored
    if stored is None or model.forward_time is None:
        raise SpecError("model", f"the published scheduler does not know {model.name}.")
    gpus, forward = sum(shape), 1000 * model.forward_time
    theta = stored.parameters / 2**20
    if plan.family != "3d":
        phases = data_parallel(
            stored.fitted,
            stored.bandwidths,
            plan,
            forward=forward / model.forward_divisors.get(gpus, gpus),
            theta=theta,
            gpus=gpus,
            threads=threads,
        )
    else:
        pipeline, tensor, data = plan.degrees(gpus)
        phases = published_3d(
            stored.fitted,
            stored.bandwidths,
            (pipeline, tensor, data),
            forward=forward * data / (pipeline * _SLOWER_BY_TENSOR**tensor),
            theta=theta,
            nodes=len(shape),
            gpus_per_node=shape[0],
            batch=model.global_batch_size,
            layers=stored.layers,
            activation=stored.hidden * stored.sequence,
        )
    return 1000 * model.global_batch_size / phases.total


def _measured(model: TrainingModel, plan: Plan, shape: Shape, threads: int) -> float | None:
    """Return the measured seconds with so many CPU threads; 3D plans run on any number of them."""
    for row in model.table.at(plan, shape):
        if row.iteration_time is not None and (
            plan.family == "3d" or row.threads in {None, threads}
        ):
            return row.iteration_time
    return None
