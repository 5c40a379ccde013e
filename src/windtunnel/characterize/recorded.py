"""What a trace recorded of each job, as arrays: who asked for what, and held it from when to when.

The jobs table's ``start_time`` and ``end_time`` count. A job that started and has not ended held
its GPUs for its ``duration`` (a log's "time so far"). A job without a start whose run time is known
held its GPUs at a time that nobody knows: it counts in sums, and on no time line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.metrics import named_groups
from windtunnel.sim.timeline import steps

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Recorded:
    """The recorded history of a jobs table, row order = the table's.

    Attributes:
        jobs: the jobs table.
        submit: Float array (n,), s, NaN = unknown; so are the others.
        start: Float array (n,), NaN = never started, or unknown.
        end: Float array (n,), when it gave its GPUs back, or until when it is known to hold them.
        run: Float array (n,), seconds on GPUs, 0 where it never ran or nobody knows.
        gpus: Float array (n,), GPUs asked for, 0 where unknown.
        gpu_time: Float array (n,), GPU-seconds held.
    """

    jobs: pa.Table
    submit: np.ndarray
    start: np.ndarray
    end: np.ndarray
    run: np.ndarray
    gpus: np.ndarray
    gpu_time: np.ndarray

    @classmethod
    def of(cls, jobs: pa.Table) -> Recorded:
        """Return what a jobs table (`windtunnel.schema`) recorded."""
        submit, start, end, duration, gpus = (
            np.array(jobs[name].to_numpy(), dtype=np.float64)
            for name in ("submit_time", "start_time", "end_time", "duration", "num_gpus")
        )
        end = np.where(np.isnan(end), start + duration, end)
        end[np.isnan(start)] = np.nan
        run = np.where(np.isnan(duration), end - start, duration)
        run, gpus = np.nan_to_num(run), np.nan_to_num(gpus)
        return cls(jobs, submit, start, end, run, gpus, run * gpus)

    @property
    def wait(self) -> np.ndarray:
        """Start - submit, s, NaN where either is unknown."""
        wait: np.ndarray = self.start - self.submit
        return wait

    @cached_property
    def span(self) -> tuple[float, float]:
        """First submission, or start where none is known, and last end, s; (0, 0) without any."""
        times = np.concatenate([self.submit, self.start, self.end])
        known = times[~np.isnan(times)]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)

    @cached_property
    def held(self) -> tuple[np.ndarray, np.ndarray]:
        """GPUs held over time: instants, rising, s, and GPUs from each until the next."""
        ran = ~np.isnan(self.start) & ~np.isnan(self.end) & (self.gpus > 0) & (self.run > 0)
        times = np.concatenate([self.start[ran], self.end[ran]])
        # Millionths, so that what was taken is given back to the last digit.
        units = np.rint(self.gpus[ran] * 1e6)
        instants, held = steps(times, np.concatenate([units, -units]))
        return instants, held / 1e6

    @property
    def most_held(self) -> float:
        """Most GPUs held at once; 0 where no job's start is known."""
        return float(self.held[1].max(initial=0.0))

    @cached_property
    def left_out(self) -> dict[str, int]:
        """Reason -> jobs that held GPUs, or may have, and are in no sum of GPU time."""
        times = ("duration", "start_time", "end_time", "num_gpus")
        run, start, end, gpus = (
            np.asarray(self.jobs[name].to_numpy(), dtype=np.float64) for name in times
        )
        run = np.where(np.isnan(run), end - start, run)
        status = np.array(self.jobs["status"].to_pylist(), dtype=object)
        in_queue = (status == "pending") | ((status == "cancelled") & np.isnan(start))
        known = (gpus == 0) | (run == 0) | (in_queue & np.isnan(run))
        reasons = {
            "whose GPUs are not known": ~known & np.isnan(gpus),
            "whose run time is not known": ~known & ~np.isnan(gpus) & np.isnan(run),
        }
        return {reason: int(jobs.sum()) for reason, jobs in reasons.items() if jobs.any()}

    def names(self, by: str) -> tuple[np.ndarray, list[str]]:
        """Return each job's place among the names of a column, and the names in order.

        Args:
            by: a column of text: ``user``, ``vc`` ...; jobs without a name are under ``(none)``.
        """
        return named_groups(self.jobs[by])
