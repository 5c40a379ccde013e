"""Who is chosen at an instant, for policies that give an order (tiers 1 and 2).

Every scheduler here offers ``add(job, now)`` for an arrival, ``finished(job)``, ``decide(now)``
and ``rekey(now)`` for rounds. The order is (key, arrival number); arrival numbers are by
(submit_time, input order).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.sim.ledger import Ledger

    #: (job, now) -> key, lower first.
    Key = Callable[[int, float], float]


class StrictQueue:
    """Start jobs in order; stop at the first that does not fit."""

    def __init__(self, ledger: Ledger, key: Key) -> None:
        self.ledger = ledger
        self.key = key
        self.waiting: list[tuple[float, int]] = []

    def add(self, job: int, now: float) -> None:
        """Queue a job that arrives."""
        heapq.heappush(self.waiting, (self.key(job, now), job))

    def finished(self, job: int) -> None:
        """Note a completion."""

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that an outage stopped."""
        self.finished(job)
        self.add(job, now)

    def decide(self, now: float) -> None:
        """Start what may start."""
        waiting, ledger = self.waiting, self.ledger
        fit = ledger.fit
        while waiting:
            job = waiting[0][1]
            where = fit(job)
            if where is None:
                return
            heapq.heappop(waiting)
            ledger.start(job, now, where)

    def rekey(self, now: float) -> None:
        """Ask every waiting job's key again."""
        self.waiting = [(self.key(job, now), job) for _, job in self.waiting]
        heapq.heapify(self.waiting)

    def __len__(self) -> int:
        return len(self.waiting)


class SkipQueue:
    """Try every waiting job in order, going on past those that do not fit.

    Jobs with the same demand are interchangeable to the placement, and starting a job never makes
    room. So each class is tried at its head only, and a class whose head does not fit is done with
    for this instant.
    """

    def __init__(self, ledger: Ledger, key: Key) -> None:
        self.ledger = ledger
        self.key = key
        self.class_of = ledger.class_of
        self.waiting: list[list[tuple[float, int]]] = [[] for _ in range(ledger.num_classes)]

    def add(self, job: int, now: float) -> None:
        """Queue a job that arrives."""
        heapq.heappush(self.waiting[self.class_of[job]], (self.key(job, now), job))

    def finished(self, job: int) -> None:
        """Note a completion."""

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that an outage stopped."""
        self.finished(job)
        self.add(job, now)

    def decide(self, now: float) -> None:
        """Start what may start."""
        ledger = self.ledger
        heads = [queue[0] for queue in self.waiting if queue]
        heapq.heapify(heads)
        while heads:
            job = heapq.heappop(heads)[1]
            where = ledger.fit(job)
            if where is None:
                continue
            queue = self.waiting[self.class_of[job]]
            heapq.heappop(queue)
            ledger.start(job, now, where)
            if queue:
                heapq.heappush(heads, queue[0])

    def rekey(self, now: float) -> None:
        """Ask every waiting job's key again."""
        for queue in self.waiting:
            queue[:] = [(self.key(job, now), job) for _, job in queue]
            heapq.heapify(queue)

    def __len__(self) -> int:
        return sum(map(len, self.waiting))


class QuotaWalk:
    """Preemption: rank all active jobs, give out the cluster's GPUs in that order as a quota.

    A job within what is left of the quota is chosen; past one that is not, ``skip`` goes on and
    ``strict`` stops. Running jobs not chosen are preempted, chosen running jobs stay where they
    are, chosen waiting jobs are placed in rank order; one that fragmentation keeps out waits, its
    quota unused this instant.

    Args:
        ledger: the run.
        key: (job, now) -> key; asked when a job arrives and at rounds.
        strict: stop at the first job beyond the quota.
        by_remaining: the key is the time left to run, which falls while a job runs.
        by_service: that time counts once for each GPU of the job.
    """

    def __init__(
        self, ledger: Ledger, key: Key, *, strict: bool, by_remaining: bool, by_service: bool
    ) -> None:
        self.ledger = ledger
        self.key = key
        self.strict = strict
        self.by_remaining = by_remaining
        problem = ledger.problem
        self.weight = problem.jobs.num_gpus[problem.rows].tolist() if by_service else None
        self.waiting: set[int] = set()
        self.keys: dict[int, float] = {}

    def add(self, job: int, now: float) -> None:
        """Queue a job that arrives."""
        self.waiting.add(job)
        if not self.by_remaining:
            self.keys[job] = self.key(job, now)

    def finished(self, job: int) -> None:
        """Forget a job that completed."""
        self.keys.pop(job, None)

    def interrupted(self, job: int, now: float) -> None:
        """Queue a running job again that an outage stopped."""
        self.finished(job)
        self.add(job, now)

    def decide(self, now: float) -> None:
        """Preempt and start what the walk says."""
        if not self.waiting:
            return  # everyone active runs, and nobody gives way to nobody
        ledger = self.ledger
        ranked = sorted((self._current_key(job, now), job) for job in self._active())
        quota, reserved = ledger.quota()
        chosen: set[int] = set()
        to_start: list[int] = []
        for _, job in ranked:
            gpus = ledger.beyond_reserved(job, reserved)
            if gpus <= quota:
                quota -= gpus
                ledger.draw(job, reserved)
                chosen.add(job)
                if job in self.waiting:
                    to_start.append(job)
            elif self.strict:
                break
        for job in [job for job in ledger.running if job not in chosen]:
            ledger.preempt(job, now)
            self.waiting.add(job)
        for job in to_start:
            where = ledger.fit(job)
            if where is not None:
                ledger.start(job, now, where)
                self.waiting.remove(job)

    def rekey(self, now: float) -> None:
        """Ask every active job's key again."""
        self.keys = {job: self.key(job, now) for job in self.keys}

    def _active(self) -> list[int]:
        return [*self.ledger.running, *self.waiting]

    def _current_key(self, job: int, now: float) -> float:
        if not self.by_remaining:
            return self.keys[job]
        ledger = self.ledger
        if job in ledger.running:
            left = ledger.time_left(job, now)
        else:
            left = ledger.remaining[job] + ledger.resume_cost(job)
        return left if self.weight is None else left * self.weight[job]

    def __len__(self) -> int:
        return len(self.waiting)
