"""How far predictions are off, over every measured point: where extrapolation is safe."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.throughput.options import placement_name
from windtunnel.throughput.prediction import predicted_time

if TYPE_CHECKING:
    from windtunnel.throughput.facts import TrainingFacts
    from windtunnel.throughput.plans import Plan

#: Mean error, in percent, up to which predictions between measurements are used.
TRUSTED = 14.0


@dataclass(frozen=True, slots=True)
class PredictionError:
    """Errors of a model's predictions for one plan, on one node or on several.

    Attributes:
        model: the model.
        plan: the plan's word; ``3D`` for all of those with degrees.
        several_nodes: whether the points are spread over nodes.
        points: measured points.
        mean_percent: mean error, percent of the measured time; None = nothing is predicted.
        max_percent: largest error.
        bias_percent: mean of the signed errors; above 0 = predicted too slow.
        worst: placement of the largest error.
        reason: why nothing is predicted.
    """

    model: str
    plan: str
    several_nodes: bool
    points: int
    mean_percent: float | None
    max_percent: float | None
    bias_percent: float | None
    worst: str | None
    reason: str | None

    @property
    def trusted(self) -> bool:
        """Whether such plans are offered at sizes that were never measured."""
        return self.mean_percent is not None and self.mean_percent <= TRUSTED


def group_of(plan: Plan) -> str:
    """Return the word under which a plan's predictions are judged."""
    return "3D" if plan.num_gpus else plan.name


def prediction_errors(model: TrainingFacts) -> tuple[PredictionError, ...]:
    """Return how far the fitted model is off at every measured point, by plan and spread.

    The measured times are not looked up, only predicted; those that the model was fitted to are
    among them.

    Args:
        model: the training model.
    """
    groups: dict[tuple[str, bool], list[tuple[str, float | str]]] = defaultdict(list)
    for row in model.table.rows:
        if row.iteration_time is None:
            continue
        plan, shape = row.plan, row.shape
        time = predicted_time(model, plan, shape, model.threads_of(row))
        error = time if isinstance(time, str) else time / row.iteration_time - 1
        groups[group_of(plan), len(shape) > 1].append((placement_name(shape), error))
    return tuple(
        _summary(model.name, word, points, several=spread)
        for (word, spread), points in groups.items()
    )


def _summary(
    model: str, word: str, points: list[tuple[str, float | str]], *, several: bool
) -> PredictionError:
    known = [(where, error) for where, error in points if not isinstance(error, str)]
    if len(known) < len(points):
        reason = next(error for _, error in points if isinstance(error, str))
        return PredictionError(model, word, several, len(points), None, None, None, None, reason)
    worst, largest = max(known, key=lambda point: abs(point[1]))
    return PredictionError(
        model,
        word,
        several,
        len(points),
        100 * sum(abs(error) for _, error in known) / len(known),
        100 * abs(largest),
        100 * sum(error for _, error in known) / len(known),
        worst,
        None,
    )
