"""EASY backfilling under policies of power: the head is promised room, nodes awake, and power."""

from __future__ import annotations

import heapq
import math
from itertools import groupby
from typing import TYPE_CHECKING, Any

from windtunnel.sim.backfill import EasyQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.free import FreeState, Where
    from windtunnel.sim.power.governor import Governor
    from windtunnel.sim.power.ledger import PoweredLedger

_RELEASE, _WAKE, _CAP = range(3)


class PoweredEasyQueue(EasyQueue):
    """`EasyQueue` whose shadow time is when there is power for the head, too.

    The cap's coming changes are known; sleeping nodes count as awake once they could have been
    woken.
    """

    ledger: PoweredLedger
    #: What happens by itself; set once it is made.
    governor: Governor

    def _reserve(self, head: int, now: float) -> tuple[float, FreeState]:
        """Return the shadow time, and what is free then beside the head; inf = none."""
        ledger = self.ledger
        free: Any = ledger.free.copy()
        demand = ledger.demand[head]
        running, cap_w = ledger.floor_sum, ledger.cap_w
        for time, events in groupby(self._coming(now), key=lambda event: event[0]):
            for _, kind, what in events:
                if kind == _RELEASE:
                    job = int(what)
                    free.give(ledger.running[job].where, ledger.demand[job])
                    running -= ledger.floors.get(job, 0)
                elif kind == _WAKE:
                    free.restore(int(what))
                else:
                    cap_w = what
            spare = max(ledger.budget_at(cap_w), 0) - running
            where, _ = ledger.place_within(free, head, spare)
            if where is not None:
                free.take(where, demand)
                self._left = spare - ledger.floor(head, where)
                return time, free
        self._left = 0
        return math.inf, ledger.free.copy()

    def _coming(self, now: float) -> Iterator[tuple[float, int, float]]:
        """Yield what is expected from now on: (time, kind, job, node or W), in order of time."""
        ends = [(max(end, now), _RELEASE, float(job)) for end, _, job in self.expected]
        last = ends[-1][0] if ends else now
        wakes = [(time, _WAKE, float(node)) for time, node in self.governor.wakes_after(now)]
        caps = ((time, _CAP, watts) for time, watts in self.governor.caps_after(now, last))
        return heapq.merge(ends, wakes, caps, key=lambda event: event[0])

    def _takes_beside(self, job: int, where: Where, beside: FreeState) -> bool:
        """Take what a job holds beside the head at the shadow time; False = it is not free then."""
        need = self.ledger.floor(job, where)
        if need > self._left or not super()._takes_beside(job, where, beside):
            return False
        self._left -= need
        return True
