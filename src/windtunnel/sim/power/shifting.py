"""`Shifter`: jobs that are held until a better time, and stopped for one.

At its submission a job is given the cheapest time to run by the forecast at which, by what all
others are known to do or to plan, GPUs are left for it; until that begins it is not in the queue.
Where there is no such time before its deadline it queues at once. From then on it waits like any
other. One that may be interrupted is looked at
again whenever its time ends or, if it got its GPUs at another time, the forecast changes: it is
stopped if all that is left of it, at its present rate and with what resuming costs, can be done at
better times before its deadline, so that it emits or costs less in all than if it went on; or if
the others leave no room for going on.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from windtunnel.sim.power.plan import Pieces, ShiftPlan
    from windtunnel.sim.problem import Problem


#: Seconds that a job pauses at least, and that pass between two looks at it. Where rates change
#: plans come out otherwise each time, by a part of what was left before: without a least time they
#: would be made for ever shorter times.
LEAST_PAUSE = 1.0


class Shifter:
    """Who is held until when."""

    def __init__(self, plan: ShiftPlan, problem: Problem, run: Any) -> None:
        self.plan, self.run = plan, run
        self._duration: list[float] = problem.duration.tolist()
        self._bookings = None if plan.fill is None else Bookings(problem, plan.fill)
        #: When each held job is to run, and the same as rows (job, start, end), None = not made.
        self._planned: dict[int, Pieces] = {}
        self._rows: np.ndarray | None = None
        #: Jobs let into the queue at an instant, which is the first item.
        self._entered: tuple[float, list[int]] = (-math.inf, [])
        #: Heap of (when a held job is let in, job).
        self._let_in: list[tuple[float, int]] = []
        #: Heap of (when a running job is looked at, job, its stay).
        self._looks: list[tuple[float, int, int]] = []
        #: The last stay that has been looked at.
        self._seen = -1

    @property
    def held(self) -> int:
        """Jobs that are held."""
        return len(self._let_in)

    def next_time(self) -> float:
        """Return when a job is let in or looked at next, s."""
        looks = self._looks
        while looks and self.run.stay_of(looks[0][1]) != looks[0][2]:
            heapq.heappop(looks)
        times = [heap[0][0] for heap in (self._let_in, looks) if heap]
        return min(times, default=math.inf)

    def holds(self, job: int, now: float) -> bool:
        """Return whether a job that arrives is held, and hold it then."""
        self._forget_others()
        pieces = self._pieces(job, self.plan.length[job], now)
        if not pieces or pieces[0][0] <= now:
            self._enters(job, now)
            return False
        self._hold(job, pieces)
        return True

    def due(self, now: float) -> list[int]:
        """Return the held jobs that enter the queue now, in order; they are held no longer."""
        found = []
        while self._let_in and self._let_in[0][0] <= now:
            job = heapq.heappop(self._let_in)[1]
            self._planned.pop(job)
            self._rows = None
            self._enters(job, now)
            found.append(job)
        return found

    def started(self, now: float) -> None:
        """Note who has been started at this instant."""
        if not self.plan.interruptible:
            return
        new = []
        for job in reversed(self.run.running_jobs()):
            stay = self.run.stay_of(job)
            if stay <= self._seen:
                break
            new.append((job, stay))
        self._forget_others()
        for job, stay in reversed(new):
            self._look_again(job, stay, now, self._pieces(job, self._left(job), now))
            self._seen = stay

    def to_pause(self, now: float) -> list[int]:
        """Return the running jobs that are stopped now, and hold them until they go on."""
        found = []
        looks = self._looks
        self._forget_others()
        while looks and looks[0][0] <= now:
            _, job, stay = heapq.heappop(looks)
            if self.run.stay_of(job) != stay:
                continue
            left, cost = self._left(job), self.run.resume_cost(job)
            pieces = self._pieces(job, left + cost, now)
            if pieces and pieces[0][0] >= now + LEAST_PAUSE and self._pays(job, pieces, left, now):
                self._hold(job, pieces)
                found.append(job)
            else:
                self._look_again(job, stay, now, self._pieces(job, left, now) if cost else pieces)
        return found

    def _pays(self, job: int, pieces: Pieces, left: float, now: float) -> bool:
        """Return whether running then, resuming included, is better than going on until the end.

        It always is where the others leave no room for going on.
        """
        full = self._full(job, now)
        if ((full[:, 0] < now + left) & (full[:, 1] > now)).any():
            return True
        going_on = self.plan.amount(((now, now + left),))
        # Differences in the last bit are no reason to stop.
        return self.plan.amount(pieces) < going_on - 1e-12 * abs(going_on)

    def _left(self, job: int) -> float:
        """Return the seconds a running job is believed to need yet, at its present rate."""
        left = float(self.run.time_to_end(job))
        more = self.plan.length[job] - self._duration[job]
        return left + more / float(self.run.rate(job)) if more else left

    def _pieces(self, job: int, left: float, now: float) -> Pieces:
        """Return when the rest of a job is best run; empty = now, and without a pause."""
        deadline = self.plan.deadline[job]
        if math.isnan(deadline) or not 0 < left < deadline - now:
            return ()
        return self.plan.pieces(left, now, deadline, self._full(job, now))

    def _full(self, job: int, now: float) -> np.ndarray:
        """Return when the others leave no room for a job, by what is known now."""
        if self._bookings is None:
            return np.empty((0, 2))
        if not self._bookings.known:
            self._bookings.see(self._others(now))
        return self._bookings.full(job)

    def _others(self, now: float) -> np.ndarray:
        """Return when every job is to run by what is known now: rows (job, start, end)."""
        ends = {job: now + self._on_gpus(job) for job in self.run.running_jobs()}
        entered = self._entered[1] if self._entered[0] == now else []
        for job in (*self.run.waiting_jobs(), *entered):
            if job not in ends:
                ends[job] = now + self._believed_left(job)
        if self._rows is None:
            rows = [(job, *piece) for job, pieces in self._planned.items() for piece in pieces]
            self._rows = np.array(rows).reshape(-1, 3)
        jobs = [job for job in ends if job not in self._planned]
        here = np.empty((len(jobs), 3))
        here[:, 0], here[:, 1], here[:, 2] = jobs, now, [ends[job] for job in jobs]
        return np.concatenate([here, self._rows])

    def _forget_others(self) -> None:
        """Forget when others are to run: some may have come, gone or started."""
        if self._bookings is not None:
            self._bookings.known = False

    def _on_gpus(self, job: int) -> float:
        """Return the seconds a running job will stay; for ever where nobody knows."""
        left = self._left(job)
        return math.inf if math.isnan(left) else max(left, 0.0)

    def _believed_left(self, job: int) -> float:
        """Return the seconds that a waiting job is believed to need; what nobody knows is none."""
        left = self._length_left(job)
        return 0.0 if math.isnan(left) else max(left, 0.0)

    def _length_left(self, job: int) -> float:
        """Return what is left of a job's believed length: its time on GPUs may have been lost."""
        length, duration = self.plan.length[job], self._duration[job]
        left = float(self.run.attained(job)[1])
        return left if length == duration else length - max(duration - left, 0.0)

    def _hold(self, job: int, pieces: Pieces) -> None:
        self._planned[job] = pieces
        self._rows = None
        self._forget_others()
        heapq.heappush(self._let_in, (pieces[0][0], job))

    def _enters(self, job: int, now: float) -> None:
        if self._entered[0] != now:
            self._entered = (now, [])
        self._entered[1].append(job)

    def _look_again(self, job: int, stay: int, now: float, pieces: Pieces) -> None:
        """Look at a running job again once its time is over, or what is best may be another."""
        if not pieces:
            return
        begin, end = pieces[0]
        if begin > now:  # it runs at a time that is not its best
            end = min(begin, self.plan.next_change(now))
        if now < end < math.inf:  # what is left may be a rounding
            heapq.heappush(self._looks, (max(end, now + LEAST_PAUSE), job, stay))


#: The end of what has none, s.
_ENDLESS = 1e300


class Bookings:
    """GPUs over time: of the whole cluster, and of the nodes that jobs of one kind may use.

    Where in the cluster they are free is not looked at: a gang may wait for its nodes.

    ``fill``: the share of the GPUs that plans may fill.

    Attributes:
        known: it has been told when jobs are to run, and that holds.
    """

    def __init__(self, problem: Problem, fill: float) -> None:
        self._gpus = problem.gpus.astype(np.float64)
        masks = [demand.allowed for demand in problem.demands]
        kinds = {mask: kind for kind, mask in enumerate(dict.fromkeys(masks))}
        of_class = np.array([kinds[mask] for mask in masks], dtype=np.int64)
        self._kind = of_class[problem.demand_of]
        sizes = problem.sizes.tolist()
        self._most = fill * float(sum(sizes))
        self._most_of = [
            fill * float(sum(size for node, size in enumerate(sizes) if mask >> node & 1))
            for mask in kinds
        ]
        self.known = False
        self._times = self._changes = np.empty(0)
        self._jobs = np.empty(0, int)

    def see(self, rows: np.ndarray) -> None:
        """Note when jobs are to run.

        Args:
            rows: job, start, end (s), a row for each stretch of time; shape (n, 3).
        """
        times = np.minimum(rows[:, 1:].T.ravel(), _ENDLESS)
        order = np.argsort(times, kind="stable")
        jobs = rows[:, 0].astype(np.int64)
        gpus = self._gpus[jobs]
        self._times = times[order]
        self._changes = np.concatenate([gpus, -gpus])[order]
        self._jobs = np.concatenate([jobs, jobs])[order]
        self.known = True

    def full(self, job: int) -> np.ndarray:
        """Return when the others leave no room for a job.

        Returns:
            Stretches (start, end), s, ascending and apart; shape (k, 2).
        """
        own, kind = self._gpus[job], self._kind[job]
        if own == 0 or not len(self._times):
            return np.empty((0, 2))
        changes = np.where(self._jobs == job, 0.0, self._changes)
        stretches = self._above(changes, max(self._most - own, 0.0))
        if len(self._most_of) > 1:
            alike = np.where(self._kind[self._jobs] == kind, changes, 0.0)
            most = max(self._most_of[kind] - own, 0.0)
            stretches = np.concatenate([stretches, self._above(alike, most)])
        return _joined(stretches)

    def _above(self, changes: np.ndarray, most: float) -> np.ndarray:
        """Return when more GPUs than ``most`` are held; shape (k, 2)."""
        times = self._times
        # Of changes at one instant the last tells what holds from then on.
        over = (np.cumsum(changes)[:-1] > most + 1e-6) & (times[1:] > times[:-1])
        return np.stack([times[:-1][over], times[1:][over]], axis=1)


def _joined(stretches: np.ndarray) -> np.ndarray:
    """Return the union of stretches, ascending and apart."""
    if not len(stretches):
        return stretches
    stretches = stretches[np.argsort(stretches[:, 0], kind="stable")]
    reach = np.maximum.accumulate(stretches[:, 1])
    begins = np.concatenate([[True], stretches[1:, 0] > reach[:-1]])
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:] - 1, len(stretches) - 1)
    return np.stack([stretches[firsts, 0], reach[lasts]], axis=1)
