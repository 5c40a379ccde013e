"""Jobs that share GPUs draw what one of them would, and have one power limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.energy import PowerModel, account, governed

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINES = ("compiled", "reference")


def second_beside_first(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    """Start the second job on the GPU of the first, and others where there is room."""
    for job in queue:
        if job.job_id == "1":
            yield wt.Start(job, beside=cluster.running[0])
        elif cluster.fit(job) is not None:
            yield wt.Start(job)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_jobs_on_a_gpu_draw_what_one_does(engine: str) -> None:
    """Two on one GPU draw 100 W, so of the cap's 250 W the third has its 100 at once.

    When the first leaves, at 10, the GPU goes on drawing 100 W for the second: the fourth, which
    comes then, waits for the third's GPU, and has its power.
    """
    jobs = {"submit_time": [0, 1, 2, 10], "duration": [10, 11, 10, 5], "num_gpus": [1, 1, 1, 1]}
    model = {"gpus": {"default": {"idle_w": 0, "active_w": 100}}}
    out = wt.simulate(jobs, "2x1", second_beside_first, power=model, power_cap=250, engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 1, 2, 12]
    assert out.flight.power is not None
    assert out.flight.power.capped_time == 0


@pytest.mark.parametrize("limits", ["uniform", "optimised"])
@pytest.mark.parametrize("engine", ENGINES)
def test_two_jobs_on_a_gpu_have_one_limit(limits: str, engine: str) -> None:
    """Under 215 W the GPU runs at the limit of 200 W, which draws 190, at 0.9 of its speed.

    Nine seconds of work then take 10, of the first from 0 on and of the second from 1 on. Of the 11
    s that the GPU is held the limit costs a tenth.
    """
    jobs = {"submit_time": [0, 1], "duration": [9, 9], "num_gpus": [1, 1], "gpu_type": ["A", "A"]}
    limit = {"gpu_type": "A", "limit_w": [300, 200, 100], "power_w": [250, 190, 105]}
    model = {
        "gpus": {"A": {"idle_w": 0, "active_w": 250}},
        "limits": [limit | {"workload": "train", "speed": [1.0, 0.9, 0.5]}],
    }
    cap = {"rows": [[0, 215]], "limits": limits}
    out = wt.simulate(
        jobs | {"workload": ["train", "train"]}, "1x1:A", second_beside_first, power=model,
        power_cap=cap, engine=engine,
    )  # fmt: skip
    assert out.table["end_time"].to_pylist() == pytest.approx([10, 11])
    cost = governed(account(out, PowerModel.from_mapping(model)))["limited_gpu_time"]
    assert cost == pytest.approx(1.1)
    assert cost == pytest.approx(out.metrics()["lost_to_slowdown"])


@pytest.mark.parametrize("engine", ENGINES)
def test_who_moves_away_from_another_leaves_it_the_power_of_its_gpu(engine: str) -> None:
    """Under 150 W neither of two jobs on a GPU can have another: both would draw 100 then."""
    found = []

    def watch(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        found.extend(cluster.fit(job, without=[job]) for job in cluster.running)
        if len(cluster.running) == 2:
            found.append(cluster.fit(cluster.running[0], without=cluster.running))
        yield from second_beside_first(now, queue, cluster)
        if not found:
            yield wt.Wake(2)

    jobs = {"submit_time": [0, 1], "duration": [10, 10], "num_gpus": [1, 1]}
    model = {"gpus": {"default": {"idle_w": 0, "active_w": 100}}}
    wt.simulate(jobs, "2x1", watch, power=model, power_cap=150, engine=engine)
    # At 1 the first alone; at 2 each of the two, and the first with both gone; at 10 the second.
    assert found == [[(0, 1)], None, None, [(0, 1)], [(0, 1)]]
