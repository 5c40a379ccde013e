"""The inverse of a what-if: how few nodes keep waits short?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.quantiles import quantiles
from windtunnel.study.changes import conditions_with_nodes, varied_nodes
from windtunnel.study.resolving import cluster_of
from windtunnel.study.simulate import fly
from windtunnel.study.whatif import WhatIf

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.recording import Recording
    from windtunnel.study.verdict import Verdict


@dataclass(frozen=True)
class FewestNodes:
    """The fewest nodes that keep waits short.

    Attributes:
        cluster: with them.
        num_nodes: of the type that was varied (GPUs, of a pool).
        num_now: of that type before.
        p90_wait: with them, s.
        tried: number of nodes -> P90 of the waits, s, in rising order; infinite = jobs that do
            not fit.
        interval: fewest nodes at both ends of what the replay's P90 may be off by, infinite = no
            number would do; None = what was recorded is not known.
        recorded: P90 of the recorded waits, s; None = not known.
    """

    cluster: ClusterSpec
    num_nodes: int
    num_now: int
    p90_wait: float
    tried: dict[int, float]
    interval: tuple[float, float] | None = None
    recorded: float | None = None


@dataclass
class _Search:
    """Flights with other numbers of nodes, each once."""

    recording: Recording
    conditions: Conditions
    now: int
    most: int
    tried: dict[int, float] = field(default_factory=dict)

    def p90(self, count: int) -> float:
        """Return the P90 of the waits, s; infinite where a job does not fit at all."""
        if count not in self.tried:
            there = conditions_with_nodes(self.conditions, count - self.now)
            outcome = fly(self.recording.jobs, there)
            waits = self.recording.waits(outcome)
            ran = waits[~np.isnan(waits)]
            p90 = float(quantiles(ran, 0.9)) if len(ran) else 0.0
            self.tried[count] = float("inf") if outcome.reasons else p90
        return self.tried[count]

    def fewest(self, limit: float) -> float:
        """Return the fewest nodes whose P90 is at most a limit; infinite where none suffice."""
        high = self.now
        while self.p90(high) > limit:
            # Two doublings that shorten nothing: limits, throttles or other nodes bind.
            stays = high >= 4 * self.now and self.p90(high) == self.p90(high // 4) < math.inf
            if high >= self.most or stays:
                return math.inf
            high = min(2 * high, self.most)
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            if self.p90(middle) <= limit:
                high = middle
            else:
                low = middle
        return high


def fewest_nodes(
    recording: Recording,
    conditions: Conditions,
    limit: float,
    *,
    most: int = 1 << 20,
    seed: int = 0,
) -> tuple[FewestNodes, Verdict | None]:
    """Search the fewest nodes with which the P90 of the waits is at most a limit.

    Doubling finds a number that suffices, halving the least one. More nodes do not always shorten
    every wait, so the least found is one whose next smaller neighbour does not suffice. Where the
    record is known the search is repeated for limits as much higher and lower as the replay's P90
    is off by (blocks drawn as for `WhatIf`).

    Args:
        recording: the jobs.
        conditions: as things are, resolved; nodes with GPUs of which there are most are varied
            (a pool's GPUs).
        limit: s.
        most: nodes that are tried at most.
        seed: of the draws.

    Returns:
        What was found, and the verdict on the replay as things are; None without a record.

    Raises:
        SpecError: not even ``most`` nodes suffice, or ``limit`` is below 0.
    """
    if not limit >= 0:
        raise SpecError("--keep-p90-wait", f"found {limit:g}; expected a time from 0 on.")
    loose = conditions.having(oversize="reject", incomplete="reject")
    # Jobs that the cluster cannot hold as it is are no reason to want more nodes.
    as_is = fly(recording.jobs, loose)
    fits = np.ones(recording.jobs.num_rows, dtype=bool)
    fits[list(as_is.reasons)] = False
    flown = replace(
        recording,
        jobs=recording.jobs.filter(pa.array(fits)),
        submitted=recording.submitted[fits],
    )
    search = _Search(flown, loose, varied_nodes(conditions), most)
    fewest = search.fewest(limit)
    if fewest == math.inf:
        last = max(search.tried)
        message = (
            f"not even {last:,} nodes keep P90 to {limit:g} s: it is {search.tried[last]:,.0f} s."
        )
        raise SpecError("--keep-p90-wait", message)
    count = int(fewest)
    verdict, off = None, None
    if recording.has_starts:
        now = WhatIf(as_is, as_is, (), "weeks", None, seed,
                     recording.outcome(as_is.cluster), recording)  # fmt: skip
        verdict, off = now.verdict(), now.off_by()
    interval = None
    if off is not None:
        ends = [search.fewest(limit / factor) for factor in off]
        interval = min(*ends, count), max(*ends, count)
    there = conditions_with_nodes(conditions, count - search.now)
    found = FewestNodes(
        cluster_of(there), count, search.now, search.tried[count],
        dict(sorted(search.tried.items())), interval,
        None if verdict is None else verdict.recorded_p90,
    )  # fmt: skip
    return found, verdict
