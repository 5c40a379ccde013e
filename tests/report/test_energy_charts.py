"""Charts of recurring training: their rows, axes with units, and pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.energy import open_workload, pareto_front, study
from windtunnel.energy.optimum import configurations
from windtunnel.report import energy_charts as charts
from windtunnel.report.chart.saving import write_chart

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.energy import EnergyStudy, Workload


@pytest.fixture(scope="module")
def workload() -> Workload:
    return open_workload("synthetic", "p100")


@pytest.fixture(scope="module")
def studied(workload: Workload) -> EnergyStudy:
    return study(workload, ["zeus", "grid"], seeds=range(5))


def titles(spec: Any) -> set[str]:
    """Return every title of an axis or a chart."""
    if isinstance(spec, list):
        return {title for part in spec for title in titles(part)}
    if not isinstance(spec, dict):
        return set()
    found = {spec["title"]} if isinstance(spec.get("title"), str) else set()
    return found.union(*(titles(part) for part in spec.values()))


def test_the_pareto_chart_marks_front_optimum_and_default(workload: Workload) -> None:
    rows = charts.pareto_rows(workload, 0.5)
    assert sum(row["kind"] == "optimum" for row in rows) == 1
    assert sum(row["kind"] == "default" for row in rows) == 1
    front = [one.label for one in pareto_front(configurations(workload, 0.5))]
    assert sorted(row["label"] for row in rows if row["on_front"]) == sorted(front)
    assert len(rows) == sum(one.feasible for one in configurations(workload, 0.5))
    shown = titles(charts.pareto_chart(workload, 0.5).to_dict())
    assert {"Time to target, min", "Energy to target, kJ"} <= shown


def test_what_is_not_drawn_is_counted(workload: Workload) -> None:
    slow = workload.sweeps[8]
    far = replace(slow, epoch_time=tuple(100 * time for time in slow.epoch_time))
    chart = charts.pareto_chart(replace(workload, sweeps={**workload.sweeps, 8: far}), 0.5)
    assert "far dearer ones not shown" in chart.to_dict()["title"]


def test_the_map_has_a_cell_a_configuration(workload: Workload) -> None:
    rows = charts.map_rows(workload, 0.5)
    assert len(rows) == len(workload.batch_sizes) * len(workload.power_limits)
    ratios = [row["ratio"] for row in rows if row["feasible"]]
    assert min(ratios) == 1.0
    assert [row["kind"] for row in rows if row["ratio"] == 1.0] == ["optimum"]
    assert {row["batch_size"] for row in rows if not row["feasible"]} == {2048}
    shown = titles(charts.map_chart(workload, 0.5).to_dict())
    assert {"Batch size", "Power limit, W", "Cost / optimum"} <= shown


def test_regret_is_drawn_with_its_band_and_the_number_of_seeds(studied: EnergyStudy) -> None:
    rows = charts.regret_rows(studied)
    assert len(rows) == 3 * studied.settings["recurrences"]
    assert all(row["low"] <= row["high"] for row in rows)
    last = {row["optimizer"]: row["mean"] for row in rows}
    assert last["zeus"] == pytest.approx(float(studied.regret("zeus")[:, -1].mean()))
    spec = charts.regret_chart(studied).to_dict()
    assert "5 seeds, mean and middle 80 %" in spec["title"]
    assert "Recurrence" in titles(spec)
    assert any(title.startswith("Cumulative regret, optimal jobs") for title in titles(spec))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("ending", "start"), [("html", b"<!doctype html>"), ("svg", b"<svg"), ("png", b"\x89PNG")]
)
def test_charts_are_written(
    workload: Workload, studied: EnergyStudy, tmp_path: Path, ending: str, start: bytes
) -> None:
    for name, chart in (
        ("optimum", charts.optimum_chart(workload, 0.5)),
        ("regret", charts.regret_chart(studied)),
    ):
        out = tmp_path / f"{name}.{ending}"
        write_chart(out, chart, "title")
        assert out.read_bytes().startswith(start)
        assert json.dumps(chart.to_dict(), allow_nan=False)
    assert len(list(tmp_path.iterdir())) == 2
