"""Fair share with memory and Slurm's multifactor priority, worked by hand and in the long run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies import resolve_policy
from windtunnel.policies.fair_share import FairShare, Multifactor
from windtunnel.policies.usage import DecayedUsage
from windtunnel.schema import as_jobs
from windtunnel.sim import problem as problems

DAY = 86_400.0


def test_usage_halves_in_a_half_life() -> None:
    usage = DecayedUsage(2, 100.0)
    usage.change(0, 2.0, 0.0)
    usage.change(0, -2.0, 100.0)
    # 2 GPUs for one half-life: 2 x 100 / ln 2 x (1 - 1/2).
    assert usage.usage(100.0).tolist() == pytest.approx([100 / math.log(2), 0.0])
    usage.change(1, 1.0, 100.0)
    usage.change(1, -1.0, 200.0)
    # A half-life later the first counts half, as much as one GPU for one half-life: equal shares.
    assert usage.usage(200.0).tolist() == pytest.approx([50 / math.log(2)] * 2)
    assert usage.shares(200.0).tolist() == pytest.approx([0.5, 0.5])
    assert usage.usage(300.0).tolist() == pytest.approx([25 / math.log(2)] * 2)


def test_without_a_half_life_usage_is_gpu_seconds() -> None:
    usage = DecayedUsage(2, math.inf)
    assert usage.shares(0.0).tolist() == [0.0, 0.0]
    usage.change(0, 3.0, 1.0)
    usage.change(1, 1.0, 2.0)
    assert usage.usage(4.0).tolist() == [9.0, 2.0]
    assert usage.shares(4.0).tolist() == [9 / 11, 2 / 11]


HOLDS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 8), st.integers(0, 900), st.integers(1, 500)),
    min_size=1,
    max_size=10,
)


@settings(max_examples=100, deadline=None)
@given(HOLDS, st.sampled_from((7.0, 90.0, 4000.0)))
def test_usage_is_the_integral(holds: list[tuple[int, int, int, int]], half_life: float) -> None:
    now = 1500.0
    changes = [(begin, group, gpus) for group, gpus, begin, _ in holds]
    changes += [(begin + length, group, -gpus) for group, gpus, begin, length in holds]
    usage = DecayedUsage(3, half_life)
    for at, group, gpus in sorted(changes):
        usage.change(group, gpus, float(at))
    expected = np.zeros(3)
    middles = np.arange(0, now, 0.25) + 0.125  # the midpoint rule on quarters of a second
    weights = 0.25 * 2.0 ** -((now - middles) / half_life)
    for group, gpus, begin, length in holds:
        held = (middles > begin) & (middles < begin + length)
        expected[group] += gpus * weights[held].sum()
    assert usage.usage(now).tolist() == pytest.approx(expected.tolist(), rel=1e-4)


def two_users(length: float, *, first: str = "a") -> dict[str, list[Any]]:
    """User a held both GPUs from 0 to 100, b one from 100 on; then each wants both."""
    second = "b" if first == "a" else "a"
    return {
        "submit_time": [0.0, 50.0, 150.0, 151.0],
        "duration": [100.0, length, 10.0, 10.0],
        "num_gpus": [2.0, 1.0, 2.0, 2.0],
        "user": ["a", "b", first, second],
    }


@pytest.mark.parametrize(
    ("length", "policy", "first", "starts"),
    [
        # At 190 a's usage counts 2^-0.9 of 100 / ln 2, b's 1 - 2^-0.9 of it: b has had less ...
        (90.0, FairShare(half_life=100, every=10), "a", [0, 100, 200, 190]),
        # ... and at 210 2^-1.1 against 1 - 2^-1.1: a has had less.
        (110.0, FairShare(half_life=100, every=10), "b", [0, 100, 220, 210]),
        # Nothing forgotten: a has had 200 GPU-seconds, b 90 or 110.
        (90.0, FairShare(half_life="inf", every=10), "a", [0, 100, 200, 190]),
        (110.0, FairShare(half_life="inf", every=10), "b", [0, 100, 210, 220]),
        # Keys of the submission, at 150: a's 2^-0.5 against b's 1 - 2^-0.5.
        (110.0, FairShare(half_life=100, every=1000), "a", [0, 100, 220, 210]),
        # b is entitled to nine times as much.
        (110.0, FairShare(half_life=100, every=10, shares={"a": 1, "b": 9}), "a",
         [0, 100, 220, 210]),
        # With age alone it is first come, first served; with enough age beside a little fair share.
        (90.0, Multifactor(fairshare=0), "a", [0, 100, 190, 200]),
        (90.0, Multifactor(age=1e6, max_age=1000, fairshare=1, every=10), "a",
         [0, 100, 190, 200]),
        (90.0, Multifactor(half_life=100, every=10), "a", [0, 100, 200, 190]),
    ],
)  # fmt: skip
def test_by_hand(length: float, policy: Any, first: str, starts: list[float]) -> None:
    out = wt.simulate(two_users(length, first=first), "pool:2", policy)
    assert out.settings["engine"] == "compiled"
    assert out.table["start_time"].to_pylist() == starts


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("policy", [FairShare, Multifactor])
def test_groups_that_had_the_same_stand_in_order_of_arrival(policy: Any, engine: Any) -> None:
    """Two users' parts of all usage do not change while both run: rounding must not rank them."""
    jobs = {
        "submit_time": [0, 0, *range(1, 30)],
        "duration": [30, 30, *[1] * 29],
        "num_gpus": [1, 3, *[4] * 29],
        "user": ["a", "b", *["b", "a"] * 14, "b"],
    }
    by_usage = policy(
        half_life=5, shares={"a": 1, "b": 3}, **({} if policy is FairShare else {"age": 0})
    )
    out = wt.simulate(jobs, "pool:4", by_usage, engine=engine)
    order = np.argsort(out.table["start_time"].to_numpy()[2:])
    assert order.tolist() == list(range(29))


def test_the_factors_of_a_priority() -> None:
    jobs = as_jobs(
        {
            "submit_time": [0.0, 0.0, 0.0],
            "duration": [1.0, 1.0, 1.0],
            "num_gpus": [2.0, 8.0, 4.0],
            "user": ["a", "b", "a"],
            "priority": [2.0, None, 4.0],
        }
    )
    problem = problems.build(jobs, wt.ClusterSpec.pool(8), as_pool=True)
    weights = {"age": 1_000.0, "size": 100.0, "fairshare": 10_000.0, "priority": 10.0}
    policy = Multifactor(**weights)  # type: ignore[arg-type] # all of them are weights
    views = wt.Jobs(jobs).views
    flown = policy.for_run(problem)
    assert isinstance(flown, Multifactor)
    # Half of the seven days; 2 of 8 GPUs; nobody has used anything; half of the largest priority.
    assert flown.priority_of(views[0], 3.5 * DAY) == 500 + 25 + 10_000 + 5
    # Fourteen days count as seven; the whole cluster; no priority.
    assert flown.priority_of(views[1], 14 * DAY) == 1_000 + 100 + 10_000
    flown.started(views[0], 14 * DAY)
    # All usage is a's, whose share is 1/2: 2^-2. b has used nothing: 1.
    assert flown.priority_of(views[2], 15 * DAY) == 1_000 + 50 + 2_500 + 10
    assert flown.priority_of(views[1], 15 * DAY) == 1_000 + 100 + 10_000
    flown.stopped(views[0], 15 * DAY)
    flown.started(views[1], 15 * DAY)
    # 2 GPUs for a day and 8 for a day, with nothing forgotten on the way, would be 1/5 of it.
    endless = Multifactor(age=0, half_life=math.inf).for_run(problem)
    assert isinstance(endless, Multifactor)
    for view, change, at in ((0, "started", 0), (0, "stopped", 1), (1, "started", 1)):
        getattr(endless, change)(views[view], at * DAY)
    assert endless.priority_of(views[2], 2 * DAY) == pytest.approx(10_000 * 2 ** (-0.2 / 0.5))
    small = Multifactor(age=0, fairshare=0, size=100, favor="small").for_run(problem)
    assert isinstance(small, Multifactor)
    assert [small.priority_of(view, 0.0) for view in views] == [75.0, 0.0, 50.0]


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from((5.0, 20.0, 30.0)),
    st.sampled_from((10.0, 45.0)),
    st.sampled_from((1.0, 2.0)),
    st.sampled_from((1.0, 3.0)),
)
def test_in_saturation_usage_goes_by_shares(
    short: float, long: float, gpus: float, share: float
) -> None:
    # Both users always have jobs waiting: 4 GPUs, 2,400 s, and each has work for all of it.
    total = 4 * 2400
    counts = [int(total / short), int(total / (long * gpus))]
    jobs = {
        "submit_time": [0.0] * sum(counts),
        "duration": [short] * counts[0] + [long] * counts[1],
        "num_gpus": [1.0] * counts[0] + [gpus] * counts[1],
        "user": ["a"] * counts[0] + ["b"] * counts[1],
    }

    def of_a(policy: Any) -> float:
        segments = wt.simulate(jobs, "pool:4", policy, until=2400.0).segments
        rows = segments["row"].to_numpy()
        ends = np.nan_to_num(segments["end"].to_numpy(), nan=2400.0)
        used = (ends - segments["start"].to_numpy()) * segments["num_gpus"].to_numpy()
        return float(used[rows < counts[0]].sum() / used.sum())

    due = share / (share + 1)
    policy = FairShare(half_life=600, every=30, shares={"a": share, "b": 1.0})
    assert of_a(policy) == pytest.approx(due, abs=0.05)
    assert of_a("fifo") > 0.97  # whose jobs stand first; who does not ask gets no fair share


def test_shares_may_stand_in_a_column_and_groups_be_clusters() -> None:
    jobs = {**two_users(110.0), "vc": ["x", "y", "x", "y"], "due": [1, 9, 1, 9]}
    jobs["user"] = ["u"] * 4
    starts = {
        text: wt.simulate(jobs, "pool:2", text).table["start_time"].to_pylist()[2:]
        for text in (
            "fair-share:half_life=100:every=10",
            "fair-share:half_life=100:every=10:per=vc",
            "fair-share:half_life=100:every=10:per=vc:shares=due",
        )
    }
    assert list(starts.values()) == [[210, 220], [210, 220], [220, 210]]


def test_settings_tell_the_parameters() -> None:
    out = wt.simulate(two_users(90.0), "pool:2", "multifactor:size=5:half_life=1d:per=vc")
    assert out.settings["policy"] == "multifactor:size=5:half_life=1d:per=vc"
    assert out.settings["parameters"] == {
        "age": 1_000.0, "size": 5.0, "fairshare": 10_000.0, "priority": 0.0,
        "max_age": 7 * DAY, "half_life": DAY, "every": 300.0, "per": "vc", "favor": "large",
        "shares": "equal",
    }  # fmt: skip
    out = wt.simulate(two_users(90.0), "pool:2", FairShare(shares={"a": 1, "b": 2}))
    assert out.settings["parameters"]["shares"] == {"a": 1, "b": 2}


def test_those_without_a_user_share_as_one() -> None:
    jobs = two_users(90.0)
    assert wt.simulate(jobs, "pool:2", "fair-share").notes == ()
    jobs["user"] = ["a", None, "a", None]
    policy = FairShare(half_life=100, every=10)
    out = wt.simulate(jobs, "pool:2", policy)
    assert out.notes == ("fair-share: 2 job(s) without a user share as one user.",)
    assert out.table["start_time"].to_pylist() == [0, 100, 200, 190]  # as if they were one b's


def test_shares_of_nobody_are_noted() -> None:
    shares = {"a": 1, "b": 2, "(none)": 1}
    assert wt.simulate(two_users(90.0), "pool:2", FairShare(shares=shares)).notes == ()
    out = wt.simulate(two_users(90.0), "pool:2", FairShare(shares=shares | {"cy": 1}))
    assert out.notes == ("The shares name user 'cy'; the trace has 'a', 'b'.",)


def test_runs_keep_their_own_accounts() -> None:
    policy = resolve_policy("fair-share")
    first = wt.simulate(two_users(90.0), "pool:2", policy)
    again = wt.simulate(two_users(90.0), "pool:2", policy)
    assert first.table.equals(again.table)
    with pytest.raises(wt.PolicyError, match="keeps accounts of a run"):
        policy.key(wt.Jobs(first.jobs).views[0], 0.0)


class HalfFair(FairShare):
    """Keys of its own, of which the numbers of the order tell nothing."""

    name = "half-fair"

    def key(self, job: wt.JobView, now: float) -> float:
        """Return half of the ratio for small jobs."""
        return super().key(job, now) / (2.0 if job.num_gpus < 2 else 1.0)


def test_all_of_it_flies_compiled() -> None:
    jobs = two_users(90.0) | {"estimate": [100.0, 100.0, 10.0, 10.0]}
    runs: list[tuple[Any, dict[str, Any]]] = [
        (FairShare(), {}),
        (Multifactor(), {"queueing": "easy"}),
        (FairShare(), {"queueing": "conservative"}),
        (FairShare(), {"disruptions": "mtbf:1000s/mttr:1s"}),
        (HalfFair(), {}),
        (HalfFair(), {"queueing": "conservative"}),
    ]
    for policy, options in runs:
        mine, plain = (
            wt.simulate(jobs, "1x2", policy, engine=engine, **options)
            for engine in ("auto", "reference")
        )
        assert mine.settings["engine"] == "compiled", (policy, options)
        assert mine.table.equals(plain.table), (policy, options)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"per": "team"}, "unknown name 'team'"),
        ({"half_life": 0}, "half_life: found 0; expected seconds > 0"),
        ({"half_life": "fast"}, "found 'fast'"),
        ({"every": "inf"}, "every: found 'inf'"),
        ({"fairshare": -1}, "fairshare: found -1; expected a weight >= 0"),
        ({"age": "old"}, "age: found 'old'"),
        ({"favor": "mine"}, "favor: unknown name 'mine'"),
    ],
)
def test_wrong_parameters(given: dict[str, Any], message: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        Multifactor(**given)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"a": 1.0}, "user 'b' has no share above 0"),
        ({"a": 1.0, "b": 0.0}, "user 'b' has no share above 0"),
        ("dues", "no column 'dues' of shares. Did you mean 'due'?"),
        ("due", "job '0': user 'a' has not one known share in 'due'"),
    ],
)
def test_wrong_shares(shares: Any, message: str) -> None:
    jobs = {**two_users(90.0), "due": [1.0, 2.0, 3.0, 2.0]}
    with pytest.raises(wt.PolicyError) as error:
        wt.simulate(jobs, "pool:2", FairShare(shares=shares))
    assert message in str(error.value)
    with pytest.raises(wt.SpecError, match="the column 'user' holds 'a' in row 1"):
        wt.simulate(jobs, "pool:2", FairShare(shares="user"))
