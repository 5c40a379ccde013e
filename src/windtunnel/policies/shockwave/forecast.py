"""`Forecast`: what the market believes of a job: its epochs, their length, and what is left.

The predictor knows *which* batch sizes a job will train with, not when. Zheng et al., NSDI'23,
section 5; uw-mad-dash/shockwave, ``scheduler/JobMetaData.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.throughput.batch_sizes import DATASET_SIZES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.policies.shockwave.work import TrainingJob

#: Relative difference between measured and profiled samples beyond which the profile is scaled.
_TOLERATED = 0.4


class Forecast:
    """A job in the market.

    Args:
        job: the job.
        submitted: when it came into the market, s.
        length: seconds a round.

    Attributes:
        epochs_done: progress.
        measured: (round, steps per second, batch size) of each round it ran.
        fair_finishes: (round, s): when it would have finished on its fair share, as seen then.
    """

    def __init__(self, job: TrainingJob, submitted: float, length: float) -> None:
        self.job, self.submitted, self._length = job, submitted, length
        self._profiled = np.maximum(1.0, np.round(job.profile.seconds))
        self._ends = np.concatenate([[0.0], np.cumsum(self._profiled)])
        self._scale = 1.0
        modes, mode_of = np.unique(job.profile.batch_sizes, return_inverse=True)
        of_mode = mode_of[:, None] == np.arange(len(modes))
        self._seen = of_mode.cumsum(axis=0)
        self._mode_seconds = (self._profiled @ of_mode) / of_mode.sum(axis=0)
        self._expected_at, self._expected = -1, (0.0, 1)
        self.epochs_done = 0
        self.measured: Sequence[tuple[int, float, int]] = ()
        self._samples, self._counted = 0.0, 0
        self.fair_finishes: list[tuple[int, float]] = []

    @property
    def num_epochs(self) -> int:
        """Epochs in all."""
        return len(self._profiled)

    @property
    def epoch_seconds(self) -> float:
        """The mean length of the epochs seen so far, the next one included, s."""
        seen = min(self.epochs_done + 1, self.num_epochs)
        return float(self._ends[seen]) / seen * self._scale

    def calibrate(self) -> None:
        """Scale the epochs where measured samples differ much from the profile's.

        Published defect: the span counts from the cluster's first round, so that jobs that came
        late look slow.
        """
        for at, speed, size in self.measured[self._counted :]:
            before = self.measured[self._counted - 1][0] if self._counted else 0
            self._samples += size * speed * self._length * (at - before)
            self._counted += 1
        if not self._counted or self.job.kind is None:
            return
        span = self._length * self.measured[-1][0]
        whole = int(np.searchsorted(self._ends, span, side="right")) - 1
        dataset = DATASET_SIZES[self.job.kind.model]
        missing = span - float(self._ends[whole])
        present = float(self._profiled[min(whole, self.num_epochs - 1)]) * self._scale
        expected = dataset * (whole + missing / present)
        if self._samples > 0 and abs(self._samples - expected) / expected > _TOLERATED:
            self._scale = expected / self._samples

    def remaining(self) -> float:
        """Return the seconds that the job is expected to need alone from now on.

        A Dirichlet prior over its batch sizes, with the epochs seen so far, the next one included;
        each epoch seen is taken off what is expected of its size while at least one is left there.
        """
        left = self.num_epochs - self.epochs_done
        if left <= 0:
            return 1.0
        if self._expected_at != self.epochs_done:  # it is asked for many times an epoch
            self._expected_at, self._expected = self.epochs_done, self._expect(left)
        seconds, inflated = self._expected
        return seconds * self._scale * left / inflated

    def _expect(self, left: int) -> tuple[float, int]:
        """Return the seconds that are expected by the profile, and of how many epochs those are."""
        seen = self._seen[min(self.epochs_done, self.num_epochs - 1)]
        weights = self.num_epochs / len(seen) + seen
        expected = self.num_epochs * weights / weights.sum()
        expected = expected - np.minimum(seen, np.floor(expected))
        return float(expected @ self._mode_seconds), max(int(expected.sum() + 1), left)

    def note_fair_finish(self, at: int, share: float) -> None:
        """Note when the job would finish on its fair share of the time, seen in a round."""
        done = float(self._ends[self.epochs_done]) * self._scale
        finish = self.submitted + (done + self.remaining()) / share
        self.fair_finishes.append((at, finish))

    def goal(self, now: int) -> float:
        """Return the finish time that is fair: 0.9 of the mean over time, 0.1 of the last, s.

        All notes may be of this very round, where the market decides twice in it: the mean is then
        that of the notes.
        """
        rounds = [at for at, _ in self.fair_finishes] + [now]
        finishes = np.array([finish for _, finish in self.fair_finishes])
        spans = np.diff(rounds)
        # All in this round: where it decides more than once, what was seen last.
        mean = spans / spans.sum() @ finishes if spans.max() > 0 else finishes[-1]
        return float(0.9 * mean + 0.1 * finishes[-1])
