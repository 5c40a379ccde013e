"""A training model made from a user's measured points."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.throughput.fitting import Fit, fit
from windtunnel.throughput.plans import OFFLOAD_CPUS
from windtunnel.throughput.prediction import predicted_time, three_d_rows
from windtunnel.throughput.tables import MeasuredTable
from windtunnel.throughput.three_d import COSTS, features, fit_costs
from windtunnel.throughput.training import TrainingModel

if TYPE_CHECKING:
    from windtunnel.throughput.tables import Measurement, ProfiledPoint

#: A forward time that differs by this factor from what the others let expect is remarked upon.
_SUSPECT = 4.0


@dataclass(frozen=True)
class MeasuredPoints:
    """What a file of measured points holds.

    Attributes:
        rows: every point.
        profile: those that the analytic model can be fitted to.
        lines: line of each profiled point in its file.
        facts: what the file says of the model, by the names of `TrainingModel`; ``pcie`` and
            ``nvlink`` in GB/s.
        threads_assumed: whether offload plans do not tell their CPU threads; `OFFLOAD_CPUS` a GPU
            are assumed then.
        notes: what readers should know.
    """

    rows: tuple[Measurement, ...]
    profile: tuple[ProfiledPoint, ...]
    lines: tuple[int, ...]
    facts: dict[str, float]
    threads_assumed: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class MeasuredSteps:
    """What a file of measured steps holds.

    Attributes:
        times: (nodes, GPUs, micro-batch) -> mean seconds of a step, and of these of synchronising.
        limits: first, largest, least and most local batch, and the scale of the gradient's noise.
    """

    times: dict[tuple[int, int, int], tuple[float, float]]
    limits: dict[str, float]


def fit_model(
    points: MeasuredPoints, *, name: str, provenance: str, refine: bool = False
) -> tuple[TrainingModel, Fit | None, list[str]]:
    """Return a model of measured points, how its fit went, and what to mind.

    Args:
        points: as read.
        name: what to call it.
        provenance: where the points come from.
        refine: see `windtunnel.throughput.fitting.fit`.

    Raises:
        SpecError: the batch or the number of parameters is not given, or scipy is missing.
    """
    facts = points.facts
    for wanted in ("global_batch_size", "parameters"):
        if wanted not in facts:
            option = {"global_batch_size": "--batch", "parameters": "--parameters"}[wanted]
            raise SpecError(
                option, f"is not given; expected a column '{wanted}', this option or --like MODEL."
            )
    notes = [*points.notes, *_suspects(points)]
    if points.threads_assumed:
        notes.append(f"CPU threads of offload plans are not given: {OFFLOAD_CPUS} a GPU assumed.")
    found = None
    if points.profile:
        found = fit(
            points.profile,
            theta=facts["parameters"] / 2**20,
            pcie=facts.get("pcie"),
            nvlink=facts.get("nvlink"),
            refine=refine,
        )
        notes += _of_fit(found, len(points.profile))
    else:
        notes.append("No data-parallel plan was measured on one node: no analytic model.")
    whole = ("global_batch_size", "parameters", "hidden", "layers", "sequence", "gpus_per_card")
    model = TrainingModel(
        name=name,
        title=name,
        table=MeasuredTable(points.rows),
        forward_time=None if found is None else facts.get("forward_time", found.forward_time),
        bandwidths=None if found is None else found.bandwidths,
        gpu_memory_gib=facts.get("gpu_memory_gib"),
        network=facts.get("network"),
        offload_threads=OFFLOAD_CPUS if points.threads_assumed else None,
        fitted=None if found is None else found.parameters,
        profile=points.profile,
        provenance=provenance,
        **{key: int(facts[key]) for key in whole if key in facts},  # type: ignore[arg-type] # whole numbers
    )
    model = _with_network(_with_3d(model, notes), notes)
    return model, found, notes


def _of_fit(found: Fit, count: int) -> list[str]:
    notes = []
    if found.on_bounds:
        notes.append(f"The points do not determine {', '.join(found.on_bounds)}: on a bound.")
    if found.fitted_too:
        fitted = ", ".join({"forward": "the forward time"}.get(n, n) for n in found.fitted_too)
        notes.append(f"Not given and fitted as well: {fitted}.")
    wanted = len(found.parameters.as_tuple()) + len(found.fitted_too)
    if count * 3 < wanted:
        notes.append(f"{count} points are few for {wanted} numbers: predict with care.")
    return notes


def _suspects(points: MeasuredPoints) -> list[str]:
    """Return remarks on forward times that no other point bears out."""
    whole = sorted(p.forward * p.gpus for p in points.profile if p.forward is not None)
    if len(whole) < 3:  # noqa: PLR2004 - a majority needs three
        return []
    middle = whole[len(whole) // 2]
    return [
        f"Line {line}: forward time {point.forward:g} ms on {point.gpus} GPUs, where the other "
        f"points suggest about {middle / point.gpus:.3g} ms; used as it stands."
        for point, line in zip(points.profile, points.lines, strict=True)
        if point.forward is not None
        and not 1 / _SUSPECT < point.forward * point.gpus / middle < _SUSPECT
    ]


def _with_3d(model: TrainingModel, notes: list[str]) -> TrainingModel:
    """Return the model with costs of 3D plans, where enough were measured."""
    rows = three_d_rows(model)
    if not rows:
        return model
    if model.sizes is None:
        notes.append("3D plans are not predicted: hidden, layers or sequence is not given.")
        return model
    if len(rows) <= len(COSTS):
        notes.append(f"3D plans are not predicted: {len(rows)} points for {len(COSTS)} costs.")
        return model
    paid = [features(plan, shape, model.sizes) for plan, shape, _ in rows]
    return replace(model, three_d=fit_costs(paid, [seconds for _, _, seconds in rows]))


def _with_network(model: TrainingModel, notes: list[str]) -> TrainingModel:
    """Return the model with the bandwidth of a network card that explains several nodes best."""
    if model.fitted is None or model.network is not None:
        return model
    rows = [
        row
        for row in model.table.rows
        if row.iteration_time is not None and row.plan.family != "3d" and len(row.shape) > 1
    ]
    if not rows:
        return model
    notes.append("Not given and fitted as well: the bandwidth between nodes.")
    return replace(model, network=fit_network(model, rows))


def fit_network(model: TrainingModel, rows: list[Measurement]) -> float:
    """Return the GB/s of a network card with the least mean squared logarithm of errors.

    Args:
        model: with fitted parameters.
        rows: data-parallel points on several nodes.
    """

    def error(log_bandwidth: float) -> float:
        tried = replace(model, network=math.exp(log_bandwidth))
        total = 0.0
        for row in rows:
            time = predicted_time(tried, row.plan, row.shape, model.threads_of(row))
            if not isinstance(time, str) and row.iteration_time is not None:
                total += math.log(time / row.iteration_time) ** 2
        return total

    grid = [math.log(0.1) + step * math.log(1e4) / 60 for step in range(61)]
    best = min(grid, key=error)
    low, high = best - 0.16, best + 0.16
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if error(left) <= error(right) else (left, high)
    return math.exp((low + high) / 2)
