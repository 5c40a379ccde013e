"""Failures and drains under policies that keep books, worked by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import windtunnel as wt
from windtunnel.policies import Quota
from windtunnel.sim.disruptions import Disruptions, NodeFailure, Reservation

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_stopped_job_gives_its_quota_back_and_waits_in_its_place() -> None:
    jobs = {
        "submit_time": [0, 0, 1],
        "duration": [100, 100, 10],
        "num_gpus": [4, 4, 4],
        "vc": ["a", "b", "a"],
    }
    down = Disruptions(node_failures=[NodeFailure(node=0, time=50, until=60)])
    out = wt.simulate(jobs, "2x4", Quota({"a": 4, "b": 4}), disruptions=down)
    # Stopped at 50, it goes before the later job of its queue when the node is back, all anew; the
    # other borrows what b leaves at 100.
    assert out.table["end_time"].to_pylist() == [160, 100, 110]
    assert out.segments["start"].to_pylist() == [0, 0, 60, 100]


def test_a_nominal_quota_does_not_shrink_with_the_cluster() -> None:
    jobs = {
        "submit_time": [0, 0, 20],
        "duration": [100, 100, 10],
        "num_gpus": [4, 4, 4],
        "vc": ["b", "b", "a"],
    }
    down = Disruptions(node_failures=[NodeFailure(node=0, time=10, until=50)])
    policy = Quota({"a": 4, "b": 4}, reclaim_within_cohort="Any")
    out = wt.simulate(jobs, "2x4", policy, disruptions=down)
    # From 10 on b holds 4 GPUs, its own, though no others are left: nobody gives way at 20. At 50
    # a's job stays within its quota, b's would borrow.
    assert out.segments["start"].to_pylist() == [0, 0, 50, 60]
    assert out.table["num_preemptions"].to_pylist() == [0, 0, 0]


def test_usage_is_not_charged_while_a_failed_node_is_down() -> None:
    jobs = {
        "submit_time": [0, 1, 2],
        "duration": [15, 50, 10],
        "num_gpus": [2, 2, 2],
        "user": ["b", "a", "b"],
    }
    down = Disruptions(node_failures=[NodeFailure(node=0, time=25, until=100)])
    policy = "fair-share:half_life=inf:every=10"
    out = wt.simulate(jobs, "1x2", policy, disruptions=down)
    # At 100 b has had 30 GPU-seconds and a 20, which would be 170 had it been charged until then.
    assert out.segments["start"].to_pylist() == [0, 15, 100, 150]


def test_who_waits_for_gpus_that_are_gone_waits_and_is_noted() -> None:
    """The gang's time-outs go on for ever; the run does not."""
    jobs = {
        "submit_time": [0, 10, 20],
        "duration": [100, 10, 10],
        "num_gpus": [2, 4, 2],
        "vc": ["a", "a", "a"],
    }
    down = Disruptions(node_failures=[NodeFailure(node=1, time=5)])
    policy = "quota:queueing_strategy=StrictFIFO:gang_timeout=20:backoff=30"
    out = wt.simulate(jobs, "2x2", policy, disruptions=down)
    # The gang at the head is put aside for 30 s now and then: so the third goes at 100.
    assert out.table["status"].to_pylist() == ["finished", "waiting", "finished"]
    assert out.table["start_time"].to_pylist() == [0, None, 100]
    assert any("1 job waits for ever" in note for note in out.notes)


def test_a_job_goes_on_the_nodes_that_are_kept_for_it_on_the_type_of_its_quota() -> None:
    jobs = {"submit_time": [1, 2], "duration": [10, 10], "num_gpus": [4, 4], "vc": ["a", "b"]}
    kept = Disruptions(reservations=[Reservation(nodes=(0,), start=0, end=30, vcs=("a",))])
    quotas = {
        "queues": [{"vc": vc, "nominal_quota": {"A100": 4}, "cohort": "one"} for vc in ("a", "b")]
    }
    out = wt.simulate(jobs, "1x4:A100,1x4:T4", Quota(quotas), disruptions=kept)
    assert out.table["start_time"].to_pylist() == [1, 30]
    assert out.table["nodes"].to_pylist() == [[0], [0]]


def test_what_a_policy_of_tier_3_sees() -> None:
    seen: list[Any] = []

    def greedy(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        names = [
            [job.job_id for job in jobs]
            for jobs in (queue.arrived, cluster.interrupted, cluster.finished)
        ]
        seen.append((now, *names))
        for job in queue:
            if cluster.fit(job) is not None:
                yield wt.Start(job)

    jobs = {"job_id": ["x", "y"], "submit_time": [0, 5], "duration": [10, 10], "num_gpus": [2, 2]}
    down = Disruptions(node_failures=[NodeFailure(node=0, time=8, until=9)])
    out = wt.simulate(jobs, "2x2", greedy, disruptions=down)
    assert seen == [
        (0, ["x"], [], []),
        (5, ["y"], [], []),
        (8, ["x"], ["x"], []),
        (9, [], [], []),
        (15, [], [], ["y"]),
        (19, [], [], ["x"]),
    ]
    assert out.metrics()["num_failures"] == 1
