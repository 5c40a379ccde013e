"""Retries and the waits of each attempt: a hand-worked log, and plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from windtunnel.characterize.attempts import (
    attempt_wait_cdf,
    attempt_waits,
    retries,
    waits_by_nodes,
)
from windtunnel.companions import HOLDING_COLUMNS, companion
from windtunnel.errors import SchemaError, SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def _jobs() -> pa.Table:
    return as_jobs(
        {
            "job_id": ["a", "b", "c", "d"],
            "submit_time": [0, 100, 200, 300],
            "start_time": [10, 100, None, 310],
            "duration": [50, 30, None, 5],
            "num_gpus": [1, 16, 2, 5],
            "vc": ["x", "x", "y", "y"],
            "status": ["failed", "completed", "cancelled", None],
            "num_attempts": pa.array([3, 1, 0, 1]),
            "num_nodes": pa.array([1, 2, None, 1]),
        }
    )


def _holdings() -> pa.Table:
    # a: attempts at 10-20, 25-30 (waited 5) and 30-60 (no wait), the first on two GPUs; b: one, at
    # once, on two nodes; c: none; d: one of unknown end.
    rows = [
        ("a", "n1", "0", 10, 20),
        ("a", "n1", "1", 10, 20),
        ("a", "n2", "0", 30, 60),
        ("a", "n1", "0", 25, 30),
        ("b", "n1", "0", 100, 130),
        ("b", "n2", "0", 100, 130),
        ("d", "n1", "0", 310, None),
    ]
    names = ("job_id", "node", "gpu", "start_time", "end_time")
    columns = dict(zip(names, map(pa.array, zip(*rows, strict=True)), strict=True))
    return companion(HOLDING_COLUMNS, columns)


def test_every_wait_of_every_attempt(backend: Backend) -> None:
    found = attempt_waits(backend(_jobs()), backend(_holdings()), by="vc").to_pyarrow().to_pylist()
    waits = sorted((row["job_id"], row["attempt"] or 0, row["wait"]) for row in found)
    assert waits == [
        ("a", 1, 10.0),
        ("a", 2, 5.0),
        ("a", 3, 0.0),
        ("b", 1, 0.0),
        ("c", 0, None),
        ("d", 1, 10.0),
    ]


def test_waits_of_zero_are_dropped_and_told(backend: Backend) -> None:
    jobs, holdings = backend(_jobs()), backend(_holdings())
    found = attempt_wait_cdf(jobs, holdings, [5, 10])
    assert found.column_names == ["philly_size", "x", "count", "percent", "n", "left_out", "zero"]
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("1", 5.0, 1, 50.0, 2, 0, 1),
        ("1", 10.0, 2, 100.0, 2, 0, 1),
        ("2-4", 5.0, 0, None, 0, 1, 0),
        ("2-4", 10.0, 0, None, 0, 1, 0),
        ("5-8", 5.0, 0, 0.0, 1, 0, 0),
        ("5-8", 10.0, 1, 100.0, 1, 0, 0),
        ("> 8", 5.0, 0, None, 0, 0, 1),
        ("> 8", 10.0, 0, None, 0, 0, 1),
    ]
    only = attempt_wait_cdf(jobs, holdings, [10], vc="y")
    assert only["philly_size"].to_pylist() == ["2-4", "5-8"]


def test_an_attempt_that_overlaps_the_one_before_did_not_wait(backend: Backend) -> None:
    jobs = as_jobs({"job_id": ["a"], "submit_time": [5], "duration": [1], "num_gpus": [1]})
    times = {"start_time": pa.array([0.0, 20.0, 27.0]), "end_time": pa.array([30.0, 25.0, 40.0])}
    nodes = {"job_id": pa.array(["a"] * 3), "node": pa.array(["n"] * 3)}
    holdings = companion(HOLDING_COLUMNS, {**nodes, **times})
    found = attempt_waits(backend(jobs), backend(holdings)).to_pyarrow().to_pylist()
    waits = {row["attempt"]: row["wait"] for row in found}
    assert waits == {1: 0.0, 2: 0.0, 3: 2.0}


def test_attempt_waits_equal_plain_python(
    holed: pa.Table, holdings: pa.Table, backend: Backend
) -> None:
    spans: dict[str, set[tuple[float, float | None]]] = {}
    for row in holdings.to_pylist():
        spans.setdefault(row["job_id"], set()).add((row["start_time"], row["end_time"]))
    expected: list[float | None] = []
    for job in holed.to_pylist():
        before = job["submit_time"]
        attempts = sorted(
            spans.get(job["job_id"], ()), key=lambda s: (s[0], s[1] is None, s[1] or 0)
        )
        for start, end in attempts:
            expected.append(None if before is None else max(0.0, start - before))
            before = end
        expected += [None] * (not attempts)
    found = attempt_waits(backend(holed), backend(holdings)).to_pyarrow()["wait"].to_pylist()
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_retries_by_status(backend: Backend) -> None:
    found = retries(backend(_jobs()), "status").to_pylist()
    assert [(row["status"], row["avg"], row["n"]) for row in found] == [
        ("cancelled", 0.0, 1),
        ("completed", 1.0, 1),
        ("failed", 3.0, 1),
        ("(none)", 1.0, 1),
    ]


def test_waits_by_nodes_are_of_large_jobs_only(backend: Backend) -> None:
    found = waits_by_nodes(backend(_jobs())).to_pylist()
    assert [(row["num_nodes"], row["p50"], row["n"]) for row in found] == [
        ("1", 10.0, 1),
        ("2", 0.0, 1),
    ]


def test_waits_by_nodes_equal_numpy(holed: pa.Table) -> None:
    found: list[dict[str, Any]] = waits_by_nodes(holed).to_pylist()
    for row in found:
        waits = [
            job["start_time"] - job["submit_time"]
            for job in holed.to_pylist()
            if (job["num_gpus"] or 0) >= 5
            and str(job["num_nodes"] or "(none)") == row["num_nodes"]
            and job["start_time"] is not None
            and job["submit_time"] is not None
        ]
        assert row["n"] == len(waits)
        assert row["p90"] == pytest.approx(np.percentile(waits, 90))


def test_jobs_without_attempts_in_their_table_are_refused() -> None:
    jobs = _jobs().drop_columns(["num_attempts", "num_nodes"])
    with pytest.raises(SpecError, match="num_attempts"):
        retries(jobs)
    with pytest.raises(SchemaError, match="num_nodes"):
        waits_by_nodes(jobs)
