"""Who waits: one head a queue, and whoever is set aside until something changes.

A workload that cannot start is set aside with all of its queue that have the same shape; they come
back when something of their tree of cohorts ends.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windtunnel.policies.kueue.objects import Workload
    from windtunnel.policies.kueue.quota_tree import QuotaNode


class Pending(msgspec.Struct, eq=False):
    """A workload that waits.

    Attributes:
        workload: the workload.
        shape: what it asks for; two of one shape in one queue fare alike.
        created: when it came, s; it keeps this when it is evicted.
        tried: where the search for flavors goes on.
    """

    workload: Workload
    shape: Any
    created: float
    tried: dict[tuple[int, str], int] = {}
    seen: Any = None

    @property
    def rank(self) -> tuple[int, float, str]:
        """The order in a queue: priority, age, uid."""
        return -self.workload.priority, self.created, self.workload.uid or self.workload.key


def pending(workload: Workload, *, by_local_queue: bool = False) -> Pending:
    """Return a workload as one that waits.

    Args:
        workload: the workload.
        by_local_queue: those of several local queues are kept apart, as their use differs.
    """
    door = workload.queue if by_local_queue else ""
    shape = (workload.priority, msgspec.json.encode(workload.pod_sets), door)
    created = float("-inf") if workload.created is None else workload.created
    return Pending(workload, shape, created, {})


class Line:
    """The workloads of one queue, active or set aside, by shape.

    Args:
        node: the queue.
        load: the use of a workload's local queue, the lightest first; None = it does not count.

    Attributes:
        sticky: who waits for evictions and goes first until it is admitted.
    """

    def __init__(self, node: QuotaNode, load: Callable[[Pending], float] | None = None) -> None:
        self.node = node
        self.load = load
        self.strict = node.asks.strategy == "StrictFIFO"
        self.sticky: Pending | None = None
        self._active: dict[Any, list[tuple[tuple[int, float, str], int, Pending]]] = {}
        self._aside: dict[Any, list[tuple[tuple[int, float, str], int, Pending]]] = {}
        self._count = 0

    def push(self, pending: Pending) -> None:
        """Let a workload wait among the active."""
        self._push(self._active, pending)

    def put_aside(self, pending: Pending) -> None:
        """Set a workload aside, and all active ones of its shape with it."""
        self._push(self._aside, pending)
        _merge(self._aside, pending.shape, self._active.pop(pending.shape, []))

    def wake(self) -> bool:
        """Make all active that were set aside; return whether there were any."""
        aside, self._aside = self._aside, {}
        for shape, heap in aside.items():
            _merge(self._active, shape, heap)
        return bool(aside)

    def _push(self, heaps: dict[Any, list[Any]], pending: Pending) -> None:
        """Add to the heap of its shape."""
        self._count += 1
        entry = (pending.rank, self._count, pending)
        heapq.heappush(heaps.setdefault(pending.shape, []), entry)

    def head(self) -> Pending | None:
        """Return who is first, None if nobody is active."""
        if self.sticky is not None and not self.strict and self._is_active(self.sticky):
            return self.sticky
        if not self._active:
            return None
        tops = [heap[0] for heap in self._active.values()]
        if self.load is None:
            return min(tops)[2]
        load = self.load
        return min(tops, key=lambda entry: (load(entry[2]), entry[:2]))[2]

    def _is_active(self, pending: Pending) -> bool:
        """Return whether a workload waits among the active."""
        return any(entry[2] is pending for entry in self._active.get(pending.shape, ()))

    def take(self, pending: Pending) -> None:
        """Take an active workload out of the line."""
        heap = self._active[pending.shape]
        if heap[0][2] is pending:
            heapq.heappop(heap)
        else:
            heap[:] = [entry for entry in heap if entry[2] is not pending]
            heapq.heapify(heap)
        if not heap:
            del self._active[pending.shape]

    @property
    def num_active(self) -> int:
        """How many are tried again."""
        return sum(map(len, self._active.values()))

    def active(self) -> Iterator[Pending]:
        """Yield who is tried again."""
        for heap in self._active.values():
            yield from (entry[2] for entry in heap)

    def aside(self) -> Iterator[Pending]:
        """Yield who is set aside."""
        for heap in self._aside.values():
            yield from (entry[2] for entry in heap)


def _merge(heaps: dict[Any, list[Any]], shape: Any, more: list[Any]) -> None:
    """Add a heap to that of its shape, the smaller to the larger."""
    there = heaps.get(shape)
    if not there:
        if more:
            heaps[shape] = more
        return
    small, large = sorted((there, more), key=len)
    for entry in small:
        heapq.heappush(large, entry)
    heaps[shape] = large
