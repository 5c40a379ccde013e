"""A recording in a Parquet file: written group by group, read back a job at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from windtunnel.errors import TraceError
from windtunnel.sim.observe.decisions import SCHEMA, WORDS, DecisionRows
from windtunnel.sim.observe.lacks import LIMITS
from windtunnel.storage import replacing

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown

#: Where the file says what it is of.
KEY = b"windtunnel.recording"


def write(path: str, outcome: Flown) -> None:
    """Write the decisions of a run.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
        SpecError: the run was not recorded.
    """
    recording = DecisionRows(outcome)
    facts = {
        "policy": outcome.settings.get("policy"),
        "queueing": outcome.settings.get("queueing"),
        "cluster": outcome.cluster.describe(),
        "num_gpus": float(outcome.cluster.num_gpus),
    }
    schema = SCHEMA.with_metadata({KEY: json.dumps(facts).encode()})
    how: dict[str, Any] = {
        "compression": "lz4",
        "use_dictionary": ["gpus", "verdict", "limit", "blocker"],
        "write_statistics": ["time"],
    }
    with replacing(path) as part, pq.ParquetWriter(part, schema, **how) as writer:
        for batch in recording.batches():
            writer.write_batch(batch)


def read(path: str, job: str) -> tuple[dict[str, Any], pa.Table]:
    """Return what a recording is of, and its rows on one job, in order of time.

    Raises:
        TraceError: the file cannot be read, is no recording, or has no such job.
    """
    expected = "a recording; simulate --record FILE.parquet writes one"
    # Not as they stand: "a:b.parquet" and "s3://a/b" were addresses.
    place, here = str(Path(path).absolute()), LocalFileSystem()
    try:
        schema = pq.read_schema(place, filesystem=here)
        facts = _facts(schema)
        if facts is None:
            raise TraceError(path, expected)
        rows = pq.read_table(place, filters=[("job_id", "=", job)], filesystem=here)
    except OSError as error:
        raise TraceError(path, f"a file that can be read ({error.strerror or error})") from error
    except pa.ArrowInvalid as error:
        raise TraceError(path, expected) from error
    if not rows.num_rows:
        raise TraceError(path, "the id of a job that was flown", column="job_id", value=job)
    if not _is_sound(rows):
        raise TraceError(path, expected, hint="Its rows are none that a run has: it was changed.")
    return facts, rows


def _facts(schema: pa.Schema) -> dict[str, Any] | None:
    """Return what a recording is of; None = the file is no recording."""
    fields = {field.name: _plain(field.type) for field in schema}
    if fields != {field.name: _plain(field.type) for field in SCHEMA}:
        return None
    try:
        facts = json.loads((schema.metadata or {})[KEY])
    except (KeyError, ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) and facts.keys() >= {"policy", "cluster"} else None


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_sound(rows: pa.Table) -> bool:
    """Whether rows of a job are such as a run writes: known words, numbers, times in order."""
    numbers = [rows[name].to_numpy() for name in ("time", "gpus", "free_gpus")]
    numbers.append(rows["promise"].drop_null().to_numpy())
    words = zip(rows["verdict"].to_pylist(), rows["limit"].to_pylist(), strict=True)
    return (
        all(np.isfinite(column.astype(float)).all() for column in numbers)
        and bool((np.diff(numbers[0]) >= 0).all())
        and all(
            verdict in WORDS[1:]
            and (limit in LIMITS if verdict == "no_room" else limit is None or limit in LIMITS)
            for verdict, limit in words
        )
    )
