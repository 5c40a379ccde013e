"""Fly a recorded workload from its beginning, with the recorded run times, many times.

What differs from flight to flight is how long launching and ending took, drawn from what was
recorded: elapsed less run time, and how long after an end the main loop gave its nodes away.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

import numpy as np
from dependencies import Dependencies

from windtunnel.sim.slurm.controller import LOOK, Controller
from windtunnel.sim.slurm.tables import SlurmTables

if TYPE_CHECKING:
    from records import Record
    from world import World

#: Kinds of moments, in the order in which they are looked at within a second.
END, SUBMIT = range(2)
#: A start so long after an end is due to it, if the job had waited for so long, s.
LATE, NEW = 5, 6
MINUTE = 60
#: A flight ends then, s.
HORIZON = 40_000


class Flight:
    """One flight of a record."""

    def __init__(self, record: Record, world: World, seed: int) -> None:
        self.record, self.world = record, world
        self.random = np.random.default_rng(seed)
        self.tables = SlurmTables(record.site, record.requests)
        fills = (int(stay.start) for stay in record.stays if stay.loop == "backfill")
        self.first_fill = next(fills, 1)
        self.controller = Controller(
            self.tables,
            phase=self._phase(),
            minute=self._minute(),
            reservations=world.reservations,
        )
        self.loops = self.tables.loops
        self.settings = record.site.settings
        self.lags, self.delays = self._lags(), self._delays()
        self.start: dict[int, int] = {}
        self.first: dict[int, int] = {}
        self.over: dict[int, tuple[int, bool]] = {}
        self.agenda: list[tuple[int, int, int]] = []
        self.blocked: set[int] = set()
        self.down: set[str] = set()
        self.kills = sorted(world.kills)
        self.held: set[int] = set()
        self.cancelled = {
            job: int(row["end"])
            for job, row in enumerate(record.rows)
            if row["state"] == "CANCELLED" and row["end"]
        }
        self.dependencies = Dependencies(record)

    def _lags(self) -> np.ndarray:
        """Return the recorded elapsed times less the run times, s."""
        rows = zip(range(len(self.record.rows)), self.record.rows, strict=True)
        lags = [
            int(row["end"]) - int(row["start"]) - self._run_time(job)
            for job, row in rows
            if row["state"] == "COMPLETED" and not int(row["restarts"] or 0)
        ]
        return np.maximum(np.array(lags or [0]), 0)

    def _delays(self) -> np.ndarray:
        """Return how long after a job's end the main loop started another on its nodes, s."""
        record = self.record
        ends = [(stay.end, set(stay.nodes)) for stay in record.stays if stay.end is not None]
        found = []
        for stay in record.stays:
            if stay.loop != "main" or float(record.work[stay.job]["submit"]) >= stay.start - NEW:
                continue
            near = [
                end
                for end, nodes in ends
                if stay.start - LATE < end <= stay.start and not nodes.isdisjoint(stay.nodes)
            ]
            if near:
                found.append(int(stay.start) - int(max(near)))
        return np.array(found or [1])

    def _run_time(self, job: int) -> int:
        return int(self.record.work[job]["run"]) + self.record.requests[job].task

    def _phase(self) -> int:
        """Return the second of the first backfill cycle."""
        return self.first_fill % self.tables.settings["bf_interval"]

    def _minute(self) -> int:
        """Return the second of the minute of what is done by the clock: that of the kills.

        Where nobody was killed it is 1: those who came in that second waited for three more.
        """
        kills = [
            math.floor(now) % MINUTE
            for now, words in self.record.events
            if words.startswith("Time limit exhausted") or words.endswith("for JobId=Invalid")
        ]
        return min(kills, default=1) % LOOK

    def fly(self) -> dict[int, int]:
        """Return the second in which each job that started first did."""
        for job in range(len(self.record.rows)):
            submit = int(float(self.record.work[job]["submit"]))
            heapq.heappush(self.agenda, (submit, SUBMIT, job))
        now = 0
        # Until the first cycle that is known they are taken to have followed each other.
        self.controller.stuck = 1
        while now < HORIZON and (
            self.agenda
            or self.controller.waiting
            or self.controller.expects
            or self.blocked
            or self.held
        ):
            self.controller.stuck -= now == self.first_fill
            self._happen(now - 1)
            self._surround(now)
            if self.controller.looks(now):
                self._time_out(now)
            self._began(self.controller.act(now), now)
            self._preempted(now)
            is_over = not (self.agenda or self.held or self.controller.expects)
            if is_over and not self.loops.queued():
                break
            now += 1
        return self.first

    def _happen(self, until: int) -> None:
        """Let everything up to a second happen."""
        while self.agenda and self.agenda[0][0] <= until:
            now, kind, job = heapq.heappop(self.agenda)
            if kind == END:
                self.controller.end(job, now)
                self.over[job] = now, self._run_time(job) <= self.record.requests[job].limit
            elif job in self.tables.never:
                self.controller.stuck += 1
                self.controller.ask(now)
            elif self._is_eligible(job, now):
                self.controller.submit(job, now)
            else:  # it may not run yet, but a submission is one all the same
                self.controller.ask(now)
                self._wait(job)
        for job in sorted(self.blocked):
            if self._is_eligible(job, until + 1):
                self.blocked.discard(job)
                self.controller.submit(job, until)

    def _wait(self, job: int) -> None:
        """Let a job wait for what it depends on, or for a time that nobody notices by itself."""
        work = self.record.work[job]
        if work["begin"] and not work["dependency"]:
            self.controller.submit_later(job, int(work["begin"]))
        else:
            self.blocked.add(job)

    def _is_eligible(self, job: int, now: int) -> bool:
        work = self.record.work[job]
        if work["begin"] and now < int(work["begin"]):
            return False

        def ended(other: int) -> bool | None:
            when, is_well = self.over.get(other, (now + 1, True))
            return is_well if when <= now else None

        return self.dependencies.met(job, self.start.__contains__, ended) is True

    def _surround(self, now: int) -> None:
        """Let nodes and cancellations be as they were recorded."""
        down = self.world.is_down(now)
        if down != self.down:
            self.down = down
            for name, node in self.tables.node_number.items():
                self.loops.set_up(node, name not in down)
            self.controller.ask(now - 1)
        held = self.world.held(now)
        for job in sorted(held & self.controller.waiting):
            self.controller.withdraw(job, now)
            self.held.add(job)
        for job in sorted(self.held - held):
            self.held.discard(job)
            self.controller.submit(job, now - 1)
        while self.kills and self.kills[0][0] < now:
            self._kill(*self.kills.pop(0))
        for job in [job for job, when in self.cancelled.items() if when <= now]:
            self._cancel(job, now)

    def _kill(self, now: float, name: str) -> None:
        """Let the jobs of a node that is lost run again from their beginning, later."""
        node = self.tables.node_number[name]
        for job in sorted(self.controller.running):
            if any(row[0] == node for row in self.tables.stays.of(job)):
                self.controller.end(job, now)
                self.controller.requeue(job, now)
                self._forget_end(job)

    def _forget_end(self, job: int) -> None:
        self.agenda = [moment for moment in self.agenda if moment[1:] != (END, job)]
        heapq.heapify(self.agenda)

    def _preempted(self, now: int) -> None:
        """Let the jobs that were stopped for others run again, or be over."""
        for job in self.controller.stopped:
            self._forget_end(job)
            if self.controller.runs_again(job):
                self.controller.requeue(job, now + 1)
            else:
                self.over[job] = now, False

    def _cancel(self, job: int, now: int) -> None:
        del self.cancelled[job]
        self.blocked.discard(job)
        if job in self.controller.waiting or job not in self.start:
            self.controller.withdraw(job, now)
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

    def _began(self, started: list[int], now: int) -> None:
        for job in started:
            self.start[job] = now
            self.first.setdefault(job, now)
            lag = int(self.random.choice(self.lags))
            # What ends within a second is seen in the next one.
            given = int(self.random.choice(self.delays)) - 1
            end = max(now + self._run_time(job) + lag + given, now + 1)
            heapq.heappush(self.agenda, (end, END, job))


def compare_flights(record: Record, world: World, flights: int) -> dict[str, float | bool]:
    """Return the mean and P90 wait recorded, and those of so many flights.

    Waits are those before the first start. Jobs whose launch failed and was tried again are left
    out where nobody is preempted.
    """
    first = {stay.job: math.floor(stay.start) for stay in reversed(record.stays)}
    preempts = bool(record.site.settings.preempt)
    counted = [
        job
        for job, row in enumerate(record.rows)
        if job in first and (preempts or not int(row["restarts"] or 0))
    ]
    submit = np.array([float(record.work[job]["submit"]) for job in counted])
    waits = np.array([float(first[job]) for job in counted]) - submit
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
