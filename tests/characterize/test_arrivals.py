"""Arrivals on the wall clock: against the standard library's calendar, and published data."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES

from windtunnel import open_trace
from windtunnel.characterize.arrivals import arrivals_by, hourly_boxes
from windtunnel.characterize.clock import clock
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from pathlib import Path

    from backends import Backend

#: The clocks of Los Angeles were set back on Sunday, 2017-11-05 at 2:00 local time (9:00 UTC).
FALL = "2017-11-05T00:00:00-07:00"
#: They were set forward on Sunday, 2017-03-12 at 2:00 local time.
SPRING = "2017-03-12T00:00:00-08:00"
LOS_ANGELES = "America/Los_Angeles"
ZONES = (LOS_ANGELES, "Asia/Shanghai", "Asia/Kathmandu", "UTC", "Australia/Lord_Howe")


def _jobs(times: list[float | None], gpus: list[float | None] | None = None) -> pa.Table:
    count = len(times)
    return as_jobs(
        {
            "submit_time": pa.array(times, pa.float64()),
            "duration": pa.array([1.0] * count, pa.float64()),
            "num_gpus": pa.array([1.0] * count if gpus is None else gpus, pa.float64()),
        }
    )


def _local(epoch: str, zone: str, time: float) -> datetime:
    """The standard library's way from seconds to a wall clock."""
    return (datetime.fromisoformat(epoch) + timedelta(seconds=time)).astimezone(ZoneInfo(zone))


_times = st.lists(st.one_of(st.none(), st.integers(0, 400 * 86_400).map(float)), max_size=25)
_epochs = st.sampled_from([FALL, SPRING, "2020-02-28T22:30:00+00:00", "1969-12-31T01:00:00+00:00"])


@EXAMPLES
@given(
    _times,
    _epochs,
    st.sampled_from(ZONES),
    st.sampled_from(["hour", "weekday", "hour_of_week", "month"]),
)
def test_arrivals_equal_the_standard_librarys_calendar(
    times: list[float | None], epoch: str, zone: str, period: str
) -> None:
    label = {
        "hour": lambda t: t.hour,
        "weekday": lambda t: t.weekday(),
        "hour_of_week": lambda t: t.weekday() * 24 + t.hour,
        "month": lambda t: t.strftime("%Y-%m"),
    }[period]
    known = [_local(epoch, zone, t) for t in times if t is not None]
    expected = Counter(label(t) for t in known)
    found = arrivals_by(_jobs(times), period, epoch=epoch, zone=zone).to_pylist()
    assert {row[period]: row["num_jobs"] for row in found if row["num_jobs"]} == expected
    for row in found:
        assert row["n"] == len(known)
        assert row["left_out"] == times.count(None)
        assert row["job_share"] == (row["num_jobs"] / len(known) if known else None)
    if known:
        days = (max(known).date() - min(known).date()).days + 1
        covered = sum(row["seconds"] for row in found)
        assert abs(covered - days * 86_400) <= 7200  # summer time begins or ends
        begin = datetime.combine(min(known).date(), datetime.min.time(), ZoneInfo(zone))
        after = max(known).date() + timedelta(days=1)
        end = datetime.combine(after, datetime.min.time(), ZoneInfo(zone))
        assert covered == (end.timestamp() - begin.timestamp())


def test_the_day_of_the_change_has_25_hours(backend: Backend) -> None:
    # 0:30, 1:30 in summer time, 1:30 in winter time, 23:30.
    jobs = backend(_jobs([1800.0, 5400.0, 9000.0, 24.5 * 3600, None]))
    found = arrivals_by(jobs, "hour", epoch=FALL, zone=LOS_ANGELES).to_pylist()
    assert {row["hour"]: row["num_jobs"] for row in found if row["num_jobs"]} == {0: 1, 1: 2, 23: 1}
    assert [row["seconds"] for row in found] == [3600.0, 7200.0] + [3600.0] * 22
    assert found[1]["per_hour"] == 1.0
    assert found[0]["left_out"] == 1
    boxes = hourly_boxes(jobs, epoch=FALL, zone=LOS_ANGELES)
    assert boxes.num_rows == 24
    assert boxes["max"].to_pylist() == [1, 2, *[0] * 21, 1]


def test_the_day_of_the_other_change_has_23_hours(backend: Backend) -> None:
    jobs = backend(_jobs([1800.0, 2 * 3600.0, 22.5 * 3600]))
    found = arrivals_by(jobs, "hour", epoch=SPRING, zone=LOS_ANGELES).to_pylist()
    assert {row["hour"]: row["num_jobs"] for row in found if row["num_jobs"]} == {0: 1, 3: 1, 23: 1}
    assert found[2]["seconds"] == 0.0
    assert found[2]["per_hour"] is None
    boxes = hourly_boxes(jobs, epoch=SPRING, zone=LOS_ANGELES)
    assert boxes.num_rows == 23


def test_a_trace_without_a_zone_counts_from_a_monday_in_utc(backend: Backend) -> None:
    jobs = backend(_jobs([0.0, 86_400.0, 3 * 3600.0]))
    by_day = arrivals_by(jobs, "weekday")["num_jobs"].to_pylist()
    assert by_day == [2, 1, 0, 0, 0, 0, 0]
    assert arrivals_by(jobs, "hour")["num_jobs"].to_pylist()[:4] == [2, 0, 0, 1]


def test_groups_share_one_span(holed: pa.Table, backend: Backend) -> None:
    found = arrivals_by(backend(holed), "weekday", by="workload", epoch=FALL, zone=LOS_ANGELES)
    assert found["workload"].to_pylist()[::7] == ["Eval", "Pretrain", "SFT", "(none)"]
    assert len(set(found["seconds"].to_pylist()[6::7])) == 1


def test_hourly_boxes_are_over_the_days(backend: Backend) -> None:
    # Three days; at 5 o'clock 1, 2 and 9 jobs, at 6 o'clock none.
    times = [5 * 3600.0] + [86_400 + 5.5 * 3600] * 2 + [2 * 86_400 + 5.9 * 3600] * 9
    found = hourly_boxes(backend(_jobs([*times, None]))).to_pylist()
    assert [row["hour"] for row in found] == list(range(24))
    assert (found[5]["min"], found[5]["median"], found[5]["max"], found[5]["mean"]) == (1, 2, 9, 4)
    assert (found[5]["q1"], found[5]["q3"]) == tuple(np.percentile([1, 2, 9], [25, 75]))
    assert found[6]["max"] == 0
    assert {(row["n"], row["jobs"], row["left_out"]) for row in found} == {(3, 12, 1)}
    gpus = hourly_boxes(_jobs([0.0, 0.0], [2.0, 6.0]), "num_gpus").to_pylist()
    assert gpus[0]["median"] == 8.0


def test_no_jobs_arrive() -> None:
    empty = _jobs([])
    hours = arrivals_by(empty, "hour")
    assert hours["num_jobs"].to_pylist() == [0] * 24
    assert hours["per_hour"].to_pylist() == [None] * 24
    assert arrivals_by(empty, "month").num_rows == 0
    assert arrivals_by(empty, "hour", by="vc").num_rows == 0
    assert hourly_boxes(empty).num_rows == 0


def test_bad_arguments_are_refused() -> None:
    jobs = _jobs([0.0])
    for arguments, words in (
        ({"period": "hours"}, "period"),
        ({"zone": "Mars/Phobos"}, "time zone"),
        ({"epoch": "yesterday"}, "epoch: expected a time such as"),
        ({"epoch": "2020-01-01T00:00:00"}, "offset from UTC"),
    ):
        with pytest.raises(SpecError, match=words):
            arrivals_by(jobs, **arguments)
    with pytest.raises(SpecError, match="calendar"):
        arrivals_by(_jobs([0.0, 1e300]))


@EXAMPLES
@given(st.sampled_from(ZONES), st.integers(0, 800 * 86_400))
def test_a_clock_goes_forth_and_back(zone: str, time: int) -> None:
    wall = clock(FALL, zone, 0.0, 800 * 86_400.0)
    local = wall.local(time)
    expected = _local(FALL, zone, time).replace(tzinfo=None)
    assert datetime(1970, 1, 1) + timedelta(seconds=local) == expected  # noqa: DTZ001
    again = wall.time_of(local)
    assert wall.local(again) == local
    assert again <= time


def _venus(data_dir: Path) -> list[dict[str, str]]:
    path = data_dir / "helios" / "venus_throughput_10min.csv.gz"
    if not path.is_file():
        pytest.skip("no Helios data")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.data
def test_venus_arrivals_by_month_and_hour_are_the_published_ones(data_dir: Path) -> None:
    # The counts per ten minutes of the real trace, each as so many jobs, in local time.
    rows = _venus(data_dir)
    first = datetime.fromisoformat(f"{rows[0]['time']}+08:00")
    times = [
        (datetime.fromisoformat(f"{row['time']}+08:00") - first).total_seconds()
        for row in rows
        for _ in range(int(row["submit_gpu_job"]))
    ]
    epoch = first.astimezone(ZoneInfo("UTC")).isoformat()
    jobs = _jobs(list(times))
    months: Counter[str] = Counter()
    with (data_dir / "helios" / "figure_monthly.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["cluster"] == "Venus" and row["measure"].startswith("gpu_jobs"):
                months[row["month"]] += int(float(row["value"]))
    found = arrivals_by(jobs, "month", epoch=epoch, zone="Asia/Shanghai").to_pylist()
    assert {row["month"]: row["num_jobs"] for row in found} == months
    assert sum(months.values()) == 125_214
    # The last day of the log has no submission.
    covers = (0.0, len(rows) * 600.0 - 1)
    hours = arrivals_by(jobs, "hour", epoch=epoch, zone="Asia/Shanghai", covers=covers).to_pylist()
    seen = 0
    with (data_dir / "helios" / "figure_diurnal.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["cluster"], row["measure"]) == ("Venus", "gpu_jobs_submitted_per_hour"):
                per_hour = hours[int(row["hour"])]["per_hour"]
                assert per_hour == pytest.approx(float(row["value"]), abs=1e-4)
                seen += 1
    assert seen == 24


@pytest.mark.data
def test_philly_arrivals_are_those_of_its_file(data_dir: Path) -> None:
    path = data_dir / "philly" / "philly_sia.csv.gz"
    if not path.is_file():
        pytest.skip("no Philly data")
    trace = open_trace(str(path), format="philly")
    about = trace.metadata
    calendar: dict[str, Any] = {"epoch": about.epoch, "zone": about.zone}
    hours = arrivals_by(trace.jobs, "hour", **calendar)["job_share"].to_pylist()
    assert round(100 * max(hours), 1) == 8.7
    assert round(100 * min(hours), 1) == 2.7
    assert (hours.index(max(hours)), hours.index(min(hours))) == (7, 14)
    days = [
        round(100 * s, 1)
        for s in arrivals_by(trace.jobs, "weekday", **calendar)["job_share"].to_pylist()
    ]
    assert days[4:] == [20.6, 8.7, 8.5]
    assert trace.jobs.num_rows == 82_247
