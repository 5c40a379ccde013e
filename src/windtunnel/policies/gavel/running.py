"""`Running`: the units of a run that have GPUs, and how they come to have them.

A unit is a job alone, or two that share GPUs. Of two jobs that part one keeps the GPUs, of two that
join one lets the other in: a job that keeps its place is not touched (a *lease*).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from windtunnel.policies.gavel.work import ALONE
from windtunnel.sim.contract import Preempt, Rerate, Start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.policies.gavel.deficits import Deficits, Unit
    from windtunnel.policies.gavel.work import Work
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.jobs import JobView

#: A unit that is to run, and its GPU type.
Pick: TypeAlias = "tuple[Unit, int]"


class Running:
    """The units that run.

    Args:
        work: jobs and GPUs.
        deficits: is told who runs where.

    Attributes:
        gangs: GPUs of each job, in the GPU units of the run.
        views: the engine's view of each job that is here.
        kind_of: GPU type that each unit runs on.
        kind: GPU type that each job runs on.
        mate: with whom each job that runs shares its GPUs, `ALONE` = nobody.
        held: GPU units in use, by type.
        left_alone: jobs whose mate left since somebody looked.
    """

    def __init__(self, work: Work, deficits: Deficits) -> None:
        self._work, self._deficits = work, deficits
        self.gangs: list[int] = work.gangs.round().astype(int).tolist()
        self.views: dict[int, JobView] = {}
        self.kind_of: dict[Unit, int] = {}
        self.kind: dict[int, int] = {}
        self.mate: dict[int, int] = {}
        self.held = [0] * work.num_types
        self.left_alone: list[int] = []
        self._spread: dict[int, bool] = {}
        best = np.where(work.fastest > 0, work.fastest, 1.0)[:, None]
        #: Speed of each job on each type over that where it is fastest, shape (jobs, types).
        self.fitness, spread_fitness = work.speeds / best, work.spread_speeds / best
        self.fit_at, self._fit_spread = self.fitness.tolist(), spread_fitness.tolist()
        # A cluster without types is of one, which has no name.
        self._names = [frozenset({name}) if name else None for name in work.gpu_types]

    def leaving(self, kept: dict[Unit, int]) -> list[Unit]:
        """Return the units that run and are not to, or on another type."""
        return [unit for unit, kind in self.kind_of.items() if kept.get(unit) != kind]

    def rearrange(
        self, chosen: list[Pick], kept: dict[Unit, int], cluster: Any
    ) -> Iterator[Decision]:
        """Let the chosen units run and no others; those that run already are not touched."""
        changed = [pick for pick in chosen if self.kind_of.get(pick[0]) != pick[1]]
        hosts = [ALONE] * len(changed)
        staying: set[int] = set()
        if self._deficits.has_pairs:
            hosts = self._hosts(changed)
            staying = {
                job
                for (unit, _), host in zip(changed, hosts, strict=True)
                if host != ALONE
                for job in (host, self.mate[host])
                if job in unit
            }
        for job in chain.from_iterable(map(jobs_of, self.leaving(kept))):
            if job not in staying:
                yield Preempt(self.views[job])
        moved = []
        for pick, host in zip(changed, hosts, strict=True):
            if host == ALONE:
                moved.append(pick)
            else:
                yield from self._go_on(pick[0], host, cluster)
        moved.sort(key=lambda pick: -self.gangs[pick[0][0]])
        for unit, kind in moved:
            if self.start(unit, kind, cluster) and unit[1] != ALONE:
                yield from self._go_on(unit, unit[0], cluster)

    def let_go_on_alone(self, cluster: Any) -> Iterator[Decision]:
        """Let those whose mates left go at their own speeds."""
        for job in self.left_alone:
            if self.mate.get(job) == ALONE:
                yield from self._rerated(job, cluster)
        self.left_alone.clear()

    def _hosts(self, chosen: list[Pick]) -> list[int]:
        """Return for each unit that is new the job of it that keeps its GPUs, `ALONE` = none does.

        Of two jobs that part, the first chosen keeps the GPUs; of two that join, the first.
        """
        taken: set[int] = set()
        hosts = []
        for unit, kind in chosen:
            host = ALONE
            for job in unit:
                if self.kind.get(job) == kind and self.mate[job] not in taken:
                    host = job
                    taken.add(job)
                    break
            hosts.append(host)
        return hosts

    def fit(self, job: int, kind: int, cluster: Any, gone: Sequence[JobView] = ()) -> Any:
        """Return where a job fits on a GPU type once others are gone, None = nowhere."""
        return cluster.fit(self.views[job], self._names[kind], gone)

    def start(self, unit: Unit, kind: int, cluster: Any) -> bool:
        """Start a unit's first job, if there is a place where the unit can run."""
        job = unit[0]
        where = self.fit(job, kind, cluster)
        if where is None:
            return False
        spread = len(where) > 1 and len({node for node, _ in where}) > 1
        rates = self._rates(unit, kind, spread=spread)
        if min(rates) <= 0:
            return False
        cluster.start(self.views[job], where, rates[0])
        self._spread[job] = spread
        self._runs(job, ALONE, kind)
        return True

    def _go_on(self, unit: Unit, host: int, cluster: Any) -> Iterator[Decision]:
        """Let a unit have the place of its host, which that job does not leave."""
        one, other = unit
        guest = other if host == one else one
        kind = self.kind[host]
        if guest == ALONE or not cluster.may_share(self.views[guest], self.views[host]):
            yield from self._rerated(host, cluster)
            return
        rates = self._rates(unit, kind, spread=self._spread[host])
        by_job = dict(zip(unit, rates, strict=True))
        if cluster.rate(self.views[host]) != by_job[host]:
            yield Rerate(self.views[host], by_job[host])
        yield Start(self.views[guest], rate=by_job[guest], beside=self.views[host])
        self._spread[guest] = self._spread[host]
        self._release((host, ALONE))
        for job, mate in ((one, other), (other, one)):
            self._runs(job, mate, kind)

    def _rerated(self, job: int, cluster: Any) -> Iterator[Decision]:
        """Let a job that has its GPUs to itself go at its own speed, or leave if it has none."""
        (rate,) = self._rates((job, ALONE), self.kind[job], spread=self._spread[job])
        if rate <= 0:
            yield Preempt(self.views[job])
        elif cluster.rate(self.views[job]) != rate:
            yield Rerate(self.views[job], rate)

    def _rates(self, unit: Unit, kind: int, *, spread: bool) -> list[float]:
        """Return what each job of a unit does a second there, in seconds where it is fastest."""
        one, other = unit
        if other != ALONE:
            both = self._work.unit_speeds(np.array([unit]))[0, kind]
            fastest = self._work.fastest
            return [float(both[0] / fastest[one]), float(both[1] / fastest[other])]
        return [(self._fit_spread if spread else self.fit_at)[one][kind]]

    def _runs(self, job: int, mate: int, kind: int) -> None:
        """Note that a job runs, alone or with another."""
        self.mate[job], self.kind[job] = mate, kind
        if (mate, job) not in self.kind_of:  # a pair has one entry
            self.kind_of[job, mate] = kind
            self.held[kind] += self.gangs[job]
        self._deficits.runs(job, mate, kind)

    def _release(self, unit: Unit) -> None:
        self.held[self.kind_of.pop(unit)] -= self.gangs[unit[0]]

    def leave(self, job: int) -> None:
        """Note that a job runs no more; another on the same GPUs goes on alone."""
        mate, kind = self.mate.pop(job), self.kind.pop(job)
        del self._spread[job]
        self._deficits.runs(job, ALONE, -1)
        self._release((job, mate) if (job, mate) in self.kind_of else (mate, job))
        if mate == ALONE:
            return
        self._runs(mate, ALONE, kind)
        self.left_alone.append(mate)


def jobs_of(unit: Unit) -> tuple[int, ...]:
    """Return the jobs of a unit: one, or two."""
    return unit[:1] if unit[1] == ALONE else unit
