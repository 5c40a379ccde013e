"""`Scheduled`: jobs run when and where a schedule says, and on whatever else a run has."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.contract import Policy, Preempt, Start, Wake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem


@dataclass(frozen=True)
class Stay:
    """A time on some GPUs.

    Attributes:
        begin, end: s since the trace's epoch.
        gpus: their numbers in the cluster, counted through its nodes; empty = wherever it fits.
    """

    begin: float
    end: float
    gpus: tuple[int, ...] = ()


class Scheduled(Policy):
    """Starts and stops jobs as a schedule says.

    A job that could not have the place of a stay, as a node had failed, waits until it is free
    again or the next stay begins. After its last stay it is not stopped: what it lost it makes up
    for where it was last.

    Args:
        stays: of each job by its id, one after the other.
    """

    name = "replay"

    def __init__(self, stays: Mapping[str, Sequence[Stay]]) -> None:
        self._stays = stays
        self._times = sorted({t for of in stays.values() for s in of for t in (s.begin, s.end)})

    def for_run(self, problem: Problem) -> Scheduled:
        """Return a copy that knows the run's nodes and jobs."""
        twin = Scheduled(self._stays)
        ids = problem.jobs.job_id
        twin._of = [self._stays.get(str(ids[row]), ()) for row in problem.rows.tolist()]
        twin._held = {}
        whole = not problem.is_pool and not problem.devices and problem.units == 1
        sizes: Sequence[int] = problem.sizes.tolist() if whole else []
        twin._node_of = np.repeat(np.arange(len(sizes)), sizes).tolist()
        return twin

    _of: list[Sequence[Stay]]
    _held: dict[int, Stay]
    _node_of: list[int]

    def refuses(self) -> dict[int, str]:
        """Return the jobs that the schedule does not have."""
        return {job: "is not in the schedule" for job, stays in enumerate(self._of) if not stays}

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Decision]:
        """Stop who has to leave, then start who is due."""
        for job in cluster.running:
            if self._due(job, now) is not self._held[job.number]:
                yield Preempt(job)
        for job in queue:
            due = self._due(job, now)
            if due is None:
                continue
            where = self._place(job, due, cluster)
            if where is not None:
                self._held[job.number] = due
                yield Start(job, where)
        after = bisect_right(self._times, now)
        if after < len(self._times):
            yield Wake(self._times[after])

    def _due(self, job: JobView, now: float) -> Stay | None:
        """Return the stay that a job has now, after the end of all its last; None = none."""
        stays = self._of[job.number]
        at = bisect_right(stays, now, key=lambda stay: stay.begin) - 1
        if at < 0 or (now >= stays[at].end and at + 1 < len(stays)):
            return None
        return stays[at]

    def _place(self, job: JobView, stay: Stay, cluster: Any) -> Where | None:
        """Return where a job is to go, None = not all of it is free."""
        if not self._node_of or not stay.gpus:
            where: Where | None = cluster.fit(job)
            return where
        wanted = Counter(self._node_of[gpu] for gpu in stay.gpus)
        free = cluster.free_by_node
        if any(free[node] < gpus for node, gpus in wanted.items()):
            return None
        return sorted(wanted.items())
