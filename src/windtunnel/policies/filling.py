"""Filling: who may take GPUs that are free between two decisions of a policy in rounds.

``true``: arrivals, jobs that came since the last round and have not run yet. Whoever has run and
was stopped, by a failure, a drain or the policy itself, waits for the next round; so does whoever
got nothing at the last one. ``false``: nobody. ``all``: whoever waits. Filling stops and moves
nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.sim.jobs import JobView

ALL, ARRIVALS, NOBODY = "all", "true", "false"
#: All of them.
FILLS: tuple[str, ...] = (ALL, ARRIVALS, NOBODY)


def checked_fill(where: str, given: str | bool, known: Sequence[str] = FILLS) -> str:  # noqa: FBT001 - Python's own words for two of them
    """Return who may fill, as a word; empty = nothing was asked for.

    Args:
        where: the policy, for the message.
        given: the word, or a truth value.
        known: words that the policy takes.

    Raises:
        SpecError: it is none of them.
    """
    word = str(given).lower() if isinstance(given, bool) else given
    if word and word not in known:
        raise SpecError.unknown(f"{where}: fill", str(word), known)
    return word


class Arrivals:
    """Jobs that came since the last round, and have not run yet."""

    def __init__(self) -> None:
        self._came: set[int] = set()
        self._new: dict[int, JobView] = {}

    def note(self, queue: Any) -> None:
        """Note who came, at every decision; who comes again has run."""
        for job in queue.arrived:
            if job.number not in self._came:
                self._came.add(job.number)
                self._new[job.number] = job

    def waiting(self, queue: Any) -> list[JobView]:
        """Return those who still wait, by submission."""
        return [job for _, job in sorted(self._new.items()) if job in queue]

    def start(self, job: JobView) -> None:
        """Note that one of them was started."""
        del self._new[job.number]

    def begin_round(self) -> None:
        """Note that a round was decided on: all of them are jobs like others now."""
        self._new.clear()
