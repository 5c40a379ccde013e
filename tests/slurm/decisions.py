"""Put the scheduler into the recorded state before each decision, and ask what it would do."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from world import World

from windtunnel.sim.slurm.tables import SlurmTables

if TYPE_CHECKING:
    from collections.abc import Callable

    from records import Record, Stay

#: The log's clock ticks in tenths: what happened less than that before is not yet known.
TICK = 0.1
#: After an end the main loop has run within so many seconds.
SETTLED = 4
#: Time limits are looked at so often, s.
LOOK = 30


@dataclass
class Tally:
    """Decisions compared and equal."""

    compared: int = 0
    equal: int = 0
    starts: int = 0
    same_nodes: int = 0
    examples: list[str] = field(default_factory=list)


class Replay:
    """A record, and the scheduler that is put into its states."""

    def __init__(self, record: Record, priority: Callable[[int, float], int] | None = None) -> None:
        self.record = record
        self.tables = SlurmTables(record.site, record.requests)
        self.loops = self.tables.loops
        self.priority = priority
        self.world = World(record, record.t0)
        for job, row in enumerate(record.rows):
            self.tables.jobs.columns["priority"][job] = int(row["priority"] or 0)
        self.interval = self.tables.settings["bf_interval"]
        self.fills = sorted({s.start for s in record.stays if s.loop == "backfill"})
        self.notices: dict[int, tuple[int, int]] = {}
        self.notice_stays()

    def is_cycle(self, now: float) -> bool:
        """Return whether a backfill cycle can have run at an instant, by those that are known."""
        if not self.fills:
            return False
        at = bisect.bisect_left(self.fills, now)
        near = {self.fills[max(at - 1, 0)], self.fills[min(at, len(self.fills) - 1)]}
        past = {(now - fill) % self.interval for fill in near}
        return any(min(some, self.interval - some) < TICK for some in past)

    def cycle_before(self, now: float) -> float | None:
        """Return when the last backfill cycle before an instant was, by those that are known."""
        if not self.fills:
            return None
        near = self.fills[max(bisect.bisect_left(self.fills, now) - 1, 0)]
        return near + math.floor((now - near) / self.interval) * self.interval

    def notice_stays(self) -> None:
        """Find out when those were asked to end that were killed after a time of grace.

        That is not recorded: the first second of those possible at which they are chosen here.
        """
        rules = self.tables.preempting.rules
        for at, stay in enumerate(self.record.stays):
            grace = max(rules["grace"], default=0)
            if not stay.is_preempted or not grace:
                continue
            last = math.floor(stay.end) - grace
            self.notices[at] = (last - LOOK // 2, -1)
            for second in range(last - LOOK + 1, last + 1):
                waiting = self._notices_at(at, second)
                if waiting is not None:
                    self.notices[at] = (second, waiting)
                    break

    def _notices_at(self, at: int, second: int) -> int | None:
        """Return for which job a loop would tell a running one to end; None = for none."""
        kept = self.notices.pop(at)
        self.load(second, [s for s in self.record.stays if s.start < second])
        queue = {job for job, _ in self.loops.queued()}
        before = {job for job in queue if self.tables.jobs.columns["preempts_since"][job] >= 0}
        loops = ["main", "backfill"] if self.is_cycle(second) else ["main"]
        for loop in loops:
            self.decide(second, loop)
        self.notices[at] = kept
        if not self.tables.jobs.columns["noticed"][self.record.stays[at].job]:
            return None
        new = [j for j in queue - before if self.tables.jobs.columns["preempts_since"][j] >= 0]
        return new[0] if new else -1

    def load(self, now: float, before: list[Stay]) -> None:
        """Become the recorded state just before ``now``."""
        loops, record, tables = self.loops, self.record, self.tables
        loops.clear()
        busy: set[int] = set()
        over: dict[int, Stay] = {}
        for stay in before:
            if stay.end is None or stay.end > now - TICK:
                busy.add(stay.job)
                self._run(stay)
            else:
                over[stay.job] = stay
        down, held = self.world.is_down(now), self.world.held(now)
        for name, node in tables.node_number.items():
            loops.set_up(node, name not in down)
        self._load_queue(now, busy, over, held)
        for at, (second, waiting) in self.notices.items():
            stay = record.stays[at]
            if second < now and stay.start < now and stay.job in busy:
                loops.notice(stay.job, second + self._grace(stay))
            if waiting >= 0 and second < now:
                tables.jobs.columns["preempts_since"][waiting] = second

    def _load_queue(
        self, now: float, busy: set[int], over: dict[int, Stay], held: set[int]
    ) -> None:
        loops, record, tables = self.loops, self.record, self.tables
        holds = self.world.reserved(now)
        loops.set_holds(tables.hold_tables(holds))
        names = {hold.name: at for at, hold in enumerate(holds)}
        for job in range(len(record.rows)):
            if job in busy or job in tables.never or job in held:
                continue
            if not self.world.waits(job, now, over.get(job)):
                continue
            reservation = record.requests[job].reservation
            if reservation and reservation not in names:
                continue
            tables.jobs.columns["hold"][job] = names.get(reservation, -1)
            tables.jobs.columns["reason"][job] = 0
            if self.priority is not None:
                tables.jobs.columns["priority"][job] = self.priority(job, now)
            last = over.get(job)
            when = record.requests[job].submit if last is None else last.queued_again
            tables.jobs.columns["submitted"][job] = math.floor(when)
            loops.put_pending(job)
            tables.jobs.columns["preempts_since"][job] = -1

    def _grace(self, stay: Stay) -> int:
        return int(self.tables.preempting.rules["grace"][self.tables.part_number[stay.part]])

    def _run(self, stay: Stay) -> None:
        tables, shares = self.tables, self.record.shares[stay.job]
        request = self.record.requests[stay.job]
        rows = []
        for name in stay.nodes:
            cpus, memory, gpus = shares.get(
                name, (request.node_cpus or request.cpus, 0, request.node_gpus)
            )
            number = tables.node_number[name]
            rows.append((number, cpus, memory, gpus or request.node_gpus))
        part = tables.part_number[stay.part]
        self.loops.put_running(stay.job, part, math.floor(stay.start), rows)

    def decide(self, now: float, loop: str) -> list[int]:
        """Return the jobs that a loop would start now."""
        second = math.floor(now)
        if loop == "main":
            return list(self.loops.run_main(second))
        return list(self.loops.run_backfill(second))


def compare_starts(replay: Replay, tally: dict[str, Tally]) -> None:
    """Compare the decisions that started somebody."""
    record = replay.record
    at = 0
    for (now, loop), group in groupby(record.stays, key=lambda s: (s.start, s.loop)):
        recorded = list(group)
        replay.load(now, record.stays[:at])
        at += len(recorded)
        mine = replay.decide(now, loop)
        _count(replay, tally[loop], now, loop, recorded, mine)
    known = {(stay.start, stay.loop) for stay in record.stays}
    for now in sorted({when for when, _ in record.preemptions}):
        loop = "backfill" if replay.is_cycle(now) else "main"
        if (now, loop) not in known and not max(replay.tables.preempting.rules["grace"], default=0):
            replay.load(now, [stay for stay in record.stays if stay.start < now])
            _count(replay, tally[loop], now, loop, [], replay.decide(now, loop))


def _count(
    replay: Replay, one: Tally, now: float, loop: str, recorded: list[Stay], mine: list[int]
) -> None:
    record = replay.record
    wanted = [stay.job for stay in recorded]
    one.compared += 1
    gone = set(replay.loops.last_stopped())
    recorded_gone = {job for when, job in record.preemptions if when == now}
    has_grace = max(replay.tables.preempting.rules["grace"], default=0) > 0
    if has_grace or replay.is_cycle(now) != (loop == "backfill"):
        gone = recorded_gone = set()  # asked before, when is not recorded; or in the other loop
    one.equal += set(mine) == set(wanted) and gone == recorded_gone
    if gone != recorded_gone:
        ids = [[record.rows[job]["slurm_id"] for job in jobs] for jobs in (recorded_gone, gone)]
        one.examples.append(f"{now}: preempted {ids[0]}, here {ids[1]}")
    if set(mine) != set(wanted):
        ids = [[record.rows[job]["slurm_id"] for job in jobs] for jobs in (wanted, mine)]
        one.examples.append(f"{now}: recorded {ids[0]}, here {ids[1]}")
    for stay in recorded:
        if stay.job in mine:
            chosen = [record.site.nodes[row[0]].name for row in replay.tables.stays.of(stay.job)]
            one.starts += 1
            one.same_nodes += chosen == stay.nodes
            if chosen != stay.nodes:
                job = record.rows[stay.job]["slurm_id"]
                one.examples.append(f"{now}: job {job} on {stay.nodes}, here {chosen}")


def compare_idle(replay: Replay, tally: dict[str, Tally]) -> None:
    """Compare decisions that started nobody: cycles between others, and runs after ends."""
    record = replay.record
    interval = replay.interval
    gone = {when for when, _ in record.preemptions}
    for first, last in pairwise(replay.fills):
        steps = (last - first) / interval
        if abs(steps - round(steps)) * interval < TICK:
            for step in range(1, round(steps)):
                if first + step * interval not in gone:
                    _idle(replay, tally["idle_backfill"], first + step * interval, "backfill")
    starts = sorted({s.start for s in record.stays})
    for end in sorted({s.end for s in record.stays if s.end is not None}):
        at = bisect.bisect_left(starts, end - SETTLED)
        if at == len(starts) or starts[at] > end + SETTLED:
            _idle(replay, tally["idle_main"], math.floor(end) + 1, "main")


def _idle(replay: Replay, one: Tally, now: float, loop: str) -> None:
    """Count a decision that started nobody, if anybody waited."""
    before = [stay for stay in replay.record.stays if stay.start < now]
    replay.load(now, before)
    if replay.loops.queued():
        _count(replay, one, now, loop, [], replay.decide(now, loop))
