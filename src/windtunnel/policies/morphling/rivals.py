"""Schedulers that Morphling is measured against, in the manner of published ones.

*Equal share* is the simple scheduler of Morphling's Fig. 8; *Synergy* chooses CPU cores by what
they are worth (Mohan et al., OSDI'22), *AntMan* lets opportunistic jobs run on what guaranteed ones
leave (Xiao et al., OSDI'20). They are like these in what they decide, not copies of them.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.policies.morphling.draft import Draft
from windtunnel.policies.morphling.ladder import SAME
from windtunnel.sim.contract import Policy, Preempt, Resize, Start, Wake

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.policies.morphling.draft import Held
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


class EqualShare(Policy):
    """Every active job gets the same number of GPUs, and the plan that is fastest on so many.

    The share is floor(GPUs / active jobs), at least 1, of the GPUs that are up and not kept for
    some; a job that cannot run on it, or that quotas or power keep from it, takes its next smaller
    size, or its smallest. A running job changes to its share once that is ``slack`` times what it
    holds or less than a ``slack``-th of it, at most once in ``interval`` seconds.

    Args:
        slack: at least 1.
        interval: s.
    """

    name = "equal-share"
    elastic = True

    def __init__(self, *, slack: float = 2.0, interval: float = 3600.0) -> None:
        for name, value, low in (("slack", slack, 1.0), ("interval", interval, 0.0)):
            if not isinstance(value, int | float) or math.isnan(value) or value < low:
                raise SpecError(f"{self.name}.{name}", f"found {value!r}; expected >= {low:g}.")
        self.slack = float(slack)
        self.interval = float(interval)
        self.parameters = MappingProxyType({"slack": self.slack, "interval": self.interval})

    def for_run(self, problem: Any) -> EqualShare:  # noqa: ARG002 - the contract's
        """Return a copy that remembers when it launched each job."""
        twin = EqualShare(slack=self.slack, interval=self.interval)
        twin.name = self.name  # type: ignore[misc] # parameters stand in it
        twin._launched = {}
        return twin

    _launched: dict[int, float]

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:
        """Yield changes of running jobs, then launches in order of arrival."""
        draft = Draft(now, cluster)
        active = max(1, len(draft.held) + len(queue))
        share = max(1, math.floor(_at_hand(draft) / active))
        # Who has more than its share goes first: others grow on what it gives back.
        for held in sorted(draft.held.values(), key=lambda held: held.option.num_gpus <= share):
            self._to_share(draft, held, share)
        for job in queue:
            draft.put_first(job, sized(draft.admitted(job, cluster.options(job)), share))
        for number, held in draft.held.items():
            if draft.changed(held):
                self._launched[number] = now
        yield from draft.decisions()
        # Who is over its share and may not change yet holds what others wait for.
        changes = (self._launched[number] + self.interval for number in draft.held)
        due = min((at for at in changes if now < at < math.inf), default=math.inf)
        if due < math.inf:
            yield Wake(due)

    def _to_share(self, draft: Draft, held: Held, share: int) -> None:
        """Let a running job change to its share if that is far from what it holds, and fits."""
        # As the instant asked to wake at is made: a difference of times rounds otherwise.
        if draft.now < self._launched[held.job.number] + self.interval:
            return
        draft.drop(held.job)
        best = sized(draft.admitted(held.job, draft.cluster.options(held.job)), share)
        wanted, now = best[0].num_gpus, held.option.num_gpus
        is_near = wanted == now or (now < wanted * self.slack and wanted < now * self.slack)
        if is_near or not draft.put_first(held.job, best):
            draft.restore(held)


def _at_hand(draft: Draft) -> int:
    """Return the GPUs that jobs hold, or may take: not those of nodes that are down or kept."""
    kept = draft.free.withheld
    held = (piece for held in draft.held.values() for piece in held.where)
    return int(draft.cluster.free_gpus) + sum(gpus for node, gpus in held if node not in kept)


def sized(options: Sequence[Option], share: int) -> list[Option]:
    """Return the options of the largest size within a share, best first; else of the smallest size.

    Best = fewest nodes, then fastest.
    """
    sizes = [o.num_gpus for o in options if o.num_gpus <= share]
    size = max(sizes) if sizes else min(o.num_gpus for o in options)
    same = [o for o in options if o.num_gpus == size]
    return sorted(same, key=lambda o: (len(o.shape), o.iteration_time, o.num_cpus))


class Synergy(Policy):
    """Jobs as asked for, with the CPU cores that are worth most to them; FIFO, going past misfits.

    A job gets the cores with which its plan is fastest on the GPUs asked for, as far as they are
    free where it fits, else fewer; a guaranteed job no fewer than it was promised. Guaranteed jobs
    go first.
    """

    name = "synergy"
    elastic = True
    resizes = False

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:  # noqa: ARG002 - the contract's
        """Launch every waiting job that fits."""
        for job in sorted(queue, key=lambda job: not cluster.work(job).guaranteed):
            work = cluster.work(job)
            asked = work.requested
            slowest = asked.iteration_time * (1 + SAME) if work.guaranteed else math.inf
            ways = [
                option
                for option in cluster.options(job)
                if option.plan == asked.plan
                and option.shape == asked.shape
                and option.iteration_time <= slowest
            ]
            for option in sorted(ways, key=lambda o: (o.iteration_time, o.num_cpus)):
                where = cluster.place(job, option)
                if where is not None:
                    yield Resize(job, option, where)
                    break


class AntMan(Policy):
    """Guaranteed jobs as asked for, at once; best-effort jobs on what they leave.

    A guaranteed job that does not fit takes the place of best-effort jobs, the last launched first,
    if that is enough; these wait again. Both classes go by arrival, past what does not fit.
    """

    name = "antman"
    elastic = True
    resizes = False

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterable[Decision]:  # noqa: ARG002 - the contract's
        """Launch guaranteed jobs, over opportunistic ones where need be, then those."""
        waiting = sorted(queue, key=lambda job: not cluster.work(job).guaranteed)
        for job in waiting:
            where = cluster.fit(job)
            if where is None and cluster.work(job).guaranteed:
                victims = _enough(job, cluster)
                yield from (Preempt(victim) for victim in victims)
                where = cluster.fit(job) if victims else None
            if where is not None:
                yield Start(job, where)


def _enough(job: JobView, cluster: Any) -> list[JobView]:
    """Return the last launched best-effort jobs without which a job fits; none if all are too few.

    Of those that were taken on the way, the ones whose place is not needed stay, the first launched
    before others.
    """
    asked = cluster.work(job).requested
    gone: list[JobView] = []
    for other in reversed(cluster.running):
        if cluster.work(other).guaranteed:
            continue
        gone.append(other)
        if cluster.place(job, asked, without=gone) is not None:
            break
    else:
        return []
    for spared in reversed(gone.copy()):
        fewer = [other for other in gone if other is not spared]
        if cluster.place(job, asked, without=fewer) is not None:
            gone = fewer
    return gone
