"""`Flown`: what a run produced, as Arrow tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.sim.flight import NOT_SUBMITTED, REJECTED, STATUS_NAMES
from windtunnel.site.window import Window

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.flight import Flight


@dataclass(frozen=True)
class Flown:
    """The result of one run; row order of every per-job table = the jobs table's.

    Attributes:
        jobs: the jobs table that was flown.
        cluster: the cluster it was flown on.
        flight: the engine's raw arrays.
        settings: everything that decides the result (policy, queueing, placement, seed, ...) and
            which engine ran; enough to run it again.
        reasons: row -> why the job was rejected.
        notes: what a reader of the numbers must know, one sentence each.
        energy: what it drew, emits and costs, by name; empty without a model of power.
        own: what metrics of the user's own say of it, by name.
        wait_reasons: row -> why the job waited last, where the policy tells.
    """

    jobs: pa.Table
    cluster: ClusterSpec
    flight: Flight
    settings: dict[str, Any]
    reasons: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    own: dict[str, float | None] = field(default_factory=dict)
    wait_reasons: dict[int, str] = field(default_factory=dict)
    energy: dict[str, float | None] = field(default_factory=dict)

    @cached_property
    def table(self) -> pa.Table:
        """One row a job: what happened to it.

        Columns: ``job_id``; ``start_time`` (first start), ``end_time``, ``wait`` (start - submit),
        ``jct`` (end - submit), ``run_time`` (seconds on GPUs, overheads included), all float64 s,
        null where it did not come to that; ``num_preemptions`` int32; ``num_failures`` int32 and
        ``lost_time`` (s on GPUs whose work a failure undid); ``status`` (finished, running,
        waiting, not_submitted, rejected, failed = ended by a failure); ``nodes`` list of node
        indices of its last stay, in placement order, empty on a pool; ``reason`` (null unless
        rejected). With a model of slow-downs also ``slowdown_time``: seconds on GPUs lost
        to them (negative: gained). Where the policy tells (``slurm``) also ``wait_reason``: why the
        job waited last, null where it did not.
        """
        flight = self.flight
        submit = self.submit_time
        status = pa.DictionaryArray.from_arrays(
            pa.array(flight.status.astype(np.int8)), pa.array(STATUS_NAMES)
        )
        found = flight.interruptions
        failures = np.zeros(len(submit)) if found is None else found.failures
        lost = np.zeros(len(submit)) if found is None else found.lost_time
        columns = {
            "job_id": self.jobs["job_id"],
            "start_time": _nullable(flight.start),
            "end_time": _nullable(flight.end),
            "wait": _nullable(flight.start - submit),
            "jct": _nullable(flight.end - submit),
            "run_time": pa.array(flight.run_time),
            "num_preemptions": pa.array(flight.preemptions.astype(np.int32)),
            "num_failures": pa.array(failures.astype(np.int32)),
            "lost_time": pa.array(lost),
            "status": status.cast(pa.string()),
            "nodes": self._last_nodes(),
            "reason": self._texts(self.reasons),
        }
        if flight.slowdown_time is not None:
            columns["slowdown_time"] = pa.array(flight.slowdown_time)
        if self.wait_reasons:
            columns["wait_reason"] = self._texts(self.wait_reasons)
        return pa.table(columns)

    def _texts(self, by_row: dict[int, str]) -> pa.Array:
        """Return a column of words, null in rows that have none."""
        words = np.full(len(self.submit_time), None, dtype=object)
        for row, word in by_row.items():
            words[row] = word
        return pa.array(words, pa.string())

    @cached_property
    def segments(self) -> pa.Table:
        """One row an uninterrupted stay on GPUs, in order of start decisions.

        Columns: ``row`` int64 (row in the jobs table), ``start`` and ``end`` float64 s (end null
        where still running at the horizon), ``num_gpus`` float64, ``nodes`` and ``node_gpus``
        (lists of int32: where, and how many GPUs there). Where devices are modelled, ``node_gpus``
        is float64, and there are ``node_tasks`` (lists of int32: tasks on each node) and, unless a
        node's GPUs are one pool, ``devices`` (for each node the list of its devices that are held).
        """
        flight = self.flight
        offsets = pa.array(flight.node_offset.astype(np.int64)).cast(pa.int32())
        columns = {
            "row": pa.array(flight.segment_job.astype(np.int64)),
            "start": pa.array(flight.segment_start),
            "end": _nullable(flight.segment_end),
            "num_gpus": pa.array(self.segment_gpus),
            "nodes": pa.ListArray.from_arrays(offsets, pa.array(flight.nodes)),
            "node_gpus": pa.ListArray.from_arrays(offsets, pa.array(flight.node_gpus)),
        }
        sharing = self.settings.get("sharing")
        if sharing is not None:
            columns["node_gpus"] = columns["node_gpus"].cast(pa.list_(pa.float64()))
            columns["node_tasks"] = pa.ListArray.from_arrays(offsets, pa.array(flight.node_tasks))
        if sharing == "devices":
            columns["devices"] = pa.ListArray.from_arrays(offsets, _bits(flight.devices))
        return pa.table(columns)

    @cached_property
    def counted(self) -> np.ndarray:
        """Bool array (n,): jobs that the run is measured by: flown, and inside its window."""
        flown = self.flight.status != REJECTED
        window = self.settings.get("window")
        return flown if window is None else Window.of(window).inside(self.submit_time, flown)

    @cached_property
    def counted_span(self) -> tuple[float, float]:
        """(First, last) submission of the counted jobs, s; no later than the run was cut."""
        submit = self.submit_time[self.counted]
        if not len(submit):
            return 0.0, 0.0
        until = self.settings.get("until")
        last = float(submit.max()) if until is None else min(float(submit.max()), float(until))
        return float(submit.min()), last

    @property
    def submitted(self) -> np.ndarray:
        """Bool array (n,): jobs that were submitted while the run went on, and not rejected."""
        status = self.flight.status
        known: np.ndarray = (status != REJECTED) & (status != NOT_SUBMITTED)
        return known

    @cached_property
    def submit_time(self) -> np.ndarray:
        """Float array (n,): submit times in s, jobs-table order."""
        return np.asarray(self.jobs["submit_time"].to_numpy(), dtype=np.float64)

    @cached_property
    def num_gpus(self) -> np.ndarray:
        """Float array (n,): GPUs asked for, jobs-table order."""
        return np.asarray(self.jobs["num_gpus"].to_numpy(), dtype=np.float64)

    @cached_property
    def segment_gpus(self) -> np.ndarray:
        """Float array (s,): GPUs of each stay: what its job asked for, or was resized to."""
        if self.flight.stretches is not None:
            return self.flight.stretches.gpus
        asked: np.ndarray = self.num_gpus[self.flight.segment_job]
        return asked

    def __repr__(self) -> str:
        done = int((self.flight.status == 0).sum())
        finished = f"finished={done:,} of {len(self.jobs):,}"
        return f"{type(self).__name__}({self.settings.get('policy')!r}, {finished})"

    def _last_nodes(self) -> pa.Array:
        flight = self.flight
        last = np.full(len(self.jobs), -1, dtype=np.int64)
        last[flight.segment_job] = np.arange(len(flight.segment_job))
        ran = last >= 0
        if len(flight.nodes) == 0:
            sizes = np.zeros(len(last), dtype=np.int64)
            indices = np.empty(0, dtype=np.int64)
        else:
            begin = np.where(ran, flight.node_offset[last], 0)
            sizes = np.where(ran, flight.node_offset[last + 1] - begin, 0)
            # One flat index per node: each job's first index plus 0, 1, ... within the job.
            within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            indices = np.repeat(begin, sizes) + within
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return pa.ListArray.from_arrays(
            pa.array(offsets), pa.array(flight.nodes[indices], pa.int32())
        )


def _bits(sets: np.ndarray) -> pa.Array:
    """Return the bits set in each integer, ascending, as lists of int32."""
    width = int(sets.max(initial=0)).bit_length()
    held = (sets[:, None] >> np.arange(width)) & 1 == 1
    offsets = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.nonzero(held)[1], pa.int32()))


def _nullable(values: np.ndarray) -> pa.Array:
    """Return a float array as Arrow with NaN as null."""
    return pa.array(values, mask=np.isnan(values))
