"""Every headline of a small trace by hand, and a reason for each that a trace cannot give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import windtunnel as wt
from windtunnel.characterize.headline_tables import CLAIMS, NOT_IN_TABLES
from windtunnel.characterize.headlines import Headline, headlines
from windtunnel.companions import NODE_COLUMNS, TASK_COLUMNS, companion
from windtunnel.schema import as_jobs
from windtunnel.traces.trace import Trace, TraceMetadata

DAY = 86_400.0


def _floats(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float64())


def _jobs() -> pa.Table:
    """Return six jobs: j0-j4 are runs of one template by user a, j5 is another's."""
    jobs = as_jobs(
        {
            "job_id": [f"j{i}" for i in range(6)],
            "submit_time": [0.0, 0.0, 0.0, 0.0, 0.0, DAY],
            "start_time": [10.0, 20.0, 30.0, 40.0, 1000.0, DAY + 50],
            "end_time": [110.0, 120.0, 130.0, 140.0, 1200.0, DAY + 1050],
            "duration": [100.0, 100.0, 100.0, 100.0, 200.0, 1000.0],
            "num_gpus": [1.0, 0.5, 0.5, 2.0, 8.0, 1.0],
            "num_tasks": [2, 1, 1, 1, 1, 2],
            "num_cpus": [8.0, 4.0, 4.0, 4.0, 4.0, 8.0],
            "user": ["a", "a", "a", "a", "a", "b"],
            "template": ["t", "t", "t", "t", "t", None],
            "status": ["completed"] * 4 + ["failed", "completed"],
        }
    )
    kinds = ["V100", "V100M32", "MISC", "MISC", "T4", None]
    return jobs.append_column("gpu_type_assigned", pa.array(kinds, pa.string()))


def _tasks() -> pa.Table:
    """Return eight tasks on three nodes; j0 and j5 have two each."""
    owners = ["j0", "j0", "j1", "j2", "j3", "j4", "j5", "j5"]
    return companion(
        TASK_COLUMNS,
        {
            "task_id": pa.array([f"w{i}" for i in range(8)]),
            "job_id": pa.array(owners),
            "node": pa.array(["v", "v", "v", "m", "m", "m", "p", None]),
            "gpu": pa.array(["0", "0", "1", "0", "1|2", None, "0", "0"]),
            "start_time": _floats(0, 0, 0, 0, 0, 0, 0, 0),
            "end_time": _floats(100, 100, 100, 50, 200, 100, 100, 100),
            "status": pa.array(["completed"] * 8),
            "num_gpus": _floats(0.5, 0.5, 0.5, 0.5, 2, 8, 0.5, 0.5),
            "num_cpus": _floats(4, 4, 4, 4, 4, 4, 4, 4),
            "mem_gib": _floats(10, 10, 10, 10, 10, 10, 30, 10),
            "gpus_used": _floats(0.5, 0.5, 0.25, 0.25, 2, None, 1, 0.5),
            "cpus_used": _floats(5, 2, 1, 1, 1, None, 5, 1),
            "mem_used_gib": _floats(1, 1, 1, 1, 1, None, 1, 11),
            "machine_cpu": _floats(10, 20, 30, 10, 40, 10, 90, 90),
            "machine_gpu": _floats(50, 50, 50, 50, 60, 50, 90, 90),
        },
    )


def _nodes() -> pa.Table:
    return companion(
        NODE_COLUMNS,
        {
            "node": pa.array(["v", "m", "p"]),
            "gpu_type": pa.array(["V100", "MISC", "P100"]),
            "num_gpus": _floats(8, 8, 2),
            "num_cpus": _floats(96, 96, 64),
            "mem_gib": _floats(512, 512, 512),
        },
    )


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Trace(_jobs(), TraceMetadata("small", ""), None, _nodes(), _tasks())


@pytest.fixture(scope="module")
def found(trace: Trace) -> dict[str, Headline]:
    return _by_key(trace)


def _by_key(trace: Trace) -> dict[str, Headline]:
    return {headline.key: headline for headline in headlines(trace)}


#: claim -> value, n, left_out, worked out by hand from the tables above.
BY_HAND: dict[str, tuple[float, int, int]] = {
    "jobs": (6, 6, 0),
    "tasks": (8, 8, 0),
    "users": (2, 6, 0),
    "nodes": (3, 3, 0),
    "gpus": (18, 3, 0),
    "days": (1, 6, 0),
    "gpu_jobs": (6, 6, 0),
    "gpu_time": (100 + 50 + 50 + 200 + 1600 + 1000, 6, 0),
    "wait_p50": (35, 6, 0),
    "wait_p90": (525, 6, 0),
    # Of two users the first takes 2000 of 3000 GPU-s: 5 % of the users, a tenth of the way to it.
    "top_users_gpu_time": (0.1 * 2000 / 3000, 6, 0),
    "failed_gpu_time": (1600 / 3000, 6, 0),
    "gang_tasks": (4 / 8, 8, 0),
    "short_jobs_waiting": (0, 4, 0),
    "long_jobs_waiting": (1 / 2, 2, 0),  # j4 waited 1000 of 1200 s
    "wait_p90_sharing": (30 + 0.7 * 20, 4, 0),  # 10, 20, 30, 50 s
    "wait_p90_whole": (40 + 0.9 * 960, 2, 0),
    "wait_p50_v100": (15, 2, 0),
    "wait_p90_v100": (19, 2, 0),
    "wait_p50_misc": (35, 2, 0),
    "wait_p90_misc": (39, 2, 0),
    "request_p95_cpu": (4, 8, 0),
    "request_p95_gpu": (2 + 0.65 * 6, 8, 0),
    "request_p95_mem": (10 + 0.65 * 20, 8, 0),
    "request_ratio_cpu": (1, 8, 0),
    "request_ratio_gpu": (5.9 / 0.5, 8, 0),
    "request_ratio_mem": (2.3, 8, 0),
    "request_large_cpu": (0, 8, 0),
    "request_large_gpu": (2 / 8, 8, 0),
    "request_large_mem": (1 / 8, 8, 0),
    "overuse_tasks_cpu": (2 / 7, 7, 1),
    "overuse_tasks_gpu": (1 / 7, 7, 1),
    # By job: j0 5 + 2 of 8 cores, j5 5 + 1 of 8: nobody. GPU: j5 1.5 of 1. Memory: nobody.
    "overuse_jobs_cpu": (0, 5, 1),
    "overuse_jobs_gpu": (1 / 5, 5, 1),
    "overuse_jobs_mem": (0, 5, 1),
    "underuse_jobs_cpu": (1, 5, 1),
    "underuse_jobs_gpu": (2 / 5, 5, 1),  # j0 and j3 use what they asked for
    "underuse_jobs_mem": (1, 5, 1),
    # At 0 s: v0 (two tasks), v1, m0, m1 and m2, p0 = 6 GPUs for 4 + 2 + 1 = 7 without sharing.
    "sharing_saved": (1 / 7, 6, 2),
    "sharing_peak": (1, 6, 2),
    # Busy: v0 100 s (two tasks), m1 and m2 200 s each, p0 100 s.
    "busy_shared": (100 / 600, 6, 2),
    "recurring_jobs": (5 / 6, 6, 0),
    "cpus_per_gpu_8": (12, 2, 0),
    "cpus_per_gpu_8_asked": (24 / 12, 6, 1),
    "cpus_per_gpu_2_ratio": (32 / 8, 1, 1),
    # From 0 to 200 s: MISC 4 x 50 + 4 x 200 + 4 x 100 cores and 0.5 x 50 + 2 x 200 + 8 x 100 GPUs.
    "allocated_misc_cpu": (1400 / 200 / 96, 3, 1),
    "allocated_misc_gpu": (1225 / 200 / 8, 3, 1),
    "allocated_v100_cpu": (1200 / 200 / 96, 3, 1),
    "allocated_v100_gpu": (150 / 200 / 8, 3, 1),
    # Template t: run times 100, 100, 100, 50, 200, 100: only the 200 s on a node at 40 % is late.
    "delayed_on_busy_cpu": (1, 1, 2),
    "delayed_gpu_gap": (60 - 50, 6, 2),
}


def test_the_hand_worked_claims_are_all_that_tables_can_answer() -> None:
    keys = [claim.key for claim in CLAIMS]
    assert len(set(keys)) == len(keys)
    assert set(BY_HAND) | set(NOT_IN_TABLES) == set(keys)


@pytest.mark.parametrize("key", BY_HAND)
def test_headline_by_hand(key: str, found: dict[str, Headline]) -> None:
    value, n, left_out = BY_HAND[key]
    headline = found[key]
    assert headline.value == pytest.approx(value)
    assert (headline.n, headline.left_out, headline.why_not) == (n, left_out, None)


def test_every_claim_is_there_in_order_with_a_value_or_a_reason(
    trace: Trace, found: dict[str, Headline]
) -> None:
    assert list(found) == [claim.key for claim in CLAIMS]
    for headline in found.values():
        assert (headline.value is None) != (headline.why_not is None)
    assert found["prediction"].why_not == NOT_IN_TABLES["prediction"]
    assert sum(headline.why_not is None for headline in found.values()) == len(BY_HAND)


def test_published_numbers_stand_beside_the_claims(found: dict[str, Headline]) -> None:
    published = {key: headline.published for key, headline in found.items()}
    assert published["gang_tasks"] == 0.85
    assert published["wait_p90_sharing"] == 497
    assert published["wait_p90_v100"] == 13_709
    assert published["overuse_jobs_mem"] == 0.0412
    assert published["sharing_peak"] == 2_500
    assert published["allocated_misc_cpu"] == 0.77
    assert published["days"] is None
    assert all(h.source.startswith(("Weng", "PAI", "asked")) for h in found.values())


def test_a_trace_without_tasks_and_nodes_says_so(trace: Trace) -> None:
    found = _by_key(replace(trace, tasks=None, nodes=None))
    assert found["sharing_saved"].why_not == "the trace has no tasks table"
    assert found["allocated_misc_cpu"].why_not == "the trace has no nodes table"
    assert found["nodes"].why_not == "the trace has no nodes table and names no cluster"
    assert found["tasks"].value == 8  # the sum of the gangs
    assert found["request_p95_gpu"].value == pytest.approx(5.9)  # of each job's part a task
    assert found["gang_tasks"].value == 0.5
    assert all((h.value is None) != (h.why_not is None) for h in found.values())


def test_a_cluster_stands_in_for_the_nodes_table(trace: Trace) -> None:
    cluster = wt.ClusterSpec.uniform(4, 8, "A100", cpus_per_node=128)
    found = _by_key(replace(trace, tasks=None, nodes=None, cluster=cluster))
    assert (found["nodes"].value, found["gpus"].value) == (4, 32)
    assert found["cpus_per_gpu_8"].value == 16
    assert found["cpus_per_gpu_2_ratio"].why_not == "no node of the trace has 2 GPUs"
    pool = _by_key(replace(trace, tasks=None, nodes=None, cluster=wt.ClusterSpec.pool(64)))
    assert pool["gpus"].value == 64
    assert pool["nodes"].why_not == "the trace names a pool of GPUs without nodes"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("column", "keys", "why_not"),
    [
        (
            "gpu",
            ("sharing_saved", "busy_shared"),
            "no row of the tasks table has gpu: which GPU a task ran on is unknown",
        ),
        (
            "cpus_used",
            ("overuse_tasks_cpu", "underuse_jobs_cpu"),
            "no row of the tasks table has cpus_used: how many cores tasks used is unknown",
        ),
        (
            "node",
            ("allocated_v100_gpu", "cpus_per_gpu_8_asked"),
            "no row of the tasks table has node: which node a task ran on is unknown",
        ),
        (
            "machine_cpu",
            ("delayed_on_busy_cpu", "delayed_gpu_gap"),
            (
                "no row of the tasks table has machine_cpu: "
                "how busy the CPUs of a task's node were is unknown"
            ),
        ),
    ],
)
def test_an_empty_column_of_the_tasks_is_named(
    column: str, keys: tuple[str, ...], why_not: str, trace: Trace
) -> None:
    tasks: Any = trace.tasks
    kind = tasks.schema.field(column).type
    place = tasks.column_names.index(column)
    blank = tasks.set_column(place, column, pa.nulls(tasks.num_rows, kind))
    found = _by_key(replace(trace, tasks=blank))
    assert [found[key].why_not for key in keys] == [why_not] * len(keys)
    assert found["request_p95_cpu"].value == 4


def test_bare_jobs_answer_what_they_can() -> None:
    bare = as_jobs({"submit_time": [0, 60], "duration": [30, 90], "num_gpus": [1, 2]})
    found = _by_key(Trace(bare, TraceMetadata("bare", "")))
    assert (found["jobs"].value, found["gpu_time"].value) == (2, 210)
    assert found["request_p95_gpu"].value == pytest.approx(1.95)
    missing = {
        "users": "user",
        "top_users_gpu_time": "user",
        "failed_gpu_time": "status",
        "wait_p50": "start_time",
        "wait_p90_whole": "start_time",
        "short_jobs_waiting": "start_time",
        "recurring_jobs": "template",
        "request_p95_cpu": "num_cpus",
        "gang_tasks": "num_tasks",
        "tasks": "num_tasks",
    }
    for key, column in missing.items():
        assert found[key].value is None
        assert f"has {column}:" in (found[key].why_not or "")


def test_no_job_at_all_is_no_error() -> None:
    empty = as_jobs({"submit_time": [], "duration": [], "num_gpus": []})
    found = _by_key(Trace(empty, TraceMetadata("empty", ""), None, _nodes(), _tasks().slice(0, 0)))
    assert found["jobs"].value == 0
    assert found["tasks"].value == 0
    assert found["gpus"].value == 18
    assert all((h.value is None) != (h.why_not is None) for h in found.values())
    assert all(h.why_not is None or len(h.why_not) > 10 for h in found.values())


def test_a_published_trace_gives_its_published_numbers() -> None:
    found = _by_key(wt.open_trace("synthetic:kalos"))
    assert found["gpu_jobs"].value == 19_907
    assert found["gpus"].value == 2_416
    assert found["failed_gpu_time"].value == pytest.approx(0.080, abs=5e-4)  # cluster_summary
    assert found["wait_p50"].value == 17


def test_jobs_without_a_user_or_a_status_are_left_out_and_counted_once(trace: Trace) -> None:
    jobs = trace.jobs
    for column, values in (
        ("user", ["a", None, "a", "a", None, "b"]),
        ("status", ["completed", "completed", None, "completed", "failed", None]),
    ):
        jobs = jobs.set_column(jobs.column_names.index(column), column, pa.array(values))
    found = _by_key(replace(trace, jobs=jobs))
    # GPU-s: a 100 + 50 + 200, b 1000; the other two jobs have no user.
    top = found["top_users_gpu_time"]
    assert (top.n, top.left_out) == (4, 2)
    assert top.value == pytest.approx(0.1 * 1000 / 1350)
    # Of 100 + 50 + 200 + 1600 GPU-s the status is known.
    failed = found["failed_gpu_time"]
    assert (failed.n, failed.left_out) == (4, 2)
    assert failed.value == pytest.approx(1600 / 1950)
