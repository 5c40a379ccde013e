"""Scaled-down traces keep the shape of the real ones, as near as theory says."""

from __future__ import annotations

import numpy as np
import pytest

from windtunnel.traces.synthetic.generate import generate
from windtunnel.traces.synthetic.published import published
from windtunnel.traces.synthetic.request_facts import RequestFacts
from windtunnel.traces.synthetic.size_facts import SizeFacts

SIZED = ("philly", "helios-venus", "helios-earth", "helios-saturn", "helios-uranus")


def durations_of(name: str) -> tuple[list[int], int]:
    """Return the published counts at 2^k s and how many jobs they are out of."""
    facts = published(name)
    assert isinstance(facts, SizeFacts | RequestFacts)
    total = facts.trace.gpu_jobs if isinstance(facts, SizeFacts) else facts.timed_jobs
    return facts.duration.counts, total


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", [*SIZED, "pai"])
@pytest.mark.parametrize("jobs", [1, 17, 400, 5000, 50_000])
def test_run_times_stay_within_one_job_a_bin_of_the_published_curve(name: str, jobs: int) -> None:
    # Largest remainders move each bin by less than a job, so a cumulative count at the k-th of
    # K points by less than K: the Kolmogorov-Smirnov distance at the knots is below K / n.
    counts, total = durations_of(name)
    duration = generate(name, jobs=jobs, seed=8).jobs["duration"].drop_null().to_numpy()
    facts = published(name)
    assert isinstance(facts, SizeFacts | RequestFacts)
    bins = len(counts) + len(facts.duration.marks) + 1
    for k, count in enumerate(counts):
        reached = int((duration <= 2**k).sum())
        assert abs(reached - count / total * len(duration)) <= bins


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", [*SIZED, "pai"])
def test_the_whole_curve_stays_within_the_theoretical_distance(name: str) -> None:
    # Between knots values are independent draws moved a little: at most the Dvoretzky-Kiefer-
    # Wolfowitz distance at one in 10^9 for both samples, beside K / n for the bins.
    counts, _ = durations_of(name)
    small, large = (
        np.sort(generate(name, jobs=jobs, seed=1).jobs["duration"].drop_null().to_numpy())
        for jobs in (8000, 80_000)
    )
    at = np.unique(small)
    below = np.searchsorted(small, at, side="right") / len(small)
    distance = np.abs(below - np.searchsorted(large, at, side="right") / len(large)).max()
    bound = sum(np.sqrt(np.log(2e9) / (2 * len(v))) + len(counts) / len(v) for v in (small, large))
    assert distance <= bound


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("jobs", [3, 400, 12_345])
def test_sizes_and_states_stay_within_one_job_of_their_share(name: str, jobs: int) -> None:
    facts = published(name)
    assert isinstance(facts, SizeFacts)
    table = generate(name, jobs=jobs, seed=2).jobs
    assert table.num_rows == jobs
    gpus = table["num_gpus"].to_numpy()
    status = table["status"].to_numpy(zero_copy_only=False)
    for size, real in zip(facts.sizes.gpus, facts.sizes.jobs, strict=True):
        assert abs((gpus == size).sum() - real / facts.trace.gpu_jobs * jobs) < 1
    classes = len(facts.status.by_gpus)
    for state in facts.status.names:
        real = sum(entry.jobs[state] for entry in facts.status.by_gpus)
        inside = (status == state).sum()
        # Sizes are rounded once, the states of each class of sizes again.
        assert abs(inside - real / facts.trace.gpu_jobs * jobs) <= classes + len(facts.sizes.gpus)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SIZED)
def test_gpu_time_by_size_and_mean_wait_stay_near_their_shares(name: str) -> None:
    facts = published(name)
    assert isinstance(facts, SizeFacts)
    table = generate(name, jobs=60_000, seed=1).jobs
    gpus = table["num_gpus"].to_numpy()
    weight = gpus * table["duration"].to_numpy()
    for limit, share in zip(facts.size_cdf.gpus, facts.size_cdf.gpu_time, strict=True):
        assert 100 * weight[gpus <= limit].sum() / weight.sum() == pytest.approx(share, abs=0.5)
    wait = table["start_time"].to_numpy() - table["submit_time"].to_numpy()
    assert wait.mean() == pytest.approx(facts.trace.mean_queue, rel=1e-4)


def test_parts_of_helios_share_the_jobs_by_largest_remainder() -> None:
    table = generate("helios", jobs=10_000, seed=3, load=0.8).jobs
    counts = {r["values"]: r["counts"] for r in table["cluster"].value_counts().to_pylist()}
    for name, count in counts.items():
        real = published(f"helios-{name.lower()}").trace.gpu_jobs
        assert abs(count - real / 1_580_464 * 10_000) < 1
    # All clusters span the same time.
    submit, cluster = table["submit_time"].to_numpy(), table["cluster"].to_numpy(False)
    assert len({submit[cluster == name].max() for name in counts}) == 1
