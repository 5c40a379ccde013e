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
            self.tables.jobs.set_priority(job, int(row["priority"] or 0))

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
            tables.jobs.set_hold(job, names.get(reservation, -1))
            tables.jobs.set_reason(job, 0)
            if self.priority is not None:
                tables.jobs.set_priority(job, self.priority(job, now))
            loops.put_pending(job)

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
            return [job for job, _ in self.loops.run_main(second)]
        return [job for job, _ in self.loops.run_backfill(second)]


def compare_starts(replay: Replay, tally: dict[str, Tally]) -> None:
    """Compare the decisions that started somebody."""
    record = replay.record
    at = 0
    for (now, loop), group in groupby(record.stays, key=lambda s: (s.start, s.loop)):
        said = list(group)
        replay.load(now, record.stays[:at])
        at += len(said)
        mine = replay.decide(now, loop)
        _count(replay, tally[loop], now, said, mine)


def _count(replay: Replay, one: Tally, now: float, said: list[Stay], mine: list[int]) -> None:
    record = replay.record
    wanted = [stay.job for stay in said]
    one.compared += 1
    one.equal += set(mine) == set(wanted)
    if set(mine) != set(wanted):
        ids = [[record.rows[job]["slurm_id"] for job in jobs] for jobs in (wanted, mine)]
        one.examples.append(f"{now}: recorded {ids[0]}, here {ids[1]}")
    for stay in said:
        if stay.job in mine:
            chosen = [record.site.nodes[n].name for n, _ in replay.tables.stays.of(stay.job)]
            one.starts += 1
            one.same_nodes += chosen == stay.nodes
            if chosen != stay.nodes:
                job = record.rows[stay.job]["slurm_id"]
                one.examples.append(f"{now}: job {job} on {stay.nodes}, here {chosen}")


def compare_idle(replay: Replay, tally: dict[str, Tally]) -> None:
    """Compare decisions that started nobody: cycles between others, and runs after ends."""
    record = replay.record
    interval = replay.tables.settings["bf_interval"]
    fills = sorted({s.start for s in record.stays if s.loop == "backfill"})
    for first, last in pairwise(fills):
        steps = (last - first) / interval
        if abs(steps - round(steps)) * interval < TICK:
            for step in range(1, round(steps)):
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
    if replay.loops.queue():
        _count(replay, one, now, [], replay.decide(now, loop))
