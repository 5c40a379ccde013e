"""Checkpoints that take time: what rounding must not change, worked by hand, on both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.sim.flight import Flight


class Rated(wt.Policy):
    """Starts whoever comes, at one rate, and changes it at given times.

    Args:
        rate: work a second.
        changes: (when, rate).
    """

    name = "rated"

    def __init__(self, rate: float, *changes: tuple[float, float]) -> None:
        self.rate, self.changes = rate, changes

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        """Start, or change the rate."""
        for job in queue:
            yield wt.Start(job, rate=self.rate)
            yield from (wt.Wake(at) for at, _ in self.changes if at > now)
        for job in cluster.running:
            yield from (wt.Rerate(job, rate) for at, rate in self.changes if at == now)


def _fly(
    engine: str, policy: Rated, work: float, *, submit: float = 0.0, **disruptions: Any
) -> Flight:
    jobs = {"submit_time": [submit], "duration": [work], "num_gpus": [1], "status": ["failed"]}
    return wt.simulate(jobs, "pool:1", policy, engine=engine, disruptions=disruptions).flight


ENGINES = pytest.mark.parametrize("engine", ["reference", "compiled"])


@ENGINES
def test_a_checkpoint_is_written_once_also_where_the_rate_changes_as_it_ends(engine: str) -> None:
    """Work 1.2 with three checkpoints of 0.7 s, after 0.3, 0.6, 0.9.

    The first ends at 0.3 + 0.7 = 1 s; one float before that, 0.7 s of it have been, as far as
    numbers tell. At half the rate from there on 0.9 of work takes 1.8 s, the other two 1.4 s.
    """
    policy = Rated(1.0, (float(np.nextafter(1.0, 0.0)), 0.5))
    out = _fly(engine, policy, 1.2, checkpoint={"interval": 0.3, "cost": 0.7})
    assert out.end[0] == pytest.approx(1.0 + 1.8 + 1.4)


@ENGINES
@pytest.mark.parametrize(("submit", "rate"), [(0.74, 0.75), (1.48, 0.9), (1.48, 0.6)])
def test_who_fails_at_its_end_had_done_all_its_work(
    engine: str, submit: float, rate: float
) -> None:
    """Of 4 s of work the checkpoint after 2 s leaves 2 s to be lost, to the bit."""
    failing = {"rate": 20.0, "statuses": ["failed"]}
    saved = {"interval": 2.0, "cost": 1.0}
    out = _fly(engine, Rated(rate), 4.0, submit=submit, checkpoint=saved, job_failures=failing)
    assert out.interruptions is not None
    assert out.interruptions.lost_time.tolist() == [2.0]


@pytest.mark.parametrize(
    "changes",
    [((12.0, 0.5), (16.5, 2.0), (18.4, 0.75)), ((15.8, 2.0), (17.0, 0.75), (17.5, 0.5))],
)
def test_what_slow_downs_took_besides_checkpoints_is_the_same_on_both_engines(
    changes: tuple[tuple[float, float], ...],
) -> None:
    """Seconds of writing are counted from the stay's begin, not summed change by change."""
    saved = {"interval": 5.0, "cost": 0.3}
    one, other = (
        _fly(engine, Rated(1.0, *changes), 20.0, checkpoint=saved)
        for engine in ("reference", "compiled")
    )
    assert one.slowdown_time is not None
    assert other.slowdown_time is not None
    assert one.slowdown_time.tolist() == other.slowdown_time.tolist()


@ENGINES
@pytest.mark.parametrize("queueing", ["easy", "conservative"])
def test_backfilling_expects_checkpoints_that_are_to_come(engine: str, queueing: str) -> None:
    """A works 20 s and writes three checkpoints of 1 s, to 23 s; B, on both GPUs, follows.

    At 21 s there is room beside A until then: C, of 1.5 s, starts. D, of 0.75 s, would be late.
    """
    jobs = {
        "submit_time": [0, 1, 21, 22.375],
        "duration": [20, 10, 1.5, 0.75],
        "num_gpus": [1, 2, 1, 1],
    }
    out = wt.simulate(
        jobs, "pool:2", "fifo", queueing=queueing, estimates="perfect", engine=engine,
        disruptions={"checkpoint": {"interval": 5, "cost": 1}},
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 23, 21, 34]


@ENGINES
@pytest.mark.parametrize("queueing", ["easy", "conservative"])
def test_a_change_of_rate_leaves_the_checkpoints_expected(engine: str, queueing: str) -> None:
    """A has done 10 s of 20 by 12 s, is at half speed for 2 s, and ends at 14 + 9 + 1 = 24 s.

    B, on all GPUs, follows it. C comes at 22.5 s, and is done by then.
    """
    jobs = {
        "submit_time": [0, 12, 13, 22.5],
        "duration": [20, 2, 10, 1.5],
        "num_gpus": [1, 1, 3, 1],
        "num_cpus": [0, 8, 0, 0],
    }
    out = wt.simulate(
        jobs, wt.ClusterSpec((wt.NodeType(1, 3, cpus=8),)), "fifo", queueing=queueing,
        estimates="perfect", resources="gpus", slowdown={"cpu": 0.5}, engine=engine,
        disruptions={"checkpoint": {"interval": 5, "cost": 1}},
    )  # fmt: skip
    assert out.table["start_time"].to_pylist() == [0, 12, 24, 22.5]
