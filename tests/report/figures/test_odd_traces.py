"""Traces that are odd: no jobs, one job, nothing known, huge and tiny numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.report.figures.catalogue import FIGURES, collect, look_of, report
from windtunnel.report.figures.sources import Sources
from windtunnel.report.figures.writing import to_paper_svg

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.traces.trace import Trace

ODD: dict[str, dict[str, Any]] = {
    "no jobs": {"submit_time": [], "duration": [], "num_gpus": []},
    "one job": {
        "submit_time": [0.0],
        "start_time": [0.0],
        "end_time": [0.0],
        "duration": [0.0],
        "num_gpus": [1.0],
        "workload": ["w"],
        "user": ["u"],
        "template": ["t"],
        "gpu_type": ["g"],
        "status": ["completed"],
        "num_tasks": [1],
        "num_cpus": [0.0],
    },
    "nothing known": {
        "submit_time": [None, None],
        "duration": [None, None],
        "num_gpus": [None, None],
        "workload": [None, None],
    },
    "cpu jobs only": {
        "submit_time": [0.0, 5.0],
        "duration": [3.0, 4.0],
        "num_gpus": [0.0, 0.0],
        "workload": ["a", "b"],
        "status": ["completed", "failed"],
    },
    "huge": {
        "submit_time": [0.0, 4e8, 4e8],
        "start_time": [3e8, 4e8, 4e8],
        "end_time": [6e8, 4e8 + 1e-3, 4e8 + 1.0],
        "duration": [3e8, 1e-3, 1.0],
        "num_gpus": [100_000.0, 0.001, 1e-9],
        "num_tasks": [2**31 - 1, 1, 1],
        "num_cpus": [1e9, 1e-6, 1.0],
        "workload": ["a", "a", "b"],
        "user": ["x", "x", "y"],
        "template": ["t", "t", "t"],
        "status": ["preempted", "unknown", "out_of_memory"],
    },
    "before the epoch": {
        "submit_time": [-1e6, -5.0],
        "start_time": [-1e6, 0.0],
        "end_time": [-9e5, 10.0],
        "duration": [1e5, 10.0],
        "num_gpus": [1.0, 8.0],
    },
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ODD)
def test_every_figure_is_drawn_or_has_a_reason(make_trace: Callable[..., Trace], name: str) -> None:
    sources = Sources.of([make_trace(ODD[name], name)])
    look = look_of(sources)
    found = collect(sources, list(FIGURES.values()))
    for one, figure in zip(found, report(found), strict=True):
        if one.data.table is None:
            assert figure["reason"]
            assert figure["drawn"] is False
        else:
            assert any(part["panel"] and part["n"] for part in figure["parts"])
            one.figure.plan.draw(one.data.table, look).to_dict()
    if name in ("no jobs", "nothing known"):
        assert not any(figure["drawn"] for figure in report(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one job", "huge"])
def test_odd_numbers_can_be_rendered(make_trace: Callable[..., Trace], name: str) -> None:
    sources = Sources.of([make_trace(ODD[name], name)])
    look = look_of(sources)
    for figure in ("cdf_job_duration_queue", "box_gpu_num", "gang_size", "runtime", "jobs_by_hour"):
        table = FIGURES[figure].plan.collect(sources).table
        assert table is not None
        svg = to_paper_svg(FIGURES[figure].plan.draw(table, look).to_dict(), look)
        assert "NaN" not in svg


@pytest.mark.slow
def test_eight_traces_fit_into_every_figure(hand: Trace) -> None:
    sources = Sources.of([hand] * 8)
    assert len(set(sources.traces)) == 8
    look = look_of(sources)
    for name in ("bar_job_state", "cdf_job_gpunum", "treemap_job_dist", "cdf_job_duration_queue"):
        table = FIGURES[name].plan.collect(sources).table
        assert table is not None
        FIGURES[name].plan.draw(table, look).to_dict()
