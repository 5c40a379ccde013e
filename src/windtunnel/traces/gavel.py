"""Gavel's traces: tab-separated jobs without a header, in ten columns or the older seven.

Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI'20; folder ``scheduler/traces`` of stanford-futuredata/gavel. A job has a number of steps, not
a duration: how long it runs depends on the GPUs it gets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError
from windtunnel.throughput.measured import REFERENCE_TYPE, gavel_speeds, read_throughputs
from windtunnel.traces.layout import Field, Layout, Rows, number, seconds, text, whole, words
from windtunnel.traces.tabular import TextTable, parse_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.throughput.measured import ThroughputTable

LICENCE = "MIT (stanford-futuredata/gavel; cite OSDI'20)"
#: The columns in order, newer and older layout.
COLUMNS = (
    *("job_type", "command", "working_directory", "steps_argument", "needs_data", "total_steps"),
    *("scale_factor", "priority_weight", "slo", "arrival_time"),
)
OLD_COLUMNS = (
    *("job_type", "command", "steps_argument", "needs_data", "total_steps", "arrival_time"),
    "scale_factor",
)
_NO_SLO = -1.0
_SLO_WORDS = "a multiple > 0 of the ideal duration, or -1"
_FIRST_LINE = re.compile(
    rb"[^\t\n]+\t[^\t\n]*\t(?:[^\t\n]*\t)?-[^\t\n]*\t[01]\t\d+\t(?!\d+\t[a-z])"
)


def _looks_gavel(head: bytes) -> bool:
    return _FIRST_LINE.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def parse_tabs(
    data: bytes, file: str, columns: tuple[str, ...], *, filled: tuple[str, ...] = ()
) -> TextTable:
    """Return the rows of a file of tab-separated jobs, of Gavel's or of a trace made from it.

    Args:
        data: its bytes.
        filled: columns without empty cells, besides those that every such trace has.

    Raises:
        TraceError: a line has another number of fields, or a cell that the trace needs is empty.
    """
    found = parse_text(data, file, delimiter="\t", quoted=False, columns=columns)
    for name in ("job_type", "total_steps", "scale_factor", *filled, "arrival_time"):
        cells = pc.utf8_trim_whitespace(found.text(name))
        found.refuse(name, pc.fill_null(pc.equal(cells, ""), True), "a value in this column")
    return found


def _parsed(data: bytes, file: str) -> TextTable:
    """Return the rows under the names of the layout that the first line has."""
    first = next((line for line in data.splitlines() if line.strip()), b"")
    count = first.count(b"\t") + 1
    layout = {len(COLUMNS): COLUMNS, len(OLD_COLUMNS): OLD_COLUMNS}.get(count)
    if layout is None and data.strip():
        raise TraceError(file, "10 or 7 fields between tabs", row=1, value=f"{count} field(s)")
    return parse_tabs(data, file, layout or COLUMNS)


#: Columns that jobs have in Gavel's layout and in those made from it.
JOB_COLUMNS: dict[str, Field] = {
    "submit_time": seconds("arrival_time"),
    "num_tasks": whole("scale_factor", "GPUs"),
    "template": text("job_type"),
    "workload": text("job_type"),
    "total_steps": whole("total_steps", "steps"),
    "command": text("command"),
    "steps_argument": text("steps_argument"),
    "needs_data": words("needs_data", {"0": "no", "1": "yes"}, ""),
    "priority": number("priority_weight", "a weight").optional,
    "slo": number("slo", _SLO_WORDS, unknown=_NO_SLO).optional,
    "working_directory": text("working_directory").optional,
}


def complete(rows: Rows, duration: Callable[[], pa.Array]) -> None:
    """Check jobs of `JOB_COLUMNS`, and give them ids, GPUs, durations and the model's name alone.

    Args:
        rows: the file's.
        duration: returns the ideal durations of the jobs once they are checked, s.
    """
    rows.text.refuse("total_steps", pc.less(rows["total_steps"], 0), "a whole number >= 0")
    rows.text.refuse("scale_factor", pc.less(rows["num_tasks"], 1), "a whole number >= 1")
    rows["job_id"] = pa.array([str(row) for row in range(rows.count)], pa.string())
    rows["duration"] = duration()
    rows["num_gpus"] = pc.cast(rows["num_tasks"], pa.float64())
    rows["workload"] = pc.replace_substring_regex(rows["workload"], r" \(batch size \d+\)$", "")
    if "slo" in rows:
        rows.text.refuse("slo", pc.invert(pc.greater(rows["slo"], 0)), _SLO_WORDS)


_GAVEL = Layout(
    "gavel",
    licence=LICENCE,
    columns=JOB_COLUMNS,
    sniff=_looks_gavel,
    extensions=(".trace",),
    parse=_parsed,
)


@_GAVEL.reader
def read_gavel(rows: Rows, *, throughputs: str | Path | None = None) -> None:
    """Read a trace of ten columns, or of seven as the traces shaped like Philly's have them.

    ``job_id`` is the job's place in the file, from 0; ``num_gpus`` and ``num_tasks`` the scale
    factor; ``template`` the model with its batch size, ``workload`` the model; ``priority`` the
    weight; ``duration`` the ideal one, steps over the speed on V100s, null where that is not
    known. The steps, the SLO (a multiple of the ideal duration, null = none) and how the job is
    started are kept as further columns.

    Args:
        rows: the file's.
        throughputs: a throughput table in Gavel's layout; default the published simulation
            speeds.
    """
    table = gavel_speeds() if throughputs is None else read_throughputs(throughputs)
    complete(rows, lambda: _ideal(table, rows))
    rows.note("Durations are ideal ones: steps over the measured speed on V100s of a job alone.")
    if count := rows["duration"].null_count:
        rows.note(f"{count:,} jobs have no duration: no speed on V100s is known of them.")


def _ideal(table: ThroughputTable, rows: Rows) -> pa.Array:
    """Return steps over the speed on V100s, null where that is unknown or 0."""
    known = table.alone.get(REFERENCE_TYPE, {})
    columns: Any = (rows[name].to_pylist() for name in ("template", "total_steps", "num_tasks"))
    speeds = (
        (steps, known.get((model, gang))) for model, steps, gang in zip(*columns, strict=True)
    )
    return pa.array([steps / speed if speed else None for steps, speed in speeds], pa.float64())
