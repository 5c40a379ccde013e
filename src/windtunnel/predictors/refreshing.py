"""When a fitted predictor is trained anew, and on which of the jobs that have ended.

At most every ``refresh`` seconds, counted from the first submission: what is predicted between two
of these instants rests on the jobs that had ended before the first of them. Or every
``refresh_jobs`` completions. Either way the jobs learnt from are the last ``train_last`` of a
beginning of the sequence of completions, whose length is all there is to say: `due`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.predictors.convention import checked_count

DAY = 86400.0
#: Ended jobs that a fitted predictor needs before it is asked.
MIN_HISTORY = 100
#: Ended jobs, the last of them, that it is trained on.
TRAIN_LAST = 10_000


@dataclass(frozen=True)
class Refreshing:
    """See the module's text.

    Attributes:
        refresh: seconds between trainings; None where jobs are counted.
        refresh_jobs: completions between trainings; None where time is.
        min_history: completions before the first training.
        train_last: completions that a training uses at most.
    """

    refresh: float | None = DAY
    refresh_jobs: int | None = None
    min_history: int = MIN_HISTORY
    train_last: int = TRAIN_LAST

    @classmethod
    def of(
        cls,
        refresh: float | None = None,
        refresh_jobs: int | None = None,
        min_history: int = MIN_HISTORY,
        train_last: int = TRAIN_LAST,
    ) -> Refreshing:
        """Return checked settings; without ``refresh`` and ``refresh_jobs`` a day.

        Raises:
            SpecError: both are given, or one is out of range.
        """
        if refresh is not None and refresh_jobs is not None:
            raise SpecError("refresh_jobs", "is given beside refresh; give one of them.")
        if refresh_jobs is not None:
            refresh_jobs = checked_count("refresh_jobs", refresh_jobs)
        else:
            refresh = _seconds(DAY if refresh is None else refresh)
        return cls(
            refresh,
            refresh_jobs,
            checked_count("min_history", min_history),
            checked_count("train_last", train_last),
        )

    def due(
        self, when: np.ndarray, origin: float, before: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Return how many completions count at each instant: those before the last refresh.

        Args:
            when: instants, s, shape (n,).
            origin: the first submission, s.
            before: completions before each of the instants, shape (n,).
            known: when each completion happened, s, rising.

        Returns:
            int64, shape (n,).
        """
        if self.refresh_jobs is not None:
            found: np.ndarray = before // self.refresh_jobs * self.refresh_jobs
            return found
        span = float(self.refresh or DAY)
        last = origin + np.floor((when - origin) / span) * span
        # Strictly before: what ends at the instant of training is for the next one.
        return np.searchsorted(known, last, side="left").astype(np.int64)

    def trained(self, due: np.ndarray) -> np.ndarray:
        """Return on how many completions a model was trained where so many count; 0 = too few."""
        return np.where(due >= self.min_history, due, 0)

    def used(self, trained: int) -> slice:
        """Return which of the completions a training on the first ``trained`` uses."""
        return slice(max(0, trained - self.train_last), trained)


def _seconds(value: Any) -> float:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else np.nan
    if not 0 < number < np.inf:
        raise SpecError("refresh", f"found {quote(value)}; expected seconds > 0.")
    return float(number)
