"""Quotas as a limit of any policy: hand-worked runs, on both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.errors import PolicyError, SpecError
from windtunnel.policies import Quota

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENGINES = pytest.mark.parametrize("engine", ["compiled", "reference"])
#: Two virtual clusters of four GPUs that lend each other nothing, and all.
APART = {"queues": [{"vc": vc, "nominal_quota": 4} for vc in "ab"]}
LENT = {"queues": [{"vc": vc, "nominal_quota": 4, "cohort": "all"} for vc in "ab"]}


def _jobs(*rows: tuple[float, float, float, str], **more: Sequence[Any]) -> dict[str, Any]:
    """Return jobs of (submit time, duration, GPUs, virtual cluster); their estimates are right."""
    columns = dict(
        zip(
            ("submit_time", "duration", "num_gpus", "vc"),
            map(list, zip(*rows, strict=True)),
            strict=True,
        )
    )
    return {"estimate": columns["duration"], **columns, **{k: list(v) for k, v in more.items()}}


def _starts(jobs: dict[str, Any], cluster: Any, policy: Any, **options: Any) -> list[float]:
    found: list[float] = (
        wt.simulate(jobs, cluster, policy, **options).table["start_time"].to_pylist()
    )
    return found


def _starts_by_priority(
    rows: Sequence[tuple[float, float, float, str]],
    priority: Sequence[int],
    cluster: str,
    queues: Sequence[dict[str, Any]],
    **options: Any,
) -> list[float]:
    """Return when jobs start of which those of higher priority stop others, under quotas."""
    jobs = _jobs(*rows, priority=priority)
    return _starts(jobs, cluster, "priority-preemptive", quotas={"queues": queues}, **options)


@ENGINES
@pytest.mark.parametrize("queueing", ["strict", "skip", "easy", "easy_sjbf", "conservative"])
def test_who_waits_for_quota_blocks_nobody_or_all(engine: str, queueing: str) -> None:
    jobs = _jobs((0, 100, 4, "a"), (1, 10, 1, "a"), (2, 10, 1, "b"))
    given = {"queueing": queueing, "quotas": APART, "engine": engine}
    assert _starts(jobs, "1x8", "fifo", **given) == [0, 100, 2]
    assert _starts(jobs, "1x8", "fifo", blocking_limits=True, **given) == [0, 100, 100]


@ENGINES
@pytest.mark.parametrize("queueing", ["easy", "easy_sjbf"])
def test_the_head_is_the_first_with_quota(engine: str, queueing: str) -> None:
    # a's second job waits for quota; b's first is the head, promised 100, and its second would
    # delay it; a third one is short enough. At 100 a's job is first again, as it has the quota.
    jobs = _jobs(
        (0, 100, 3, "a"), (1, 50, 2, "a"), (2, 50, 4, "b"), (3, 120, 1, "b"), (4, 60, 1, "b")
    )
    given = {"queueing": queueing, "quotas": APART, "engine": engine}
    assert _starts(jobs, "1x4", "fifo", **given) == [0, 100, 150, 200, 4]


@ENGINES
@pytest.mark.parametrize("queueing", ["easy", "easy_sjbf"])
def test_a_head_whose_quota_is_taken_blocks_nobody(engine: str, queueing: str) -> None:
    # At 1 a's first job is the head, promised 100 and the whole node. Its second one is short, and
    # takes of its quota: b's long one would delay the head, which has no claim any more.
    jobs = _jobs((0, 100, 2, "b"), (1, 50, 4, "a"), (1, 10, 1, "a"), (1, 200, 1, "b"))
    given = {"queueing": queueing, "quotas": APART, "engine": engine}
    assert _starts(jobs, "1x4", "fifo", **given) == [0, 201, 1, 1]
    # As if the last had come a moment later. Where limits block, the head holds it up.
    later = jobs | {"submit_time": [0, 1, 1, 2]}
    assert _starts(later, "1x4", "fifo", **given) == [0, 202, 1, 2]
    assert _starts(jobs, "1x4", "fifo", blocking_limits=True, **given) == [0, 100, 1, 150]


@ENGINES
@pytest.mark.parametrize("queueing", ["easy", "easy_sjbf"])
def test_who_is_next_is_the_head_then(engine: str, queueing: str) -> None:
    # With a's job out, c's is promised 100 at 1: the last, of 60 s, ends by then; of 120 it waits.
    rows = [(0, 100, 2, "b"), (1, 50, 4, "a"), (1, 10, 1, "a"), (1, 130, 4, "c")]
    quotas = {"queues": [*APART["queues"], {"vc": "c", "nominal_quota": 4}]}
    given = {"queueing": queueing, "quotas": quotas, "engine": engine}
    for length, start in ((60, 1), (120, 280)):
        jobs = _jobs(*rows, (1, length, 1, "c"))
        found = _starts(jobs, "1x4", "fifo", **given)
        assert found[2] == 1
        assert found[4] == start


@ENGINES
def test_a_promise_is_lifted_where_the_quota_is_used_up(engine: str) -> None:
    # Both of a's jobs have the quota at 10, when the first of them takes it all: the second's
    # promise is lifted, and b's job has its place.
    jobs = _jobs((0, 10, 8, "b"), (1, 20, 4, "a"), (2, 20, 4, "a"), (3, 30, 4, "b"))
    quotas = {"queues": [{"vc": "a", "nominal_quota": 4}, {"vc": "b", "nominal_quota": 8}]}
    given = {"queueing": "conservative", "quotas": quotas, "engine": engine}
    assert _starts(jobs, "2x4", "fifo", **given) == [0, 10, 30, 10]


@ENGINES
def test_what_is_lent_ends_at_the_borrowing_limit(engine: str) -> None:
    limited = {"queues": [{**LENT["queues"][0], "borrowing_limit": 2}, LENT["queues"][1]]}
    jobs = _jobs((0, 50, 4, "a"), (1, 50, 2, "a"), (2, 50, 2, "a"))
    assert _starts(jobs, "1x8", "fifo", quotas=LENT, engine=engine) == [0, 1, 2]
    assert _starts(jobs, "1x8", "fifo", quotas=limited, engine=engine) == [0, 1, 50]
    assert _starts(jobs, "1x8", "fifo", quotas=APART, engine=engine) == [0, 50, 50]


@ENGINES
@pytest.mark.parametrize("queueing", ["strict", "skip", "easy", "conservative"])
def test_a_queue_within_its_quota_loses_nothing_to_another(engine: str, queueing: str) -> None:
    """Of two running jobs of lower rank only the one that is borrowed for gives way."""
    jobs = _jobs((0, 100, 4, "b"), (0, 100, 4, "a"), (1, 100, 2, "b"), (5, 10, 4, "a"))
    jobs["priority"] = [2, 3, 1, 9]
    given = {"queueing": queueing, "quotas": LENT, "engine": engine}
    out = wt.simulate(jobs, "3x4", "priority-preemptive", **given)
    # 8 GPUs of quota: b's second job waits for it. The urgent one is a's: its own job gives way,
    # though b's ranks lower, as b is within its quota.
    assert out.table["num_preemptions"].to_pylist() == [0, 1, 0, 0]
    assert out.table["start_time"].to_pylist()[3] == 5


@ENGINES
def test_borrowers_give_way_first(engine: str) -> None:
    """Though its own job ranks lower, that of the queue above its nominal quota is stopped."""
    jobs = _jobs((0, 100, 2, "b"), (0, 100, 4, "b"), (1, 100, 2, "a"), (5, 10, 2, "a"))
    jobs["priority"] = [3, 2, 1, 9]
    out = wt.simulate(jobs, "2x4", "priority-preemptive", quotas=LENT, engine=engine)
    assert out.table["num_preemptions"].to_pylist() == [0, 1, 0, 0]
    assert out.table["start_time"].to_pylist() == [0, 0, 1, 5]


@ENGINES
@pytest.mark.parametrize("queueing", ["skip", "easy", "conservative"])
def test_quotas_by_type_bind_jobs_to_a_type(engine: str, queueing: str) -> None:
    # A job that accepts any type goes to A first; with A's quota used up, to B, though A is free.
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"A": 2, "B": 4}}]}
    jobs = _jobs((0, 50, 2, "a"), (1, 10, 2, "a"), (2, 10, 2, "a"), (3, 10, 2, "a"))
    out = wt.simulate(jobs, "1x4:A,1x4:B", "fifo", queueing=queueing, quotas=quotas, engine=engine)
    assert out.table["nodes"].to_pylist() == [[0], [1], [1], [1]]
    assert out.table["start_time"].to_pylist() == [0, 1, 2, 11]


def test_types_are_spelt_as_the_clusters() -> None:
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"a": 2, "blue": 4}}]}
    cluster = wt.ClusterSpec(
        (wt.NodeType(1, 4, "A"), wt.NodeType(1, 4, "B")), aliases={"Blue": "B"}
    )
    jobs = _jobs((0, 50, 2, "a"), (1, 10, 2, "a"))
    for policy in ("fifo", "quota"):
        out = wt.simulate(jobs, cluster, policy, quotas=quotas)
        assert out.table["nodes"].to_pylist() == [[0], [1]]
    quotas["queues"][0]["nominal_quota"] = {"A": 2, "a": 4}
    with pytest.raises(SpecError, match="two of them are one GPU type"):
        wt.simulate(jobs, cluster, "fifo", quotas=quotas)


class _Starts(wt.Policy):
    """Starts all that wait on the first node, wherever they fit."""

    name = "starter"

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        """Start all."""
        for job in queue:
            yield wt.Start(job, [(0, int(job.num_gpus))])


@ENGINES
def test_a_policy_that_decides_by_itself_is_told_of_the_quota(engine: str) -> None:
    jobs = _jobs((0, 50, 4, "a"), (1, 10, 2, "a"))

    def greedy(now: float, queue: Any, cluster: Any) -> None:
        for job in queue:
            cluster.start(job)

    assert _starts(jobs, "1x8", greedy, quotas=APART, engine=engine) == [0, 50]
    says = "the quota of 'a' does not suffice: it asks for 2 GPUs, and has "
    with pytest.raises(PolicyError, match=says + "0 left") as caught:
        wt.simulate(jobs, "1x8", _Starts(), quotas=APART, engine=engine)
    assert "t=1 s" in str(caught.value)
    by_type = {"queues": [{"vc": "a", "nominal_quota": {"A": 5, "B": 3}}]}
    with pytest.raises(PolicyError, match=says + "1 of A and 3 of B left"):
        wt.simulate(jobs, "1x8:A,1x4:B", _Starts(), quotas=by_type, engine=engine)


class _Looks(wt.Policy):
    """Starts jobs where `fit` says with all types named, and moves them; the last to come runs."""

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        """Stop who runs, and start and move who came."""
        for job in queue:
            running = cluster.running
            where = cluster.fit(job, ["A", "B"], without=running)
            if where is not None:
                yield from (wt.Preempt(other) for other in running)
                yield wt.Start(job, where)
                yield wt.Move(job)


@ENGINES
@pytest.mark.parametrize(
    "admission",
    [
        {"quotas": {"queues": [{"vc": "a", "nominal_quota": {"A": 0, "B": 2}}]}},
        {  # 60 W idle, and 20 W more for two GPUs in use: for two As it would take 200
            "power": {
                "gpus": {
                    "A": {"idle_w": 10, "active_w": 110},
                    "B": {"idle_w": 10, "active_w": 20},
                }
            },
            "power_cap": 80,
        },
    ],
)
def test_fit_looks_where_a_job_may_be_as_its_start_does(
    engine: str, admission: dict[str, Any]
) -> None:
    """Best fit would rather have the two As, for which there is no quota, or no power."""
    jobs = _jobs((0, 10, 2, "a"), (1, 10, 2, "a"))
    out = wt.simulate(jobs, "1x2:A,1x4:B", _Looks(), engine=engine, **admission)
    assert out.table["start_time"].to_pylist() == [0, 1]
    assert {tuple(nodes) for nodes in out.segments["nodes"].to_pylist()} == {(1,)}


@ENGINES
def test_rounds_and_elastic_jobs_keep_to_quotas(engine: str) -> None:
    """Whatever is chosen: what is offered no place waits for the next round, or decision."""
    jobs = _jobs(*[(0, 500, 2, "a")] * 3, *[(0, 500, 4, "b")] * 2)
    for policy in ("gavel:max_min_fairness", "shockwave:market", "morphling", "pollux:sia"):
        out = wt.simulate(jobs, "1x8:v100", policy, quotas=APART, engine=engine)
        assert set(out.table["status"].to_pylist()) == {"finished"}
        stays = out.segments.to_pylist()
        for now in {one["start"] for one in stays}:
            held = [one for one in stays if one["start"] <= now < one["end"]]
            for vc in "ab":
                own = (one["num_gpus"] for one in held if jobs["vc"][one["row"]] == vc)
                assert sum(own) <= 4


def test_why_jobs_wait() -> None:
    jobs = _jobs((0, 50, 4, "a"), (1, 10, 2, "a"), (2, 10, 2, "b"))
    for queueing in ("strict", "skip", "easy", "conservative"):
        out = wt.simulate(jobs, "1x8", "fifo", queueing=queueing, quotas=APART, record=True)
        of_one = [row["verdict"] for row in out.decisions.to_pylist() if row["row"] == 1]
        assert of_one == ["limit", "started", "finished"]


@pytest.mark.parametrize(
    ("policy", "given", "message"),
    [
        ("slurm", {"quotas": APART}, "limits of its own"),
        ("srtf", {"quotas": APART, "preemption": "quota_walk"}, "one quota, that of all GPUs"),
        ("fifo", {"blocking_limits": True}, "there are no limits"),
        ("morphling", {"quotas": APART, "blocking_limits": True}, "no job stands behind"),
        ("fifo", {"quotas": 7}, "expected a file or a mapping"),
        ("fifo", {"quotas": {"queues": []}}, "at least one queue"),
        (Quota({"a": 4}), {"quotas": APART}, "given twice"),
        ("gavel:fifo:mechanism=ideal", {"quotas": APART}, "quotas"),
    ],
)
def test_what_is_refused(policy: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        wt.simulate(_jobs((0, 1, 1, "a")), "2x4", policy, **given)


def test_jobs_without_the_quota_are_refused_or_rejected() -> None:
    jobs = _jobs((0, 1, 1, "a"), (0, 1, 5, "a"))
    with pytest.raises(PolicyError, match=r"allows 4 at most.*--oversize reject"):
        wt.simulate(jobs, "2x4", "fifo", quotas=APART)
    out = wt.simulate(jobs, "2x4", "fifo", quotas=APART, oversize="reject")
    assert out.table["status"].to_pylist() == ["finished", "rejected"]
    assert "allows 4 at most" in out.table["reason"].to_pylist()[1]
    with pytest.raises(PolicyError, match="'c' has no quota"):
        wt.simulate(_jobs((0, 1, 1, "c")), "2x4", "fifo", quotas=APART)


def test_what_a_run_notes() -> None:
    strict = {"queues": [{**queue, "queueing_strategy": "StrictFIFO"} for queue in APART["queues"]]}
    out = wt.simulate(_jobs((0, 1, 1, "a")), "2x4", "sjf", quotas=strict)
    assert any("queueing_strategy" in note for note in out.notes)
    assert any("vc 'b'" in note for note in out.notes)
    assert out.settings["quotas"][0]["vc"] == "a"
    own = wt.simulate(_jobs((0, 1, 1, "a")), "2x4", "quota", quotas=strict)
    assert not any("queueing_strategy" in note for note in own.notes)


@ENGINES
def test_a_promise_that_quota_lifts_gives_nobody_power_that_is_not_there(engine: str) -> None:
    # Four GPUs may draw at once. The first job uses up the quota that the second was promised a
    # start on: what that held is free, but the third has no power before the first has ended.
    jobs = _jobs((0, 10, 3, "a"), (0, 10, 4, "a"), (0, 10, 2, "b"))
    power = {"gpus": {"v100": {"idle_w": 0, "active_w": 100}}}
    given = {"queueing": "conservative", "quotas": APART, "power": power, "engine": engine}
    assert _starts(jobs, "1x8:v100", "fifo", power_cap=400, **given) == [0, 20, 10]


@pytest.mark.parametrize("policy", ["fifo", "srtf", "quota", "morphling", "gavel:fifo"])
def test_a_quota_of_a_type_that_is_too_dear_for_the_power_cap_is_refused(policy: str) -> None:
    # Queue x has quota of A alone, where two GPUs draw 1,000 W; on B they would draw 200.
    given: dict[str, Any] = {
        "power": {
            "gpus": {"A": {"idle_w": 0, "active_w": 500}, "B": {"idle_w": 0, "active_w": 100}}
        },
        "power_cap": 600.0,
        "quotas": {
            "queues": [
                {"vc": "x", "nominal_quota": {"A": 4, "B": 0}},
                {"vc": "y", "nominal_quota": {"A": 0, "B": 4}},
            ]
        },
    }
    jobs = {
        "submit_time": [0, 0, 1],
        "duration": [100, 100, 100],
        "num_gpus": [2, 1, 2],
        "vc": ["x", "x", "y"],
    }
    with pytest.raises(SpecError, match=r"1 job\(s\) never fit under it: '0' alone .* 1,000 W"):
        wt.simulate(jobs, "1x4:A,1x4:B", policy, **given)
    outcome = wt.simulate(jobs, "1x4:A,1x4:B", policy, oversize="reject", **given)
    assert outcome.table["status"].to_pylist() == ["rejected", "finished", "finished"]


@ENGINES
@pytest.mark.parametrize("queueing", ["strict", "skip", "easy", "conservative"])
def test_who_was_refused_has_what_a_stop_leaves(engine: str, queueing: str) -> None:
    # b's first job gives way for its third, which is of its queue, not for a's, as b is within its
    # nominal quota. Two GPUs are left then, and a's job is ahead of all that could have them.
    jobs = _jobs((0, 9, 3, "b"), (1, 9, 1, "a"), (2, 9, 1, "b"), priority=[0, 1, 2])
    given = {"queueing": queueing, "quotas": APART, "engine": engine}
    assert _starts(jobs, "pool:3", "priority-preemptive", **given) == [0, 2, 2]
    # Ahead of b's third job, a's is refused first. Under strict it is the first in the line.
    jobs["priority"] = [0, 2, 1]
    is_passed = queueing == "skip"
    found = _starts(jobs, "pool:3", "priority-preemptive", **given)
    assert found == ([0, 2, 2] if is_passed else [0, 9, 9])


@ENGINES
def test_who_was_refused_has_what_a_queue_borrows(engine: str) -> None:
    # At 2 b's job waits for the four that a holds, which is within its nominal quota. Behind it a's
    # second starts, and a borrows: now its first, of the lowest rank, gives way.
    queues = [{"vc": vc, "nominal_quota": 5, "cohort": "all"} for vc in "ab"]
    rows = [(0, 50, 4, "a"), (2, 10, 4, "b"), (2, 10, 2, "a")]
    assert _starts_by_priority(
        rows, [0, 2, 1], "pool:7", queues, queueing="skip", engine=engine
    ) == [0, 2, 2]


@ENGINES
@pytest.mark.parametrize("queueing", ["strict", "skip", "easy", "conservative"])
def test_a_queue_gives_way_as_long_as_it_borrows(engine: str, queueing: str) -> None:
    # For b's job one of c's would give way, not both: c is within its nominal quota then, and b's
    # lacks quota even so. It is passed over, and one of c's gives way for the next one, of a. That
    # one of c's is over at 60, and b's has the quota then.
    queues = [
        {"vc": "a", "nominal_quota": 3},
        *({"vc": vc, "nominal_quota": 1, "cohort": "all"} for vc in "bc"),
    ]
    rows = [(0, 50, 1, "a"), (0, 50, 1, "c"), (0, 50, 1, "c"), (1, 10, 2, "b"), (1, 10, 1, "a")]
    starts = _starts_by_priority(
        rows, [0, 0, 0, 2, 1], "pool:3", queues, queueing=queueing, engine=engine
    )
    assert starts == [0, 0, 0, 60, 1]


@ENGINES
@pytest.mark.parametrize("queueing", ["easy", "easy_sjbf"])
def test_the_head_counts_on_those_who_would_give_way(engine: str, queueing: str) -> None:
    # c's small job would give way for b's, its large one not, as c borrows no more then. So b's
    # waits for d's to end at 30, and a long job must not take the free GPU till then.
    queues = [
        *({"vc": vc, "nominal_quota": n, "cohort": "all"} for vc, n in (("b", 3), ("c", 4))),
        {"vc": "d", "nominal_quota": 2},
    ]
    rows = [(0, 50, 4, "c"), (0, 99, 1, "c"), (0, 30, 1, "d"), (1, 10, 3, "b"), (1, 99, 1, "d")]
    starts = _starts_by_priority(
        rows, [1, 0, 2, 2, 1], "pool:7", queues, queueing=queueing, engine=engine
    )
    assert starts == [0, 0, 0, 30, 40]


@ENGINES
@pytest.mark.parametrize("policy", ["fifo", "priority-preemptive"])
def test_who_asks_for_the_same_waits_with_the_one_ahead(engine: str, policy: str) -> None:
    # a's first job waits for a place; its third, of the same size, waits with it, though the second
    # has left too little quota for it by then. So it holds up nobody.
    jobs = _jobs(
        (0, 10, 2, "b"), (0, 10, 3, "a"), (0, 5, 1, "a"), (0, 10, 3, "a"), (0, 20, 1, "b"),
        priority=[0] * 5,
    )  # fmt: skip
    quotas = {"queues": [{"vc": "a", "nominal_quota": 3}, {"vc": "b", "nominal_quota": 4}]}
    given = {"queueing": "skip", "quotas": quotas, "engine": engine, "blocking_limits": True}
    assert _starts(jobs, "pool:4", policy, **given) == [0, 10, 0, 20, 0]
