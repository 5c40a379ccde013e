"""Realistic user code that only has to type-check: nothing here is ever run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import windtunnel as wt
from windtunnel.testing import assert_outcomes_equal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def a_run(path: Path) -> float:
    trace: wt.Trace = wt.open_trace(path)
    cluster: wt.ClusterSpec = wt.ClusterSpec.uniform(nodes=64, gpus_per_node=8, gpu_type="A100")
    out: wt.Outcome = wt.simulate(
        trace.jobs, cluster, policy="srtf", queueing="skip", placement="best_fit", engine="auto"
    )
    metrics: dict[str, Any] = out.metrics()
    table = out.table
    rows: int = table.num_rows
    again = wt.simulate(trace.jobs, "64x8:A100", "srtf", until=3600.0, oversize="reject")
    assert_outcomes_equal(out, again)
    status: np.ndarray = out.flight.status
    return float(metrics["avg_jct"]) + rows + float(status.sum())


def clusters(path: Path) -> list[wt.ClusterSpec]:
    nodes = (wt.NodeType(2, 4, "V100"), wt.NodeType(count=1, gpus=8, cpus=96.0, mem_gib=512))
    mixed = wt.ClusterSpec(nodes, name="mixed")
    total: int = mixed.num_gpus
    return [mixed, wt.ClusterSpec.pool(total, cpus=128), wt.ClusterSpec.from_toml(path)]


def comparison(jobs: dict[str, list[float]]) -> list[str]:
    runs: wt.Comparison = wt.compare(
        jobs, "pool:512", ["fifo", rank, Mine, Mine()], on_done=print, save_time=30
    )
    best: wt.Outcome = runs["fifo"]
    return [*runs.outcomes, repr(best)]


@wt.policy("ssf", queueing="skip")
def rank(jobs: wt.Jobs) -> np.ndarray:
    """Smallest num_gpus x estimate first."""
    service: np.ndarray = jobs.num_gpus * jobs.estimate
    return service


@wt.policy("aging", preemptive=True, every=60.0)
def key(job: wt.JobView, now: float) -> float:
    """Short jobs, and those that have waited long."""
    return job.duration / (1 + now - job.submit_time)


class Mine(wt.Policy):
    """First come, first served."""

    name = "mine"
    every = None

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[wt.Start | wt.Preempt]:
        """Start who fits, in order; stop whoever has run for a day."""
        for job in cluster.running:
            if job.run_time > 86_400:
                yield wt.Preempt(job)
        for job in sorted(queue, key=lambda j: j.submit_time):
            where = cluster.fit(job.num_gpus)
            if where is None:
                break
            yield wt.Start(job, where)


class Ranked(wt.Policy):
    """Most urgent first, among those that fit."""

    queueing = "skip"

    def rank(self, jobs: wt.Jobs) -> np.ndarray:
        """Return the order."""
        order: np.ndarray = -np.nan_to_num(jobs.priority)
        return order


def errors(path: str) -> str:
    try:
        wt.simulate(wt.open_trace(path).jobs, "seren", Ranked)
    except wt.TraceError as error:
        return f"{error.file}:{error.row}:{error.column} {error.expected}"
    except wt.SchemaError as error:
        return "; ".join(f"{v.column} {v.count} {v.row}" for v in error.violations)
    except wt.PolicyError as error:
        return f"{error.policy} {error.time} {error.job}"
    except (wt.SpecError, wt.InfeasibleError) as error:
        return str(error)
    except wt.WindtunnelError:
        raise
    return wt.__version__
