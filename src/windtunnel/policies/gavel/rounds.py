"""`Rounds`: shares of GPU types made real in rounds, by deficits; our default mechanism.

At each boundary all units (a job, or two that share GPUs) are chosen anew: those that lack most of
their shares first (`windtunnel.policies.gavel.deficits`), each on the type where it lacks most.
GPUs that nobody has a claim to go to waiting jobs on the types that suit them best. Jobs that keep
their place are not touched (a *lease*). Where a chosen unit cannot start (a node is held back, or
power is short), waiting jobs take its GPUs. Between boundaries they take GPUs that are free, at
once: whoever waits, or arrivals alone, or nobody (`windtunnel.policies.filling`).

Unlike in the published mechanism (`windtunnel.policies.gavel.published`), shares are decided on at
every boundary after a change, no job holds GPUs without running, GPUs are free the moment a job is
done, going on costs what resuming costs, and gangs that are spread over nodes run at the speeds
measured so. It is a policy of tier 3 like any other: work is in seconds where the job is fastest,
and each start says how fast it goes there, so that it goes with everything else that a run has.

Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI'20, section 5.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from windtunnel.cluster.parts import holding_types
from windtunnel.errors import PolicyError, quote
from windtunnel.policies.filling import ALL, ARRIVALS, Arrivals
from windtunnel.policies.gavel.deficits import Deficits
from windtunnel.policies.gavel.work import ALONE
from windtunnel.sim.contract import Policy, Preempt, Rerate, Start, Stop, Wake
from windtunnel.sim.expected_work import expected_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.gavel.deficits import Unit
    from windtunnel.policies.gavel.work import Allocator, Rules, Work
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem

#: A unit that is to run, and its GPU type.
_Pick: TypeAlias = "tuple[Unit, int]"


class Rounds(Policy):
    """One run's policy; jobs are rows of its work.

    Args:
        work: jobs and GPUs.
        rows: row in the jobs table of each of these jobs; shape (jobs,).
        allocate: decides on shares.
        rules: how shares become rounds; those of the published mechanism are not looked at.

    Attributes:
        rounds: boundaries so far.
        solves: decisions on shares so far.
        left: steps left of each job at the last of them, shape (jobs,).
        stopped_at: when the run was ended, s; None = it was not.
    """

    preemptive = True
    queueing = "skip"
    foresees = True
    estimates = "perfect"

    def __init__(self, work: Work, rows: np.ndarray, allocate: Allocator, rules: Rules) -> None:
        self.work, self.allocate, self.rules = work, allocate, rules
        self.turn = rules.length
        self.rounds = self.solves = 0
        self.stopped_at: float | None = None
        self.left = work.steps.astype(float)
        self._deficits = Deficits(work, rules.length, charges=rules.fill == ARRIVALS)
        self._arrivals = Arrivals()
        self._job_at = np.full(int(rows.max(initial=-1)) + 1, -1)
        self._job_at[rows] = np.arange(len(rows))
        self._views: dict[int, JobView] = {}
        self._active = np.empty(0, int)
        self._here = np.zeros(work.num_jobs + 1, bool)  # the last is nobody's, found by `ALONE`
        self._here[ALONE] = True
        self._changed = False
        self._boundary = -math.inf
        self._running: dict[Unit, int] = {}
        self._held = [0] * len(work.gpu_types)
        self._mate: dict[int, int] = {}
        self._kind: dict[int, int] = {}
        self._spread: dict[int, bool] = {}
        self._left_alone: list[int] = []
        self._over: dict[int, float] = {}
        self._seen = 0
        self._wanted = None if rules.stop_after is None else set(rules.stop_after.tolist())
        best = np.where(work.fastest > 0, work.fastest, 1.0)[:, None]
        self._fitness, self._spread_fitness = work.speeds / best, work.spread_speeds / best
        self._fit_at, self._fit_spread = self._fitness.tolist(), self._spread_fitness.tolist()
        self._units = 1
        #: GPUs of each job, in the GPU units of the run.
        self._gangs: list[int] = work.gangs.round().astype(int).tolist()
        # A cluster without types is of one, which has no name.
        self._names = [frozenset({name}) if name else None for name in work.gpu_types]
        self._problem: Any = None

    @property
    def label(self) -> str:
        """The policy as it was asked for."""
        return self.rules.label

    @property
    def type_time(self) -> np.ndarray:
        """Seconds each job spent on each GPU type, shape (jobs, types)."""
        return self._deficits.type_time

    def for_run(self, problem: Problem) -> Rounds:
        """Return the policy, which is made for one run; it learns what is expected of jobs.

        And in which units GPUs are given out: parts of GPUs add up exactly in these.
        """
        self._problem = problem
        self._units = problem.units
        self._gangs = np.round(self.work.gangs * problem.units).astype(int).tolist()
        parts = expected_parts(problem)
        if parts is not None:
            self.work.expected[self._job_at[problem.rows]] = parts
        return self

    def too_large(self) -> dict[int, str]:
        """Return the jobs that no GPU type alone can hold, with why, by arrival number."""
        problem, free = self._problem, self._problem.free_state()
        nowhere = [
            holding_types(demand, free, problem.types) == frozenset() for demand in problem.demands
        ]
        why = {
            job: "in a round a job is on one GPU type, and none alone can hold it"
            for job, kind in enumerate(problem.demand_of.tolist())
            if nowhere[kind]
        }
        why |= self._above_quotas()
        asked = problem.jobs.num_gpus[problem.rows]
        return {job: f"asks for {asked[job]:g} GPUs; {found}" for job, found in why.items()}

    def _above_quotas(self) -> dict[int, str]:
        """Return the jobs that have no quota where they run, with why, by arrival number."""
        work = self.work
        if work.quotas is None:
            return {}
        most = np.where(work.able, work.quotas.most(), 0.0).max(axis=1, initial=0.0)
        found = self._job_at[self._problem.rows]
        return {
            number: (
                f"the quota of {quote(work.quotas.queue(job))} allows {most[job]:g} at most where "
                "it runs, whoever else runs"
            )
            for number, job in enumerate(found.tolist())
            if work.gangs[job] > most[job]
        }

    def close(self, now: float) -> None:
        """Book what jobs had until the end of the run (s)."""
        self._deficits.advance(now)

    # What happens.

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Decision]:
        """Choose anew at a boundary; let jobs that may have free GPUs between two."""
        self._deficits.advance(now)
        self._note(queue, cluster)
        if self._wanted is not None and not self._wanted:
            self.stopped_at = now
            yield Stop()
            return
        if not len(self._active):
            self._boundary = -math.inf
            return
        for job in self._left_alone:
            if self._mate.get(job) == ALONE:
                yield from self._rerated(job, cluster)
        self._left_alone.clear()
        # Where nothing runs any more there is nothing to wait for, and a round begins.
        fills = self.rules.fill == ALL and not self.rules.in_turn
        if now < self._boundary and (self._mate or fills):
            self._fill_between(queue, cluster)
            return
        self._arrivals.begin_round()
        self.rounds += 1
        if self.rules.in_turn:
            self._look_in_reach(cluster)
        if self._changed:
            self._decide_on_shares(now, queue)
        yield from self._begin_round(now, cluster)
        self._boundary = now + self.rules.length
        yield Wake(self._boundary)

    def stopped(self, job: JobView, now: float) -> None:
        """Note that a job left its GPUs."""
        if now > self._deficits.now:
            self._deficits.advance(now)
        self._leave(int(self._job_at[job.row]))

    def _note(self, queue: Any, cluster: Any) -> None:
        """Note who came and who went."""
        if self.rules.fill == ARRIVALS:
            self._arrivals.note(queue)
        for view in queue.arrived:
            job = int(self._job_at[view.row])
            self._seen = max(self._seen, job + 1)
            self._views[job] = view
        gone = [int(self._job_at[view.row]) for view in cluster.finished]
        if not gone and not len(queue.arrived):
            return
        waiting = self._job_at[queue.row]
        active = np.sort(np.concatenate([waiting, np.array(list(self._mate), dtype=int)]))
        if self._wanted is not None:
            self._wanted.difference_update(set(gone).difference(active.tolist()))
        if np.array_equal(active, self._active):
            return
        self._here[self._active] = False
        self._here[active] = True
        for view in cluster.finished:
            job = int(self._job_at[view.row])
            if not self._here[job]:
                self._over[job] = view.remaining * self.work.fastest[job]
                self._views.pop(job, None)
        self._active = active
        self._changed = True

    def _look_in_reach(self, cluster: Any) -> None:
        """Note which GPUs there are to give out: where others are down, nobody waits for those."""
        found = np.array(self._left(cluster)) / self._units
        self._changed |= bool((found != self.work.in_reach).any())
        self.work.in_reach[:] = found

    def _decide_on_shares(self, now: float, queue: Any) -> None:
        """Ask for shares, from now on."""
        left = self.left.copy()
        for job, remaining in self._over.items():
            left[job] = remaining
        self._over.clear()
        waiting, running = self._job_at[queue.row], list(self._mate)
        left[waiting] = queue.remaining
        left[running] = [self._views[job].remaining for job in running]
        left[self._active] *= self.work.fastest[self._active]
        self.left = left
        self._deficits.decide(self.allocate(now, self._active, left))
        self.solves += 1
        self._changed = False

    # Who runs.

    def _begin_round(self, now: float, cluster: Any) -> Iterator[Decision]:
        """Choose who runs in the round, and move jobs accordingly."""
        left = self._left(cluster)
        if self.work.quotas is not None:
            self.work.quotas.begin()
        placed: set[int] = set()
        chosen = [*self._due(left, placed, within=False), *self._leftovers(left, placed)]
        if not chosen and self._seen == self.work.num_jobs and self._all_free(cluster):
            message = "gives no job a GPU that it can use, and nothing will change"
            who = self.work.names[self._active[0]]
            raise PolicyError(self.label, message, time=now, job=who)
        if self.rules.in_turn and dict(chosen) != self._running:
            chosen = self._with_places(chosen, cluster)
        kept = dict(chosen)
        if kept != self._running:
            yield from self._rearranged(chosen, kept, cluster)
            if kept != self._running:  # some could not start: they leave others their GPUs
                self._fill(cluster)

    def _with_places(self, chosen: list[_Pick], cluster: Any) -> list[_Pick]:
        """Return who runs where once it is known which gangs have a place on the type chosen.

        First come, first served has counted GPUs, which may lie on nodes that a gang does not fit.
        One that runs stays where it is then; another goes to the fastest type where it has a place.
        """
        picks = dict(chosen)
        gone: list[JobView] = []

        def has_place(job: int, kind: int) -> bool:
            return cluster.fit(self._views[job], self._names[kind], gone) is not None

        while True:  # who stays gives up no GPUs for others
            leaving = [unit for unit, kind in self._running.items() if picks.get(unit) != kind]
            gone[:] = (self._views[job] for unit in leaving for job in _jobs_of(unit))
            stays = [unit for unit in leaving if unit in picks]
            stays = [unit for unit in stays if not has_place(unit[0], picks[unit])]
            if not stays:
                break
            picks |= {unit: self._running[unit] for unit in stays}
        left = self._left(cluster)
        for (job, mate), kind in picks.items():
            if mate == ALONE and job not in self._mate and not has_place(job, kind):
                kinds = self._kinds_by_fitness(job, left)
                picks[job, mate] = next((k for k in kinds if has_place(job, k)), kind)
        return list(picks.items())

    def _fill_between(self, queue: Any, cluster: Any) -> None:
        """Let jobs that may have the free GPUs between two boundaries."""
        if self.rules.fill == ALL:
            self._fill(cluster)
            return
        new = self._arrivals.waiting(queue)
        in_turn = self.rules.in_turn
        if in_turn:  # first come, first served: somebody may have waited for longer
            older = set(self._job_at[queue.row].tolist()) - {int(self._job_at[v.row]) for v in new}
            if not all(map(self._lacks_quota, older)):
                return
        for view in new:
            job = int(self._job_at[view.row])
            kinds = self._kinds_by_fitness(job, self._free(cluster))
            if any(self._starts((job, ALONE), kind, cluster) for kind in kinds):
                self._arrivals.start(view)
            elif in_turn and not self._lacks_quota(job):
                return

    def _lacks_quota(self, job: int) -> bool:
        """Return whether a job waits for quota on all types where it runs: it blocks nobody."""
        quotas = self.work.quotas
        if quotas is None:
            return False
        quotas.begin(self._kind.items())
        return not (quotas.types(job) & self.work.able[job]).any()

    def _kinds_by_fitness(self, job: int, left: list[int]) -> list[int]:
        """Return the types with GPUs enough left for a job, where it is fastest first.

        Under a policy that does not know speeds, those with most GPUs left first.
        """
        fitness, gang = self._fit_at[job], self._gangs[job]
        worth = left if self.rules.blind else fitness
        kinds = [kind for kind, free in enumerate(left) if fitness[kind] > 0 and gang <= free]
        return sorted(kinds, key=lambda kind: -worth[kind])

    def _fill(self, cluster: Any) -> None:
        """Let whoever waits have GPUs that are free, in the order of the policy."""
        if len(self._mate) == len(self._active):
            return
        left = self._free(cluster)
        if not any(left):
            return
        placed, quotas = set(self._mate), self.work.quotas
        if quotas is not None:
            quotas.begin(self._kind.items())
        for unit, kind in chain(
            self._due(left, placed, within=True), self._leftovers(left, placed)
        ):
            if not self._starts(unit, kind, cluster):
                left[kind] += self._gangs[unit[0]]
                placed.discard(unit[0])
                if quotas is not None:
                    quotas.give(unit[:1], kind)

    def _free(self, cluster: Any) -> list[int]:
        """Return the GPU units that are free, by type."""
        free = cluster.free_by_type
        return [round(free[name or None] * self._units) for name in self.work.gpu_types]

    def _left(self, cluster: Any) -> list[int]:
        """Return the GPU units that are free or in use, by type."""
        return [free + held for free, held in zip(self._free(cluster), self._held, strict=True)]

    def _all_free(self, cluster: Any) -> bool:
        return bool(cluster.free_gpus == cluster.num_gpus)

    def _due(self, left: list[int], placed: set[int], *, within: bool) -> Iterator[_Pick]:
        """Yield the units that shares let run on what is left, those that lack most first.

        Args:
            left: GPU units of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
            within: whether the round has begun: jobs that run stay, and there are no new pairs.
        """
        able, quotas = self._here, self.work.quotas
        if within:
            able = able.copy()
            able[list(placed)] = False
        for one, other, kind in self._deficits.due(able):
            gang = self._gangs[one]
            if gang > left[kind] or one in placed or other in placed:
                continue
            if within and other != ALONE:
                continue
            if quotas is not None and not quotas.take(_jobs_of((one, other)), kind):
                continue
            if other != ALONE:
                placed.add(other)
            left[kind] -= gang
            placed.add(one)
            yield (one, other), kind
            if not any(left):
                return

    def _leftovers(self, left: list[int], placed: set[int]) -> Iterator[_Pick]:
        """Yield waiting jobs for GPUs that nobody has a claim to, on the best type with room.

        Args:
            left: GPU units of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
        """
        if self.rules.in_turn or not any(left) or len(placed) == len(self._active):
            return
        quotas = self.work.quotas
        rows = np.array([job for job in self._active.tolist() if job not in placed], int)
        fitness = self._fitness[rows]
        if self.rules.blind:
            fitness = (fitness > 0) * np.array(left, float)
        who, kinds = np.nonzero(fitness > 0)
        order = np.lexsort((kinds, rows[who], -fitness[who, kinds]))
        for job, kind in zip(rows[who[order]].tolist(), kinds[order].tolist(), strict=True):
            gang = self._gangs[job]
            if job in placed or gang > left[kind]:
                continue
            if quotas is not None and not quotas.take((job,), kind):
                continue
            left[kind] -= gang
            placed.add(job)
            yield (job, ALONE), kind
            if not any(left):
                return

    # How they come to run.

    def _rearranged(
        self, chosen: list[_Pick], kept: dict[Unit, int], cluster: Any
    ) -> Iterator[Decision]:
        """Let the chosen units run and no others; those that run already are not touched."""
        changed = [pick for pick in chosen if self._running.get(pick[0]) != pick[1]]
        leaving = [unit for unit, kind in self._running.items() if kept.get(unit) != kind]
        hosts = [ALONE] * len(changed)
        staying: set[int] = set()
        if self._deficits.has_pairs:
            hosts = self._hosts(changed)
            staying = {
                job
                for (unit, _), host in zip(changed, hosts, strict=True)
                if host != ALONE
                for job in (host, self._mate[host])
                if job in unit
            }
        for job in chain.from_iterable(map(_jobs_of, leaving)):
            if job not in staying:
                yield Preempt(self._views[job])
        moved = []
        for pick, host in zip(changed, hosts, strict=True):
            if host == ALONE:
                moved.append(pick)
            else:
                yield from self._go_on(pick[0], host, cluster)
        moved.sort(key=lambda pick: -self._gangs[pick[0][0]])
        for unit, kind in moved:
            if self._starts(unit, kind, cluster) and unit[1] != ALONE:
                yield from self._go_on(unit, unit[0], cluster)

    def _hosts(self, chosen: list[_Pick]) -> list[int]:
        """Return for each unit that is new the job of it that keeps its GPUs, `ALONE` = none does.

        Of two jobs that part, the first chosen keeps the GPUs; of two that join, the first.
        """
        taken: set[int] = set()
        hosts = []
        for unit, kind in chosen:
            host = ALONE
            for job in unit:
                if self._kind.get(job) == kind and self._mate[job] not in taken:
                    host = job
                    taken.add(job)
                    break
            hosts.append(host)
        return hosts

    def _starts(self, unit: Unit, kind: int, cluster: Any) -> bool:
        """Start a unit's first job, if there is a place where the unit can run."""
        job = unit[0]
        view = self._views[job]
        where = cluster.fit(view, self._names[kind])
        if where is None:
            return False
        spread = len(where) > 1 and len({node for node, _ in where}) > 1
        rates = self._rates(unit, kind, spread=spread)
        if min(rates) <= 0:
            return False
        cluster.start(view, where, rates[0])
        self._spread[job] = spread
        self._runs(job, ALONE, kind)
        return True

    def _go_on(self, unit: Unit, host: int, cluster: Any) -> Iterator[Decision]:
        """Let a unit have the place of its host, which that job does not leave."""
        one, other = unit
        guest = other if host == one else one
        kind = self._kind[host]
        if guest == ALONE or not cluster.may_share(self._views[guest], self._views[host]):
            yield from self._rerated(host, cluster)
            return
        rates = self._rates(unit, kind, spread=self._spread[host])
        by_job = dict(zip(unit, rates, strict=True))
        if cluster.rate(self._views[host]) != by_job[host]:
            yield Rerate(self._views[host], by_job[host])
        yield Start(self._views[guest], rate=by_job[guest], beside=self._views[host])
        self._spread[guest] = self._spread[host]
        self._release((host, ALONE))
        for job, mate in ((one, other), (other, one)):
            self._runs(job, mate, kind)

    def _rerated(self, job: int, cluster: Any) -> Iterator[Decision]:
        """Let a job that has its GPUs to itself go at its own speed, or leave if it has none."""
        (rate,) = self._rates((job, ALONE), self._kind[job], spread=self._spread[job])
        if rate <= 0:
            yield Preempt(self._views[job])
        elif cluster.rate(self._views[job]) != rate:
            yield Rerate(self._views[job], rate)

    def _rates(self, unit: Unit, kind: int, *, spread: bool) -> list[float]:
        """Return what each job of a unit does a second there, in seconds where it is fastest."""
        one, other = unit
        if other != ALONE:
            both = self.work.unit_speeds(np.array([unit]))[0, kind]
            fastest = self.work.fastest
            return [float(both[0] / fastest[one]), float(both[1] / fastest[other])]
        return [(self._fit_spread if spread else self._fit_at)[one][kind]]

    def _runs(self, job: int, mate: int, kind: int) -> None:
        """Note that a job runs, alone or with another."""
        self._mate[job], self._kind[job] = mate, kind
        if (mate, job) not in self._running:  # a pair has one entry
            self._running[job, mate] = kind
            self._held[kind] += self._gangs[job]
        self._deficits.runs(job, mate, kind)

    def _release(self, unit: Unit) -> None:
        self._held[self._running.pop(unit)] -= self._gangs[unit[0]]

    def _leave(self, job: int) -> None:
        """Note that a job runs no more; another on the same GPUs goes on alone."""
        mate, kind = self._mate.pop(job), self._kind.pop(job)
        del self._spread[job]
        self._deficits.runs(job, ALONE, -1)
        self._release((job, mate) if (job, mate) in self._running else (mate, job))
        if mate == ALONE:
            return
        self._runs(mate, ALONE, kind)
        self._left_alone.append(mate)


def _jobs_of(unit: Unit) -> tuple[int, ...]:
    return unit[:1] if unit[1] == ALONE else unit
