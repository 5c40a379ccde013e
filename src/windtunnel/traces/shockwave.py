"""Shockwave's traces: Gavel's layout with two more columns, of which one is how batch sizes change.

Zheng et al., NSDI'23; folder ``scheduler/traces`` of uw-mad-dash/shockwave: tab separated, 12
columns, no header. A job's ``duration`` is its ideal one: every epoch at its planned batch size.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.throughput.batch_sizes import DATASET_SIZES, MODES, Kind
from windtunnel.throughput.epoch_profile import profile_of
from windtunnel.throughput.measured import read_throughputs
from windtunnel.throughput.shockwave import (
    CLUSTERS,
    by_batch_size,
    shockwave_speeds,
    split_job_type,
)
from windtunnel.traces.gavel import JOB_COLUMNS, complete, parse_tabs
from windtunnel.traces.header import BOM
from windtunnel.traces.layout import Layout, Rows, text
from windtunnel.traces.resuming import SHOCKWAVE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    #: (model, GPUs) -> batch size -> steps per second.
    Speeds = Mapping[tuple[str, int], Mapping[int, float]]

LICENCE = "MIT (uw-mad-dash/shockwave; cite NSDI'23)"
COLUMNS = (
    *("job_type", "command", "working_directory", "steps_argument", "needs_data", "total_steps"),
    *("scale_factor", "mode", "priority_weight", "slo", "generated_duration", "arrival_time"),
)
_FIRST_LINE = re.compile(
    rb"[^\t\n]+\t[^\t\n]*\t[^\t\n]*\t-[^\t\n]*\t[01]\t\d+\t\d+\t(?:static|accordion|gns)\t"
)


def _looks_shockwave(head: bytes) -> bool:
    return _FIRST_LINE.match(head.removeprefix(BOM)) is not None


_SHOCKWAVE = Layout(
    "shockwave",
    licence=LICENCE,
    columns={**JOB_COLUMNS, "mode": text("mode")},
    sniff=_looks_shockwave,
    extensions=(".trace",),
    parse=partial(parse_tabs, columns=COLUMNS, filled=("mode",)),
)


@_SHOCKWAVE.reader
def read_shockwave(rows: Rows, *, throughputs: str | Path | None = None) -> None:
    """Read a trace of twelve columns.

    ``job_id`` is the job's place in the file, from 0; ``num_gpus`` and ``num_tasks`` the gang;
    ``template`` the model with its first batch size, ``workload`` the model; ``priority`` the
    weight; ``duration`` the ideal one: all epochs at their planned batch sizes, alone, null where
    a speed is not known; ``mode`` how the batch size changes (``static``, ``accordion``,
    ``gns``). Steps are counted at the first batch size. ``restore_time`` is what the published
    simulator counts for a round in which a job goes on, 20 s.

    Args:
        rows: the file's.
        throughputs: ``tacc`` or ``wisr`` (the published speeds on either cluster), or a table in
            Gavel's layout; default ``tacc``.
    """
    known = pc.is_in(rows["mode"], pa.array(MODES))
    rows.text.refuse("mode", pc.invert(known), f"one of {', '.join(MODES)}")
    complete(rows, lambda: _ideal(speeds_by_batch(throughputs), rows))
    rows["restore_time"] = pa.repeat(pa.scalar(SHOCKWAVE), rows.count)
    rows.note("Durations are ideal ones: all epochs at their planned batch sizes, alone on V100s.")
    if count := rows["duration"].null_count:
        rows.note(f"{count:,} jobs have no duration: a speed of theirs is not known.")


def speeds_by_batch(given: str | Path | None) -> Speeds:
    """Return speeds by (model, GPUs) and batch size: published ones, or those of a file.

    Raises:
        TraceError: the file is no throughput table.
        SpecError: it does not know V100s.
    """
    if given is None or given in CLUSTERS:
        return shockwave_speeds("tacc" if given is None else str(given))
    return by_batch_size(read_throughputs(given))


def _ideal(speeds: Speeds, rows: Rows) -> pa.Array:
    """Return the jobs' ideal durations, s, null where a speed is not known."""
    columns: Any = (
        rows[name].to_pylist() for name in ("template", "total_steps", "num_tasks", "mode")
    )
    return pa.array([_duration(speeds, *row) for row in zip(*columns, strict=True)], pa.float64())


def _duration(speeds: Speeds, job_type: str, steps: int, gang: int, mode: str) -> float | None:
    found = split_job_type(job_type)
    if found is None or found[0] not in DATASET_SIZES:
        return None
    kind = Kind(found[0], found[1], gang, mode)
    known = speeds.get((found[0], gang), {})
    epochs = -(-steps // kind.steps_per_epoch(kind.batch_size))
    if not all(known.get(size) for size in set(kind.planned(epochs))):
        return None
    return profile_of(kind, steps, known).duration
