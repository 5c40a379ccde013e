"""Levels over time, against sums over every interval, one instant after the other."""

from __future__ import annotations

import math
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.characterize.levels import levels, run_intervals
from windtunnel.companions import TASK_COLUMNS, companion
from windtunnel.errors import SchemaError, SpecError

INTERVALS = st.lists(
    st.tuples(
        st.integers(-8, 40),
        st.integers(0, 30),
        st.sampled_from(["a", "b", None]),
        st.sampled_from([None, 0.1, 0.25, 0.7, 3.0]),
    ),
    min_size=1,
    max_size=12,
)


def _table(rows: list[tuple[int, int, str | None, float | None]]) -> Any:
    return ibis.memtable(
        pa.table(
            {
                "begin": pa.array([b / 4 for b, *_ in rows], pa.float64()),
                "end": pa.array([(b + d) / 4 for b, d, *_ in rows], pa.float64()),
                "kind": pa.array([row[2] for row in rows], pa.string()),
                "weight": pa.array([row[3] for row in rows], pa.float64()),
            }
        )
    )


@pytest.mark.slow
@given(rows=INTERVALS, step=st.sampled_from([0.75, 1.0, 2.5]))
@settings(max_examples=25, deadline=None)
def test_instants_and_means_equal_sums_over_every_interval(
    rows: list[tuple[int, int, str | None, float | None]], step: float
) -> None:
    table = _table(rows)
    instant = levels(table, ("weight",), ("kind",), step=step, sample="instant")
    mean = levels(table, ("weight",), ("kind",), step=step, sample="mean")
    assert instant.groups == mean.groups
    assert [kind for (kind,) in mean.groups] == [
        kind for kind in ("a", "b", None) if any(row[2] == kind for row in rows)
    ]
    first = math.floor(min(b / 4 for b, *_ in rows) / step) * step
    assert mean.times[0] == pytest.approx(first)
    last = max((b + d) / 4 for b, d, *_ in rows)
    assert mean.times[-1] + step >= last - 1e-9
    for i, (kind,) in enumerate(mean.groups):
        mine = [(b / 4, (b + d) / 4, w or 0.0) for b, d, k, w in rows if k == kind]
        for j, t in enumerate(mean.times):
            now = sum(w for b, e, w in mine if b <= t < e)
            assert instant.values["weight"][i, j] == pytest.approx(now, abs=1e-9)
            held = sum(w * max(0.0, min(e, t + step) - max(b, t)) for b, e, w in mine)
            assert mean.values["weight"][i, j] == pytest.approx(held / step, abs=1e-9)


def test_the_mean_over_all_steps_does_not_depend_on_the_step() -> None:
    rng = np.random.default_rng(1)
    begin = rng.uniform(0, 500, 300)
    table = ibis.memtable(
        pa.table(
            {"begin": begin, "end": begin + rng.exponential(80, 300), "w": rng.uniform(0, 1, 300)}
        )
    )
    integrals = [
        levels(table, ("w",), step=step).values["w"].sum() * step for step in (0.7, 10.0, 3600.0)
    ]
    frame = table.to_pyarrow()
    exact = np.sum(frame["w"].to_numpy() * (frame["end"].to_numpy() - frame["begin"].to_numpy()))
    assert integrals == pytest.approx([exact] * 3, rel=1e-9)


def test_what_ends_leaves_no_dust_behind() -> None:
    rows = [(4 * i, 4, "a", 0.1) for i in range(9)] + [(0, 80, "a", None)]
    found = levels(_table(rows), ("weight",), step=1.0, sample="instant")
    assert found.values["weight"][0].tolist() == [0.1] * 9 + [0.0] * 11


def test_no_interval_makes_no_level() -> None:
    found = levels(_table([(0, 1, "a", 1.0)]).limit(0), ("weight",), step=1.0)
    assert found.groups == []
    assert found.times.shape == (0,)


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf, 1e-9])
def test_an_unusable_step_is_refused(step: float) -> None:
    with pytest.raises(SpecError, match="step"):
        levels(_table([(0, 400, "a", 1.0)]), ("weight",), step=step)


def _tasks() -> pa.Table:
    return companion(
        TASK_COLUMNS,
        {
            "task_id": pa.array(list("abcdef")),
            "job_id": pa.array(["j"] * 6),
            "start_time": pa.array([0.0, None, 2.0, 5.0, 9.0, 3.0]),
            "end_time": pa.array([4.0, 7.0, None, None, 8.0, 3.0]),
            "status": pa.array(["completed", "completed", "running", "failed", "failed", None]),
            "node": pa.array(list("nnnnnn")),
        },
    )


def test_runs_are_kept_apart_from_records_that_name_no_run() -> None:
    ran, n, left_out = run_intervals(_tasks(), ("task_id",))
    found = {row["task_id"]: row for row in ran.to_pyarrow().to_pylist()}
    assert n == 3
    assert left_out == {"no start_time": 1, "no end_time": 1, "ends before it starts": 1}
    assert set(found) == {"a", "c", "f"}
    assert (found["a"]["begin"], found["a"]["end"]) == (0.0, 4.0)
    assert (found["c"]["begin"], found["c"]["end"]) == (2.0, 9.0)  # still running: to the last


def test_the_first_reason_that_holds_counts() -> None:
    _, n, left_out = run_intervals(
        _tasks(), ("task_id",), lambda t: {"early": t.start_time < 1, "none": t.status.isnull()}
    )
    assert n == 1
    assert left_out == {
        "early": 1,
        "none": 1,
        "no start_time": 1,
        "no end_time": 1,
        "ends before it starts": 1,
    }


def test_a_missing_column_is_named() -> None:
    with pytest.raises(SchemaError, match="start_time"):
        run_intervals(_tasks().drop_columns(["start_time"]), ("task_id",))
