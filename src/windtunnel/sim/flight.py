"""`Flight`: what an engine returns, as plain arrays; both engines agree on every one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

#: Codes of `Flight.status`, in order.
STATUS_NAMES: tuple[str, ...] = ("finished", "running", "waiting", "not_submitted", "rejected")
FINISHED, RUNNING, WAITING, NOT_SUBMITTED, REJECTED = range(len(STATUS_NAMES))


def _no_nodes(kind: type[np.integer]) -> Callable[[], np.ndarray]:
    return lambda: np.empty(0, dtype=kind)


@dataclass(frozen=True)
class Flight:
    """The raw result of one run. Row order = the jobs table's.

    A *segment* is one uninterrupted stay of a job on its GPUs; a job that was never preempted has
    one. Segments are numbered in the order in which they were started.

    Attributes:
        start: Float array (n,), first start in s, NaN = never started.
        end: Float array (n,), completion in s, NaN = not finished.
        run_time: Float array (n,), seconds spent on GPUs, overheads included, up to the horizon.
        preemptions: Int array (n,).
        status: Int8 array (n,), codes of `STATUS_NAMES`.
        segment_job: Int array (s,), row of the job.
        segment_start: Float array (s,), s.
        segment_end: Float array (s,), s; NaN where still running at the horizon.
        node_offset: Int array (s + 1,), where a segment's nodes lie in ``nodes``.
        nodes: Int32 array, node indices of all segments in placement order; empty on a pool.
        node_gpus: GPUs taken on each of ``nodes``: Int32 array, Float where devices are modelled.
        node_tasks: Int32 array, tasks on each of ``nodes``; empty unless devices are modelled.
        devices: Int array, the devices that these tasks hold on each of ``nodes``, a bit each;
            empty unless devices are modelled, and where a node's GPUs are one pool.
        scheduling_points: number of instants at which the policy decided.
        slowdown_time: Float array (n,), seconds on GPUs lost to slow-downs (run time, less what
            resuming cost, less work done); None without a model of them.
    """

    start: np.ndarray
    end: np.ndarray
    run_time: np.ndarray
    preemptions: np.ndarray
    status: np.ndarray
    segment_job: np.ndarray
    segment_start: np.ndarray
    segment_end: np.ndarray
    node_offset: np.ndarray
    nodes: np.ndarray
    node_gpus: np.ndarray
    scheduling_points: int
    node_tasks: np.ndarray = field(default_factory=_no_nodes(np.int32))
    devices: np.ndarray = field(default_factory=_no_nodes(np.int64))
    slowdown_time: np.ndarray | None = None
