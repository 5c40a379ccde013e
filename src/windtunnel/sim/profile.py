"""`Profile`: what is expected to be free from now on, as a step function of time."""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cluster.free import FreeState, Where


class Profile:
    """Free states from a first instant on, each until the next one's time.

    Args:
        free: what is free from the first instant on; it becomes the profile's own.
        now: the first instant, s.
    """

    def __init__(self, free: FreeState, now: float = -math.inf) -> None:
        self.times: list[float] = [now]
        self.states: list[FreeState] = [free]

    def forget(self, now: float) -> None:
        """Drop what lies before ``now``."""
        first = bisect.bisect_right(self.times, now) - 1
        del self.times[:first], self.states[:first]
        self.times[0] = now

    def take(self, start: float, stop: float, where: Where, demand: Any) -> None:
        """Take GPUs from ``start`` until before ``stop``."""
        for index in self._span(start, stop):
            self.states[index].take(where, demand)

    def give(self, start: float, stop: float, where: Where, demand: Any) -> None:
        """Give back what `take` took."""
        for index in self._span(start, stop):
            self.states[index].give(where, demand)

    def give_from(self, start: float, where: Where, demand: Any) -> None:
        """Give back, from ``start`` on, what runs now."""
        for index in range(self._step(start), len(self.times)):
            self.states[index].give(where, demand)

    def change_from(self, start: float, change: Callable[[FreeState], None]) -> None:
        """Change every state from ``start`` on."""
        for index in range(self._step(start), len(self.times)):
            change(self.states[index])

    def earliest(
        self, length: float, place: Callable[[FreeState], Where | None]
    ) -> tuple[float, Where]:
        """Return the first instant at which room stays free for ``length`` seconds, and where.

        Args:
            length: s; for 0 the room must be there at the instant itself.
            place: where a job would go in a free state, None = it does not fit.
        """
        found = self.earliest_seen(length, place, lambda free: free)
        if found is None:
            raise AssertionError(length)  # the last state is the whole cluster
        return found

    def earliest_seen(
        self,
        length: float,
        place: Callable[[FreeState], Where | None],
        see: Callable[[FreeState], FreeState],
    ) -> tuple[float, Where] | None:
        """Return what `earliest` does, of what ``see`` shows of each state; None = never."""
        for first, start in enumerate(self.times):
            room = see(self.states[first])
            if place(room) is None:
                continue
            room = room.copy()
            for later in range(first + 1, len(self.times)):
                if self.times[later] >= start + length:
                    break
                room.meet(see(self.states[later]))
            where = place(room)
            if where is not None:
                return start, where
        return None

    def _span(self, start: float, stop: float) -> range:
        if stop <= start:
            return range(0)
        return range(self._step(start), self._step(stop))

    def _step(self, time: float) -> int:
        """Return the index of the step that begins at ``time``, made where there is none."""
        index = bisect.bisect_left(self.times, time)
        if index == len(self.times) or self.times[index] != time:
            if index == 0:
                return 0  # before the first instant: nothing to tell apart
            self.times.insert(index, time)
            self.states.insert(index, self.states[index - 1].copy())
        return index
