"""Every published number of the Acme figures, out of the functions, on the synthetic twins.

The twins meet what was published at the real size, so the analysis of a twin must print it: exact
counts at every threshold, shares to the digit, box plots, and the curves over GPUs to 0.05 points.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from windtunnel import open_trace
from windtunnel.characterize.cdf import (
    GPU_GRID,
    POWERS_DURATION,
    POWERS_QUEUE,
    count_cdf,
    sum_cdf,
)
from windtunnel.characterize.concentration import concentration
from windtunnel.characterize.spread import box_statistics, spread_by
from windtunnel.characterize.states import state_shares, workload_mix
from windtunnel.characterize.summary import COLUMNS, cluster_summary
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.traces.trace import Trace

pytestmark = pytest.mark.data

CLUSTERS = ("Kalos", "Seren")
#: Percentage points: the curves over GPUs were simplified by the drawing library.
CURVE = 0.05
#: Published facts on Kalos contradict each other at 512 GPUs by 0.295 points.
KALOS_512 = 0.30
#: The types that figure 4 draws.
LISTED = {
    "Seren": ("Eval", "Pretrain", "SFT", "MLLM", "Debug", "Other"),
    "Kalos": ("Eval", "Pretrain", "Debug", "Other"),
}


@lru_cache(maxsize=2)
def _twin(cluster: str) -> Trace:
    return open_trace(f"synthetic:{cluster.lower()}", cpu_jobs=True)


@pytest.fixture(params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def jobs(cluster: str) -> pa.Table:
    return _twin(cluster).jobs


def _published(data_dir: Path, name: str, cluster: str) -> list[dict[str, str]]:
    path = data_dir / "acme" / name
    if not path.is_file():
        pytest.skip(f"no {name} in the reference data")
    with path.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row.get("cluster", cluster) == cluster]


def _points(table: pa.Table, kind: str | None = None) -> dict[float, tuple[int, float, int]]:
    return {
        row["x"]: (row["count"], row["percent"], row["n"])
        for row in table.to_pylist()
        if kind is None or row["workload"] == kind
    }


@pytest.mark.sample(1)
def test_every_point_of_the_duration_and_queue_curves(
    data_dir: Path, cluster: str, jobs: pa.Table
) -> None:
    curves = {
        ("gpu_job_duration", False): count_cdf(jobs, "duration", POWERS_DURATION),
        ("cpu_job_duration", False): count_cdf(jobs, "duration", POWERS_QUEUE, where="cpu"),
        ("job_duration_by_type", True): count_cdf(jobs, "duration", POWERS_DURATION, by="workload"),
        ("job_queue_by_type", True): count_cdf(jobs, "wait", POWERS_QUEUE, by="workload"),
    }
    seen = 0
    for row in _published(data_dir, "figure_cdf_points.csv", cluster):
        (table,) = (t for (name, _), t in curves.items() if name == row["figure"])
        kind = None if row["type"] == "all" else row["type"]
        count, percent, n = _points(table, kind)[float(row["x_seconds"])]
        assert count == int(row["count_le_x"]), row
        assert n == int(row["n_jobs"]), row
        assert percent == pytest.approx(float(row["cdf_percent"]), abs=2e-5), row
        seen += 1
    assert seen == {"Kalos": 190, "Seren": 266}[cluster]


@pytest.mark.sample(1)
def test_job_and_gpu_time_shares_by_type_to_the_fifth_decimal(
    data_dir: Path, cluster: str, jobs: pa.Table
) -> None:
    mix = {row["workload"]: row for row in workload_mix(jobs, LISTED[cluster]).to_pylist()}
    seen = 0
    for row in _published(data_dir, "figure_type_shares.csv", cluster):
        mine = mix[row["type"]]
        share = mine["job_percent" if row["measure"] == "count" else "gpu_time_percent"]
        assert round(share, 5) == float(row["share_percent"]), row
        if row["measure"] == "count":
            assert mine["num_jobs"] == int(row["count"])
        seen += 1
    assert seen == 2 * len(LISTED[cluster])
    if cluster == "Kalos":
        assert mix["SFT"]["num_jobs"] == 8
        assert not mix["SFT"]["listed"]
        assert mix["SFT"]["job_percent"] is None


@pytest.mark.sample(1)
def test_box_plots_by_type(data_dir: Path, cluster: str, jobs: pa.Table) -> None:
    boxes = {
        row["workload"]: row
        for row in box_statistics(jobs, "num_gpus", by="workload", where="gpu").to_pylist()
    }
    published = _published(data_dir, "figure_gpu_num_box.csv", cluster)
    assert len(published) == len(LISTED[cluster])
    for row in published:
        for key in ("whisker_low", "q1", "median", "q3", "whisker_high"):
            assert boxes[row["type"]][key] == float(row[key]), (row, key)


@pytest.mark.sample(1)
def test_curves_over_gpus(data_dir: Path, cluster: str, jobs: pa.Table) -> None:
    curves = {
        "jobs": count_cdf(jobs, "num_gpus", GPU_GRID),
        "gpu_time": sum_cdf(jobs, "num_gpus", "duration", GPU_GRID),
    }
    reached = {name: table["percent"].to_pylist() for name, table in curves.items()}
    published = _published(data_dir, "figure_gpu_num_cdf.csv", cluster)
    assert published
    for row in published:
        gpus, measure = int(row["gpu_num_le"]), row["measure"]
        known_conflict = (cluster, measure, gpus) == ("Kalos", "jobs", 512)
        off = abs(reached[measure][gpus] - float(row["cdf_percent_approx"]))
        assert off <= (KALOS_512 if known_conflict else CURVE), row


def test_the_summary_row_of_kalos(data_dir: Path) -> None:
    (published,) = (
        row for row in _published(data_dir, "cluster_summary.csv", "Kalos") if row["id"] == "Kalos"
    )
    assert tuple(published) == COLUMNS
    summary = cluster_summary(_twin("Kalos"), "Kalos")
    assert list(summary.row) == list(published)
    assert summary.why == {}
    row = summary.row
    for name in ("job_num", "cpu_job_num", "gpu_job_num"):
        assert row[name] == int(published[name])
    for name in ("med_gpu_num", "max_gpu"):
        assert row[name] == float(published[name])
    for name in (n for n in COLUMNS if n.endswith(("rate_gpu", "rate_gpu_time"))):
        assert row[name] == pytest.approx(float(published[name]), abs=6e-4), name
    total = sum(row[f"{state}_gpu_time"] for state in ("complete", "cancel", "fail"))
    assert total == 5_333_180_061
    for name in ("avg_run_time_gpu", "med_run_time_gpu", "med_que_time_gpu"):
        assert row[name] == pytest.approx(float(published[name]), rel=1e-2), name
    assert row["avg_que_time_gpu"] == pytest.approx(float(published["avg_que_time_gpu"]), abs=1e-3)


def test_state_shares_of_kalos_are_the_published_ones(data_dir: Path) -> None:
    shares = {row["state"]: row for row in state_shares(_twin("Kalos").jobs).to_pylist()}
    (published,) = (
        row for row in _published(data_dir, "cluster_summary.csv", "Kalos") if row["id"] == "Kalos"
    )
    words = {"completed": "complete", "cancelled": "cancel", "failed": "fail"}
    assert set(shares) == set(words)
    for state, word in words.items():
        assert round(shares[state]["job_share"], 3) == float(published[f"{word}_rate_gpu"])
        by_time = float(published[f"{word}_rate_gpu_time"])
        assert shares[state]["gpu_time_share"] == pytest.approx(by_time, abs=2e-3)


def test_the_real_kalos_jobs_that_are_published(data_dir: Path) -> None:
    path = data_dir / "acme" / "kalos_completed_pretrain_other_sft.csv"
    if not path.is_file():
        pytest.skip("no Kalos jobs in the reference data")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    jobs = as_jobs(
        {
            "submit_time": [float(row["submit_offset_s"]) for row in rows],
            "duration": [float(row["duration_s"]) for row in rows],
            "num_gpus": [float(row["gpu_num"]) for row in rows],
            "workload": ["Pretrain" if row["is_pretrain"] == "1" else "rest" for row in rows],
            "status": ["completed"] * len(rows),
        }
    )
    spread = {
        row["workload"]: row for row in spread_by(jobs, "duration", by="workload").to_pylist()
    }
    assert (spread["Pretrain"]["n"], spread["Pretrain"]["p50"]) == (183, 351.0)
    mix = {row["workload"]: row for row in workload_mix(jobs).to_pylist()}
    assert mix["Pretrain"]["gpu_time"] == 1_580_580_240
    completed = cluster_summary(jobs, "x").row["complete_gpu_time"]
    assert completed == sum(row["gpu_time"] for row in mix.values())
    # Of all completed GPU time of Kalos, which cluster_summary.csv gives.
    assert round(100 * mix["Pretrain"]["gpu_time"] / 1_667_685_146, 1) == 94.8


def test_the_facts_of_the_philly_file(data_dir: Path) -> None:
    path = data_dir / "philly" / "philly_sia.csv.gz"
    if not path.is_file():
        pytest.skip("no Philly data")
    jobs = open_trace(str(path), format="philly").jobs
    percents = (10, 25, 50, 75, 90, 99)
    (row,) = spread_by(jobs, "duration", percents=percents).to_pylist()
    known = (61, 115, 1_144, 2_932, 11_265, 254_758)
    assert tuple(round(row[f"p{p}"]) for p in percents) == known
    assert (round(row["avg"]), row["max"], row["n"]) == (13_136, 4_628_226, 82_247)
    sizes = {1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3}
    counted = spread_by(jobs, "duration", by="gpu_count")
    pairs = zip(counted["gpu_count"].to_pylist(), counted["n"].to_pylist(), strict=True)
    assert list(pairs) == [(str(gpus), count) for gpus, count in sizes.items()]
    reached = sum_cdf(jobs, "num_gpus", "duration", [1, 2, 4, 8, 12, 16, 24, 32])
    steps = [b - a for a, b in pairwise([0.0, *reached["percent"].to_pylist()])]
    shares = [round(steps[i], 1) for i in (0, 1, 2, 3, 5, 7)]
    assert shares == [18.1, 3.2, 16.7, 48.4, 11.5, 1.8]
    top = concentration(jobs, "jobs", by="vc").to_pylist()
    assert [row["vc"] for row in top[:4]] == ["6214e9", "11cb48", "6c71a0", "b436b2"]
    assert [round(100 * row["amount"] / 82_247) for row in top[:4]] == [50, 20, 12, 9]
    assert len(top) == 15
    held = concentration(jobs, "gpu_time", by="vc").to_pylist()
    total = sum(row["amount"] for row in held)
    assert [(row["vc"], round(100 * row["amount"] / total)) for row in held[:2]] == [
        ("ee9e8c", 26),
        ("7f04ca", 17),
    ]
    assert round(total / 3600) == 978_078
