"""What telemetry says beside a trace: each metric, and how the jobs used what they held."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from windtunnel import storage
from windtunnel.characterize.named_jobs import with_jobs_named
from windtunnel.companions import HOLDING_COLUMNS, SAMPLE_COLUMNS, companion_schema
from windtunnel.errors import TraceError
from windtunnel.plain import fields_of
from windtunnel.quantiles import quantiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.traces.trace import Trace

#: Percents that tables show, and those that curves are drawn at.
SHOWN: tuple[float, ...] = (10, 25, 50, 75, 90, 99)
CURVE: tuple[float, ...] = tuple(i / 2 for i in range(201))
#: What the formats call the share of time that a GPU is busy: jobs are asked about these, where
#: one of them is measured.
GPU_USE: tuple[str, ...] = (
    *("GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL", "gpu_util"),
    *("SM_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"),
)
#: Properties of jobs that use is grouped by.
BY: tuple[str, ...] = ("num_gpus", "user", "workload", "status")
#: Where there is no such metric, jobs are asked about so many, by name.
_MOST = 3
_TABLE = "samples"
_JOB_PERCENTS = {"p10": 0.1, "p50": 0.5, "p90": 0.9}


@dataclass(frozen=True)
class JobUse:
    """How the jobs used what they held, by one metric.

    Attributes:
        jobs: over the jobs with samples, of each one's mean: ``n`` (jobs), ``unknown`` (of them,
            those that are not in the trace), ``without`` (jobs that held something and have no
            sample), ``mean``, ``p10``, ``p50``, ``p90``, ``max``; ``left_out`` (samples of no job).
        by: property -> rows of `windtunnel.characterize.telemetry_jobs.utilization_by`.
    """

    jobs: dict[str, Any]
    by: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class MeasuredUse:
    """Telemetry in numbers.

    Attributes:
        source: the file or folder.
        format: its format.
        rows_read: measurements found.
        samples: those that are samples; the others are in ``dropped``, reason -> count.
        dropped: see ``samples``.
        notes: what a reader must know, one sentence each.
        metrics: one dict a metric, by name: ``metric``, ``n``, ``mean``, ``zero_share``, and
            ``p10`` ... ``p99`` (`SHOWN`), in the metric's own unit.
        curves: one row a metric and percent (`CURVE`): ``metric``, ``percent``, ``value``, ``n``.
        jobs: metric -> how jobs used it; empty where it is not known whose job a sample is of.
        why_no_jobs: why not; empty where ``jobs`` has any.
    """

    source: str
    format: str
    rows_read: int
    samples: int
    dropped: dict[str, int]
    notes: tuple[str, ...]
    metrics: list[dict[str, Any]]
    curves: list[dict[str, Any]]
    jobs: dict[str, JobUse] = field(default_factory=dict)
    why_no_jobs: str = ""

    def data(self) -> dict[str, Any]:
        """Return it as plain data, without the curves."""
        return {
            **fields_of(
                self, "source", "format", "rows_read", "samples", "dropped", "notes", "metrics"
            ),
            "jobs": {name: {"jobs": use.jobs, "by": use.by} for name, use in self.jobs.items()},
            "why_no_jobs": self.why_no_jobs,
        }


def measured_use(trace: Trace, path: str | Path) -> MeasuredUse:
    """Return what telemetry says of a trace; its files are read once.

    The samples go to a temporary file, compressed, which is removed again.

    Args:
        trace: whose jobs are asked about, by its holdings or by the jobs that samples name.
        path: what `windtunnel.telemetry.open_telemetry` opens.

    Raises:
        WindtunnelError: the telemetry cannot be read, a holding of the trace is wrong, or there is
            no room for temporary files.
    """
    from windtunnel.characterize.telemetry_counts import percentiles

    with _stored(trace, path) as (telemetry, samples):
        rows = percentiles(samples, at=sorted({*SHOWN, *CURVE})).to_pylist()
        jobs, why = _jobs_of(trace, samples, [row["metric"] for row in rows])
    return MeasuredUse(
        source=str(path),
        format=telemetry.format,
        rows_read=telemetry.rows_read,
        samples=telemetry.samples,
        dropped=telemetry.dropped,
        notes=telemetry.notes,
        metrics=_in_numbers(rows),
        curves=[row for row in rows if row["percent"] in CURVE],
        jobs=jobs,
        why_no_jobs=why,
    )


@contextmanager
def stored_samples(trace: Trace, path: str | Path) -> Iterator[tuple[Any, list[str]]]:
    """Lend the samples of telemetry as an Ibis table in the trace's time, and their metrics.

    They go to a temporary file, compressed, which is removed again.

    Args:
        trace: whose epoch is time 0.
        path: what `windtunnel.telemetry.open_telemetry` opens.

    Raises:
        WindtunnelError: the telemetry cannot be read, or there is no room for temporary files.
    """
    with _stored(trace, path) as (_, samples):
        names = samples.select("metric").distinct().to_pyarrow()["metric"].to_pylist()
        yield samples, sorted(names)


@contextmanager
def _stored(trace: Trace, path: str | Path) -> Iterator[tuple[Any, Any]]:
    """Lend telemetry that has been read, and its samples in the trace's time."""
    from windtunnel.telemetry import open_telemetry

    telemetry = open_telemetry(path, epoch=trace.metadata.epoch)
    with _scratch_database(str(path)) as (folder, backend):
        file = str(folder / "samples.parquet")
        telemetry.write_parquet(file)
        yield telemetry, with_jobs_named(_samples(backend, file), trace.jobs)


@contextmanager
def _scratch_database(source: str) -> Iterator[tuple[Path, Any]]:
    """Lend a temporary folder and a database that keeps there what memory cannot hold."""
    import duckdb
    import ibis

    try:
        with storage.scratch() as folder:
            backend: Any = ibis.duckdb.connect(temp_directory=str(folder))
            try:
                yield folder, backend
            finally:
                backend.disconnect()
    except (duckdb.Error, OSError) as error:
        message = str(error).partition("\n")[0]
        raise TraceError(
            source,
            "room for its samples in the folder for temporary files",
            hint=f"It says: {message} TMPDIR names another folder.",
        ) from error


def _samples(backend: Any, file: str) -> Any:
    """Return a Parquet file of samples as an Ibis table, which is read at each query."""
    import ibis
    import ibis.expr.operations as ops

    backend.con.read_parquet(file).create_view(_TABLE)
    schema = ibis.schema(companion_schema(SAMPLE_COLUMNS))
    # Named with its schema: Ibis would ask for it in a way that DuckDB warns about.
    return ops.DatabaseTable(name=_TABLE, schema=schema, source=backend).to_expr()


def _in_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        facts = {key: row[key] for key in ("metric", "n", "mean", "zero_share")}
        metric = found.setdefault(row["metric"], facts)
        if row["percent"] in SHOWN:
            metric[f"p{row['percent']:g}"] = row["value"]
    return list(found.values())


def _jobs_of(trace: Trace, samples: Any, metrics: list[str]) -> tuple[dict[str, JobUse], str]:
    """Return how jobs used the metrics that matter, or why that is not known."""
    known = list(dict.fromkeys(metrics))
    if not known:
        return {}, "there are no samples"
    named = samples.job_id.count().to_pyarrow().as_py()
    holdings = trace.holdings
    if holdings is None or not holdings.num_rows:
        if not named:
            return {}, "the trace does not say which job held which GPU, nor do the samples"
        holdings = companion_schema(HOLDING_COLUMNS).empty_table()
    chosen = [name for name in known if name in GPU_USE] or known[:_MOST]
    found = {name: _use(trace, samples, holdings, name) for name in chosen}
    if all(not use.jobs["n"] for use in found.values()):
        return {}, "no sample is of a job: none was taken on a device while a job held it"
    return found, ""


def _use(trace: Trace, samples: Any, holdings: pa.Table, metric: str) -> JobUse:
    from windtunnel.characterize.telemetry_jobs import job_utilization, utilization_by

    table = job_utilization(samples, holdings, metric)
    sampled = table.filter(pc.is_valid(table["mean"]))
    means = sampled["mean"].to_numpy()
    of_trace = pc.sum(pc.is_in(sampled["job_id"], value_set=trace.jobs["job_id"])).as_py() or 0
    asked: dict[str, Any] = {
        "n": len(means),
        "unknown": len(means) - int(of_trace),
        "without": table.num_rows - len(means),
        "mean": float(means.mean()) if len(means) else None,
    }
    for name, share in _JOB_PERCENTS.items():
        asked[name] = float(quantiles(means, share)) if len(means) else None
    asked["max"] = float(np.max(means)) if len(means) else None
    asked["left_out"] = int((table.schema.metadata or {})[b"windtunnel.left_out"])
    jobs = trace.jobs
    recorded = [name for name in BY if jobs[name].null_count < jobs.num_rows]
    by = {
        name: utilization_by(samples, holdings, jobs, metric, name).to_pylist() for name in recorded
    }
    return JobUse(asked, by)
