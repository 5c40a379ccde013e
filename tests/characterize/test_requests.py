"""Requests and use: hand-worked tables, and numpy or plain Python on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from used_tasks import DRAWN_ROWS, drawn_tables

from windtunnel.characterize.relation import expanded_quantiles
from windtunnel.characterize.requests import (
    POINTS,
    RESOURCES,
    request_quantiles,
    request_use_cdfs,
)
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def _column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values


def test_requests_by_hand(tasks: pa.Table, backend: Backend) -> None:
    found = request_quantiles(backend(tasks))
    assert _column(found, "resource") == ["cpu", "gpu", "mem"]
    assert _column(found, "n") == [4, 3, 3]
    assert _column(found, "p50") == [6.0, 0.5, 10.0]
    assert _column(found, "p95") == pytest.approx([11.1, 1.85, 19.0])
    assert _column(found, "p95_over_p50") == pytest.approx([1.85, 3.7, 1.9])
    assert _column(found, "large_share") == pytest.approx([0, 1 / 3, 0])
    assert _column(found, "none") == [0, 0, 1]
    assert _column(found, "left_out") == [0, 1, 0]
    assert _column(found, "why") == ["", "no num_gpus: 1", ""]


def test_a_gang_asks_once_for_each_of_its_tasks(backend: Backend) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0, 0, 0],
            "duration": [1, 1, 1],
            "num_gpus": [8, 1, 0],
            "num_tasks": [4, None, 3],
            "num_cpus": [8, 0, None],
        }
    )
    cpu, gpu, mem = request_quantiles(backend(jobs)).to_pylist()
    assert (gpu["n"], gpu["p50"], gpu["none"], gpu["left_out"]) == (5, 2.0, 3, 0)
    assert gpu["p95"] == pytest.approx(np.quantile([2, 2, 2, 2, 1], 0.95))
    assert (cpu["n"], cpu["none"], cpu["left_out"]) == (4, 1, 1)
    assert mem["p50"] is None
    assert mem["large_share"] is None


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.1, 0.5, 1.0, 2.0, 7.0]), st.integers(0, 5)), max_size=12
    ),
    q=st.lists(st.floats(0, 1), min_size=1, max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_expanded_quantiles_equal_those_of_the_repeated_values(
    rows: list[tuple[float, int]], q: list[float]
) -> None:
    table = ibis.memtable(
        pa.table(
            {
                "v": pa.array([v for v, _ in rows], pa.float64()),
                "times": pa.array([t for _, t in rows], pa.int32()),
            }
        )
    )
    n, found = expanded_quantiles(table, "v", "times", q)
    repeated = np.repeat([v for v, _ in rows], [t for _, t in rows])
    assert n == len(repeated)
    if n:
        assert found == pytest.approx(np.quantile(repeated, q).tolist())
    else:
        assert found == [None] * len(q)


@given(rows=DRAWN_ROWS)
@settings(max_examples=15, deadline=None)
def test_curves_equal_counts(rows: list[dict[str, Any]]) -> None:
    tasks, _ = drawn_tables(rows)
    names = {
        (r.name, kind): column
        for r in RESOURCES
        for kind, column in (("request", r.asked), ("use", r.used))
    }
    at = (0.0, 1.0, 2.0, 3.0)
    for point in request_use_cdfs(tasks, at=at, gpu_memory=False).to_pylist():
        column = names[point["resource"], point["kind"]]
        known = [r[column] for r in rows if r[column] is not None]
        assert point["n"] == len(known)
        assert point["left_out"] == len(rows) - len(known)
        assert point["count"] == sum(v <= point["x"] for v in known)
        if known:
            assert point["percent"] == pytest.approx(100 * point["count"] / len(known))


def test_curves_have_every_point_and_the_use_of_gpu_memory(tasks: pa.Table) -> None:
    found = request_use_cdfs(tasks)
    assert found.num_rows == 7 * len(POINTS)
    assert found.slice(6 * len(POINTS)).to_pylist()[0] == {
        "resource": "gpu_mem",
        "kind": "use",
        "x": 0.0,
        "count": 0,
        "percent": None,
        "n": 0,
        "left_out": 4,
    }
