"""Where did the GPU hours go that made nothing? By how jobs ended, by their requests, by idleness.

Every GPU-second that a job held is of exactly one kind (`KINDS`), by how the job ended, so that the
kinds add up to all that was held. What telemetry calls idle, and what a request left unused, cut
across the kinds and stand beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.characterize.recorded import Recorded
from windtunnel.characterize.relation import column_names, relation, rows
from windtunnel.checked import checked_choice
from windtunnel.quantiles import quantiles

if TYPE_CHECKING:
    from windtunnel.companions import Relation

#: How a job ended: the kinds of GPU time, in order.
KINDS: tuple[str, ...] = (
    *("completed", "failed_early", "failed", "cancelled", "timeout", "node_fail"),
    *("preempted", "running", "pending", "unknown"),
)
#: Kinds whose work was not finished; what a checkpoint saved of it, a trace does not tell.
LOST: tuple[str, ...] = ("failed_early", "failed", "cancelled", "timeout", "node_fail", "preempted")
#: Properties by which waste is summed.
WASTE_BY: tuple[str, ...] = ("user", "vc")
#: A failure within so many seconds is early: a wrong path, a missing module.
EARLY_S = 600.0
#: A job that was busy once, and then idle for at least so long at its end, s.
TAIL_S = 3600.0
_FAILED = ("failed", "out_of_memory")


@dataclass(frozen=True)
class Waste:
    """Where the GPU time of a trace went.

    Attributes:
        recorded: the jobs' history.
        early: s within which a failure is early.
        tail: s of idleness at a job's end that count as "used once, then idle".
        idle: `windtunnel.characterize.idle.idle_jobs`; None = no telemetry.
        tasks: what `unused_gpus` says of the tasks; None = the trace has none that tell.
    """

    recorded: Recorded
    early: float
    tail: float
    idle: pa.Table | None
    tasks: dict[str, Any] | None

    @cached_property
    def kind(self) -> np.ndarray:
        """Int array (n,): each job's kind, an index into `KINDS`."""
        status = self.recorded.jobs["status"].fill_null("unknown").to_pylist()
        place = {name: index for index, name in enumerate(KINDS)}
        place |= dict.fromkeys(_FAILED, place["failed"])
        codes = np.array([place[word] for word in status], dtype=np.int64)
        early = (codes == place["failed"]) & (self.recorded.run < self.early)
        codes[early] = place["failed_early"]
        return codes

    def kinds(self) -> pa.Table:
        """Return the GPU time of each kind that has jobs.

        Returns:
            ``kind``, ``num_jobs``, ``gpu_time`` (GPU-s), ``share`` (0..1 of all; null where no GPU
            was held).
        """
        jobs = np.bincount(self.kind, minlength=len(KINDS))
        held = np.bincount(self.kind, self.recorded.gpu_time, minlength=len(KINDS))
        whole = float(self.recorded.gpu_time.sum())
        present = np.flatnonzero(jobs)
        return pa.table(
            {
                "kind": [KINDS[code] for code in present],
                "num_jobs": jobs[present],
                "gpu_time": held[present],
                "share": pa.array(
                    [held[code] / whole if whole else None for code in present], pa.float64()
                ),
            }
        )

    def by(self, column: str) -> pa.Table:
        """Return the GPU time of each user's or virtual cluster's jobs.

        Args:
            column: one of `WASTE_BY`.

        Returns:
            Most lost GPU time first, then by name: the column, ``num_jobs``, ``gpu_time``, one
            column of GPU-s for each of `LOST`, ``lost`` (their sum), ``lost_share`` (0..1; null
            where nothing was held), ``idle`` (GPU-s; null without telemetry of any of its jobs),
            ``limit_used`` (GPU time held over GPU time asked for by time limits, of jobs that have
            one and have ended; null where none has).

        Raises:
            SpecError: ``column`` is none of them.
        """
        checked_choice("by", column, WASTE_BY)
        codes, labels = self.recorded.names(column)
        count = len(labels)

        def summed(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
            sums: np.ndarray = np.bincount(codes[mask], values[mask], minlength=count)
            return sums

        held, every = self.recorded.gpu_time, np.ones(len(codes), dtype=bool)
        parts = {name: summed(self.kind == KINDS.index(name), held) for name in LOST}
        lost = np.sum(list(parts.values()), axis=0)
        total = summed(every, held)
        asked = summed(self._limited, self._asked)
        used = summed(self._limited, held)
        idle, sampled = self._idle
        idle_of = summed(sampled, idle)
        order = sorted(range(count), key=lambda place: (-lost[place], labels[place]))
        has_idle = np.bincount(codes[sampled], minlength=count) > 0
        return pa.table(
            {
                column: [labels[i] for i in order],
                "num_jobs": np.bincount(codes, minlength=count)[order],
                "gpu_time": total[order],
                **{name: part[order] for name, part in parts.items()},
                "lost": lost[order],
                "lost_share": _ratio(lost, total, order),
                "idle": pa.array(idle_of[order], mask=~has_idle[order]),
                "limit_used": _ratio(used, asked, order),
            }
        )

    def limits(self) -> dict[str, Any]:
        """Return how much of the time limits was used, by jobs that have one and have ended.

        Keys: ``n``, ``unknown`` (jobs that ran and ended without a known limit), ``asked`` and
        ``used`` (GPU-s), ``p50_used`` (median of run time / limit), ``num_under_half`` (jobs that
        used less than half).
        """
        mask = self._limited
        share = self.recorded.run[mask] / self._estimate[mask]
        return {
            "n": int(mask.sum()),
            "unknown": int((self._ended & ~mask).sum()),
            "asked": float(self._asked[mask].sum()),
            "used": float(self.recorded.gpu_time[mask].sum()),
            "p50_used": float(quantiles(share, 0.5)) if len(share) else None,
            "num_under_half": int((share < 0.5).sum()),  # noqa: PLR2004 - half
        }

    def idleness(self) -> dict[str, Any] | None:
        """Return what telemetry says in numbers; None without telemetry.

        Keys: ``num_jobs`` (with samples, in the trace), ``unknown_jobs`` (with samples, not in the
        trace), ``gpu_time`` (GPU-s that the former held), ``idle`` (GPU-s of it that were idle, by
        each job's share of idle samples), ``num_never_used``, ``never_used`` (GPU-s),
        ``num_then_idle``, ``then_idle`` (GPU-s from the last busy sample to the job's end, or as
        long as it was seen idle, where its samples stop before),
        ``unused_devices`` and ``devices`` (GPUs with samples), ``left_out`` (samples of no job).
        """
        if self.idle is None:
            return None
        idle, sampled = self._idle
        never = sampled & (self._of_jobs("n_idle") == self._of_jobs("n"))
        tail = self.tail_time
        in_trace = sampled.sum()
        return {
            "num_jobs": int(in_trace),
            "unknown_jobs": int(self.idle.num_rows - in_trace),
            "gpu_time": float(self.recorded.gpu_time[sampled].sum()),
            "idle": float(idle[sampled].sum()),
            "num_never_used": int(never.sum()),
            "never_used": float(self.recorded.gpu_time[never].sum()),
            "num_then_idle": int((tail > 0).sum()),
            "then_idle": float((tail * self.recorded.gpus).sum()),
            "devices": int(np.nansum(self._of_jobs("devices"))),
            "unused_devices": int(np.nansum(self._of_jobs("unused_devices"))),
            "left_out": int((self.idle.schema.metadata or {})[b"windtunnel.left_out"]),
        }

    def worst(self, top: int = 20) -> pa.Table:
        """Return the jobs with most idle GPU time.

        Returns:
            ``job_id``, ``user``, ``num_gpus``, ``gpu_time``, ``idle`` (GPU-s), ``idle_share``
            (of its samples), ``tail`` (s idle at its end after it was busy, 0 = less than asked
            for), ``unused_devices``; most idle first, then in the jobs' order.
        """
        idle, sampled = self._idle
        order = np.lexsort((np.arange(len(idle)), -idle))
        rows = [row for row in order if sampled[row] and idle[row] > 0][:top]
        jobs = self.recorded.jobs.take(pa.array(rows, pa.int64()))
        share = self._of_jobs("n_idle") / self._of_jobs("n")
        return pa.table(
            {
                "job_id": jobs["job_id"],
                "user": jobs["user"],
                "num_gpus": jobs["num_gpus"],
                "gpu_time": self.recorded.gpu_time[rows],
                "idle": idle[rows],
                "idle_share": share[rows],
                "tail": self.tail_time[rows],
                "unused_devices": pa.array(self._of_jobs("unused_devices")[rows], pa.float64()),
            }
        )

    @cached_property
    def tail_time(self) -> np.ndarray:
        """Float array (n,): s seen idle at the end of a job that was busy; 0 where under `tail`."""
        since, until = self._last_idle
        idle = np.where(np.isnan(self._of_jobs("last_busy")), 0.0, np.nan_to_num(until - since))
        tails: np.ndarray = np.where(idle >= self.tail, idle, 0.0)
        return tails

    @cached_property
    def idle_to_end(self) -> np.ndarray:
        """Float array (n,): s that a rule that ends jobs idle for `tail` could look back on.

        From when a job was last busy (its start, where it never was) to its end, where it was seen
        idle for `tail` from then on; 0 elsewhere.
        """
        since, until = self._last_idle
        end = np.where(np.isnan(self.recorded.end), until, self.recorded.end)
        seen = np.nan_to_num(until - since) >= self.tail
        idle: np.ndarray = np.where(seen, np.nan_to_num(end - since), 0.0)
        return idle

    @cached_property
    def _last_idle(self) -> tuple[np.ndarray, np.ndarray]:
        """From when to when each job was last seen idle, s, shapes (n,); NaN = no samples.

        A sample tells of the time to the next one and, where it is the first, from the one before:
        so long as the samples of a device lie apart in the mean. Beyond that nothing is known.
        """
        first, last = self._of_jobs("first_sample"), self._of_jobs("last_sample")
        apart = self._of_jobs("n") / self._of_jobs("devices") - 1
        step = (last - first) / np.fmax(apart, 1)
        until = np.fmin(self.recorded.end, last + step)
        until = np.where(np.isnan(self.recorded.end), last, until)
        until[np.isnan(last)] = np.nan
        busy = self._of_jobs("last_busy")
        since = np.where(np.isnan(busy), np.fmax(self.recorded.start, first - step), busy)
        return since, until

    @cached_property
    def _idle(self) -> tuple[np.ndarray, np.ndarray]:
        """Idle GPU-s of each job, and which jobs have samples; shapes (n,)."""
        share = self._of_jobs("n_idle") / self._of_jobs("n")
        idle: np.ndarray = np.nan_to_num(share) * self.recorded.gpu_time
        return idle, ~np.isnan(share)

    def _of_jobs(self, name: str) -> np.ndarray:
        """Return a column of the idleness in the jobs' order, NaN = the job has no samples."""
        if self.idle is None:
            return np.full(len(self.recorded.gpus), np.nan)
        ids = self.idle["job_id"].to_pylist()
        known = dict(zip(ids, self.idle[name].to_pylist(), strict=True))
        found = (known.get(job) for job in self.recorded.jobs["job_id"].to_pylist())
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64)

    @cached_property
    def _estimate(self) -> np.ndarray:
        return np.asarray(self.recorded.jobs["estimate"].to_numpy(), dtype=np.float64)

    @cached_property
    def _asked(self) -> np.ndarray:
        asked: np.ndarray = np.nan_to_num(self._estimate) * self.recorded.gpus
        return asked

    @cached_property
    def _ended(self) -> np.ndarray:
        over = ~np.isin(self.kind, [KINDS.index("running"), KINDS.index("pending")])
        ended: np.ndarray = over & (self.recorded.run > 0)
        return ended

    @cached_property
    def _limited(self) -> np.ndarray:
        limited: np.ndarray = self._ended & (np.nan_to_num(self._estimate) > 0)
        return limited


def waste(
    jobs: pa.Table,
    *,
    early: float = EARLY_S,
    tail: float = TAIL_S,
    idle: pa.Table | None = None,
    tasks: Relation | None = None,
) -> Waste:
    """Return where the GPU time of a trace went.

    Args:
        early: a job that failed within so many seconds failed early.
        tail: a job that was busy and then idle for so many seconds at its end counts as such.
        idle: what `windtunnel.characterize.idle.idle_jobs` returned; None = no telemetry.
        tasks: the trace's tasks, where it has them.
    """
    return Waste(
        Recorded.of(jobs), early, tail, idle, None if tasks is None else unused_gpus(tasks)
    )


def unused_gpus(tasks: Relation) -> dict[str, Any] | None:
    """Return how much of the GPUs that tasks asked for they used; None where none tells.

    Returns:
        Keys: ``n`` (tasks whose request, use and times are known), ``asked`` and ``used`` (GPU-s).
    """
    names = ("num_gpus", "gpus_used", "start_time", "end_time")
    if any(name not in column_names(tasks) for name in names):
        return None
    table = relation(tasks, names)
    known = table.filter(table.gpus_used.notnull() & (table.num_gpus > 0))
    known = known.filter(known.end_time >= known.start_time)
    span = known.end_time - known.start_time
    sums = known.aggregate(
        n=known.count(), asked=(known.num_gpus * span).sum(), used=(known.gpus_used * span).sum()
    )
    (row,) = rows(sums)
    return row if row["n"] else None


def _ratio(part: np.ndarray, whole: np.ndarray, order: list[int]) -> pa.Array:
    return pa.array([part[i] / whole[i] if whole[i] > 0 else None for i in order], pa.float64())
