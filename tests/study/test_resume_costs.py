"""What resuming costs a job: one number, by its GPUs, by what it runs, or as a function says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.study.resume_costs import FREE, read_cost

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


def test_saving_and_restoring_add_up_and_are_noted() -> None:
    out = wt.simulate(JOBS, "pool:25", "srtf", save_time=BY_SIZE, restore_time=1)
    assert out.table["run_time"].to_pylist() == [108, 131, 161, 5]
    assert out.settings["save_time"] == {"1": 7, "2": 30, "9": 60}
    again = wt.simulate(
        JOBS, "pool:25", "srtf", save_time=out.settings["save_time"], restore_time=1
    )
    assert again.table == out.table


def test_costs_of_what_nobody_runs_are_noted() -> None:
    def notes(**costs: Any) -> list[str]:
        out = wt.simulate(JOBS, "pool:25", "srtf", **costs)
        return [note for note in out.notes if "workload or template" in note]

    has = "the trace has 'bert', 'gpt', 'vgg'."
    assert notes(save_time="bertt=20/gpt=3/*=1", restore_time={"resnet": 1}) == [
        f"save_time names workload or template 'bertt' (did you mean 'bert'?); {has}",
        f"restore_time names workload or template 'resnet'; {has}",
    ]
    assert notes(save_time="bert=20/*=1", restore_time=BY_SIZE) == []


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


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_what_the_jobs_say_themselves_counts_where_nothing_else_is_given(engine: str) -> None:
    jobs = JOBS | {"restore_time": [7.0, None, 60.0, 1.0]}
    out = wt.simulate(jobs, "pool:25", "srtf", engine=engine)
    assert out.table["run_time"].to_pylist() == [107, 100, 160, 5]
    assert "A preempted job pays 0 s to 60 s to go on, as the trace says." in out.notes
    saving = wt.simulate(jobs, "pool:25", "srtf", engine=engine, save_time=1)
    assert saving.table["run_time"].to_pylist() == [108, 101, 161, 5]
    free = wt.simulate(jobs, "pool:25", "srtf", engine=engine, restore_time=0)
    assert free.table["run_time"].to_pylist() == [100, 100, 100, 5]
    assert FREE in free.notes


def test_free_preemption_is_noted_where_somebody_was_preempted() -> None:
    assert FREE in wt.simulate(JOBS, "pool:25", "srtf").notes
    assert FREE not in wt.simulate(JOBS, "pool:25", "sjf").notes
    assert FREE not in wt.simulate(JOBS, "pool:25", "srtf", restore_time=1).notes


@pytest.mark.parametrize("cost", ["soon", "-1", "inf"])
def test_a_column_of_no_costs(cost: str) -> None:
    with pytest.raises(wt.SpecError, match=r"restore_time.*row 2; expected seconds >= 0"):
        wt.simulate(JOBS | {"restore_time": ["1", cost, "2", None]}, "pool:25", "srtf")


@pytest.mark.parametrize("name", ["helios-venus", "helios"])
def test_helios_twins_pay_as_its_simulator_counts(name: str) -> None:
    jobs = wt.open_trace(f"synthetic:{name}:jobs=400:seed=1").jobs
    for gpus, cost in zip(
        jobs["num_gpus"].to_pylist(), jobs["restore_time"].to_pylist(), strict=True
    ):
        assert cost == (7 if gpus <= 1 else 30 if gpus <= 8 else 60)


def test_where_no_turn_is_as_long_as_what_the_trace_says_it_does_not_count() -> None:
    jobs = JOBS | {"restore_time": [60.0, 60.0, 60.0, 60.0]}
    out = wt.simulate(jobs, "pool:25", "las")
    assert out.table["run_time"].to_pylist() == [100, 100, 100, 5]
    assert any(FREE in note and "turns of 60 s" in note for note in out.notes)
    paid = wt.simulate(jobs, "pool:25", "las:quantum=90")
    assert sum(paid.table["run_time"].to_pylist()) > 305
    with pytest.raises(wt.SpecError, match="found 60 s; policy 'las' lets jobs take turns of 60 s"):
        wt.simulate(jobs, "pool:25", "las", restore_time=60)
