"""EASY backfilling: the first job that does not fit is promised a start, until the next decision.

Lifka, JSSPP 1995; Mu'alem and Feitelson, TPDS 2001. The promise is the *shadow time*: the earliest
at which the job fits as far as is known: expected ends of running jobs, planned holds, nodes that
wake, changes of the power cap. A later job starts now if it is expected to end by then, or if what
it takes is free beside the promised job then.
"""

from __future__ import annotations

import math
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from windtunnel.sim.reference.rules import Rule

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.reference.future import Future


class Easy(Rule):
    """EASY; see the module.

    Attributes:
        shortest_first: backfilled jobs are tried by (estimate, arrival).
        future: what is known to come.
        head: who was promised a start at the last decision; -1 = nobody.
        shadow: and for when, s; None = it was not asked.
    """

    shortest_first = False
    future: Future
    head: int = -1
    shadow: float | None = None

    def decide(self, now: float) -> None:
        """Start who may start."""
        waiting = self.start_in_order(now)
        self.head, self.shadow = waiting[0] if waiting else -1, None
        if len(waiting) > 1:
            self._backfill(waiting[0], waiting[1:], now)

    def _backfill(self, head: int, behind: list[int], now: float) -> None:
        state = self.state
        shadow, beside, left = self.reserve(head, now)
        self.shadow = shadow
        if self.shortest_first:
            behind = sorted(behind, key=lambda job: (state.estimate[job], job))
        for job in behind:
            where = state.fit(job)
            if where is None:
                continue
            if state.planned_stop(job, now) > shadow:
                draw = state.draw(job, where)
                free = state.opened(beside, job)
                if draw > left or not free.fits(where, state.demand[job]):
                    continue
                beside.take(where, state.demand[job])
                left -= draw
            self.start(job, now, where)

    def reserve(self, head: int, now: float) -> tuple[float, Any, int]:
        """Return the shadow time, and what is free and may be drawn then beside the head.

        With a preemptive policy, running jobs ranked below the head count as room at once.

        Args:
            head: the job that is promised a start.
            now: s.

        Returns:
            inf and what is free now where it is never known to fit.
        """
        state, floors = self.state, self.state.floors
        free, drawn = state.free.copy(), state.floor_sum
        at_once = self._below(head, now) if self.preemption is not None else []
        for job in at_once:
            free.give(state.running[job].where, state.demand[job])
            drawn -= floors.get(job, 0)
        steps = groupby(self.future.events(now, at_once), key=lambda event: event[0])
        for time, happens in chain([(now, ())] if at_once else [], steps):
            for _, kind, what in happens:
                if kind == "end":
                    free.give(state.running[what].where, state.demand[what])
                    drawn -= floors.get(what, 0)
                else:
                    self.future.apply(free, kind, what)
            spare = max(self.future.budget_at(self.future.cap_at(time)), 0) - drawn
            where: Where | None = state.search(head, free, time, spare)[0]
            if where is not None:
                free.take(where, state.demand[head])
                return time, free, spare - state.draw(head, where)
        return math.inf, state.free.copy(), state.spare

    def _below(self, head: int, now: float) -> list[int]:
        ranked = self.order.ranked([*self.state.running, head], now)
        return ranked[ranked.index(head) + 1 :]


class EasySjbf(Easy):
    """EASY with shortest-first backfilling: Tsafrir, Etsion, Feitelson, TPDS 2007."""

    shortest_first = True
