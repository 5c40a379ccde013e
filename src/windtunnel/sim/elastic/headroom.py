"""`Headroom`: what admission leaves for a plan: the quota and the power that no job in it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.free import EVERY_NODE

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.power.watts import Watts
    from windtunnel.sim.quota_books import QuotaBooks


class Headroom:
    """Quotas and power, as far as jobs that are planned leave them.

    Args:
        books: who uses how much quota, nobody yet; None = quotas do not limit the run.
        watts: what jobs draw; None = no cap limits the run.
        spare: nanowatts that jobs may add to the draw.
    """

    def __init__(self, books: QuotaBooks | None, watts: Watts | None, spare: int) -> None:
        self.books, self.watts, self.spare = books, watts, spare
        self.floors: dict[int, int] = {}

    def nodes(self, job: int, gpus: int) -> int:
        """Return the nodes on which a job has the quota for so many GPUs, as a bitset."""
        return EVERY_NODE if self.books is None else self.books.nodes(job, gpus)

    def admits(self, job: int, where: Where) -> bool:
        """Return whether a job may be somewhere, as far as quotas and power go."""
        if self.books is not None and not self.books.allows_on(job, where, None):
            return False
        return self.watts is None or self.watts.floor(job, where) <= self.spare

    def admits_size(self, job: int, gpus: int) -> bool:
        """Return whether a job may have so many GPUs, on whatever nodes."""
        if not self.nodes(job, gpus):
            return False
        return self.watts is None or self.watts.least_of(job, float(gpus)) <= self.spare

    def begin(self, job: int, where: Where) -> None:
        """Plan a job."""
        if self.books is not None:
            self.books.begin(job, where, None)
        if self.watts is not None:
            self.floors[job] = self.watts.floor(job, where)
            self.spare -= self.floors[job]

    def end(self, job: int) -> None:
        """Plan a job no longer."""
        if self.books is not None:
            self.books.end(job)
        self.spare += self.floors.pop(job, 0)

    def copy(self) -> Headroom:
        """Return an independent copy."""
        twin = Headroom(None if self.books is None else self.books.copy(), self.watts, self.spare)
        twin.floors = self.floors.copy()
        return twin

    def meet(self, other: Headroom) -> None:
        """Keep only what ``other`` leaves, too."""
        self.spare = min(self.spare, other.spare)
        if self.books is not None and other.books is not None:
            self.books.meet(other.books)
