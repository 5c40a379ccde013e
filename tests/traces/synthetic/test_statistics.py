"""A full-size synthetic trace of Seren or Kalos meets what was published, for any seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.traces.synthetic.generate import generate
from windtunnel.traces.synthetic.published import published
from windtunnel.traces.synthetic.workload_facts import WorkloadFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from conftest import Columns

pytestmark = pytest.mark.slow

#: Percentage points: the size CDF was read from a simplified curve.
CDF_TOLERANCE = 0.05
#: The published box plots of Kalos force 0.24 points more than that at 512 GPUs.
KALOS_512 = 0.30


def counts_up_to(values: NDArray[np.float64], knots: int) -> list[int]:
    return [int((values <= 2**k).sum()) for k in range(knots)]


def box(values: NDArray[np.float64]) -> list[float]:
    q1, median, q3 = np.percentile(values, [25, 50, 75])
    reach = 1.5 * (q3 - q1)
    low, high = values[values >= q1 - reach].min(), values[values <= q3 + reach].max()
    return [float(x) for x in (low, q1, median, q3, high)]


def test_every_duration_knot_is_exact(full: Columns) -> None:
    assert counts_up_to(full.duration, 22) == full.facts.duration.total
    for workload, expected in full.facts.duration.by_type.items():
        assert counts_up_to(full.duration[full.workload == workload], 22) == expected, workload


def test_every_queue_knot_is_exact(full: Columns) -> None:
    for workload, expected in full.facts.queue.by_type.items():
        assert counts_up_to(full.queue[full.workload == workload], 16) == expected, workload
    assert full.queue.max() <= full.facts.trace.max_queue
    assert full.queue.min() >= 0


def test_durations_and_waits_are_whole_seconds_within_the_limits(full: Columns) -> None:
    assert (full.duration == np.floor(full.duration)).all()
    assert (full.queue == np.floor(full.queue)).all()
    assert full.duration.min() >= 1
    assert full.duration.max() <= full.facts.trace.max_duration


def test_box_plots_are_exact(full: Columns) -> None:
    for workload, expected in full.facts.box.items():
        assert box(full.gpus[full.workload == workload]) == expected, workload


@pytest.mark.parametrize("measure", ["jobs", "gpu_time"])
def test_size_cdf(full: Columns, measure: str) -> None:
    weight = np.ones_like(full.gpus) if measure == "jobs" else full.gpu_time
    cdf = full.facts.size_cdf
    for gpus, expected in zip(cdf.gpus, getattr(cdf, measure), strict=True):
        reached = 100.0 * weight[full.gpus <= gpus].sum() / weight.sum()
        known_conflict = (full.facts.trace.cluster, measure, gpus) == ("kalos", "jobs", 512)
        assert abs(reached - expected) <= (KALOS_512 if known_conflict else CDF_TOLERANCE), gpus


def test_gpu_time_shares_to_the_published_digit(full: Columns) -> None:
    shares = full.facts.gpu_time_share
    spent = {t: full.gpu_time[full.workload == t].sum() for t in shares}
    for workload, expected in shares.items():
        assert round(100.0 * spent[workload] / sum(spent.values()), 5) == expected, workload


def test_total_gpu_time_is_exact(full: Columns) -> None:
    assert int(full.gpu_time.sum()) == full.facts.trace.gpu_time


def test_states_by_jobs_and_by_gpu_time(full: Columns) -> None:
    shares = full.facts.status.jobs
    for state, share in shares.items():
        jobs = int((full.status == state).sum())
        assert abs(jobs - share / sum(shares.values()) * len(full.status)) < 1, state
    total = full.gpu_time.sum()
    for state, share in full.facts.status.gpu_time.items():
        assert full.gpu_time[full.status == state].sum() / total == pytest.approx(share, abs=2e-3)


def test_mean_wait_where_published(full: Columns) -> None:
    if full.facts.trace.mean_queue is not None:
        assert full.queue.mean() == pytest.approx(full.facts.trace.mean_queue, abs=1e-3)


def test_medians_and_mean_of_kalos() -> None:
    jobs = generate("kalos").jobs
    duration = jobs["duration"].to_numpy()
    assert np.median(duration) == pytest.approx(124, abs=1)
    assert duration.mean() == pytest.approx(1259.689, rel=1e-3)
    wait = jobs["start_time"].to_numpy() - jobs["submit_time"].to_numpy()
    assert np.median(wait) == pytest.approx(17, abs=1)


@pytest.mark.parametrize("name", ["kalos", "seren"])
def test_cpu_jobs_meet_their_knots_and_leave_gpu_jobs_alone(name: str) -> None:
    both, alone = generate(name, cpu_jobs=True).jobs, generate(name).jobs
    cpu = both.filter(both["num_gpus"].to_numpy() == 0)
    gpu = both.filter(both["num_gpus"].to_numpy() > 0)
    facts = published(name)
    assert isinstance(facts, WorkloadFacts)
    assert cpu.num_rows == facts.trace.cpu_jobs
    assert counts_up_to(cpu["duration"].to_numpy(), 16) == facts.cpu.duration
    # AcmeTrace's cluster_summary.csv: 733.894 s and 118.352 s; the jobs above the knots meet it.
    mean = {"kalos": 118.352, "seren": 733.894}[name]
    assert cpu["duration"].to_numpy().mean() == pytest.approx(mean, abs=5e-4)
    assert cpu["workload"].null_count == cpu.num_rows
    assert (cpu["num_cpus"].to_numpy() > 0).all()
    for column in ("submit_time", "duration", "num_gpus", "workload", "status"):
        assert gpu[column].to_pylist() == alone[column].to_pylist(), column


@pytest.mark.data
def test_every_knot_of_the_published_table(
    full: Columns, acme_rows: Callable[[str], list[dict[str, str]]]
) -> None:
    cluster = full.facts.trace.cluster.capitalize()
    seen = 0
    for row in acme_rows("figure_cdf_points.csv"):
        if row["cluster"] != cluster or row["figure"] == "cpu_job_duration":
            continue
        values = full.queue if row["figure"] == "job_queue_by_type" else full.duration
        if row["type"] != "all":
            values = values[full.workload == row["type"]]
        assert int((values <= int(row["x_seconds"])).sum()) == int(row["count_le_x"]), row
        seen += 1
    assert seen == {"Kalos": 174, "Seren": 250}[cluster]


@pytest.mark.data
def test_our_facts_are_the_published_ones(
    full: Columns, acme_rows: Callable[[str], list[dict[str, str]]]
) -> None:
    facts, cluster = full.facts, full.facts.trace.cluster.capitalize()
    boxes = {
        row["type"]: [float(row[k]) for k in ("whisker_low", "q1", "median", "q3", "whisker_high")]
        for row in acme_rows("figure_gpu_num_box.csv")
        if row["cluster"] == cluster
    }
    assert boxes == facts.box
    for measure in ("jobs", "gpu_time"):
        rows = [
            row
            for row in acme_rows("figure_gpu_num_cdf.csv")
            if row["cluster"] == cluster and row["measure"] == measure
        ]
        assert [int(row["gpu_num_le"]) for row in rows] == facts.size_cdf.gpus
        assert [float(row["cdf_percent_approx"]) for row in rows] == getattr(
            facts.size_cdf, measure
        )
    shares = [row for row in acme_rows("figure_type_shares.csv") if row["cluster"] == cluster]
    assert facts.gpu_time_share == {
        row["type"]: float(row["share_percent"]) for row in shares if row["measure"] == "gpu_time"
    }
    for row in shares:
        if row["measure"] == "count":
            assert int((full.workload == row["type"]).sum()) == int(row["count"])
