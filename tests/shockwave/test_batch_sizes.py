"""When batch sizes change: cases worked by hand, most of which the published trace has not."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from windtunnel.policies.shockwave.forecast import Forecast
from windtunnel.policies.shockwave.work import Progress, TrainingJob
from windtunnel.throughput.batch_sizes import Kind, batch_size_request
from windtunnel.throughput.epoch_profile import EpochProfile, equal_epochs


def runs(kind: Kind, epochs: int) -> str:
    """Return planned batch sizes as ``size x epochs`` runs."""
    return " ".join(f"{size}x{len(list(of))}" for size, of in groupby(kind.planned(epochs)))


@pytest.mark.parametrize(
    ("model", "size", "gpus", "mode", "epochs", "planned"),
    [
        # The pattern of the second doubling on leaves the last epoch at the first size.
        ("LM", 10, 1, "gns", 23, "10x11 20x10 40x1 10x1"),
        ("LM", 10, 1, "gns", 22, "10x11 20x10 10x1"),
        ("LM", 10, 1, "gns", 21, "10x11 20x10"),  # no more epochs than the second step
        ("LM", 10, 1, "gns", 11, "10x11"),  # no more than the first
        ("LM", 40, 2, "gns", 50, "40x11 80x39"),
        ("LM", 40, 8, "gns", 50, "40x50"),  # nobody profiled gangs of 8
        ("ResNet-18", 128, 2, "gns", 60, "128x41 256x19"),
        ("Transformer", 16, 1, "gns", 30, "16x30"),
        # Critical epochs, and all of the first 0.3 of the training.
        ("LM", 5, 1, "accordion", 20, "5x10 80x10"),
        ("LM", 5, 1, "accordion", 100, "5x31 80x69"),
        ("Recommendation", 4096, 1, "accordion", 75, "4096x23 8192x37 4096x10 8192x5"),
        ("ResNet-50", 64, 1, "accordion", 45, "64x14 128x16 64x10 128x5"),
        ("CycleGAN", 1, 1, "accordion", 9, "1x9"),
        ("ResNet-18", 32, 1, "static", 40, "32x40"),
    ],
)  # fmt: skip
def test_planned_sizes(
    model: str, size: int, gpus: int, mode: str, epochs: int, planned: str
) -> None:
    assert runs(Kind(model, size, gpus, mode), epochs) == planned


def test_the_plan_of_resnet_50_has_no_regimes_from_epoch_600_on() -> None:
    kind = Kind("ResNet-50", 64, 1, "accordion")
    sizes = kind.planned(700)
    assert [sizes[at] for at in (580, 575, 600, 605, 665)] == [128, 64, 128, 128, 128]
    assert kind.is_critical(605)  # in the simulator they never end


@pytest.mark.parametrize(
    ("kind", "size", "epoch", "asked"),
    [
        (Kind("LM", 5, 1, "accordion"), 5, 9, None),
        (Kind("LM", 5, 1, "accordion"), 5, 10, 80),
        (Kind("LM", 80, 1, "accordion"), 80, 10, None),  # it has the largest
        (Kind("ResNet-50", 32, 1, "accordion"), 128, 29, None),
        (Kind("ResNet-50", 32, 1, "accordion"), 128, 30, 32),
        (Kind("ResNet-50", 16, 1, "accordion"), 16, 31, None),  # critical, and at its own
        (Kind("LM", 10, 1, "gns"), 10, 9, None),
        (Kind("LM", 10, 1, "gns"), 10, 10, 20),  # of the epoch to come
        (Kind("LM", 10, 1, "gns"), 20, 60, 40),  # one doubling at a time
        (Kind("LM", 40, 1, "gns"), 80, 60, None),
        (Kind("LM", 10, 1, "static"), 10, 60, None),
    ],
)
def test_requests_in_the_simulator(kind: Kind, size: int, epoch: int, asked: int | None) -> None:
    assert batch_size_request(kind, size, epoch) == asked


def progress(kind: Kind, steps: int, speeds: dict[int, float]) -> Progress:
    profile = EpochProfile(np.array([kind.batch_size]), np.array([1.0]))
    return Progress(TrainingJob("a", kind.gpus, 0.0, profile, kind, steps, speeds))


def test_a_change_counts_a_begun_epoch_as_done() -> None:
    job = progress(Kind("LM", 10, 1, "gns"), 100_000, {10: 1.0, 20: 2.0})
    job.done, job.asked = 5_969, 20  # 5,968 steps an epoch: the second has begun
    job.rescale()
    # ceil(59,675 / 20) = 2,984 steps an epoch; 17 epochs in all, as before.
    assert (job.batch_size, job.done, job.total) == (20, 2 * 2_984, 50_000)
    job.done, job.asked = 50_000, 40
    job.rescale()
    assert job.batch_size == 20  # never measured: refused


def test_a_change_keeps_the_number_of_epochs() -> None:
    # 2 epochs of 3,125 steps.
    job = progress(Kind("ResNet-18", 16, 1, "accordion"), 6_250, {16: 1.0, 256: 1.0})
    job.asked = 256
    job.rescale()
    # 6,250 x 16 / 256 = 390.6 -> 391 steps: at 196 an epoch two epochs, as before.
    assert (job.total, job.done) == (391, 0)
    # 3,126 steps are two epochs; 3,126 x 16 / 256 -> 196 steps would be one.
    job = progress(Kind("ResNet-18", 16, 1, "accordion"), 3_126, {16: 1.0, 256: 1.0})
    job.asked = 256
    job.rescale()
    assert job.total == 2 * 196


def test_jobs_of_the_largest_first_size_never_change_but_transformers() -> None:
    job = progress(Kind("LM", 80, 1, "gns"), 100, {80: 1.0, 160: 1.0})
    job.asked = 160
    job.rescale()
    assert job.batch_size == 80
    job = progress(Kind("Transformer", 128, 1, "gns"), 100, {128: 1.0, 256: 1.0})
    job.asked = 256
    job.rescale()
    assert job.batch_size == 256


@pytest.mark.parametrize(
    ("seen", "now", "goal"),
    [
        ([(3, 100.0)], 3, 100.0),
        ([(3, 100.0), (4, 200.0)], 5, 0.9 * 150 + 0.1 * 200),
        # Twice in one round: what was seen last.
        ([(3, 100.0), (3, 200.0)], 3, 200.0),
        ([(3, 100.0), (3, 200.0)], 5, 200.0),
    ],
)
def test_the_fair_finish_is_a_mean_over_time(
    seen: list[tuple[int, float]], now: int, goal: float
) -> None:
    forecast = Forecast(TrainingJob("a", 1, 0.0, equal_epochs(60.0)), 0.0, 10.0)
    forecast.fair_finishes = seen
    assert forecast.goal(now) == pytest.approx(goal)
