"""waitForPodsReady: who is admitted and finds no nodes in time goes, and comes back later.

Source: Kueue's Configuration and workload controller (Apache-2.0), restated. Here pods are ready
as soon as they have nodes, so what times out is what waits for nodes on a flavor without topology.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from windtunnel.errors import SpecError
from windtunnel.policies.kueue.converting import converted
from windtunnel.policies.kueue.manifest_kinds import Written
from windtunnel.policies.kueue.quantities import go_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.kueue.quota_tree import QuotaNode
    from windtunnel.policies.kueue.waiting import Pending
    from windtunnel.policies.kueue.yaml_files import Document


class PodsReady(msgspec.Struct, frozen=True):
    """The rules.

    Attributes:
        timeout: after so long without ready pods a workload is evicted, s.
        block: nobody else is admitted while somebody's pods are not ready.
        by_eviction: who is evicted for it waits as if it had come then, not when it was created.
        base, most: the first evicted wait before they may come back, doubled each time, and its
            limit, s.
        limit: so often it comes back, then no more; None = always.
    """

    timeout: float = 300.0
    block: bool = False
    by_eviction: bool = True
    base: float = 60.0
    most: float = 3600.0
    limit: int | None = None


class _Requeuing(Written, frozen=True):
    timestamp: Literal["Eviction", "Creation"] | None = None
    backoff_limit_count: int | None = None
    backoff_base_seconds: int | None = None
    backoff_max_seconds: int | None = None


class _Written(Written, frozen=True):
    enable: bool = True
    timeout: str | None = None
    block_admission: bool | None = None
    recovery_timeout: str | None = None
    requeuing_strategy: _Requeuing | None = None


def pods_ready_of(given: Any, document: Document) -> PodsReady | None:
    """Return the rules that a Configuration's ``waitForPodsReady`` states; None = it is off.

    Raises:
        SpecError: a field is wrong.
    """
    where = "$.waitForPodsReady"
    written: _Written = converted(given, _Written, document, where)
    if not written.enable:
        return None
    again = written.requeuing_strategy or _Requeuing()
    usual = PodsReady()
    numbers = (again.backoff_limit_count, again.backoff_base_seconds, again.backoff_max_seconds)
    if any(number is not None and number < 0 for number in numbers):
        at = f"{document.where}, {where}.requeuingStrategy"
        raise SpecError(at, "found a negative number; expected 0 or more.")
    timeout = usual.timeout
    if written.timeout is not None:
        timeout = go_duration(written.timeout, f"{document.where}, {where}.timeout")
    base, most = again.backoff_base_seconds, again.backoff_max_seconds
    return PodsReady(
        timeout,
        bool(written.block_admission),
        again.timestamp != "Creation",
        usual.base if base is None else float(base),
        usual.most if most is None else float(most),
        again.backoff_limit_count,
    )


class Unready:
    """Who is admitted without ready pods, and who was evicted for it and is to come back.

    Args:
        rules: the rules.

    Attributes:
        out: how many came back too often and come no more.
        evictions: how many time-outs there were.
    """

    def __init__(self, rules: PodsReady) -> None:
        self.rules = rules
        self._until: dict[int, float] = {}
        self._away: dict[int, tuple[float, Pending, QuotaNode]] = {}
        self._count: dict[int, int] = {}
        self.out = 0
        self.evictions = 0

    def admitted(self, job: int, now: float) -> float:
        """Note that a job is admitted and has no nodes; return when its time is out, s."""
        until = self._until[job] = now + self.rules.timeout
        return until

    def gone(self, job: int) -> None:
        """Note that a job has its nodes, or was preempted."""
        self._until.pop(job, None)

    def overdue(self, now: float) -> list[int]:
        """Return whose time is out, in the order of admission."""
        return [job for job, until in self._until.items() if until <= now]

    def evict(self, job: int, waits: Pending, node: QuotaNode, now: float) -> float | None:
        """Send a job away; return when it comes back, s; None = never."""
        self.gone(job)
        self.evictions += 1
        count = self._count[job] = self._count.get(job, 0) + 1
        if self.rules.limit is not None and count > self.rules.limit:
            self.out += 1
            return None
        if self.rules.by_eviction:
            waits.created = waits.workload.created = now
        back = now + min(self.rules.base * 2.0 ** min(count - 1, 60), self.rules.most)
        self._away[job] = back, waits, node
        return back

    def back(self, now: float) -> Iterator[tuple[Pending, QuotaNode]]:
        """Yield who comes back by now, in the order of their times."""
        for job, (at, waits, node) in sorted(self._away.items(), key=lambda of: (of[1][0], of[0])):
            if at <= now:
                del self._away[job]
                yield waits, node
