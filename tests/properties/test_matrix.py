"""Composition is the contract: everything flies with everything, but for one table.

The table is that of docs/reference/semantics.md (`matrix_table`), the runs are tiny
(`matrix_cases`), and what must hold in each of them is looked at from outside (`invariants`).
"""

from __future__ import annotations

from itertools import combinations, islice
from typing import TYPE_CHECKING

import pytest
from covering import ONLY_REFUSED, Part, covering, parts_of
from flight_cases import draws
from invariants import LONG, check
from matrix_cases import FEATURES, PLACED, POLICIES, RULES, Cell, excluded, kind_of, observed
from matrix_table import ELSEWHERE, MEANING, refusing, table

from windtunnel.errors import WindtunnelError
from windtunnel.testing import assert_outcomes_equal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import windtunnel as wt

SHARING = [name for name in POLICIES if name.startswith(("gavel:", "shockwave:"))]
OTHERS = [name for name in POLICIES if name not in SHARING]
#: Those of them that run on the engines, and not in a loop of their own.
IN_ROUNDS = [name for name in SHARING if "mechanism=" not in name]
#: Of the policies of shares, which differ in these alone, those that meet everything.
SOME_SHARING = (
    *("gavel:fifo_packed", "gavel:fifo", "gavel:max_min_fairness_perf", "gavel:gandiva"),
    *("shockwave:market", "shockwave:finish_time_fairness"),
    *("gavel:max_min_fairness:fill=true", "shockwave:market:fill=true"),
)
#: Whether each policy meets all placements, or they share them.
THOROUGH = draws(100) >= 100
#: Horizon of the runs that are looked at, s. A job that waits for a node that is gone for ever is
#: given up after ten thousand decisions, which take as long as a hundred other runs; one that fails
#: faster than it gets on would end the run. Of those that both engines fly, runs in rounds alone
#: have one: their decisions take longer still.
LOOKED_AT = LONG


def _rules(policy: str) -> tuple[str | None, ...]:
    """Return the rules for the queue that make a difference to a policy."""
    return (None, *RULES) if kind_of(policy).tier < 3 else (None,)


def test_the_page_and_the_tests_speak_of_the_same() -> None:
    rows = table()
    assert len(rows) > 20
    entries = {entry for row in rows for entry in (*row.this, *row.other)}
    assert entries == set(MEANING)
    assert all(row.why.endswith(".") for row in rows)


def _twos() -> Iterator[Cell]:
    """Every two parts of a run, the others as plain as can be."""
    for policy in POLICIES:
        yield from (Cell(policy, rule, "best_fit", (), 1) for rule in RULES)
        yield from (Cell(policy, None, placement, (), 2) for placement in PLACED)
        yield from (Cell(policy, None, "best_fit", (name,), 3) for name in FEATURES)
    yield Cell("gavel:max_min_fairness_perf:mechanism=published:fill=true", None, "best_fit", (), 1)
    for name in FEATURES:
        yield from (Cell("fifo", None, placement, (name,), 4) for placement in PLACED)
        yield from (Cell("srtf", rule, "best_fit", (name,), 5) for rule in RULES)
    for one, two in combinations(FEATURES, 2):
        if not excluded(one, two):
            yield Cell("sjf", None, "best_fit", (one, two), 6)
    yield Cell("srtf", None, "best_fit", ("quotas", "quota walk"), 7)


@pytest.fixture(scope="module")
def refused() -> list[Cell]:
    """Those of them that the table refuses."""
    return [cell for cell in _twos() if refusing(cell)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("part", range(8))
def test_what_the_table_refuses_is_refused(refused: list[Cell], part: int) -> None:
    for cell in refused[part::8]:
        try:
            cell.fly()
        except WindtunnelError:
            continue
        pytest.fail(f"flies, but the table refuses {cell}: {refusing(cell)}")


def test_every_row_refuses_something(refused: list[Cell]) -> None:
    found = {row for cell in refused for row in refusing(cell)}
    others = [row for row in table() if not {*ELSEWHERE} & {*row.this, *row.other}]
    assert [row for row in others if row not in found] == []


@pytest.mark.parametrize("policy", [*OTHERS, *SOME_SHARING] if THOROUGH else OTHERS[::32])
def test_every_pair_flies(policy: str) -> None:
    """Every policy with every two features, rules and placements; in `make test` some.

    Rule, placement and features are covered pair by pair: the rules take turns.
    """
    some = PLACED if THOROUGH else PLACED[POLICIES.index(policy) % 5 :: 5]
    _fly(covering([policy], _rules(policy), some, seed=7))


@pytest.mark.sample(10)
@pytest.mark.parametrize("policy", SHARING)
def test_every_feature_flies_with_policies_of_shares(policy: str) -> None:
    names = [name for name in FEATURES if name not in ONLY_REFUSED]
    cells = (Cell(policy, None, "best_fit", tuple(names[at::9]), at) for at in range(draws(9)))
    _fly(cell for cell in cells if not refusing(cell))


def _of_triples(rule: str | None) -> list[str]:
    """Return the policies that a rule for the queue makes a difference to, and not of shares."""
    return [name for name in OTHERS if rule is None or kind_of(name).tier < 3]


def _triples(rule: str | None) -> Iterator[Cell]:
    """Every three placements and features with a rule for the queue; the policies take turns."""
    seed = (None, *RULES).index(rule)
    return covering(_of_triples(rule), [rule], PLACED, strength=3, seed=seed)


@pytest.mark.sample(1)
@pytest.mark.parametrize("rule", [None, *RULES])
def test_the_triples_are_all_that_fly(rule: str | None) -> None:
    """Those that are in no run of the array are in none at all: the table refuses each of them."""
    parts = parts_of([], PLACED)
    met: set[frozenset[Part]] = set()
    for cell in _triples(rule):
        own: list[Part] = [("placement", cell.placement)]
        own += [("feature", name) for name in cell.features]
        assert cell.rule == rule
        assert not refusing(cell)
        met.update(map(frozenset, combinations(own, 3)))
    apart = {frozenset(two) for two in combinations(parts, 2) if not _is_in_a_run(two, rule)}
    for three in combinations(parts, 3):
        if not (apart & set(map(frozenset, combinations(three, 2)))):
            assert frozenset(three) in met or not _is_in_a_run(three, rule), three


def _is_in_a_run(some: Iterable[Part], rule: str | None) -> bool:
    """Return whether any run with a rule for the queue has these parts, as the table has it."""
    placements = [str(name) for kind, name in some if kind == "placement"]
    features = tuple(str(name) for kind, name in some if kind == "feature")
    if len(placements) > 1 or any(excluded(*two) for two in combinations(features, 2)):
        return False
    return any(
        not refusing(Cell(policy, rule, placement, features, 1))
        for policy in _of_triples(rule)
        for placement in placements or PLACED
    )


@pytest.mark.engines
@pytest.mark.parametrize("rule", [None, *RULES])
def test_every_triple_flies(rule: str | None) -> None:
    """Every rule with every three placements and features: a covering array for each rule."""
    _fly(_triples(rule))


@pytest.mark.sample(2)
@pytest.mark.parametrize("part", range(draws(16)))
@pytest.mark.parametrize("policies", [OTHERS, IN_ROUNDS], ids=["others", "shares"])
def test_both_engines_agree(policies: list[str], part: int) -> None:
    """On a sample, to the bit; each part has half of the policies and a fifth of the placements."""
    rules = _rules("fifo") if policies is OTHERS else [None]
    cells = covering(policies[part % 2 :: 2], rules, PLACED[part % 5 :: 5], seed=200 + part)
    for cell in islice(cells, 6 if THOROUGH else 2):
        if policies is IN_ROUNDS:
            cell.options.setdefault("until", LOOKED_AT)
        _engines_agree(cell)


#: Runs in which the engines once differed, each with what was not the same.
DIFFERED = {
    "a node that sleeps and is out of service, in the quota walk": Cell(
        "priority-preemptive",
        "strict",
        "lowest_utilization",
        ("node sleep", "quota walk", "capacity changes", "GPU shares"),
        507294,
    ),
    "nodes sleep while nothing but failures, and an alarm far off, are to come": Cell(
        "morphling:neither",
        None,
        "openb_best_fit",
        (
            *("node sleep", "rejected jobs", "slower beside others", "reservations"),
            *("slower where spread", "bound types", "shift with pauses", "decision interval"),
            *("capacity changes", "node failures", "submissions first", "slower without cores"),
        ),
        99345,
    ),
    "a node is drained at the instant of an arrival that is decided first": Cell(
        "multifactor",
        "easy_sjbf",
        "most_idle",
        (
            *("completions first", "optimised power limits", "maintenance", "bound types"),
            "rejected jobs",
        ),
        94077,
    ),
    "a job that failed at its end, still ranked at the next event of the instant": Cell(
        "priority-preemptive",
        None,
        "lowest_utilization:scores=float:gang=fill",
        ("quota walk", "job failures", "completions first"),
        6,
    ),
    "a rate that changes while a checkpoint is written, several more being to come": Cell(
        "gavel:fifo", None, "tree:balanced", ("checkpoints", "slower without cores"), 770793
    ),
    "a decision for an arrival that is held": Cell(
        "priority",
        "easy_sjbf",
        "lowest_utilization:scores=float:gang=fill",
        ("shift", "estimates", "submissions first", "other arrivals"),
        0,
    ),
    "at random, which sleeping nodes waiting jobs would get": Cell(
        "fair-share", "strict", "random", ("node sleep",), 12
    ),
    "less room lets a placement choose what draws less": Cell(
        "sjf-preemptive",
        None,
        "most_idle",
        ("power cap", "slower without cores", "node failures", "maintenance", "quota walk"),
        35,
    ),
    "whole devices of a reservation, in the quota walk": Cell(
        "srsf", None, "dot_prod", ("quota walk", "reservations"), 18
    ),
    "an event is due at an instant at which decisions come before it": Cell(
        *("qssf", "conservative", "random"),
        ("node sleep", "completions first", "capacity changes", "slower beside others"),
        192427,
    ),
    "a node is called while promises rest on its waking later": Cell(
        *("easy-perfect", "conservative", "best_fit:gang=fill:topology=rack"),
        ("horizon", "submissions first", "resume costs", "node sleep", "estimates"),
        411572,
    ),
    "racks have nodes that sleep": Cell(
        "sju", "conservative", "best_fit:gang=fill:topology=rack", ("node sleep",), 655767
    ),
    "racks have nodes that are gone": Cell(
        "fifo", "conservative", "best_fit:gang=fill:topology=rack", ("capacity changes",), 829269
    ),
    "when a run is given up whose jobs wait for nodes that are gone": Cell(
        "sjf-estimate",
        "easy",
        "lowest_utilization",
        ("shift", "unlike watts", "node failures", "capacity changes", "slower without cores"),
        995022,
    ),
    "a submission as soon after a multiple of the decision interval as numbers tell": Cell(
        "tiresias",
        "skip",
        "gpu_clustering",
        ("closed loop", "completions first", "decision interval", "job failures"),
        91969,
    ),
    "a gang goes to GPUs that draw less if fewer give way": Cell(
        "las", "skip", "spread", ("node failures", "uniform power limits", "horizon"), 4981
    ),
    "the cap changes at an instant at which decisions come before it": Cell(
        *("fifo", "easy_sjbf", "best_fit"),
        ("optimised power limits", "submissions first", "pooled GPUs"),
        4787,
    ),
    "the head of a strict queue lacks power, and another has started before it": Cell(
        "sjf", "strict", "no nodes", ("power cap",), 117
    ),
    "jobs behind EASY's head lack power, and others of them start": Cell(
        "fifo", "easy_sjbf", "best_fit", ("reservations", "power cap"), 614
    ),
    "jobs that are held up behind EASY's head lack power": Cell(
        "las", "easy", "pool", ("job failures", "optimised power limits", "quotas that block"), 2180
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", DIFFERED)
def test_both_engines_agree_where_they_once_did_not(what: str) -> None:
    _engines_agree(DIFFERED[what])


@pytest.mark.parametrize(
    "cell",
    [
        Cell("sjf", "skip", "best_fit", ("shift with pauses", "slower over uplinks"), 636),
        Cell("srtf", "skip", "best_fit", ("shift with pauses", "optimised power limits"), 537),
    ],
    ids=["slowed by another", "at a power limit"],
)
def test_pauses_do_not_get_ever_shorter(cell: Cell) -> None:
    """A job that is slower than believed was paused again and again, for ever shorter times."""
    flight = cell.fly().flight
    assert flight.power is not None
    assert flight.power.num_pauses > 0
    lasted = flight.segment_end - flight.segment_start
    assert lasted[lasted > 0].min() > 0.1


def _engines_agree(cell: Cell) -> None:
    try:
        assert_outcomes_equal(_flown(cell), cell.fly("reference"))
    except AssertionError as error:
        raise AssertionError(str(cell)) from error


def _fly(cells: Iterable[Cell]) -> None:
    """Fly some runs and look at everything."""
    for cell in cells:
        cell.options.setdefault("until", LOOKED_AT)
        out = _flown(cell)
        try:
            check(observed(cell, out))
        except AssertionError as error:
            raise AssertionError(str(cell)) from error


def _flown(cell: Cell) -> wt.Outcome:
    try:
        return cell.fly()
    except WindtunnelError as error:
        raise AssertionError(f"refused, and not in the table: {cell}") from error
