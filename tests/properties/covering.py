"""Few runs in which every pair, or triple, of parts meets: a covering array."""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from matrix_cases import FEATURES, Cell, excluded
from matrix_table import entries_of, refusing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Features of one run, at most.
SIZE = 12
#: Features that say nothing of a run, but that it is refused: they are tried one by one.
ONLY_REFUSED = ("long resume costs",)
#: Of parts, in the order in which they stand.
KINDS = ("rule", "placement", "feature")
Part = tuple[str, str | None]


def covering(
    policies: Sequence[str],
    rules: Sequence[str | None],
    placements: Sequence[str],
    *,
    strength: int = 2,
    seed: int = 0,
) -> Iterator[Cell]:
    """Yield runs in which all sets of so many parts meet that go together in any run.

    Parts are rules, placements and features; the policies take turns.

    Args:
        policies: by name.
        rules: for the queue; None = the policy's own.
        placements: by name.
        strength: parts of a set.
        seed: of the choices.

    Raises:
        AssertionError: the table refuses a run of which it refuses no two parts.
    """
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    parts = parts_of(rules, placements)
    seen = {policy: _seen(policy, parts) for policy in policies}
    one_of = {alike: policy for policy, alike in seen.items()}
    goes = {alike: _goes(policy, parts) for alike, policy in one_of.items()}
    flies = {alike: _sets_that_fly(parts, pairs, strength) for alike, pairs in goes.items()}
    left: np.ndarray = np.logical_or.reduce(list(flies.values()))
    turns = list(policies)
    pick.shuffle(turns)
    while left.any():
        first = _most_wanted(left, pick)
        policy = next(name for name in turns if flies[seen[name]][tuple(first)])
        turns.remove(policy)
        turns.append(policy)
        chosen = _filled(first, parts, goes[seen[policy]], left, pick)
        left[np.ix_(*[chosen] * strength)] = False
        yield _cell(policy, [parts[number] for number in chosen], pick.randrange(10**6))


def parts_of(rules: Sequence[str | None], placements: Sequence[str]) -> list[Part]:
    """Return what runs are made of: rules, placements and all features, each with its kind."""
    found: list[Part] = [("rule", rule) for rule in rules]
    found += [("placement", name) for name in placements]
    return found + [("feature", name) for name in FEATURES if name not in ONLY_REFUSED]


def _cell(policy: str, parts: Sequence[Part], seed: int) -> Cell:
    """Return the run of some parts, which flies."""
    chosen = dict(part for part in parts if part[0] != "feature")
    features = tuple(str(name) for kind, name in parts if kind == "feature")
    cell = Cell(policy, chosen["rule"], str(chosen["placement"]), features, seed)
    assert not refusing(cell), f"refused, although no two of its parts are: {cell}"
    return cell


def _seen(policy: str, parts: Sequence[Part]) -> tuple[frozenset[str], ...]:
    """Return what the table sees in a policy, whatever part is there: alike, policies fly alike."""
    rules = [name for kind, name in parts if kind == "rule"]
    features = [(), *((str(name),) for kind, name in parts if kind == "feature")]
    cells = [Cell(policy, rule, "best_fit", own, 1) for rule in rules for own in features]
    return tuple(entries_of(cell) for cell in cells)


def _goes(policy: str, parts: Sequence[Part]) -> np.ndarray:
    """Return which two parts a run of a policy can have; no part goes with itself.

    What a pair leaves open, of a rule and a placement, is as it may be: the plainest placement,
    and any rule.

    Returns:
        Bool array (parts, parts).
    """
    rules = [name for kind, name in parts if kind == "rule"]
    found = np.zeros((len(parts), len(parts)), dtype=bool)
    for one, two in combinations(range(len(parts)), 2):
        found[one, two] = found[two, one] = _is_one_run(policy, parts[one], parts[two], rules)
    return found


def _is_one_run(policy: str, one: Part, two: Part, rules: Sequence[str | None]) -> bool:
    """Return whether a run of the policy can have both parts."""
    features = tuple(str(name) for kind, name in (one, two) if kind == "feature")
    if (one[0] == two[0]) and (one[0] != "feature" or excluded(*features)):
        return False
    chosen = dict(part for part in (one, two) if part[0] != "feature")
    placement = str(chosen.get("placement", "best_fit"))
    open_to = [chosen["rule"]] if "rule" in chosen else rules
    return any(not refusing(Cell(policy, rule, placement, features, 1)) for rule in open_to)


def _frames(parts: Sequence[Part], goes: np.ndarray) -> list[list[int]]:
    """Return each rule with each placement that goes with it: a run has one of these."""
    of = {kind: [at for at, part in enumerate(parts) if part[0] == kind] for kind in KINDS}
    return [[rule, at] for rule in of["rule"] for at in of["placement"] if goes[rule, at]]


def _sets_that_fly(parts: Sequence[Part], goes: np.ndarray, strength: int) -> np.ndarray:
    """Return the sets of parts that can be in one run, given the pairs that can.

    Returns:
        Bool array (parts, ..., parts) of as many axes as sets have parts, true in each order.
    """
    in_pairs = np.ones([1] * strength, dtype=bool)
    for pair in combinations(range(strength), 2):
        shape = [len(parts) if axis in pair else 1 for axis in range(strength)]
        in_pairs = in_pairs & goes.reshape(shape)
    framed = np.zeros_like(in_pairs)
    beside = goes | np.eye(len(parts), dtype=bool)
    for frame in _frames(parts, goes):
        framed[np.ix_(*[np.flatnonzero(beside[frame].all(axis=0))] * strength)] = True
    return in_pairs & framed


def _most_wanted(left: np.ndarray, pick: random.Random) -> list[int]:
    """Return a set that has not met: of the parts that lack most, one after the other."""
    chosen: list[int] = []
    for _ in range(left.ndim):
        lacks = left[tuple(chosen)].reshape(len(left), -1).sum(axis=1)
        chosen.append(_best(lacks, np.flatnonzero(lacks), pick))
    return chosen


def _filled(
    first: Sequence[int],
    parts: Sequence[Part],
    goes: np.ndarray,
    left: np.ndarray,
    pick: random.Random,
) -> list[int]:
    """Return the parts of a run around some: always the one that brings most of what is left."""
    beside = goes | np.eye(len(parts), dtype=bool)
    open_to = [frame for frame in _frames(parts, goes) if beside[np.ix_(frame, first)].all()]
    gain = _gain(first, left)
    most = max(gain[frame].sum() for frame in open_to)
    frame = pick.choice([frame for frame in open_to if gain[frame].sum() == most])
    chosen = list(dict.fromkeys([*frame, *first]))
    while len(chosen) < len(frame) + SIZE:
        open_ = np.flatnonzero(goes[chosen].all(axis=0))
        if not len(open_):
            break
        chosen.append(_best(_gain(chosen, left), open_, pick))
    return chosen


def _gain(chosen: Sequence[int], left: np.ndarray) -> np.ndarray:
    """Return of how many sets that have not met each part would bring the last one."""
    others = left.ndim - 1
    found: np.ndarray = left[np.ix_(*[chosen] * others)].sum(axis=tuple(range(others)))
    return found


def _best(gain: np.ndarray, of: np.ndarray, pick: random.Random) -> int:
    """Return which of some parts gains most; of equals any."""
    return int(pick.choice(of[gain[of] == gain[of].max()].tolist()))
