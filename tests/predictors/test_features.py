"""Features, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windtunnel.predictors.features import SUBMISSION, Keys, Ranks, Statistics
from windtunnel.schema import as_jobs

DAY = 86400.0


def test_nothing_that_was_not_known_at_submission_is_read() -> None:
    assert not {"start_time", "end_time", "duration", "status", "job_id"} & set(SUBMISSION)


def test_statistics_are_those_of_the_runs_that_had_ended() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0.0, 1.0, 2.0, 3.0],
            "duration": [None] * 4,
            "num_gpus": [1.0, 2.0, 1.0, 4.0],
            "template": ["a", "a", "a", "b"],
        }
    )
    encoding = Statistics()
    view = encoding.view(jobs)
    view.see(0)
    view.observe(0, 10.0)
    view.see(1)
    view.observe(1, 40.0)
    view.see(2)
    view.see(3)
    view.see(0)  # a second look changes nothing
    rows = np.arange(4)
    template = encoding.learn(view, rows, np.zeros(4))[:, 6:9]
    # Mean drawn towards the mean of all by one run, last run, log(1 + runs).
    assert np.isnan(template[0]).all()
    assert template[1].tolist() == [10.0, 10.0, math.log(2)]
    assert template[2].tolist() == pytest.approx([(50 + 25) / 3, 40.0, math.log(3)])
    assert template[3][0] == 25.0
    assert math.isnan(template[3][1])
    assert template[3][2] == 0.0
    # What names mean is kept for the next table.
    later = encoding.view(jobs.slice(1, 1))
    later.see(0)
    again = encoding.features(later, np.array([0]))[0, 6:9]
    assert again.tolist() == pytest.approx(template[2].tolist())


@pytest.mark.parametrize(("days", "phases"), [(2.0, 0), (3.0, 1), (15.0, 1), (16.0, 2)])
def test_hour_and_weekday_are_given_where_the_jobs_cover_them_twice(
    days: float, phases: int
) -> None:
    count = 101
    submit = np.linspace(0, days * DAY, count)
    jobs = as_jobs({"submit_time": submit, "duration": np.ones(count), "num_gpus": np.ones(count)})
    encoding = Statistics()
    view = encoding.view(jobs)
    found = encoding.learn(view, np.arange(count), np.ones(count))
    assert found.shape == (count, 6 + 18 + phases)
    for place, cycle in enumerate((DAY, 7 * DAY)[:phases]):
        assert found[:, 24 + place] == pytest.approx(submit % cycle / cycle)
    assert encoding.features(view, np.array([5])).shape == (1, 24 + phases)


def test_identities_stand_in_the_order_of_their_means() -> None:
    jobs = as_jobs(
        {
            "submit_time": np.zeros(6),
            "duration": np.ones(6),
            "num_gpus": [1.0, 1.0, 2.0, 2.0, 8.0, 8.0],
            "user": ["slow", "fast", "slow", None, "fast", "new"],
        }
    )
    encoding = Ranks(("user", "num_gpus"))
    view = encoding.view(jobs)
    target = np.array([30.0, 1.0, 50.0, 20.0, 3.0])
    found = encoding.learn(view, np.arange(5), target)
    # Means: fast 2, unknown 20, slow 40; of all 20.8, between unknown and slow.
    assert found.tolist() == [[1, 2], [1, 0], [2, 2], [2, 1], [8, 0]]
    assert encoding.features(view, np.array([5])).tolist() == [[8, 1.5]]


def test_keys_are_the_same_from_table_to_table() -> None:
    keys = Keys([("user", "gpu_type"), ()])
    first = as_jobs(
        {"submit_time": [0] * 4, "duration": [1] * 4, "num_gpus": [1] * 4,
         "user": ["a", "b", None, "a"], "gpu_type": [None, "T4", "T4", None]}
    )  # fmt: skip
    assert keys.of(first).tolist() == [[0, 1, -1, 0], [0, 0, 0, 0]]
    second = as_jobs(
        {"submit_time": [0] * 3, "duration": [1] * 3, "num_gpus": [1] * 3,
         "user": ["c", "b", "a"], "gpu_type": ["T4", "T4", None]}
    )  # fmt: skip
    assert keys.of(second).tolist() == [[2, 1, 0], [0, 0, 0]]
    assert keys.of(first.slice(0, 0)).shape == (2, 0)
    assert keys.number(0, ("b", "T4")) == 1
    assert keys.number(0, ("z", "T4")) == -1
