"""Fair share and multifactor: both engines return the same flight, bit for bit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from flight_cases import Case, cases, device_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.policies.fair_share import FairShare, Multifactor
from windtunnel.testing import assert_outcomes_equal

pytestmark = pytest.mark.engines

RULES = ("strict", "skip", "easy", "easy_sjbf")
SPANS = st.sampled_from((0.3, 2.0, 7.5, math.inf))
ROUNDS = st.sampled_from((0.25, 0.7, 1.0, 3.0, 1000.0))
SHARES = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {name: st.sampled_from((1.0, 3.0, 0.7)) for name in ("a", "b", "c", "(none)")}
    ),
)
FAIR = st.builds(FairShare, half_life=SPANS, every=ROUNDS, shares=SHARES)
FACTORS = st.builds(
    Multifactor,
    age=st.sampled_from((0.0, 3.0, 1000.0)),
    size=st.sampled_from((0.0, 2.5)),
    fairshare=st.sampled_from((0.0, 1.0, 10_000.0)),
    priority=st.sampled_from((0.0, 1.7)),
    max_age=st.sampled_from((3.0, 50.0)),
    half_life=SPANS,
    every=ROUNDS,
    shares=SHARES,
    favor=st.sampled_from(("large", "small")),
)


@st.composite
def owned(draw: Any, drawn: st.SearchStrategy[Case]) -> Case:
    """A run whose jobs have users, some of them none."""
    case = draw(drawn)
    count = len(case.jobs["submit_time"])
    users = st.lists(st.sampled_from(("a", "b", "c", None)), min_size=count, max_size=count)
    return replace(case, jobs=case.jobs | {"user": draw(users)})


def check(case: Case) -> None:
    """Fly on both engines, and see that ``auto`` chooses the compiled one."""
    fast = case.fly("auto")
    assert fast.settings["engine"] == "compiled"
    assert_outcomes_equal(case.fly("reference"), fast)


@settings(max_examples=250)
@given(owned(cases(policy=st.one_of(FAIR, FACTORS), rules=RULES)))
def test_nodes_and_pools(case: Case) -> None:
    check(case)


@settings(max_examples=200)
@given(
    owned(
        device_cases(
            policy=st.one_of(FAIR, FACTORS), rules=(None, "strict", "skip", "easy", "easy_sjbf")
        )
    ),
    st.sampled_from(RULES),
)
def test_devices(case: Case, queueing: str) -> None:
    check(replace(case, queueing=queueing))
