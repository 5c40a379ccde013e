"""Lemon nodes: nodes that fail more often than chance or outages explain.

A failure that a log tells of is one of an *attempt*: a stay of a job on some nodes. Which of them
failed it does not say. Where no node is worse than another, an attempt of n nodes fails at n times
one rate. A node's score counts each failed attempt on it as log((n + r - 1) / n), its part of the
likelihood ratio for a node that fails r = `RATIO` times as often, so that failures that few others
can have caused count most; its mean and its variance m and v follow from the lengths and sizes of
the attempts. A node's p value is the chance
of so high a score, as v / m times a Poisson number of mean m^2 / v: exact where all attempts are on
single nodes. Over all nodes the Benjamini-Hochberg procedure (JRSS B 57, 1995) holds the share of
nodes called lemons wrongly at `LEVEL`. Nodes are found one by one, worst first: the attempts on a
lemon tell no more of the nodes beside it, and the rate is that of the rest.

Failures of many nodes at one time are no lemons' doing. Attempts without a common node that fail
within `TOGETHER` seconds are an *outage* where so many of them are less likely than
`OUTAGE` in the whole log by chance; their failures count for no node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.poisson import at_least

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Share of wrong ones among the nodes that are called lemons.
LEVEL = 0.025
#: Largest p value of a node that may be one.
_SUSPECT = 0.01
#: How many times as often as the others a node fails that the test looks for.
RATIO = 5.0
#: Failures within so many seconds may be one outage.
TOGETHER = 600.0
#: Chance of finding an outage in a log that has none.
OUTAGE = 0.01


@dataclass(frozen=True)
class Attempts:
    """Stays of jobs on nodes, and which of them a node's failure ended.

    Attributes:
        node: Int array (m,), number of the node of each pair of an attempt and a node.
        attempt: Int array (m,), number of the attempt, rising.
        run: Float array (k,), how long each attempt ran, s.
        end: Float array (k,), when it ended, s.
        failed: Bool array (k,).
        names: of the nodes.
    """

    node: np.ndarray
    attempt: np.ndarray
    run: np.ndarray
    end: np.ndarray
    failed: np.ndarray
    names: Sequence[str]


@dataclass(frozen=True)
class Lemon:
    """A node that fails too often.

    Attributes:
        node: its name.
        failures: failed attempts on it.
        expected: how many there would be were it like the others.
        ratio: how many times as often as the others it fails, as estimated.
        p: the chance of its score.
    """

    node: str
    failures: int
    expected: float
    ratio: float
    p: float


@dataclass(frozen=True)
class Outage:
    """Failures of several nodes at one time: from when (s), attempts that ended, their nodes."""

    time: float
    attempts: int
    nodes: int


@dataclass(frozen=True)
class NodesFound:
    """What a log says of its nodes.

    Attributes:
        lemons: worst first.
        outages: in order of time.
        rate: failures of a node that is no lemon, and in no outage, a second.
        outage: Bool array (k,), attempts that an outage ended.
    """

    lemons: list[Lemon]
    outages: list[Outage]
    rate: float
    outage: np.ndarray


def find_lemons(given: Attempts) -> NodesFound:
    """Return the lemons and the outages of a log."""
    outages, together = _outages(given)
    tally = _Tally(given, given.failed & ~together)
    left = tally.size > 0
    worst: list[tuple[int, float]] = []
    while True:
        scores = tally.scores(left, tally.rate(left))
        node = int(np.argmin(scores.p)) if len(scores.p) else -1
        if node < 0 or scores.p[node] > _SUSPECT:
            break
        worst.append((node, float(scores.p[node])))
        left[given.attempt[given.node == node]] = False
    called = [at for at, (_, p) in enumerate(worst, 1) if p <= LEVEL * at / len(given.names)]
    lemons = [node for node, _ in worst[: max(called, default=0)]]
    crowd = np.bincount(given.attempt, np.isin(given.node, lemons), len(given.run))
    rate = tally.rate((tally.size > 0) & (crowd == 0))
    # Each beside nodes that are none, unless it never was.
    alone, all_of = tally.scores(crowd <= 1, rate), tally.scores(tally.size > 0, rate)
    found = [
        (alone if alone.expected[node] > 0 else all_of).lemon(node, given.names[node])
        for node in lemons
    ]
    return NodesFound(sorted(found, key=lambda one: one.p), outages, rate, together)


@dataclass(frozen=True)
class _Scores:
    """What is known of each node, Float arrays (nodes,); see `Lemon` and the module."""

    failures: np.ndarray
    expected: np.ndarray
    more: np.ndarray
    p: np.ndarray

    def lemon(self, node: int, name: str) -> Lemon:
        """Return what is known of one node."""
        columns = (self.failures, self.expected, self.more, self.p)
        failures, expected, more, p = (float(column[node]) for column in columns)
        return Lemon(name, int(failures), expected, 1 + more, p)


class _Tally:
    """The attempts of a log, summed by node.

    Args:
        given: the attempts.
        failed: Bool array (k,), those that count as failed.

    Attributes:
        size: Float array (k,), the nodes of each attempt.
    """

    def __init__(self, given: Attempts, failed: np.ndarray) -> None:
        self.given, self.failed = given, failed
        self.size = np.bincount(given.attempt, minlength=len(given.run)).astype(float)
        self._weight = np.log1p((RATIO - 1) / np.maximum(self.size, 1))

    def rate(self, left: np.ndarray) -> float:
        """Return the failures of a node a second in some attempts, Bool array (k,)."""
        exposure = float((self.given.run * self.size)[left].sum())
        return float(self.failed[left].sum()) / exposure if exposure > 0 else 0.0

    def scores(self, left: np.ndarray, rate: float) -> _Scores:
        """Return what some attempts tell of each node, where the others fail at a rate."""
        given, weight, nodes = self.given, self._weight, len(self.given.names)
        of = left[given.attempt]
        node, attempt = given.node[of], given.attempt[of]
        likely = rate * given.run * self.size

        def summed(weights: np.ndarray) -> np.ndarray:
            return np.bincount(node, weights[attempt], nodes)

        score, mean, spread = (
            summed(self.failed * weight), summed(likely * weight), summed(likely * weight**2)
        )  # fmt: skip
        p = np.ones(nodes)
        suspects = np.flatnonzero((score > mean) & (mean > 0))
        step = spread[suspects] / mean[suspects]
        counts = np.ceil(score[suspects] / step - 1e-9).astype(int).tolist()
        means = (mean[suspects] / step).tolist()
        p[suspects] = [at_least(count, one) for count, one in zip(counts, means, strict=True)]
        by_one = rate * summed(given.run * weight)
        more = np.divide(score - mean, by_one, out=np.zeros(nodes), where=by_one > 0)
        return _Scores(summed(self.failed.astype(float)), summed(likely), more, p)


def _outages(given: Attempts) -> tuple[list[Outage], np.ndarray]:
    """Return the outages, and which attempts they ended."""
    together = np.zeros(len(given.run), dtype=bool)
    at = np.flatnonzero(given.failed)
    at = at[np.argsort(given.end[at], kind="stable")]
    if len(at) < 2:  # noqa: PLR2004 - one failure is together with none
        return [], together
    times = given.end[at]
    span = max(float(given.end.max() - (given.end - given.run).min()), TOGETHER)
    first = np.searchsorted(given.attempt, at)
    last = np.searchsorted(given.attempt, at, side="right")
    found, place = [], 0
    mean = _typical(times, span)
    while place < len(at):
        stop = int(np.searchsorted(times, times[place] + TOGETHER, side="right"))
        apart, nodes = 0, set[int]()
        for index in range(place, stop):
            own = set(given.node[first[index] : last[index]].tolist())
            apart += not (own & nodes)
            nodes |= own
        # Each failure may begin one: so many tries.
        if apart > 2 and at_least(apart - 1, mean) * len(at) < OUTAGE:  # noqa: PLR2004
            together[at[place:stop]] = True
            found.append(Outage(float(times[place]), stop - place, len(nodes)))
            place = stop
        else:
            place += 1
    return found, together


def _typical(times: np.ndarray, span: float) -> float:
    """Return how many failures come in `TOGETHER` s where there is no outage.

    By the times between failures that lie further apart than that, so that outages count little.
    """
    gaps = np.diff(times)
    apart = gaps[gaps > TOGETHER]
    alone = float(np.mean(apart) - TOGETHER) if len(apart) else span / len(times)
    return TOGETHER / max(alone, 1e-9)
