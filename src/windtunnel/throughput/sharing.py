"""Sharing a few GPUs among a few jobs: equal parts, or where they help most.

A job's normalised speed is its speed over that of its fastest measured option on all the GPUs
(MLSys'25, section 3, figure 8). Counts of GPUs are shared, on nodes that are otherwise empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windtunnel.throughput.options import Option
    from windtunnel.throughput.training import TrainingModel

#: Normalised speed by GPUs, item 0 for none; never falls.
Envelope = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """What one job was given.

    Attributes:
        model: the job's training model.
        num_gpus: GPUs given.
        option: the fastest measured way to use them; None = it cannot run on so few.
        normalised: its speed over that on all the GPUs; 0 = it does not run.
    """

    model: str
    num_gpus: int
    option: Option | None
    normalised: float


def share(
    models: Sequence[TrainingModel],
    num_gpus: int,
    scheduler: str,
    *,
    node_gpus: int = 8,
    node_cpus: int = 96,
) -> tuple[Share, ...]:
    """Share GPUs among one job of each model.

    ``simple`` gives every job as many GPUs, the last one the remainder too. ``morphling`` gives the
    next GPUs to the job whose normalised speed they raise most for each GPU, a job stepping between
    the corners of the upper concave envelope of its curve; then, while the sum gains, one job grows
    into what is left and what another gives up (MLSys'25, section 4).

    Args:
        models: the jobs' models, at least one.
        num_gpus: GPUs in all.
        scheduler: ``simple`` or ``morphling``.
        node_gpus: GPUs of a node.
        node_cpus: CPUs of a node.

    Raises:
        SpecError: an unknown scheduler, no jobs, or a job that no measured option fits.
    """
    if scheduler not in SCHEDULERS:
        raise SpecError.unknown("scheduler", scheduler, SCHEDULERS)
    if not models:
        raise SpecError("jobs", "expected at least one model.")
    curves = [_measured_curve(model, num_gpus, node_gpus, node_cpus) for model in models]
    speeds = []
    for model, curve in zip(models, curves, strict=True):
        times = [math.inf if option is None else option.iteration_time for option in curve]
        if min(times) == math.inf:
            raise SpecError("jobs", f"{model.name} was not measured on {num_gpus} GPUs or fewer.")
        speeds.append((0.0, *(min(times) / time for time in times)))
    envelopes = [tuple(accumulate(speed, max)) for speed in speeds]
    given = SCHEDULERS[scheduler](envelopes, num_gpus)
    return tuple(
        Share(model.name, gpus, curve[gpus - 1] if gpus else None, speed[gpus])
        for model, gpus, curve, speed in zip(models, given, curves, speeds, strict=True)
    )


def _measured_curve(
    model: TrainingModel, num_gpus: int, node_gpus: int, node_cpus: int
) -> tuple[Option | None, ...]:
    """Return the fastest measured option by GPUs, item 0 for one GPU.

    A number of GPUs that no option has keeps the one of the next smaller number that has.
    """
    nodes = -(-num_gpus // node_gpus)
    options = model.options(node_gpus=node_gpus, node_cpus=node_cpus, num_nodes=nodes)
    fastest: dict[int, Option] = {}
    for option in options:  # the fastest of a number of GPUs comes first
        if option.measured:
            fastest.setdefault(option.num_gpus, option)
    curve: list[Option | None] = []
    for gpus in range(1, num_gpus + 1):
        curve.append(fastest.get(gpus, curve[-1] if curve else None))
    return tuple(curve)


def equal_parts(envelopes: Sequence[Envelope], num_gpus: int) -> list[int]:
    """Return as many GPUs for every job, the remainder to the last."""
    part = num_gpus // len(envelopes)
    given = [part] * len(envelopes)
    given[-1] += num_gpus - part * len(envelopes)
    return given


def steepest(envelopes: Sequence[Envelope], num_gpus: int) -> list[int]:
    """Return the GPUs of each job when the next ones always go where they gain most.

    Args:
        envelopes: each job's normalised speed by GPUs.
        num_gpus: GPUs in all.
    """
    given = [0] * len(envelopes)
    corners = [envelope(list(enumerate(speeds)))[1:] for speeds in envelopes]
    while True:  # along the corners of the concave envelopes
        left = num_gpus - sum(given)
        steps = []
        for job, (speeds, ends) in enumerate(zip(envelopes, corners, strict=True)):
            ahead = next((corner for corner in ends if corner > given[job]), None)
            if ahead is not None:
                steps.append((_slope(speeds, given[job], ahead), -job, ahead))
        best = max(steps, default=None)
        if best is None or best[2] - given[-best[1]] > left:
            break
        given[-best[1]] = best[2]
    while _exchange(envelopes, given, num_gpus):
        pass
    return given


def _exchange(envelopes: Sequence[Envelope], given: list[int], num_gpus: int) -> bool:
    """Let one job grow into what is left and what one other gives up, where the sum gains most.

    Returns:
        Whether anything gained; ``given`` is changed then.
    """
    left = num_gpus - sum(given)
    best, change = 1e-12, None  # less is rounding
    for job, envelope in enumerate(envelopes):
        for victim in range(len(envelopes)):
            gives = range(given[victim] + 1) if victim != job else range(1)
            for less in gives:
                size = min(given[job] + left + less, num_gpus)
                lost = envelopes[victim][given[victim]] - envelopes[victim][given[victim] - less]
                gained = envelope[size] - envelope[given[job]] - lost
                if gained > best:
                    needed = next(n for n in range(size + 1) if envelope[n] == envelope[size])
                    best, change = gained, (job, needed, victim, less)
    if change is None:
        return False
    job, size, victim, less = change
    given[victim] -= less
    given[job] = size
    return True


#: Who shares how.
SCHEDULERS: Mapping[str, Callable[[Sequence[Envelope], int], list[int]]] = {
    "simple": equal_parts,
    "morphling": steepest,
}


def _slope(envelope: Envelope, size: int, more: int) -> float:
    return (envelope[more] - envelope[size]) / (more - size)


def envelope(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the points on the upper concave envelope, from the first on.

    Args:
        points: (resources, throughput), resources ascending; the first is always kept.

    >>> envelope([(1, 1.0), (2, 1.8), (3, 1.8), (4, 3.0), (8, 3.2)])
    [0, 1, 3, 4]
    """
    hull: list[int] = []
    for index, (gpus, speed) in enumerate(points):
        if hull and speed <= points[hull[-1]][1]:
            continue
        while len(hull) > 1:
            (x0, y0), (x1, y1) = points[hull[-2]], points[hull[-1]]
            if (y1 - y0) * (gpus - x1) > (speed - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append(index)
    return hull
