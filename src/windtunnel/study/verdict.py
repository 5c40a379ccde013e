"""Whether a replay stands for the record: three bars, of which a useless replay fails at least one.

A replay in which nobody waits has the wrong mean; one that gives the recorded waits to the wrong
jobs has the right mean, and knows no more of a job than whoever always says the median.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.quantiles import quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The mean and the P90 of the waits may be off by this part of the recorded ones, ...
MOST_OFF = 0.25
#: ... or by this much: loops that look twice a minute leave no less, s.
LEAST_OFF_S = 30.0
#: A job's wait is off by at most this part of what it is for who always says the median.
MOST_OF_MEDIAN = 0.75


@dataclass(frozen=True)
class Verdict:
    """A replay's waits beside the recorded ones.

    Attributes:
        n: jobs that started in both.
        mean, recorded_mean: s.
        p90, recorded_p90: s.
        error: mean of |replayed - recorded wait| of a job, s.
        median_error: the same of who says the recorded median for every job, s.
    """

    n: int
    mean: float
    recorded_mean: float
    p90: float
    recorded_p90: float
    error: float
    median_error: float

    @classmethod
    def of(cls, replayed: np.ndarray, recorded: np.ndarray) -> Verdict:
        """Judge waits.

        Args:
            replayed: s, shape (n,), NaN = did not start.
            recorded: s, shape (n,).
        """
        both = ~np.isnan(replayed) & ~np.isnan(recorded)
        mine, theirs = replayed[both], recorded[both]
        if not len(mine):
            return cls(0, *[float("nan")] * 6)
        middle = float(quantiles(theirs, 0.5))
        return cls(
            len(mine),
            float(mine.mean()),
            float(theirs.mean()),
            float(quantiles(mine, 0.9)),
            float(quantiles(theirs, 0.9)),
            float(np.abs(mine - theirs).mean()),
            float(np.abs(theirs - middle).mean()),
        )

    @property
    def explained(self) -> float:
        """Share of the recorded waiting, above what its median tells, that the replay explains."""
        if not self.median_error > 0:
            return 1.0 if self.error <= 1.0 else 0.0
        return max(0.0, 1.0 - self.error / self.median_error)

    @property
    def failures(self) -> Sequence[str]:
        """The bars that it fails: ``mean``, ``p90``, ``jobs``; ``n`` where there is no job."""
        if not self.n:
            return ("n",)
        found = []
        if abs(self.mean - self.recorded_mean) > max(MOST_OFF * self.recorded_mean, LEAST_OFF_S):
            found.append("mean")
        if abs(self.p90 - self.recorded_p90) > max(MOST_OFF * self.recorded_p90, LEAST_OFF_S):
            found.append("p90")
        # Where all is as short as the loops' own beat, waits do not distinguish jobs.
        if self.error > max(MOST_OF_MEDIAN * self.median_error, LEAST_OFF_S):
            found.append("jobs")
        return tuple(found)

    @property
    def stands(self) -> bool:
        """Whether answers may be built on the replay."""
        return not self.failures

    def data(self) -> dict[str, Any]:
        """Return it as plain data, the bars with it."""
        return {
            "stands": self.stands,
            "failures": list(self.failures),
            "n": self.n,
            "avg_wait": self.mean,
            "recorded_avg_wait": self.recorded_mean,
            "p90_wait": self.p90,
            "recorded_p90_wait": self.recorded_p90,
            "avg_error": self.error,
            "median_error": self.median_error,
            "explained": self.explained,
            "bars": {
                "most_off": MOST_OFF,
                "least_off": LEAST_OFF_S,
                "most_of_median": MOST_OF_MEDIAN,
            },
        }
