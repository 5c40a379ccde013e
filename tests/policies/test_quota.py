"""Quotas at work, by hand: who borrows, who gives way, who waits at the head for too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.policies import resolve_policy
from windtunnel.policies.quota import Quota

if TYPE_CHECKING:
    from pathlib import Path

Row = tuple[str, float, float, float, str]
TWO = {"a": 4, "b": 4}


def jobs(*rows: Row, **columns: list[Any]) -> dict[str, list[Any]]:
    """Jobs as (id, submit time, duration, GPUs, vc)."""
    names = ("job_id", "submit_time", "duration", "num_gpus", "vc")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)} | columns


def flown(table: dict[str, list[Any]], quotas: Any, cluster: Any = "pool:8", **options: Any) -> Any:
    return wt.simulate(table, cluster, Quota(quotas, **options))


def times(outcome: wt.Outcome) -> dict[str, tuple[float | None, float | None]]:
    table = outcome.table.select(["job_id", "start_time", "end_time"]).to_pylist()
    return {row["job_id"]: (row["start_time"], row["end_time"]) for row in table}


def preempted(outcome: wt.Outcome) -> list[str]:
    rows = outcome.table.to_pylist()
    return [row["job_id"] for row in rows if row["num_preemptions"]]


BORROWED = jobs(("a1", 0, 100, 4, "a"), ("a2", 1, 100, 4, "a"), ("b1", 10, 10, 4, "b"))


def test_unused_quota_is_borrowed_and_comes_back_when_it_is_free() -> None:
    assert times(flown(BORROWED, TWO)) == {"a1": (0, 100), "a2": (1, 101), "b1": (100, 110)}


def test_hard_quotas_share_nothing() -> None:
    out = flown(BORROWED, TWO, borrowing="none")
    assert times(out) == {"a1": (0, 100), "a2": (100, 200), "b1": (10, 20)}


def test_reclaim_takes_the_job_that_was_admitted_last() -> None:
    out = flown(BORROWED, TWO, reclaim_within_cohort="Any")
    assert times(out) == {"a1": (0, 100), "a2": (1, 111), "b1": (10, 20)}
    assert preempted(out) == ["a2"]
    # It holds 9 s of its 100 by then, and goes on at 20, when b1 is done.
    assert out.segments["start"].to_pylist() == [0, 1, 10, 20]


@pytest.mark.parametrize(("priority", "start"), [(0.0, 100), (1.0, 10), (None, 100)])
def test_reclaim_of_lower_priority_only(priority: float | None, start: float) -> None:
    table = BORROWED | {"priority": [None, None, priority]}
    out = flown(table, TWO, reclaim_within_cohort="LowerPriority")
    assert times(out)["b1"] == (start, start + 10)


def test_nobody_reclaims_beyond_the_nominal_quota() -> None:
    table = jobs(("a1", 0, 100, 6, "a"), ("b1", 1, 10, 5, "b"))
    assert times(flown(table, TWO, reclaim_within_cohort="Any"))["b1"] == (100, 110)


def test_limits() -> None:
    queues = [
        {"vc": "a", "nominal_quota": 4, "borrowing_limit": 1, "cohort": "c"},
        {"vc": "b", "nominal_quota": 4, "cohort": "c"},
    ]
    table = jobs(("a1", 0, 10, 4, "a"), ("a2", 0, 10, 2, "a"), ("a3", 0, 10, 1, "a"))
    assert times(flown(table, {"queues": queues})) == {
        "a1": (0, 10),
        "a2": (10, 20),
        "a3": (0, 10),
    }


def test_who_goes_first() -> None:
    """Within nominal quota before borrowing, then priority, then time."""
    table = jobs(
        ("hold", 0, 10, 8, "a"),
        ("borrows", 1, 10, 6, "a"),
        ("b-late", 3, 10, 2, "b"),
        ("b-urgent", 4, 10, 2, "b"),
        priority=[None, 5.0, None, 1.0],
    )
    assert times(flown(table, TWO)) == {
        "hold": (0, 10),
        "b-urgent": (10, 20),
        "b-late": (10, 20),
        "borrows": (20, 30),
    }


def test_strict_and_best_effort() -> None:
    table = jobs(("a1", 0, 10, 3, "a"), ("a2", 1, 10, 2, "a"), ("a3", 2, 5, 1, "a"))
    best = flown(table, {"a": 4}, "pool:4")
    strict = flown(table, {"a": 4}, "pool:4", queueing_strategy="StrictFIFO")
    assert times(best)["a3"] == (2, 7)
    assert times(strict)["a3"] == (10, 15)


def test_lower_priorities_of_other_queues_go_before_those_of_ones_own() -> None:
    """Others' first, then the lowest priority, then the latest; who need not go stays."""
    table = jobs(
        ("own", 0, 100, 2, "b"),
        ("a-low", 1, 100, 1, "a"),
        ("a-old", 2, 100, 3, "a"),
        ("a-new", 3, 100, 2, "a"),
        ("b1", 10, 10, 2, "b"),
        priority=[0.0, -1.0, 0.0, 0.0, 1.0],
    )
    rules = {"reclaim_within_cohort": "Any", "within_cluster_queue": "LowerPriority"}
    # a holds 6 of 4. In order: a-low (1 GPU, not enough), then a-new (2, enough): a-low stays.
    assert preempted(flown(table, TWO, **rules)) == ["a-new"]
    # Where others may not be touched, its own job of lower priority goes.
    own = {"within_cluster_queue": "LowerPriority"}
    assert preempted(flown(table, TWO, **own)) == ["own"]


def test_a_queue_that_no_longer_borrows_loses_nobody() -> None:
    """More is promised than there is: without a2, a holds 3 of its 4, and b's 8 are not free."""
    table = jobs(("a1", 0, 50, 3, "a"), ("a2", 1, 50, 3, "a"), ("b1", 2, 10, 8, "b"))
    out = flown(table, {"a": 4, "b": 8}, reclaim_within_cohort="Any")
    assert preempted(out) == []  # and a2 does not go in vain
    assert times(out)["b1"] == (51, 61)


def test_only_those_that_borrow_give_way() -> None:
    three = {"a": 4, "b": 4, "c": 0}
    table = jobs(("a1", 0, 50, 3, "a"), ("c1", 0, 50, 1, "c"), ("b1", 2, 10, 4, "b"))
    out = flown(table, three, cluster="pool:7", reclaim_within_cohort="Any")
    assert preempted(out) == ["c1"]
    out = flown(table, three, cluster="pool:6", reclaim_within_cohort="Any")
    assert preempted(out) == []  # 2 GPUs are free, and c1's one would not do
    assert times(out)["b1"] == (50, 60)


def test_reclaim_frees_nodes_not_only_quota() -> None:
    # b's 4 GPUs are free in the books, 2 on each node; one node must be cleared of what borrows.
    table = jobs(
        ("a1", 0, 99, 2, "a"),
        ("b0", 0, 5, 2, "b"),
        ("a2", 0, 99, 2, "a"),
        ("b1", 6, 10, 4, "b"),
    ) | {"num_tasks": [1] * 4}
    quotas = {"a": 2, "b": 6}
    out = flown(table, quotas, "2x4", reclaim_within_cohort="Any")
    assert preempted(out) == ["a2"]
    assert times(out)["b1"] == (6, 16)
    assert times(flown(table, quotas, "2x4"))["b1"] == (99, 109)


def test_fair_sharing_halves_what_is_lent() -> None:
    """All that c lends, a borrows; b gets one job's worth, and then their shares are equal."""
    rows = [(f"a{i}", 0.0, 100.0, 2.0, "a") for i in range(3)]
    rows += [(f"b{i}", 10.0 + i, 100.0, 2.0, "b") for i in range(3)]
    rules = {"reclaim_within_cohort": "Any", "fair_sharing": "yes"}
    out = flown(jobs(*rows), {"a": 2, "b": 2, "c": 4}, **rules)
    # b0 is within its own quota. For b1: b's share would be 2/8, a's without a2 2/8. For b2: 4/8
    # against 0/8 without a1, and against 2/8 as it is: no.
    assert preempted(out) == ["a2"]
    assert [times(out)[name][0] for name in ("b0", "b1", "b2")] == [10, 11, 100]
    plain = flown(jobs(*rows), {"a": 2, "b": 2, "c": 4}, reclaim_within_cohort="Any")
    assert preempted(plain) == []
    assert [times(plain)[name][0] for name in ("b0", "b1", "b2")] == [10, 100, 100]


def test_weights_of_fair_sharing() -> None:
    rows = [(f"a{i}", 0.0, 100.0, 2.0, "a") for i in range(3)]
    rows += [(f"b{i}", 10.0 + i, 100.0, 2.0, "b") for i in range(3)]
    queues = [
        {"vc": "a", "nominal_quota": 2, "cohort": "c"},
        {"vc": "b", "nominal_quota": 2, "cohort": "c", "weight": 4},
        {"vc": "c", "nominal_quota": 4, "cohort": "c"},
    ]
    out = flown(jobs(*rows), {"queues": queues}, reclaim_within_cohort="Any", fair_sharing="yes")
    assert preempted(out) == ["a1", "a2"]  # b2: 4/8/4 against a's 2/8 as it is


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_equal_weighted_shares_are_equal(engine: Any) -> None:
    """3 of 10 at weight 3 is 1 of 10 at weight 1 (0.3 / 3 is not 0.1): the larger priority goes."""
    rows = [("c0", 0, 100, 7, "c"), ("a0", 1, 10, 3, "a"), ("b0", 1, 10, 1, "b")]
    queues = [
        {"vc": "a", "nominal_quota": 0, "cohort": "all", "weight": 3},
        {"vc": "b", "nominal_quota": 0, "cohort": "all"},
        {"vc": "c", "nominal_quota": 10, "cohort": "all"},
    ]
    policy = Quota({"queues": queues}, fair_sharing="yes")
    out = wt.simulate(jobs(*rows, priority=[0, 0, 1]), "pool:10", policy, engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 11, 1]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_fair_queue_counts_its_new_job_when_the_largest_share_goes(engine: Any) -> None:
    """With m3 the share of m is 4/12, above b's 3/12: m2 goes, then b2, which leaves b 2/12."""
    rows = [("m1", 0, 99, 1, "m"), ("m2", 1, 99, 3, "m"), ("b1", 2, 99, 4, "b")]
    rows += [("b2", 3, 99, 1, "b"), ("c1", 4, 99, 3, "c"), ("m3", 9, 9, 4, "m")]
    rules = {"reclaim_within_cohort": "Any", "within_cluster_queue": "LowerPriority"}
    policy = Quota({"m": 4, "b": 2, "c": 6}, fair_sharing="yes", **rules)
    table = jobs(*rows, priority=[0, 0, 0, 0, 0, 1])
    out = wt.simulate(table, "pool:12", policy, engine=engine)
    assert times(out)["m3"] == (9, 18)
    assert preempted(out) == ["m2", "b2"]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_of_fair_queues_with_equal_shares_the_least_urgent_job_goes(engine: Any) -> None:
    rows = [("b1", 0, 99, 3, "b"), ("c1", 0, 99, 3, "c"), ("a1", 9, 9, 2, "a")]
    rules = {"reclaim_within_cohort": "Any", "fair_sharing": "yes"}
    policy = Quota({"a": 4, "b": 1, "c": 1}, **rules)
    out = wt.simulate(jobs(*rows, priority=[2, 0, 0]), "pool:6", policy, engine=engine)
    assert preempted(out) == ["c1"]


def test_quota_by_gpu_type_is_tried_in_order() -> None:
    cluster = wt.ClusterSpec((wt.NodeType(1, 4, "V100"), wt.NodeType(1, 4, "T4")))
    quotas = {"a": {"T4": 2, "V100": 2}, "b": {"T4": 2, "V100": 2}}
    table = jobs(
        ("t1", 0, 50, 2, "a"),
        ("t2", 0, 50, 2, "a"),
        ("v1", 0, 50, 2, "a"),
        ("b1", 1, 10, 2, "b"),
        gpu_type=[None, None, "V100", "T4|V100"],
    )
    out = flown(table, quotas, cluster, reclaim_within_cohort="Any")
    nodes = dict(zip(table["job_id"], out.table["nodes"].to_pylist(), strict=True))
    assert nodes == {"t1": [1], "t2": [1], "v1": [0], "b1": [0]}
    assert preempted(out) == []
    alone = flown(table, quotas, cluster, borrowing="none")
    nodes = dict(zip(table["job_id"], alone.table["nodes"].to_pylist(), strict=True))
    assert nodes == {"t1": [1], "t2": [0], "v1": [0], "b1": [1]}
    assert times(alone)["v1"] == (50, 100)


GANG = jobs(
    ("long", 0, 100, 2, "a"),
    ("big", 1, 10, 4, "a"),
    ("s1", 2, 10, 2, "a"),
    ("s2", 3, 10, 2, "a"),
)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"big": 100, "s1": 110, "s2": 110}),
        # 1-21 at the head; out until 51; 51-71 at the head; out until 101; then it is free.
        ({"gang_timeout": 20, "backoff": 30}, {"big": 101, "s1": 21, "s2": 31}),
        # The second time it is out twice as long, until 131.
        (
            {"gang_timeout": 20, "backoff": 30, "backoff_max": 60},
            {"big": 131, "s1": 21, "s2": 31},
        ),
        ({"gang_timeout": 200, "backoff": 30}, {"big": 100, "s1": 110, "s2": 110}),
        # Not out at all, but behind the others: s2 is at the head when big would start.
        ({"gang_timeout": 20, "backoff": 0}, {"big": 100, "s1": 21, "s2": 31}),
    ],
)
def test_a_gang_waits_at_the_head_only_so_long(
    options: dict[str, Any], expected: dict[str, float]
) -> None:
    out = flown(GANG, {"a": 4}, "pool:4", queueing_strategy="StrictFIFO", **options)
    found = times(out)
    assert {name: found[name][0] for name in expected} == expected


def test_where_a_gang_is_put_back() -> None:
    """At the end of the queue as it was then, or at its old place."""
    table = jobs(
        ("long", 0, 40, 2, "a"),
        ("big", 1, 10, 4, "a"),
        ("g2", 2, 10, 4, "a"),
    )
    starts = {}
    for timestamp in ("Eviction", "Creation"):
        rules = {"gang_timeout": 20, "backoff": 5, "requeuing_timestamp": timestamp}
        out = flown(table, {"a": 4}, "pool:4", queueing_strategy="StrictFIFO", **rules)
        starts[timestamp] = times(out)["big"][0], times(out)["g2"][0]
    # big is out 21-26. g2 is at the head from 21 on; at 40 it goes, unless big is before it again.
    assert starts == {"Eviction": (50, 40), "Creation": (40, 50)}


def test_time_outs_are_noted() -> None:
    out = wt.simulate(GANG, "pool:4", "quota:queueing_strategy=StrictFIFO:gang_timeout=20")
    assert any("put back" in note for note in out.notes)
    assert out.settings["parameters"]["gang_timeout"] == 20


def test_quotas_of_nobody_are_noted() -> None:
    more = {"*": 1, "(none)": 1}
    assert flown(BORROWED, TWO | more).notes == ()
    out = flown(BORROWED, TWO | more | {"vX": 1})
    assert out.notes == ("The quotas name vc 'vX'; the trace has 'a', 'b'.",)


def test_the_rest_has_one_queue() -> None:
    table = jobs(("x", 0, 10, 2, "x"), ("y", 0, 10, 2, "y"), ("a", 0, 10, 2, "a"))
    out = flown(table, {"a": 2, "*": 2}, borrowing="none")
    assert times(out) == {"x": (0, 10), "y": (10, 20), "a": (0, 10)}


@pytest.mark.parametrize(
    ("table", "quotas", "message"),
    [
        (BORROWED, {"a": 8}, "virtual cluster 'b' has no quota"),
        (jobs(("x", 0, 1, 1, "a"), vc=[None]), {"a": 8}, r"virtual cluster '\(none\)' has no"),
        (
            jobs(("x", 0, 1, 8, "a")),
            {"a": 4},
            "job 'x': asks for 8 GPUs; the quota of 'a' allows 4",
        ),
        (jobs(("x", 0, 1, 1, "a")), {"a": {"T4": 1}}, "is of GPU type 'T4'; the cluster has no"),
    ],
)
def test_jobs_that_no_quota_serves(
    table: dict[str, list[Any]], quotas: dict[str, Any], message: str
) -> None:
    with pytest.raises(wt.PolicyError, match=message):
        flown(table, quotas)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_jobs_above_their_quota_are_rejected_where_such_jobs_are(engine: str) -> None:
    """As jobs that the cluster cannot hold are; the others run as if they were not there."""
    table = jobs(("x", 0, 10, 8, "a"), ("y", 1, 10, 4, "a"), ("z", 2, 10, 99, "a"))
    out = wt.simulate(table, "pool:8", Quota({"a": 4}), oversize="reject", engine=engine)
    assert out.table["status"].to_pylist() == ["rejected", "finished", "rejected"]
    assert out.table["start_time"].to_pylist() == [None, 1, None]
    assert "the quota of 'a' allows 4 at most" in out.reasons[0]
    assert "the cluster cannot hold it" in out.reasons[2]
    with pytest.raises(wt.PolicyError, match="Pass oversize='reject'"):
        wt.simulate(table, "pool:100", Quota({"a": 4}), engine=engine)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quota:borrowing=some", "borrowing: unknown name 'some'"),
        ("quota:gang_timeout=0", "expected seconds > 0"),
        ("quota:gang_timeout=-1", "expected seconds > 0"),
        ("quota:backoff=-1", "expected seconds >= 0"),
        ("quota:backoff=inf", "expected seconds >= 0"),
        ("quota:quotas=x", "a file is given as file=FILE.toml"),
        ("quota:file=none.toml", "cannot be read as TOML"),
        ("quota:fair_sharing=1", "fair_sharing: unknown name"),
    ],
)
def test_parameters_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        wt.simulate(BORROWED, "pool:8", text)


def test_times_may_have_units() -> None:
    plain = resolve_policy("quota:gang_timeout=1200:backoff=60:backoff_max=3600")
    spelt = resolve_policy("quota:gang_timeout=20m:backoff=1m:backoff_max=1h")
    assert isinstance(plain, Quota)
    assert isinstance(spelt, Quota)
    assert plain.wait == spelt.wait


def test_one_object_flies_twice_alike(tmp_path: Path) -> None:
    policy = Quota(TWO, reclaim_within_cohort="Any", gang_timeout=3.0)
    first, second = (wt.simulate(BORROWED, "pool:8", policy) for _ in range(2))
    assert first.table.equals(second.table)
    assert first.notes == second.notes


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_who_reclaims_goes_where_there_is_power(engine: Any) -> None:
    """The placement would choose A, where 4 GPUs draw 400 W; on B they draw 40 of the 50 W."""
    queues = [
        {"vc": "x", "cohort": "c", "nominal_quota": 4},
        {"vc": "y", "cohort": "c", "nominal_quota": 0},
    ]
    gpus = {"A": {"idle_w": 0, "active_w": 100}, "B": {"idle_w": 0, "active_w": 10}}
    asked: dict[str, Any] = {
        "submit_time": [0, 5],
        "duration": [100, 10],
        "num_gpus": [4, 4],
        "vc": ["y", "x"],
        "gpu_type": ["B", None],
    }
    out = wt.simulate(
        asked,
        "1x4:A,1x4:B",
        "quota:reclaim_within_cohort=Any",
        quotas={"queues": queues},
        power={"gpus": gpus, "host_w": 0},
        power_cap=50,
        engine=engine,
    )
    assert out.table["start_time"].to_pylist() == [0, 5]
    assert out.table["end_time"].to_pylist() == [110, 15]
    assert out.flight.nodes.tolist() == [1, 1, 1]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nothing_is_decided_at_the_time_out_of_who_has_started(engine: Any) -> None:
    """At 5 u starts, whose time-out would be at 6; nothing happens then.

    Its queue borrows from 5 on: at a decision v would take GPUs back. The next one is at 7.
    """
    queues = [
        {"vc": "a", "cohort": "c", "nominal_quota": 1, "weight": 0.5},
        {"vc": "b", "cohort": "c", "nominal_quota": 2, "reclaim_within_cohort": "Any"},
    ]
    table = jobs(
        ("s", 0, 5, 1, "b"), ("t", 0, 7, 1, "a"), ("v", 0, 1, 3, "b"), ("u", 1, 2, 2, "a")
    )  # fmt: skip
    policy = Quota({"queues": queues}, fair_sharing="yes", gang_timeout=5, backoff=0)
    found = times(wt.simulate(table, "1x4", policy, engine=engine))
    assert found == {"s": (0, 5), "t": (0, 7), "u": (5, 7), "v": (7, 8)}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_cohort_that_lends_nothing_has_no_share(engine: Any) -> None:
    """With the free GPU and that of low high has two; its share is 0, b's job's a quarter."""
    queues = [
        {"vc": "a", "cohort": "x", "nominal_quota": 2, "lending_limit": 0,
         "within_cluster_queue": "LowerPriority"},
        {"vc": "b", "cohort": "y", "nominal_quota": 0},
        {"vc": "c", "cohort": "y", "nominal_quota": 4},
    ]  # fmt: skip
    table = jobs(
        ("low", 0, 100, 1, "a"), ("c1", 0, 100, 2, "c"),
        ("high", 1, 10, 2, "a"), ("b1", 1, 10, 1, "b"), priority=[0, 0, 1, 0],
    )  # fmt: skip
    policy = Quota({"queues": queues}, fair_sharing="yes")
    found = times(wt.simulate(table, "pool:4", policy, engine=engine))
    assert (found["high"], found["b1"]) == ((1, 11), (11, 21))
