"""`State`: who runs where since when; changed only through `begin`, `leave` and `rerate`.

Jobs are known by their arrival number (`windtunnel.sim.problem`). Everything that takes a job off
its GPUs is a `leave` and some book-keeping: here jobs finish, are preempted and move; what sources
do to them stands in `windtunnel.sim.reference.lent`.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.sim.disruptions.checkpoints import Checkpoints
from windtunnel.sim.jobs import JobView, show
from windtunnel.sim.reference.place_search import PlaceSearch
from windtunnel.sim.reference.progress import Place, Stay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Placement, Policy
    from windtunnel.sim.problem import Problem
    from windtunnel.sim.run_rules import Rules


class State(PlaceSearch):
    """The tables of a run; lists are by arrival number.

    Attributes:
        policy: hears who starts and stops, if it watches.
        pace: what slows jobs; None = nothing.
        overhead: seconds that each job pays when it resumes.
        running: running jobs in order of start, with their stays.
        waiting: those in the queue: when they came, by a count of all that did.
        failed: jobs that failed as their work was done, and are dealt with at this instant.
        left: work left when the job waits, or when its stay began.
        start_overhead: what the job pays at its next start, s.
        has_rates: some stay was at another rate than 1.
        most_in_use: the most nodes in use since somebody asked, where some may sleep.
        moving: a job is on its way from one place to another, of which nobody hears.
        budget: what may be added to the draw, nanowatts.
        at_round: a round began since the last decision.
        capped: somebody waits for power alone, as far as has been tried at this decision.
        is_stopped: the policy has ended the run at this instant.
        changes: how often anything has changed that a plan may rest on.
        recorder: writes down why jobs wait; None = nobody does.
    """

    def __init__(
        self, problem: Problem, placement: Placement, policy: Policy, rules: Rules
    ) -> None:
        super().__init__(problem, placement, policy, rules)
        jobs, plan, works = len(problem.rows), self.plan, self.works
        self.policy, self.pace = policy, rules.slowdown
        costs = np.broadcast_to(np.asarray(rules.overhead, dtype=np.float64), jobs)
        self.overhead: list[float] = costs.tolist()
        self.estimate: list[float] = problem.estimate.tolist()
        self.total_work: list[float] = problem.duration.tolist()
        self.start_overhead = [0.0] * jobs
        if works is not None:
            self.total_work = [w.iterations * w.requested.iteration_time for w in works]
            self.overhead = [work.penalty for work in works]
            self.start_overhead = self.overhead.copy()
        saved = Checkpoints() if plan is None else Checkpoints(plan.interval, plan.checkpoint_cost)
        self.checkpoints = saved
        self.fails_once = set() if plan is None else set(plan.fails_once)
        self.now = -math.inf
        self.stays = []
        self.running: dict[int, Stay] = {}
        self.waiting: dict[int, int] = {}
        self._came = 0
        self.finished: set[int] = set()
        self.ended_failed: set[int] = set()
        self.failed: list[int] = []
        self.left = list(self.total_work)
        self.run_before, self.preemptions = [0.0] * jobs, [0] * jobs
        self.useful, self.overhead_time = [0.0] * jobs, [0.0] * jobs
        self.writing_time = [0.0] * jobs
        self.lost_work, self.slowed = [0.0] * jobs, [0.0] * jobs
        self.restarts, self.to_restart = [0] * jobs, set[int]()
        self.has_rates = self.moving = self.capped = self.is_stopped = self.at_round = False
        self.most_in_use = self.budget = self.changes = 0
        self.counts_nodes = rules.power is not None and rules.power.sleep is not None
        #: When stays would complete: (s, number, stay), some of them out of date.
        self._ends: list[tuple[float, int, Stay]] = []
        #: Classes that were refused since there was more capacity or power last.
        self._refused: set[int] = set()
        self._views: dict[int, JobView] = {}
        self.recorder: Any = None

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""
        return len(self.gpus) - len(self.finished) - len(self.ended_failed)

    def wait(self, job: int) -> None:
        """Let a job be in the queue."""
        if self.recorder is not None:
            self.recorder.waits(job)
        self._came += 1
        self.waiting[job] = self._came

    # The three changes.

    def begin(
        self, job: int, where: Where, *, rate: float = 1.0, beside: int | None = None,
        option: Any = None,
    ) -> None:  # fmt: skip
        """Put a job on its nodes.

        ``rate``: work a second there, before what slows everybody; ``beside``: a running job whose
        place it shares; ``option``: how an elastic job runs, None = as its user asked.
        """
        if beside is None:
            place = Place(where, self.demand[job] if option is None else option)
            self.free.take(where, place.demand)
        else:
            place = self.running[beside].place
        place.jobs.append(job)
        now = self.now
        overhead, self.start_overhead[job] = self.start_overhead[job], 0.0
        stay = Stay(
            job, len(self.stays), now, place, overhead=overhead, work=self.left[job], rate=rate,
            checkpoints=self.checkpoints, slowed=self.slowed[job],
        )  # fmt: skip
        stay.expected = self.expected_end(stay)
        self.has_rates |= rate != 1.0
        self.running[job] = stay
        self.stays.append(stay)
        heapq.heappush(self._ends, (stay.due, stay.number, stay))
        self.waiting.pop(job, None)
        self.changes += 1
        if self.quotas is not None:
            self.quotas.begin(job, place.where)
        if self.counts_nodes:
            self.most_in_use = max(self.most_in_use, len(self.nodes_in_use()))
        if self.pace is not None:
            option = None if self.works is None else place.demand
            self.pace.enter(job, place.where, option, beside)
        if job in self.to_restart:
            self.to_restart.remove(job)
            self.restarts[job] += 1
        view = self.view(job)
        if self.policy.watches and not self.moving:
            self.policy.started(view, now)

    def leave(self, job: int, *, completes: bool = False, loses: bool = False) -> None:
        """Take a job off its nodes, its work done, or what is not saved lost."""
        stay, now = self.running.pop(job), self.now
        stay.end = now
        place = stay.place
        place.jobs.remove(job)
        if not place.jobs:
            self.free.give(place.where, place.demand)
        if self.quotas is not None:
            self.quotas.end(job)
        if self.pace is not None:
            self.pace.leave(job)
        self.book(stay, now, completes=completes, loses=loses)
        self.run_before[job] += now - stay.start
        self.forget_refusals()
        view = self.view(job)
        if self.policy.watches and not self.moving:
            self.policy.stopped(view, now)

    def book(self, stay: Stay, now: float, *, completes: bool = False, loses: bool = False) -> None:
        """Enter into the books what a stay has brought by ``now`` (s), when it ends or is cut."""
        (stay.complete if completes else stay.advance)(now)
        job, done, left = stay.job, stay.reached.done, stay.reached.left
        writing = stay.seconds_writing(stay.reached)
        if loses:
            kept = stay.kept(stay.reached)
            self.lost_work[job] += done - kept
            done, left = kept, stay.work - kept
        self.left[job] = left
        self.useful[job] += done
        self.overhead_time[job] += min(now - stay.start, stay.overhead) + writing
        self.writing_time[job] += writing
        self.slowed[job] = stay.slowed

    def rerate(self, job: int, rate: float) -> None:
        """Let a running job go on at another rate."""
        stay = self.running[job]
        stay.advance(self.now, rate)
        heapq.heappush(self._ends, (stay.due, stay.number, stay))
        stay.expected = self.expected_end(stay)
        self.changes += 1

    def set_base(self, job: int, rate: float) -> None:
        """Let a running job's rate, before what slows everybody, be another from this instant."""
        self.running[job].base = rate
        self.has_rates |= rate != 1.0

    def settle(self, slow: dict[int, float]) -> None:
        """Give every running job the rate that all that happened at this instant leaves it.

        ``slow``: by how much power limits slow running jobs.
        """
        self.has_rates |= bool(slow)
        if self.pace is None and not self.has_rates:
            return
        for job, stay in self.running.items():
            paced = stay.base if self.pace is None else stay.base * self.pace.rate(job)
            rate = paced / slow.get(job, 1.0)
            if rate != stay.rate:
                self.rerate(job, rate)

    # How jobs stop.

    def finish(self, job: int) -> None:
        """Complete a running job, or let it fail at its end if it is to."""
        fails = job in self.fails_once
        self.leave(job, completes=True, loses=fails)
        if fails:
            self.fails_once.remove(job)
            self.failed.append(job)
        else:
            self.finished.add(job)

    def preempt(self, job: int, *, loses: bool = False, ends: bool = False) -> None:
        """Take a running job off its GPUs, its work saved or lost; it waits, or is over."""
        self.leave(job, loses=loses)
        self.start_overhead[job] = self.overhead[job]
        self.preemptions[job] += 1
        if loses:
            self.to_restart.add(job)
        if ends:
            self.ended_failed.add(job)
        else:
            self.wait(job)

    def move(self, job: int, where: Where, *, rate: float, option: Any = None) -> None:
        """Let a running job go on elsewhere, or in another option, which costs it its resuming."""
        self.leave(job)
        self.start_overhead[job] = self.overhead[job]
        self.begin(job, where, rate=rate, option=option)

    # What is known of jobs.

    def ending(self) -> Stay | None:
        """Return the stay that completes next: of several the first that began; None = nobody."""
        while self._ends:
            due, _, stay = self._ends[0]
            if self.running.get(stay.job) is stay and stay.due == due:
                return stay
            heapq.heappop(self._ends)
        return None

    def attained(self, job: int) -> tuple[float, float]:
        """Return (seconds on GPUs so far, work left) of a job."""
        stay = self.running.get(job)
        if stay is None:
            return self.run_before[job], self.left[job]
        return self.run_before[job] + self.now - stay.start, stay.at(self.now).left

    def work_left(self) -> dict[int, float]:
        """Return the work left of each active job now, s."""
        return {job: self.attained(job)[1] for job in (*self.waiting, *self.running)}

    def time_left(self, job: int) -> float:
        """Return how long an active job still needs its GPUs at full speed, s.

        That is its work left, with what it pays for resuming and the checkpoints that it writes.
        """
        stay = self.running.get(job)
        if stay is None:
            left = self.left[job]
            return left + self.start_overhead[job] + self.checkpoints.time_within(left)
        if stay.rate == 1.0:
            return stay.due - self.now
        reached = stay.at(self.now)
        return reached.left + max(stay.resumed - self.now, 0.0) + stay.to_write(reached)

    def estimate_left(self, job: int, left: float) -> float:
        """Return what is left of a job's estimate while so much of its work is, s at rate 1."""
        return max(0.0, self.estimate[job] - (self.total_work[job] - left))

    def expected_end(self, stay: Stay) -> float:
        """Return when a job is expected to end at its rate of now, s, as a segment of it begins.

        It writes the checkpoints that lie within what is left of its estimate.
        """
        ready = max(stay.resumed, stay.since)
        left = self.estimate_left(stay.job, stay.reached.left)
        if not left:
            return ready
        limit = self.checkpoints.within(self.estimate_left(stay.job, stay.work))
        return ready + (left / stay.rate + stay.to_write(stay.reached, limit))

    def planned_stop(self, job: int, start: float) -> float:
        """Return when a job is expected to end that starts at ``start`` (s), or resumes then."""
        resuming = self.overhead if job in self.running else self.start_overhead
        left = self.estimate_left(job, self.attained(job)[1])
        return start + resuming[job] + (left + self.checkpoints.time_within(left))

    def view(self, job: int) -> JobView:
        """Return a job as policies see it, brought up to this instant."""
        view = self._views.get(job)
        if view is None:
            row = int(self.problem.rows[job])
            view = self._views[job] = JobView(self.problem.jobs, row, job)
        run_time, remaining = self.attained(job)
        show(view, running=job in self.running, run_time=run_time, remaining=remaining)
        return view

    def columns(self, numbers: np.ndarray, name: str) -> np.ndarray:
        """Return what ``view.name`` is for each of some jobs, by arrival number, as an array."""
        if name in ("running", "run_time", "remaining"):
            return np.array([getattr(self.view(job), name) for job in numbers.tolist()])
        rows: np.ndarray = self.problem.rows[numbers]
        known = {"number": numbers, "row": rows}
        return known[name] if name in known else getattr(self.problem.jobs, name)[rows]

    # Places and power now.

    def fit(self, job: int) -> Where | None:
        """Return where a waiting job would go now, or None: no place, or not enough power.

        A class that was refused is refused until there is more capacity or power; where a planned
        hold comes before a job's expected end, it is tried for itself.
        """
        kind, alone = self.class_of[job], self.plans and bool(self.coming(job, self.now))
        if not alone and kind in self._refused:
            return None
        where, lacks_power = self.search(job, self.free, self.now, self.spare)
        self.capped |= lacks_power
        if where is None and not alone:
            self._refused.add(kind)
        return where

    def begin_decision(self) -> None:
        """Let who lacked power alone at the last decision be looked at again."""
        if self.capped:
            self._refused.clear()
        self.capped = False

    def fits_somehow(self, job: int) -> bool:
        """Return whether a waiting job fits now; an elastic one in any of its options."""
        if self.works is None:
            return self.fit(job) is not None
        shown = self.opened(self.free, job)
        return any(self.put(shown, job, option) for option in self.works[job].options)

    def forget_refusals(self) -> None:
        """Note that there is more capacity or power: whoever was refused may try again."""
        self._refused.clear()
        self.changes += 1

    def free_without(self, jobs: Sequence[int]) -> Any:
        """Return what is free without some jobs; a place that others share is not."""
        free = self.free.copy()
        places = {id(stay.place): stay.place for job, stay in self.running.items() if job in jobs}
        for place in places.values():
            if all(job in jobs for job in place.jobs):
                free.give(place.where, place.demand)
        return free

    def where(self, job: int) -> Where:
        """Return the nodes and grants of a running job."""
        return self.running[job].where

    def nodes_in_use(self) -> set[int]:
        """Return the nodes on which any job runs."""
        return {node for stay in self.running.values() for node, _ in stay.where}

    @property
    def floors(self) -> dict[int, int]:
        """The least that each running job adds to the draw, nanowatts.

        Of jobs that share a place the first counts for all, at the most that one of them draws.
        """
        if self.watts is None:
            return {}
        first = {place.jobs[0]: self.draw_of(place) for place in self.places}
        return {job: first.get(job, 0) for job in self.running}

    @property
    def places(self) -> list[Any]:
        """The places on which jobs run."""
        return list({id(stay.place): stay.place for stay in self.running.values()}.values())

    def draw_of(self, place: Any, without: Sequence[int] = ()) -> int:
        """Return the least that the jobs of a place add to the draw, with some jobs gone."""
        there = [self.draw(job, place.where) for job in place.jobs if job not in without]
        return max(there, default=0)

    def floor_sum(self) -> int:
        """Return what all running jobs add to the draw at least, nanowatts."""
        return sum(self.floors.values())

    @property
    def spare(self) -> int:
        """Nanowatts that a job may add now."""
        return max(self.budget, 0) - self.floor_sum()

    def affords(self, job: int, where: Where, without: Sequence[int] = ()) -> bool:
        """Return whether there is power and quota for a job, with the other jobs gone."""
        if self.quotas is not None:
            with self.quotas.without(without):
                if not self.quotas.allows_on(job, where):
                    return False
        return self.has_power(job, where, without)

    def has_power(self, job: int, where: Where, without: Sequence[int] = ()) -> bool:
        """Return whether there is power for a job, with the other jobs gone."""
        if self.watts is None:
            return True
        stays = sum(self.draw_of(place, without) for place in self.places)
        return self.draw(job, where) <= max(self.budget, 0) - stays
