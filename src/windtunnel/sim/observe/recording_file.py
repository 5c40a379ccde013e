"""A recording in a Parquet file: written group by group, read back a job at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from windtunnel.errors import TraceError
from windtunnel.sim.observe.decisions import SCHEMA, DecisionRows
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
    told = {
        "policy": outcome.settings.get("policy"),
        "queueing": outcome.settings.get("queueing"),
        "cluster": outcome.cluster.describe(),
        "num_gpus": float(outcome.cluster.num_gpus),
    }
    schema = SCHEMA.with_metadata({KEY: json.dumps(told).encode()})
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
    try:
        told = pq.read_schema(path).metadata or {}
        if KEY not in told:
            raise TraceError(path, expected)
        rows = pq.read_table(path, filters=[("job_id", "=", job)])
    except OSError as error:
        raise TraceError(path, f"a file that can be read ({error.strerror or error})") from error
    except pa.ArrowInvalid as error:
        raise TraceError(path, expected) from error
    if not rows.num_rows:
        raise TraceError(path, "the id of a job that was flown", column="job_id", value=job)
    return json.loads(told[KEY]), rows
