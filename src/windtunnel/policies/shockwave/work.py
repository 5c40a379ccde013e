"""What Shockwave's mechanism is given: the jobs to run and the GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.throughput.batch_sizes import Kind
    from windtunnel.throughput.epoch_profile import EpochProfile


@dataclass(frozen=True)
class TrainingJob:
    """A job whose batch size may change.

    Attributes:
        name: its id, for messages.
        gpus: of the gang; may be a part of one.
        submit: s.
        profile: what is planned of it.
        kind: model, first batch size, mode; None = its batch size is not known, and stays.
        steps: in all, at the first batch size.
        speeds: steps per second of the gang by batch size, 0 = never measured.
    """

    name: str
    gpus: float
    submit: float
    profile: EpochProfile
    kind: Kind | None = None
    steps: int = 0
    speeds: Mapping[int, float] = field(default_factory=dict)


class InPhase:
    """A job whose work is known by the seconds left of its profile.

    Args:
        job: the job.
        seconds_left: alone on its GPUs.

    Attributes:
        epochs_done: whole epochs.
        speed: steps per second at the present batch size.
        left: steps to go at the present batch size.
    """

    def __init__(self, job: TrainingJob, seconds_left: float) -> None:
        self.job = job
        profile = job.profile
        done = max(profile.duration - seconds_left, 0.0)
        ends = profile.ends
        self.epochs_done = min(int(ends.searchsorted(done, side="right")), profile.num_epochs)
        at = min(self.epochs_done, profile.num_epochs - 1)
        self.speed = job.speeds.get(int(profile.batch_sizes[at]), 1.0) or 1.0
        self.left = seconds_left * self.speed


class Progress:
    """How far a job of the published rounds is, in whole steps, and at which batch size.

    Args:
        job: the job.

    Attributes:
        total: steps in all, counted at the present batch size.
        done: of these.
        run_time: seconds that count against the cut.
        asked: the batch size asked for, carried out when the job next hands in a round; or None.
    """

    def __init__(self, job: TrainingJob) -> None:
        if job.kind is None:
            raise SpecError("jobs", f"job {quote(job.name)} has no batch size.")
        self.job, self.kind = job, job.kind
        self.batch_size = job.kind.batch_size
        self.total, self.done = job.steps, 0
        self.run_time = 0.0
        self.asked: int | None = None

    @property
    def speed(self) -> float:
        """Steps per second at the present batch size."""
        return self.job.speeds[self.batch_size]

    @property
    def left(self) -> int:
        """Steps to go at the present batch size; a change of it may have left none."""
        return max(self.total - self.done, 0)

    @property
    def epochs_begun(self) -> int:
        """Epochs done or begun."""
        return -(-self.done // self.kind.steps_per_epoch(self.batch_size))

    @property
    def epochs_done(self) -> int:
        """Whole epochs."""
        return self.done // self.kind.steps_per_epoch(self.batch_size)

    def rescale(self) -> None:
        """Carry out the change of batch size that was asked for, if any: a begun epoch counts."""
        kind, size = self.kind, self.asked
        self.asked = None
        grows = kind.batch_size != kind.largest or kind.model == "Transformer"
        if size is None or not grows or not self.job.speeds.get(size):
            return
        epochs = -(-self.total // kind.steps_per_epoch(self.batch_size))
        scaled = -(-self.total * self.batch_size // size)
        begun, per_epoch = self.epochs_begun, kind.steps_per_epoch(size)
        self.total = scaled if -(-scaled // per_epoch) == epochs else per_epoch * epochs
        self.done = begun * per_epoch
        self.batch_size = size


#: What policies see of a job that is here: how fast it is now, and how far.
InTraining: TypeAlias = InPhase | Progress
