"""Telemetry joined to jobs, checked against plain loops over every sample and every holding."""

from __future__ import annotations

from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibis.expr.operations import DatabaseTable

from windtunnel.characterize import telemetry_jobs
from windtunnel.characterize.telemetry_jobs import NONE, UNHELD, job_utilization, utilization_by
from windtunnel.companions import HOLDING_COLUMNS, SAMPLE_COLUMNS, companion_schema
from windtunnel.errors import SchemaError, SpecError
from windtunnel.schema import as_jobs

Sample = tuple[float | None, str | None, str | None, str | None, float]
Holding = tuple[str, str, str | None, float, float | None]


def samples_of(rows: list[Sample], metric: str = "u") -> pa.Table:
    names = ("time", "node", "gpu", "job_id", "value")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return (
        pa.table({**columns, "metric": [metric] * len(rows)})
        .select([c.name for c in SAMPLE_COLUMNS])
        .cast(companion_schema(SAMPLE_COLUMNS))
    )


def holdings_of(rows: list[Holding]) -> pa.Table:
    names = ("job_id", "node", "gpu", "start_time", "end_time")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return pa.table(columns, schema=companion_schema(HOLDING_COLUMNS))


def owners(sample: Sample, holdings: list[Holding]) -> set[str]:
    """The jobs of a sample, by the definition."""
    time, node, gpu, job, _ = sample
    if job is not None:
        return {job}
    return {
        name
        for name, held, of_gpu, start, end in holdings
        if time is not None
        and held == node
        and (gpu is None or of_gpu is None or of_gpu == gpu)
        and start <= time < (np.inf if end is None else end)
    }


def by_hand(samples: list[Sample], holdings: list[Holding]) -> tuple[dict[str, Any], int]:
    """n, n_shared, mean, p50, p90 and max of each job, and the samples of none."""
    values: dict[str, list[float]] = {row[0]: [] for row in holdings}
    shared = dict.fromkeys(values, 0)
    nobody = 0
    for sample in samples:
        found = owners(sample, holdings)
        nobody += not found
        for job in found:
            values.setdefault(job, []).append(sample[4])
            shared[job] = shared.get(job, 0) + (len(found) > 1)
    statistics = {
        job: (
            len(v),
            shared[job],
            *((np.mean(v), *np.quantile(v, [0.5, 0.9]), max(v)) if v else (None,) * 4),
        )
        for job, v in values.items()
    }
    return statistics, nobody


_NODES, _GPUS = st.sampled_from(["n1", "n2"]), st.sampled_from([None, "0", "1", "2"])
_TIMES = st.integers(0, 8).map(float)
_SAMPLES = st.lists(
    st.tuples(
        st.none() | _TIMES,
        st.none() | _NODES,
        _GPUS,
        st.sampled_from([None, None, None, "a", "zz"]),
        st.sampled_from([0.0, 0.0, 12.5, 50.0, 99.0, 1e-9, -3.0]),
    ),
    max_size=25,
)
_HOLDINGS = st.lists(
    st.tuples(st.sampled_from("abc"), _NODES, _GPUS, _TIMES, st.none() | _TIMES).map(
        lambda h: h if h[4] is None or h[4] >= h[3] else (*h[:3], h[4], h[3])
    ),
    max_size=8,
)


def check(found: pa.Table, samples: list[Sample], holdings: list[Holding]) -> None:
    expected, nobody = by_hand(samples, holdings)
    rows = {row["job_id"]: row for row in found.to_pylist()}
    assert set(rows) == set(expected)
    for job, (n, shared, *statistics) in expected.items():
        assert (rows[job]["n"], rows[job]["n_shared"]) == (n, shared)
        got = [rows[job][name] for name in ("mean", "p50", "p90", "max")]
        if n:
            assert got == pytest.approx(statistics, rel=1e-12, abs=1e-12)
        else:
            assert got == [None] * 4
    assert found.schema.metadata[b"windtunnel.left_out"] == str(nobody).encode()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(_SAMPLES, _HOLDINGS)
def test_every_sample_finds_the_jobs_that_a_plain_loop_finds(
    samples: list[Sample], holdings: list[Holding]
) -> None:
    found = job_utilization(samples_of(samples), holdings_of(holdings), "u")
    check(found, samples, holdings)


def test_two_jobs_that_share_a_gpu_both_count_its_samples() -> None:
    samples = [(float(t), "n1", "0", None, float(10 * t)) for t in range(10)]
    holdings = [("a", "n1", "0", 0.0, 6.0), ("b", "n1", "0", 4.0, 10.0)]
    a, b = job_utilization(samples_of(samples), holdings_of(holdings), "u", interval=1).to_pylist()
    assert (a["n"], a["n_shared"], a["mean"], a["max"]) == (6, 2, 25.0, 50.0)
    assert (b["n"], b["n_shared"], b["mean"], b["p50"]) == (6, 2, 65.0, 65.0)
    assert (a["held_seconds"], a["covered_share"]) == (6.0, 1.0)


def test_held_time_and_its_covered_share_are_of_the_devices_that_were_measured() -> None:
    """Job a holds two GPUs for 100 s; GPU 0 has a sample every 10 s, GPU 1 none after 50 s."""
    samples: list[Sample] = [(t, "n1", "0", None, 1.0) for t in np.arange(0.0, 100, 10).tolist()]
    samples += [(t, "n1", "1", None, 1.0) for t in np.arange(0.0, 50, 10).tolist()]
    samples += [(t, "n2", g, None, 1.0) for t in (0.0, 10.0, 20.0, 30.0) for g in ("0", "1")]
    holdings: list[Holding] = [
        ("a", "n1", "0", 0.0, 100.0),
        ("a", "n1", "1", 0.0, 100.0),
        ("a", "n1", "1", 20.0, 60.0),  # listed twice: held once
        ("whole", "n2", None, 0.0, 40.0),
        ("open", "n3", "0", 0.0, None),
        ("blind", "n4", "0", 0.0, 5.0),
    ]
    for interval in (None, 10.0):
        found = job_utilization(
            samples_of(samples), holdings_of(holdings), "u", interval=interval
        ).to_pylist()
        rows = {row["job_id"]: row for row in found}
        assert (rows["a"]["held_seconds"], rows["a"]["covered_share"]) == (200.0, 0.75)
        assert (rows["whole"]["held_seconds"], rows["whole"]["covered_share"]) == (40.0, 1.0)
        assert (rows["open"]["held_seconds"], rows["open"]["covered_share"]) == (None, None)
        assert (rows["blind"]["held_seconds"], rows["blind"]["covered_share"]) == (5.0, 0.0)
        assert (rows["blind"]["n"], rows["blind"]["mean"]) == (0, None)


def test_samples_of_a_node_count_once_for_a_job_with_several_of_its_gpus() -> None:
    samples = [(0.0, "n1", None, None, 7.0), (10.0, "n1", None, None, 9.0)]
    holdings = [("a", "n1", str(g), 0.0, 20.0) for g in range(8)]
    (row,) = job_utilization(samples_of(samples), holdings_of(holdings), "u").to_pylist()
    assert (row["n"], row["mean"], row["covered_share"]) == (2, 8.0, 1.0)
    assert row["held_seconds"] == 160.0


def test_only_the_metric_asked_for_counts() -> None:
    both = pa.concat_tables(
        [
            samples_of([(0.0, "n1", "0", None, 5.0)]),
            samples_of([(0.0, "n1", "0", None, 99.0)], metric="other"),
        ]
    )
    (row,) = job_utilization(both, holdings_of([("a", "n1", "0", 0.0, 1.0)]), "u").to_pylist()
    assert (row["n"], row["max"]) == (1, 5.0)


def test_ibis_tables_give_what_arrow_tables_give() -> None:
    samples = samples_of([(float(t), "n1", "0", None, float(t)) for t in range(20)])
    holdings = holdings_of([("a", "n1", "0", 3.0, 9.0), ("b", "n1", None, 8.0, None)])
    backend = ibis.duckdb.connect()
    tables = []
    for name, table in (("s", samples), ("h", holdings)):
        backend.con.register(name, table)
        schema = ibis.schema(table.schema)
        tables.append(DatabaseTable(name=name, schema=schema, source=backend).to_expr())
    found = job_utilization(*tables, "u")
    assert found.equals(job_utilization(samples, holdings, "u"))


def test_groups_of_jobs_by_every_property() -> None:
    jobs = as_jobs(
        {
            "job_id": ["a", "b", "c"],
            "submit_time": [0.0, 0.0, 0.0],
            "duration": [10.0, 10.0, 10.0],
            "num_gpus": [8.0, 1.0, None],
            "user": ["u2", "u1", None],
            "status": ["completed", "failed", "completed"],
        }
    )
    samples = samples_of(
        [(float(t), "n1", "0", None, float(t % 2)) for t in range(10)]
        + [(1.0, "n9", "0", None, 50.0), (1.0, "n1", "0", "stranger", 4.0)]
    )
    holdings = holdings_of(
        [("a", "n1", "0", 0.0, 6.0), ("b", "n1", "0", 4.0, 7.0), ("c", "n1", "0", 7.0, 10.0)]
    )
    users = utilization_by(samples, holdings, jobs, "u", "user").to_pylist()
    assert [(r["user"], r["n"], r["n_shared"]) for r in users] == [
        ("u2", 6, 2), (NONE, 4, 0), ("u1", 3, 2), (UNHELD, 1, 0),
    ]  # fmt: skip
    assert users[0]["zero_share"] == users[0]["mean"] == 0.5
    sizes = utilization_by(samples, holdings, jobs, "u", "num_gpus").to_pylist()
    assert [r["num_gpus"] for r in sizes] == ["1", "5-8", NONE, UNHELD]
    for by in telemetry_jobs.UTILIZATION_BY:
        found = utilization_by(samples, holdings, jobs, "u", by)
        assert sum(found["n"].to_pylist()) == 14  # 12 samples, two of them two jobs'
        assert found.column_names == [
            *(by, "n", "n_shared", "mean", "p50", "p90", "max", "zero_share")
        ]


def test_what_cannot_be_joined_is_refused_with_counts() -> None:
    samples = samples_of([(0.0, "n1", "0", None, 1.0)])
    bad = pa.table(
        {
            "job_id": ["a", "b", None],
            "node": ["n1", "n1", "n1"],
            "gpu": ["0", "0", "0"],
            "start_time": [5.0, None, 0.0],
            "end_time": [1.0, 2.0, 3.0],
        }
    )
    with pytest.raises(SchemaError, match=r"(?s)job_id.*1 row.*start_time.*1 row.*end_time"):
        job_utilization(samples, bad, "u")
    with pytest.raises(SchemaError, match="'metric'"):
        job_utilization(samples.drop_columns("metric"), holdings_of([]), "u")
    with pytest.raises(SpecError, match="seconds above 0"):
        job_utilization(samples, holdings_of([]), "u", interval=0)
    with pytest.raises(SpecError, match="Did you mean 'user'"):
        utilization_by(samples, holdings_of([]), samples, "u", "users")


def test_every_backend_finds_what_a_plain_loop_finds(backend: Any) -> None:
    rng = np.random.default_rng(11)
    samples: list[Sample] = [
        (
            None if rng.random() < 0.05 else float(rng.integers(0, 100)),
            str(rng.choice(["n1", "n2", "n3"])),
            None if rng.random() < 0.2 else str(rng.integers(0, 3)),
            "named" if rng.random() < 0.1 else None,
            float(rng.integers(0, 20)),
        )
        for _ in range(400)
    ]
    holdings: list[Holding] = []
    for number in range(30):
        start = float(rng.integers(0, 90))
        end = None if rng.random() < 0.1 else start + float(rng.integers(0, 40))
        gpu = None if rng.random() < 0.2 else str(rng.integers(0, 3))
        holdings.append((f"j{number % 9}", str(rng.choice(["n1", "n2"])), gpu, start, end))
    table, held = backend(samples_of(samples)), backend(holdings_of(holdings))
    found = job_utilization(table, held, "u", interval=1.0)
    check(found, samples, holdings)
    jobs = as_jobs(
        {
            "job_id": [f"j{n}" for n in range(9)],
            "submit_time": [0.0] * 9,
            "duration": [1.0] * 9,
            "num_gpus": [float(2 ** (n % 4)) for n in range(9)],
            "user": [f"u{n % 2}" for n in range(9)],
        }
    )
    for by in ("user", "num_gpus"):
        groups = utilization_by(table, held, backend(jobs), "u", by)
        here = utilization_by(samples_of(samples), holdings_of(holdings), jobs, "u", by)
        assert groups.to_pylist() == here.to_pylist()
