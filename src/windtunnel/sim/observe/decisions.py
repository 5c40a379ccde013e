"""What was decided about every job, and why: the flight recorder's table.

Rows come from what the engine wrote about waiting jobs (`windtunnel.sim.verdicts`), and from the
stays of the run: who started, was stopped, and was done.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.sim import verdicts
from windtunnel.sim.flight import FAILED
from windtunnel.sim.observe.lacks import GPUS, LIMITS, lacks
from windtunnel.sim.timeline import utilization

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.sim.flown import Flown

#: The words for the verdicts of engines, by their code, and for what else happens to jobs.
WORDS: tuple[str, ...] = (
    "", "behind", "no_room", "no_room", "would_delay", "power", "limit", "choice", "interval",
    "preempted", "held", "started", "interrupted", "finished", "failed",
)  # fmt: skip
HELD, STARTED, INTERRUPTED, FINISHED, FAILED_ROW = range(10, 15)
#: Verdicts on a job that waits.
WAITING: tuple[str, ...] = (
    "behind", "no_room", "would_delay", "power", "limit", "choice", "interval", "held",
    "preempted", "interrupted",
)  # fmt: skip
SCHEMA = pa.schema(
    [
        pa.field("time", pa.float64(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("job_id", pa.string()),
        pa.field("gpus", pa.float64()),
        pa.field("verdict", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("limit", pa.dictionary(pa.int8(), pa.string())),
        pa.field("blocker", pa.string()),
        pa.field("promise", pa.float64()),
        pa.field("free_gpus", pa.float64()),
    ]
)
#: Rows in a group of a file.
GROUP = 1 << 18


class DecisionRows:
    """The decisions of a run, in order of time.

    Args:
        outcome: of a run that was recorded.

    Raises:
        SpecError: it was not.
    """

    def __init__(self, outcome: Flown) -> None:
        if outcome.flight.verdicts is None:
            message = "found none; fly with record=True (simulate --record FILE.parquet)."
            raise SpecError("decisions", message)
        self.outcome, self.flight = outcome, outcome.flight
        self.found = outcome.flight.verdicts
        self.time, self.row, self.code, self.at = self._rows()

    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return time, job, code and place among the engine's rows (-1 = none) of each row."""
        flight, found = self.flight, self.found
        ends, who, what, is_empty = self._ends()
        held, since = self._held()
        start, job = flight.segment_start, flight.segment_job
        # Of events one by one somebody may start and be stopped again at one instant.
        in_vain = (flight.segment_end == start) & ~self._is_over
        parts = [
            (ends[~is_empty], who[~is_empty], what[~is_empty]),
            (since, held, np.full(len(held), HELD)),
            (start[in_vain], job[in_vain], np.full(in_vain.sum(), STARTED)),
            (found.time, found.row, found.verdict),
            (start[~in_vain], job[~in_vain], np.full((~in_vain).sum(), STARTED)),
            (ends[is_empty], who[is_empty], what[is_empty]),
        ]
        time, row, code = (np.concatenate([part[at] for part in parts]) for at in range(3))
        at = np.full(len(time), -1, dtype=np.int64)
        first = sum(len(part[0]) for part in parts[:3])
        at[first : first + len(found.time)] = np.arange(len(found.time))
        order = np.argsort(time, kind="stable")
        return time[order], row[order], code[order].astype(np.int8), at[order]

    @cached_property
    def _is_over(self) -> np.ndarray:
        """Whether a job was over with each stay, Bool array (s,)."""
        flight = self.flight
        stays = np.arange(len(flight.segment_job))
        last = np.full(len(flight.status), -1, dtype=np.int64)
        last[flight.segment_job] = stays
        is_last = last[flight.segment_job] == stays
        over: np.ndarray = is_last & ~np.isnan(flight.end[flight.segment_job])
        return over

    def _ends(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return when stays ended, whose, how, and whether they had no length.

        Those that ended for another job are in the engine's rows.
        """
        flight, over = self.flight, self._is_over
        what = np.where(flight.status[flight.segment_job] == FAILED, FAILED_ROW, FINISHED)
        what = np.where(over, what, INTERRUPTED)
        keep = ~np.isnan(flight.segment_end)
        some = np.flatnonzero(keep & ~over)
        if len(some):
            stopped = self.found.verdict == verdicts.PREEMPTED
            known = self.found.row[stopped] + 1j * self.found.time[stopped]
            mine = flight.segment_job[some] + 1j * flight.segment_end[some]
            keep[some[np.isin(mine, known)]] = False
        end = flight.segment_end[keep]
        by_time = np.argsort(end, kind="stable")
        is_empty = ((flight.segment_start[keep] == end) & over[keep])[by_time]
        return end[by_time], flight.segment_job[keep][by_time], what[keep][by_time], is_empty

    def _held(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the jobs that were let into the queue later than they came, and when they came."""
        power = self.flight.power
        if power is None:
            return np.empty(0, dtype=np.int64), np.empty(0)
        submit = self.outcome.submit_time
        held = np.flatnonzero(self.outcome.submitted & ~(power.held_until <= submit))
        return held, submit[held]

    @cached_property
    def _blocker(self) -> np.ndarray:
        """Who is in the way, or took a stopped job's place where the policy names nobody."""
        flight, blocker = self.flight, self.found.blocker.copy()
        unnamed = (self.found.verdict == verdicts.PREEMPTED) & (blocker < 0)
        if not unnamed.any():
            return blocker
        times = np.unique(self.found.time[unnamed])
        begun: dict[float, list[int]] = {}
        ended: dict[tuple[float, int], int] = {}
        for stay in np.flatnonzero(np.isin(flight.segment_start, times)).tolist():
            begun.setdefault(float(flight.segment_start[stay]), []).append(stay)
        for stay in np.flatnonzero(np.isin(flight.segment_end, times)).tolist():
            ended[float(flight.segment_end[stay]), int(flight.segment_job[stay])] = stay
        for at in np.flatnonzero(unnamed).tolist():
            time, row = float(self.found.time[at]), int(self.found.row[at])
            nodes = self._nodes(ended[time, row])
            others = [s for s in begun.get(time, ()) if flight.segment_job[s] != row]
            near = (s for s in others if not nodes or nodes & self._nodes(s))
            taker = next(near, others[0] if others else None)
            blocker[at] = -1 if taker is None else flight.segment_job[taker]
        return blocker

    def _nodes(self, stay: int) -> set[int]:
        first, last = self.flight.node_offset[stay : stay + 2].tolist()
        return set(self.flight.nodes[first:last].tolist())

    @cached_property
    def free_gpus(self) -> np.ndarray:
        """GPUs that are free once all has happened at each row's time, Float array (k,)."""
        outcome, flight = self.outcome, self.flight
        if flight.interruptions is not None or flight.stretches is not None:
            return self._free_of_those_up()
        # Whoever starts or stops has a row: no curve is needed.
        sign = _SIGN_OF[self.code]
        used = np.cumsum(sign * np.round(outcome.num_gpus * 1e6)[self.row])
        last = np.flatnonzero(np.append(self.time[1:] != self.time[:-1], True))
        counts = np.diff(last, prepend=-1)
        free: np.ndarray = outcome.cluster.num_gpus - np.repeat(used[last], counts) / 1e6
        return free

    def _free_of_those_up(self) -> np.ndarray:
        """Return the same where GPUs go down, or jobs change their size."""
        outcome, flight = self.outcome, self.flight
        all_gpus = float(outcome.cluster.num_gpus)
        found = utilization(outcome)
        used = _at(found["time"].to_numpy(), found["gpus"].to_numpy(), self.time, 0.0)
        if flight.interruptions is None:
            left: np.ndarray = all_gpus - used
            return left
        ups = flight.interruptions
        free: np.ndarray = _at(ups.up_time, ups.up_gpus, self.time, all_gpus) - used
        return free

    @cached_property
    def _ids(self) -> pa.Array:
        return pa.concat_arrays(self.outcome.jobs["job_id"].cast(pa.string()).chunks)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, `GROUP` at a time, as `SCHEMA` says."""
        for start in range(0, len(self.time), GROUP):
            yield self._batch(slice(start, start + GROUP))

    def _batch(self, part: slice) -> pa.RecordBatch:
        time, row, code, at = self.time[part], self.row[part], self.code[part], self.at[part]
        ids, found = self._ids, self.found
        blocker = np.where(at >= 0, self._blocker[at], -1) if len(found.time) else at
        promise = np.where(at >= 0, found.promise[at], np.inf) if len(found.time) else at + np.inf
        gpus, free = self.outcome.num_gpus[row], self.free_gpus[part]
        columns = [
            pa.array(time),
            pa.array(row),
            ids.take(pa.array(row)),
            pa.array(gpus),
            pa.DictionaryArray.from_arrays(pa.array(_WORD_OF[code]), pa.array(_DISTINCT)),
            self._limits(part),
            ids.take(pa.array(blocker, mask=blocker < 0)),
            pa.array(promise, mask=np.isinf(promise)),
            pa.array(free),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    @cached_property
    def _lacking(self) -> np.ndarray:
        """What each row's job lacks, if it does not fit: places in `LIMITS`; Int8 array (k,)."""
        gpus = self.outcome.num_gpus[self.row]
        found = np.full(len(self.row), GPUS, dtype=np.int8)
        other = np.flatnonzero(self._does_not_fit & (gpus <= self.free_gpus))
        found[other] = lacks(self.outcome, self.time[other], self.row[other])
        return found

    @cached_property
    def _does_not_fit(self) -> np.ndarray:
        return np.isin(self.code, (verdicts.NO_ROOM, verdicts.FIRST))

    def _limits(self, part: slice) -> Any:
        """Return what jobs lack that do not fit."""
        return pa.DictionaryArray.from_arrays(
            pa.array(self._lacking[part], mask=~self._does_not_fit[part]), pa.array(LIMITS)
        )


_DISTINCT: list[str] = list(dict.fromkeys(WORDS))
_WORD_OF = np.array([_DISTINCT.index(word) for word in WORDS], dtype=np.int8)


#: What each row does to the GPUs in use.
_SIGN_OF = np.zeros(len(WORDS))
_SIGN_OF[STARTED] = 1.0
_SIGN_OF[[verdicts.PREEMPTED, INTERRUPTED, FINISHED, FAILED_ROW]] = -1.0


def _at(time: np.ndarray, value: np.ndarray, when: np.ndarray, before: float) -> np.ndarray:
    """Return a step function at some times; ``before`` before its first."""
    if len(time) == 0:
        return np.full(len(when), before)
    at = np.searchsorted(time, when, side="right") - 1
    return np.where(at < 0, before, value[np.maximum(at, 0)])


def decisions(outcome: Flown) -> pa.Table:
    """Return what was decided about every job, one row a change, in order of time.

    Columns: ``time`` s; ``row`` of the jobs table, ``job_id``, ``gpus`` asked for; ``verdict``;
    ``limit`` (what one that does not fit lacks); ``blocker`` (job that is in the way, or that it
    was stopped for); ``promise`` (s: the start that it, or the one in its way, is promised);
    ``free_gpus`` once all had happened at the time.

    Raises:
        SpecError: the run was not recorded.
    """
    return pa.Table.from_batches(list(DecisionRows(outcome).batches()), SCHEMA)
