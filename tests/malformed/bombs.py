"""Small files that say they are gigabytes, read one behind the other; prints what each took.

Run as a program with a folder to write to: peak memory is a process's, so it needs one of its own.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from catalogue import SAMPLES

from windtunnel.errors import TraceError

#: One sample of each way in which readers take bytes in.
FAMILIES: tuple[str, ...] = (
    *("native", "swf", "sacct", "philly-raw", "kueue", "batsim workload", "twin toml"),
    *("opendc", "prometheus-json", "curves pickle", "acme-wide", "dcgm", "philly-gpu-util"),
    *("genai-telemetry", "pai pai_task_table"),
)
PARQUET: tuple[str, ...] = (
    *("native parquet", "opendc parquet", "genai parquet", "genai-telemetry parquet"),
)
_PART, _PARTS = 16 * 2**20, 256


def _peak_mib() -> float:
    """Return this program's peak memory; getrusage would count its parent's before the exec."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def gzip_bomb(content: bytes, filler: bytes = b"\n") -> bytes:
    """Return gzip that begins with a content and grows to 4 GiB of a filler, from 4 MB."""
    return gzip.compress(content, mtime=0) + gzip.compress(filler * _PART, mtime=0) * _PARTS


def parquet_bomb(table: pa.Table) -> bytes:
    """Return Parquet of the columns of a table with forty million rows of nothing."""
    nothing = pa.table({f.name: pa.nulls(5_000_000, f.type) for f in table.schema})
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, table.schema) as writer:
        for _ in range(8):
            writer.write_table(nothing)
    return buffer.getvalue()


def main(folder: Path) -> None:
    """Read every bomb and print one JSON line for each."""
    bombs = [(name, gzip_bomb(SAMPLES[name].data)) for name in FAMILIES]
    bombs.append(("native", gzip_bomb(SAMPLES["native"].data, b"9")))
    bombs.append(("acme-wide", gzip_bomb(SAMPLES["acme-wide"].data, b"9")))
    for name, data in bombs:
        _read(name, data, folder)
    for name in PARQUET:
        table = SAMPLES[name].table
        assert table is not None
        kept = table.drop_columns([f.name for f in table.schema if pa.types.is_nested(f.type)])
        _read(name, parquet_bomb(kept), folder)


def _read(name: str, data: bytes, folder: Path) -> None:
    sample = SAMPLES[name]
    place = folder / name.replace(" ", "-")
    place.mkdir(exist_ok=True)
    path = sample.write(place, data)
    began = time.process_time()
    try:
        sample.read(path)
        answer = "read"
    except TraceError as error:
        answer = str(error)
    path.unlink()
    peak = _peak_mib()
    line = {"name": name, "bytes": len(data), "answer": answer, "peak_mib": peak}
    print(json.dumps({**line, "seconds": time.process_time() - began}))  # noqa: T201 - its result


if __name__ == "__main__":
    main(Path(sys.argv[1]))
