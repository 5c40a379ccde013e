"""What is asked of a generator: how many jobs, how dense, which seed; checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_count, checked_number
from windtunnel.cluster import preset

if TYPE_CHECKING:
    from windtunnel.traces.synthetic.size_facts import TraceFacts

_DAY = 86_400
_MAX_JOBS = 10_000_000


@dataclass(frozen=True)
class DrawRequest:
    """What is asked for.

    Attributes:
        jobs: GPU jobs.
        load: wanted GPU time over (span x the cluster's GPUs); None = the real span, scaled.
        seed: the root of all randomness.
        cpu_jobs: whether jobs without a GPU are wanted.
    """

    jobs: int
    load: float | None
    seed: int
    cpu_jobs: bool

    def streams(self, names: tuple[str, ...], skip: int = 0) -> dict[str, np.random.Generator]:
        """Return a generator a name, each a child of the seed, in order.

        Args:
            skip: how many of the seed's children are others'.
        """
        return streams_of(self.seed, names, skip)

    def scaled(self, real: int, trace: TraceFacts) -> int:
        """Return how many of ``real`` things the wanted jobs stand for."""
        return round(real * self.jobs / trace.gpu_jobs)

    def is_real(self, trace: TraceFacts) -> bool:
        """Whether as many jobs are wanted as the real trace has."""
        return self.jobs == trace.gpu_jobs

    def span(self, trace: TraceFacts, gpu_time: int) -> int:
        """Return the seconds from the first submission to the last, at least 1.

        Args:
            gpu_time: GPU seconds of the wanted jobs.
        """
        if self.load is None:
            span = round(trace.span_days * _DAY * self.jobs / trace.gpu_jobs)
        else:
            span = round(gpu_time / (self.load * preset(trace.cluster).num_gpus))
        return max(span, 1)


def streams_of(seed: int, names: tuple[str, ...], skip: int = 0) -> dict[str, np.random.Generator]:
    """Return a generator a name; see `DrawRequest.streams`."""
    sequences = np.random.SeedSequence(seed).spawn(skip + len(names))[skip:]
    return {
        name: np.random.Generator(np.random.PCG64(sequence))
        for name, sequence in zip(names, sequences, strict=True)
    }


def checked_request(
    jobs: int | None, load: float | None, seed: int, *, cpu_jobs: bool, real: int
) -> DrawRequest:
    """Return a request.

    Args:
        jobs: GPU jobs; None = ``real``.

    Raises:
        SpecError: ``jobs < 1``, ``load <= 0`` or not finite, ``seed < 0``.
    """
    if jobs is not None:
        checked_count("jobs", jobs, f"a whole number from 1 to {_MAX_JOBS}", most=_MAX_JOBS)
    if load is not None:
        checked_number("load", load, above=0)
    checked_count("seed", seed, least=0, most=math.inf)
    return DrawRequest(real if jobs is None else int(jobs), load, int(seed), cpu_jobs)
