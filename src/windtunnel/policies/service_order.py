"""Orders by service: GPUs times seconds, attained so far or still to come. All preemptive.

* Least attained service (LAS): nothing need be known of a job's length.
* Discretised LAS, as Tiresias runs it (Gu et al., NSDI 2019): attained service in levels, in order
  of arrival within a level, so that jobs near a bound do not take turns for ever.
* Gittins index (the same paper, "2D-Gittins"): the length distribution is known, the jobs' are not.
* Shortest remaining service first (SRSF): the lengths are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.sim.contract import Levels, Policy
from windtunnel.sim.usage_order import in_32_bits
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.jobs import JobView


class Las(Policy):
    """Least attained service first: the job that has had the least GPU time so far.

    Args:
        quantum: seconds (or ``30m``) between rounds, at which attained service is looked at again.
    """

    name = "las"
    queueing = "skip"
    preemptive = True
    levels = Levels()

    def __init__(self, quantum: float | str = 60.0) -> None:
        self.every = seconds("quantum", quantum, positive=True)

    def key(self, job: JobView, now: float) -> float:  # noqa: ARG002 - the view is of this instant
        """Return the key of the GPU-seconds that the job has had."""
        return self.levels.key(job.run_time * job.num_gpus)


class Tiresias(Las):
    """Discretised least attained service: levels of GPU time, in order of arrival within each.

    Args:
        quantum: seconds between rounds.
        bounds: GPU-seconds at which the next level begins, ascending; a number is one bound. The
            defaults are ours, 1 and 10 GPU hours: the right ones depend on the trace.
    """

    name = "tiresias"

    def __init__(
        self, quantum: float | str = 60.0, bounds: Sequence[float] | float = (3_600.0, 36_000.0)
    ) -> None:
        super().__init__(quantum)
        given = bounds if isinstance(bounds, tuple | list) else (bounds,)
        try:
            levels = tuple(float(bound) for bound in given)
        except (TypeError, ValueError) as error:
            message = f"found {quote(bounds)}; expected GPU-seconds that rise from 0, as 600/6000."
            raise SpecError("bounds", message) from error
        self.levels = Levels(levels)


class Gittins(Las):
    """Largest Gittins index first, for a known distribution of service.

    The index of a job with attained service a is the largest, over all d, of the probability that
    it ends within d more, over the service expected until then: ``P(S - a <= d | S > a) /
    E[min(S - a, d) | S > a]``. It is computed at the services of a sample, and holds between them.

    Args:
        services: GPU-seconds of past jobs, the distribution's sample.
        quantum: seconds between rounds.

    Raises:
        SpecError: the sample is empty or has values below 0.
    """

    name = "gittins"

    def __init__(self, services: Sequence[float], quantum: float | str = 60.0) -> None:
        super().__init__(quantum)
        self.levels = _gittins_levels(services)


class Srsf(Policy):
    """Shortest remaining service first: least GPU time left, by true durations."""

    name = "srsf"
    queueing = "skip"
    preemptive = True
    by_remaining = True
    by_service = True

    def key(self, job: JobView, now: float) -> float:  # noqa: ARG002 - the view is of this instant
        """Return the GPU-seconds left."""
        return in_32_bits(job.remaining * job.num_gpus)


#: Most points of a distribution at which the index is computed.
_MOST_POINTS = 512


def _gittins_levels(services: Sequence[float]) -> Levels:
    """Return levels whose keys are the negated indices, as lower keys come first."""
    sample = np.sort(np.asarray(services, dtype=np.float64))
    if len(sample) == 0 or not (np.isfinite(sample).all() and sample[0] >= 0):
        raise SpecError("services", "expected GPU-seconds of past jobs, finite and >= 0.")
    if len(sample) > _MOST_POINTS:
        sample = np.quantile(sample, np.linspace(0, 1, _MOST_POINTS))
    points = np.unique(sample)
    keys = []
    for attained in (0.0, *points):
        left = sample[sample > attained] - attained
        if len(left) == 0:
            keys.append(0.0)  # nobody in the sample got so far: no reason to expect an end
            continue
        ends, counts = np.unique(left, return_counts=True)
        done = np.cumsum(counts)
        spent = np.cumsum(ends * counts) + ends * (len(left) - done)
        keys.append(-float((done / spent).max()))
    return Levels(tuple(points.tolist()), tuple(keys))
