"""Policies of strangers, honest ones: what the confined process is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import windtunnel as wt

if TYPE_CHECKING:
    from collections.abc import Iterator


def by_estimate(jobs: wt.Jobs) -> Any:
    """Tier 1."""
    return jobs.estimate


def ageing(job: wt.JobView, now: float) -> float:
    """Tier 2, of one job."""
    return job.estimate - 10 * (now - job.submit_time)


class LeastService(wt.Policy):
    """Tier 2, of many at once; preempts, and hears of starts and stops."""

    preemptive = True
    queueing = "skip"
    every = 600.0
    turn = 600.0

    def for_run(self, problem: Any) -> wt.Policy:
        """Return a copy with books of its own."""
        made = LeastService()
        made.starts = {}
        return made

    def started(self, job: wt.JobView, now: float) -> None:
        """Count."""
        self.starts[job.number] = self.starts.get(job.number, 0) + 1

    def key(self, jobs: Any, now: float) -> Any:
        """Return the least GPU time so far; whoever was started often, later."""
        often = [self.starts.get(number, 0) for number in jobs.number.tolist()]
        return jobs.run_time * jobs.num_gpus + 60.0 * jobs.num_gpus * often


def first_that_fit(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
    """Tier 3."""
    for job in queue.startable:
        yield wt.Start(job)


class LargestThatFits(wt.Policy):
    """Tier 3, that says where; now and then somebody gives way."""

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        """Start and stop."""
        if len(queue) > 3 and cluster.running and int(now) % 5 == 0:
            yield wt.Preempt(cluster.running[0])
        for job in sorted(queue, key=lambda j: (-j.num_gpus, j.submit_time)):
            where = cluster.fit(job)
            if where is not None:
                yield wt.Start(job, where)


def by_duration(jobs: wt.Jobs) -> Any:
    """Honest about it: of the clairvoyant class."""
    return jobs.duration


def nothing(jobs: wt.Jobs) -> Any:
    """Return no ranks at all."""
    return None
