"""`Headroom`: what admission leaves for a plan: the quota and the power that no job in it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.free import EVERY_NODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.free import Where
    from windtunnel.sim.power.watts import Watts
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.quota_books import QuotaBooks


class Headroom:
    """Quotas and power, as far as jobs that are planned leave them.

    ``books``: in which nobody runs yet; ``spare``: nanowatts that jobs may add to the draw.
    """

    def __init__(self, books: QuotaBooks | None, watts: Watts | None, spare: int) -> None:
        self.books, self.watts, self.spare = books, watts, spare
        self.floors: dict[int, int] = {}
        #: Of jobs that share GPUs the other one, and what that would draw alone, nanowatts.
        self.mates: dict[int, tuple[int, int]] = {}
        self.running: set[int] = set()

    def tried(self, job: int, gpus: float, allowed: int) -> Iterator[int]:
        """Yield the nodes on which a job is to be placed, as bitsets, one set after the other.

        Those on which it has the quota for so many GPUs, one GPU type after the other where quotas
        tell them apart; each time then only those on which there is power for all of them.
        """
        for open_to in [EVERY_NODE] if self.books is None else self.books.nodes_in_turn(job, gpus):
            nodes = allowed & open_to
            if nodes:
                yield nodes
                if self.watts is not None:
                    yield nodes & self.watts.cheap_nodes(job, gpus, self.spare)

    def _with_quota(self, job: int, gpus: float) -> int:
        return EVERY_NODE if self.books is None else self.books.nodes(job, gpus)

    def admits(self, job: int, where: Where) -> bool:
        """Return whether a job may be somewhere, as far as quotas and power go."""
        return self.has_quota(job, 0, where) and self.has_power(job, 0, where)

    def admits_size(self, job: int, gpus: int) -> bool:
        """Return whether a job may have so many GPUs, on whatever nodes."""
        return self.has_quota(job, gpus, None) and self.has_power(job, gpus, None)

    def has_quota(self, job: int, gpus: float, where: Where | None) -> bool:
        """Return whether quotas let a job be somewhere; None = have so many GPUs anywhere."""
        if self.books is None:
            return True
        if where is not None:
            return self.books.allows_on(job, where)
        if not self.books.resizes:
            return not self.books.is_over(job)
        return self._hold(self._open_to(job, gpus), gpus, on_one_type=self.books.quotas.by_type)

    def has_power(self, job: int, gpus: float, where: Where | None) -> bool:
        """Return whether there is power for a job somewhere; None = where it has the quota."""
        if self.watts is None:
            return True
        if where is not None:
            return self.watts.floor(job, where) <= self.spare
        cheap = self._open_to(job, gpus) & self.watts.cheap_nodes(job, gpus, self.spare)
        by_quota = self.books is not None and self.books.quotas.by_type
        return self._hold(cheap, gpus, on_one_type=by_quota)

    @property
    def _problem(self) -> Problem:
        known = self.books or self.watts
        assert known is not None  # noqa: S101 - who asks has seen to it
        return known.problem

    def _open_to(self, job: int, gpus: float) -> int:
        """Return the nodes of GPU types that a job accepts and has the quota for, as a bitset."""
        allowed: int = self._problem.demand(job).allowed
        return allowed & self._with_quota(job, gpus)

    def _hold(self, nodes: int, gpus: float, *, on_one_type: bool) -> bool:
        """Return whether some nodes have so many GPUs at all, those of one type if so wanted."""
        room: dict[str | None, int] = {}
        for node, size in enumerate(self._problem.sizes.tolist()):
            if nodes >> node & 1:
                kind = self._problem.types[node] if on_one_type else None
                room[kind] = room.get(kind, 0) + size
        return max(room.values(), default=0) >= gpus * self._problem.units

    def begin(self, job: int, where: Where) -> None:
        """Plan a job."""
        self.running.add(job)
        if self.books is not None:
            self.books.begin(job, where)
        if self.watts is not None:
            self.floors[job] = self.watts.floor(job, where)
            self.spare -= self.floors[job]

    def end(self, job: int) -> None:
        """Plan a job no longer."""
        self.running.discard(job)
        if self.books is not None:
            self.books.end(job)
        self.spare += self.floors.pop(job, 0)
        if job in self.mates:
            mate, alone = self.mates.pop(job)
            del self.mates[mate]
            self.spare += self.floors[mate] - alone
            self.floors[mate] = alone

    def copy(self) -> Headroom:
        """Return an independent copy."""
        twin = Headroom(None if self.books is None else self.books.copy(), self.watts, self.spare)
        twin.floors, twin.mates = self.floors.copy(), self.mates.copy()
        twin.running = self.running.copy()
        return twin

    def meet(self, other: Headroom) -> None:
        """Keep only what ``other`` leaves, too."""
        self.spare = min(self.spare, other.spare)
        if self.books is not None and other.books is not None:
            self.books.meet(other.books)
