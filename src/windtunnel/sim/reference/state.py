"""`State`: who runs where since when; changed only through `begin`, `leave` and `rerate`.

Jobs are known by their arrival number (`windtunnel.sim.problem`). Everything that takes a job off
its GPUs (`finish`, `preempt`, `interrupt`, `pause`, `move`) is a `leave` and some book-keeping.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.devices import MILLI
from windtunnel.cluster.free import EVERY_NODE, NOBODY
from windtunnel.sim.disruptions.plan import failed_in_vain
from windtunnel.sim.elastic.nodes import FreeShares
from windtunnel.sim.jobs import JobView
from windtunnel.sim.reference.progress import Checkpoints, Place, Stay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.disruptions.plan import Hold, Plan
    from windtunnel.sim.elastic.scores import Elastic
    from windtunnel.sim.neighbours import Pace
    from windtunnel.sim.power.watts import Watts
    from windtunnel.sim.problem import Problem

#: Failures in a row in which a job saves nothing, after which it never will.
MAX_VAIN_FAILURES = 10_000


class State:
    """The tables of a run.

    Args:
        problem: jobs and cluster.
        placement: where jobs go.
        overhead: seconds that each job pays when it resumes, shape (m,).
        plan: outages, checkpoints and reservations; None = none.
        pace: what slows jobs (`windtunnel.sim.neighbours`); None = nothing.
        watts: what jobs draw, under a power cap; None = there is none.
        elastic: the options of the jobs of an elastic run; None = it is none.
        plans: the rule plans with estimates: nobody starts where a planned hold comes before.
        watcher: the policy that is told who starts and stops; None = it need not be.
    """

    def __init__(
        self, problem: Problem, placement: Placement, *, overhead: Sequence[float],
        plan: Plan | None = None, pace: Pace | None = None, watts: Watts | None = None,
        elastic: Elastic | None = None, plans: bool = False, watcher: Policy | None = None,
    ) -> None:  # fmt: skip
        count = len(problem.rows)
        self.problem, self.placement, self.plan, self.pace = problem, placement, plan, pace
        self.watts, self.plans, self.watcher = watts, plans, watcher
        self.free: Any = problem.free_state()
        works = self.works = None if elastic is None else elastic.works
        if elastic is not None:
            scores = None if elastic.scores is None else elastic.scores.copy()
            self.free = FreeShares(problem.sizes.tolist(), elastic.cores, scores)
        self.demand: list[Any] = [problem.demands[c] for c in problem.demand_of.tolist()]
        self.gpus: list[int] = problem.gpus.tolist()
        self.estimate: list[float] = problem.estimate.tolist()
        self.total_work: list[float] = problem.duration.tolist()
        if works is not None:
            self.total_work = [w.iterations * w.requested.iteration_time for w in works]
        self.access = [()] * count if plan is None else plan.access
        kinds: Any = [0] * count if watts is None else watts.kind_of
        if works is not None:
            kinds = [
                (k, w.requested.shape, w.requested.num_cpus)
                for k, w in zip(kinds, works, strict=True)
            ]
        numbers: dict[Any, int] = {}
        triples = zip(problem.demand_of.tolist(), self.access, kinds, strict=True)
        #: Jobs of one class can be given the same places: what one is refused, all are.
        self.class_of = [numbers.setdefault(triple, len(numbers)) for triple in triples]
        saved = Checkpoints() if plan is None else Checkpoints(plan.interval, plan.checkpoint_cost)
        self.checkpoints = saved
        #: Work left when the job waits, or when its stay began; what it pays at its next start.
        self.left = list(self.total_work)
        self.overhead = list(overhead)
        self.owed = [0.0] * count if works is None else [work.penalty for work in works]
        self.fails_once = set() if plan is None else set(plan.fails_once)
        #: Holds that are known in advance: (time, 1 begins or 0 ends, index of the hold).
        self.planned: list[tuple[float, int, int]] = [] if plan is None else plan.changes()
        self._begin(count)

    def _begin(self, count: int) -> None:
        """Let nothing have happened yet to so many jobs."""
        self.now = -math.inf
        self.running: dict[int, Stay] = {}
        self.stays: list[Stay] = []
        #: Jobs in the queue, in order of coming.
        self.waiting: dict[int, None] = {}
        #: Heap of (due, number of the stay, entry, stay); leading entries are true ones.
        self.ends: list[tuple[float, int, int, Stay]] = []
        self.entries = 0
        self.run_before, self.preemptions, self.moves = [0.0] * count, [0] * count, [0] * count
        self.useful, self.overhead_time = [0.0] * count, [0.0] * count
        self.lost, self.slowed = [0.0] * count, [0.0] * count
        #: Some stay was at another rate than 1; (stay, the one whose place it shares).
        self.has_rates, self.company = False, list[tuple[int, int]]()
        self.failures, self.restarts, self.vain = [0] * count, [0] * count, [0] * count
        self.finished: set[int] = set()
        self.ended_failed: set[int] = set()
        self.to_restart: set[int] = set()
        #: Jobs that failed as their work was done at this instant.
        self.failed_now: list[int] = []
        #: Up to when what was planned has happened, s.
        self.happened = -math.inf
        #: Nodes that sleep, or are being woken.
        self.sleeping: set[int] = set()
        #: Jobs on each node that has any.
        self.users: dict[int, int] = {}
        self.most_in_use = 0
        #: What may be added to the draw, nanowatts; what running jobs add at least.
        self.budget, self.floors, self.floor_sum = 0, dict[int, int](), 0
        #: Somebody waits for power alone, as far as has been tried at this decision.
        self.capped = False
        #: The policy has ended the run at this instant.
        self.is_stopped = False
        #: Rises with room or power; what else a plan may rest on: ends, holds, rates.
        self.version, self.changes = 0, 0
        self._refused: dict[int, tuple[int, bool]] = {}
        self.touched: set[int] = set()
        self._views: dict[int, JobView] = {}

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""
        return len(self.gpus) - len(self.finished) - len(self.ended_failed)

    # The three changes.

    def begin(
        self, job: int, now: float, where: Where, *, rate: float = 1.0, beside: int | None = None,
        option: Any = None,
    ) -> None:  # fmt: skip
        """Put a waiting job on its nodes.

        Args:
            job: which.
            now: s.
            where: nodes and grants.
            rate: work a second there, before what slows everybody.
            beside: a running job whose place it shares.
            option: how an elastic job runs; None = as its user asked.
        """
        demand = self.demand[job]
        if self.works is not None:
            option = demand = option or self.works[job].requested
            rate = self.works[job].requested.iteration_time / option.iteration_time
        if beside is None:
            place = Place(where, demand)
            self.free.take(where, demand)
        else:
            place = self.running[beside].place
            self.company.append((len(self.stays), self.running[beside].number))
        place.jobs.append(job)
        owed, self.owed[job] = self.owed[job], 0.0
        self.has_rates |= rate != 1.0
        stay = Stay(
            job, len(self.stays), now, place, owed=owed, work=self.left[job], rate=rate,
            checkpoints=self.checkpoints, slowed=self.slowed[job],
        )  # fmt: skip
        stay.option = option
        stay.expected = now + owed + self.estimate_left(job, stay.work) / rate
        self.running[job] = stay
        self.stays.append(stay)
        self._push(stay)
        self.waiting.pop(job, None)
        self.changes += 1
        for node in {node for node, _ in place.where}:
            self.users[node] = self.users.get(node, 0) + 1
        self.most_in_use = max(self.most_in_use, len(self.users))
        if self.watts is not None:
            self._set_floor(place)
        if self.pace is not None:
            self.pace.enter(job, place.where)
        if job in self.to_restart:
            self.to_restart.remove(job)
            self.restarts[job] += 1
        if self.watcher is not None:
            view = self._view(job)
            view.running = True
            view.run_time, view.remaining = self.attained(job, now)
            self.watcher.started(view, now)

    def leave(self, job: int, now: float, *, completes: bool = False) -> Stay:
        """Take a job off its nodes; return its stay, whose last segment ends now."""
        stay = self.running.pop(job)
        stay.end = now
        if completes:
            stay.complete(now)
        else:
            stay.advance(now)
        place = stay.place
        place.jobs.remove(job)
        if not place.jobs:
            self.free.give(place.where, place.demand)
        for node in {node for node, _ in place.where}:
            self.users[node] -= 1
            if not self.users[node]:
                del self.users[node]
        if self.watts is not None:
            self.floor_sum -= self.floors.pop(job)
            self._set_floor(place)
        if self.pace is not None:
            self.pace.leave(job)
        self.touched.discard(job)
        self.run_before[job] += now - stay.start
        self.overhead_time[job] += stay.overhead(now)
        self.slowed[job] = stay.slowed
        self.version += 1
        self.changes += 1
        self._drop_stale()
        return stay

    def rerate(self, job: int, now: float, rate: float) -> None:
        """Let a running job go on at another rate."""
        stay = self.running[job]
        stay.change_rate(now, rate)
        left = self.estimate_left(job, stay.reached.left) / rate
        stay.expected = now + max(stay.resumed - now, 0.0) + left
        self.changes += 1
        self._push(stay)
        self._drop_stale()

    def set_base(self, job: int, rate: float) -> None:
        """Let a running job's rate, before what slows everybody, be another from this instant."""
        self.running[job].base = rate
        self.has_rates |= rate != 1.0
        self.touched.add(job)

    def settle(self, now: float, slow: dict[int, float], changed: Sequence[int] = ()) -> None:
        """Give every running job the rate that all that happened at an instant leaves it.

        Args:
            now: s.
            slow: running jobs at a power limit: by how much it slows them.
            changed: those for which that is new.
        """
        touched = self.touched.union(changed)
        if self.pace is not None:
            touched.update(self.pace.touched())
        self.touched = set()
        for job in sorted(touched):
            stay = self.running[job]
            rate = stay.base if self.pace is None else stay.base * self.pace.rate(job)
            rate /= slow.get(job, 1.0)
            if rate != stay.rate:
                self.rerate(job, now, rate)

    # How jobs stop.

    def finish(self, job: int, now: float) -> None:
        """Complete a running job, or let it fail at its end if it is to."""
        stay = self.leave(job, now, completes=True)
        if job in self.fails_once and self.plan is not None:
            self.fails_once.remove(job)
            self.failed_now.append(job)
            self._fail(stay, now, over=self.plan.ends)
            return
        self.useful[job] += stay.work
        self.left[job] = 0.0
        self.finished.add(job)
        self._tell_stopped(job, now, over=True)

    def preempt(self, job: int, now: float, *, counts: bool = True) -> None:
        """Take a running job off its GPUs with all its work saved; it waits."""
        self._save(self.leave(job, now), self.overhead[job])
        self.preemptions[job] += counts
        self.waiting[job] = None
        self._tell_stopped(job, now)

    def pause(self, job: int, now: float) -> None:
        """Take a running job off its GPUs, to be queued again at a better time."""
        self.preempt(job, now)
        del self.waiting[job]

    def move(
        self, job: int, now: float, where: Where, *, rate: float = 1.0, option: Any = None
    ) -> None:
        """Let a running job go on elsewhere, or in another option, which costs it its resuming."""
        self._save(self.leave(job, now), self.overhead[job])
        self._tell_stopped(job, now)
        self.moves[job] += 1
        self.begin(job, now, where, rate=rate, option=option)

    def interrupt(self, job: int, now: float, *, saves: bool, ends: bool) -> None:
        """Take a running job off its GPUs because of an outage.

        Args:
            job: which.
            now: s.
            saves: it saves all its work first, in no time; else what is not saved is lost.
            ends: it is over.
        """
        assert self.plan is not None  # noqa: S101 - there are no outages without one
        stay = self.leave(job, now)
        if saves:
            self._save(stay, self.plan.restart_cost + self.penalty(job))
            self.to_restart.add(job)
            self.ended_failed |= {job} if ends else set()
            self._tell_stopped(job, now, over=ends)
        else:
            self._fail(stay, now, over=ends)
        if not ends:
            self.waiting[job] = None

    def _save(self, stay: Stay, cost: float) -> None:
        job = stay.job
        self.left[job] = stay.reached.left
        self.useful[job] += stay.reached.done
        self.owed[job] = cost

    def _fail(self, stay: Stay, now: float, *, over: bool) -> None:
        """Book a failure: what was done since the last checkpoint is lost."""
        assert self.plan is not None  # noqa: S101 - as above
        job, kept = stay.job, stay.kept
        self.left[job] = stay.work - kept
        self.useful[job] += kept
        self.lost[job] += stay.reached.done - kept
        self.owed[job] = self.plan.restart_cost + self.penalty(job)
        self.to_restart.add(job)
        self.failures[job] += 1
        self.vain[job] = 0 if kept else self.vain[job] + 1
        if self.vain[job] > MAX_VAIN_FAILURES:
            raise failed_in_vain(self.problem, job, self.vain[job], now)
        if over:
            self.ended_failed.add(job)
        self._tell_stopped(job, now, over=over)

    def penalty(self, job: int) -> float:
        """Return what every launch costs an elastic job, s."""
        return 0.0 if self.works is None else self.works[job].penalty

    # What is known of jobs.

    def attained(self, job: int, now: float) -> tuple[float, float]:
        """Return (seconds on GPUs so far, work left) of an active job."""
        stay = self.running.get(job)
        if stay is None:
            return self.run_before[job], self.left[job]
        return self.run_before[job] + now - stay.start, stay.at(now).left

    def time_left(self, job: int, now: float) -> float:
        """Return an active job's work left with what it owes for resuming, s."""
        stay = self.running.get(job)
        if stay is None:
            return self.left[job] + self.owed[job]
        if stay.rate == 1.0:
            return stay.due - now
        return stay.at(now).left + max(stay.resumed - now, 0.0)

    def estimate_left(self, job: int, left: float) -> float:
        """Return what is left of a job's estimate while so much of its work is, s at rate 1."""
        return max(0.0, self.estimate[job] - (self.total_work[job] - left))

    def planned_stop(self, job: int, start: float) -> float:
        """Return when a job is expected to end that starts at ``start`` (s), or resumes then."""
        stay = self.running.get(job)
        if stay is not None:
            left = self.estimate_left(job, stay.at(self.now).left)
            return start + self.overhead[job] + left
        return start + self.owed[job] + self.estimate_left(job, self.left[job])

    # Where a job may go.

    def fit(self, job: int) -> Where | None:
        """Return where a waiting job would go now, or None: no room, or not enough power.

        A class that was refused is refused until there is more room or power; where a planned hold
        comes before a job's expected end, it is tried for itself.
        """
        alone = self.plans and bool(self.coming(job, self.now))
        version, lacks_power = self._refused.get(self.class_of[job], (-1, False))
        if version == self.version and not alone:
            self.capped |= lacks_power
            return None
        where, lacks_power = self.search(job, self.free, self.now, self.spare)
        self.capped |= lacks_power
        if where is None and not alone:
            self._refused[self.class_of[job]] = self.version, lacks_power
        return where

    def search(
        self, job: int, free: Any, at: float, spare: int, *, is_open: bool = False
    ) -> tuple[Where | None, bool]:
        """Return where a job would go, and whether power alone is lacking.

        Where the placement's choice draws too much, it is asked again among the GPU types on which
        the whole job would not.

        Args:
            job: which.
            free: what is free.
            at: when it would start, s.
            spare: nanowatts that it may add to the draw.
            is_open: what is free is what the job may use.
        """
        shown = free if is_open else self.seen(free, job, at)
        where = self.put(shown, job, self.demand_of(job))
        if where is None or self.watts is None or self.watts.floor(job, where) <= spare:
            return where, False
        cheap = self.watts.on_cheap_types(job, spare, self.demand[job])
        if cheap is None or self.works is not None:
            return None, True
        where = self.put(shown, job, cheap)
        if where is None or self.watts.floor(job, where) > spare:
            return None, True
        return where, False

    def demand_of(self, job: int) -> Any:
        """Return what a job asks for; an elastic one, the option that its user asked for."""
        return self.demand[job] if self.works is None else self.works[job].requested

    def put(self, shown: Any, job: int, demand: Any) -> Where | None:
        """Return where a demand of a job goes in what it may use, reserved nodes first."""
        if self.access[job] and shown.shown:
            inside = shown.copy()
            for node in range(len(self.problem.sizes)):
                if node not in shown.shown:
                    inside.withhold(node)
            where = self._place(inside, job, demand)
            if where is not None:
                return where
        return self._place(shown, job, demand)

    def _place(self, free: Any, job: int, demand: Any) -> Where | None:
        if self.works is not None or self.problem.devices:
            free.draws = len(self.stays)  # what is random goes by the stays begun so far
        if self.works is not None:
            allowed = getattr(self.demand[job], "allowed", EVERY_NODE)
            where: Where | None = free.place(demand, allowed)
            return where
        return self.placement.place(free, demand)

    def opened(self, free: Any, job: int) -> Any:
        """Return a free state with the job's reservations open to it."""
        return free.opened(self.access[job]) if self.access[job] else free

    def seen(self, free: Any, job: int, at: float) -> Any:
        """Return what of a free state the job may use if it starts at ``at`` (s)."""
        shown = self.opened(free, job)
        coming = self.coming(job, at) if self.plans else {}
        if coming:
            shown = shown.copy()
            for place, units in coming.items():
                shown.withhold(place, NOBODY, units)
        return shown

    def coming(self, job: int, at: float) -> dict[int, int]:
        """Return what planned holds take before the job's expected end: place -> most units."""
        if not self.planned:
            return {}
        stop, groups = self.planned_stop(job, at), self.access[job]
        taken: dict[int, int] = {}
        peak: dict[int, int] = {}
        # In a pool one hold may end before another begins; a node is taken whole by any of them.
        for time, begins, index in self.planned:
            if time <= at:
                continue
            if time >= stop:
                break
            hold = self.hold(index)
            if hold.group in groups:
                continue
            for place, units in hold.places:
                if not self.problem.is_pool:
                    peak |= {place: units} if begins else {}
                    continue
                taken[place] = taken.get(place, 0) + (units if begins else -units)
                if taken[place] > peak.get(place, 0):
                    peak[place] = taken[place]
        return peak

    def hold(self, index: int) -> Hold:
        """Return one of the plan's holds."""
        assert self.plan is not None  # noqa: S101 - asked for what the plan has
        return self.plan.holds[index]

    def units(self, demand: Any, grant: int) -> int:
        """Return the GPU units of a grant."""
        if not self.problem.devices or self.problem.pooled:
            return grant
        return grant.bit_count() * (demand.milli or MILLI)

    @property
    def down(self) -> int:
        """GPU units that nobody holds and outages keep from everybody; sleeping nodes are not."""
        asleep = (n for n in self.sleeping if self.free.withheld.get(n, ()).count(NOBODY) == 1)
        down: int = self.free.down - sum(self.free.free_units(node) for node in asleep)
        return down

    # Capacity and power; whoever gives any raises the version.

    def withhold(self, node: int, group: int = NOBODY, units: int | None = None) -> None:
        """Keep a node, or units of a pool, for a group of jobs or for nobody."""
        self.free.withhold(node, group, units)
        self.changes += 1

    def restore(self, node: int, group: int = NOBODY, units: int | None = None) -> None:
        """Undo one `withhold`."""
        self.free.restore(node, group, units)
        self.version += 1
        self.changes += 1

    def set_budget(self, budget: int) -> None:
        """Let jobs add so many nanowatts to the draw from now on."""
        self.budget = budget
        self.version += 1
        self.changes += 1

    @property
    def spare(self) -> int:
        """Nanowatts that a job may add now."""
        return max(self.budget, 0) - self.floor_sum

    def affords(self, job: int, where: Where, without: Sequence[int] = ()) -> bool:
        """Return whether there is power for a job, with the other jobs gone."""
        if self.watts is None:
            return True
        spared = sum(self.floors.get(other, 0) for other in without)
        return self.watts.floor(job, where) <= self.spare + spared

    def _set_floor(self, place: Place) -> None:
        """Count a place at the most that one of its jobs draws there, as its first job's."""
        if self.watts is None:
            return
        for number, job in enumerate(place.jobs):
            self.floor_sum -= self.floors.get(job, 0)
            floors = [self.watts.floor(other, place.where) for other in place.jobs]
            self.floors[job] = 0 if number else max(floors)
            self.floor_sum += self.floors[job]

    # Small things.

    def _push(self, stay: Stay) -> None:
        self.entries += 1
        heapq.heappush(self.ends, (stay.due, stay.number, self.entries, stay))

    def _drop_stale(self) -> None:
        """Drop leading ends of stays that are over, or that end at another time."""
        ends = self.ends
        while ends and not (math.isnan(ends[0][3].end) and ends[0][0] == ends[0][3].due):
            heapq.heappop(ends)

    def next_end(self) -> float:
        """Return when the next job completes, s."""
        return self.ends[0][0] if self.ends else math.inf

    def _view(self, job: int) -> JobView:
        view = self._views.get(job)
        if view is None:
            view = self._views[job] = JobView(self.problem.jobs, int(self.problem.rows[job]))
            view.number = job
        return view

    def _tell_stopped(self, job: int, now: float, *, over: bool = False) -> None:
        if self.watcher is None:
            return
        view = self._views.pop(job) if over else self._view(job)
        view.running = False
        view.run_time, view.remaining = self.attained(job, now)
        self.watcher.stopped(view, now)
