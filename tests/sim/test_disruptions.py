"""Failures, checkpoints, holds and reservations, each worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.sim.disruptions import (
    CapacityChange,
    Checkpointing,
    Disruptions,
    FailureModel,
    JobFailures,
    Maintenance,
    NodeFailure,
    RecordedFailures,
    Reservation,
)

ENGINES = ("reference", "compiled")
ONE = {"submit_time": [0.0], "duration": [100.0], "num_gpus": [4.0]}
AT_50 = NodeFailure(node=0, time=50, until=60)


def fly(jobs: Any, cluster: str, policy: Any = "fifo", **options: Any) -> wt.Outcome:
    parts = ("checkpoint", "on_failure", "node_failures", "failure_models", "recorded_failures",
             "job_failures", "maintenance", "capacity_changes", "reservations")  # fmt: skip
    given = {name: options.pop(name) for name in parts if name in options}
    return wt.simulate(jobs, cluster, policy, disruptions=Disruptions(**given), **options)


def spans(out: wt.Outcome) -> list[tuple[int, float, float | None, list[int]]]:
    names = ("row", "start", "end", "nodes")
    return list(zip(*(out.segments[name].to_pylist() for name in names), strict=True))


def times(out: wt.Outcome) -> list[tuple[float | None, float | None]]:
    columns = (out.table["start_time"].to_pylist(), out.table["end_time"].to_pylist())
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("checkpoint", "end", "lost", "overhead"),
    [
        (Checkpointing(), 160, 50, 0),
        (Checkpointing(restart_cost=5), 165, 50, 5),
        (Checkpointing(interval=20), 120, 10, 0),  # 40 are saved
        (Checkpointing(interval=25), 110, 0, 0),  # the second is complete as the node fails
        (Checkpointing(interval=100), 160, 50, 0),  # none is written when the work is done
        # Checkpoints at 20-22 and 42-44, 6 lost; 60 + 5, then 60 of work with two more.
        (Checkpointing(interval=20, cost=2, restart_cost=5), 129, 6, 13),
        # The checkpoint at 48-53 is not complete: 48 of work are lost, 2 of overhead in vain.
        (Checkpointing(interval=48, cost=5), 60 + 100 + 10, 48, 12),
    ],
)
def test_a_failure_undoes_what_is_not_saved(
    checkpoint: Checkpointing, end: float, lost: float, overhead: float
) -> None:
    out = fly(ONE, "1x4", node_failures=[AT_50], checkpoint=checkpoint)
    found = out.flight.interruptions
    assert found is not None
    row = out.table.to_pylist()[0]
    assert (row["end_time"], row["lost_time"], row["num_failures"]) == (end, found.lost_time[0], 1)
    assert (found.lost_time[0], found.overhead_time[0], found.useful_time[0]) == (
        *(lost, overhead),
        100,
    )
    assert row["run_time"] == end - 10 == found.lost_time[0] + found.overhead_time[0] + 100
    metrics = out.metrics()
    assert metrics["lost_gpu_time"] == 4 * found.lost_time[0]
    assert (metrics["num_failures"], metrics["num_restarts"]) == (1, 1)
    assert metrics["utilization"] == 1  # ten seconds nothing was up


def test_a_completion_comes_before_a_failure() -> None:
    out = fly(ONE, "1x4", node_failures=[NodeFailure(node=0, time=100, until=110)])
    assert times(out) == [(0, 100)]
    assert out.metrics()["num_failures"] == 0


def test_a_failure_may_be_the_end() -> None:
    jobs = {"submit_time": [0, 1], "duration": [100, 10], "num_gpus": [4, 4]}
    out = fly(jobs, "1x4", node_failures=[AT_50], on_failure="end")
    assert out.table["status"].to_pylist() == ["failed", "finished"]
    assert times(out) == [(0, 50), (60, 70)]
    metrics = out.metrics()
    assert (metrics["num_failed"], metrics["num_finished"], metrics["avg_jct"]) == (1, 1, 69)
    assert out.queue().to_pydict()["jobs"][-1] == 0


def test_a_gang_falls_with_any_node_and_goes_elsewhere() -> None:
    jobs = {"submit_time": [0, 0], "duration": [100, 100], "num_gpus": [8, 4]}
    out = fly(jobs, "4x4", node_failures=[NodeFailure(node=1, time=30)])
    assert spans(out) == [(0, 0, 30, [0, 1]), (1, 0, 100, [2]), (0, 30, 130, [0, 3])]
    up = out.utilization().to_pydict()
    assert up["time"] == [0, 30, 100, 130]
    assert up["utilization"] == [12 / 16, 1, 8 / 12, 0]
    assert out.metrics()["utilization"] == (240 + 400 + 800) / (480 + 1200)


@pytest.mark.parametrize(
    ("on_start", "first", "second", "lost"),
    [
        ("wait", [(0, 0, 100, [0])], 100, 0),
        ("kill", [(0, 0, 50, [0]), (0, 80, 180, [0])], 180, 50),
        ("checkpoint", [(0, 0, 50, [0]), (0, 80, 137, [0])], 137, 0),
    ],
)
def test_maintenance(on_start: str, first: list[Any], second: float, lost: float) -> None:
    jobs = {"submit_time": [0, 10], "duration": [100, 10], "num_gpus": [4, 1]}
    window = Maintenance(nodes=(0,), start=50, end=80, on_start=on_start)
    cost = Checkpointing(restart_cost=0 if on_start == "kill" else 7)
    out = fly(jobs, "1x4", maintenance=[window], checkpoint=cost)
    assert spans(out) == [*first, (1, second, second + 10, [0])]
    assert out.table["lost_time"].to_pylist() == [lost, 0]
    assert out.metrics()["num_failures"] == (on_start == "kill")
    assert out.metrics()["utilization"] <= 1


def test_a_node_drains_before_its_maintenance() -> None:
    jobs = {"submit_time": [0, 20, 39], "duration": [100, 100, 1], "num_gpus": [1, 1, 1]}
    window = Maintenance(nodes=(0,), start=50, end=80, drain_before=15)
    out = fly(jobs, "1x4", maintenance=[window])
    assert times(out) == [(0, 100), (20, 120), (80, 81)]


@pytest.mark.parametrize("queueing", ["easy", "conservative"])
def test_backfilling_sees_maintenance_coming(queueing: str) -> None:
    jobs: dict[str, Any] = {"submit_time": [0, 0, 0], "duration": [60, 50, 10], "num_gpus": [4] * 3}
    jobs["estimate"] = jobs["duration"]
    window = Maintenance(nodes=(0,), start=50, end=80, on_start="kill")
    out = fly(jobs, "1x4", queueing=queueing, maintenance=[window])
    # The first would run into the window and is promised 80; the second ends as it starts.
    assert times(out) == [(80, 140), (0, 50), (140, 150)]
    plain = fly(jobs, "1x4", queueing="skip", maintenance=[window])
    assert times(plain) == [(0, 140), (140, 190), (190, 200)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("queueing", ["easy", "easy_sjbf"])
def test_a_longer_job_goes_to_a_node_before_no_hold(queueing: str, engine: str) -> None:
    """The head is promised node 0 and two GPUs of node 1 at 10; two jobs of a GPU stand behind it.

    The first would run on node 0 then, and waits. The second would meet the hold there: it goes to
    node 1, beside the head.
    """
    jobs = {"submit_time": [0] * 4, "duration": [10, 3, 20, 30], "num_gpus": [3, 6, 1, 1]}
    jobs["estimate"] = jobs["duration"]
    window = Maintenance(nodes=(0,), start=24, end=25)
    out = fly(jobs, "2x4", queueing=queueing, maintenance=[window], engine=engine)
    assert times(out) == [(0, 10), (10, 13), (10, 30), (0, 30)]


@pytest.mark.parametrize("queueing", ["strict", "skip", "easy", "conservative"])
def test_a_reservation_is_for_its_users(queueing: str) -> None:
    jobs = {
        "submit_time": [0, 5, 5],
        "duration": [20, 10, 10],
        "estimate": [20, 10, 10],
        "num_gpus": [4, 4, 4],
        "user": ["ann", "bob", "eve"],
    }
    held = Reservation(start=5, end=50, nodes=(1,), users=("eve",))
    out = fly(jobs, "2x4", queueing=queueing, reservations=[held])
    nodes = out.table["nodes"].to_pylist()
    assert nodes == [[0], [0], [1]]
    late = 5.0 if queueing != "strict" else 20.0  # strict stops at bob
    assert times(out) == [(0, 20), (20, 30), (late, late + 10)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_belongs_by_any_of_the_three_lists(engine: str) -> None:
    """Of four alike jobs one is the user's, one the virtual cluster's, one the job named itself."""
    jobs = {
        "job_id": ["a", "b", "c", "d"],
        "submit_time": [0] * 4,
        "duration": [10] * 4,
        "num_gpus": [1] * 4,
        "user": ["ann", "bob", "bob", "bob"],
        "vc": ["x", "y", "x", "x"],
    }
    held = Reservation(start=0, end=50, nodes=(0,), users=("ann",), vcs=("y",), jobs=("c", "a"))
    other = Reservation(start=50, end=60, nodes=(0,), users=("bob",))
    out = fly(jobs, "1x4", queueing="skip", reservations=[held, other], engine=engine)
    assert times(out) == [(0, 10), (0, 10), (0, 10), (50, 60)]


def test_reservations_for_nobody_are_noted() -> None:
    jobs = ONE | {"job_id": ["7"], "user": ["ann"]}
    held = Reservation(start=5, end=50, nodes=(1,), users=("ann", "anne"), vcs=("nlp",))
    other = Reservation(start=60, end=70, nodes=(1,), jobs=("7", "8"))
    out = fly(jobs, "2x4", reservations=[held, other])
    assert list(out.notes) == [
        "Reservations name user 'anne' (did you mean 'ann'?); the trace has 'ann'.",
        "Reservations name vc 'nlp'; the trace has none.",
        "Reservations name job '8'; the trace has '7'.",
    ]
    known = Reservation(start=5, end=50, nodes=(1,), users=("ann",), jobs=("7",))
    assert not fly(jobs, "2x4", reservations=[known]).notes


def test_reserved_nodes_are_tried_first_then_all() -> None:
    jobs = {
        "submit_time": [0, 0, 0],
        "duration": [10, 10, 10],
        "num_gpus": [1, 8, 4],
        "vc": ["a", "b", "b"],
    }
    held = Reservation(start=0, end=100, gpus=5, vcs=("b",))  # the last two nodes
    out = fly(jobs, "4x4", "fifo", reservations=[held])
    assert out.table["nodes"].to_pylist() == [[0], [2, 3], [1]]
    assert times(out) == [(0, 10)] * 3


@pytest.mark.parametrize("queueing", ["easy", "conservative"])
def test_backfilling_respects_a_coming_reservation(queueing: str) -> None:
    jobs = {
        "job_id": ["long", "short", "guest"],
        "submit_time": [0, 0, 0],
        "duration": [40, 30, 40],
        "estimate": [40, 30, 40],
        "num_gpus": [4, 4, 4],
    }
    held = Reservation(start=30, end=100, nodes=(0,), jobs=("guest",))
    out = fly(jobs, "1x4", queueing=queueing, reservations=[held])
    assert times(out) == [(100, 140), (0, 30), (30, 70)]


def test_preemption_leaves_reserved_and_failed_gpus_alone() -> None:
    jobs = {
        "submit_time": [0, 1, 2],
        "duration": [50, 20, 10],
        "num_gpus": [4, 4, 4],
        "user": ["eve", "ann", "ann"],
    }
    held = Reservation(start=0, end=100, nodes=(0,), users=("eve",))
    out = fly(jobs, "2x4", "srtf", reservations=[held])
    # eve has her node; of ann's two jobs the shorter goes first on the other.
    assert spans(out) == [(0, 0, 50, [0]), (1, 1, 2, [1]), (2, 2, 12, [1]), (1, 12, 31, [1])]
    failed = fly(jobs, "2x4", "srtf", node_failures=[NodeFailure(node=0, time=0.0)])
    assert [node for *_, nodes in spans(failed) for node in nodes] == [1] * len(failed.segments)
    assert failed.metrics()["num_finished"] == 3


def test_nodes_join_and_leave() -> None:
    jobs = {"submit_time": [0, 0, 25], "duration": [30, 30, 30], "num_gpus": [4, 4, 8]}
    changes = [CapacityChange(time=10, add=(1,)), CapacityChange(time=100, remove=(0,))]
    out = fly(jobs, "2x4", capacity_changes=changes)
    assert spans(out) == [(0, 0, 30, [0]), (1, 10, 40, [1]), (2, 40, 70, [0, 1])]
    assert out.metrics()["utilization"] == (120 + 120 + 240) / (4 * 10 + 8 * 60)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "easy-perfect", "conservative", "las"])
def test_what_never_fits_again_waits_with_a_note(policy: str) -> None:
    jobs = {"submit_time": [0, 5], "duration": [30, 30], "num_gpus": [4, 8], "estimate": [30, 30]}
    out = fly(
        jobs,
        "2x4",
        policy,
        capacity_changes=[CapacityChange(time=1, remove=(1,))],
        failure_models=[FailureModel(mtbf=1000, mttr=10, repair="fixed")],
    )
    assert out.table["status"].to_pylist() == ["finished", "waiting"]
    assert "1 job waits for ever: the GPUs they ask for do not come back." in out.notes


def test_a_pool_loses_gpus_and_who_started_last() -> None:
    jobs = {"submit_time": [0, 1, 2], "duration": [50, 50, 50], "num_gpus": [2, 2, 1]}
    failure = NodeFailure(gpus=3, time=10, until=20)
    out = fly(jobs, "pool:6", node_failures=[failure])
    # Five of six are held; three are left. The last and the one before it go.
    assert times(out) == [(0, 50), (1, 70), (2, 70)]
    assert out.table["num_failures"].to_pylist() == [0, 1, 1]
    waits = fly(jobs, "pool:6", maintenance=[Maintenance(gpus=3, start=10, end=20)])
    assert times(waits) == [(0, 50), (1, 51), (2, 52)]
    nodes = fly(jobs, "3x2", placement="pool", node_failures=[NodeFailure(node=2, time=10)])
    assert nodes.table["num_failures"].to_pylist() == [0, 0, 1]


def test_a_job_recorded_as_failed_fails_once() -> None:
    jobs = {**ONE, "status": ["failed"]}
    once = JobFailures(statuses=("failed",))
    assert times(fly(jobs, "1x4", job_failures=once)) == [(0, 200)]
    saved = fly(jobs, "1x4", job_failures=once, checkpoint=Checkpointing(interval=30))
    assert times(saved) == [(0, 110)]  # 90 are saved
    assert saved.metrics()["lost_gpu_time"] == 40
    over = fly(jobs, "1x4", job_failures=once, on_failure="end")
    assert (over.table["status"].to_pylist(), times(over)) == (["failed"], [(0, 100)])


def test_failures_of_the_record_hit_a_node_of_the_right_type() -> None:
    # The first was lost at 40 after 30 s; here another holds the T4 until 15.
    jobs = {
        "submit_time": [10.0, 0.0, 0.0],
        "start_time": [10.0, 0.0, 0.0],
        "end_time": [40.0, 15.0, 100.0],
        "duration": [30.0, 15.0, 100.0],
        "num_gpus": [4.0, 4.0, 4.0],
        "gpu_type": ["T4", "T4", "A100"],
        "status": ["node_fail", "completed", "completed"],
    }
    recorded = RecordedFailures(repair=30)
    out = fly(jobs, "1x4:A100,1x4:T4", recorded_failures=recorded)
    assert times(out) == [(15, 100), (0, 15), (0, 100)]  # 25 lost, down from 40 to 70
    assert out.table["lost_time"].to_pylist() == [25, 0, 0]


def test_a_record_without_failures_is_noted() -> None:
    out = fly(
        ONE,
        "1x4",
        recorded_failures=RecordedFailures(repair="1h"),
        job_failures=JobFailures(statuses=("failed",)),
    )
    assert times(out) == [(0, 100)]
    assert "No job is recorded as lost to a node: recorded failures change nothing." in out.notes
    assert "No job is recorded with a status that is to fail once." in out.notes


def test_a_job_that_never_gets_on_is_reported() -> None:
    with pytest.raises(wt.SpecError, match="has failed 10,001 times in a row"):
        fly({**ONE, "duration": [1e6]}, "1x4", job_failures=JobFailures(rate=900.0))


@pytest.mark.parametrize("engine", ENGINES)
def test_checkpoints_count_in_the_time_that_is_left(engine: str) -> None:
    """At 2 the first job needs 7 s, 5 of work and two checkpoints; the other 6 and one."""
    jobs = {"submit_time": [0, 2], "duration": [7, 6], "num_gpus": [4, 4]}
    saves = Checkpointing(interval=3, cost=1)
    out = fly(jobs, "1x4", "srtf", checkpoint=saves, engine=engine)
    assert times(out) == [(0, 9), (9, 16)]


def test_a_preempted_job_and_its_checkpoints() -> None:
    jobs = {"submit_time": [0, 25], "duration": [50, 5], "num_gpus": [1, 1]}
    out = fly(jobs, "1x1", "srtf", checkpoint=Checkpointing(interval=10, cost=1), save_time=2)
    # Checkpoints at 10-11, 21-22; 23 done at 25. The rest: 2 + 27 + two checkpoints.
    assert spans(out) == [(0, 0, 25, [0]), (1, 25, 30, [0]), (0, 30, 61, [0])]
    found = out.flight.interruptions
    assert found is not None
    assert (found.useful_time[0], found.overhead_time[0], found.lost_time[0]) == (50, 6, 0)


def test_tier_3_policies_see_a_stopped_job_wait_again() -> None:
    seen: list[tuple[float, int, int]] = []

    def decide(now: float, queue: Any, cluster: Any) -> Any:
        seen.append((now, len(queue), len(cluster.running)))
        for job in queue:
            if cluster.fit(job) is not None:
                yield wt.Start(job)

    jobs = {"submit_time": [0, 1], "duration": [100, 5], "num_gpus": [4, 4]}
    out = fly(jobs, "1x4", decide, node_failures=[AT_50])
    assert times(out) == [(0, 160), (160, 165)]
    assert seen == [(0, 1, 0), (1, 1, 1), (50, 2, 0), (60, 2, 0), (160, 1, 0), (165, 0, 0)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("events", ["batch", "submissions_first", "completions_first"])
def test_outages_go_with_every_policy_and_order_of_events(engine: str, events: str) -> None:
    given = Disruptions(node_failures=[AT_50])

    def key(job: wt.JobView, now: float) -> float:
        return job.remaining

    jobs = {**ONE, "estimate": ONE["duration"]}
    for policy in ("fifo", "conservative", "las", "quota", key):
        out = wt.simulate(jobs, "1x4", policy, engine=engine, disruptions=given, events=events)
        assert out.flight.interruptions is not None
        assert out.flight.interruptions.failures.sum() == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_there_may_be_many_reservations(engine: str) -> None:
    many = [Reservation(nodes=(0,), start=500 + n, end=501 + n) for n in range(63)]
    out = wt.simulate(ONE, "1x4", engine=engine, disruptions=Disruptions(reservations=many))
    assert out.metrics()["num_finished"] == 1


def test_settings_run_it_again() -> None:
    given = Disruptions(node_failures=[AT_50], checkpoint=Checkpointing(interval="20s"))
    out = wt.simulate(ONE, "1x4", disruptions=given)
    again = wt.simulate(ONE, "1x4", disruptions=out.settings["disruptions"])
    assert again.table == out.table
    assert again.settings == out.settings


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"node_failures": [NodeFailure(node=2, time=0)]}, "found node 2; the cluster has nodes 0"),
        ({"node_failures": [NodeFailure(time=0)]}, "expected either nodes or gpus"),
        ({"node_failures": [NodeFailure(gpus=1, time=0)]}, "only a pool loses single GPUs"),
        ({"maintenance": [Maintenance(nodes=(0, 0), start=0, end=1)]}, "each node once"),
        ({"failure_models": [FailureModel(mtbf=1e6, mttr=1, gpu_type="T4")]}, "unknown name 'T4'"),
        ({"reservations": [Reservation(start=0, end=1, gpus=99)]}, "found 99 GPUs"),
    ],
)
def test_what_the_cluster_does_not_have(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        fly(ONE, "2x4:A100", **parts)


def test_a_weibull_under_which_nodes_fail_as_they_come_back_is_refused() -> None:
    model = {"mtbf": "1d", "mttr": "1h", "distribution": "weibull"}
    with pytest.raises(wt.SpecError, match=r"found 0\.01; expected a number from 0\.1 up"):
        FailureModel(**model, shape=0.01)
    out = fly(ONE, "1x4", failure_models=[FailureModel(**model, shape=0.1)])
    assert out.table["status"].to_pylist() == ["finished"]


def test_a_pool_has_no_nodes_to_reserve() -> None:
    with pytest.raises(wt.SpecError, match="a pool has no nodes"):
        fly(ONE, "pool:8", reservations=[Reservation(start=0, end=1, gpus=4)])
    with pytest.raises(wt.SpecError, match="a pool has no nodes"):
        fly(ONE, "pool:8", node_failures=[AT_50])


def test_conservative_promises_anew_after_checkpoints_made_a_job_late() -> None:
    jobs = {
        "submit_time": [0.0, 1.0, 2.0],
        "duration": [5.0, 5.0, 5.0],
        "estimate": [5.0, 5.0, 5.0],
        "num_gpus": [4, 4, 4],
    }
    costly = Disruptions(checkpoint=Checkpointing(interval=1.0, cost=1.25))
    out = wt.simulate(jobs, "1x4", "conservative", disruptions=costly)
    # Four checkpoints of 1.25 s: each runs for 10 s where 5 s were expected.
    assert out.table["start_time"].to_pylist() == [0, 10, 20]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_work_that_fills_whole_intervals_is_saved_whatever_the_rounding(engine: str) -> None:
    """In floats, 1.0 // 0.2 is 4 and 1.0 / 0.2 is 5."""
    failure = NodeFailure(node=0, time=1.0, until=2.0)
    saved = Disruptions(node_failures=(failure,), checkpoint=Checkpointing(interval=0.2))
    jobs = {"submit_time": [0], "duration": [4], "num_gpus": [1]}
    out = wt.simulate(jobs, "1x1", disruptions=saved, engine=engine)
    assert out.table["lost_time"].to_pylist() == [0]
    assert out.table["end_time"].to_pylist() == [5]
