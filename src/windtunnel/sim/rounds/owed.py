"""The round mechanism by seconds owed: our default.

Each unit (a job, or two that share GPUs) is owed its share of the time of each GPU type, less what
it had: the deficits of Narayanan et al., OSDI'20, section 5, kept across decisions, so that
deciding anew in every round starves nobody whose share is small. At each boundary all units
are chosen anew: those owed most by the end of the round first, each on the type where it is owed
most; GPUs that nobody is owed go to waiting jobs on the types that suit them best. A unit never
owes more than a round: GPUs that nobody else wanted are not held against it.

Unlike the published mechanism (`windtunnel.sim.rounds.published`), shares are decided on at every
boundary after a change, no job holds GPUs without running, GPUs are free the moment a job is done,
and waiting jobs take them at once; moving or going on costs `Rules.overhead`; gangs that are
spread over nodes run at the speeds measured so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from windtunnel.errors import PolicyError
from windtunnel.sim.rounds.contract import ALONE
from windtunnel.sim.rounds.places import Places
from windtunnel.sim.rounds.record import RoundLog

if TYPE_CHECKING:
    from windtunnel.sim.rounds.contract import Allocator, Rules, Work
    from windtunnel.sim.rounds.record import Spot

#: A unit that is to run, and its GPU type.
_Pick: TypeAlias = tuple[tuple[int, int], int]


def fly_by_owed_time(work: Work, allocate: Allocator, rules: Rules) -> RoundLog:
    """Run the jobs in rounds, by seconds owed.

    Args:
        work: jobs and GPUs.
        allocate: decides on shares.
        rules: the options; those of the published mechanism are not looked at.

    Raises:
        PolicyError: the shares let no job run, and nothing will change.
    """
    return _Flight(work, allocate, rules).run()


class _Flight:
    """One run's state.

    A running job's progress is kept as the instant from which it gets on, the steps it had left
    then, and its speed: a stay that goes on for many rounds ends exactly when it should.
    """

    def __init__(self, work: Work, allocate: Allocator, rules: Rules) -> None:
        self.work, self.allocate, self.rules = work, allocate, rules
        self.log = RoundLog(work)
        self.places = Places(work)
        self.left = work.steps.astype(float).copy()
        self.since, self.speed = np.zeros(work.num_jobs), np.zeros(work.num_jobs)
        self.ends = np.full(work.num_jobs, math.inf)
        self.partner: dict[int, int] = {}
        self.active = np.empty(0, int)
        self.arrived = 0
        self.now = 0.0
        self.changed = False
        self.members = np.empty((0, 2), int)
        self.share = np.empty((0, work.num_types))
        self.owed = np.empty((0, work.num_types))
        self.unit_at: dict[tuple[int, int], int] = {}
        self.kind_of = np.full(work.num_jobs, -1)
        self.unit_on = np.full(work.num_jobs, -1)
        self.held = np.zeros(work.num_jobs)
        best = work.speeds.max(axis=1, keepdims=True)
        self.fitness = work.speeds / np.where(best > 0, best, 1.0)

    def run(self) -> RoundLog:
        stop_after = self.rules.stop_after
        wanted = np.arange(self.work.num_jobs) if stop_after is None else stop_after
        while np.isnan(self.log.end[wanted]).any() and self.now < self.rules.until:
            if not len(self.active):
                self._go_to(min(self.rules.until, float(self.work.submit[self.arrived])))
                if self.now >= self.rules.until:
                    break
            self._admit()
            if self.changed:
                self._decide()
            self._begin_round()
            self._until(min(self.now + self.rules.length, self.rules.until), wanted)
        self.log.stopped_at = self.now
        return self.log

    def _until(self, boundary: float, wanted: np.ndarray) -> None:
        """Run to the round's end, or until nobody is left."""
        while self.now < boundary:
            arrival = math.inf
            if self.arrived < self.work.num_jobs:
                arrival = float(self.work.submit[self.arrived])
            ending = float(self.ends[self.active].min(initial=math.inf))
            if min(arrival, ending) > boundary:
                self._go_to(boundary)
                return
            self._go_to(min(arrival, ending))
            done = self.active[self.ends[self.active] <= self.now]
            self._finish(done)
            if len(done) and not np.isnan(self.log.end[wanted]).any():
                return
            self._admit()
            if not len(self.active) or self.now >= boundary:
                return
            self._fill()

    def _go_to(self, when: float) -> None:
        """Move the clock, and book what is owed and what was had until then."""
        when = max(when, self.now)
        seconds = when - self.now
        if seconds > 0:
            self.owed += self.share * seconds
            running = self.active[self.kind_of[self.active] >= 0]
            kinds, units = self.kind_of[running], self.unit_on[running]
            self.log.gpu_time[running] += seconds * self.held[running]
            self.log.type_time[running, kinds] += seconds
            owed = units >= 0
            self.owed[units[owed], kinds[owed]] -= seconds
            np.maximum(self.owed, -self.rules.length, out=self.owed)
        self.now = when

    def _admit(self) -> None:
        while self.arrived < self.work.num_jobs and self.work.submit[self.arrived] <= self.now:
            self.active = np.append(self.active, self.arrived)
            self.arrived += 1
            self.changed = True

    def _decide(self) -> None:
        decision = self.allocate(self.now, self.active, self._steps_left())
        self.log.solves += 1
        before = {unit: self.owed[at] for unit, at in self.unit_at.items()}
        self.members = decision.members
        # A blind policy may give a job a share where it cannot run: that is nobody's.
        self.share = np.where(self.work.runnable(self.members), decision.shares, 0.0)
        self.unit_at = {(a, b): at for at, (a, b) in enumerate(self.members.tolist())}
        self.owed = np.zeros_like(self.share)
        for unit, at in self.unit_at.items():
            if unit in before:
                self.owed[at] = before[unit]
        self.owed[self.share <= 0] = 0.0  # what is no longer wanted is not owed
        for job in self.log.spots:
            self._bind(job)
        self.changed = False

    def _steps_left(self) -> np.ndarray:
        """Return the steps left now; running jobs' stays are not touched."""
        ran = np.maximum(0.0, self.now - self.since) * self.speed
        left: np.ndarray = np.maximum(0.0, self.left - ran)
        return left

    def _begin_round(self) -> None:
        """Choose who runs in the round, and move jobs accordingly."""
        self.log.rounds += 1
        left: list[int] = self.work.num_gpus.tolist()
        placed: set[int] = set()
        chosen = self._due(left, placed, pairs=True)
        chosen += self._leftovers(left, placed)
        hosts = self._hosts(chosen)
        same = [self.partner.get(unit[0], ALONE) == unit[1] for unit, _ in chosen]
        staying = {
            job
            for unit, host in zip(chosen, hosts, strict=True)
            if host != ALONE
            for job in (host, self.partner.get(host, ALONE))
            if job in unit[0]
        }
        for job in [job for job in self.log.spots if job not in staying]:
            self._stop(job)
        moved = []
        for (unit, kind), host, alike in zip(chosen, hosts, same, strict=True):
            if host == ALONE:
                moved.append((unit, kind))
            elif not alike:
                self._go_on(unit, self.log.spots[host])
        moved.sort(key=lambda pick: -int(self.work.gangs[pick[0][0]]))
        for unit, kind in moved:
            self._start(unit, kind)
        if not self.log.spots and self.arrived >= self.work.num_jobs:
            message = "gives no job a GPU that it can use, and nothing will change"
            raise PolicyError(
                self.rules.label, message, time=self.now, job=self.work.names[self.active[0]]
            )

    def _hosts(self, chosen: list[_Pick]) -> list[int]:
        """Return for each chosen unit the job of it that keeps its GPUs, `ALONE` = none does.

        Of two jobs that part, the first chosen keeps the GPUs; of two that join, the first.
        """
        spots, partner = self.log.spots, self.partner
        taken: set[int] = set()
        hosts = []
        for unit, kind in chosen:
            host = ALONE
            for job in unit:
                spot = spots.get(job)
                mate = partner.get(job, ALONE)
                if spot is not None and spot.kind == kind and mate not in taken:
                    host = job
                    taken.add(job)
                    break
            hosts.append(host)
        return hosts

    def _due(self, left: list[int], placed: set[int], *, pairs: bool) -> list[_Pick]:
        """Return the units that shares let run on what is left, most owed first.

        Args:
            left: GPUs of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
            pairs: whether pairs may be chosen, too.
        """
        units, kinds = np.nonzero(self.share > 0)
        if not pairs:
            alone = self.members[units, 1] == ALONE
            units, kinds = units[alone], kinds[alone]
        worth = (self.owed[units, kinds] + self.share[units, kinds] * self.rules.length).round(6)
        order = np.lexsort((kinds, units, -self.share[units, kinds], -worth))
        members, gangs = self.members.tolist(), self.work.gangs
        here = {*self.active.tolist(), ALONE}
        chosen = []
        for at in order.tolist():
            one, other = members[units[at]]
            kind, gang = int(kinds[at]), int(gangs[one])
            if one in placed or other in placed or gang > left[kind]:
                continue
            if one not in here or other not in here:
                continue
            left[kind] -= gang
            placed.update(job for job in (one, other) if job != ALONE)
            chosen.append(((one, other), kind))
        return chosen

    def _leftovers(self, left: list[int], placed: set[int]) -> list[_Pick]:
        """Return waiting jobs for GPUs that nobody is owed, each on the best type with room.

        Args:
            left: GPUs of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
        """
        if self.rules.in_turn or not any(left):
            return []
        rows = np.array([job for job in self.active.tolist() if job not in placed], int)
        fitness = self.fitness[rows]
        if self.rules.blind:
            fitness = (fitness > 0) * np.array(left, float)
        who, kinds = np.nonzero(fitness > 0)
        order = np.lexsort((kinds, rows[who], -fitness[who, kinds]))
        chosen = []
        for at in order.tolist():
            job, kind = int(rows[who[at]]), int(kinds[at])
            gang = int(self.work.gangs[job])
            if job in placed or gang > left[kind]:
                continue
            left[kind] -= gang
            placed.add(job)
            chosen.append(((job, ALONE), kind))
        return chosen

    def _fill(self) -> None:
        """Let waiting jobs have GPUs that came free within the round."""
        left = self.places.left.tolist()
        if not any(left) or len(self.log.spots) == len(self.active):
            return
        placed = set(self.log.spots)
        chosen = self._due(left, placed, pairs=False)
        chosen += self._leftovers(left, placed)
        for unit, kind in chosen:
            self._start(unit, kind)

    def _start(self, unit: tuple[int, int], kind: int) -> None:
        """Let a unit begin a stay, unless it would be spread and cannot run so."""
        spot = self.places.place(kind, int(self.work.gangs[unit[0]]))
        if min(self._speeds(unit, spot)) > 0:
            self.places.take(spot)
            self._go_on(unit, spot)

    def _go_on(self, unit: tuple[int, int], spot: Spot) -> None:
        """Let a unit have a place, which the jobs that are there do not leave."""
        one, other = unit
        jobs = [one] if other == ALONE else [one, other]
        for job, speed in zip(jobs, self._speeds(unit, spot), strict=True):
            if job not in self.log.spots:
                wait = self.rules.overhead if self.log.has_run(job) else 0.0
                self.log.start(job, self.now, spot)
                self._run(job, speed, self.now + wait)
            elif speed != self.speed[job]:
                self._halt(job)
                self._run(job, speed, max(self.now, float(self.since[job])))
        for job, mate in ((one, other), (other, one)):
            if job != ALONE:
                self.partner[job] = mate
        for job in jobs:
            self._bind(job)

    def _bind(self, job: int) -> None:
        """Note for the books what a running job holds, and which unit pays for it."""
        spot, mate = self.log.spots[job], self.partner.get(job, ALONE)
        self.kind_of[job] = spot.kind
        self.held[job] = self.work.gangs[job] / (1 if mate == ALONE else 2)
        # The first of a pair pays for both.
        self.unit_on[job] = self.unit_at.get((job, mate), -1)

    def _speeds(self, unit: tuple[int, int], spot: Spot) -> list[float]:
        one, other = unit
        if other != ALONE:
            both = self.work.unit_speeds(np.array([unit]))[0, spot.kind]
            return [float(speed) for speed in both]
        table = self.work.spread_speeds if len(spot.nodes) > 1 else self.work.speeds
        return [float(table[one, spot.kind])]

    def _run(self, job: int, speed: float, since: float) -> None:
        self.since[job], self.speed[job] = since, speed
        self.ends[job] = since + self.left[job] / speed if speed > 0 else math.inf

    def _halt(self, job: int) -> None:
        """Write down what a job did; it keeps its GPUs, and what it still owes for resuming."""
        ran = self.now - self.since[job]
        if ran > 0:
            self.left[job] = max(0.0, self.left[job] - ran * self.speed[job])
            self.since[job] = self.now
        self.speed[job], self.ends[job] = 0.0, math.inf

    def _stop(self, job: int) -> None:
        """Take a job off its GPUs."""
        self._halt(job)
        self._leave(job)
        self.log.stop(job, self.now)

    def _leave(self, job: int) -> None:
        """Give back a job's GPUs, unless another has them, too."""
        mate = self.partner.pop(job, ALONE)
        if mate == ALONE:
            self.places.give(self.log.spots[job])
        else:
            self.partner[mate] = ALONE
        self.kind_of[job] = self.unit_on[job] = -1

    def _finish(self, done: np.ndarray) -> None:
        """End jobs; a partner goes on alone on the same GPUs."""
        mates = [self.partner.get(job, ALONE) for job in done.tolist()]
        for job in done.tolist():
            self.left[job], self.ends[job], self.speed[job] = 0.0, math.inf, 0.0
            self._leave(job)
            self.log.finish(job, self.now)
        for mate in mates:
            if mate in self.log.spots:
                self._go_on((mate, ALONE), self.log.spots[mate])
        if len(done):
            self.active = self.active[~np.isin(self.active, done)]
            self.changed = True
