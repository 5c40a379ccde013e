"""Predictors that learn nothing: what the user asked for, a column, the truth, the truth distorted.

The last two read true durations. They bound what a predictor could bring and are no predictors.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from windtunnel.checked import checked_choice, checked_count
from windtunnel.errors import SpecError, nearest, quote
from windtunnel.predictors.convention import Given
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import numeric_column

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

#: Upper end of a band's cumulative share of jobs, and the band's relative errors from, to.
BANDS: tuple[tuple[float, float, float], ...] = (
    (0.1, 0.0, 0.1),
    (0.5, 0.1, 0.5),
    (0.7, 0.5, 1.0),
    (0.9, 1.0, 10.0),
    (1.0, 10.0, 100.0),
)
_HALF = 0.5
#: Errors of e^10 and more are no predictions.
_WILDEST = 10.0
SIGNS: tuple[str, ...] = ("random", "plus", "factor")


class Column(Given):
    """A numeric column of the jobs table, in seconds; null = no prediction.

    Args:
        column: its name, such as ``user_dur``, which the PAI simulator's job files have.
    """

    name: ClassVar[str] = "column"

    def __init__(self, column: str) -> None:
        self.column = column

    @property
    def label(self) -> str:
        """The name with the column's."""
        return f"{self.name}:{self.column}"

    def read(self, jobs: pa.Table) -> np.ndarray:
        """Return the column.

        Raises:
            SpecError: there is no such column, or it holds no numbers (or text that reads so).
        """
        if self.column not in jobs.column_names:
            has = ", ".join(quote(name) for name in jobs.column_names)
            raise SpecError(
                f"predictor {self.label}",
                f"the jobs have no column {quote(self.column)}."
                f"{nearest(self.column, jobs.column_names)} They have: {has}.",
            )
        return numeric_column(jobs, self.column, f"predictor {self.label}", "numbers of seconds")


class Requested(Given):
    """The wall time that the user asked for (``estimate``); null = no prediction."""

    name: ClassVar[str] = "requested"

    def read(self, jobs: pa.Table) -> np.ndarray:
        """Return the estimates."""
        return numbers(jobs, "estimate")


class Oracle(Given):
    """The true duration: what a perfect predictor would say."""

    name: ClassVar[str] = "oracle"
    peeks: ClassVar[bool] = True

    def read(self, jobs: pa.Table) -> np.ndarray:
        """Return the durations."""
        return numbers(jobs, "duration")


class Noise(Given):
    """The true duration with a random error: log-normal, or Helios' for its predictions of Philly.

    Helios' artifact has no predictions for Philly and makes them up (S-Lab-System-Group/
    HeliosArtifact, QSSF): of the jobs 10 % are off by up to 10 % of the truth, the next 40 % by
    10-50 %, 20 % by 50-100 %, 20 % by 1-10 times and 10 % by 10-100 times the truth. Within a band
    the error is uniform. A job's error depends on the seed and its id alone.

    Args:
        seed: another seed, other errors.
        sign: ``random``: the error is added or subtracted, each for half of the jobs, as in the
            artifact; a subtracted error above 100 % makes the prediction negative, and it stays so
            (such a job is the first in any shortest-first order). ``plus``: always added.
            ``factor``: instead of subtracting, the truth is divided by 1 + error, so that every
            prediction is positive; half of the jobs are then nearer to the truth than the bands.
        sigma: instead of all that, the truth times e^(sigma z), z standard normal.

    Raises:
        SpecError: a parameter is out of range.
    """

    name: ClassVar[str] = "noise"
    peeks: ClassVar[bool] = True

    def __init__(self, seed: int = 0, sign: str = "random", sigma: float | None = None) -> None:
        self.seed = checked_count(f"predictor {self.name}, seed", seed, least=0, most=2**64 - 1)
        self.sign = checked_choice(f"predictor {self.name}, sign", sign, SIGNS)
        if sigma is not None and not 0 <= sigma < _WILDEST:
            message = f"found {sigma:g}; expected a number from 0 to below {_WILDEST:g}."
            raise SpecError(f"predictor {self.name}, sigma", message)
        self.sigma = sigma

    def read(self, jobs: pa.Table) -> np.ndarray:
        """Return the distorted durations."""
        truth = numbers(jobs, "duration")
        band, place, side = _draws(jobs["job_id"].to_pylist(), self.seed)
        if self.sigma is not None:  # Box and Muller
            normal = np.sqrt(-2 * np.log1p(-band)) * np.cos(2 * np.pi * place)
            found: np.ndarray = truth * np.exp(self.sigma * normal)
            return found
        ends = np.array([end for end, _, _ in BANDS])
        low, high = (np.array([b[i] for b in BANDS]) for i in (1, 2))
        index = np.minimum(np.searchsorted(ends, band, side="right"), len(BANDS) - 1)
        error = low[index] + place * (high[index] - low[index])
        over = (self.sign == "plus") | (side < _HALF)
        under = truth / (1 + error) if self.sign == "factor" else truth * (1 - error)
        distorted: np.ndarray = np.where(over, truth * (1 + error), under)
        return distorted


def _draws(ids: Iterable[str], seed: int) -> np.ndarray:
    """Return three uniform numbers in [0, 1) an id, shape (3, ids), from a hash of it."""
    key = seed.to_bytes((seed.bit_length() + 7) // 8 or 1, "little")
    digests = b"".join(
        hashlib.blake2b(
            name.encode("utf-8", "surrogatepass"), digest_size=24, key=key[:64]
        ).digest()
        for name in ids
    )
    # The upper 53 bits, as a float holds no more.
    draws: np.ndarray = (np.frombuffer(digests, dtype="<u8").reshape(-1, 3).T >> 11) / 2.0**53
    return draws
