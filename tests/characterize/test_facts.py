"""Facts and tables as they come in: what can be asked, and where the tables may lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windtunnel.characterize import distribution, overview, shares
from windtunnel.characterize.cdf import count_cdf
from windtunnel.characterize.facts import FACTS, source_fact
from windtunnel.characterize.spread import spread_by
from windtunnel.characterize.states import state_shares, workload_mix
from windtunnel.characterize.summary import cluster_summary
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from pathlib import Path

    from backends import Backend

_ROW = {"submit_time": [0], "start_time": [2], "end_time": [10], "duration": [8], "num_gpus": [4],
        "num_cpus": [16]}  # fmt: skip


def test_derived_facts_by_hand(backend: Backend) -> None:
    jobs = backend(as_jobs({**_ROW, "source_duration": pa.array([10.0])}))
    expected = {
        "wait": 2.0,
        "jct": 10.0,
        "slowdown": 1.25,
        "wait_share": 0.2,
        "gpu_time": 32.0,
        "cpu_time": 128.0,
        "source_duration": 10.0,
        "source_gpu_time": 40.0,
    }
    for fact, value in expected.items():
        assert spread_by(jobs, fact)["avg"].to_pylist() == [value], fact


def test_every_fact_can_be_asked(holed: pa.Table) -> None:
    for fact in FACTS:
        found = distribution(holed, fact)
        assert found["n"] + found["left_out"] == holed.num_rows, fact


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_in_a_sources_own_column_is_unknown(backend: Backend, odd: float) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0, 0],
            "duration": [1, 1],
            "num_gpus": [1, 2],
            "workload": ["a", "a"],
            "source_queue": pa.array([odd, 3.0]),
            "source_duration": pa.array([odd, 3.0]),
        }
    )
    table = backend(jobs)
    (row,) = spread_by(table, "source_queue").to_pylist()
    assert (row["n"], row["left_out"], row["avg"]) == (1, 1, 3.0)
    (row,) = spread_by(table, "source_gpu_time").to_pylist()
    assert (row["n"], row["left_out"], row["avg"]) == (1, 1, 6.0)
    (row,) = workload_mix(table, gpu_time="source_gpu_time").to_pylist()
    assert (row["num_jobs"], row["gpu_time"], row["left_out"]) == (2, 6, 1)


def test_a_sources_own_column_of_text_is_not_its_figure() -> None:
    """A table from elsewhere may call anything ``source_duration``."""
    jobs = as_jobs(_ROW).append_column("source_duration", pa.array(["long"]))
    assert source_fact(jobs, "duration") == "duration"
    assert source_fact(jobs, "gpu_time") == "gpu_time"


def test_the_source_fact_is_the_sources_where_it_says_anything(backend: Backend) -> None:
    plain = as_jobs(_ROW)
    assert [source_fact(plain, fact) for fact in ("duration", "wait", "gpu_time")] == [
        "duration",
        "wait",
        "gpu_time",
    ]
    empty = plain.append_column("source_duration", pa.array([None], pa.float64()))
    assert source_fact(empty, "duration") == "duration"
    stated = backend(plain.append_column("source_duration", pa.array([10.0])))
    assert source_fact(stated, "duration") == "source_duration"
    assert source_fact(stated, "gpu_time") == "source_gpu_time"
    assert source_fact(stated, "wait") == "wait"
    assert source_fact(stated, "num_gpus") == "num_gpus"


@pytest.mark.parametrize(
    ("fact", "columns"),
    [
        ("duration", ["source_duration"]),
        ("gpu_time", ["source_duration"]),
        ("wait", ["source_queue"]),
        ("num_gpus", ["plan_gpu"]),
        ("wait_share", ["instance_start", "task_end"]),
    ],
)
def test_a_column_of_words_is_nobodys_fact(fact: str, columns: list[str], backend: Backend) -> None:
    """A user's own table may have a further column of any name."""
    words = {name: pa.array(["much"]) for name in columns}
    assert source_fact(backend(as_jobs({**_ROW, **words})), fact) == fact


def test_half_of_what_a_source_fact_is_made_of_is_none_of_it() -> None:
    jobs = as_jobs({**_ROW, "task_end": pa.array([10.0])})
    assert source_fact(jobs, "wait_share") == "wait_share"


def test_of_pai_the_source_tells_the_gpus_of_one_task(backend: Backend) -> None:
    """AcmeTrace's notebook: gpu_num of PAI is plan_gpu / 100, whatever the number of instances."""
    gang = {**_ROW, "num_gpus": [2.0], "num_tasks": [4], "plan_gpu": pa.array([50.0])}
    jobs = backend(as_jobs(gang))
    assert source_fact(jobs, "num_gpus") == "source_num_gpus"
    assert count_cdf(jobs, "source_num_gpus", [0.4, 0.5])["count"].to_pylist() == [0, 1]
    assert cluster_summary(jobs, "x", source=True).row["avg_gpu_num"] == 0.5
    assert cluster_summary(jobs, "x").row["avg_gpu_num"] == 2.0


@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # Ibis calls DuckDB's old name
def test_an_ibis_table_of_a_file_gives_the_same_as_arrow(holed: pa.Table, tmp_path: Path) -> None:
    pq.write_table(holed, tmp_path / "jobs.parquet")
    held = ibis.duckdb.connect().read_parquet(tmp_path / "jobs.parquet")
    assert overview(held) == overview(holed)
    assert shares(held, "vc").equals(shares(holed, "vc"))
    assert state_shares(held, "user").equals(state_shares(holed, "user"))
    at = [1.0, 100.0, 1e4]
    for by in ("num_gpus", "workload", "num_attempts"):
        mine, theirs = (count_cdf(t, "wait", at, by=by, where="all") for t in (held, holed))
        assert mine.equals(theirs)
    with pytest.raises(Exception, match="Did you mean 'source_queue'"):
        count_cdf(held, "source_queues", at)
