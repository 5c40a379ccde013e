"""The tables of earlier traces that AcmeTrace brings along for comparison.

InternLM/AcmeTrace ``data/job_trace/trace_previous_work/{philly,helios,pai}_trace.csv`` (only in
the full set, on Hugging Face). What is documented of them is what the notebook of AcmeTrace reads:
GPUs, run time and state, for Philly and PAI no time of submission. They serve for distributions of
run time, not for a replay in time. Helios' is read by `windtunnel.traces.helios`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.fields import (
    SLURM_STATES,
    Facts,
    header_has,
    numbered,
    numbers_if_there,
    states,
    trace_of,
)
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import parse_text

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

_PHILLY_STATES = {
    "Pass": "completed",
    "Failed": "failed",
    "Killed": "cancelled",
    **{word: SLURM_STATES[word] for word in ("COMPLETED", "FAILED", "CANCELLED")},
}
_NO_SUBMISSION = "The table has no documented times of submission: it cannot be replayed in time."


def _looks_pai(head: bytes) -> bool:
    return header_has(head, "plan_cpu", "plan_gpu", "wait_time", "status", "duration")


@reader("acme-philly", extensions=("philly_trace.csv",))
def read_acme_philly(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read AcmeTrace's ``philly_trace.csv``: gpu_num, duration, state; ``queue`` where there.

    ``job_id`` is ``philly-N`` with N the row in the file, from 1. Pass, Failed and Killed become
    completed, failed and cancelled.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require("gpu_num", "duration", "state")
    status, notes = states(text, "state", _PHILLY_STATES)
    columns = {
        "job_id": numbered(text, "philly"),
        "submit_time": pa.nulls(text.num_rows, pa.float64()),
        "duration": text.floats("duration", what="a number of seconds"),
        "num_gpus": text.floats("gpu_num", what="a number of GPUs"),
        "status": status,
        "source_queue": numbers_if_there(text, "queue", what="a number of seconds"),
    }
    facts = Facts(
        "CC BY 4.0 (msr-fiddle/philly-traces, InternLM/AcmeTrace)",
        notes=(_NO_SUBMISSION, *notes),
        used=frozenset(("gpu_num", "duration", "state", "queue")),
    )
    return trace_of(path, text, columns, facts, bad_rows)


@reader("acme-pai", extensions=(".csv",), sniff=_looks_pai)
def read_acme_pai(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read AcmeTrace's ``pai_trace.csv``: plan_cpu, plan_gpu, wait_time, status, duration.

    A row is a task, ``job_id`` is ``pai-N`` with N the row in the file, from 1. Plans are in
    percent of a core and of a GPU, of one instance; the number of instances is not documented.
    ``wait_time`` is kept as ``source_queue``. Of the states only Failed is kept, as in the
    notebook; the others are null. ``duration`` is the mean run time of a task's instances; about
    four in ten tasks have none.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require("plan_cpu", "plan_gpu", "wait_time", "status", "duration")
    status, notes = states(text, "status", {"Failed": "failed"}, unknown=None)
    duration = text.floats("duration", what="a number of seconds")
    gpus = pc.divide(text.floats("plan_gpu", what="percent of a GPU"), 100.0)
    columns = {
        "job_id": numbered(text, "pai"),
        "submit_time": pa.nulls(text.num_rows, pa.float64()),
        "duration": duration,
        "num_gpus": gpus,
        "num_cpus": pc.divide(text.floats("plan_cpu", what="percent of a core"), 100.0),
        "status": status,
        "source_queue": text.finite("wait_time", what="a number of seconds"),
    }
    facts = Facts(
        "CC BY 4.0 (alibaba/clusterdata, cluster-trace-gpu-v2020; InternLM/AcmeTrace)",
        notes=(
            _NO_SUBMISSION,
            "A row is a task and its GPUs and CPUs are those of one instance.",
            f"{duration.null_count:,} of {text.num_rows:,} rows have no duration.",
            f"{gpus.null_count:,} rows have no number of GPUs.",
            *notes,
        ),
        used=frozenset(("plan_cpu", "plan_gpu", "wait_time", "status", "duration")),
    )
    return trace_of(path, text, columns, facts, bad_rows)
