"""What is in the data is seen: axes reach it, no line bridges a gap, and what is off is noted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from windtunnel.report.chart.axes import powers
from windtunnel.report.figures.catalogue import FIGURES, look_of
from windtunnel.report.figures.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.traces.trace import Trace

HOUR = 3600.0


def spec_of(name: str, trace: Trace) -> dict[str, Any]:
    sources = Sources.of([trace])
    table = FIGURES[name].plan.collect(sources).table
    assert table is not None
    spec: dict[str, Any] = FIGURES[name].plan.draw(table, look_of(sources)).to_dict()
    return spec


def panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec.get("concat", [spec])
    return found


def x_axis(panel: dict[str, Any]) -> dict[str, Any]:
    """Return the first x of a panel that has a scale."""
    xs = (layer["encoding"].get("x", {}) for layer in panel.get("layer", [panel]))
    found: dict[str, Any] = next(x for x in xs if "scale" in x)
    return found


def values(panel: dict[str, Any], column: str) -> list[dict[str, Any]]:
    """Return the rows of a panel, or of its first layer, that have a column."""
    inline = (part["data"]["values"] for part in (panel, *panel.get("layer", [])) if "data" in part)
    rows: list[dict[str, Any]] = next(found for found in inline if found and column in found[0])
    return rows


def changed(table: Any, **columns: Sequence[float | None]) -> Any:
    for name, cells in columns.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(list(cells), pa.float64()))
    return table


@pytest.mark.slow
def test_a_request_that_all_tasks_share_is_on_the_axis(hand: Trace) -> None:
    tasks = changed(hand.tasks, num_cpus=[64.0] * 3, cpus_used=[None] * 3)
    axis = x_axis(panels(spec_of("request_usage", replace(hand, tasks=tasks)))[0])
    low, high = axis["scale"]["domain"]
    assert low < 64 < high
    assert len(axis["axis"]["values"]) >= 2


def test_tasks_beyond_the_last_point_are_noted(hand: Trace) -> None:
    tasks = changed(hand.tasks, mem_gib=[16.0, 16.0, 1e6], read=[1.0, 2.0**50, 2.0**50])
    sources = Sources.of([replace(hand, tasks=tasks)])
    notes = FIGURES["request_usage"].plan.collect(sources).notes
    assert "hand: GiB of memory asked: 1 task beyond the last point, 16,384." in notes
    notes = FIGURES["network_cpu"].plan.collect(sources).notes
    assert "hand: read, Gbit/s: 2 tasks beyond the last point, 8,192." in notes


def test_boxes_of_parts_of_a_gpu_and_of_none_are_on_the_axis(
    make_trace: Callable[..., Trace],
) -> None:
    gpus = [0.0, 0.125, 0.25, 0.25, 0.5]
    jobs = {
        "submit_time": [0.0] * 5,
        "duration": [1.0] * 5,
        "num_gpus": gpus,
        "workload": ["eval"] * 5,
    }
    axis = x_axis(panels(spec_of("box_gpu_num", make_trace(jobs)))[0])
    assert axis["scale"]["domain"][0] < 0.125  # the lower quartile
    assert axis["title"] == "GPUs of the job (log; 0 on the edge)"


@pytest.mark.parametrize(
    ("domain", "base", "ticks"),
    [
        ((0.3, 1.2), 4, (0.5, 1.0)),
        ((45.0, 118.0), 10, (64.0,)),
        ((30.0, 300.0), 10, (32.0, 64.0, 128.0, 256.0)),
        ((0.5, 70.0), 4, (1.0, 4.0, 16.0, 64.0)),
    ],
)
def test_a_scale_has_two_numbers_where_it_can(
    domain: tuple[float, float], base: int, ticks: tuple[float, ...]
) -> None:
    assert powers("x", "X", domain, base).ticks == ticks


def test_the_week_has_no_line_where_a_trace_has_no_hours(make_trace: Callable[..., Trace]) -> None:
    # Monday 0 h is the first hour; from Sunday 22 h to Tuesday 1 h of the week after.
    first = 6 * 86_400 + 22 * HOUR
    jobs = {
        "submit_time": [first, first + 27 * HOUR],
        "duration": [1.0, 1.0],
        "num_gpus": [1.0, 3.0],
    }
    rows = values(panels(spec_of("requests_over_week", make_trace(jobs)))[0], "rate")
    pieces: dict[int, list[float]] = {}
    for row in rows:
        pieces.setdefault(row["piece"], []).append(row["hour_of_week"])
    assert list(pieces.values()) == [list(range(26)), [166, 167]]


def test_an_hour_alone_is_seen(make_trace: Callable[..., Trace]) -> None:
    jobs = {
        "submit_time": [12 * HOUR, 12 * HOUR + 60],
        "duration": [1.0, 1.0],
        "num_gpus": [1.0, 3.0],
    }
    rows = values(panels(spec_of("requests_over_week", make_trace(jobs)))[0], "rate")
    assert [row["rate"] for row in rows] == [0.0, 4.0, 4.0, 0.0]
    assert [round(row["hour_of_week"]) for row in rows] == [12, 12, 13, 13]


def test_hours_that_are_mostly_empty_show_their_mean_and_tell_the_rest(
    make_trace: Callable[..., Trace],
) -> None:
    day = 24 * HOUR
    jobs = {"submit_time": [0.0] * 30 + [9 * day], "duration": [1.0] * 31, "num_gpus": [1.0] * 31}
    trace = make_trace(jobs)
    (panel,) = panels(spec_of("jobs_by_hour", trace))
    assert values(panel, "mean")[0]["mean"] == 3.1
    (high,) = {
        layer["encoding"]["y"]["scale"]["domain"][1]
        for layer in panel["layer"]
        if "scale" in layer["encoding"]["y"]
    }
    assert high > 3.1
    notes = FIGURES["jobs_by_hour"].plan.collect(Sources.of([trace])).notes
    assert (
        "hand: 2 hours beyond the whiskers (1.5 interquartile ranges), not drawn; the most is "
        "30 jobs."
    ) in notes


def test_waits_beyond_the_completion_time_are_noted(make_trace: Callable[..., Trace]) -> None:
    jobs = {
        "submit_time": [0.0, 0.0],
        "start_time": [30.0, 1.0],
        "end_time": [None, 100.0],
        "duration": [5.0, 99.0],
        "num_gpus": [1.0, 1.0],
        "instance_start": pa.array([30.0, 1.0]),
        "task_end": pa.array([20.0, 100.0]),
    }
    data = FIGURES["wait_by_half"].plan.collect(Sources.of([make_trace(jobs)]))
    assert "hand: 1 job beyond 1: by the source they end before they start." in data.notes
