"""`EpochProfile`: a job's phases: the batch size and the seconds planned for each epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.throughput.batch_sizes import DATASET_SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.throughput.batch_sizes import Kind


#: Of jobs whose epochs are not known: seconds an epoch, unless that makes fewer or more epochs.
_LONGEST, _LEAST, _MOST = 120.0, 10, 100


@dataclass(frozen=True)
class EpochProfile:
    """What is planned for a job, from its submission on.

    Attributes:
        batch_sizes: of each epoch, shape (epochs,).
        seconds: of each epoch alone on its GPUs, not rounded to whole steps; shape (epochs,).
    """

    batch_sizes: np.ndarray
    seconds: np.ndarray

    @property
    def num_epochs(self) -> int:
        """Number of epochs."""
        return len(self.seconds)

    @cached_property
    def ends(self) -> np.ndarray:
        """Seconds after which each epoch ends, shape (epochs,)."""
        return np.cumsum(self.seconds)

    @cached_property
    def duration(self) -> float:
        """The ideal duration: all epochs, s.

        Added one by one, as published: from Python 3.12 on `sum` makes up for what is rounded.
        """
        return float(self.ends[-1])


def equal_epochs(seconds: float) -> EpochProfile:
    """Return the profile of a job of which only the duration is known: equal epochs."""
    count = int(min(max(math.ceil(seconds / _LONGEST), _LEAST), _MOST))
    return EpochProfile(np.zeros(count, int), np.full(count, seconds / count))


def profile_of(kind: Kind, steps: int, speeds: Mapping[int, float]) -> EpochProfile:
    """Return the profile of a job.

    Args:
        kind: its model, first batch size, GPUs and mode.
        steps: in all, at the first batch size.
        speeds: steps per second of the gang by batch size.

    Raises:
        SpecError: a planned batch size was never measured.
    """
    epochs = math.ceil(steps / kind.steps_per_epoch(kind.batch_size))
    sizes = kind.planned(epochs)
    for size in set(sizes):
        if not speeds.get(size):
            where = f"{kind.model} (batch size {size}) on {kind.gpus} GPUs"
            raise SpecError("throughputs", f"{where} has no speed, and the job comes to need it.")
    seconds = [DATASET_SIZES[kind.model] / size / speeds[size] for size in sizes]
    return EpochProfile(np.array(sizes, int), np.array(seconds))
