"""Backfilling: what is known of the time to come, and EASY.

EASY (Lifka, JSSPP 1995; Mu'alem and Feitelson, TPDS 2001): the first job that does not fit is
promised a start, until the next decision. The promise is the *shadow time*: the earliest at which
the job fits as far as is known. A later job starts now if it is expected to end by then, or if what
it takes is free beside the promised job then.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from windtunnel.sim.reference.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from windtunnel.cluster.free import Where
    from windtunnel.sim.power.sources import PowerSources

#: (when, what happens, to whom): ``end`` of a job, ``begin`` or ``over`` of a hold, ``wake`` of a
#: node, ``cap`` in W.
Event = tuple[float, str, Any]


class Backfilling(Rule):
    """What is known in advance: expected ends, planned holds, waking nodes, the power cap.

    Attributes:
        power: policies of power.
        held: where the head of the queue was found to fit last; None = it is never known to.
    """

    power: PowerSources
    held: Where | None = None

    def events(self, overdue: float, without: Collection[int] = ()) -> list[Event]:
        """Return what is expected from now on but for the power cap, in order of time.

        At one instant running jobs end first, in order of start; then planned holds begin or end,
        then nodes wake that do, or could be woken now.

        ``overdue``: when those end that run on past their expected end, s.
        """
        state = self.state
        ends = [
            (stay.expected if stay.expected > state.now else overdue, "end", job)
            for job, stay in state.running.items()
            if job not in without
        ]
        holds = [
            (time, "begin" if begins else "over", state.holds[index])
            for time, begins, index in state.planned
            if time > state.happened
        ]
        wakes = [(time, "wake", node) for time, node in self.power.wakes_after(state.now)]
        return sorted([*ends, *holds, *wakes], key=itemgetter(0))

    def apply(self, free: Any, kind: str, what: Any) -> int:
        """Let an event happen in a free state; return what is drawn less then, nanowatts."""
        if kind == "end":
            free.give(self.state.running[what].where, self.state.demand[what])
            return self.state.floors.get(what, 0)
        if kind == "wake":
            free.restore(what)
        for place, units in what.places if kind in ("begin", "over") else ():
            change = free.withhold if kind == "begin" else free.restore
            change(place, what.group, units)
        return 0

    def budget_at(self, time: float) -> int:
        """Return what jobs may draw at a time, nanowatts."""
        return max(self.power.budget_at(self.power.cap_at(time)), 0)

    def reserve(self, head: int) -> tuple[float, Any, int]:
        """Return the shadow time, and what is free and may be drawn then beside the head.

        It is inf, and what is free now, where the head is never known to fit. Who of those that may
        give way need not goes on beside the head.
        """
        with self.giving_room(head) as room:
            found = self.shadow_without(room, head)
            if room and self.held is not None:
                found, _ = self.settled(head, room, found)
            return found

    @contextmanager
    def giving_room(self, head: int) -> Iterator[list[int]]:
        """Yield the running jobs that count as free at once, of whom the quota is free meanwhile.

        With a preemptive policy those ranked below the head, as far as quotas let them give way.
        """
        below = self.below(head) if self.walk is not None else []
        if self.state.quotas is None:
            yield below
            return
        with self.state.quotas.without_below(head, below) as gone:
            yield gone

    def shadow_without(self, at_once: list[int], head: int) -> tuple[float, Any, int]:
        """Return what `reserve` does, with those who count as free ``at_once``."""
        state = self.state
        free, drawn = state.free.copy(), state.floor_sum()
        for job in at_once:
            drawn -= self.apply(free, "end", job)
        events = self.events(state.now, at_once)
        last = max((time for time, kind, _ in events if kind == "end"), default=state.now)
        events += [(time, "cap", watts) for time, watts in self.power.caps_after(state.now, last)]
        steps = groupby(sorted(events, key=itemgetter(0)), key=itemgetter(0))
        for time, happens in chain([(state.now, ())] if at_once else [], steps):
            for _, kind, what in happens:
                drawn -= self.apply(free, kind, what)
            spare = self.budget_at(time) - drawn
            where: Where | None = state.search(head, free, time, spare)[0]
            if where is not None:
                free.take(where, state.demand[head])
                self.held = where
                return time, free, spare - state.draw(head, where)
        self.held = None
        return math.inf, state.free.copy(), state.spare

    def settled(
        self, head: int, room: list[int], then: tuple[float, Any, int]
    ) -> tuple[tuple[float, Any, int], tuple[int, ...]]:
        """Return ``then`` with those back who need not give way for the head, and who has to.

        As preemption will choose: the highest ranks stay, as far as the head has a place beside
        them, and under quotas its own queue's before those of others.

        Args:
            head: it has a place, ``held``, once all of them are gone.
            room: running jobs that may give way.
            then: the shadow, and what is free and may be drawn then beside the head alone.
        """
        state, (shadow, free, spare) = self.state, then
        where, quotas = self.held or [], state.quotas
        free.give(where, state.demand[head])
        spare += state.draw(head, where)
        kept, giving = list[int](), list[int]()
        order = self.ranked(job for job in room if state.running[job].expected > shadow)
        if quotas is not None:
            order.sort(key=lambda job: quotas.queue[job] != quotas.queue[head])
        for job in order:
            free.take(state.running[job].where, state.demand[job])
            if quotas is not None:
                quotas.put(job)
            draw = state.floors.get(job, 0)
            found, _ = state.search(head, free, shadow, spare - draw)
            if found is not None:
                where, spare = found, spare - draw
                kept.append(job)
                continue
            giving.append(job)
            free.give(state.running[job].where, state.demand[job])
            if quotas is not None:
                quotas.lift(job)
        if quotas is not None:
            for job in kept:
                quotas.lift(job)
        free.take(where, state.demand[head])
        self.held = where
        return (shadow, free, spare - state.draw(head, where)), tuple(giving)


class Easy(Backfilling):
    """EASY; see the module.

    Attributes:
        shortest_first: backfilled jobs are tried by (estimate, arrival).
        head: who was promised a start at the last decision; -1 = nobody.
        shadow: and for when, s; None = it was not asked.
    """

    shortest_first = False
    head: int = -1
    shadow: float | None = None

    def decide(self) -> None:
        """Start who may start; where that takes the head's quota, who is next holds its place."""
        waiting = self.start_in_order()
        while self._plan(waiting):
            waiting = self.start_those_that_fit()

    def planned_starts(self) -> list[tuple[float, list[int]]]:
        """Return when and where the first in the queue starts; see `Rule.planned_starts`."""
        if self.head < 0:
            return []
        start = self.reserve(self.head)[0]
        return [] if self.held is None else [(start, [node for node, _ in self.held])]

    def _plan(self, waiting: list[int]) -> bool:
        """Reserve for the first, and backfill; return whether that took the quota it had."""
        self.head, self.shadow = waiting[0] if waiting else -1, None
        return len(waiting) > 1 and self._backfill(waiting[0], waiting[1:])

    def _backfill(self, head: int, behind: list[int]) -> bool:
        state = self.state
        shadow, beside, left = self.reserve(head)
        self.shadow = shadow
        has_quota = not state.is_over(head)
        if self.shortest_first:
            behind = sorted(behind, key=lambda job: (state.estimate[job], job))
        for job in behind:
            where = state.fit(job)
            if where is None:
                if state.blocks and state.is_over(job):
                    return False
                continue
            if state.planned_stop(job, state.now) > shadow:
                draw = state.draw(job, where)
                free = state.opened(beside, job)
                is_free = free.fits(where, state.demand[job])
                if draw > left or not (is_free or self._makes_way(head, job, where, beside)):
                    continue
                beside.take(where, state.demand[job])
                left -= draw
            self.start(job, where)
            if has_quota and state.is_over(head):
                return True
        return False

    def _makes_way(self, head: int, job: int, where: Where, beside: Any) -> bool:
        """Let the head have other devices of its nodes, if a job can have its place then.

        Its promise is of the nodes.
        """
        state, demand = self.state, self.state.demand[head]
        if not state.problem.devices or self.held is None:
            return False
        free = beside.copy()
        free.give(self.held, demand)
        if not state.opened(free, job).fits(where, state.demand[job]):
            return False
        free.take(where, state.demand[job])
        found = state.put_again(head, free, self.held)
        if found is None:
            return False
        beside.give(self.held, demand)
        beside.take(found, demand)
        self.held = found
        return True


class EasySjbf(Easy):
    """EASY with shortest-first backfilling: Tsafrir, Etsion, Feitelson, TPDS 2007."""

    shortest_first = True
