"""What a trace has to answer its headline questions with, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.characterize.columns import known_columns
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
