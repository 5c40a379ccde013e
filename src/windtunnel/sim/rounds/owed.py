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
from windtunnel.sim.rounds.wanted import Wanted

if TYPE_CHECKING:
    from windtunnel.sim.rounds.contract import Allocator, Rules, Work
    from windtunnel.sim.rounds.record import Spot

#: A job and `ALONE`, or two jobs that share GPUs.
_Unit: TypeAlias = tuple[int, int]
#: A unit that is to run, and its GPU type.
_Pick: TypeAlias = tuple[_Unit, int]


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
        self.partner = np.full(work.num_jobs, ALONE)
        self.running: dict[_Unit, int] = {}
        self.here = np.zeros(work.num_jobs + 1, bool)  # the last is nobody's, found by `ALONE`
        self.here[ALONE] = True
        self.active = np.empty(0, int)
        self.arrived = 0
        self.now = 0.0
        self.changed = False
        self.members = np.empty((0, 2), int)
        self.share = np.empty((0, work.num_types))
        self.owed = np.empty((0, work.num_types))
        self.row_of = np.full(work.num_jobs, -1)
        self.pair_at: dict[_Unit, int] = {}
        self.wanted = Wanted.of(self.members, self.share, work.gangs)
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
            self.here[self.arrived] = True
            self.arrived += 1
            self.changed = True

    def _decide(self) -> None:
        decision = self.allocate(self.now, self.active, self._steps_left())
        self.log.solves += 1
        # A blind policy may give a job a share where it cannot run: that is nobody's.
        share = np.where(self.work.runnable(decision.members), decision.shares, 0.0)
        self._carry_over(decision.members, share)
        self.members, self.share = decision.members, share
        self.wanted = Wanted.of(self.members, share, self.work.gangs)
        running = self.active[self.kind_of[self.active] >= 0]
        self.unit_on[running] = self.row_of[running]
        for job in running[self.partner[running] != ALONE].tolist():
            self.unit_on[job] = self._row_of(job)
        self.changed = False

    def _carry_over(self, members: np.ndarray, share: np.ndarray) -> None:
        """Let the units of a new decision be owed what they were owed before."""
        owed = np.zeros_like(share)
        alone = (members[:, 1] == ALONE).nonzero()[0]
        before = self.row_of[members[alone, 0]]
        owed[alone[before >= 0]] = self.owed[before[before >= 0]]
        pairs = (members[:, 1] != ALONE).nonzero()[0]
        pair_at = {(a, b): at for (a, b), at in zip(members[pairs].tolist(), pairs, strict=True)}
        for unit in pair_at.keys() & self.pair_at.keys():
            owed[pair_at[unit]] = self.owed[self.pair_at[unit]]
        owed[share <= 0] = 0.0  # what is no longer wanted is not owed
        self.owed, self.pair_at = owed, pair_at
        self.row_of[:] = -1
        self.row_of[members[alone, 0]] = alone

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
        chosen = self._due(left, placed, within=False)
        chosen += self._leftovers(left, placed)
        if dict(chosen) != self.running:
            self._rearrange(chosen)
        if not self.log.spots and self.arrived >= self.work.num_jobs:
            message = "gives no job a GPU that it can use, and nothing will change"
            raise PolicyError(
                self.rules.label, message, time=self.now, job=self.work.names[self.active[0]]
            )

    def _rearrange(self, chosen: list[_Pick]) -> None:
        """Let the chosen units run and no others; those that run already are not touched."""
        changed = [(unit, kind) for unit, kind in chosen if self.running.get(unit) != kind]
        kept = set(chosen)
        leaving = [unit for unit, kind in self.running.items() if (unit, kind) not in kept]
        hosts = self._hosts(changed)
        staying = {
            job
            for (unit, _), host in zip(changed, hosts, strict=True)
            if host != ALONE
            for job in (host, int(self.partner[host]))
            if job in unit
        }
        for unit in leaving:
            for job in unit:
                if job != ALONE and job not in staying:
                    self._stop(job)
        moved = []
        for (unit, kind), host in zip(changed, hosts, strict=True):
            if host == ALONE:
                moved.append((unit, kind))
            else:
                self._go_on(unit, self.log.spots[host])
        moved.sort(key=lambda pick: -int(self.work.gangs[pick[0][0]]))
        for unit, kind in moved:
            self._start(unit, kind)

    def _hosts(self, chosen: list[_Pick]) -> list[int]:
        """Return for each unit that is new the job of it that keeps its GPUs, `ALONE` = none does.

        Of two jobs that part, the first chosen keeps the GPUs; of two that join, the first.
        """
        spots = self.log.spots
        taken: set[int] = set()
        hosts = []
        for unit, kind in chosen:
            host = ALONE
            for job in unit:
                spot = spots.get(job)
                if spot is None or spot.kind != kind:
                    continue
                if int(self.partner[job]) not in taken:
                    host = job
                    taken.add(job)
                    break
            hosts.append(host)
        return hosts

    def _due(self, left: list[int], placed: set[int], *, within: bool) -> list[_Pick]:
        """Return the units that shares let run on what is left, most owed first.

        Args:
            left: GPUs of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
            within: whether the round has begun: jobs that run stay, and there are no new pairs.
        """
        want = self.wanted
        able = self.here[want.one] & self.here[want.other]
        if within:
            able &= (want.other == ALONE) & (self.kind_of[want.one] < 0)
            able &= want.gangs <= np.array(left)[want.kinds]
        rows = want.most_owed_first(able.nonzero()[0], self.owed, self.rules.length)
        chosen = []
        columns = (want.one, want.other, want.kinds, want.gangs)
        for one, other, kind, gang in zip(*(c[rows].tolist() for c in columns), strict=True):
            if gang > left[kind] or one in placed or other in placed:
                continue
            left[kind] -= gang
            placed.add(one)
            if other != ALONE:
                placed.add(other)
            chosen.append(((one, other), kind))
        return chosen

    def _leftovers(self, left: list[int], placed: set[int]) -> list[_Pick]:
        """Return waiting jobs for GPUs that nobody is owed, each on the best type with room.

        Args:
            left: GPUs of each type; what is chosen is taken from it.
            placed: jobs that have GPUs; those chosen are added.
        """
        if self.rules.in_turn or not any(left) or len(placed) == len(self.active):
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
        chosen = self._due(left, placed, within=True)
        chosen += self._leftovers(left, placed)
        for unit, kind in chosen:
            self._start(unit, kind)

    def _start(self, unit: _Unit, kind: int) -> None:
        """Let a unit begin a stay, unless it would be spread and cannot run so."""
        spot = self.places.place(kind, int(self.work.gangs[unit[0]]))
        if min(self._speeds(unit, spot)) > 0:
            self.places.take(spot)
            self._go_on(unit, spot)

    def _go_on(self, unit: _Unit, spot: Spot) -> None:
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
        for job in jobs:
            self.running.pop((job, ALONE), None)
        self.running[unit] = spot.kind
        for job, mate in ((one, other), (other, one)):
            if job != ALONE:
                self.partner[job], self.kind_of[job] = mate, spot.kind
                self.held[job] = self.work.gangs[job] / len(jobs)
                self.unit_on[job] = self._row_of(job)

    def _row_of(self, job: int) -> int:
        """Return the row of the unit that pays for a running job, -1 = none does."""
        mate = int(self.partner[job])
        if mate == ALONE:
            return int(self.row_of[job])
        return self.pair_at.get((job, mate), -1)  # the first of a pair pays for both

    def _speeds(self, unit: _Unit, spot: Spot) -> list[float]:
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
        mate = int(self.partner[job])
        if mate == ALONE:
            self.places.give(self.log.spots[job])
            del self.running[job, ALONE]
        else:
            self.running.pop((job, mate), None)
            self.running.pop((mate, job), None)
            self.running[mate, ALONE] = self.log.spots[job].kind
            self.partner[mate] = self.partner[job] = ALONE
        self.kind_of[job] = self.unit_on[job] = -1

    def _finish(self, done: np.ndarray) -> None:
        """End jobs; a partner goes on alone on the same GPUs."""
        mates = self.partner[done].tolist()
        for job in done.tolist():
            self.left[job], self.ends[job], self.speed[job] = 0.0, math.inf, 0.0
            self._leave(job)
            self.log.finish(job, self.now)
        for mate in mates:
            if mate in self.log.spots:
                self._go_on((mate, ALONE), self.log.spots[mate])
        if len(done):
            self.here[done] = False
            self.active = self.active[self.here[self.active]]
            self.changed = True
