"""What a cell of the PAI tables may hold: looking at all numbers at once finds the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windtunnel.traces.pai.tables import TABLES, Rule

RULES = sorted(
    {rule for table in TABLES for rule in table.columns.values() if rule.number}, key=str
)


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(values=st.lists(st.floats() | st.integers(-1, 3).map(float), max_size=6))
@example(values=[])
@example(values=[0.0, -0.0])
@example(values=[1.0, float("inf")])
@example(values=[-float("nan")])
@example(values=[5e-324, 1.7976931348623157e308])
def test_all_keep_a_rule_where_none_breaks_it(rule: Rule, values: list[float]) -> None:
    numbers = np.array(values, np.float64)
    assert rule.kept(numbers) == (not rule.broken(numbers).any())
    assert rule.kept(numbers) == all(_keeps(rule, value) for value in values)


def _keeps(rule: Rule, value: float) -> bool:
    """Return the rule for one number, from its words."""
    if not np.isfinite(value):
        return False
    if rule.whole and (value % 1 != 0 or value > 2**31 - 1):
        return False
    if rule.low is None:
        return True
    negative = str(value).startswith("-")
    return not negative and (value > rule.low if rule.above else value >= rule.low)
