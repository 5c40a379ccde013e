"""Policies that keep books, while nodes fail: the books are what ran, and nobody is forgotten.

What ran is worked out anew from the segments of the finished run; which rights each had, from the
quotas alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from disruption_cases import CHECKPOINTS, FAILURES, MODELS, NODES, ON_START, SETS, WINDOWS, some
from flight_cases import quarters
from hypothesis import given, settings
from hypothesis import strategies as st
from quota_cases import VCS, Watched, check_limits, check_victim, options, quotas, tables, used

import windtunnel as wt
from windtunnel.policies.fair_share import FairShare, Multifactor
from windtunnel.policies.quota import Quota, QuotaRun
from windtunnel.policies.reserving_packing import ReservingPacking
from windtunnel.sim.cohort_order import PARTS
from windtunnel.sim.disruptions import Disruptions, JobFailures, Reservation

if TYPE_CHECKING:
    from windtunnel.policies.quotas import Quotas

TYPED = wt.ClusterSpec((wt.NodeType(2, 4, "V100"), wt.NodeType(2, 4, "T4")), "typed")
RESERVED = st.builds(
    lambda nodes, start, length, vcs, on_start: Reservation(
        nodes=nodes, start=start, end=start + length, vcs=tuple(sorted(vcs)), on_start=on_start
    ),
    *(SETS, quarters(0, 20), quarters(1, 8), st.sets(st.sampled_from(VCS), max_size=2), ON_START),
)


class Fixed(wt.Policy):
    """A policy whose run is made already."""

    name = "fixed"

    def __init__(self, run: wt.Policy) -> None:
        self.run = run

    def for_run(self, problem: Any) -> wt.Policy:
        return self.run

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        raise AssertionError


@st.composite
def passing(draw: Any) -> Disruptions:
    """Whatever may go wrong and comes right again, so that nobody need wait for ever."""
    return Disruptions(
        checkpoint=draw(CHECKPOINTS),
        on_failure=draw(st.sampled_from(("restart", "restart", "end"))),
        node_failures=draw(some(FAILURES.filter(lambda failure: failure.until is not None), 3)),
        failure_models=draw(some(MODELS, 1)),
        job_failures=JobFailures(
            rate=draw(st.sampled_from((0.0, 30.0))),
            statuses=draw(st.sampled_from(((), ("failed",)))),
        ),
        maintenance=draw(some(WINDOWS)),
        reservations=draw(some(RESERVED)),
    )


@st.composite
def crowds(draw: Any) -> dict[str, list[Any]]:
    """Jobs of some virtual clusters; some are recorded as failed, and then fail once."""
    table: dict[str, list[Any]] = draw(st.one_of(tables(), tables(crowded=True)))
    count = len(table["vc"])
    kinds = st.lists(st.sampled_from(("failed", "completed")), min_size=count, max_size=count)
    return table | {"status": draw(kinds)}


def running(out: wt.Outcome, now: float) -> list[int]:
    """Rows of the jobs that ran right after an instant."""
    found = []
    for stay in out.segments.to_pylist():
        end = math.inf if stay["end"] is None else stay["end"]
        if stay["start"] <= now < end:
            found.append(stay["row"])
    return found


def check_nobody_forgotten(out: wt.Outcome, ends: str) -> None:
    """Everybody is over; nobody failed for good unless failures end jobs."""
    over = {"finished", "failed"} if ends == "end" else {"finished"}
    assert set(out.table["status"].to_pylist()) <= over
    assert not any("wait for ever" in note for note in out.notes)


@settings(max_examples=120)
@given(crowds(), quotas(), options(), passing(), st.sampled_from((f"{NODES}x4", "pool")))
def test_quotas_count_what_runs(
    table: dict[str, Any],
    given_quotas: Quotas,
    rules: dict[str, Any],
    disruptions: Disruptions,
    where: str,
) -> None:
    queues = {queue.vc: queue for queue in given_quotas.queues}
    booked: dict[float, dict[str, float]] = {}
    waiting: dict[float, set[int]] = {}
    gone: list[tuple[Any, float]] = []  # victims of the next start, with their queue's use before

    class Shown(Quota):
        def for_run(self, problem: Any) -> wt.Policy:
            run = super().for_run(problem)
            assert isinstance(run, QuotaRun)

            def witness(now: float, decision: Any, cluster: Any, queue: Any) -> None:
                use = used(cluster)
                check_limits(queues, use)
                if isinstance(decision, wt.Preempt):
                    gone.append((decision.job, use[decision.job.vc]))
                elif isinstance(decision, wt.Start):
                    for victim, before in gone:
                        check_victim(queues, rules, victim, decision.job, before)
                    gone.clear()
                elif decision is None:
                    assert not gone  # nobody goes in vain
                    accounts = {a.name: a.usage[""] / PARTS for a in run._accounts}
                    assert accounts == use
                    assert sum(len(a.held) for a in run._accounts) == len(cluster.running)
                    booked[now] = use
                    waiting[now] = {job.row for job in queue}
                    in_lines = sum(len(line) + len(line._resting) for line in run._lines)
                    assert in_lines == len(queue)

            return Watched(Fixed(run), witness).for_run(problem)

    out = wt.simulate(
        table, f"{NODES}x4", Shown(given_quotas, **rules), disruptions=disruptions,
        placement="pool" if where == "pool" and not disruptions.reservations else None,
        save_time=0.25, seed=1,
    )  # fmt: skip
    check_nobody_forgotten(out, disruptions.on_failure)
    for now, use in booked.items():
        held = dict.fromkeys(VCS, 0.0)
        for row in running(out, now):
            held[table["vc"][row]] += table["num_gpus"][row]
            assert row not in waiting[now]
        assert held == use


@settings(max_examples=120)
@given(
    crowds(),
    passing(),
    st.sampled_from((4.0, 11.0, math.inf)),
    st.sampled_from((1.0, 3.0)),
    st.sampled_from((None, "skip", "easy", "conservative")),
    st.booleans(),
)
def test_usage_is_what_ran(
    table: dict[str, Any],
    disruptions: Disruptions,
    half_life: float,
    every: float,
    queueing: str | None,
    plain: bool,  # noqa: FBT001 - drawn
) -> None:
    """Each ratio that a key went by, against integrals over the stays of the finished run."""
    kind = FairShare if plain else Multifactor
    asked: list[tuple[float, int, float]] = []

    class Shown(kind):  # type: ignore[misc, valid-type] # one of two
        def key(self, job: Any, now: float) -> float:
            asked.append((now, job.row, self.books.ratio(job.row, now)))
            return float(super().key(job, now))

    policy = Shown(half_life=half_life, every=every, per="vc")
    out = wt.simulate(
        table, f"{NODES}x4", policy, disruptions=disruptions, queueing=queueing, seed=1,
        estimates="perfect",
    )  # fmt: skip
    check_nobody_forgotten(out, disruptions.on_failure)
    names = sorted(set(table["vc"]))
    stays = [(table["vc"][s["row"]], s["num_gpus"], s["start"], s["end"])
             for s in out.segments.to_pylist()]  # fmt: skip
    for now, row, ratio in asked[:: max(1, len(asked) // 40)]:
        use = dict.fromkeys(names, 0.0)
        for vc, gpus, start, end in stays:
            if start < now:
                use[vc] += gpus * decayed(now - start, now - min(end, now), half_life)
        total = sum(use.values())
        expected = use[table["vc"][row]] / total * len(names) if total > 1e-9 else None
        if expected is not None:
            assert ratio == pytest.approx(expected, rel=1e-7, abs=1e-9)


def decayed(begun: float, left: float, half_life: float) -> float:
    """GPU-seconds that one GPU still counts, held from ``begun`` to ``left`` seconds ago."""
    if math.isinf(half_life):
        return begun - left
    scale = half_life / math.log(2)
    return scale * float(2.0 ** (-left / half_life) - 2.0 ** (-begun / half_life))


@settings(max_examples=120)
@given(
    crowds(),
    passing(),
    st.lists(st.sampled_from((None, "V100", "T4", "T4|V100")), min_size=24, max_size=24),
    st.sampled_from((0.0, 1.0, 4.0)),
)
def test_reserving_packing_forgets_nobody_and_keeps_to_its_plans(
    table: dict[str, Any], disruptions: Disruptions, kinds: list[str | None], attempt: float
) -> None:
    table = table | {"gpu_type": kinds[: len(table["vc"])]}
    policy = ReservingPacking(attempt=attempt)
    out = wt.simulate(table, TYPED, policy, disruptions=disruptions, seed=1)
    check_nobody_forgotten(out, disruptions.on_failure)
    high = sum(gpus > 1 for gpus in table["num_gpus"])
    counts = f"{high} high-GPU jobs (num_gpus above 1) and {len(table['vc']) - high} others"
    assert any(counts in note for note in out.notes)
    for stay in out.segments.to_pylist():
        row = stay["row"]
        held = {("V100", "T4")[node // 2] for node in stay["nodes"]}
        if not table["num_gpus"][row]:
            continue
        (kind,) = held
        wanted = kinds[row]
        assert wanted is None or kind in wanted.split("|")
        first = "V100" if table["num_gpus"][row] > 1 else "T4"
        if wanted in (None, "T4|V100") and kind != first:  # its second plan
            assert stay["start"] >= table["submit_time"][row] + attempt
