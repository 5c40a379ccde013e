"""The figures of Seren and Kalos against the values published for them, to the last job.

The traces are synthetic, made so that every published knot is met exactly; what is checked is that
the figures show it. That the numbers behind them are the published ones, `make test` checks in
tests/characterize/test_published.py.
"""

from __future__ import annotations

import csv
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel.errors import TraceError
from windtunnel.report.figures.catalogue import FIGURES, look_of
from windtunnel.report.figures.curves_of_use import PUBLISHED_P50, published_curves
from windtunnel.report.figures.sources import Sources
from windtunnel.traces.open import open_trace

if TYPE_CHECKING:
    from pathlib import Path


def published(data_dir: Path, name: str) -> list[dict[str, str]]:
    with (data_dir / "acme" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def drawn(name: str, sources: Sources) -> list[dict[str, Any]]:
    table = FIGURES[name].plan.collect(sources).table
    assert table is not None
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def cluster(row: dict[str, Any]) -> str:
    return str(row["trace"]).removeprefix("synthetic:").capitalize()


@pytest.mark.slow
def test_run_times_are_the_published_counts(acme: Sources, data_dir: Path) -> None:
    found = {
        (cluster(row), row["x"]): (row["count"], row["n"], row["percent"])
        for row in drawn("cdf_job_duration_util", acme)
    }
    checked = 0
    for row in published(data_dir, "figure_cdf_points.csv"):
        if row["figure"] != "gpu_job_duration" or row["cluster"] not in ("Seren", "Kalos"):
            continue
        count, n, percent = found[row["cluster"], float(row["x_seconds"])]
        assert (count, n) == (int(row["count_le_x"]), int(row["n_jobs"]))
        assert percent == pytest.approx(float(row["cdf_percent"]), abs=1e-5)
        checked += 1
    assert checked == 44


@pytest.mark.slow
def test_curves_by_workload_are_the_published_counts(acme: Sources, data_dir: Path) -> None:
    found = {}
    for row in drawn("cdf_job_duration_queue", acme):
        what = row["title"].rsplit(": ", 1)[1]
        found[cluster(row), what, row["workload"], row["x"]] = (row["count"], row["n"])
    names = {"job_duration_by_type": "run time", "job_queue_by_type": "wait"}
    checked = 0
    for row in published(data_dir, "figure_cdf_points.csv"):
        what = names.get(row["figure"])
        if what is not None:
            key = (row["cluster"], what, row["type"], float(row["x_seconds"]))
            assert found[key] == (int(row["count_le_x"]), int(row["n_jobs"]))
            checked += 1
    assert checked == len(found) == 10 * (22 + 16)


@pytest.mark.slow
def test_job_shares_are_the_published_ones_to_five_decimals(acme: Sources, data_dir: Path) -> None:
    found = {
        (cluster(row), row["of"], row["workload"]): row for row in drawn("treemap_job_dist", acme)
    }
    names = {"count": "num_jobs", "gpu_time": "gpu_time"}
    for row in published(data_dir, "figure_type_shares.csv"):
        mine = found.pop((row["cluster"], names[row["measure"]], row["type"]))
        wanted = float(row["share_percent"])
        if row["measure"] == "count":
            assert mine["percent"] == pytest.approx(wanted, abs=6e-6)
            assert mine["amount"] == int(row["count"])
        else:  # the synthetic traces' GPU time is fitted
            assert mine["percent"] == pytest.approx(wanted, abs=0.05)
    assert not found


@pytest.mark.slow
def test_boxes_are_the_published_ones(acme: Sources, data_dir: Path) -> None:
    found = {(cluster(row), row["workload"]): row for row in drawn("box_gpu_num", acme)}
    for row in published(data_dir, "figure_gpu_num_box.csv"):
        mine = found.pop((row["cluster"], row["type"]))
        for key in ("whisker_low", "q1", "median", "q3", "whisker_high"):
            assert mine[key] == float(row[key]), (row["cluster"], row["type"], key)
    assert not found


@pytest.mark.slow
def test_states_of_kalos_are_the_published_rates(acme: Sources, data_dir: Path) -> None:
    (row,) = [r for r in published(data_dir, "cluster_summary.csv") if r["id"] == "Kalos"]
    names = {"completed": "complete", "cancelled": "cancel", "failed": "fail"}
    for mine in drawn("bar_job_state", acme):
        if cluster(mine) == "Kalos":
            column = "rate_gpu" if mine["panel"] == "a" else "rate_gpu_time"
            wanted = 100 * float(row[f"{names[mine['state']]}_{column}"])
            assert mine["percent"] == pytest.approx(wanted, abs=0.0501)


@pytest.mark.slow
def test_sizes_are_near_the_published_curves(acme: Sources, data_dir: Path) -> None:
    found = [row for row in drawn("cdf_job_gpunum", acme) if row["panel"] == "a"]
    seren = [row for row in found if cluster(row) == "Seren"]
    checked = 0
    for row in published(data_dir, "figure_gpu_num_cdf.csv"):
        if row["measure"] == "jobs" and row["cluster"] == "Seren":
            # A step curve holds its value until its next point.
            mine = max(p["percent"] for p in seren if p["x"] <= float(row["gpu_num_le"]))
            assert mine == pytest.approx(float(row["cdf_percent_approx"]), abs=0.06)
            checked += 1
    assert checked > 5


@pytest.mark.slow
def test_sizes_of_pai_are_those_of_one_task(data_dir: Path) -> None:
    """The published curves of PAI are of plan_gpu; its gangs of such tasks are far larger."""
    pai = Sources.of([open_trace("synthetic:pai")])
    figure = FIGURES["cdf_job_gpunum"]
    data = figure.plan.collect(pai)
    assert data.table is not None
    found = data.table.to_pylist()
    checked = 0
    for row in published(data_dir, "figure_gpu_num_cdf.csv"):
        if row["cluster"] == "PAI":
            panel = "a" if row["measure"] == "jobs" else "b"
            mine = [p for p in found if p["panel"] == panel and p["x"] <= float(row["gpu_num_le"])]
            assert mine[-1]["percent"] == pytest.approx(float(row["cdf_percent_approx"]), abs=0.05)
            assert mine[-1]["gpus"] == "task"
            checked += 1
    assert checked == 24
    chart = figure.plan.draw(data.table, look_of(pai)).to_dict()
    assert "synthetic:pai (n = 1,037,085), per task" in str(chart)
    assert "gangs, drawn by the GPUs of one task" in " ".join(data.notes)


def test_medians_of_use_are_the_published_ones(data_dir: Path) -> None:
    curves = published_curves(data_dir / "acme" / "utilization_quantiles.npz")
    found = {(row["origin"], row["metric"]): row for row in curves.to_pylist()}
    checked = 0
    for metric, clusters in PUBLISHED_P50.items():
        for origin, wanted in clusters.items():
            row = found[origin, metric]
            assert row["p50"] == pytest.approx(wanted, rel=2e-3, abs=0.05)
            assert row["published_p50"] == wanted
            checked += 1
    assert checked == 23
    assert curves["n"].null_count == curves.num_rows  # the files do not say
    sources = Sources((), curves)
    for name in ("cdf_resource_util", "cdf_temperature", "cdf_power"):
        data = FIGURES[name].plan.collect(sources)
        assert data.notes == ("the published files do not say of how many samples they are.",)


def test_shares_of_use_read_off_the_drawn_curves_are_the_published_ones(data_dir: Path) -> None:
    """traces.md 1.2: shares of samples at 0, above 75 %, 400 W and 65 degrees."""
    curves = published_curves(data_dir / "acme" / "utilization_quantiles.npz").to_pylist()

    def at_or_below(origin: str, metric: str, x: float) -> float:
        return max(
            row["percent"]
            for row in curves
            if row["origin"] == origin and row["metric"] == metric and row["value"] <= x
        )

    assert at_or_below("Seren", "gpu_util", 0) == pytest.approx(31.4, abs=0.3)
    assert at_or_below("Kalos", "gpu_util", 0) == pytest.approx(33.8, abs=0.3)
    assert 100 - at_or_below("Seren", "gpu_mem", 75) == pytest.approx(13.9, abs=0.3)
    assert 100 - at_or_below("Kalos", "gpu_mem", 75) == pytest.approx(50.3, abs=0.3)
    assert 100 - at_or_below("Seren", "gpu_power", 400) == pytest.approx(8.0, abs=0.3)
    assert 100 - at_or_below("Kalos", "gpu_power", 400) == pytest.approx(12.6, abs=0.3)
    assert 100 - at_or_below("Seren", "gpu_temp", 65) == pytest.approx(4.5, abs=0.5)
    assert at_or_below("Seren", "ib_send", 0) == pytest.approx(63.4, abs=0.3)
    largest = {m: max(r["value"] for r in curves if r["metric"] == m) for m in ("gpu_node_power",)}
    assert largest["gpu_node_power"] == 6554


def test_infiniband_is_drawn_in_percent_of_its_maximum(data_dir: Path) -> None:
    curves = published_curves(data_dir / "acme" / "utilization_quantiles.npz")
    found = drawn("cdf_resource_util", Sources((), curves))
    values = [row["value"] for row in found if row["metric"] == "ib_send"]
    assert max(values) == 100.0
    p90 = [r["value"] for r in found if r["metric"] == "ib_send" and r["percent"] <= 90]
    assert p90[-1] == pytest.approx(100 * 5446.1 / 23695, abs=0.2)


def test_real_kalos_jobs_are_drawn_as_they_are_bundled(data_dir: Path, make_trace: Any) -> None:
    rows = published(data_dir, "kalos_completed_pretrain_other_sft.csv")
    run = [float(row["duration_s"]) for row in rows]
    trace = make_trace(
        {
            "submit_time": [float(row["submit_offset_s"]) for row in rows],
            "duration": run,
            "num_gpus": [float(row["gpu_num"]) for row in rows],
            "workload": ["Pretrain" if row["is_pretrain"] == "1" else "Other" for row in rows],
        }
    )
    sources = Sources.of([trace])
    for row in drawn("cdf_job_duration_util", sources):
        assert row["count"] == sum(value <= row["x"] for value in run)
    time = {
        row["workload"]: row["amount"]
        for row in drawn("treemap_job_dist", sources)
        if row["of"] == "gpu_time"
    }
    assert time["Pretrain"] == 1_580_580_240  # traces.md 4.1


def test_a_folder_of_pickles_is_read_like_the_one_file(tmp_path: Path) -> None:
    percent = np.linspace(0, 1, 1000) * 100
    power = [np.linspace(50, 450, 1000), percent]
    (tmp_path / "gpu_power_seren.pkl").write_bytes(pickle.dumps(power))
    servers = [np.linspace(1000, 3000, 1000), percent, np.linspace(500, 900, 1000), percent]
    (tmp_path / "server_power.pkl").write_bytes(pickle.dumps(servers))
    found = {(row["origin"], row["metric"]): row for row in published_curves(tmp_path).to_pylist()}
    medians = {metric: row["p50"] for (_, metric), row in found.items()}
    wanted = {"gpu_power": 250.0, "gpu_node_power": 2000.0, "cpu_node_power": 700.0}
    assert medians == pytest.approx(wanted)
    # These are not the published medians, and the figure says so.
    notes = FIGURES["cdf_power"].plan.collect(Sources((), published_curves(tmp_path))).notes
    assert "Seren: the median of gpu_power is 250, published is 96.5." in notes
    (tmp_path / "server_power.pkl").rename(tmp_path / "other.pkl")
    assert set(published_curves(tmp_path)["metric"].to_pylist()) == {"gpu_power"}
    (tmp_path / "gpu_power_seren.pkl").unlink()
    with pytest.raises(TraceError, match=r"percentile files.*Files found: other"):
        published_curves(tmp_path)
    (tmp_path / "other.pkl").unlink()
    with pytest.raises(TraceError, match=r"a folder of \.pkl files"):
        published_curves(tmp_path)
