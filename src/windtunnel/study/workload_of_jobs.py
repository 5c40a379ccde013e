"""The target workload that a trace's own jobs stand for, for placements that score against one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.device_requests import device_requests
from windtunnel.sim.fragmentation import TargetWorkload, workload_of

if TYPE_CHECKING:
    import pyarrow as pa


def workload_of_jobs(table: pa.Table) -> TargetWorkload:
    """Return the target workload of a jobs table; empty if it has no jobs."""
    requests = device_requests(table, incomplete="reject")
    return workload_of(requests) if len(requests.rows) else TargetWorkload((), ())
