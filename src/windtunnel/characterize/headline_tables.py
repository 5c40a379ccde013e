"""What a trace has to answer its headline questions with, and what it lacks.

The claims that headlines answer, with the published number of each.

Weng et al., "MLaaS in the Wild: Workload Analysis and Scheduling in Large-Scale Heterogeneous GPU
Clusters", NSDI'22: the talk, and the notebook published with the PAI trace (v2020). Their task is
our job, their instance our task. Claims without a published number are asked of every trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.characterize.relation import known_columns
from windtunnel.characterize.tasks import ASSIGNED
from windtunnel.companions import NODE_COLUMNS, companion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.companions import Relation
    from windtunnel.traces.trace import Trace

#: What a column tells: those that claims need.
_MEANINGS = {
    "jobs.submit_time": "when jobs were submitted",
    "jobs.start_time": "when jobs started",
    "jobs.end_time": "when jobs ended",
    "jobs.duration": "how long jobs ran",
    "jobs.num_gpus": "how many GPUs jobs asked for",
    "jobs.num_tasks": "how many tasks a job has",
    "jobs.num_cpus": "how many cores jobs asked for",
    "jobs.mem_gib": "how much memory jobs asked for",
    "jobs.gpu_type": "which GPUs jobs asked for",
    f"jobs.{ASSIGNED}": "which GPUs jobs were given",
    "jobs.user": "who submitted the jobs",
    "jobs.status": "how jobs ended",
    "jobs.template": "which jobs are runs of the same work",
    "tasks.node": "which node a task ran on",
    "tasks.gpu": "which GPU a task ran on",
    "tasks.start_time": "when tasks started",
    "tasks.end_time": "when tasks ended",
    "tasks.status": "how tasks ended",
    "tasks.num_cpus": "how many cores tasks asked for",
    "tasks.num_gpus": "how many GPUs tasks asked for",
    "tasks.mem_gib": "how much memory tasks asked for",
    "tasks.cpus_used": "how many cores tasks used",
    "tasks.gpus_used": "how much GPU tasks used",
    "tasks.mem_used_gib": "how much memory tasks used",
    "tasks.machine_cpu": "how busy the CPUs of a task's node were",
    "tasks.machine_gpu": "how busy the GPUs of a task's node were",
    "nodes.gpu_type": "which GPUs a node has",
    "nodes.num_gpus": "how many GPUs a node has",
    "nodes.num_cpus": "how many cores a node has",
}


@dataclass(frozen=True)
class Answer:
    """What a trace answers to one claim.

    Attributes:
        value: the number; None where it cannot be had.
        n: rows that it is computed from.
        left_out: rows that lack what it needs.
        why_not: why there is no value.
    """

    value: float | None
    n: int = 0
    left_out: int = 0
    why_not: str | None = None


def answer(value: float | None, n: int, left_out: int, nothing: str) -> Answer:
    """Return an answer; without a value, ``nothing`` says why."""
    if value is None:
        return Answer(None, 0, left_out, nothing)
    return Answer(float(value), n, left_out)


@dataclass(frozen=True)
class HeadlineTables:
    """The tables of a trace, and which of their columns hold anything.

    Attributes:
        trace: the trace.
        known: table name -> columns with at least one known value; no entry = no such table.
    """

    trace: Trace
    known: Mapping[str, set[str]]

    @classmethod
    def of(cls, trace: Trace) -> HeadlineTables:
        """Look through the tables of a trace, once."""
        named: dict[str, Relation | None] = {
            "jobs": trace.jobs,
            "tasks": trace.tasks,
            "nodes": trace.nodes,
        }
        known = {
            name: known_columns(table, _columns_of(name))
            for name, table in named.items()
            if table is not None
        }
        return cls(trace, known)

    def lack(self, *columns: str) -> str | None:
        """Return what is missing of ``table.column`` names in one sentence; None = nothing."""
        for name in columns:
            table, column = name.split(".")
            if table not in self.known:
                return f"the trace has no {table} table"
            if column not in self.known[table]:
                return f"no row of the {table} table has {column}: {_MEANINGS[name]} is unknown"
        return None

    @property
    def nodes(self) -> pa.Table | None:
        """The nodes table, or one made of the cluster that the trace names; None = neither."""
        cluster = self.trace.cluster
        if self.trace.nodes is not None or cluster is None or cluster.is_pool:
            return self.trace.nodes
        each = [node for node in cluster.node_types for _ in range(node.count)]
        return companion(
            NODE_COLUMNS,
            {
                "node": pa.array([f"node {place}" for place in range(len(each))]),
                "gpu_type": pa.array([node.gpu_type for node in each], pa.string()),
                "num_gpus": pa.array([node.gpus for node in each], pa.float64()),
                "num_cpus": pa.array([node.cpus for node in each], pa.float64()),
                "mem_gib": pa.array([node.mem_gib for node in each], pa.float64()),
            },
        )


def _columns_of(table: str) -> list[str]:
    names = (name.split(".") for name in _MEANINGS)
    return [column for of, column in names if of == table]


TALK = "Weng et al., NSDI'22 (talk)"
NOTEBOOK = "PAI trace v2020, analysis notebook"
MACHINES = "PAI trace v2020, machine table"
EVERY = "asked of every trace"


@dataclass(frozen=True)
class Claim:
    """One number that a trace is asked for.

    Attributes:
        key: its name.
        text: what it says, in words.
        unit: of the number; ``share`` = 0..1.
        published: the number of the PAI trace; None where none was published.
        source: where it was published.
    """

    key: str
    text: str
    unit: str
    published: float | None = None
    source: str = EVERY


CLAIMS: tuple[Claim, ...] = (
    Claim("jobs", "jobs", "jobs", 1_200_000, TALK),
    Claim("tasks", "tasks of the jobs", "tasks", 7_500_000, TALK),
    Claim("users", "users who submit jobs", "users", 1_300, TALK),
    Claim("nodes", "nodes of the cluster", "nodes", 1_897, MACHINES),
    Claim("gpus", "GPUs of the cluster", "GPUs", 6_742, MACHINES),
    Claim("days", "days from the first submission to the last", "days"),
    Claim("gpu_jobs", "jobs that ask for GPUs", "jobs"),
    Claim("gpu_time", "GPU time of the jobs", "GPU s"),
    Claim("wait_p50", "median wait of a job", "s"),
    Claim("wait_p90", "90th percentile of the wait of a job", "s"),
    Claim("top_users_gpu_time", "share of the GPU time of the top 5 % of users", "share"),
    Claim("failed_gpu_time", "share of the GPU time spent in jobs that failed", "share"),
    Claim("gang_tasks", "tasks that start in a gang of two or more", "share", 0.85, TALK),
    Claim(
        "short_jobs_waiting",
        "short jobs that waited more than half of their completion time",
        "share",
        0.09,
        TALK,
    ),
    Claim(
        "long_jobs_waiting",
        "long jobs that waited more than half of their completion time",
        "share",
        0.03,
        TALK,
    ),
    Claim(
        "wait_p90_sharing",
        "90th percentile of the wait where a task asks for less than a GPU",
        "s",
        497,
        TALK,
    ),
    Claim(
        "wait_p90_whole",
        "90th percentile of the wait where a task asks for a GPU or more",
        "s",
        1_150,
        TALK,
    ),
    Claim("wait_p50_v100", "median wait for V100 GPUs", "s", 113, TALK),
    Claim("wait_p90_v100", "90th percentile of the wait for V100 GPUs", "s", 13_709, TALK),
    Claim("wait_p50_misc", "median wait for low-end (MISC) GPUs", "s", 11, TALK),
    Claim("wait_p90_misc", "90th percentile of the wait for low-end (MISC) GPUs", "s", 360, TALK),
    Claim("request_p95_cpu", "95th percentile of the cores a task asks for", "cores", 12, TALK),
    Claim("request_p95_gpu", "95th percentile of the GPUs a task asks for", "GPUs", 1, TALK),
    Claim("request_p95_mem", "95th percentile of the memory a task asks for", "GiB", 59, TALK),
    *(
        Claim(
            f"request_ratio_{name}",
            f"95th percentile of the request for {what} over its median (published: more than 2)",
            "ratio",
            2,
            TALK,
        )
        for name, what in (("cpu", "cores"), ("gpu", "GPUs"), ("mem", "memory"))
    ),
    *(
        Claim(
            f"request_large_{name}",
            f"tasks that ask for more than twice the median of {what}",
            "share",
            0.2,
            TALK,
        )
        for name, what in (("cpu", "cores"), ("gpu", "GPUs"), ("mem", "memory"))
    ),
    Claim(
        "overuse_tasks_cpu", "tasks that use more cores than they asked for", "share", 0.19, TALK
    ),
    Claim("overuse_tasks_gpu", "tasks that use more GPU than they asked for", "share", 0.03, TALK),
    *(
        Claim(
            f"{key}_jobs_{name}",
            f"jobs whose tasks together use {how} {what} than they asked for",
            "share",
            published,
            NOTEBOOK,
        )
        for key, how, numbers in (
            ("overuse", "more", (0.1551, 0.0197, 0.0412)),
            ("underuse", "less", (0.8446, 0.9802, 0.9588)),
        )
        for (name, what), published in zip(
            (("cpu", "CPU"), ("gpu", "GPU"), ("mem", "memory")), numbers, strict=True
        )
    ),
    Claim("sharing_saved", "GPUs saved by sharing, of those held without it", "share", 0.5, TALK),
    Claim("sharing_peak", "GPUs saved by sharing at the peak", "GPUs", 2_500, TALK),
    Claim(
        "busy_shared",
        "time of GPUs at 95 % utilisation or more with two tasks or more",
        "share",
        0.04,
        TALK,
    ),
    Claim("recurring_jobs", "jobs whose template ran five times or more", "share", 0.65, TALK),
    Claim(
        "prediction", "tasks whose run time is predicted within 25 % (CART)", "share", 0.78, TALK
    ),
    Claim(
        "sjf_gain_least",
        "shorter mean completion of shortest-first on predictions against FIFO, at least",
        "share",
        0.63,
        TALK,
    ),
    Claim("sjf_gain_most", "the same, at most", "share", 0.77, TALK),
    Claim("colocation_slowdown", "slow-down by co-location, at most", "share", 0.28, TALK),
    Claim(
        "packing_gain",
        "shorter mean wait of reserving-and-packing against load balancing",
        "share",
        0.45,
        TALK,
    ),
    Claim("packing_gain_v100", "the same, jobs on V100 GPUs", "share", 0.68, TALK),
    Claim("cpus_per_gpu_8", "cores a GPU that 8-GPU nodes provide", "cores/GPU", 12, TALK),
    Claim("cpus_per_gpu_8_asked", "cores a GPU asked for on 8-GPU nodes", "cores/GPU", 22.8, TALK),
    Claim(
        "cpus_per_gpu_2_ratio",
        "cores a GPU that 2-GPU nodes provide over those asked for there (published: more than 2)",
        "ratio",
        2,
        TALK,
    ),
    Claim("allocated_misc_cpu", "cores allocated on 8-GPU MISC nodes", "share", 0.77, TALK),
    Claim("allocated_misc_gpu", "GPUs allocated on 8-GPU MISC nodes", "share", 0.74, TALK),
    Claim("allocated_v100_cpu", "cores allocated on V100 nodes", "share", 0.35, TALK),
    Claim("allocated_v100_gpu", "GPUs allocated on V100 nodes", "share", 0.49, TALK),
    Claim("ctr_cpu_time", "time that click-through models spend on CPUs", "share", 0.8, TALK),
    Claim(
        "gnn_cpu_time_least", "time that graph networks spend on CPUs, at least", "share", 0.3, TALK
    ),
    Claim("gnn_cpu_time_most", "the same, at most", "share", 0.9, TALK),
    Claim(
        "delayed_on_busy_cpu",
        "delayed tasks on nodes above 24 % CPU utilisation",
        "share",
        0.5,
        TALK,
    ),
    Claim(
        "delayed_gpu_gap",
        "median GPU utilisation of the nodes of delayed tasks less that of the others "
        "(published: no link)",
        "percentage points",
        None,
        TALK,
    ),
)

_PROFILES = "not in the trace: profiles of single models"
_SIMULATION = "not a fact of the trace: a simulation of it answers this (compare policies on it)"
#: Claims that no trace's tables can answer, and why.
NOT_IN_TABLES: dict[str, str] = {
    "prediction": "not a fact of the trace: a predictor must be trained on it first",
    "sjf_gain_least": _SIMULATION,
    "sjf_gain_most": _SIMULATION,
    "colocation_slowdown": "not in the trace: measured on a testbed",
    "packing_gain": _SIMULATION,
    "packing_gain_v100": _SIMULATION,
    "ctr_cpu_time": _PROFILES,
    "gnn_cpu_time_least": _PROFILES,
    "gnn_cpu_time_most": _PROFILES,
}
