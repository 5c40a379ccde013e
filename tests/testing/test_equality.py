"""`windtunnel.testing`: equal means exactly equal, and the message says where two runs part."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.testing import assert_outcomes_equal

JOBS = {
    "job_id": ["a", "b", "c"],
    "submit_time": [0.0, 0.0, 1.0],
    "duration": [4.0, 2.0, 3.0],
    "num_gpus": [1.0, 2.0, 1.0],
}


def run(**options: Any) -> wt.Outcome:
    return wt.simulate(JOBS, "2x2", **options)


def with_flight(outcome: wt.Outcome, **arrays: Any) -> wt.Outcome:
    return dataclasses.replace(outcome, flight=dataclasses.replace(outcome.flight, **arrays))


def message(a: wt.Outcome, b: wt.Outcome) -> str:
    with pytest.raises(AssertionError) as error:
        assert_outcomes_equal(a, b)
    return str(error.value)


def test_both_engines_give_equal_outcomes() -> None:
    a, b = run(engine="reference"), run(engine="compiled")
    assert a.settings["engine"] != b.settings["engine"]
    assert_outcomes_equal(a, b)


def test_unknown_values_are_equal_to_themselves() -> None:
    jobs = {**JOBS, "own": [np.nan, 1.0, 2.0], "estimate": [None, 1.0, 2.0]}
    a, b = (wt.simulate(jobs, "pool:2", until=1.0) for _ in range(2))
    assert np.isnan(a.flight.end).any()
    assert_outcomes_equal(a, b)


def test_the_first_job_and_field_are_named() -> None:
    a = run()
    start = a.flight.start.copy()
    start[[1, 2]] += 1e-12
    run_time = a.flight.run_time + np.array([0.0, 0.0, 1.0])
    text = message(a, with_flight(a, start=start, run_time=run_time))
    assert text == (
        "job 'b' (row 1): start differs: 0.0 != 1e-12 (of 3 jobs differ: start of 2, run_time of 1)"
    )


def test_statuses_are_named() -> None:
    a = run()
    text = message(a, with_flight(a, status=np.array([0, 0, 2], dtype=np.int8)))
    assert text.startswith("job 'c' (row 2): status differs: finished != waiting")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"preemptions": np.zeros(3)}, "dtype of flight.preemptions differs: 'int64' != 'float64'"),
        ({"start": np.zeros(2)}, "shape of flight.start differs: (3,) != (2,)"),
        ({"start": np.array([-0.0, 0.0, 1.0])}, "job 'a' (row 0): start differs: 0.0 != -0.0"),
        ({"end": np.array([4.0, np.nan, 4.0])}, "job 'b' (row 1): end differs: 2.0 != nan"),
        ({"segment_job": np.array([0, 2, 1])}, "segment 1, job 'b' (row 1): segment_job differs"),
        (
            {"segment_end": np.array([4.0, 2.0, np.nan])},
            "segment 2, job 'c' (row 2): segment_end differs: 4.0 != nan",
        ),
        (
            {"nodes": np.array([0, 1, 1], dtype=np.int32)},
            "segment 2, job 'c' (row 2): (node, GPUs) differs: [(0, 1)] != [(1, 1)]",
        ),
        ({"scheduling_points": 9}, "scheduling_points differs: 4 != 9"),
        ({"gpu_time": np.ones(3)}, "flight.gpu_time is None differs: True != False"),
        ({"portions": np.ones((1, 4))}, "flight.portions is None differs: True != False"),
    ],
)
def test_every_array_counts(arrays: dict[str, Any], expected: str) -> None:
    a = run()
    assert a.flight.nodes.tolist() == [0, 1, 0]
    assert message(a, with_flight(a, **arrays)).startswith(expected)


def test_what_jobs_hold_of_shared_gpus_counts() -> None:
    plain = run()
    whole = {"gpu_time": np.ones(3), "portions": np.array([[0.0, 0.0, 4.0, 0.5]])}
    a = with_flight(plain, **whole)
    assert_outcomes_equal(a, with_flight(plain, **whole))
    less = with_flight(a, gpu_time=np.array([1.0, 1.0, 0.5]))
    assert message(a, less).startswith("job 'c' (row 2): gpu_time differs: 1.0 != 0.5")
    later = with_flight(a, portions=np.array([[0.0, 0.0, 4.0, 1.0]]))
    assert message(a, later).startswith("flight.portions differs: [[0.0, 0.0, 4.0, 0.5]] != [[")


@pytest.mark.parametrize("name", ["penalty_time", "plan"])
def test_what_elastic_jobs_did_counts(name: str) -> None:
    a = run(policy="morphling")
    kinds = a.flight.stretches
    assert kinds is not None
    values = getattr(kinds, name).copy()
    values[0] = "other" if name == "plan" else 1.0
    other = with_flight(a, stretches=dataclasses.replace(kinds, **{name: values}))
    assert message(a, other).startswith(f"flight.stretches.{name} differs: ")


def test_a_missing_segment_shows() -> None:
    a = run()
    names = ("segment_job", "segment_start", "segment_end")
    text = message(a, with_flight(a, **{name: getattr(a.flight, name)[:2] for name in names}))
    assert text == "number of segments differs: 3 != 2"


def test_settings_count_but_not_the_engine() -> None:
    a = run()
    changed = dataclasses.replace(a, settings={**a.settings, "engine": "other"})
    assert_outcomes_equal(a, changed)
    assert message(a, run(seed=1)) == "settings['seed'] differs: 0 != 1"
    lacking = {k: v for k, v in a.settings.items() if k != "until"}
    text = message(a, dataclasses.replace(a, settings=lacking))
    assert text == "settings['until'] is missing in the second outcome"
    text = message(dataclasses.replace(a, settings=lacking), a)
    assert text == "settings['until'] is missing in the first outcome"


def test_what_was_flown_counts() -> None:
    a = run()
    other = wt.simulate({**JOBS, "user": ["x", "y", "z"]}, "2x2")
    assert message(a, other) == "job 'a' (row 0): jobs column 'user' differs: None != 'x'"
    assert message(a, wt.simulate(JOBS, "3x2")).startswith("cluster differs")
    fewer = {name: values[:2] for name, values in JOBS.items()}
    assert message(a, wt.simulate(fewer, "2x2")) == "number of jobs differs: 3 != 2"
    more = wt.simulate({**JOBS, "mine": [1, 2, 3]}, "2x2")
    assert message(a, more).startswith("columns of the jobs table differs")


def test_reasons_and_notes_count() -> None:
    jobs = {**JOBS, "num_gpus": [1.0, 9.0, 1.0]}
    a = wt.simulate(jobs, "2x2", oversize="reject")
    b = dataclasses.replace(a, reasons={1: "another"})
    assert message(a, b).startswith("job 'b' (row 1): reason differs: 'asks for 9 GPUs; ")
    assert message(a, dataclasses.replace(a, notes=("!",))) == "notes differs: () != ('!',)"
