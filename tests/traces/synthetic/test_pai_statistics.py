"""A full-size synthetic PAI meets what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.companions import TASK_COLUMNS
from windtunnel.traces.synthetic.generate import generate
from windtunnel.traces.synthetic.published import published
from windtunnel.traces.synthetic.request_facts import RequestFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

pytestmark = pytest.mark.slow

#: Percentage points of what was read off a plot.
PLOT = 1.0


@pytest.fixture(scope="module")
def jobs() -> pa.Table:
    """All jobs of the real size, those without a GPU included."""
    return generate("pai", cpu_jobs=True).jobs


def column(jobs: pa.Table, name: str) -> NDArray[np.float64]:
    return jobs[name].to_numpy(zero_copy_only=False)


def facts() -> RequestFacts:
    known = published("pai")
    assert isinstance(known, RequestFacts)
    return known


def test_jobs_and_what_is_known_of_them(jobs: pa.Table) -> None:
    on_gpu = column(jobs, "num_gpus") > 0
    assert jobs.num_rows == 1_260_920
    assert on_gpu.sum() == 1_037_085
    known = jobs["duration"].is_valid().to_numpy()
    assert known.sum() == 739_734
    assert not known[~on_gpu].any()
    for name in ("start_time", "end_time", "wait_time"):
        assert (jobs[name].is_valid().to_numpy() == known).all()


def test_run_times_meet_every_knot_mean_median_and_maximum(jobs: pa.Table) -> None:
    duration = column(jobs, "duration")
    assert [int((duration <= 2**k).sum()) for k in range(22)] == facts().duration.counts
    assert np.nanmean(duration) == pytest.approx(4787.109, abs=1e-3)
    assert round(float(np.nanmedian(duration)), 3) == 480.667
    assert np.nanmax(duration) == 626_371
    assert np.nanmin(duration) > 0
    # A mean of so many whole seconds.
    total = duration * column(jobs, "num_tasks")
    assert np.nanmax(np.abs(total - np.rint(total))) < 1e-5


def test_knots_and_medians_hold_for_another_seed() -> None:
    other = generate("pai", seed=77).jobs
    duration = column(other, "duration")
    assert other.num_rows == 1_037_085
    assert [int((duration <= 2**k).sum()) for k in range(22)] == facts().duration.counts
    assert np.nanmean(duration) == pytest.approx(4787.109, abs=1e-3)
    assert round(float(np.nanmedian(duration)), 3) == 480.667
    assert np.nanmedian(column(other, "wait_time")) == 9


def test_requests_of_a_task(jobs: pa.Table) -> None:
    plan = column(jobs, "plan_gpu") / 100
    asked = column(jobs, "num_gpus") / column(jobs, "num_tasks")
    assert np.allclose(np.nan_to_num(plan), asked)
    plan = plan[~np.isnan(plan)]
    assert plan.mean() == pytest.approx(0.683, abs=5e-4)
    assert np.median(plan) == 0.5
    assert plan.max() == 8
    for low, high, share in (
        (0, 0.2499, 14.5),
        (0.25, 0.4999, 26),
        (0.5, 0.9999, 13),
        (1, 1, 42.5),
        (1.0001, 8, 3),
    ):
        assert 100 * ((plan >= low) & (plan <= high)).mean() == pytest.approx(share, abs=PLOT)
    for limit, share in ((1, 97.074), (2, 98.65), (4, 99.108), (8, 100)):
        assert 100 * (plan <= limit).mean() == pytest.approx(share, abs=0.05)


def test_gpu_time_by_request(jobs: pa.Table) -> None:
    plan = column(jobs, "plan_gpu") / 100
    gpu_time = np.nan_to_num(plan * column(jobs, "duration"))
    for limit, share in ((1, 68.125), (2, 72.889), (4, 78.651), (8, 100)):
        assert 100 * gpu_time[plan <= limit].sum() / gpu_time.sum() == pytest.approx(
            share, abs=0.05
        )


def test_waits_by_type_and_class(jobs: pa.Table) -> None:
    wait, plan = column(jobs, "wait_time"), column(jobs, "plan_gpu")
    assigned = column(jobs, "gpu_type_assigned")
    assert np.nanmean(wait) == pytest.approx(401.742, abs=1e-3)
    assert np.nanmedian(wait) == 9
    v100 = np.isin(assigned, ["V100", "V100M32"])
    for those, quantile, expected in (
        (v100, 0.5, 113),
        (v100, 0.9, 13_709),
        (assigned == "MISC", 0.5, 11),
        (assigned == "MISC", 0.9, 360),
        (assigned == "T4", 0.5, 3),
        (plan < 100, 0.9, 497),
        (plan >= 100, 0.9, 1150),
    ):
        assert np.nanquantile(wait[those], quantile) == expected
    duration = column(jobs, "duration")
    short = duration <= np.nanmedian(duration)
    long = duration > np.nanmedian(duration)
    assert (wait > duration)[short].mean() == pytest.approx(0.09, abs=0.001)
    assert (wait > duration)[long].mean() == pytest.approx(0.03, abs=0.005)


def test_types(jobs: pa.Table) -> None:
    assigned = column(jobs, "gpu_type_assigned")
    on_gpu = column(jobs, "num_gpus") > 0
    for name, share in (("T4", 21.5), ("MISC", 67), ("P100", 7), ("V100", 2.5), ("V100M32", 2)):
        assert 100 * (assigned == name)[on_gpu].mean() == pytest.approx(share, abs=0.01)
    accepted = column(jobs, "gpu_type")
    v100 = np.isin(assigned, ["V100", "V100M32"])
    assert set(accepted[v100]) == {"V100|V100M32"}
    assert set(accepted[~v100]) == {None}


def test_gangs(jobs: pa.Table) -> None:
    tasks = column(jobs, "num_tasks")
    total = tasks.sum()
    assert total / 1e6 == pytest.approx(7.5, abs=0.051)
    for least, share in ((2, 85), (10, 72), (50, 43), (100, 24), (200, 11), (400, 6)):
        assert 100 * tasks[tasks >= least].sum() / total == pytest.approx(share, abs=PLOT)
    assert tasks.max() == 600
    gpus = column(jobs, "num_gpus")
    # Published of another sum: GPUs asked for by all tasks of a job, at most one: 82 percent.
    assert 100 * (gpus[gpus > 0] <= 1).mean() == pytest.approx(82, abs=PLOT)


def test_users_and_recurrence(jobs: pa.Table) -> None:
    of_users = np.array([r["counts"] for r in jobs["user"].value_counts().to_pylist()])
    assert len(of_users) == 1310
    for limit, share in ((10, 20), (100, 54), (1000, 91)):
        assert 100 * (of_users <= limit).mean() == pytest.approx(share, abs=0.1)
    groups = jobs.group_by("template").aggregate(
        [("user", "count_distinct"), ("plan_gpu", "count_distinct"), ("job_id", "count")]
    )
    runs = groups["job_id_count"].to_numpy()
    assert runs[runs >= 5].sum() / jobs.num_rows == pytest.approx(0.65, abs=1e-5)
    assert groups["user_count_distinct"].to_numpy().max() == 1
    # Jobs of a group ask for the same, but where a group stands on a border.
    assert (groups["plan_gpu_count_distinct"].to_numpy() > 1).sum() <= 40


def test_amounts_and_hours(jobs: pa.Table) -> None:
    cores, memory = column(jobs, "plan_cpu") / 100, column(jobs, "plan_mem")
    assert np.quantile(cores, 0.95) == 12
    assert np.quantile(memory, 0.95) == 59
    assert 100 * (cores <= 6).mean() == pytest.approx(72, abs=0.01)
    assert 100 * (memory <= 30).mean() == pytest.approx(78, abs=0.01)
    # Two months of independent hours: four standard errors of the swing and of the counts.
    hour = (column(jobs, "submit_time") // 3600 % 24).astype(int)
    by_hour = np.bincount(hour, minlength=24) / 62
    for at, median in ((0, 1100), (3, 450), (10, 1100), (11, 1100), (17, 1050)):
        expected = median / np.mean(facts().profile.hours) * jobs.num_rows / 62 / 24
        assert by_hour[at] == pytest.approx(expected, rel=0.05)


@pytest.mark.data
def test_every_published_point(
    jobs: pa.Table, acme_rows: Callable[[str], list[dict[str, str]]]
) -> None:
    duration = column(jobs, "duration")
    rows = [r for r in acme_rows("figure_cdf_points.csv") if r["cluster"] == "PAI"]
    assert len(rows) == 22
    for row in rows:
        assert int((duration <= int(row["x_seconds"])).sum()) == int(row["count_le_x"]), row


def test_tasks_have_the_mean_run_time_of_their_job_and_use_what_they_use() -> None:
    trace = generate("pai", jobs=30_000, seed=3, cpu_jobs=True, tasks=True)
    jobs, tasks = trace.jobs, trace.tasks
    assert tasks.schema.names == [c.name for c in TASK_COLUMNS]
    assert tasks.num_rows == int(column(jobs, "num_tasks").sum())
    assert len(tasks["task_id"].unique()) == tasks.num_rows
    run = column(tasks, "end_time") - column(tasks, "start_time")
    _, job = np.unique(column(tasks, "job_id"), return_inverse=True)
    mean = np.bincount(job, run) / np.bincount(job)
    assert np.allclose(mean, column(jobs, "duration"), rtol=1e-6, equal_nan=True)
    for used, asked, share in (
        ("cpus_used", "num_cpus", 0.19),
        ("gpus_used", "num_gpus", 0.03),
        ("mem_used_gib", "mem_gib", 0.0412),
    ):
        known = tasks[used].is_valid().to_numpy()
        over = (column(tasks, used) > column(tasks, asked))[known].mean()
        assert over == pytest.approx(share, abs=1e-4), used
    assert trace.metadata.settings["tasks"] is True
    again = generate("pai", jobs=30_000, seed=3, cpu_jobs=True, tasks=True).tasks
    assert again.equals(tasks)
    alone = generate("pai", jobs=30_000, seed=3, cpu_jobs=True)
    assert alone.tasks is None
    assert alone.jobs.equals(jobs)
