"""Alibaba PAI v2020, the job files of the simulator that came with the trace.

Weng et al., "MLaaS in the Wild", NSDI'22; alibaba/clusterdata ``cluster-trace-gpu-v2020/simulator``
(``pai_job_duration_estimate_100K.csv`` and its kin). One row a job; GPUs and CPUs are per
instance; times are seconds since an unknown instant. The ``*_dur`` columns are run times
expected from the history of the user, the group, or either with the same GPU request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.fields import (
    Facts,
    header_has,
    numbers_if_there,
    trace_of,
    words_if_there,
)
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import parse_text

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable
    from windtunnel.traces.trace import Trace

LICENCE = "CC BY 4.0 (alibaba/clusterdata, cluster-trace-gpu-v2020; cite NSDI'22)"
_REQUIRED = ("job_id", "num_gpu", "num_cpu", "num_inst", "submit_time", "duration")
_ESTIMATES = ("user_dur", "user_gpu_dur", "group_dur", "group_gpu_dur")
_USED = frozenset((*_REQUIRED, *_ESTIMATES, "user", "group", "gpu_type", "wait_time"))
#: How the files name the machines without GPUs.
_NO_GPU = "CPU"


def _looks_pai_sim(head: bytes) -> bool:
    return header_has(head, *_REQUIRED)


@reader("pai-sim", extensions=(".csv",), sniff=_looks_pai_sim)
def read_pai_simulator(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read a job file of the PAI simulator.

    A job is a gang of ``num_inst`` instances: its GPUs and CPUs are theirs together. As in the
    simulator, ``duration`` is cut to whole seconds and 0 becomes 1; the notes count both.
    ``group`` becomes ``template``; ``gpu_type`` CPU, which asks for a machine without GPUs,
    becomes null. ``user_dur``, ``user_gpu_dur``, ``group_dur`` and ``group_gpu_dur`` (s) are kept
    under their names, ``wait_time`` (s, what the job waited in the trace) as ``source_queue``.
    Rows are sorted by submission, ties in the file's order.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require(*_REQUIRED)
    instances = text.integers("num_inst", what="a whole number of instances")
    of_all = instances.cast(pa.float64(), safe=False)
    duration, notes = _whole_seconds(text)
    types, type_notes = _types(text)
    columns: dict[str, Any] = {
        "job_id": text.text("job_id"),
        "submit_time": text.floats("submit_time", what="a number of seconds"),
        "duration": duration,
        "num_gpus": pc.multiply(text.floats("num_gpu", what="a number of GPUs"), of_all),
        "num_tasks": instances,
        "num_cpus": pc.multiply(text.floats("num_cpu", what="a number of CPUs"), of_all),
        "gpu_type": types,
        "user": words_if_there(text, "user"),
        "template": words_if_there(text, "group"),
        "source_queue": numbers_if_there(text, "wait_time", what="a number of seconds"),
    }
    for name in _ESTIMATES:
        if name in text.table.column_names:
            columns[name] = text.finite(name, what="a number of seconds")
    facts = Facts(LICENCE, notes=notes + type_notes, used=_USED)
    return trace_of(path, text, columns, facts, bad_rows)


def _whole_seconds(text: TextTable) -> tuple[pa.ChunkedArray, tuple[str, ...]]:
    """Return run times as the simulator takes them, and how many are not the file's own."""
    given = text.floats("duration", what="a number of seconds")
    whole = pc.trunc(given)
    none = pc.equal(pc.abs(whole), 0.0)
    cut = int(pc.sum(pc.not_equal(whole, given)).as_py() or 0)
    # A small negative number is wrong, not zero: it stays, and the schema refuses it.
    zero = pc.and_(none, pc.greater_equal(given, 0.0))
    raised = int(pc.sum(zero).as_py() or 0)
    duration = pc.if_else(zero, 1.0, pc.if_else(none, given, whole))
    note = (
        f"As in the simulator, {cut:,} durations were cut to whole seconds and {raised:,} of 0 "
        "seconds were raised to 1."
    )
    return duration, (note,)


def _types(text: TextTable) -> tuple[Any, tuple[str, ...]]:
    """Return the GPU types, null for machines without GPUs, and how many those are."""
    types = words_if_there(text, "gpu_type")
    without = pc.equal(types, _NO_GPU)
    count = int(pc.sum(without).as_py() or 0)
    note = f"{count:,} jobs name the machines without GPUs ({_NO_GPU}): their GPU type is null."
    return pc.if_else(without, pa.scalar(None, pa.string()), types), (note,) * bool(count)
