"""Stragglers, silent errors and hot spares, by hand and in both engines."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.sim.disruptions import Checkpointing, Disruptions, FailureModel, NodeFailure

ENGINES = pytest.mark.parametrize("engine", ["compiled", "reference"])
#: Times to failure of a shape so large are always the mean.
CLOCK: dict[str, Any] = {"distribution": "weibull", "shape": 1e9, "repair": "fixed"}


def jobs(*gpus: float) -> dict[str, list[float]]:
    """Return jobs of 100 s, all submitted at 0."""
    number = len(gpus)
    return {"submit_time": [0.0] * number, "duration": [100.0] * number, "num_gpus": [*gpus]}


@ENGINES
def test_a_gang_goes_at_the_pace_of_its_slow_node(engine: Any) -> None:
    """Node 0 works 10 s at full speed, then 20 s at half: 20 s of work in 30 s, five times."""
    slow = FailureModel(mtbf=10, mttr=20, speed=0.5, nodes=(0,), **CLOCK)
    down = Disruptions(failure_models=(slow,))
    out = wt.simulate(jobs(8, 4), "3x4", disruptions=down, engine=engine)
    assert out.table["end_time"].to_pylist() == pytest.approx([150, 100])
    assert out.table["slowdown_time"].to_pylist() == pytest.approx([50, 0])
    assert out.metrics()["num_failures"] == 0
    assert out.metrics()["badput_slowdown"] == pytest.approx(50 * 8 / (150 * 8 + 100 * 4))


@ENGINES
@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_an_error_found_late_undoes_what_was_saved_since(engine: Any, cost: float) -> None:
    """The error comes at 35, after the checkpoint of 20 s; at 65 those of 40 and 60 are bad."""
    late = FailureModel(mtbf=35, mttr=1e6, found_after=30, nodes=(0,), **CLOCK)
    down = Disruptions(
        failure_models=(late,), checkpoint=Checkpointing(interval=20, cost=cost, restart_cost=2)
    )
    out = wt.simulate(jobs(4), "2x4", disruptions=down, engine=engine)
    done = 65 - 3 * cost
    assert out.table["lost_time"].to_pylist() == pytest.approx([done - 20])
    # From 65 on: 2 s to restart, 80 s left, checkpoints at 20, 40 and 60 s of them.
    assert out.table["end_time"].to_pylist() == pytest.approx([65 + 2 + 80 + 3 * cost])


@ENGINES
def test_a_spare_takes_the_place_of_a_failed_node(engine: Any) -> None:
    """Node 2 stands in for 0, which stands in for 1; as 2 fails for good, 1 is nobody's spare."""
    failures = (
        NodeFailure(time=50, node=0, until=60),
        NodeFailure(time=70, node=1, until=80),
        NodeFailure(time=75, node=2),
    )
    down = Disruptions(node_failures=failures, spares=1)
    out = wt.simulate(jobs(8, 4), "3x4", disruptions=down, engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 180]
    assert out.table["end_time"].to_pylist() == [180, 280]
    assert out.table["lost_time"].to_pylist() == [75, 0]


@ENGINES
def test_spares_that_fail_are_no_spares_until_repaired(engine: Any) -> None:
    failures = (NodeFailure(time=10, node=2, until=40), NodeFailure(time=20, node=0, until=90))
    down = Disruptions(node_failures=failures, spares=1)
    out = wt.simulate(jobs(8), "3x4", disruptions=down, engine=engine)
    # From 20 to 40 only node 1 is up; then node 2 stands in.
    assert out.table["end_time"].to_pylist() == [140]


@pytest.mark.parametrize(
    ("cluster", "more"),
    [
        ("pool:8", {"spares": 1}),
        ("2x4", {"spares": 2}),
        ("2x4", {"spares": -1}),
        ("pool:8", {"failure_models": [{"mtbf": 9, "mttr": 1, "speed": 0.5}]}),
        ("pool:8", {"failure_models": [{"mtbf": 9, "mttr": 1, "found_after": 5}]}),
        ("2x4", {"failure_models": [{"mtbf": 9, "mttr": 1, "speed": 1.5}]}),
        ("2x4", {"failure_models": [{"mtbf": 9, "mttr": 1, "speed": 0.5, "found_after": 5}]}),
        ("2x4", "mtbf:1d/mttr:1h/spares:few"),
    ],
)
def test_what_means_nothing_is_refused(cluster: str, more: Any) -> None:
    with pytest.raises(SpecError):
        wt.simulate(jobs(4), cluster, disruptions=more)


@pytest.mark.parametrize("more", [{"spares": 1.5}, {"spares": True}, {"repair_crews": 1.5}])
def test_parts_of_nodes_and_crews_are_refused(more: Any) -> None:
    with pytest.raises(SpecError, match="a whole number"):
        Disruptions(**more)
