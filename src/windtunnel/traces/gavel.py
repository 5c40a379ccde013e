"""Gavel's traces: tab-separated jobs without a header, in ten columns or the older seven.

Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI'20; folder ``scheduler/traces`` of stanford-futuredata/gavel. A job has a number of steps, not
a duration: how long it runs depends on the GPUs it gets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError
from windtunnel.throughput.measured import REFERENCE_TYPE, gavel_speeds, read_throughputs
from windtunnel.traces.fields import Facts, trace_of
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import MAX_GANG, TextTable, parse_text

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.throughput.measured import ThroughputTable
    from windtunnel.traces.trace import Trace

LICENCE = "MIT (stanford-futuredata/gavel; cite OSDI'20)"
#: The columns in order, newer and older layout.
COLUMNS = (
    "job_type",
    "command",
    "working_directory",
    "steps_argument",
    "needs_data",
    "total_steps",
    "scale_factor",
    "priority_weight",
    "slo",
    "arrival_time",
)
OLD_COLUMNS = (
    "job_type",
    "command",
    "steps_argument",
    "needs_data",
    "total_steps",
    "arrival_time",
    "scale_factor",
)
_NO_SLO = -1.0
_SLO_WORDS = "a multiple > 0 of the ideal duration, or -1"
_FIRST_LINE = re.compile(rb"[^\t\n]+\t[^\t\n]*\t(?:[^\t\n]*\t)?-[^\t\n]*\t[01]\t\d+\t")


def _looks_gavel(head: bytes) -> bool:
    return _FIRST_LINE.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


@reader("gavel", extensions=(".trace",), sniff=_looks_gavel)
def read_gavel(
    path: str | Path, *, throughputs: str | Path | None = None, bad_rows: str = "raise"
) -> Trace:
    """Read a trace of ten columns, or of seven as the traces shaped like Philly's have them.

    ``job_id`` is the job's place in the file, from 0; ``num_gpus`` and ``num_tasks`` the scale
    factor; ``template`` the model with its batch size, ``workload`` the model; ``priority`` the
    weight; ``duration`` the ideal one, steps over the speed on V100s, null where that is not
    known. The steps, the SLO (a multiple of the ideal duration, null = none) and how the job is
    started are kept as further columns.

    Args:
        path: plain or gzip file; ``-`` = standard input.
        throughputs: a throughput table in Gavel's layout; default the published simulation
            speeds.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a trace, or the table cannot be read; names the line.
        SchemaError: rules of the schema are broken.
    """
    file = source_name(path)
    table = gavel_speeds() if throughputs is None else read_throughputs(throughputs)
    text = _parsed(read_bytes(path), file)
    _check_unbroken(text)
    steps = text.integers("total_steps", what="a whole number of steps")
    gangs = text.integers("scale_factor", what="a number of GPUs", largest=MAX_GANG)
    _check_least(text, "total_steps", steps, 0)
    _check_least(text, "scale_factor", gangs, 1)
    durations = _ideal(table, text.text("job_type"), steps, gangs)
    columns: dict[str, Any] = {
        "job_id": pa.array([str(row) for row in range(text.num_rows)], pa.string()),
        "submit_time": text.floats("arrival_time", what="a number of seconds"),
        "duration": durations,
        "num_gpus": pc.cast(gangs, pa.float64()),
        "num_tasks": pc.cast(gangs, pa.int32()),
        "template": text.text("job_type"),
        "workload": pc.replace_substring_regex(text.text("job_type"), r" \(batch size \d+\)$", ""),
        "total_steps": steps,
        "command": text.text("command"),
        "steps_argument": text.text("steps_argument"),
        "needs_data": text.mapped("needs_data", {"0": "no", "1": "yes"}),
    }
    if "slo" in text.table.column_names:
        slo = text.floats("slo", what=_SLO_WORDS)
        _check_slos(text, slo)
        columns["priority"] = text.floats("priority_weight", what="a weight")
        columns["slo"] = pc.if_else(pc.equal(slo, _NO_SLO), pa.scalar(None, pa.float64()), slo)
        columns["working_directory"] = text.text("working_directory")
    facts = Facts(LICENCE, used=frozenset(text.table.column_names)).noting(
        "Durations are ideal ones: steps over the measured speed on V100s of a job alone."
    )
    if durations.null_count:
        facts = facts.noting(
            f"{durations.null_count:,} jobs have no duration: no speed on V100s is known of them."
        )
    return trace_of(path, text, columns, facts, bad_rows)


def _parsed(data: bytes, file: str) -> TextTable:
    """Return the rows under the names of the layout that the first line has.

    Raises:
        TraceError: the first line has neither ten nor seven fields.
    """
    first = next((line for line in data.splitlines() if line.strip()), b"")
    count = first.count(b"\t") + 1
    layout = {len(COLUMNS): COLUMNS, len(OLD_COLUMNS): OLD_COLUMNS}.get(count)
    if layout is None and data.strip():
        raise TraceError(file, "10 or 7 fields between tabs", row=1, value=f"{count} field(s)")
    return parse_text(data, file, delimiter="\t", quoted=False, columns=layout or COLUMNS)


def _check_unbroken(text: TextTable) -> None:
    """Check that no cell that the trace needs is empty.

    Raises:
        TraceError: one is; names its line.
    """
    for name in ("job_type", "total_steps", "scale_factor", "arrival_time"):
        cells = pc.fill_null(pc.utf8_trim_whitespace(text.text(name)), "")
        empty = np.flatnonzero(pc.equal(cells, "").to_numpy(zero_copy_only=False))
        if len(empty):
            line = int(text.lines[int(empty[0])])
            raise TraceError(text.file, "a value in this column", row=line, column=name)


def _check_least(text: TextTable, name: str, numbers: Any, least: int) -> None:
    """Check that no number of a column is too small.

    Raises:
        TraceError: one is; names its line.
    """
    low = np.flatnonzero(pc.less(numbers, least).to_numpy(zero_copy_only=False))
    if len(low):
        row = int(low[0])
        raise TraceError(
            text.file,
            f"a whole number >= {least}",
            row=int(text.lines[row]),
            column=name,
            value=numbers[row].as_py(),
        )


def _check_slos(text: TextTable, slos: Any) -> None:
    """Check that every SLO is a multiple of the ideal duration or says that there is none.

    Raises:
        TraceError: one is neither; names its line.
    """
    values = slos.to_numpy(zero_copy_only=False)
    known = ~slos.is_null().to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(known & (values != _NO_SLO) & ~(values > 0))
    if len(wrong):
        row = int(wrong[0])
        line = int(text.lines[row])
        raise TraceError(text.file, _SLO_WORDS, row=line, column="slo", value=float(values[row]))


def _ideal(table: ThroughputTable, models: Any, steps: Any, gangs: Any) -> pa.Array:
    """Return steps over the speed on V100s, null where that is unknown or 0."""
    known = table.alone.get(REFERENCE_TYPE, {})
    rows = zip(models.to_pylist(), steps.to_pylist(), gangs.to_pylist(), strict=True)
    speeds = ((count, known.get((model, gang))) for model, count, gang in rows)
    return pa.array([count / speed if speed else None for count, speed in speeds], pa.float64())
