"""`LinearProgram`: against scipy, its own certificates, and hand-worked programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.optimize import LinearProgram, distinct_costs


def bakery() -> tuple[LinearProgram, np.ndarray, np.ndarray]:
    """Two loaves from one sack: max 2 r + 3 o, r + o <= 4, o <= 3."""
    lp = LinearProgram("bakery", maximize=True)
    loaves = lp.add_columns("loaves of", ["rye", "oat"], upper=[10, 3], cost=[2, 3])
    flour = lp.add_rows("flour", ["all"], upper=4)
    lp.add_coefficients(flour, loaves, 1.0)
    return lp, loaves, flour


def transport(size: int) -> LinearProgram:
    """A highly degenerate program: many optimal vertices."""
    lp = LinearProgram("transport", maximize=True)
    cells = lp.add_columns("cell", range(size * size), cost=1.0)
    rows = lp.add_rows("from", range(size), upper=1.0)
    columns = lp.add_rows("to", range(size), upper=0.75)
    lp.add_coefficients(rows[cells // size], cells, 1.0)
    lp.add_coefficients(columns[cells % size], cells, 1.0)
    return lp


def test_hand_worked() -> None:
    lp, _, flour = bakery()
    solution = lp.solve()
    assert solution.objective == pytest.approx(11)
    assert solution.values == pytest.approx([1, 3])
    assert solution.duals[flour] == pytest.approx([2])


def test_changes_start_from_the_last_basis() -> None:
    lp, loaves, flour = bakery()
    lp.solve()
    lp.set_costs(loaves, [2, 2.5])
    warm = lp.solve()
    assert (warm.objective, warm.iterations) == (pytest.approx(9.5), 0)
    lp.set_row_bounds(flour, -np.inf, 2)
    assert lp.solve().objective == pytest.approx(5)
    lp.set_column_bounds(loaves[1:], 0, 1)
    assert lp.solve().objective == pytest.approx(4.5)
    lp.set_coefficients(flour, loaves[:1], 0.5)
    assert lp.solve().objective == pytest.approx(2 * 4)  # all rye: 4 a unit of flour


def test_an_entry_that_is_not_there_cannot_change() -> None:
    lp, loaves, _ = bakery()
    with pytest.raises(KeyError):
        lp.set_coefficients(7, loaves[:1], 1.0)


@pytest.mark.parametrize("method", ["simplex", "interior"])
def test_further_objectives_make_the_answer_the_only_one(method: str) -> None:
    rng = np.random.default_rng(5)
    costs = rng.uniform(1, 2, 36)
    lp = transport(6)
    solution = lp.solve(method=method, then=[-costs])  # type: ignore[arg-type]
    other = transport(6).solve(method="simplex", then=[-costs])
    assert solution.objective == pytest.approx(4.5)
    assert solution.values.sum() == pytest.approx(4.5)
    assert solution.values == pytest.approx(other.values, abs=1e-9)
    # The model is as it was: the first objective alone again, with another tie-break.
    assert lp.solve(then=[costs]).values.sum() == pytest.approx(4.5)


def test_further_objectives_against_a_program_with_the_first_as_a_row() -> None:
    lp, costs = transport(5), np.random.default_rng(1).uniform(1, 2, 25)
    found = lp.solve(then=[-costs]).values @ costs
    held = transport(5)
    total = held.add_rows("total", ["all"], lower=3.75)
    held.add_coefficients(total, np.arange(25), 1.0)
    held.set_costs(np.arange(25), -costs)
    assert found == pytest.approx(-held.solve().objective)


@settings(deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 10_000), maximize=st.booleans())
def test_same_optimum_as_scipy(seed: int, maximize: bool) -> None:  # noqa: FBT001
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 6, 2)
    matrix = rng.normal(size=(rows, columns)).round(1)
    cost, upper = rng.normal(size=columns).round(1), rng.uniform(0.5, 2, rows)
    lp = LinearProgram("random", maximize=maximize)
    which = lp.add_columns("x", range(columns), upper=5, cost=cost)
    limits = lp.add_rows("row", range(rows), upper=upper)
    lp.add_coefficients(limits[:, None], which[None, :], matrix)
    sign = -1 if maximize else 1
    expected = optimize.linprog(sign * cost, matrix, upper, bounds=(0, 5))
    solution = lp.solve()
    assert solution.objective == pytest.approx(sign * expected.fun, abs=1e-8)
    assert (matrix @ solution.values <= upper + 1e-8).all()


def test_infeasible_rows_are_named_and_no_others() -> None:
    lp, loaves, _ = bakery()
    order = lp.add_rows("order", ["of Anna"], lower=3)
    lp.add_coefficients(order, loaves[:1], 1.0)
    other = lp.add_rows("order", ["of Bob"], lower=2)
    lp.add_coefficients(other, loaves[1:], 1.0)
    lp.add_rows("salt", ["all"], upper=1)
    with pytest.raises(InfeasibleError) as caught:
        lp.solve()
    assert str(caught.value) == (
        "bakery: no feasible solution: flour 'all', order 'of Anna', order 'of Bob' "
        "cannot hold together"
    )


def test_crossed_bounds_and_no_bound_are_refused() -> None:
    lp, _, flour = bakery()
    lp.set_row_bounds(flour, 5, 4)
    with pytest.raises(InfeasibleError, match="flour 'all' has a lower bound above"):
        lp.solve()
    lp, loaves, flour = bakery()
    lp.set_row_bounds(flour, -np.inf, np.inf)
    lp.set_column_bounds(loaves, 0, np.inf)
    with pytest.raises(InfeasibleError, match="objective has no bound"):
        lp.solve()


def test_unknown_method() -> None:
    with pytest.raises(SpecError, match="Did you mean 'simplex'"):
        bakery()[0].solve(method="simplx")  # type: ignore[arg-type]


def test_distinct_costs_are_splitmix64_and_have_no_equal_sums() -> None:
    costs = distinct_costs(300)
    # The generator's first published output from seed 0.
    assert costs[0] == 1 + (0xE220A8397B1DCDAF >> 11) / 2**53
    assert ((costs >= 1) & (costs < 2)).all()
    sums = np.add.outer(costs, costs)[np.triu_indices(300)]
    assert np.diff(np.sort(sums)).min() > 0


def test_a_program_without_columns() -> None:
    lp = LinearProgram("nothing")
    rows = lp.add_rows("row", ["a", "b"], lower=-1, upper=1)
    solution = lp.solve(then=[[]])
    assert (solution.objective, len(solution.values), len(solution.duals)) == (0, 0, 2)
    lp.set_row_bounds(rows[1:], 1, 2)
    with pytest.raises(InfeasibleError, match="row 'b' is 0"):
        lp.solve()


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=7),
    st.integers(1, 30),
    st.integers(1, 3),
)
def test_whole_numbers_by_brute_force(
    items: list[tuple[int, int]], capacity: int, most: int
) -> None:
    """A knapsack with up to ``most`` of each item, and one that may be cut."""
    lp = LinearProgram("knapsack", maximize=True)
    whole = lp.add_columns(
        "take", range(len(items)), upper=most, cost=[v for v, _ in items], integer=True
    )
    cut = lp.add_columns("of the sand", ["all"], cost=0.25)
    rows = lp.add_rows("capacity", ["all"], upper=capacity)
    lp.add_coefficients(rows, whole, [w for _, w in items])
    lp.add_coefficients(rows, cut, 1.0)
    found = lp.solve()
    best = {0: 0}  # weight -> value
    for value, weight in items:
        for held, worth in list(best.items()):
            for n in range(1, most + 1):
                if held + n * weight <= capacity:
                    at = held + n * weight
                    best[at] = max(best.get(at, 0), worth + n * value)
    assert found.objective == pytest.approx(
        max(v + 0.25 * (capacity - held) for held, v in best.items())
    )
    assert (found.values[whole] == found.values[whole].astype(int)).all()
    assert np.isnan(found.duals).all()
    lp.set_row_bounds(rows, -np.inf, 0)
    assert lp.solve().objective == pytest.approx(0)


def test_no_whole_number_lies_between() -> None:
    lp = LinearProgram("halves")
    column = lp.add_columns("n", ["only"], integer=True)
    rows = lp.add_rows("half", ["only"], lower=0.4, upper=0.6)
    lp.add_coefficients(rows, column, 1.0)
    with pytest.raises(InfeasibleError, match="not with whole numbers"):
        lp.solve()
    with pytest.raises(SpecError, match="no further objectives"):
        lp.solve(then=[1.0])
