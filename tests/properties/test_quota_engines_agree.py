"""Quotas with borrowing: both engines return the same flight, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from flight_cases import Case, cases, device_cases
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from quota_cases import CLUSTERS, MIXED, TYPES, VCS, quotas, tables, typed_quotas

import windtunnel as wt
from windtunnel.policies.quota import Quota
from windtunnel.testing import assert_outcomes_equal

pytestmark = pytest.mark.engines

STRATEGY = st.sampled_from(("StrictFIFO", "BestEffortFIFO"))
WORDS = st.fixed_dictionaries(
    {
        "queueing_strategy": STRATEGY,
        "fair_sharing": st.sampled_from(("no", "yes")),
        "borrowing": st.sampled_from(("cohort", "cohort", "none")),
    }
)


@st.composite
def wide_quotas(draw: Any) -> dict[str, Any]:
    """Quotas that any job fits in, of which some are reached; one queue says its own strategy."""
    queues = []
    for vc in (*VCS[:2], "*"):
        cohort = draw(st.sampled_from(("one", "one", None)))
        limit = st.one_of(st.none(), st.integers(0, 12)) if cohort else st.none()
        queues.append(
            {
                "vc": vc,
                "nominal_quota": draw(st.sampled_from((0.0, 1.3, 5.0, 9.0, 25.0))),
                "cohort": cohort,
                "borrowing_limit": draw(limit),
                "lending_limit": draw(limit),
                "weight": draw(st.sampled_from((1.0, 3.0))),
            }
        )
    queues[0]["queueing_strategy"] = draw(STRATEGY)
    return {"queues": queues}


@st.composite
def owned(draw: Any, drawn: st.SearchStrategy[Case]) -> Case:
    """A run whose jobs have virtual clusters, some of them none, under drawn quotas."""
    case = draw(drawn)
    count = len(case.jobs["submit_time"])
    vcs = st.lists(st.sampled_from((*VCS, None)), min_size=count, max_size=count)
    policy = Quota(draw(wide_quotas()), **draw(WORDS))
    return replace(case, jobs=case.jobs | {"vc": draw(vcs)}, policy=policy, queueing=None)


def check(case: Case) -> None:
    """Fly on both engines, and see that ``auto`` chooses the compiled one."""
    try:
        slow = case.fly("reference")
    except wt.PolicyError:  # a job that its queue's quota never allows
        assume(condition=False)
    fast = case.fly("auto")
    assert fast.settings["engine"] == "compiled"
    assert_outcomes_equal(slow, fast)


@settings(max_examples=250)
@given(owned(cases(policy=st.just("fifo"))))
def test_nodes_and_pools(case: Case) -> None:
    check(case)


@settings(max_examples=200)
@given(
    owned(device_cases(policy=st.just("fifo"), rules=(None, "strict", "skip", "easy", "easy_sjbf")))
)
def test_devices(case: Case) -> None:
    check(case)


@settings(max_examples=150)
@given(tables(crowded=True), quotas(), WORDS, CLUSTERS)
def test_crowds(table: Any, given_quotas: Any, words: dict[str, Any], cluster: str) -> None:
    policy = Quota(given_quotas, **words)
    runs = [wt.simulate(table, cluster, policy, engine=name) for name in ("reference", "compiled")]
    assert_outcomes_equal(*runs)


@settings(max_examples=150)
@given(
    tables((0.0, 1.0, 2.0), crowded=True),
    st.lists(st.sampled_from((None, *TYPES, "T4|V100")), min_size=24, max_size=24),
    typed_quotas(),
    WORDS,
)
def test_gpu_types(
    table: Any, kinds: list[str | None], given_quotas: Any, words: dict[str, Any]
) -> None:
    table |= {"gpu_type": kinds[: len(table["vc"])]}
    policy = Quota(given_quotas, **words)
    runs = [wt.simulate(table, MIXED, policy, engine=name) for name in ("reference", "compiled")]
    assert_outcomes_equal(*runs)
