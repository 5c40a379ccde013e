"""What resuming costs a job: one number, by its GPUs, by what it runs, or as a function says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.study.resume_costs import read_cost

#: Each job is stopped once, at 10, by one that is shorter.
JOBS = {
    "submit_time": [0, 0, 0, 10],
    "duration": [100, 100, 100, 5],
    "num_gpus": [1, 8, 16, 25],
    "workload": ["bert", "vgg", None, None],
    "template": [None, None, "gpt", None],
}
BY_SIZE = {1: 7, 2: 30, 9: 60}


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(
    ("cost", "seconds"),
    [
        (4, [4, 4, 4]),
        (BY_SIZE, [7, 30, 60]),
        ("1=7/2=30/9=60", [7, 30, 60]),
        ({8: 20}, [0, 20, 20]),
        ({"bert": 1, "gpt": 2, "*": 3}, [1, 3, 2]),
        ("vgg=9", [0, 9, 0]),
        (lambda jobs: jobs.num_gpus / 2, [0.5, 4, 8]),
    ],
)
def test_each_job_pays_its_own(cost: Any, seconds: list[float], engine: str) -> None:
    out = wt.simulate(JOBS, "pool:25", "srtf", restore_time=cost, engine=engine)
    assert out.table["num_preemptions"].to_pylist() == [1, 1, 1, 0]
    assert out.table["run_time"].to_pylist() == [*(100 + s for s in seconds), 5]


def test_saving_and_restoring_add_up_and_are_told() -> None:
    out = wt.simulate(JOBS, "pool:25", "srtf", save_time=BY_SIZE, restore_time=1)
    assert out.table["run_time"].to_pylist() == [108, 131, 161, 5]
    assert out.settings["save_time"] == {"1": 7, "2": 30, "9": 60}
    again = wt.simulate(
        JOBS, "pool:25", "srtf", save_time=out.settings["save_time"], restore_time=1
    )
    assert again.table == out.table


@pytest.mark.parametrize(
    "cost",
    ["x", -1, {"bert": -2}, {4: "x"}, lambda jobs: np.array([1.0]), lambda jobs: -jobs.num_gpus],
)
def test_what_is_no_cost(cost: Any) -> None:
    with pytest.raises(wt.SpecError, match="save_time"):
        wt.simulate(JOBS, "pool:25", "srtf", save_time=cost)


def test_words_and_numbers() -> None:
    assert read_cost("save_time", "7") == 7.0
    assert read_cost("save_time", {"8": 2}) == {8.0: 2.0}
