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
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.parts import holding_types
from windtunnel.errors import PolicyError, quote
from windtunnel.policies.filling import ALL, ARRIVALS, Arrivals
from windtunnel.policies.gavel.deficits import Deficits
from windtunnel.policies.gavel.running import Running, jobs_of
from windtunnel.policies.gavel.work import ALONE
from windtunnel.sim.contract import Policy, Stop, Wake
from windtunnel.sim.expected_work import expected_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.gavel.running import Pick
    from windtunnel.policies.gavel.work import Allocator, Rules, Work
    from windtunnel.sim.contract import Decision
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.problem import Problem


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
        self._active = np.empty(0, int)
        self._here = np.zeros(work.num_jobs + 1, bool)  # the last is nobody's, found by `ALONE`
        self._here[ALONE] = True
        self._changed = False
        self._boundary = -math.inf
        self._running = Running(work, self._deficits)
        self._over: dict[int, float] = {}
        self._seen = 0
        self._wanted = None if rules.stop_after is None else set(rules.stop_after.tolist())
        self._units = 1
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
        self._running.gangs = np.round(self.work.gangs * problem.units).astype(int).tolist()
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
        yield from self._running.let_go_on_alone(cluster)
        # Where nothing runs any more there is nothing to wait for, and a round begins.
        fills = self.rules.fill == ALL and not self.rules.in_turn
        if now < self._boundary and (self._running.mate or fills):
            self._fill_between(queue, cluster)
            return
        self._arrivals.begin_round()
        self.rounds += 1
        if self.rules.in_turn:
            self._look_in_reach(cluster)
        if self._changed:
            self._decide_on_shares(now, queue)
        if not self._all_stay():
            yield from self._begin_round(now, cluster)
        self._boundary = now + self.rules.length
        yield Wake(self._boundary)

    def stopped(self, job: JobView, now: float) -> None:
        """Note that a job left its GPUs."""
        if now > self._deficits.now:
            self._deficits.advance(now)
        self._running.leave(int(self._job_at[job.row]))

    def _note(self, queue: Any, cluster: Any) -> None:
        """Note who came and who went."""
        if self.rules.fill == ARRIVALS:
            self._arrivals.note(queue)
        for view in queue.arrived:
            job = int(self._job_at[view.row])
            self._seen = max(self._seen, job + 1)
            self._running.views[job] = view
        gone = [int(self._job_at[view.row]) for view in cluster.finished]
        if not gone and not len(queue.arrived):
            return
        waiting = self._job_at[queue.row]
        active = np.sort(np.concatenate([waiting, np.array(list(self._running.mate), dtype=int)]))
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
                self._running.views.pop(job, None)
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
        waiting, running = self._job_at[queue.row], list(self._running.mate)
        left[waiting] = queue.remaining
        left[running] = [self._running.views[job].remaining for job in running]
        left[self._active] *= self.work.fastest[self._active]
        self.left = left
        self._deficits.decide(self.allocate(now, self._active, left))
        self.solves += 1
        self._changed = False

    # Who runs.

    def _all_stay(self) -> bool:
        """Return whether all jobs run, each alone on the one GPU type: choosing changes nothing."""
        alone = self.work.num_types == 1 and not self._deficits.has_pairs
        chosen = alone and not self.rules.in_turn and self.work.quotas is None
        return chosen and len(self._running.mate) == len(self._active)

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
        if self.rules.in_turn and dict(chosen) != self._running.kind_of:
            chosen = self._with_places(chosen, cluster)
        kept = dict(chosen)
        if kept != self._running.kind_of:
            yield from self._running.rearrange(chosen, kept, cluster)
            if kept != self._running.kind_of:  # some could not start: they leave others their GPUs
                self._fill(cluster)

    def _with_places(self, chosen: list[Pick], cluster: Any) -> list[Pick]:
        """Return who runs where once it is known which gangs have a place on the type chosen.

        First come, first served has counted GPUs, which may lie on nodes that a gang does not fit.
        One that runs stays where it is then; another goes to the fastest type where it has a place.
        """
        picks, running = dict(chosen), self._running
        gone: list[JobView] = []

        def has_place(job: int, kind: int) -> bool:
            return running.fit(job, kind, cluster, gone) is not None

        while True:  # who stays gives up no GPUs for others
            leaving = running.leaving(picks)
            gone[:] = (running.views[job] for unit in leaving for job in jobs_of(unit))
            stays = [unit for unit in leaving if unit in picks]
            stays = [unit for unit in stays if not has_place(unit[0], picks[unit])]
            if not stays:
                break
            picks |= {unit: running.kind_of[unit] for unit in stays}
        left = self._left(cluster)
        for (job, mate), kind in picks.items():
            if mate == ALONE and job not in running.mate and not has_place(job, kind):
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
            if any(self._running.start((job, ALONE), kind, cluster) for kind in kinds):
                self._arrivals.start(view)
            elif in_turn and not self._lacks_quota(job):
                return

    def _lacks_quota(self, job: int) -> bool:
        """Return whether a job waits for quota on all types where it runs: it blocks nobody."""
        quotas = self.work.quotas
        if quotas is None:
            return False
        quotas.begin(self._running.kind.items())
        return not (quotas.types(job) & self.work.able[job]).any()

    def _kinds_by_fitness(self, job: int, left: list[int]) -> list[int]:
        """Return the types with GPUs enough left for a job, where it is fastest first.

        Under a policy that does not know speeds, those with most GPUs left first.
        """
        fitness, gang = self._running.fit_at[job], self._running.gangs[job]
        worth = left if self.rules.blind else fitness
        kinds = [kind for kind, free in enumerate(left) if fitness[kind] > 0 and gang <= free]
        return sorted(kinds, key=lambda kind: -worth[kind])

    def _fill(self, cluster: Any) -> None:
        """Let whoever waits have GPUs that are free, in the order of the policy."""
        if len(self._running.mate) == len(self._active):
            return
        left = self._free(cluster)
        if not any(left):
            return
        placed, quotas = set(self._running.mate), self.work.quotas
        if quotas is not None:
            quotas.begin(self._running.kind.items())
        for unit, kind in chain(
            self._due(left, placed, within=True), self._leftovers(left, placed)
        ):
            if not self._running.start(unit, kind, cluster):
                left[kind] += self._running.gangs[unit[0]]
                placed.discard(unit[0])
                if quotas is not None:
                    quotas.give(unit[:1], kind)

    def _free(self, cluster: Any) -> list[int]:
        """Return the GPU units that are free, by type."""
        free = cluster.free_by_type
        return [round(free[name or None] * self._units) for name in self.work.gpu_types]

    def _left(self, cluster: Any) -> list[int]:
        """Return the GPU units that are free or in use, by type."""
        held = self._running.held
        return [free + used for free, used in zip(self._free(cluster), held, strict=True)]

    def _all_free(self, cluster: Any) -> bool:
        return bool(cluster.free_gpus == cluster.num_gpus)

    def _due(self, left: list[int], placed: set[int], *, within: bool) -> Iterator[Pick]:
        """Yield the units that shares let run on what is left, those that lack most first.

        Args:
            left: GPU units of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
            within: whether the round has begun: jobs that run stay, and there are no new pairs.
        """
        able, quotas, gangs = self._here, self.work.quotas, self._running.gangs
        if within:
            able = able.copy()
            able[list(placed)] = False
        for one, other, kind in self._deficits.due(able):
            gang = gangs[one]
            if gang > left[kind] or one in placed or other in placed:
                continue
            if within and other != ALONE:
                continue
            if quotas is not None and not quotas.take(jobs_of((one, other)), kind):
                continue
            if other != ALONE:
                placed.add(other)
            left[kind] -= gang
            placed.add(one)
            yield (one, other), kind
            if not left[kind] and not any(left):
                return

    def _leftovers(self, left: list[int], placed: set[int]) -> Iterator[Pick]:
        """Yield waiting jobs for GPUs that nobody has a claim to, on the best type with room.

        Args:
            left: GPU units of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
        """
        if self.rules.in_turn or not any(left) or len(placed) == len(self._active):
            return
        quotas = self.work.quotas
        rows = np.array([job for job in self._active.tolist() if job not in placed], int)
        fitness = self._running.fitness[rows]
        if self.rules.blind:
            fitness = (fitness > 0) * np.array(left, float)
        who, kinds = np.nonzero(fitness > 0)
        order = np.lexsort((kinds, rows[who], -fitness[who, kinds]))
        for job, kind in zip(rows[who[order]].tolist(), kinds[order].tolist(), strict=True):
            gang = self._running.gangs[job]
            if job in placed or gang > left[kind]:
                continue
            if quotas is not None and not quotas.take((job,), kind):
                continue
            left[kind] -= gang
            placed.add(job)
            yield (job, ALONE), kind
            if not any(left):
                return
