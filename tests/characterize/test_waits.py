"""Wait against run time, by halves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.waits import waited_share_cdf, waited_shares
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def _jobs() -> Any:
    # Run times 10, 20, 30; waits 30, 20, 0; one job took no time at all, one has no run time.
    return as_jobs(
        {
            "submit_time": [0, 0, 0, 0, 0],
            "start_time": [30, 20, 0, 0, 5],
            "end_time": [40, 40, 30, 0, 10],
            "duration": [10, 20, 30, 0, None],
            "num_gpus": [1] * 5,
        }
    )


def test_waited_shares_by_hand(backend: Backend) -> None:
    short, long, unknown = waited_shares(backend(_jobs())).to_pylist()
    # The median of 0, 10, 20, 30 is 15.
    assert (short["half"], short["median_run"]) == ("short", 15.0)
    assert (short["n"], short["left_out"], short["num_over"]) == (1, 1, 1)
    assert short["over_share"] == 1.0
    assert short["p50"] == 0.75
    assert (long["half"], long["n"], long["num_over"]) == ("long", 2, 0)
    assert long["avg"] == 0.25
    assert (unknown["half"], unknown["n"], unknown["p50"]) == ("(none)", 1, 0.5)


def test_exactly_half_is_not_more_than_half(backend: Backend) -> None:
    assert waited_shares(backend(_jobs()))["num_over"].to_pylist() == [1, 0, 0]
    assert waited_shares(backend(_jobs()), over=0.25)["num_over"].to_pylist() == [1, 1, 1]


@EXAMPLES
@given(job_rows())
def test_halves_equal_plain_python(rows: list[Any]) -> None:
    members, _ = asked(rows, "all")
    runs = [r["duration"] for r in members if r["duration"] is not None]
    median = float(np.median(runs)) if runs else None

    def half(row: dict[str, Any]) -> str:
        if row["duration"] is None:
            return "(none)"
        return "short" if row["duration"] <= median else "long"

    found = waited_shares(table_of(rows)).to_pylist()
    curve = waited_share_cdf(table_of(rows), [0.0, 0.5, 1.0]).to_pylist()
    assert {row["half"] for row in found} == {half(r) for r in members}
    for row in found:
        mine = [r for r in members if half(r) == row["half"]]
        ratios = [r["wait_share"] for r in mine if r["wait_share"] is not None]
        assert row["median_run"] == median
        assert row["n"] == len(ratios)
        assert row["left_out"] == len(mine) - len(ratios)
        assert row["num_over"] == sum(r > 0.5 for r in ratios)
        assert row["p90"] == (pytest.approx(np.percentile(ratios, 90)) if ratios else None)
        points = [p["count"] for p in curve if p["half"] == row["half"]]
        assert points == [sum(r <= x for r in ratios) for x in (0.0, 0.5, 1.0)]


def test_no_jobs_and_bad_shares() -> None:
    empty = as_jobs({"submit_time": [], "duration": [], "num_gpus": []})
    assert waited_shares(empty).num_rows == 0
    assert waited_share_cdf(empty, [0.5]).num_rows == 0
    with pytest.raises(SpecError, match="over"):
        waited_shares(empty, over=2)


def test_of_pai_the_completion_time_is_the_tasks_own(backend: Backend) -> None:
    """The notebook's wait_time / (task end - task start), though a task ends before it starts."""
    jobs = as_jobs(
        {
            "submit_time": [0, 0, 0, 0, 0, 0],
            "start_time": [30, 20, None, 5, 7, 0],
            "end_time": [None, 100, 50, None, None, 0],
            "duration": [10, 20, 30, 40, 50, 60],
            "num_gpus": [1] * 6,
            # The first ends before its instance starts, the fifth at once; the third's instance
            # starts before it; the last takes no time and waits none.
            "instance_start": pa.array([30.0, 20.0, -10.0, 5.0, 7.0, 0.0]),
            "task_end": pa.array([20.0, 100.0, 50.0, None, 0.0, 0.0]),
        }
    )
    short, long = waited_shares(backend(jobs)).to_pylist()
    assert (short["n"], short["num_over"], short["p50"]) == (3, 1, 0.2)  # 1.5, 0.2, -0.2
    assert short["avg"] == pytest.approx(0.5)
    assert (long["n"], long["num_over"], long["left_out"]) == (1, 1, 2)
    curve = waited_share_cdf(backend(jobs), [0.0, 0.2, 1.0]).to_pylist()
    assert [row["count"] for row in curve] == [1, 2, 2, 0, 0, 0]
