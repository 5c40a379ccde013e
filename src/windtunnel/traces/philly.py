"""Microsoft Philly, the job records derived for the Sia artifact.

Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", ATC'19
(trace: msr-fiddle/philly-traces, CC BY 4.0); the CSV is siasosp23/artifacts
``sia-simulator/traces/philly.csv``: timestamp, duration, num_gpus, gpu_time, cluster. Its times are
Pacific wall-clock times without a zone. The original job log is read by `philly_raw`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.schema import conform_rows
from windtunnel.traces.order import by_submission
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, short_name, source_name
from windtunnel.traces.tabular import parse_text
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.wallclock import named_epoch, to_utc

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable

ZONE = "America/Los_Angeles"
LICENCE = (
    "CC BY 4.0 (msr-fiddle/philly-traces); the derived table in siasosp23/artifacts states none"
)
_HEADER = b"timestamp,duration,num_gpus,gpu_time,cluster"


def _looks_derived(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").startswith(_HEADER)


@reader("philly", extensions=(".csv",), sniff=_looks_derived)
def read_philly(path: str | Path, *, zone: str = ZONE, bad_rows: str = "raise") -> Trace:
    """Read the derived Philly CSV.

    ``job_id`` is ``philly-N`` with N the row in the file, from 1; ``vc`` is the column cluster.
    Rows are sorted by submission, ties in the file's order. Time 0 is the first submission.
    Start, status, user and requested time are not in the file and stay null; ``gpu_time`` is
    duration times GPUs and is not kept.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        zone: IANA zone of its times.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column.
        SchemaError: rules of the schema are broken.
        SpecError: no such zone.
    """
    file = source_name(path)
    text = parse_text(read_bytes(path), file)
    text.require("timestamp", "duration", "num_gpus", "cluster")
    instants, ambiguous = to_utc(text.clock("timestamp"), zone)
    epoch = float(np.nanmin(instants)) if np.isfinite(instants).any() else None
    table = _columns(text, instants - (epoch or 0.0))
    table, lines, _ = by_submission(table, text.lines)
    jobs, dropped = conform_rows(table, bad_rows=bad_rows, source=file, lines=lines)
    return Trace(
        jobs,
        TraceMetadata(
            name=short_name(path),
            source=file,
            licence=LICENCE,
            epoch=named_epoch(file, epoch),
            zone=zone,
            rows_read=text.num_rows,
            dropped=dropped,
            notes=(
                "Rows were sorted by submission; the file has no start, status, user or estimate.",
                repeated_hour_note(int(ambiguous.sum()), zone),
            ),
        ),
    )


def repeated_hour_note(count: int, zone: str) -> str:
    """Return the sentence on times in the hour that autumn's clock change repeats."""
    return (
        f"{count:,} wall-clock times fall into the hour that the end of summer time in {zone} "
        "repeats and are read as its first pass."
    )


def _columns(text: TextTable, submit: np.ndarray) -> pa.Table:
    """Return the schema's columns; ``submit`` in seconds since the epoch, NaN = unknown."""
    return pa.table(
        {
            "job_id": pa.array([f"philly-{row}" for row in range(1, text.num_rows + 1)]),
            "submit_time": pa.array(submit, from_pandas=True),
            "duration": text.floats("duration", what="a number of seconds"),
            "num_gpus": text.floats("num_gpus", what="a number of GPUs"),
            "vc": text.text("cluster"),
        }
    )
