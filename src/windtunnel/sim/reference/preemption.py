"""Preemption: which of all active jobs run, by rank; `Feasible`, and the old `QuotaWalk`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.cluster.free import NOBODY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.reference.rules import Rule
    from windtunnel.sim.reference.state import State


class Feasible:
    """Nobody is stopped for a job that then does not start.

    In rank order, a job that does not fit is tried without the running jobs ranked below it, lowest
    first, until it really fits; then those it does not need, highest first, have their places back.
    All of it is tentative until the walk is over: a stopped job is considered again at its own
    rank, and one that gets its place back was never stopped. Under quotas not all give way for
    everybody. So whoever was refused is tried again when a job behind has stopped others, as they
    may leave more than it needs, or has let its queue borrow, as jobs of that may give way then.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self._free: Any = None
        self._spare = 0
        self._stopped: set[int] = set()
        self._chosen: dict[int, Where] = {}

    def walk(self, rule: Rule) -> list[int]:
        """Choose who runs, and let it be so.

        Args:
            rule: who starts and queues jobs, and says whether the walk goes on past one that cannot
                be chosen. A class of which one cannot is not tried again in this walk.

        Returns:
            The first job that cannot be chosen, where the walk ends there, and all others that wait
            now, in their order.
        """
        state = self.state
        self._free, self._spare = state.free.copy(), state.spare
        self._stopped, self._chosen = set(), {}
        ranked = rule.ranked([*state.running, *state.waiting])
        with state.trying_quotas():
            first = self._choose(ranked, past_refused=rule.past_refused)
        _stop(rule, self._stopped)
        for job, where in self._chosen.items():
            rule.start(job, where)
        if first is None:
            return []
        return [first, *(job for job in rule.waiting() if job != first)]

    def _choose(self, ranked: list[int], *, past_refused: bool) -> int | None:
        """Choose who runs; return the first that cannot, where the walk ends there."""
        state, stopped = self.state, self._stopped
        refused: set[int] = set()
        ahead = 0
        while ahead < len(ranked):
            job, ahead = ranked[ahead], ahead + 1
            if job in self._chosen or (job in state.running and job not in stopped):
                continue
            if self._resumes(job):
                continue
            below = [j for j in ranked[ahead:] if j in state.running and j not in stopped]
            is_out = state.class_of[job] in refused
            before = stopped.copy()
            where = None if is_out else self._fit_by_stopping(job, below)
            if where is not None:
                more = stopped - before
                borrows = not self._resumes(job) and self._take(job, where)
                if state.quotas is not None and (more or borrows):
                    refused.clear()
                    ahead = 0
                continue
            refused.add(state.class_of[job])
            is_over = not past_refused if is_out else self._is_over(job, below)
            if is_over and state.blocks:
                return None
            if not is_over and not past_refused:
                return job
        return None

    def _resumes(self, job: int) -> bool:
        """Let a stopped job have its place back if that is free; return whether it has."""
        if job not in self._stopped or not self._is_free(job):
            return False
        self._take_back(job)
        self._stopped.remove(job)
        return True

    def _take(self, job: int, where: Where) -> bool:
        """Choose a job for a place; return whether its queue borrows with it."""
        quotas = self.state.quotas
        self._free.take(where, self.state.demand[job])
        self._spare -= self.state.draw(job, where)
        self._chosen[job] = where
        if quotas is None:
            return False
        quotas.begin(job, where)
        return quotas.borrows(job, where)

    def _fit_by_stopping(self, job: int, below: list[int]) -> Where | None:
        """Return where a job goes, the jobs below it that must be gone added to those stopped.

        None = nowhere, all as before.
        """
        given: list[int] = []
        where = self._fit(job)
        for victim in self._in_turn(job, below):
            if where is not None:
                break
            given.append(victim)
            self._give(victim)
            where = self._fit(job)
        if where is None:
            for victim in given:
                self._take_back(victim)
            return None
        for victim in reversed(given):
            self._take_back(victim)
            if self._fit(job) is None:
                self._give(victim)
                self._stopped.add(victim)
                if self.state.recorder is not None:
                    self.state.recorder.causer[victim] = job
        return self._fit(job)

    def _in_turn(self, job: int, below: list[int]) -> Iterator[int]:
        """Yield who may be asked to give way for a job, the lowest rank first.

        Under quotas first those of other queues that use more than their nominal quota, each as
        long as it does.
        """
        quotas = self.state.quotas
        if quotas is None:
            yield from reversed(below)
            return
        queue = quotas.queue
        for victim in reversed(below):
            if queue[victim] != queue[job] and quotas.may_give_way(job, victim):
                yield victim
        yield from (victim for victim in reversed(below) if queue[victim] == queue[job])

    def _is_over(self, job: int, below: list[int]) -> bool:
        """Return whether a job would wait for quota though all gave way who may."""
        quotas = self.state.quotas
        if quotas is None:
            return False
        with quotas.without_below(job, below):
            return quotas.is_over(job)

    def _fit(self, job: int) -> Where | None:
        where, lacks_power = self.state.search(job, self._free, self.state.now, self._spare)
        self.state.capped |= lacks_power
        return where

    def _is_free(self, job: int) -> bool:
        """Return whether the place that a stopped job had is free."""
        state, free = self.state, self.state.opened(self._free, job)
        enough = state.watts is None or state.floors[job] <= self._spare
        if state.quotas is not None and job in state.quotas.used:
            enough = enough and state.quotas.allows(job, *state.quotas.used[job])
        return enough and bool(free.fits(state.running[job].where, state.demand[job]))

    def _give(self, job: int) -> None:
        self._free.give(self.state.running[job].where, self.state.demand[job])
        self._spare += self.state.floors.get(job, 0)
        if self.state.quotas is not None:
            self.state.quotas.lift(job)

    def _take_back(self, job: int) -> None:
        self._free.take(self.state.running[job].where, self.state.demand[job])
        self._spare -= self.state.floors.get(job, 0)
        if self.state.quotas is not None:
            self.state.quotas.put(job)


class QuotaWalk:
    """Give out the cluster's GPUs, and its power, in rank order as a quota.

    A job within what is left of the quota is chosen; past one that is not, ``skip`` goes on and
    ``strict`` stops. Running jobs not chosen are preempted, chosen running jobs stay where they
    are, chosen waiting jobs are placed in rank order; one that fragmentation keeps out waits, its
    quota unused at this decision.
    """

    def __init__(self, state: State) -> None:
        self.state = state

    def walk(self, rule: Rule) -> list[int]:
        """Choose who runs, and let it be so; see `Feasible.walk`."""
        state = self.state
        left, power = self._left(), state.budget
        chosen: set[int] = set()
        to_start: list[int] = []
        for job in rule.ranked([*state.running, *state.waiting]):
            groups = (*state.access[job], NOBODY)
            has_quota = state.gpus[job] <= sum(left.get(group, 0) for group in groups)
            draw = self._least_draw(job)
            lacks_power = draw > max(power, 0)
            state.capped |= lacks_power and has_quota
            if has_quota and not lacks_power:
                power -= draw
                self._use(left, groups, state.gpus[job])
                chosen.add(job)
                if job in state.waiting:
                    to_start.append(job)
            elif not rule.past_refused:
                break
        stopped = state.running.keys() - chosen
        if state.recorder is not None and to_start:
            state.recorder.causer |= dict.fromkeys(stopped, to_start[0])
        _stop(rule, stopped)
        for job in to_start:
            where, lacks_power = state.search(job, state.free, state.now, state.spare)
            state.capped |= lacks_power
            if where is not None:
                rule.start(job, where)
        return []

    def _least_draw(self, job: int) -> int:
        state = self.state
        if state.watts is None:
            return 0
        return state.floors[job] if job in state.running else state.watts.least_floor(job)

    def _left(self) -> dict[int, int]:
        """Return GPU units that are up: of each reservation, and those that are nobody's own."""
        state, left = self.state, dict[int, int]()
        withheld = {} if state.problem.is_pool else state.free.withheld
        owners = {node: groups[0] for node, groups in withheld.items() if NOBODY not in groups}
        for node, group in owners.items():
            left[group] = left.get(group, 0) + state.free.free_units(node)
        for job, stay in state.running.items():
            for node, grant in stay.where:
                if owners.get(node) in state.access[job]:
                    left[owners[node]] += state.problem.units_of(state.demand[job], grant)
        left[NOBODY] = state.problem.quota - state.down - sum(left.values())
        return left

    def _use(self, left: dict[int, int], groups: Sequence[int], need: int) -> None:
        """Let a chosen job use what is left, of its reservations first."""
        for group in groups:
            used = min(need, left.get(group, 0))
            left[group] = left.get(group, 0) - used
            need -= used


def _stop(rule: Rule, jobs: Collection[int]) -> None:
    """Preempt running jobs, in order of start; they wait with the keys that they have."""
    for job in [job for job in rule.state.running if job in jobs]:
        if rule.state.recorder is not None:
            rule.state.recorder.preempted(job)
        rule.state.preempt(job)
