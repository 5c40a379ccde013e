"""What a trace recorded as an `Outcome`: so that all that is told of a run can be told of history.

No policy decided here, and nodes are not known: the recorded starts and ends are the run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.characterize.recorded import Recorded
from windtunnel.cluster.gpu_types import with_types_of
from windtunnel.cluster.spec import ClusterSpec
from windtunnel.sim.flight import FINISHED, NOT_SUBMITTED, RUNNING, WAITING, Flight
from windtunnel.sim.outcome import Outcome

if TYPE_CHECKING:
    import pyarrow as pa


def recorded_outcome(jobs: pa.Table, cluster: ClusterSpec) -> Outcome:
    """Return the recorded history of a trace as the outcome of a run.

    A job that started and has not ended is running since its start; one without a start that is
    pending waits; one that left the queue without a start was never in the run, as are jobs without
    a submission time.

    Args:
        jobs: a jobs table (`windtunnel.schema`).
        cluster: where it ran; its nodes are not told apart.
    """
    jobs = with_types_of(jobs, cluster.gpu_types, cluster.aliases)
    found = Recorded.of(jobs)
    status = np.array(jobs["status"].fill_null("unknown").to_pylist(), dtype=object)
    ran = ~np.isnan(found.start) & ~np.isnan(found.submit) & ~np.isnan(found.end)
    runs_on = ran & (status == "running")
    code = np.full(len(status), NOT_SUBMITTED, dtype=np.int8)
    code[ran] = FINISHED
    code[runs_on] = RUNNING
    code[(status == "pending") & ~ran & ~np.isnan(found.submit)] = WAITING
    rows = np.flatnonzero(ran)
    rows = rows[np.lexsort((rows, found.start[rows]))]
    end = np.where(runs_on, np.nan, found.end)
    flight = Flight(
        start=np.where(ran, found.start, np.nan),
        end=np.where(ran, end, np.nan),
        run_time=np.where(ran, found.run, 0.0),
        preemptions=np.zeros(len(code), dtype=np.int64),
        status=code,
        segment_job=rows,
        segment_start=found.start[rows],
        segment_end=end[rows],
        node_offset=np.zeros(len(rows) + 1, dtype=np.int64),
        nodes=np.empty(0, dtype=np.int32),
        node_gpus=np.empty(0, dtype=np.int32),
        scheduling_points=0,
    )
    return Outcome(jobs, cluster, flight, {"policy": "recorded", "placement": "pool"})


def observed_cluster(jobs: pa.Table) -> ClusterSpec | None:
    """Return a pool of as many GPUs as were ever held at once; None where none were."""
    most = Recorded.of(jobs).most_held
    return ClusterSpec.pool(math.ceil(most), name="most held at once") if most > 0 else None
