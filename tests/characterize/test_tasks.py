"""Classes, users and the week's rhythm, against plain Python on the same rows."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.characterize.population import SHARING
from windtunnel.characterize.tasks import (
    ASSIGNED,
    class_shares,
    jobs_per_user,
    requests_over_week,
    run_times_by_type,
)
from windtunnel.companions import TASK_COLUMNS, companion
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def _jobs(**columns: list[Any]) -> pa.Table:
    count = len(next(iter(columns.values())))
    needed = {"submit_time": [0.0] * count, "duration": [1.0] * count, "num_gpus": [1.0] * count}
    return as_jobs(needed | columns)


def test_classes_by_hand(backend: Backend) -> None:
    jobs = _jobs(
        num_gpus=[0.1, 0.5, 2.0, 1.0, 8.0, 0.0, None, 0.5],
        num_tasks=[1, 2, 8, None, 4, 1, 1, 1],
    )
    found = class_shares(backend(jobs)).to_pydict()
    assert found["sharing"] == [*SHARING[1:6], "(none)"]
    assert found["num_jobs"] == [1, 2, 1, 1, 1, 0]
    assert found["job_share"] == pytest.approx([1 / 6, 2 / 6, 1 / 6, 1 / 6, 1 / 6, 0])
    assert found["num_tasks"] == [1, 10, 1, 1, 4, 0]
    assert found["task_share"] == pytest.approx([1 / 17, 10 / 17, 1 / 17, 1 / 17, 4 / 17, 0])
    assert found["n"] == [6] * 6
    assert found["unsized"] == [0, 0, 0, 0, 0, 1]


def test_classes_by_another_property() -> None:
    jobs = _jobs(gpu_type=["T4", None, "T4", "MISC"])
    found = class_shares(jobs, by="gpu_type").to_pydict()
    assert dict(zip(found["gpu_type"], found["job_share"], strict=True)) == {
        "MISC": 0.25,
        "T4": 0.5,
        "(none)": 0.25,
    }
    assert class_shares(jobs.slice(0, 0)).num_rows == 0


def test_jobs_per_user_by_hand(backend: Backend) -> None:
    jobs = _jobs(user=["a", "a", "a", "b", "c", "c", None])
    found = jobs_per_user(backend(jobs), (1, 2, 5)).to_pydict()
    assert found["x"] == [1, 2, 5]
    assert found["count"] == [1, 2, 3]
    assert found["percent"] == pytest.approx([100 / 3, 200 / 3, 100])
    assert (found["n"], found["jobs"], found["left_out"]) == ([3] * 3, [6] * 3, [1] * 3)


@given(
    users=st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=30),
    gpus=st.lists(st.sampled_from([0.0, 1.0, None]), min_size=30, max_size=30),
)
@settings(max_examples=20, deadline=None)
def test_jobs_per_user_equals_a_count(users: list[str | None], gpus: list[float | None]) -> None:
    jobs = _jobs(user=pa.array(users, pa.string()), num_gpus=gpus[: len(users)])  # type: ignore[arg-type]
    asked = [u for u, g in zip(users, gpus, strict=False) if g]
    counts = Counter(u for u in asked if u is not None)
    found = jobs_per_user(jobs, (1, 3, 6), where="gpu").to_pydict()
    assert found["count"] == [sum(n <= x for n in counts.values()) for x in (1, 3, 6)]
    assert found["n"] == [len(counts)] * 3
    assert found["jobs"] == [counts.total()] * 3
    assert found["left_out"] == [asked.count(None)] * 3
    unsized = sum(g is None for _, g in zip(users, gpus, strict=False))
    assert found["unsized"] == [unsized] * 3


def test_run_times_are_those_of_jobs_that_ended_well(backend: Backend) -> None:
    jobs = _jobs(
        duration=[1.0, 5.0, 3.0, 7.0, 100.0],
        gpu_type=["V100", None, None, None, None],
        status=["completed", "failed", "completed", None, "completed"],
    ).append_column(ASSIGNED, pa.array(["T4", "T4", "T4", "T4", "P100"]))
    found = run_times_by_type(backend(jobs), (1, 10)).to_pydict()
    assert found[ASSIGNED] == ["P100", "P100", "T4", "T4"]
    assert found["count"] == [0, 0, 1, 2]
    assert found["n"] == [1, 1, 2, 2]
    assert found["other_status"] == [2] * 4
    plain = run_times_by_type(jobs.drop_columns([ASSIGNED]), (1, 10)).to_pydict()
    assert plain["gpu_type"] == ["V100", "V100", "(none)", "(none)"]


def test_the_week_by_hand(backend: Backend) -> None:
    # 1970-01-25 00:00:03 in Shanghai: the notebook's first hour, a Sunday.
    first = 24 * 86_400 - 8 * 3_600 + 3.0
    jobs = _jobs(
        submit_time=[first, first + 60, first + 7 * 86_400, first + 3_600, None],
        num_gpus=[1.0, 0.5, 2.0, 4.0, 9.0],
        num_cpus=[6.0, None, 6.0, 6.0, 9.0],
        mem_gib=[None, None, None, None, 9.0],
    )
    found = requests_over_week(
        backend(jobs), epoch="1970-01-01T00:00:00+00:00", zone="Asia/Shanghai"
    ).to_pylist()
    assert len(found) == 168
    sunday, later = found[144], found[145]
    assert sunday["hour_of_week"] == 144
    assert (sunday["hours"], sunday["count"], sunday["rate"]) == (2, 3, 1.5)
    assert (sunday["gpu"], sunday["cpu"], sunday["mem"]) == (1.75, 6.0, 0.0)
    assert (later["hours"], later["count"], later["gpu"]) == (1, 1, 4.0)
    assert (later["n"], later["left_out"], later["why"]) == (4, 1, "no submit_time: 1")
    assert sum(row["count"] for row in found) == 4


def test_tasks_have_a_week_too_and_nothing_has_none() -> None:
    tasks = companion(
        TASK_COLUMNS,
        {
            "task_id": pa.array(["a", "b"]),
            "job_id": pa.array(["j", "j"]),
            "start_time": pa.array([0.0, 7_200.0]),
            "num_gpus": pa.array([0.5, 0.5]),
        },
    )
    found = requests_over_week(tasks, time="start_time").to_pydict()
    assert found["hour_of_week"] == [0, 1, 2]  # without an epoch, time 0 is a Monday's midnight
    assert found["gpu"] == [0.5, 0.0, 0.5]
    empty = requests_over_week(tasks.slice(0, 0), time="start_time")
    assert empty.num_rows == 0
    with pytest.raises(SpecError, match="Nowhere"):
        requests_over_week(tasks, zone="Nowhere/Town", time="start_time")


@pytest.mark.slow
@given(
    times=st.lists(st.integers(-400_000, 2_000_000).map(float), min_size=1, max_size=20),
    zone=st.sampled_from(["Asia/Shanghai", "America/Los_Angeles", "UTC"]),
)
@settings(max_examples=25, deadline=None)
def test_the_week_is_that_of_the_wall_clock(times: list[float], zone: str) -> None:
    epoch = "2017-10-30T00:00:00+00:00"  # a week before the clocks go back in America
    start = datetime.fromisoformat(epoch)
    counts: Counter[int] = Counter()
    for time in times:
        local = (start + timedelta(seconds=time)).astimezone(ZoneInfo(zone))
        counts[local.weekday() * 24 + local.hour] += 1
    found = requests_over_week(_jobs(submit_time=times), epoch=epoch, zone=zone).to_pylist()
    assert {row["hour_of_week"]: row["count"] for row in found if row["count"]} == counts


def test_an_hour_that_the_clock_shows_twice_is_two_hours_and_one_that_it_skips_none() -> None:
    # In Los Angeles the clock goes back on Sunday, 5 November 2017, at 2 h, and on in March.
    zone = "America/Los_Angeles"
    jobs = _jobs(submit_time=[0.0, 3_600.0, 7_200.0], num_gpus=[1.0, 1.0, 1.0])
    back = requests_over_week(jobs, epoch="2017-11-05T08:30:00+00:00", zone=zone).to_pylist()
    assert [(row["hour_of_week"], row["hours"], row["count"]) for row in back] == [
        (145, 2.0, 2),
        (146, 1.0, 1),
    ]
    on = requests_over_week(jobs, epoch="2018-03-11T09:30:00+00:00", zone=zone).to_pylist()
    assert [(row["hour_of_week"], row["hours"], row["count"]) for row in on] == [
        (145, 1.0, 1),
        (147, 1.0, 1),
        (148, 1.0, 1),
    ]
