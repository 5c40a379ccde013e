"""When durations become known, checked job by job against the rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from job_histories import known_before, small_histories

from windtunnel.errors import SpecError
from windtunnel.predictors.knowledge import past_of
from windtunnel.schema import as_jobs


@given(small_histories())
def test_what_is_known_at_a_submission_follows_the_rule(jobs: dict[str, list[Any]]) -> None:
    past = past_of(as_jobs(jobs))
    place = {event: n for n, event in enumerate(past.events.tolist())}
    for row in range(len(jobs["submit_time"])):
        expected = known_before(jobs, row)
        assert past.before[row] == len(expected)
        assert past.completed[: len(expected)].tolist() == expected
        now = place[2 * row + 1]
        assert [other for other in past.completed.tolist() if place[2 * other] < now] == expected


def test_recorded_times_come_first_then_waits_then_the_run_time_alone() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0.0, 0.0, 0.0, 0.0],
            "start_time": [5.0, 5.0, None, None],
            "end_time": [50.0, None, None, None],
            "duration": [10.0, 10.0, 10.0, 10.0],
            "num_gpus": [1.0] * 4,
            "source_queue": [1.0, 1.0, 7.0, None],
        }
    )
    past = past_of(jobs)
    assert past.known.tolist() == [50.0, 15.0, 17.0, 10.0]
    assert any(note.startswith("1 jobs have no recorded start or end") for note in past.notes)
    known = past_of(jobs, "end").known
    assert known[0] == 50.0
    assert np.isnan(known[1:]).all()
    assert any("3 jobs have no recorded end" in note for note in past_of(jobs, "end").notes)
    assert past_of(jobs, "submit+duration").known.tolist() == [10.0] * 4


def test_jobs_that_had_not_ended_teach_nothing_and_are_counted() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0.0, 1.0, 2.0, None],
            "duration": [10.0, 10.0, None, 10.0],
            "num_gpus": [1.0] * 4,
            "status": ["running", "completed", "pending", "failed"],
        }
    )
    past = past_of(jobs)
    assert past.completed.tolist() == [1]
    assert np.isnan(past.truth).tolist() == [True, False, True, False]
    assert past.submitted.tolist() == [0, 1, 2]
    assert any(note.startswith("2 jobs have no known duration") for note in past.notes)
    assert any(note.startswith("1 jobs have no submit time") for note in past.notes)


def test_another_rule_is_refused() -> None:
    jobs = as_jobs({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]})
    with pytest.raises(SpecError, match="Did you mean 'recorded'"):
        past_of(jobs, "recordd")
