"""Fly a recorded workload from its beginning, with the recorded run times, many times.

What differs from flight to flight is how long launching and ending took: drawn from what was
recorded (elapsed less run time). Calls of the loops come as slurmctld's threads make them: the
main loop a second after something happened and at most every three, all of the queue each minute;
backfill cycles by their interval, in the recorded phase.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.slurm.priority import Multifactor
from windtunnel.sim.slurm.shares import Shares
from windtunnel.sim.slurm.tables import SlurmTables

if TYPE_CHECKING:
    from records import Record
    from world import World

#: Kinds of moments, in the order in which they are looked at within a second.
END, SUBMIT = range(2)
#: Requests for the main loop are served at least so many seconds apart, ...
DELAY = 3
#: ... all of the queue is looked at so often, ...
FULL = 60
#: ... and time limits so often, s.
LOOK = 30
#: A flight ends then, s.
HORIZON = 40_000


class Flight:
    """One flight of a record."""

    def __init__(self, record: Record, world: World, seed: int) -> None:
        self.record, self.world = record, world
        self.random = np.random.default_rng(seed)
        self.tables = SlurmTables(record.site, record.requests)
        self.loops = self.tables.loops
        self.settings = record.site.settings
        self.lags = self._lags()
        self.start: dict[int, int] = {}
        self.over: dict[int, tuple[int, bool]] = {}
        self.agenda: list[tuple[int, int, int]] = []
        self.waiting: set[int] = set()
        self.blocked: set[int] = set()
        self.phase = self._phase()
        self.shares = Shares(record.site.associations, self.settings.priority)
        self.multifactor = Multifactor(record.site)
        self.last_tick = -359
        self.used_to: dict[int, int] = {}
        self.reserving = [j for j, r in enumerate(record.requests) if r.reservation]
        self.cancelled = {
            job: int(row["end"])
            for job, row in enumerate(record.rows)
            if row["state"] == "CANCELLED" and row["end"]
        }
        self.names: dict[str, list[int]] = {}
        for job, row in enumerate(record.rows):
            self.names.setdefault(row["job"], []).append(job)

    def _lags(self) -> np.ndarray:
        """Return the recorded elapsed times less the run times, s."""
        rows = zip(range(len(self.record.rows)), self.record.rows, strict=True)
        lags = [
            int(row["end"]) - int(row["start"]) - self._run_time(job)
            for job, row in rows
            if row["state"] == "COMPLETED" and not int(row["restarts"] or 0)
        ]
        return np.maximum(np.array(lags or [0]), 0)

    def _run_time(self, job: int) -> int:
        return int(self.record.work[job]["run"]) + self.record.requests[job].task

    def _phase(self) -> int:
        """Return the second of the first backfill cycle."""
        interval = self.tables.settings["bf_interval"]
        fills = [int(s.start) % interval for s in self.record.stays if s.loop == "backfill"]
        return max(set(fills), key=fills.count) if fills else 1

    def fly(self) -> dict[int, int]:
        """Return the second in which each job that started did."""
        for job in range(len(self.record.rows)):
            if job not in self.tables.never:
                submit = int(float(self.record.work[job]["submit"]))
                heapq.heappush(self.agenda, (submit, SUBMIT, job))
        last_main, asked, now = -DELAY, True, 0
        interval = self.tables.settings["bf_interval"]
        while now < HORIZON and (self.agenda or self.waiting or self.blocked):
            asked = self._happen(now - 1) or asked
            self._surround(now)
            if now % LOOK == self.phase % LOOK:
                self._time_out(now)
            if self.settings.priority.multifactor and now % self.settings.priority.period == 1:
                self._calculate(now)
            if (asked and now - last_main >= DELAY) or now % FULL == self.phase % FULL:
                self._began(self.loops.run_main(now, is_full=now % FULL == self.phase % FULL), now)
                last_main, asked = now, False
            if self.settings.backfill and now % interval == self.phase % interval:
                self._began(self.loops.run_backfill(now), now)
            if not self.agenda and not self.loops.queue():
                break
            now += 1
        return self.start

    def _happen(self, until: int) -> bool:
        """Let everything up to a second happen; return whether there was anything."""
        found = False
        while self.agenda and self.agenda[0][0] <= until:
            now, kind, job = heapq.heappop(self.agenda)
            found = True
            if kind == END:
                self._use(job, now)
                self.loops.leave_now(job)
                self.over[job] = now, self._run_time(job) <= self.record.requests[job].limit
            elif self._is_eligible(job, now):
                self._enqueue(job, now)
            else:
                self.blocked.add(job)
        for job in sorted(self.blocked):
            if self._is_eligible(job, until + 1):
                self.blocked.discard(job)
                self._enqueue(job, until + 1)
                found = True
        return found

    def _enqueue(self, job: int, now: int) -> None:
        self.used_to[job] = now
        self._rate(job, now)
        self.loops.put_pending(job)
        self.waiting.add(job)

    def _is_eligible(self, job: int, now: int) -> bool:
        work = self.record.work[job]
        if work["begin"] and now < int(work["begin"]):
            return False
        return all(self._is_met(c, now) for c in filter(None, work["dependency"].split(",")))

    def _is_met(self, condition: str, now: int) -> bool:
        kind, *names = condition.split(":")
        for name in names:
            for job in self.names.get(name, []):
                if kind == "after":
                    met = job in self.start
                else:
                    ended, is_well = self.over.get(job, (now + 1, True))
                    met = ended <= now and (kind == "afterany" or (kind == "afterok") == is_well)
                if not met:
                    return False
        return True

    def _surround(self, now: int) -> None:
        """Let nodes, reservations and cancellations be as they were recorded."""
        down = self.world.is_down(now)
        for name, node in self.tables.node_number.items():
            self.loops.set_up(node, name not in down)
        holds = self.world.reserved(now)
        self.loops.set_holds(self.tables.hold_tables(holds))
        numbers = {hold.name: at for at, hold in enumerate(holds)}
        for job in self.reserving:
            self.tables.jobs.set_hold(job, numbers.get(self.record.requests[job].reservation, -1))
        for job in [job for job, when in self.cancelled.items() if when <= now]:
            self._cancel(job, now)

    def _cancel(self, job: int, now: int) -> None:
        del self.cancelled[job]
        self.blocked.discard(job)
        if job in self.waiting:
            self.waiting.discard(job)
            self.loops.withdraw(job)
        elif job in self.start and job not in self.over:
            self.agenda = [*(m for m in self.agenda if m[1:] != (END, job)), (now, END, job)]
            heapq.heapify(self.agenda)

    def _time_out(self, now: int) -> None:
        over = self.settings.over_time_limit or 0
        for job, began in self.start.items():
            if job in self.over or began + self.record.requests[job].limit + over > now:
                continue
            kept = [m for m in self.agenda if m[1:] != (END, job)]
            if len(kept) < len(self.agenda):
                self.agenda = [*kept, (now, END, job)]
                heapq.heapify(self.agenda)

    def _began(self, started: list[tuple[int, int]], now: int) -> None:
        for job, _ in started:
            self.start[job] = now
            self.waiting.discard(job)
            self.used_to[job] = now
            lag = int(self.random.choice(self.lags))
            heapq.heappush(self.agenda, (now + self._run_time(job) + lag, END, job))

    # Priorities.

    def _rate(self, job: int, now: int) -> None:
        request = self.record.requests[job]
        if not self.settings.priority.multifactor:
            self.tables.jobs.set_priority(job, 4_294_901_759 - request.identity)
            return
        self.shares.look_up(request.account, request.user)
        factors = self.multifactor.of(
            request,
            age=now - self.used_to[job],
            fair_share=self.shares.factor(request.account, request.user),
            limit=request.limit or 0,
        )
        self.tables.jobs.set_priority(job, factors.total)

    def _use(self, job: int, now: int) -> None:
        since = max(self.used_to[job], self.last_tick)
        if now > since and self.settings.priority.multifactor:
            request = self.record.requests[job]
            cpus = sum(cpus for _, cpus in self.tables.stays.of(job))
            self.shares.add(request.account, request.user, cpus, now - since)

    def _calculate(self, now: int) -> None:
        self.shares.age(now - self.last_tick)
        self.shares.settle()
        for job in list(self.start):
            if job not in self.over:
                self._use(job, now)
        self.shares.calculate()
        self.last_tick = now
        for job in sorted(self.waiting):
            self._rate(job, now)
        self.loops.sort_queue()


def compare_flights(record: Record, world: World, flights: int) -> dict[str, float | bool]:
    """Return the mean and P90 wait recorded, and those of so many flights."""
    counted = [
        job
        for job, row in enumerate(record.rows)
        if row["start"] and row["nodelist"] not in ("", "(null)") and not int(row["restarts"] or 0)
    ]
    submit = np.array([float(record.rows[job]["submit"]) for job in counted])
    waits = np.array([float(record.rows[job]["start"]) for job in counted]) - submit
    means, tails = [], []
    for seed in range(flights):
        start = Flight(record, world, seed).fly()
        own = np.array([start.get(job, np.nan) for job in counted]) - submit
        means.append(float(np.nanmean(own)))
        tails.append(float(np.nanpercentile(own, 90)))
    mean, tail = float(waits.mean()), float(np.percentile(waits, 90))
    low, high = np.percentile(means, [2.5, 97.5])
    low_tail, high_tail = np.percentile(tails, [2.5, 97.5])
    return {
        "mean_wait": mean,
        "flown_mean_wait": float(np.median(means)),
        "mean_band": [float(low), float(high)],
        "p90_wait": tail,
        "flown_p90_wait": float(np.median(tails)),
        "p90_band": [float(low_tail), float(high_tail)],
        "is_inside": bool(low <= mean <= high and low_tail <= tail <= high_tail),
        "error": float(np.median(means) / mean - 1) if mean else 0.0,
    }
