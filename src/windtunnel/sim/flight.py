"""`Flight`: what an engine returns, as plain arrays; both engines agree on every one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from windtunnel.sim.elastic.stretches import Stretches
    from windtunnel.sim.verdicts import Verdicts

#: Codes of `Flight.status`, in order.
STATUS_NAMES: tuple[str, ...] = ("finished", "running", "waiting", "not_submitted", "rejected",
                                 "failed")  # fmt: skip
FINISHED, RUNNING, WAITING, NOT_SUBMITTED, REJECTED, FAILED = range(len(STATUS_NAMES))


@dataclass(frozen=True)
class Interruptions:
    """What disruptions did to a run. Row order = the jobs table's.

    At any time ``run_time = useful_time + overhead_time + lost_time``, plus the flight's
    ``slowdown_time`` where there are slow-downs.

    Attributes:
        useful_time: Float array (n,), s on GPUs whose work was kept (or is still going on).
        overhead_time: Float array (n,), s of startups, restarts, save and restore, and checkpoints.
        checkpoint_time: Float array (n,), s of it that went into writing checkpoints.
        lost_time: Float array (n,), s of work that failures undid, and preemptions that lose it.
        failures: Int array (n,), times that a failure or a killing outage stopped the job.
        restarts: Int array (n,), times that it went on after an outage or failure.
        up_time: Float array (k,), when the GPUs that are up changed, s, ascending.
        up_gpus: Float array (k,), GPUs up from then on; those that a job still holds on a node
            that is being drained are up.
        startup_cost: Float array (n,), s that a job's first start takes.
        stop_row: Int array (k,), row of each job that an outage or a failure stopped, in order.
        stop_time: Float array (k,), when, s.
        stop_lost: Float array (k,), s of work that it undid.
        stop_cause: Int array (k,), place of its cause in ``causes``.
        causes: array of words (c,), what can stop jobs.
    """

    useful_time: np.ndarray
    overhead_time: np.ndarray
    checkpoint_time: np.ndarray
    lost_time: np.ndarray
    failures: np.ndarray
    restarts: np.ndarray
    up_time: np.ndarray
    up_gpus: np.ndarray
    startup_cost: np.ndarray
    stop_row: np.ndarray
    stop_time: np.ndarray
    stop_lost: np.ndarray
    stop_cause: np.ndarray
    causes: np.ndarray


@dataclass(frozen=True)
class PowerRecord:
    """What policies of power did to a run: limits, cuts, shifts and sleeping nodes.

    Attributes:
        level_offset: Int array (s + 1,), where a segment's levels lie in the next two.
        level_start: Float array (l,), when a level began, s; the first with its segment.
        level: Int array (l,), place in the job's table of power limits; 0 = the highest limit, or
            no table.
        capped_time: s in which some job waited for power alone.
        num_cuts: times that a job was taken off its GPUs because the cap fell.
        held_until: Float array (n,), when each job was first let into the queue, s, row order;
            its submission where it was not shifted, NaN where it never was.
        deadline: Float array (n,), when each job was to be over, s; NaN = it was not to be shifted.
        num_pauses: times that a running job was stopped to go on at a better time.
        asleep_node: Int array (a,), node of each sleep.
        asleep_start: Float array (a,), when it fell asleep, s.
        asleep_end: Float array (a,), when it was called to wake, s; NaN = it sleeps at the end.
        num_wakes: nodes called to wake.
    """

    level_offset: np.ndarray
    level_start: np.ndarray
    level: np.ndarray
    capped_time: float
    num_cuts: int
    held_until: np.ndarray
    deadline: np.ndarray
    num_pauses: int
    asleep_node: np.ndarray
    asleep_start: np.ndarray
    asleep_end: np.ndarray
    num_wakes: int


@dataclass(frozen=True)
class Flight:
    """The raw result of one run. Row order = the jobs table's.

    A *segment* is one uninterrupted stay of a job on its GPUs; a job that was never preempted has
    one. Segments are numbered in the order in which they were started.

    Attributes:
        start: Float array (n,), first start in s, NaN = never started.
        end: Float array (n,), completion (or the failure that ended it) in s, NaN = not over.
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
        interruptions: what disruptions did; None = the run had none.
        stretches: how the stays of an elastic run went; None = no job changed its size.
        slowdown_time: Float array (n,), seconds on GPUs lost to slow-downs (run time, less what
            resuming cost, less work done); None without a model of them.
        gpu_time: Float array (n,), GPU-seconds held, where that is not GPUs x ``run_time``: jobs
            that share GPUs hold half of them each; None = it is.
        portions: Float array (p, 4) of a run in which jobs share GPUs, in order of stays: a stay,
            from when to when (s; NaN as in ``segment_end``), and what part of its GPUs it held
            then; stays without length have none. None = every stay held its GPUs alone.
        power: what policies of power did; None = the run had none.
        verdicts: why jobs waited; None = nobody asked for it.
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
    node_tasks: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    devices: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    interruptions: Interruptions | None = None
    slowdown_time: np.ndarray | None = None
    gpu_time: np.ndarray | None = None
    portions: np.ndarray | None = None
    stretches: Stretches | None = None
    power: PowerRecord | None = None
    verdicts: Verdicts | None = None
