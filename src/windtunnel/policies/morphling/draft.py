"""A plan of who will run where: made on a copy of the cluster, given to the engine when whole.

Planning first lets a job that was about to be launched small be launched larger instead, for one
penalty, and lets victims give way only when that frees what is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.sim.contract import Preempt, Resize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


@dataclass(frozen=True)
class Held:
    """What a job holds in a draft.

    Attributes:
        job: the job.
        option: how it runs.
        where: its nodes and GPUs.
        until: when it completes if it runs so from now on, s.
    """

    job: JobView
    option: Option
    where: Where
    until: float


class Draft:
    """Running jobs as they are, changed step by step.

    Args:
        now: the instant, s.
        cluster: what the policy was given (`windtunnel.sim.elastic.views.ElasticView`).
    """

    def __init__(self, now: float, cluster: Any) -> None:
        self.now = now
        self.cluster = cluster
        self.free = cluster.free_state
        self.before: dict[int, Held] = {}
        for job in cluster.running:
            until = now + cluster.time_left(job)
            self.before[job.number] = Held(job, cluster.option(job), cluster.where(job), until)
        self.held = dict(self.before)

    def runtime(self, job: JobView, option: Option) -> float:
        """Return the seconds that a job takes if it is launched in an option now."""
        seconds: float = self.cluster.time_left(job, option)
        return seconds

    def fit(self, job: JobView, option: Option, free: Any = None) -> Where | None:
        """Return where an option would go in the draft; what the job holds counts as taken."""
        where: Where | None = self.cluster.place_in(
            self.free if free is None else free, job, option
        )
        return where

    def admitted(self, job: JobView, options: Sequence[Option]) -> Sequence[Option]:
        """Return the options of sizes that quotas and power let a waiting job have; else all."""
        room = self.free.headroom
        if room is None:
            return options
        sizes = {o.num_gpus for o in options if room.admits_size(job.number, o.num_gpus)}
        return [option for option in options if option.num_gpus in sizes] or options

    def put(self, job: JobView, option: Option, where: Where) -> None:
        """Let a job that holds nothing run so."""
        self.free.take(where, option, job.number)
        until = self.now + self.runtime(job, option)
        self.held[job.number] = Held(job, option, where, until)

    def put_first(self, job: JobView, options: Iterable[Option]) -> bool:
        """Let a job that holds nothing run in the first option that fits; return if one does."""
        for option in options:
            where = self.fit(job, option)
            if where is not None:
                self.put(job, option, where)
                return True
        return False

    def drop(self, job: JobView) -> Held:
        """Let a job hold nothing; return what it held."""
        held = self.held.pop(job.number)
        self.free.give(held.where, held.option, job.number)
        return held

    def restore(self, held: Held) -> None:
        """Undo `drop`."""
        self.free.take(held.where, held.option, held.job.number)
        self.held[held.job.number] = held

    def changed(self, held: Held) -> bool:
        """Return whether a job holds something else than when the draft began."""
        return self.before.get(held.job.number) is not held

    def decisions(self) -> Iterator[Decision]:
        """Yield what makes the cluster as drafted; each step fits when its turn comes.

        A job whose new place is still held by others that have to move, too, is taken off first; it
        is launched again at the same instant and pays once.
        """
        for number, held in self.before.items():
            if number not in self.held:
                yield Preempt(held.job)
        todo = [held for held in self.held.values() if self.changed(held)]
        todo.sort(key=lambda held: (held.job.number not in self.before, held.job.number))
        stopped: set[int] = set()
        while todo:
            ready = [held for held in todo if self.cluster.fits(held.job, held.option, held.where)]
            if ready:
                yield Resize(ready[0].job, ready[0].option, ready[0].where)
                todo.remove(ready[0])
                continue
            blocking = [held.job for held in todo if self._may_go(held, stopped)]
            if not blocking:
                break
            stopped.add(blocking[0].number)
            yield Preempt(blocking[0])
        for held in todo:
            if held.job.number in stopped:
                old = self.before[held.job.number]
                if self.cluster.fits(old.job, old.option, old.where):
                    yield Resize(old.job, old.option, old.where)

    def _may_go(self, held: Held, stopped: set[int]) -> bool:
        """Return whether a running job is to be taken off, as others are where it is to go."""
        number = held.job.number
        if number not in self.before or number in stopped:
            return False
        free, old = self.cluster.free_state, self.before[number]
        free.give(old.where, old.option, number)
        return not free.suits(held.where, held.option, number)
