"""`Outcome`: what a run produced, as Arrow tables, with the metrics that are functions of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.sim import metrics, timeline
from windtunnel.sim.flight import STATUS_NAMES
from windtunnel.sim.observe import (
    allocation,
    finish_time,
    fragments,
    shares,
    starvation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.flight import Flight
    from windtunnel.sim.fragmentation import TargetWorkload


@dataclass(frozen=True)
class Outcome:
    """The result of one run; row order of every per-job table = the jobs table's.

    Attributes:
        jobs: the jobs table that was flown.
        cluster: the cluster it was flown on.
        flight: the engine's raw arrays.
        settings: everything that decides the result (policy, queueing, placement, seed, ...) and
            which engine ran; enough to run it again.
        reasons: row -> why the job was rejected.
        notes: what a reader of the numbers must know, one sentence each.
    """

    jobs: pa.Table
    cluster: ClusterSpec
    flight: Flight
    settings: dict[str, Any]
    reasons: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

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
        to them (negative: gained).
        """
        flight = self.flight
        submit = self.submit_time
        status = pa.DictionaryArray.from_arrays(
            pa.array(flight.status.astype(np.int8)), pa.array(STATUS_NAMES)
        )
        found = flight.interruptions
        failures = np.zeros(len(submit)) if found is None else found.failures
        lost = np.zeros(len(submit)) if found is None else found.lost_time
        reasons = np.full(len(submit), None, dtype=object)
        for row, reason in self.reasons.items():
            reasons[row] = reason
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
            "reason": pa.array(reasons, pa.string()),
        }
        if flight.slowdown_time is not None:
            columns["slowdown_time"] = pa.array(flight.slowdown_time)
        return pa.table(columns)

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

    def metrics(self) -> dict[str, Any]:
        """Return the run in numbers; see `windtunnel.sim.metrics.summary` for each of them.

        And `windtunnel.sim.observe.shares.summary`: Jain's index over users and virtual clusters.
        """
        return metrics.summary(self) | self._jain

    def by_size(self) -> pa.Table:
        """Return waits and completions by job size; see `windtunnel.sim.metrics.by_size`."""
        return metrics.by_size(self)

    def by_vc(self) -> pa.Table:
        """Return waits and completions by virtual cluster; see `windtunnel.sim.metrics.by_vc`."""
        return metrics.by_vc(self)

    def utilization(self) -> pa.Table:
        """Return GPUs in use over time; see `windtunnel.sim.timeline.utilization`."""
        return timeline.utilization(self)

    def queue(self, by: str | None = None) -> pa.Table:
        """Return waiting jobs and GPUs over time; see `windtunnel.sim.timeline.queue`.

        ``by`` a property of jobs (``size``, ``vc`` ...): see
        `windtunnel.sim.observe.allocation.queue`.
        """
        return timeline.queue(self) if by is None else allocation.queue(self, by)

    def allocation(self, by: str = "vc") -> pa.Table:
        """Return GPUs in use by group of jobs; see `windtunnel.sim.observe.allocation`."""
        return allocation.allocation(self, by)

    def allocation_by_type(self) -> pa.Table:
        """Return GPUs in use by GPU type; see `windtunnel.sim.observe.allocation`."""
        return allocation.allocation_by_type(self)

    def shares(self, by: str = "vc") -> pa.Table:
        """Return what each group held of the cluster; see `windtunnel.sim.observe.shares`."""
        return shares.shares(self, by)

    def jain_index(
        self, by: str = "user", *, per: str | Mapping[str, float] = "demand"
    ) -> float | None:
        """Return how evenly GPU time is shared; see `windtunnel.sim.observe.shares.jain_index`."""
        return shares.jain_index(self, by, per=per)

    def finish_time_fairness(
        self, among: str = finish_time.JOBS, *, over: str = "lifetime"
    ) -> pa.Table:
        """Return each job's rho; see `windtunnel.sim.observe.finish_time`."""
        return finish_time.finish_time_fairness(self, among, over=over)

    def fairness(self, among: str = finish_time.JOBS, *, over: str = "lifetime") -> dict[str, Any]:
        """Return rho in numbers; see `windtunnel.sim.observe.finish_time.summary`."""
        return finish_time.summary(self, among, over=over)

    def starvation(self, by: str = "size") -> pa.Table:
        """Return tails of waits, and who is overtaken; see `windtunnel.sim.observe.starvation`."""
        return starvation.starvation(self, by)

    def overtaken(self) -> np.ndarray:
        """Return by how many jobs each was overtaken; see `windtunnel.sim.observe.starvation`."""
        return starvation.overtaken(self)

    def oldest_waiting(self) -> pa.Table:
        """Return who waits longest over time; see `windtunnel.sim.observe.starvation`."""
        return starvation.oldest_waiting(self)

    def fragmentation(
        self,
        workload: TargetWorkload | None = None,
        *,
        weigh: str = "tasks",
        cores: bool | None = None,
    ) -> pa.Table:
        """Return how fragmented the nodes are over time; see `windtunnel.sim.observe.fragments`."""
        return fragments.fragmentation(self, workload, weigh=weigh, cores=cores)

    def __repr__(self) -> str:
        done = int((self.flight.status == 0).sum())
        return f"Outcome({self.settings.get('policy')!r}, finished={done:,} of {len(self.jobs):,})"

    @cached_property
    def _jain(self) -> dict[str, float | None]:
        return shares.summary(self)

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
