"""`Future`: what is known in advance: expected ends, planned holds, waking nodes, the power cap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from windtunnel.sim.power.sources import PowerSources
    from windtunnel.sim.reference.state import State

#: (when, what happens, to whom): ``end`` of a job, ``begin`` or ``over`` of a hold, ``wake`` of a
#: node, ``cap`` in W.
Event = tuple[float, str, Any]


class Future:
    """What backfilling knows of the time to come.

    Args:
        state: the run.
        power: policies of power.
    """

    def __init__(self, state: State, power: PowerSources) -> None:
        self.state, self.power = state, power
        self.caps_after, self.cap_at = power.caps_after, power.cap_at
        self.budget_at = power.budget_at

    def events(self, now: float, without: Collection[int] = ()) -> list[Event]:
        """Return what is expected from now on, in order of time.

        Args:
            now: s; a job past its expected end is expected to end now.
            without: running jobs that do not count.
        """
        ends = self.ends(now, now, without)
        last = ends[-1][0] if ends else now
        caps = [(time, "cap", watts) for time, watts in self.caps_after(now, last)]
        return sorted([*ends, *self.changes_of_room(now), *caps], key=lambda event: event[0])

    def ends(self, now: float, overdue: float, without: Collection[int] = ()) -> list[Event]:
        """Return the expected ends of running jobs, in order.

        Args:
            now: s.
            overdue: when jobs past their expected end are expected to end, s.
            without: running jobs that do not count.
        """
        running = self.state.running.items()
        found = sorted(
            (stay.expected if stay.expected > now else overdue, stay.number, job)
            for job, stay in running
            if job not in without
        )
        return [(time, "end", job) for time, _, job in found]

    def changes_of_room(self, now: float) -> list[Event]:
        """Return planned holds to come, and nodes that wake or could be woken at ``now`` (s)."""
        holds = [
            (time, "begin" if begins else "over", self.state.hold(index))
            for time, begins, index in self.state.planned
            if time > self.state.happened
        ]
        waking = [(time, "wake", node) for time, node in self.power.wakes_after(now)]
        return sorted([*holds, *waking], key=lambda event: event[0])

    def apply(self, free: Any, kind: str, what: Any) -> None:
        """Let a hold begin or be over in a free state, or a node wake; a cap changes no room."""
        if kind == "wake":
            free.restore(what)
        for place, units in what.places if kind in ("begin", "over") else ():
            change = free.withhold if kind == "begin" else free.restore
            change(place, what.group, units)
