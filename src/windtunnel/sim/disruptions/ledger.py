"""`DisruptedLedger`: the state of a run in which nodes go down and jobs lose work.

Progress of one stay: first the job pays what it owes (a restart, or save and restore after a
preemption), then it works; after every ``interval`` seconds of work it writes a checkpoint, which
takes ``checkpoint_cost`` and is not written when the work is done then. A failure undoes what was
done since the last checkpoint that was complete, or since the stay began; a preemption saves
everything. So at any time: seconds held = useful + overhead + lost.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.free import NOBODY
from windtunnel.errors import SpecError, quote
from windtunnel.sim.flight import FAILED, Flight, Interruptions
from windtunnel.sim.ledger import Ledger

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.contract import Placement
    from windtunnel.sim.disruptions.plan import Hold, Plan
    from windtunnel.sim.ledger import Stay
    from windtunnel.sim.problem import Problem

#: Failures in a row in which a job saves nothing, after which it never will.
MAX_VAIN_FAILURES = 10_000


class DisruptedLedger(Ledger):
    """A `Ledger` that knows outages, checkpoints and reservations.

    Args:
        problem: jobs and cluster.
        placement: where jobs go.
        overhead: seconds a preempted job pays when it resumes.
        plan: what will happen.
        plans: jobs are not started where a planned hold would come before their expected end.
    """

    def __init__(
        self, problem: Problem, placement: Placement, overhead: float, plan: Plan, *, plans: bool
    ) -> None:
        super().__init__(problem, placement, overhead)
        count = len(problem.rows)
        self.room_changes: int = 0
        self.plan = plan
        self.plans = plans
        self.now = -math.inf
        self.estimate: list[float] = problem.estimate.tolist()
        #: Seconds a job pays when it is started next; what it paid at the start of this stay.
        self.owed = [0.0] * count
        self.last_start = [math.nan] * count
        self.paid = [0.0] * count
        self.useful = [0.0] * count
        self.overhead_time = [0.0] * count
        self.lost = [0.0] * count
        self.failures = [0] * count
        self.restarts = [0] * count
        self.vain = [0] * count
        #: Jobs that failed, and wait for the first start since.
        self.to_restart: set[int] = set()
        self.finished: set[int] = set()
        self.ended_failed: set[int] = set()
        #: Jobs that fail at the end of their work, until they have; those that did just now.
        self.fails_once = set(plan.fails_once)
        self.failed_at_end: list[int] = []
        #: Generators of jobs that may fail, and seconds on GPUs at which they fail next.
        self.randoms: dict[int, np.random.Generator] = {}
        self.fail_at: dict[int, float] = {}
        #: Heap of (time, number, stay).
        self.job_failures: list[tuple[float, int, Stay]] = []
        self.planned = sorted(
            (time, change, index)
            for index, hold in enumerate(plan.holds)
            if hold.planned
            for time, change in ((hold.begin, 1), (hold.end, 0))
            if math.isfinite(time)
        )
        self.up: list[tuple[float, float]] = []
        pairs = zip(problem.demand_of.tolist(), plan.access, strict=True)
        numbers: dict[Any, int] = {}
        self.class_of = [numbers.setdefault(pair, len(numbers)) for pair in pairs]
        self.num_classes = len(numbers)

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""
        return len(self.gpus) - len(self.finished) - len(self.ended_failed)

    # What a job may use.

    def opened(self, free: Any, job: int) -> Any:
        """Return a free state with the job's reservations open to it."""
        groups = self.plan.access[job]
        return free.opened(groups) if groups else free

    def seen(self, free: Any, job: int, now: float) -> Any:
        """Return what of a free state the job may use if it is started at ``now`` (s)."""
        shown = self.opened(free, job)
        coming = self._coming(job, now) if self.plans else {}
        if coming:
            shown = shown.copy()
            for place, units in coming.items():
                shown.withhold(place, NOBODY, units)
        return shown

    def put(self, free: Any, job: int, demand: Any) -> Where | None:
        """Return where a demand of a job would go in what the job may use, or None."""
        return self._put(self.opened(free, job), job, demand)

    def put_seen(self, shown: Any, job: int) -> Where | None:
        """Return where the job goes in what it may use: reserved nodes first."""
        return self._put(shown, job, self.demand[job])

    def _put(self, shown: Any, job: int, demand: Any) -> Where | None:
        if self.plan.access[job] and shown.shown:
            inside = shown.copy()
            for node in range(len(self.problem.sizes)):
                if node not in shown.shown:
                    inside.withhold(node)
            where = self.placement.place(inside, demand)
            if where is not None:
                return where
        return self.placement.place(shown, demand)

    def fit(self, job: int) -> Where | None:
        """Return where the job would go now, or None."""
        return self.put_seen(self.seen(self.free, job, self.now), job)

    def _coming(self, job: int, now: float) -> dict[int, int]:
        """Return what planned holds will take before the job's expected end: place -> units."""
        stop, groups = now + self.estimate[job], self.plan.access[job]
        taken: dict[int, int] = {}
        peak: dict[int, int] = {}
        # In a pool one hold may end before another begins; a node is taken whole by any of them.
        for time, change, index in self.planned:
            if time <= now:
                continue
            if time >= stop:
                break
            hold = self.plan.holds[index]
            if hold.group in groups:
                continue
            for place, units in hold.places:
                if not self.problem.is_pool:
                    peak |= {place: units} if change else {}
                    continue
                taken[place] = taken.get(place, 0) + (units if change else -units)
                if taken[place] > peak.get(place, 0):
                    peak[place] = taken[place]
        return peak

    def planned_after(self, now: float) -> list[tuple[float, int, Hold]]:
        """Return planned changes after ``now`` (s), in order: time, 1 begins or 0 ends, hold."""
        return [(t, c, self.plan.holds[i]) for t, c, i in self.planned if t > now]

    def quota(self) -> tuple[int, dict[int, int]]:
        """Return GPU units up that are nobody's own, and those of each reservation."""
        reserved: dict[int, int] = {}
        up = self.problem.quota - self.free.down
        if self.problem.is_pool or not self.free.withheld:
            return up, reserved
        free: Any = self.free  # nodes
        for node, groups in free.withheld.items():
            if NOBODY not in groups:
                reserved[groups[0]] = reserved.get(groups[0], 0) + free.free_units(node)
        for job, stay in self.running.items():
            for node, units in stay.where:
                groups = free.withheld.get(node, (NOBODY,))
                if NOBODY not in groups and groups[0] in self.plan.access[job]:
                    reserved[groups[0]] += units
        return up - sum(reserved.values()), reserved

    def beyond_reserved(self, job: int, reserved: dict[int, int]) -> int:
        """Return the GPU units that a job needs besides what its reservations have left."""
        own = sum(reserved.get(group, 0) for group in self.plan.access[job])
        return max(0, self.gpus[job] - own)

    def draw(self, job: int, reserved: dict[int, int]) -> None:
        """Let a chosen job use up what its reservations have left."""
        need = self.gpus[job]
        for group in self.plan.access[job]:
            used = min(need, reserved.get(group, 0))
            if used:
                reserved[group] -= used
                need -= used

    # What happens to jobs.

    def resume_cost(self, job: int) -> float:
        """Return the seconds a waiting job pays when it is started."""
        return self.owed[job]

    def end_of(self, job: int, now: float) -> float:
        """Return when a job that is started at ``now`` (s) completes, if nothing comes between."""
        work = self.remaining[job]
        return now + self.owed[job] + work + self._checkpoints(work) * self.plan.checkpoint_cost

    def start(self, job: int, now: float, where: Where) -> None:
        """Put a waiting job on the given nodes."""
        super().start(job, now, where)
        self.last_start[job] = now
        self.paid[job], self.owed[job] = self.owed[job], 0.0
        if self.plan.hazard[job]:
            self._draw_failure(job, now)
        if job in self.to_restart:
            self.to_restart.remove(job)
            self.restarts[job] += 1

    def _draw_failure(self, job: int, now: float) -> None:
        """Note when the job that has just been started fails by itself, if it does not end before.

        The clock is the time it has run, so that a preemption changes nothing.
        """
        random = self.randoms.get(job)
        if random is None:
            random = self.randoms[job] = self.plan.job_random(int(self.problem.rows[job]))
        if job not in self.fail_at:
            mean = 1 / self.plan.hazard[job]
            self.fail_at[job] = self.run_before[job] + float(random.exponential(mean))
        time = now + max(0.0, self.fail_at[job] - self.run_before[job])
        if time < self.projected_end[job]:
            heapq.heappush(self.job_failures, (time, len(self.stays), self.running[job]))

    def preempt(self, job: int, now: float) -> None:
        """Take a running job off its GPUs; all its work is saved."""
        work, overhead, _ = self._progress(job, now - self.running[job].start)
        before = self.remaining[job]
        super().preempt(job, now)
        if self.plan.checkpoint_cost:
            self.remaining[job] = before - work
        self.useful[job] += work
        self.overhead_time[job] += overhead
        self.owed[job] = self.overhead

    def interrupt(self, job: int, now: float, *, saves: bool = False, ends: bool = False) -> None:
        """Take a running job off its GPUs because of an outage.

        Args:
            job: which.
            now: s.
            saves: it saves all its work first, in no time; else what is not saved is lost.
            ends: it is over.
        """
        held = now - self.running[job].start
        work, overhead, kept = self._progress(job, held)
        before, count = self.remaining[job], self.preemptions[job]
        super().preempt(job, now)
        self.preemptions[job] = count
        saved = work if saves else kept
        self.remaining[job] = before - saved
        self._account(job, now, held, saved, overhead, fails=not saves)
        self.fail_at.pop(job, None)
        if ends:
            self.ended_failed.add(job)

    def fail_at_end(self, job: int, now: float) -> None:
        """Let a job fail that has just completed: it loses what it did since a checkpoint."""
        held = now - self.last_start[job]
        _, overhead, kept = self._progress(job, held)
        self.run_before[job] += held
        self.remaining[job] -= kept
        self._account(job, now, held, kept, overhead, fails=True)
        if self.plan.ends:
            self.ended_failed.add(job)

    def _account(
        self, job: int, now: float, held: float, saved: float, overhead: float, *, fails: bool
    ) -> None:
        self.useful[job] += saved
        self.overhead_time[job] += overhead
        self.lost[job] += held - overhead - saved if fails else 0.0
        self.owed[job] = self.plan.restart_cost
        self.to_restart.add(job)
        if not fails:
            return
        self.failures[job] += 1
        self.vain[job] = 0 if saved else self.vain[job] + 1
        if self.vain[job] > MAX_VAIN_FAILURES:
            raise failed_in_vain(self.problem, job, self.vain[job], now)

    def finish_next(self, now: float) -> int:
        """Complete the first job in ``ends``; return it."""
        job = super().finish_next(now)
        self._completed(job, now)
        return job

    def finish(self, job: int, now: float) -> None:
        """Complete a running job out of turn."""
        super().finish(job, now)
        self._completed(job, now)

    def _completed(self, job: int, now: float) -> None:
        if job in self.fails_once:
            self.fails_once.remove(job)
            self.failed_at_end.append(job)
            return
        work = self.remaining[job]
        self.useful[job] += work
        self.overhead_time[job] += now - self.last_start[job] - work
        self.finished.add(job)

    def attained(self, job: int, now: float) -> tuple[float, float]:
        """Return (seconds on GPUs so far, seconds of work left) of an active job."""
        stay = self.running.get(job)
        if stay is None:
            return self.run_before[job], self.remaining[job]
        held = now - stay.start
        return self.run_before[job] + held, self.remaining[job] - self._progress(job, held)[0]

    def _checkpoints(self, work: float) -> int:
        """Return how many checkpoints are written during so much work."""
        return max(0, math.ceil(work / self.plan.interval) - 1)

    def _progress(self, job: int, held: float) -> tuple[float, float, float]:
        """Return (work done, overhead paid, work in checkpoints) after ``held`` s of a stay."""
        active = held - self.paid[job]
        if active <= 0:
            return 0.0, held, 0.0
        work, interval = self.remaining[job], self.plan.interval
        written, kept = 0, 0.0
        if interval < math.inf:
            cycle = interval + self.plan.checkpoint_cost
            written = min(int(active // cycle), self._checkpoints(work))
            active -= written * cycle
            kept = written * interval
        paid = self.paid[job] + written * self.plan.checkpoint_cost
        # Within a checkpoint that is being written no work is done.
        last = kept + interval >= work
        done = min(kept + (active if last else min(active, interval)), work)
        return done, paid + max(0.0, kept + active - done), kept

    # Capacity.

    def withhold(self, hold: Hold) -> None:
        """Begin a hold."""
        self.room_changes += 1
        for place, units in hold.places:
            self.free.withhold(place, hold.group, units)

    def restore(self, hold: Hold) -> None:
        """End a hold."""
        self.room_changes += 1
        for place, units in hold.places:
            self.free.restore(place, hold.group, units)

    def note_capacity(self, now: float) -> None:
        """Record the GPUs that are up from ``now`` (s) on, those of reservations included."""
        up = (self.problem.quota - self.free.down) / self.problem.units
        if not self.up or self.up[-1][1] != up:
            self.up.append((now, up))

    def completed(self, ended: np.ndarray) -> np.ndarray:
        """Return which jobs finished, shape (m,)."""
        done: np.ndarray = np.zeros(len(ended), dtype=bool)
        done[list(self.finished)] = True
        return done

    def close(self, horizon: float, points: int) -> Flight:
        """Return the run as arrays in jobs-table order; see `Ledger.close`."""
        for job, stay in self.running.items():
            work, overhead, _ = self._progress(job, horizon - stay.start)
            self.useful[job] += work
            self.overhead_time[job] += overhead
        flight = super().close(horizon, points)
        rows, total = self.problem.rows, len(self.problem.jobs)
        over = rows[sorted(self.ended_failed)]
        flight.status[over] = FAILED
        last = {stay.job: stay.end for stay in self.stays}
        flight.end[over] = [last[job] for job in sorted(self.ended_failed)]

        def by_row(values: list[float] | list[int], kind: type) -> np.ndarray:
            result: np.ndarray = np.zeros(total, dtype=kind)
            result[rows] = values
            return result

        interruptions = Interruptions(
            useful_time=by_row(self.useful, float),
            overhead_time=by_row(self.overhead_time, float),
            lost_time=by_row(self.lost, float),
            failures=by_row(self.failures, int),
            restarts=by_row(self.restarts, int),
            up_time=np.array([time for time, _ in self.up], dtype=np.float64),
            up_gpus=np.array([gpus for _, gpus in self.up], dtype=np.float64),
        )
        return flight.with_interruptions(interruptions)


def failed_in_vain(problem: Problem, job: int, count: int, now: float) -> SpecError:
    """Return what is raised when a job has failed too often in a row.

    Args:
        problem: jobs and cluster.
        job: which.
        count: how often.
        now: s.
    """
    name = quote(problem.jobs.job_id[problem.rows[job]])
    return SpecError(
        "disruptions",
        f"job {name} has failed {count:,} times in a row by t={now:g} s and saved "
        "nothing; expected a shorter checkpoint interval, rarer failures or a horizon.",
    )
