"""Jobs tables for tests: one with holes in every column, drawn ones, and both in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from windtunnel.companions import HOLDING_COLUMNS, companion
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]
#: Examples of one property: each is a query or two.
EXAMPLES = settings(max_examples=40, deadline=None)
_STATUSES = ("completed", "failed", "cancelled", "timeout", "node_fail", "out_of_memory", "running")


def holed_jobs(count: int = 700, seed: int = 11) -> pa.Table:
    """Jobs of a fortnight around a change of the clock, with nulls in every column but the id."""
    rng = np.random.default_rng(seed)

    def holes(values: Any, share: float) -> list[Any]:
        return [
            None if gone else v for v, gone in zip(values, rng.random(count) < share, strict=True)
        ]

    submit = np.sort(rng.integers(0, 14 * 86_400, count)).astype(float)
    start = submit + np.floor(rng.exponential(300, count)) * (rng.random(count) < 0.8)
    duration = np.floor(rng.lognormal(5, 2, count))
    return as_jobs(
        {
            "job_id": [f"j{i}" for i in range(count)],
            "submit_time": holes(submit.tolist(), 0.03),
            "start_time": holes(start.tolist(), 0.06),
            "end_time": holes((start + duration).tolist(), 0.06),
            "duration": holes(duration.tolist(), 0.06),
            "num_gpus": holes(
                rng.choice([0, 0.25, 0.5, 1, 2, 4, 8, 64, 1024], count).tolist(), 0.05
            ),
            "num_tasks": holes(rng.choice([1, 1, 1, 2, 5, 40], count).tolist(), 0.1),
            "num_cpus": holes(rng.integers(1, 64, count).astype(float).tolist(), 0.1),
            "user": holes([f"u{i}" for i in rng.geometric(0.15, count)], 0.08),
            "vc": holes([f"vc{i}" for i in rng.integers(0, 3, count)], 0.05),
            "workload": holes(rng.choice(["Eval", "SFT", "Pretrain"], count).tolist(), 0.1),
            "template": holes([f"t{i}" for i in rng.geometric(0.02, count)], 0.3),
            "gpu_type": holes(rng.choice(["T4", "V100"], count).tolist(), 0.2),
            "status": holes(rng.choice(_STATUSES, count).tolist(), 0.05),
            "num_attempts": pa.array(holes(rng.integers(1, 5, count).tolist(), 0.05), pa.int64()),
            "num_nodes": pa.array(holes(rng.integers(1, 5, count).tolist(), 0.05), pa.int64()),
            "source_duration": pa.array(holes((duration + 3).tolist(), 0.05), pa.float64()),
            "source_queue": pa.array(holes((start - submit).tolist(), 0.05), pa.float64()),
        }
    )


def holdings_of(jobs: pa.Table, seed: int = 5) -> pa.Table:
    """One to three attempts of every other job, on one or two GPUs, some of unknown end."""
    rng = np.random.default_rng(seed)
    found: list[tuple[str, str, str, float, float | None]] = []
    for i, job in enumerate(jobs.to_pylist()):
        if i % 2:
            continue
        now = (job["submit_time"] or 0.0) + float(rng.integers(0, 2) * rng.integers(0, 900))
        for attempt in range(int(rng.integers(1, 4))):
            end = now + float(rng.integers(1, 5000))
            known = None if attempt == 0 and i % 9 == 0 else end
            gpus = range(int(rng.integers(1, 3)))
            found += [(job["job_id"], f"n{i % 7}", f"gpu{gpu}", now, known) for gpu in gpus]
            now = end + float(rng.integers(0, 2) * rng.integers(0, 300))
    names = ("job_id", "node", "gpu", "start_time", "end_time")
    return companion(
        HOLDING_COLUMNS,
        {
            name: pa.array(column)
            for name, column in zip(names, zip(*found, strict=True), strict=True)
        },
    )


_seconds = st.integers(0, 3000).map(float)
_runs = st.sampled_from([0.0, 1.0, 2.0, 3.0, 60.0])


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values, values, values)


@st.composite
def job_rows(draw: st.DrawFn, max_size: int = 25) -> list[Row]:
    """Draw jobs as rows with nulls anywhere; few distinct values, so that groups and ties occur."""
    rows: list[Row] = []
    for i in range(draw(st.integers(0, max_size))):
        submit, wait, run = draw(_maybe(_seconds)), draw(_maybe(_seconds)), draw(_maybe(_seconds))
        start = None if submit is None or wait is None else submit + wait
        rows.append(
            {
                "job_id": str(i),
                "submit_time": submit,
                "start_time": start,
                "end_time": None if start is None or run is None else start + run,
                "duration": draw(st.one_of(st.just(run), _maybe(_runs))),
                "num_gpus": draw(_maybe(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 5.0, 9.0]))),
                "num_tasks": draw(_maybe(st.integers(1, 6))),
                "user": draw(_maybe(st.sampled_from("abcde"))),
                "workload": draw(_maybe(st.sampled_from(["Eval", "SFT"]))),
                "template": draw(_maybe(st.sampled_from("xyz"))),
                "status": draw(_maybe(st.sampled_from(_STATUSES))),
            }
        )  # fmt: skip
    return rows


_TYPES = {
    **dict.fromkeys(
        ("submit_time", "start_time", "end_time", "duration", "num_gpus"), pa.float64()
    ),
    "num_tasks": pa.int32(),
}


def table_of(rows: list[Row]) -> pa.Table:
    """Return drawn rows as a jobs table."""
    names = (
        *("job_id", "submit_time", "start_time", "end_time", "duration", "num_gpus", "num_tasks"),
        *("user", "workload", "template", "status"),
    )
    return as_jobs(
        {name: pa.array([r[name] for r in rows], _TYPES.get(name, pa.string())) for name in names}
    )


def facts_of(row: Row) -> Row:
    """Return the derived facts of a drawn row, in plain Python."""

    def both(a: Any, b: Any, how: Callable[[Any, Any], Any]) -> Any:
        return None if a is None or b is None else how(a, b)

    wait = both(row["start_time"], row["submit_time"], lambda a, b: a - b)
    jct = both(row["end_time"], row["submit_time"], lambda a, b: a - b)
    return {
        **row,
        "wait": wait,
        "jct": jct,
        "gpu_time": both(row["num_gpus"], row["duration"], lambda a, b: a * b),
        "wait_share": None if not jct else both(wait, jct, lambda a, b: a / b),
    }


def asked(rows: list[Row], where: str) -> tuple[list[Row], list[Row]]:
    """Return (jobs asked about, jobs of unknown size) with their facts, in plain Python."""
    full = [facts_of(row) for row in rows]
    if where == "all":
        return full, []
    unknown = [row for row in full if row["num_gpus"] is None]
    known = [row for row in full if row["num_gpus"] is not None]
    return [row for row in known if (row["num_gpus"] > 0) == (where == "gpu")], unknown
