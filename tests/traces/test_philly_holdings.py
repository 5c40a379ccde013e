"""What Philly's attempts held, attempt by attempt, by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.companions import HOLDING_COLUMNS
from windtunnel.errors import TraceError
from windtunnel.traces.open import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace


def attempt(start: str | None, end: str | None, *nodes: tuple[Any, list[Any]]) -> dict[str, Any]:
    detail = [{"ip": ip, "gpus": gpus} for ip, gpus in nodes]
    return {"start_time": start, "end_time": end, "detail": detail}


def raw(tmp_path: Path, *jobs: tuple[str, str, list[dict[str, Any]]]) -> Trace:
    path = tmp_path / "cluster_job_log"
    path.write_text(
        json.dumps(
            [
                {
                    "status": "Pass", "vc": "v", "jobid": name, "user": "u",
                    "submitted_time": submitted, "attempts": attempts,
                }
                for name, submitted, attempts in jobs
            ]
        )
    )  # fmt: skip
    return open_trace(path)


def rows(trace: Trace) -> list[tuple[Any, ...]]:
    assert trace.holdings is not None
    assert trace.holdings.column_names == [*(c.name for c in HOLDING_COLUMNS), "attempt"]
    return [tuple(row.values()) for row in trace.holdings.to_pylist()]


def test_each_gpu_of_each_attempt_is_held_from_its_start_to_its_end(tmp_path: Path) -> None:
    trace = raw(
        tmp_path,
        (
            "a",
            "2017-10-09 07:00:00",
            [
                attempt("2017-10-09 07:01:00", "2017-10-09 07:02:00", ("m1", ["gpu0", "gpu5"])),
                attempt("2017-10-09 07:02:30", None, ("m1", ["gpu0"]), ("m2", ["gpu7"])),
            ],
        ),
        ("b", "2017-10-09 07:00:30", []),
    )
    assert rows(trace) == [
        ("a", "m1", "gpu0", 60.0, 120.0, 1),
        ("a", "m1", "gpu5", 60.0, 120.0, 1),
        ("a", "m1", "gpu0", 150.0, None, 2),
        ("a", "m2", "gpu7", 150.0, None, 2),
    ]
    assert trace.jobs["status"].to_pylist() == ["running", "completed"]


def test_attempts_that_tell_too_little_hold_nothing_and_are_counted(tmp_path: Path) -> None:
    good = attempt("2017-10-09 09:00:00", "2017-10-09 09:01:00", ("m1", ["gpu0"]))
    trace = raw(
        tmp_path,
        (
            "a",
            "2017-10-09 07:00:00",
            [
                attempt("2017-10-09 07:30:00", None, ("m1", ["gpu0"])),
                attempt(None, "2017-10-09 08:00:00", ("m1", ["gpu0"])),
                attempt("2017-10-09 08:30:00", "2017-10-09 08:00:00", ("m1", ["gpu0"])),
                attempt("2017-10-09 08:40:00", "2017-10-09 08:50:00", (None, ["gpu0"]), ("m3", [])),
                {**good, "detail": None},
                good,
            ],
        ),
    )
    assert rows(trace) == [("a", "m1", "gpu0", 7200.0, 7260.0, 6)]
    notes = " ".join(trace.metadata.notes)
    for text in (
        "1 attempts have no start",
        "1 attempts have no end though another follows",
        "1 attempts end before they start",
        "1 attempts name a machine or a GPU",
    ):
        assert text in notes


def test_the_repeated_hour_does_not_run_backwards_over_attempts(tmp_path: Path) -> None:
    """01:50 summer time, then 01:10 and 01:20 standard time: half an hour on, not back."""
    trace = raw(
        tmp_path,
        (
            "a",
            "2017-11-05 01:40:00",
            [
                attempt("2017-11-05 01:45:00", "2017-11-05 01:50:00", ("m1", ["gpu0"])),
                attempt("2017-11-05 01:10:00", "2017-11-05 01:20:00", ("m1", ["gpu0"])),
            ],
        ),
    )
    assert [row[3:5] for row in rows(trace)] == [(300.0, 600.0), (1800.0, 2400.0)]


def test_a_time_that_is_none_is_named_by_its_record(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"'soon'; expected a time.*record 2"):
        raw(
            tmp_path,
            ("a", "2017-10-09 07:00:00", [attempt("2017-10-09 07:00:00", None, ("m1", ["g"]))] * 3),
            (
                "b",
                "2017-10-09 07:00:00",
                [
                    attempt("2017-10-09 07:00:00", "2017-10-09 07:01:00", ("m1", ["gpu0"])),
                    attempt("soon", "2017-10-09 07:01:00", ("m1", ["gpu0"])),
                    attempt("2017-10-09 07:00:00", "2017-10-09 07:01:00", ("m1", ["gpu0"])),
                ],
            ),
        )


def test_a_log_without_any_attempt_holds_nothing(tmp_path: Path) -> None:
    trace = raw(tmp_path, ("a", "2017-10-02 08:00:00", []), ("b", "2017-10-02 09:00:00", []))
    assert rows(trace) == []
    assert trace.jobs["num_gpus"].to_pylist() == [None, None]
    assert any("2 jobs have no attempt" in note for note in trace.metadata.notes)
