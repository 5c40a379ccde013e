"""Few runs in which every pair, or triple, of parts meets: a covering array."""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING

from matrix_cases import FEATURES, Cell, excluded
from matrix_table import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Features of one run, at most.
SIZE = 12
#: Features that say nothing of a run, but that it is refused: they are tried one by one.
ONLY_REFUSED = ("long resume costs",)
Part = tuple[str, str | None]


def covering(
    policies: Sequence[str],
    rules: Sequence[str | None],
    placements: Sequence[str],
    *,
    strength: int = 2,
    seed: int = 0,
) -> Iterator[Cell]:
    """Yield runs in which all sets of so many parts meet that go together.

    Parts are rules, placements and features; the policies take turns.

    Args:
        policies: by name.
        rules: for the queue; None = the policy's own.
        placements: by name.
        strength: parts of a set.
        seed: of the order.
    """
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    features = [name for name in FEATURES if name not in ONLY_REFUSED]
    parts: list[Part] = [("rule", rule) for rule in rules if len(rules) > 1]
    parts += [("placement", name) for name in placements if len(placements) > 1]
    parts += [("feature", name) for name in features]
    sets = [frozenset(some) for some in combinations(parts, strength) if _is_one_run(some)]
    pick.shuffle(sets)
    left = dict.fromkeys(sets)
    turns = list(policies) * 2
    while left:
        first = next(iter(left))
        at = pick.randrange(len(policies))
        for policy in turns[at : at + len(policies)]:
            cell = _around(first, policy, rules, placements, pick)
            if cell is not None:
                cell = _filled(cell, features, left, strength, pick)
                for some in _sets(cell, strength):
                    left.pop(some, None)
                yield cell
                break
        left.pop(first, None)


def _is_one_run(parts: Sequence[Part]) -> bool:
    """Return whether a run can have all of some parts: one rule, one placement, one of a choice."""
    kinds = [kind for kind, _ in parts]
    if kinds.count("rule") > 1 or kinds.count("placement") > 1:
        return False
    names = [str(name) for kind, name in parts if kind == "feature"]
    return not any(excluded(one, two) for one, two in combinations(names, 2))


def _around(
    parts: frozenset[Part],
    policy: str,
    rules: Sequence[str | None],
    placements: Sequence[str],
    pick: random.Random,
) -> Cell | None:
    """Return a run of some parts that flies, None = none does; other parts as chance has them."""
    chosen = dict(part for part in parts if part[0] != "feature")
    features = tuple(sorted(str(name) for kind, name in parts if kind == "feature"))
    for _ in range(4):
        rule = chosen.get("rule", pick.choice(rules))
        placement = chosen.get("placement", pick.choice(placements))
        cell = Cell(policy, rule, str(placement), features, pick.randrange(10**6))
        if _flies(cell):
            return cell
    rule = chosen.get("rule", None if None in rules else rules[0])
    placement = chosen.get("placement", placements[0])
    cell = Cell(policy, rule, str(placement), features, 0)
    return cell if _flies(cell) else None


def _filled(
    cell: Cell,
    features: Sequence[str],
    left: dict[frozenset[Part], None],
    strength: int,
    pick: random.Random,
) -> Cell:
    """Return the run with more features: those that bring most of what has not met."""
    others = [name for name in features if name not in cell.features]
    pick.shuffle(others)
    if strength == 2:  # of triples there are too many to count
        here = _parts(cell)
        others.sort(
            key=lambda name: -sum(frozenset((("feature", name), part)) in left for part in here)
        )
    for name in others:
        if len(cell.features) >= SIZE:
            break
        if any(excluded(name, own) for own in cell.features):
            continue
        more = Cell(cell.policy, cell.rule, cell.placement, (*cell.features, name), cell.seed)
        if _flies(more):
            cell = more
    return cell


def _flies(cell: Cell) -> bool:
    return not any(row.refuses(cell) for row in table())


def _parts(cell: Cell) -> list[Part]:
    named: list[Part] = [("rule", cell.rule), ("placement", cell.placement)]
    return [*named, *(("feature", name) for name in cell.features)]


def _sets(cell: Cell, strength: int) -> Iterator[frozenset[Part]]:
    return map(frozenset, combinations(_parts(cell), strength))
