"""Conservative backfilling: every waiting job is promised a start; promises only move earlier.

A job is promised the earliest start that delays nobody who was promised one before. Whenever there
may be more capacity than was known (a job left, a node or power came back, an expected end moved)
all are promised anew in the queue's order, each with its own promise lifted first, again and again
until nothing moves. Where a promise's place is gone, because a job runs on past its expected end, a
node is lost or preemption took it, it is made anew, perhaps later; the others stand.

Where a policy preempts, promises are made around a plan for the first job that cannot start.

Who has to wait for quota (`windtunnel.sim.quota_books`) holds no promise: it is lifted,
and made anew once the quota suffices again.

A start may be promised for a time at which nothing else happens; ``alarms`` has the next one. What
waits for a job that runs on past its expected end rings no alarm: that job's end is an event. Nor
does the head where it could preempt others as soon as they have started: nothing is new just after.
"""

from __future__ import annotations

import bisect
import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from windtunnel.sim.reference.easy import Backfilling

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where


#: Seconds that a waiting job is expected to run at least: jobs whose estimates are used up would
#: be promised one float after the other behind one that runs on past its own.
LEAST_TIME = 1.0


class Promise(NamedTuple):
    """A job starts at ``start`` (s) on ``where``, and ends at ``stop``."""

    start: float
    where: Where
    stop: float


class Plan(NamedTuple):
    """When the head of a preemptive policy's queue starts, and who is stopped for it then."""

    head: int
    promise: Promise
    giving: tuple[int, ...]


class Profile:
    """What is expected to be free, and drawn, from now on: a step function of time.

    A job must have its place for all of its time. Power is looked at where somebody starts: the
    job's own, and that of each who was promised to meanwhile, must be there beside all others'
    under the cap that holds then. A cap that falls later stops jobs when it does.
    """

    def __init__(self, rule: Conservative, plan: Plan | None) -> None:
        self.rule, self.state = rule, rule.state
        now = self.state.now
        self.times, self.frees = [now], [self.state.free.copy()]
        self.drawn = [self.state.floor_sum()]
        self.begins = [0]  # how many are promised to start at each step
        stops = {} if plan is None else dict.fromkeys(plan.giving, plan.promise.start)
        events = [
            (stops.get(what, time) if kind == "end" else time, kind, what)
            for time, kind, what in rule.events(overdue=math.nextafter(now, math.inf))
        ]
        for time, kind, what in sorted(events, key=itemgetter(0)):
            step = self._step(time)
            self.drawn[step] -= rule.apply(self.frees[step], kind, what)
        if plan is not None:
            self.change(plan.head, plan.promise, 1)

    def forget(self, now: float) -> None:
        """Drop what lies before ``now`` (s)."""
        first = bisect.bisect_right(self.times, now) - 1
        del self.times[:first], self.frees[:first], self.drawn[:first], self.begins[:first]
        self.times[0] = now

    def change(self, job: int, promise: Promise, sign: int) -> None:
        """Take (1) what a job is promised, or give it back (-1)."""
        if promise.start == math.inf:
            return
        first, stop = self._step(promise.start), self._step(promise.stop)
        self.begins[first] += sign
        draw = self.state.draw(job, promise.where)
        for step in range(first, stop):
            free = self.frees[step]
            (free.take if sign > 0 else free.give)(promise.where, self.state.demand[job])
            self.drawn[step] += sign * draw

    def holds(self, job: int, promise: Promise) -> bool:
        """Return whether what a job is promised is there."""
        state = self.state
        free, spare = self._free_until(promise.stop, job, promise.start)
        enough = state.watts is None or state.draw(job, promise.where) <= spare
        return enough and bool(free.fits(promise.where, state.demand[job]))

    def earliest(self, job: int, before: float = math.inf) -> Promise:
        """Return the first start, ``before`` a time, at which a job's place stays free.

        Where there is none, it is inf.
        """
        state = self.state
        for start in self._starts():
            if start >= before:
                break
            step = bisect.bisect_right(self.times, start) - 1
            first = state.opened(self.frees[step], job)
            spare = self.rule.budget_at(start) - self.drawn[step]
            where, _ = state.search(job, first, start, spare, is_open=True)
            if where is None:
                continue
            stop = self.rule.stop_of(job, start)
            free, spare = self._free_until(stop, job, start)
            where, _ = state.search(job, free, start, spare, is_open=True)
            if where is not None:
                return Promise(start, where, stop)
        return Promise(math.inf, [], math.inf)

    def _free_until(self, stop: float, job: int, start: float) -> tuple[Any, int]:
        """Return what is free to a job from ``start`` to ``stop`` (s), and what it may draw."""
        first = bisect.bisect_right(self.times, start) - 1
        free: Any = self.state.opened(self.frees[first], job).copy()
        spare = self.rule.budget_at(start) - self.drawn[first]
        for step in range(first + 1, len(self.times)):
            if self.times[step] >= stop:
                break
            free.meet(self.state.opened(self.frees[step], job))
            if self.begins[step]:
                left = self.rule.budget_at(self.times[step]) - self.drawn[step]
                spare = min(spare, left)
        return free, spare

    def _starts(self) -> list[float]:
        """Return the instants at which there may be more capacity or power than before."""
        caps = self.rule.power.caps_after(self.times[0], self.times[-1])
        return sorted({*self.times, *(time for time, _ in caps)})

    def _step(self, time: float) -> int:
        """Return the index of the step that begins at ``time``, made where there is none."""
        index = bisect.bisect_left(self.times, time)
        if index == len(self.times) or self.times[index] != time:
            if index == 0:
                return 0  # before the first instant: nothing to tell apart
            self.times.insert(index, time)
            self.frees.insert(index, self.frees[index - 1].copy())
            self.drawn.insert(index, self.drawn[index - 1])
            self.begins.insert(index, 0)
        return index


class Conservative(Backfilling):
    """Conservative backfilling; see the module.

    Attributes:
        promised: what each waiting job is promised, where it has been.
        is_short: a job that started at the last decision is expected to end before `LEAST_TIME`,
            for which the profile still has it.
    """

    #: Of the first job that cannot start, where the policy preempts.
    plan: Plan | None = None

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.promised: dict[int, Promise] = {}
        self.is_short = False
        self._profile: Any = None  # none was made yet
        self._changes, self._wakes = -1, list[tuple[float, int]]()

    def start(self, job: int, where: Where) -> None:
        """Start a waiting job."""
        self.promised.pop(job, None)
        super().start(job, where)

    def gone(self, job: int) -> None:
        """Forget a job."""
        self.promised.pop(job, None)
        super().gone(job)

    def planned_starts(self) -> list[tuple[float, list[int]]]:
        """Return what is promised; see `Rule.planned_starts`."""
        made = (promise for promise in self.promised.values() if promise.start < math.inf)
        return [(promise.start, [node for node, _ in promise.where]) for promise in made]

    def decide(self) -> None:
        """Promise, and start what was promised for now."""
        state, now = self.state, self.state.now
        ahead = self.start_in_order() if self.walk is not None else []
        old, self.plan = self.plan, self._planned(ahead[0]) if ahead else None
        if old is not None and old != self.plan:
            self.promised.pop(old.head, None)
        if self.plan is not None:
            self.promised[self.plan.head] = self.plan.promise
        waiting = [job for job in self.waiting() if self.plan is None or job != self.plan.head]
        late = any(stay.expected <= now for stay in state.running.values())
        missed = any(promise.start < now for promise in self.promised.values())
        wakes = self.power.wakes_after(now)  # later than at the last decision, if not called
        changed = state.changes != self._changes or wakes != self._wakes or self.is_short
        changed |= self.plan != old
        self.is_short = False
        if late or missed or changed:
            self._profile = Profile(self, self.plan)
            self._promise_and_start(waiting, self._keep(waiting, now), improves=True)
        else:
            self._profile.forget(now)
            self._promise_and_start(waiting, [], improves=False)
        self._changes, self._wakes = state.changes, wakes
        soon = math.nextafter(now, math.inf)
        late |= self.plan is not None and self.plan.promise.start == soon
        soonest = soon if late else now
        coming = [promise.start for promise in self.promised.values() if promise.start > soonest]
        following = min(coming, default=math.inf)
        self.alarms[:] = [following] if following < math.inf else []

    def stop_of(self, job: int, start: float) -> float:
        """Return when a waiting job is expected to end: `LEAST_TIME` after its start, or later.

        Who is to start just after now, behind a job that is past its expected end, is expected to
        end as if it started now: else rounding would say whether that is before another's promise.
        """
        if start == math.nextafter(self.state.now, math.inf):
            start = self.state.now
        return max(self.state.planned_stop(job, start), start + LEAST_TIME)

    def _planned(self, head: int) -> Plan | None:
        """Return when the first job that cannot start does, running jobs below it giving way.

        None = it is never known to.
        """
        with self.giving_room(head) as room:
            found = self.shadow_without(room, head)
            if self.held is None:
                return None
            (shadow, _, _), giving = self.settled(head, room, found)
        start = max(shadow, math.nextafter(self.state.now, math.inf))
        return Plan(head, Promise(start, self.held, self.stop_of(head, start)), giving)

    def _promise_and_start(self, waiting: list[int], broken: list[int], *, improves: bool) -> None:
        """Promise the broken ones anew, improve all, promise those who have none; start the due.

        Under quotas until nobody else may start: each start may use up what others need.
        """
        refused = False
        while True:
            held = self._held(waiting)
            out = [job for job in waiting if job in self.promised and not self._may_keep(job, held)]
            rises = refused or any(self.promised[job].start < math.inf for job in out)
            if rises:
                never = (job for job, promise in self.promised.items() if promise.start == math.inf)
                out += [job for job in never if job not in out]
            for job in out:
                self._lift(job)
            lifted = {*broken, *out} - held
            self._promise_new([job for job in waiting if job in lifted])
            if improves or rises:
                self._improve(waiting)
            self._promise_new([job for job in waiting if job not in held])
            running = len(self.state.running)
            refused = self._start_due(waiting, held)
            if self.state.quotas is None or not (refused or len(self.state.running) > running):
                return
            waiting = [job for job in waiting if job in self.state.waiting]
            broken, improves = [], False

    def _start_due(self, waiting: list[int], held: set[int]) -> bool:
        """Start those who were promised to by now; return if quotas kept one from it."""
        state, refused = self.state, False
        for job in waiting:
            promise = self.promised.get(job)
            if promise is None:
                continue
            if state.blocks and state.is_over(job):
                self._lift(job)
                return True
            if promise.start > state.now:
                if state.watts is not None:
                    state.fit(job)  # notes whether it waits for power alone
            elif self._may_keep(job, held):
                self.start(job, promise.where)
                self.is_short |= state.running[job].expected != promise.stop
            else:
                self._lift(job)
                refused = True
        return refused

    # Quotas.

    def _held(self, waiting: list[int]) -> set[int]:
        """Return those who have to wait for quota, and where that blocks, all behind the first."""
        held = [number for number, job in enumerate(waiting) if self.state.is_over(job)]
        if held and self.state.blocks:
            return set(waiting[held[0] :])
        return {waiting[number] for number in held}

    def _may_keep(self, job: int, held: set[int]) -> bool:
        """Return whether quotas let a job keep its promise: on the GPU type that it is bound to."""
        quotas, where = self.state.quotas, self.promised[job].where
        if quotas is None:
            return True
        if job in held or self.state.is_over(job):
            return False
        if not quotas.binds or not quotas.amount[job]:
            return True
        return bool(where) and quotas.allows_on(job, where)

    def _lift(self, job: int) -> None:
        self._profile.change(job, self.promised.pop(job), -1)

    # Promises.

    def _keep(self, waiting: list[int], now: float) -> list[int]:
        """Enter the promises that can be kept into the profile; return whose were lifted."""
        broken = []
        for job in waiting:
            old = self.promised.pop(job, None)
            if old is None:
                continue
            if old.start < now:
                old = old._replace(start=now, stop=self.stop_of(job, now))
            if old.start < math.inf and self._profile.holds(job, old):
                self._promise(job, old)
            else:
                broken.append(job)
        return broken

    def _improve(self, waiting: list[int]) -> None:
        """Promise everybody anew in order, only ever earlier, until nothing moves."""
        moved = True
        while moved:
            moved = False
            for job in waiting:
                old = self.promised.get(job)
                if old is None:
                    continue
                self._profile.change(job, old, -1)
                found = self._profile.earliest(job, before=old.start)
                moved |= found.start < old.start
                self._promise(job, found if found.start < old.start else old)

    def _promise_new(self, jobs: list[int]) -> None:
        """Promise those of some jobs who have no promise the first start, in order."""
        for job in jobs:
            if job not in self.promised:
                self._promise(job, self._profile.earliest(job))

    def _promise(self, job: int, promise: Promise) -> None:
        self.promised[job] = promise
        self._profile.change(job, promise, 1)
