"""What the tests of figures share: a trace small enough to count by hand, and one with tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.companions import NODE_COLUMNS, TASK_COLUMNS, companion
from windtunnel.report.figures.sources import Sources
from windtunnel.schema import as_jobs
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

HOUR = 3600.0


def trace_of(
    jobs: dict[str, Any], name: str = "hand", *, tasks: Any = None, nodes: Any = None, **about: Any
) -> Trace:
    """Return a trace of columns, times relative to a Monday's midnight."""
    table = as_jobs(jobs)
    metadata = TraceMetadata(name, "made by hand", rows_read=table.num_rows, **about)
    return Trace(table, metadata, tasks=tasks, nodes=nodes)


def hand_jobs() -> dict[str, Any]:
    """Return eight jobs: six with GPUs, one without, one of unknown size.

    Run times 1, 2, 4, 100, 5000, unknown; the CPU job 8. Waits 0, 2, 4, 10, 50, unknown.
    """
    start = [0.0, 2.0, 14.0, 10.0, 3650.0, None, 0.0, 0.0]
    run = [1.0, 2.0, 4.0, 100.0, 5000.0, None, 8.0, 9.0]
    submit = [0.0, 0.0, 10.0, 0.0, 3600.0, 7200.0, 0.0, 0.0]
    ends = [s if s is None else s + r for s, r in zip(start, run, strict=True)]
    return {
        "submit_time": submit,
        "start_time": start,
        "end_time": ends,
        "duration": run,
        "num_gpus": [1.0, 1.0, 2.0, 8.0, 0.5, 4.0, 0.0, None],
        "num_tasks": [1, 1, 2, 1, 1, 4, 1, 1],
        "num_cpus": [4.0, 4.0, 8.0, 64.0, 2.0, 16.0, 2.0, 1.0],
        "user": ["a", "a", "a", "b", "b", None, "c", "c"],
        "template": ["t", "t", "t", "u", None, None, "v", "v"],
        "workload": ["eval", "eval", "train", "train", "eval", None, None, "eval"],
        "gpu_type": ["T4", "T4", "V100", "V100", None, "T4", None, None],
        "status": [
            *("completed", "failed", "timeout", "completed", "cancelled", "running"),
            *("completed", "completed"),
        ],
    }


def hand_tasks() -> pa.Table:
    """Return three tasks on two nodes: two share GPU 0 of n1 from 0 to 1 h, one has n2 alone."""
    return companion(
        TASK_COLUMNS,
        {
            "task_id": _texts(["x", "y", "z"]),
            "job_id": _texts(["0", "0", "1"]),
            "node": _texts(["n1", "n1", "n2"]),
            "gpu": _texts(["0", "0", "0"]),
            "start_time": _reals([0.0, 0.0, 0.0]),
            "end_time": _reals([HOUR, 2 * HOUR, HOUR]),
            "status": _texts(["completed"] * 3),
            "num_gpus": _reals([0.5, 0.5, 1.0]),
            "num_cpus": _reals([4.0, 8.0, 8.0]),
            "mem_gib": _reals([16.0, 16.0, 32.0]),
            "gpus_used": _reals([0.6, 0.4, 0.2]),
            "cpus_used": _reals([1.0, 2.0, 16.0]),
            "mem_used_gib": _reals([4.0, 8.0, 16.0]),
            "gpu_mem_used_gib": _reals([2.0, 2.0, 8.0]),
            "machine_cpu": _reals([20.0, 30.0, 40.0]),
            "machine_gpu": _reals([50.0, 60.0, None]),
            "read": _reals([2.0**27, 2.0**30, 2.0**30]),
        },
    )


def hand_nodes() -> pa.Table:
    """Return two nodes: n1 with 2 GPUs of type A, n2 with 1 of type B."""
    return companion(
        NODE_COLUMNS,
        {
            "node": _texts(["n1", "n2"]),
            "gpu_type": _texts(["A", "B"]),
            "num_gpus": _reals([2.0, 1.0]),
            "num_cpus": _reals([32.0, 16.0]),
            "mem_gib": _reals([128.0, 64.0]),
        },
    )


def _texts(values: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.string())


def _reals(values: list[Any]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.float64())


@pytest.fixture(scope="session")
def make_trace() -> Callable[..., Trace]:
    return trace_of


@pytest.fixture(scope="session")
def hand() -> Trace:
    """The eight jobs, with tasks and nodes beside them."""
    return trace_of(hand_jobs(), tasks=hand_tasks(), nodes=hand_nodes())


@pytest.fixture(scope="session")
def columns() -> Callable[[], dict[str, Any]]:
    """The columns of the eight jobs, to be changed."""
    return hand_jobs


@pytest.fixture(scope="session")
def bare() -> Trace:
    """Three jobs that tell nothing but their submission, run time and GPUs."""
    return trace_of(
        {"submit_time": [0.0, 60.0, 7200.0], "duration": [1.0, 30.0, 600.0], "num_gpus": [1, 2, 4]},
        "bare",
    )


@pytest.fixture(scope="session")
def both(hand: Trace, bare: Trace) -> Sources:
    return Sources.of([hand, bare])


@pytest.fixture(scope="session")
def acme() -> Sources:
    """Seren and Kalos, synthetic, as many jobs as the real ones have."""
    from windtunnel.traces.open import open_trace

    return Sources.of([open_trace("synthetic:seren"), open_trace("synthetic:kalos")])
