"""`ready`: from when jobs are in the queue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.study.offered_load import at_load, with_arrivals
from windtunnel.traces.block_draws import drawn_blocks

#: The first is held until 50; of the second it is not known; the others were eligible at once.
JOBS: dict[str, Any] = {
    "submit_time": [0, 1, 2, 3],
    "eligible_time": [50.0, None, 1.0, 3.0],
    "duration": [10] * 4,
    "num_gpus": [4] * 4,
}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("given", "starts", "wait"),
    [
        ({}, [50, 1, 11, 21], (0 + 0 + 9 + 18) / 4),
        ({"ready": "eligible"}, [50, 1, 11, 21], (0 + 0 + 9 + 18) / 4),
        ({"ready": "submit"}, [0, 10, 20, 30], (0 + 9 + 18 + 27) / 4),
        ({"arrivals": "1/100"}, [300, 0, 100, 200], 0),
    ],
)
def test_by_hand(given: dict[str, Any], starts: list[float], wait: float, engine: Any) -> None:
    out = wt.simulate(JOBS, "1x4", "fifo", engine=engine, **given)
    assert out.table["start_time"].to_pylist() == starts
    assert out.metrics()["avg_wait"] == wait
    told = [note for note in out.notes if "when they were eligible" in note]
    assert len(told) == (given != {"ready": "submit"})


def test_ties_go_by_the_time_at_which_jobs_were_eligible() -> None:
    jobs = JOBS | {"submit_time": [0, 1, 2, 2], "eligible_time": [0.0, 9.0, 8.0, 7.0]}
    out = wt.simulate(jobs, "1x4", "fifo")
    assert out.table["start_time"].to_pylist() == [0, 30, 20, 10]


def test_a_job_was_eligible_by_its_recorded_start() -> None:
    jobs = JOBS | {"start_time": [20.0, None, None, None]}
    assert wt.simulate(jobs, "4x4", "fifo").table["start_time"].to_pylist() == [20, 1, 2, 3]


def test_who_has_no_submission_is_none_the_less_refused() -> None:
    jobs = JOBS | {"submit_time": [0, None, 2, 3], "eligible_time": [50.0, 7.0, 1.0, 3.0]}
    out = wt.simulate(jobs, "1x4", "fifo", incomplete="reject")
    assert out.table["start_time"].to_pylist() == [50, None, 2, 12]


def test_every_policy_of_a_comparison_goes_by_it() -> None:
    found = wt.compare(JOBS, "1x4", ["fifo", "srtf"])
    assert [out.submit_time.tolist() for out in found.outcomes.values()] == [[50, 1, 2, 3]] * 2


def test_nothing_is_told_of_jobs_that_were_eligible_at_once() -> None:
    jobs = JOBS | {"eligible_time": [None] * 4}
    out = wt.simulate(jobs, "1x4", "fifo")
    assert out.table["start_time"].to_pylist() == [0, 10, 20, 30]
    assert not [note for note in out.notes if "eligible" in note]


def test_what_is_dated_by_the_submission_moves_with_it() -> None:
    """At twice the load all come in half the time; users hold and want their jobs as long."""
    jobs = as_jobs(JOBS | {"deadline": [90.0, 20.0, None, 40.0]})
    fast = at_load(jobs, 1.0, 2.0, np.ones(4, bool))
    assert fast["submit_time"].to_pylist() == [0, 0.5, 1, 1.5]
    assert fast["eligible_time"].to_pylist() == [50, None, 0, 1.5]
    assert fast["deadline"].to_pylist() == [90, 19.5, None, 38.5]
    again = drawn_blocks(jobs.select(["job_id", "submit_time", "deadline"]), number=1, seed=0)
    assert again["deadline"].to_pylist() == [90, 20, None, 40]
    moved = with_arrivals(jobs, "1/100")
    assert moved["deadline"].to_pylist() == [90, 119, None, 337]


@pytest.mark.parametrize(
    ("column", "given", "message"),
    [
        (None, {"ready": "eligible"}, "no column eligible_time"),
        (["soon"] * 4, {}, "holds 'soon' in row 1"),
        ([1.0, float("inf"), 1.0, 1.0], {}, "found inf in row 2"),
        (None, {"ready": "later"}, "unknown name 'later'"),
        ([1.0] * 4, {"ready": "eligible", "replay": "rounds.csv"}, "says itself when jobs run"),
    ],
)
def test_what_is_refused(column: Any, given: dict[str, Any], message: str) -> None:
    jobs = {name: value for name, value in JOBS.items() if name != "eligible_time"}
    if column is not None:
        jobs["eligible_time"] = column
    with pytest.raises(SpecError, match=message):
        wt.simulate(jobs, "1x4", "fifo", **given)
