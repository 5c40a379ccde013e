"""Waste and cost: hand-worked cases, and direct queries on the sample log and on seren's twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.characterize.cost import Prices, bill
from windtunnel.characterize.idle import idle_jobs
from windtunnel.characterize.waste import LOST, unused_gpus, waste
from windtunnel.cluster import ClusterSpec
from windtunnel.companions import HOLDING_COLUMNS, SAMPLE_COLUMNS, companion
from windtunnel.errors import SpecError
from windtunnel.schema import STATUSES, as_jobs
from windtunnel.traces import open_trace
from windtunnel.traces.sacct_writer import write_sacct

if TYPE_CHECKING:
    from pathlib import Path

STATUS = ["completed", "failed", "failed", "out_of_memory", "cancelled", "timeout"]


def jobs(**more: Any) -> pa.Table:
    """Six jobs of 2 GPUs: an hour each, but for the second, which failed after a minute."""
    run = [3600.0, 60.0, 3600.0, 3600.0, 3600.0, 3600.0]
    columns = {
        "job_id": list("abcdef"),
        "submit_time": [0.0] * 6,
        "start_time": [0.0] * 6,
        "end_time": run,
        "duration": run,
        "num_gpus": [2.0] * 6,
        "user": ["u", "u", "u", "v", "v", None],
        "status": STATUS,
        "estimate": [7200.0, 7200.0, None, None, None, 3600.0],
    }
    return as_jobs({**columns, **more})


def test_every_gpu_second_is_of_one_kind() -> None:
    found = waste(jobs())
    kinds = {row["kind"]: row for row in found.kinds().to_pylist()}
    assert kinds["failed_early"] == {
        "kind": "failed_early",
        "num_jobs": 1,
        "gpu_time": 120.0,
        "share": pytest.approx(120 / 36120),
    }
    assert kinds["failed"]["gpu_time"] == 2 * 7200
    assert sum(row["gpu_time"] for row in kinds.values()) == 5 * 7200 + 120
    (v, u, nobody) = found.by("user").to_pylist()
    assert (v["user"], v["lost"], v["lost_share"]) == ("v", 14400.0, 1.0)
    assert (u["user"], u["lost"], u["failed_early"]) == ("u", 7320.0, 120.0)
    assert (nobody["user"], nobody["timeout"]) == ("(none)", 7200.0)
    assert u["limit_used"] == pytest.approx((7200 + 120) / (2 * 14400))
    limits = found.limits()
    assert (limits["n"], limits["unknown"], limits["num_under_half"]) == (3, 3, 1)
    assert limits["p50_used"] == 0.5
    assert waste(jobs(), early=30).kinds()["kind"].to_pylist()[1] == "failed"
    with pytest.raises(SpecError, match="workload"):
        found.by("workload")


def samples(rows: list[tuple[float, str, str, str | None, float]]) -> pa.Table:
    names = ("time", "node", "gpu", "job_id", "value")
    columns: dict[str, Any] = {
        name: pa.array([row[i] for row in rows]) for i, name in enumerate(names)
    }
    columns["job_id"] = columns["job_id"].cast(pa.string())
    return companion(SAMPLE_COLUMNS, {**columns, "metric": pa.array(["GPU_UTIL"] * len(rows))})


def test_used_once_then_idle() -> None:
    """Job a: one of its GPUs is busy for the first two samples of four, the other one never."""
    rows = [(900.0 * k, "n", "0", "a", 50.0 * (k < 2)) for k in range(4)]
    rows += [(900.0 * k, "n", "1", "a", 0.0) for k in range(4)]
    rows += [(0.0, "n", "2", "c", 0.0), (0.0, "n", "3", None, 9.0), (0.0, "n", "4", "gone", 9.0)]
    idle = idle_jobs(samples(rows), None, "GPU_UTIL")
    assert idle.to_pylist()[0] == {
        "job_id": "a",
        "n": 8,
        "n_idle": 6,
        "devices": 2,
        "unused_devices": 1,
        "first_sample": 0.0,
        "last_sample": 2700.0,
        "last_busy": 900.0,
    }
    found = waste(jobs(), idle=idle, tail=1800.0)
    assert found.idleness() == {
        "num_jobs": 2,
        "unknown_jobs": 1,
        "gpu_time": 14400.0,
        "idle": 0.75 * 7200 + 7200,
        "num_never_used": 1,
        "never_used": 7200.0,
        "num_then_idle": 1,
        "then_idle": 2 * 2700.0,
        "devices": 3,
        "unused_devices": 2,
        "left_out": 1,
    }
    assert found.worst().column("job_id").to_pylist() == ["c", "a"]
    assert waste(jobs(), idle=idle).tail_time.max() == 0
    assert idle_jobs(samples(rows), None, "GPU_UTIL", idle_at=60)["n_idle"].to_pylist() == [8, 1, 1]


def test_what_telemetry_does_not_see_is_not_idle() -> None:
    """Job a's samples, all busy, stop after 10 of 60 minutes; job c was never busy in its hour."""
    rows = [(60.0 * k, "n", "0", "a", 50.0) for k in range(10)]
    rows += [(60.0 * k, "n", "1", "c", 0.0) for k in range(60)]
    found = waste(jobs(), idle=idle_jobs(samples(rows), None, "GPU_UTIL"), tail=1800.0)
    found_idle = found.idleness()
    assert found_idle is not None
    assert [found_idle[key] for key in ("num_then_idle", "then_idle", "num_never_used")] == [
        0,
        0.0,
        1,
    ]
    # A rule that ends jobs after half an hour of idleness ends c, and knows of no other.
    assert found.idle_to_end.tolist() == [0.0, 0.0, 3600.0, 0.0, 0.0, 0.0]


def test_idleness_by_who_held_the_gpu() -> None:
    held = companion(
        HOLDING_COLUMNS,
        {
            "job_id": pa.array(["a", "c"]),
            "node": pa.array(["n", "n"]),
            "gpu": pa.array(["0", "0"]),
            "start_time": pa.array([0.0, 10.0]),
            "end_time": pa.array([10.0, 20.0]),
        },
    )
    rows = [(1.0, "n", "0", None, 0.0), (11.0, "n", "0", None, 5.0), (12.0, "n", "0", None, 0.0)]
    found = idle_jobs(samples(rows), held, "GPU_UTIL").to_pylist()
    assert [(row["job_id"], row["n"], row["n_idle"]) for row in found] == [("a", 1, 1), ("c", 2, 1)]


def test_gpus_that_tasks_asked_for_and_did_not_use() -> None:
    tasks = pa.table(
        {
            "num_gpus": [1.0, 2.0, 1.0],
            "gpus_used": [0.5, 1.0, None],
            "start_time": [0.0, 0.0, 0.0],
            "end_time": [10.0, 5.0, 9.0],
        }
    )
    assert unused_gpus(tasks) == {"n": 2, "asked": 20.0, "used": 10.0}
    assert unused_gpus(tasks.drop(["gpus_used"])) is None


def test_jobs_in_no_sum_of_gpu_time_are_counted() -> None:
    """Of four that held GPUs two are not known in full; jobs in the queue held none."""
    rows = {
        "submit_time": [0.0] * 7,
        "start_time": [0.0, 0.0, None, 0.0, None, None, 0.0],
        "duration": [5.0, None, 9.0, 9.0, None, None, None],
        "num_gpus": [1.0, 1.0, 1.0, None, 1.0, None, 0.0],
        "status": [None, "running", None, None, "pending", "cancelled", "failed"],
    }
    found = waste(as_jobs(rows))
    left_out = {"whose GPUs are not known": 1, "whose run time is not known": 1}
    assert found.recorded.left_out == left_out
    assert found.recorded.gpu_time.sum() == 5.0 + 9.0
    assert waste(jobs()).recorded.left_out == {}


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    trace = open_trace("synthetic:seren", jobs=4_000)
    path = tmp_path_factory.mktemp("twin") / "log.sacct"
    write_sacct(trace.jobs, path, metadata=trace.metadata)
    return open_trace(path).jobs


def test_the_twin_against_direct_queries(twin: pa.Table) -> None:
    lost = duckdb.sql(
        "select vc, sum(num_gpus * duration) s from twin where status <> 'completed' "
        "group by vc order by s desc, vc"
    ).fetchall()
    found = waste(twin)
    rows = found.by("vc").to_pylist()
    assert [(row["vc"], row["lost"]) for row in rows] == [(vc, pytest.approx(s)) for vc, s in lost]
    early = duckdb.sql(
        "select count(*), sum(num_gpus * duration) from twin "
        "where status = 'failed' and duration < 600"
    ).fetchall()[0]
    row = found.kinds().to_pylist()[1]
    assert (row["kind"], row["num_jobs"]) == ("failed_early", early[0])
    assert row["gpu_time"] == pytest.approx(early[1])
    made = bill(twin, ClusterSpec.uniform(286, 8), Prices(default=2.0))
    query = "select sum(num_gpus * duration) / 3600 * 2, (max(end_time) - min(submit_time)) / 3600"
    cost, hours = duckdb.sql(f"{query} from twin").fetchall()[0]
    assert made.allocated == pytest.approx(cost)
    assert made.total == pytest.approx(2288 * hours * 2)


def test_the_sample_log_holds_what_its_readme_says(data_dir: Path) -> None:
    trace = open_trace(data_dir / "formats" / "sacct_parsable2.txt", zone="America/New_York")
    assert waste(trace.jobs).kinds()["gpu_time"].to_numpy().sum() == 1_436_386
    made = bill(trace.jobs, None, Prices(default=1.0))
    assert made.allocated == pytest.approx(398.996111)


def test_prices_by_type_add_up_to_the_bill() -> None:
    types = ["A100", "T4", None, "A100|T4", "A100", "T4"]
    cluster = ClusterSpec.from_mapping(
        {"node_types": [{"count": 3, "gpus": 4, "gpu_type": "A100"},
                        {"count": 1, "gpus": 4, "gpu_type": "T4"}]}
    )  # fmt: skip
    prices = Prices(gpus={"A100": 4.0, "T4": 1.0}, currency="EUR")
    made = bill(jobs(gpu_type=types), cluster, prices)
    mean = (12 * 4 + 4 * 1) / 16
    assert made.cost.tolist() == pytest.approx([8, 1 / 30, 2 * mean, 2 * mean, 8, 2])
    assert made.total == pytest.approx(12 * 4 + 4 * 1)
    for column in ("user", "vc"):
        rows = made.by(column).to_pylist()
        assert sum(row["cost"] for row in rows) + made.idle == pytest.approx(made.total)
    with pytest.raises(SpecError, match=r"gpus\.A100: unknown name 'A100'. Did you mean 'A10'"):
        bill(jobs(gpu_type=["A10"] * 6), None, prices)
    with pytest.raises(SpecError, match=r"prices\.gpus: unknown name 'A100'. Did you mean 'A10'"):
        bill(jobs(gpu_type=["A10"] * 5 + ["A100"]), None, Prices(gpus={"A10": 4.0}))
    with pytest.raises(SpecError, match="no price"):
        Prices()


def test_prices_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('default = 1\ncurrency = "EUR"\n[gpus]\nA100 = 2.5\n', encoding="utf-8")
    assert Prices.from_toml(path).of("A100") == 2.5
    path.write_text("defalt = 1\n", encoding="utf-8")
    with pytest.raises(SpecError, match="Did you mean 'default'"):
        Prices.from_toml(path)
    path.write_text("default = -1\n", encoding="utf-8")
    with pytest.raises(SpecError, match="from 0 to 1e"):
        Prices.from_toml(path)


_ROWS = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 8), st.sampled_from(STATUSES)),
    min_size=1,
    max_size=12,
)


@given(rows=_ROWS, price=st.floats(0, 100))
def test_parts_add_up(rows: list[tuple[int, int, int, str]], price: float) -> None:
    table = as_jobs(
        {
            "submit_time": [row[0] for row in rows],
            "start_time": [row[0] for row in rows],
            "duration": [row[1] for row in rows],
            "num_gpus": [row[2] for row in rows],
            "status": [row[3] for row in rows],
            "user": [str(row[1] % 3) for row in rows],
        }
    )
    found = waste(table)
    held = sum(row[1] * row[2] for row in rows)
    assert found.kinds()["gpu_time"].to_numpy().sum() == pytest.approx(held)
    by_user = found.by("user").to_pylist()
    lost = sum(row["gpu_time"] for row in found.kinds().to_pylist() if row["kind"] in LOST)
    assert sum(row["lost"] for row in by_user) == pytest.approx(lost)
    made = bill(table, None, Prices(default=price))
    costs = made.by("user")["cost"].to_numpy().sum()
    assert costs + made.idle == pytest.approx(made.total)
    assert made.idle >= -1e-6
