"""The tables that stand beside the jobs of a trace: tasks, nodes, holdings and samples.

A source that has them gives them with these columns, in this order; what it does not know is null.
Like jobs they are Arrow tables, or Ibis tables where they may be larger than memory. Times are
float64 seconds since the trace's epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.schema import Column

if TYPE_CHECKING:
    from typing import TypeAlias

    import ibis.expr.types as ir

    #: An Arrow table, or an Ibis table on any backend.
    Relation: TypeAlias = pa.Table | ir.Table

#: A task is one pod or instance of a job. What it asked for, and what it used on average.
TASK_COLUMNS: tuple[Column, ...] = (
    Column("task_id", pa.string(), "unique name of the task", required=True),
    Column("job_id", pa.string(), "the job that it belongs to", required=True),
    Column("node", pa.string(), "where it ran"),
    Column("gpu", pa.string(), "GPU of that node that it ran on; several joined by |"),
    Column("start_time", pa.float64(), "when it began, s"),
    Column("end_time", pa.float64(), "when it ended, s"),
    Column("status", pa.string(), "how it ended, one of schema.STATUSES"),
    Column("num_gpus", pa.float64(), "GPUs that it asked for; fractions share"),
    Column("num_cpus", pa.float64(), "CPU cores that it asked for"),
    Column("mem_gib", pa.float64(), "host memory that it asked for, GiB"),
    Column("gpus_used", pa.float64(), "GPUs in use, mean over its life"),
    Column("cpus_used", pa.float64(), "CPU cores in use, mean over its life"),
    Column("mem_used_gib", pa.float64(), "host memory in use, mean over its life, GiB"),
    Column("gpu_mem_used_gib", pa.float64(), "GPU memory in use, mean over its life, GiB"),
)

NODE_COLUMNS: tuple[Column, ...] = (
    Column("node", pa.string(), "unique name of the node", required=True),
    Column("gpu_type", pa.string(), "type of its GPUs; null = has none, or unknown"),
    Column("num_gpus", pa.float64(), "GPUs"),
    Column("num_cpus", pa.float64(), "CPU cores"),
    Column("mem_gib", pa.float64(), "host memory, GiB"),
)

#: Which job had which GPU when: what joins telemetry to jobs.
HOLDING_COLUMNS: tuple[Column, ...] = (
    Column("job_id", pa.string(), "the job", required=True),
    Column("node", pa.string(), "the node", required=True),
    Column("gpu", pa.string(), "GPU of that node; null = all of the node"),
    Column("start_time", pa.float64(), "from then on, s", required=True),
    Column("end_time", pa.float64(), "until before then, s; null = still", required=True),
)

#: One measurement of telemetry.
SAMPLE_COLUMNS: tuple[Column, ...] = (
    Column("time", pa.float64(), "when it was taken, s", required=True),
    Column("node", pa.string(), "where"),
    Column("gpu", pa.string(), "GPU of that node; null = the node as a whole"),
    Column("job_id", pa.string(), "the job that the source says had it; null = not known"),
    Column("metric", pa.string(), "what was measured", required=True),
    Column("value", pa.float64(), "the measurement; never NaN", required=True),
)


def companion_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the Arrow schema of one of the tables above."""
    return pa.schema([pa.field(c.name, c.type, metadata={"doc": c.doc}) for c in columns])


def companion(columns: tuple[Column, ...], values: dict[str, Any]) -> pa.Table:
    """Return a table of these columns, those that ``values`` lacks null, its others behind.

    Args:
        columns: one of the tuples above.
        values: column -> array, all of one length; at least one.

    Raises:
        pa.ArrowException: a value does not fit its column's type.
    """
    count = len(next(iter(values.values())))
    arrays = {c.name: values.get(c.name, pa.nulls(count, c.type)).cast(c.type) for c in columns}
    table = pa.table(arrays, schema=companion_schema(columns))
    for name, extra in values.items():
        if name not in arrays:
            table = table.append_column(name, extra)
    return table
