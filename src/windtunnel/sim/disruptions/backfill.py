"""Backfilling that knows planned holds: maintenance, reservations, nodes that join or leave.

No job is started where a hold that is not its own begins before its expected end. Failures are not
known in advance, and neither is when a failed node comes back: a job that cannot be placed without
one is promised nothing, and nobody waits for it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.sim.backfill import ConservativeQueue, EasyQueue

if TYPE_CHECKING:
    from windtunnel.cluster.free import FreeState
    from windtunnel.sim.disruptions.ledger import DisruptedLedger
    from windtunnel.sim.disruptions.plan import Hold
    from windtunnel.sim.queues import Key


def _change(free: Any, begins: int, hold: Hold) -> None:
    for place, units in hold.places:
        if begins:
            free.withhold(place, hold.group, units)
        else:
            free.restore(place, hold.group, units)


class HeldEasyQueue(EasyQueue):
    """`EasyQueue` with planned holds."""

    ledger: DisruptedLedger

    def _reserve(self, head: int, now: float) -> tuple[float, FreeState]:
        """Return the shadow time, and what is free then beside the head; inf = none."""
        ledger = self.ledger
        free = ledger.free.copy()
        releases = [(max(end, now), job) for end, _, job in self.expected]
        changes = ledger.planned_after(now)
        released = changed = 0
        for time in sorted({t for t, _ in releases} | {change[0] for change in changes}):
            while released < len(releases) and releases[released][0] <= time:
                job = releases[released][1]
                free.give(ledger.running[job].where, ledger.demand[job])
                released += 1
            while changed < len(changes) and changes[changed][0] <= time:
                _change(free, *changes[changed][1:])
                changed += 1
            where = ledger.put_seen(ledger.seen(free, head, time), head)
            if where is not None:
                free.take(where, ledger.demand[head])
                return time, free
        return math.inf, ledger.free.copy()


class HeldConservativeQueue(ConservativeQueue):
    """`ConservativeQueue` with planned holds; after a failure or a repair it promises anew."""

    ledger: DisruptedLedger

    def __init__(self, ledger: DisruptedLedger, key: Key) -> None:
        super().__init__(ledger, key)
        # What comes before the first submit has happened already.
        self._hold_after(math.nextafter(ledger.plan.first, -math.inf))

    def surprised(self) -> None:
        """Promise anew at the next decision."""
        self._overrun = True

    def _rebuild(self, now: float, *, keep: bool) -> None:
        super()._rebuild(now, keep=keep)
        self._hold_after(now)

    def _hold_after(self, now: float) -> None:
        for time, begins, hold in self.ledger.planned_after(now):
            self.profile.change_from(time, partial(_change, begins=begins, hold=hold))

    def _promise(self, job: int) -> None:
        ledger = self.ledger
        found = self.profile.earliest_seen(
            self.estimate[job],
            lambda free: ledger.put_seen(free, job),
            lambda free: ledger.opened(free, job),
        )
        start, where = found or (math.inf, [])
        self.promised[job] = (start, where)
        self.profile.take(start, self._stop(job, start), where, ledger.demand[job])
