"""Acme, the job tables of the clusters Seren and Kalos.

Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI'24;
InternLM/AcmeTrace ``data/job_trace/trace_seren.csv`` and ``trace_kalos.csv``. Times carry their
offset from UTC: +08:00 in Seren's table, +00:00 in Kalos'. The tables of other clusters that
AcmeTrace brings along are read by `acme_previous`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.fields import (
    SLURM_STATES,
    Facts,
    differing,
    first_of,
    gang_size,
    header_has,
    instants,
    numbers_if_there,
    seconds_since,
    states,
    trace_of,
)
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import parse_text
from windtunnel.traces.wallclock import named_epoch

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable
    from windtunnel.traces.trace import Trace

LICENCE = "CC BY 4.0 (InternLM/AcmeTrace; cite NSDI'24)"
#: GiB in a GB: the table's memory is in units of 1e9 bytes by its column's name.
_GIB_PER_GB = 1e9 / 2**30
_TIMES = ("submit_time", "start_time", "end_time")
_REQUIRED = ("job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "state", *_TIMES)
_ZONES = {"+08:00": "Asia/Shanghai", "+00:00": "UTC"}
#: Columns of Kalos only, kept under their own names: times, then numbers.
_KALOS_TIMES = ("fail_time", "stop_time")
_KALOS_NUMBERS = ("mem_per_pod_GB", "shared_mem_per_pod")
#: gpu_time is the source's duration times GPUs.
_USED = frozenset((*_REQUIRED, *_KALOS_TIMES, *_KALOS_NUMBERS, "duration", "queue", "gpu_time"))


def _looks_acme(head: bytes) -> bool:
    return header_has(head, "job_id", "node_num", "gpu_num", "type", "submit_time", without=("vc",))


@reader("acme", extensions=(".csv",), sniff=_looks_acme)
def read_acme(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read the job table of Seren or Kalos.

    ``duration`` is end minus start. The source's own is kept as ``source_duration``: in Kalos'
    published rows it is end minus submission, against its README, and the notes count the rows
    that differ. ``source_queue`` is the source's queueing time. ``mem_gib`` is the memory of a
    pod times the nodes; ``type`` becomes ``workload``. Kalos' ``fail_time`` and ``stop_time``
    (s) and ``shared_mem_per_pod`` are kept as further columns. Time 0 is the first submission;
    rows are sorted by submission. A state without a meaning becomes ``unknown``.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require(*_REQUIRED)
    submit, start, end = (instants(text, name) for name in _TIMES)
    epoch = first_of(submit)
    nodes, node_notes = gang_size(text, "node_num")
    status, state_notes = states(text, "state", SLURM_STATES)
    theirs = numbers_if_there(text, "duration", what="a number of seconds")
    queued = numbers_if_there(text, "queue", what="a number of seconds")
    duration = seconds_since(end - start, None)
    columns: dict[str, Any] = {
        "job_id": text.text("job_id"),
        "submit_time": seconds_since(submit, epoch),
        "start_time": seconds_since(start, epoch),
        "end_time": seconds_since(end, epoch),
        "duration": duration,
        "num_gpus": text.floats("gpu_num", what="a number of GPUs"),
        "num_tasks": nodes,
        "num_cpus": text.floats("cpu_num", what="a number of CPUs"),
        "mem_gib": _memory(text, nodes),
        "user": text.text("user"),
        "workload": text.text("type"),
        "status": status,
        "source_duration": theirs,
        "source_queue": queued,
    }
    for name in _KALOS_TIMES:
        if name in text.table.column_names:
            columns[name] = seconds_since(instants(text, name), epoch)
    if "shared_mem_per_pod" in text.table.column_names:
        columns["shared_mem_per_pod"] = text.finite("shared_mem_per_pod")
    zone, zone_notes = _zone(text)
    facts = Facts(LICENCE, named_epoch(text.file, epoch), zone, used=_USED)
    wait = seconds_since(start - submit, None)
    facts = facts.noting(
        f"Duration is end minus start; the source's own differs in {differing(duration, theirs):,} "
        f"of {text.num_rows:,} rows and is kept as source_duration.",
        f"The source's queueing time differs from start minus submission in "
        f"{differing(wait, queued):,} rows and is kept as source_queue.",
        *zone_notes,
        *node_notes,
        *state_notes,
    )
    return trace_of(path, text, columns, facts, bad_rows)


def _memory(text: TextTable, nodes: pa.ChunkedArray) -> Any:
    """Return the memory of the whole gang in GiB, null where the file does not say."""
    a_pod = numbers_if_there(text, "mem_per_pod_GB", what="a number of GB")
    return pc.multiply(pc.multiply(a_pod, nodes.cast(pa.float64(), safe=False)), _GIB_PER_GB)


def _zone(text: TextTable) -> tuple[str | None, tuple[str, ...]]:
    """Return the zone that the submissions' offsets stand for; None and a note where unclear."""
    cells = pc.utf8_trim_whitespace(text.text("submit_time"))
    offsets = pc.utf8_slice_codeunits(cells, -6)
    found = sorted(offset for offset in pc.unique(offsets).to_pylist() if offset)
    if len(found) == 1 and found[0] in _ZONES:
        return _ZONES[found[0]], ()
    return None, (f"Submission times have {len(found):,} different ends, no one zone is known.",)
