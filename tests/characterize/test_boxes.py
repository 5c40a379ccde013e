"""Box plots in matplotlib's convention: by hand, and against the convention written in numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.spread import box_statistics
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def matplotlib_box(values: list[float]) -> dict[str, Any]:
    """The convention as matplotlib documents it (``cbook.boxplot_stats``, ``whis=1.5``)."""
    x = np.array(values)
    q1, median, q3 = np.percentile(x, [25, 50, 75])
    reach = 1.5 * (q3 - q1)
    inside_high, inside_low = x[x <= q3 + reach], x[x >= q1 - reach]
    high = q3 if len(inside_high) == 0 or inside_high.max() < q3 else inside_high.max()
    low = q1 if len(inside_low) == 0 or inside_low.min() > q1 else inside_low.min()
    return {
        "whisker_low": low,
        "q1": q1,
        "median": median,
        "q3": q3,
        "whisker_high": high,
        "min": x.min(),
        "max": x.max(),
        "mean": pytest.approx(x.mean()),
        "outliers_low": (x < low).sum(),
        "outliers_high": (x > high).sum(),
        "n": len(x),
    }


def _jobs(values: list[float | None]) -> Any:
    count = len(values)
    return as_jobs({"submit_time": [0] * count, "duration": values, "num_gpus": [1] * count})


def test_a_box_by_hand(backend: Backend) -> None:
    (row,) = box_statistics(backend(_jobs([1, 2, 3, 4, 100, None])), "duration").to_pylist()
    assert row == {
        "whisker_low": 1.0,
        "q1": 2.0,
        "median": 3.0,
        "q3": 4.0,
        "whisker_high": 4.0,
        "min": 1.0,
        "max": 100.0,
        "mean": 22.0,
        "outliers_low": 0,
        "outliers_high": 1,
        "n": 5,
        "left_out": 1,
        "unsized": 0,
    }


def test_a_whisker_never_ends_inside_the_box() -> None:
    # A quartile is interpolated far beyond every datum that its whisker may reach.
    (high,) = box_statistics(_jobs([0.0, 0.0, 0.0, 10.0]), "duration").to_pylist()
    assert (high["q3"], high["whisker_high"], high["outliers_high"]) == (2.5, 2.5, 1)
    (low,) = box_statistics(_jobs([0.0, 10.0, 10.0, 10.0]), "duration").to_pylist()
    assert (low["q1"], low["whisker_low"], low["outliers_low"]) == (7.5, 7.5, 1)


def test_a_box_of_nothing_is_empty() -> None:
    (row,) = box_statistics(_jobs([]), "duration").to_pylist()
    assert row["median"] is None
    assert row["n"] == 0
    assert box_statistics(_jobs([]), "duration", by="vc").num_rows == 0


@EXAMPLES
@given(st.lists(st.integers(0, 50).map(float), min_size=1, max_size=40))
def test_boxes_are_matplotlibs(values: list[float]) -> None:
    (row,) = box_statistics(_jobs(values), "duration").to_pylist()
    for key, expected in matplotlib_box(values).items():
        assert row[key] == expected, key


@EXAMPLES
@given(job_rows(), st.sampled_from(["gpu", "all"]))
def test_boxes_by_group_are_those_of_each_group(rows: list[Any], where: str) -> None:
    members, unknown = asked(rows, where)
    found = box_statistics(table_of(rows), "wait", by="user", where=where).to_pylist()
    assert {r["user"] for r in found} == {r["user"] or "(none)" for r in (*members, *unknown)}
    for row in found:
        mine = [r for r in members if (r["user"] or "(none)") == row["user"]]
        known = [r["wait"] for r in mine if r["wait"] is not None]
        assert row["left_out"] == len(mine) - len(known)
        if known:
            assert {k: row[k] for k in matplotlib_box(known)} == matplotlib_box(known)
        else:
            assert row["q1"] is None
