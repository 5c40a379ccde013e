"""Segments in blocks of nodes that are up or down: the closed form against placed segments.

Blocks of n nodes, each node up with probability p, segments of s nodes within a block: usable is
the share sum over k of C(n, k) p^k (1 - p)^(n - k) floor(k / s) s / n. Every pattern of a block is
laid out in a tree, its down nodes left out, and filled with single segments until one is refused;
each counts with its probability, so that nothing is left to chance.
"""

from __future__ import annotations

from itertools import product
from math import comb

import pytest

from windtunnel.cluster.topology.asking import asked
from windtunnel.cluster.topology.fitting import fit
from windtunnel.cluster.topology.places import of_pods
from windtunnel.cluster.topology.tree import HOST, TopologyTree
from windtunnel.cluster.topology.words import request_of

LEVELS = ("block", HOST)


def closed_form(n: int, p: float, s: int) -> float:
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) * (k // s) * s / n for k in range(n + 1))


def placed(n: int, s: int, up: tuple[bool, ...]) -> int:
    """How many nodes segments hold of a block, placed one after the other."""
    nodes = [(("b0", f"n{i}"), {"gpu": 4, "pods": 9}) for i in range(n) if up[i]]
    tree = TopologyTree(LEVELS, nodes)
    ask = asked(LEVELS, request_of(f"slice=block/{s}", LEVELS), s, {"gpu": 4})
    used = 0
    while (found := fit(tree, ask).pods) is not None:
        tree.take(of_pods({"gpu": 4}, found))
        used += len(found)
    return used


@pytest.mark.parametrize(("n", "p", "s"), [(8, 0.9, 1), (8, 0.9, 2), (9, 0.97, 4), (10, 0.8, 3)])
def test_the_usable_share_of_segments(n: int, p: float, s: int) -> None:
    by_count = {k: placed(n, s, (True,) * k + (False,) * (n - k)) for k in range(n + 1)}
    expected = 0.0
    for up in product((True, False), repeat=n):
        k = sum(up)
        expected += p**k * (1 - p) ** (n - k) * by_count[k] / n
    assert expected == pytest.approx(closed_form(n, p, s), abs=1e-9)


def test_which_nodes_are_down_does_not_matter() -> None:
    for up in ((True, False, True, True, False, True), (False, False, True, True, True, True)):
        assert placed(6, 2, up) == 4
        assert placed(6, 3, up) == 3
