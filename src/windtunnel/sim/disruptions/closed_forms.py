"""What theory says of failures: when a job fails, how often to save, how many spares to hold.

Failures are Poisson, each node's by itself, and any of them stops a job: the *series model*. It was
measured wrong for small jobs: on RSC-1 jobs of 1,024 GPUs ran 7.9 h to a failure where it says 28.8
(Kokolis et al., HPCA'25); `SERIES_FROM` GPUs up it holds.

References:
    J. W. Young, CACM 17, 1974; J. T. Daly, FGCS 22, 2006, equation 37.
    Machine repair: L. Kleinrock, Queueing Systems 1, 1975, section 3.8 (M/M/k//N).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

#: GPUs of a job below which the series model was measured wrong.
SERIES_FROM = 2_000


def job_mttf(num_gpus: float, node_mtbf: float, gpus_per_node: float = 8) -> float:
    """Return the mean time between failures of a job's nodes, s, by that of one node (s).

    >>> round(job_mttf(16_384, 86_400 / 0.0065) / 3600, 2)
    1.8
    """
    return node_mtbf / math.ceil(num_gpus / gpus_per_node)


def young(cost: float, mttf: float) -> float:
    """Return Young's work between checkpoints, s: sqrt(2 x cost x mttf)."""
    return math.sqrt(2 * cost * mttf)


def daly(cost: float, mttf: float) -> float:
    """Return Daly's work between checkpoints, s: of a higher order; mttf where cost >= 2 mttf."""
    if cost >= 2 * mttf:
        return mttf
    part = cost / (2 * mttf)
    return young(cost, mttf) * (1 + math.sqrt(part) / 3 + part / 9) - cost


def availability_optimal(cost: float, mttf: float, recovery: float) -> float:
    """Return the cycle of work and saving of best availability, s.

    Tc = Ts + sqrt(2 (Tf + Tr) Ts + Ts^2), with Ts = cost, Tf = mttf, Tr = recovery; the work
    between checkpoints is Tc - Ts.
    """
    return cost + math.sqrt(2 * (mttf + recovery) * cost + cost * cost)


def goodput(
    interval: float, cost: float, mttf: float, *, restart: float = 0.0, repair: float = 0.0
) -> float:
    """Return the share of time that a long job makes progress (renewal, exponential failures).

    Args:
        interval: work between checkpoints, s.
        cost: of writing one, s.
        mttf: of the job, s, while it holds its nodes.
        restart: what going on costs, s; it may fail, too.
        repair: wait until it holds nodes again, s.
    """
    whole = math.expm1((interval + cost) / mttf) * math.exp(restart / mttf) * (mttf + repair)
    return interval / whole


def machines_down(nodes: int, crews: int, mtbf: float, mttr: float) -> np.ndarray:
    """Return the probability that so many of the nodes are down, 0 to all, in the long run.

    Machine repair M/M/k//N: every node that is up fails at rate 1/mtbf, each crew repairs one at a
    time at rate 1/mttr. Float array of shape (nodes + 1,).
    """
    down = np.arange(nodes)
    steps = np.log((nodes - down) / mtbf) - np.log(np.minimum(down + 1, crews) / mttr)
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _first(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the least number, up to ``most``, from which on something holds; None = it never does.

    ``holds`` is false up to somewhere and true from there on.
    """
    high = 0
    while not holds(high):
        if high >= most:
            return None
        high = min(2 * high + 1, most)
    return bisect_left(range(high), True, key=holds)


def spares_for(needed: int, crews: int | None, mtbf: float, mttr: float, share: float) -> int:
    """Return the fewest spare nodes with which ``needed`` are up for so large a share of the time.

    Args:
        needed: nodes of the job.
        crews: that repair; None = one for every node.
        mtbf: of a node, s.
        mttr: of a repair, s.
        share: 0 to 1, 1 excluded.
    """

    def suffice(spares: int) -> bool:
        return _all_up(needed, spares, crews, mtbf, mttr) >= share

    found = _first(suffice, needed)
    if found is None:
        raise ValueError(f"{needed} spares do not keep {needed} nodes up {share:.3g} of the time")
    return found


def _all_up(needed: int, spares: int, crews: int | None, mtbf: float, mttr: float) -> float:
    """Return the share of the time in which as many nodes are up as are needed."""
    nodes = needed + spares
    down = machines_down(nodes, nodes if crews is None else crews, mtbf, mttr)
    return float(down[: spares + 1].sum())


def spares_of_most_work(needed: int, crews: int | None, mtbf: float, mttr: float) -> int:
    """Return the spare nodes with which a job's time up, over all nodes, is greatest.

    Args: as `spares_for`.
    """

    def worth(spares: int) -> float:
        return _all_up(needed, spares, crews, mtbf, mttr) / (needed + spares)

    # It rises from next to nothing to one peak: the first spare node after which one adds nothing.
    found = _first(lambda spares: 0 < worth(spares) >= worth(spares + 1), needed)
    return needed if found is None else found
