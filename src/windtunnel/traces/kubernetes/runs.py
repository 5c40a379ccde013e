"""The runs of a Kueue workload, rebuilt from the conditions of all its versions.

An object keeps of each condition only the last transition: its earlier runs are in it no longer.
A watch log has every state, and so every admission and every eviction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The order of what happens at one instant to a workload that does not run.
_ORDER = ("Admitted", "PodsReady", "Evicted", "Finished")
#: Conditions that `rebuild` reads.
READ = frozenset(_ORDER)
#: Reason of a run behind which another admission follows without an eviction between them.
NOT_SEEN = "eviction not in the file"


@dataclass(frozen=True)
class Transition:
    """A condition that became true.

    Attributes:
        time: when, UTC seconds since 1970.
        type: Admitted, PodsReady, Evicted or Finished.
        reason: the condition's reason.
    """

    time: float
    type: str
    reason: str


@dataclass
class Run:
    """One stay on GPUs.

    Attributes:
        admitted: when quota was given and all checks passed; None where only its end is known.
        ready: when all pods were ready; None = not told.
        end: when it was evicted or finished; None = it still runs, or nobody saw it end.
        reason: why it ended; empty = it still runs.
        evicted: it ended by an eviction.
    """

    admitted: float | None
    ready: float | None = None
    end: float | None = None
    reason: str = ""
    evicted: bool = False

    @property
    def start(self) -> float | None:
        """When all pods were ready, else when it was admitted."""
        return self.admitted if self.ready is None else self.ready

    @property
    def length(self) -> float | None:
        """Seconds from start to end, None where one of them is not known."""
        return None if self.end is None or self.start is None else self.end - self.start


def rebuild(transitions: Iterable[Transition]) -> list[Run]:
    """Return the runs that transitions tell, in order of time.

    ``PodsReady`` counts where it follows the admission; with the reason ``Recovered`` it tells
    when a pod came back, not when the run began. An eviction without an admission before it is a
    run of which only the end is known.

    Args:
        transitions: of all versions, in any order, repeated or not.
    """
    reasons = {(t.time, t.type): t.reason for t in transitions if t.type in READ}
    runs: list[Run] = []
    for time in sorted({time for time, _ in reasons}):
        kinds = [kind for kind in _ORDER if (time, kind) in reasons]
        if "Evicted" in kinds and _is_open(runs):  # a run ends before the next one begins
            kinds.sort(key=lambda kind: kind != "Evicted")
        for kind in kinds:
            _take(runs, kind, time, reasons[time, kind])
    return runs


def _is_open(runs: list[Run]) -> bool:
    return bool(runs) and not runs[-1].reason


def _take(runs: list[Run], kind: str, time: float, reason: str) -> None:
    """Let one transition happen."""
    if kind == "Admitted":
        if _is_open(runs):
            runs[-1].reason, runs[-1].evicted = NOT_SEEN, True
        runs.append(Run(time))
    elif kind == "PodsReady":
        if _is_open(runs) and runs[-1].ready is None and reason != "Recovered":
            runs[-1].ready = time
    elif _is_open(runs):
        runs[-1].end, runs[-1].reason = time, reason or kind
        runs[-1].evicted = kind == "Evicted"
    elif kind == "Evicted":
        runs.append(Run(None, end=time, reason=reason or kind, evicted=True))
