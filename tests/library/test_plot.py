"""``wt.plot``: charts of runs and studies, in a notebook and as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import pytest

import windtunnel as wt
from windtunnel.study.grid.paired import compare_results

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = {
    "submit_time": [0, 0, 1, 5, 9, 12],
    "duration": [300, 100, 250, 400, 90, 60],
    "num_gpus": [1, 2, 1, 4, 2, 1],
    "vc": ["<script>", "b", None, "b", "b", "c"],
}
CHARTS: list[Callable[..., Any]] = [
    wt.plot.ecdf,
    wt.plot.utilization,
    wt.plot.queue,
    wt.plot.waits_by_size,
]


@pytest.fixture(scope="module")
def runs() -> wt.Comparison:
    return wt.compare(JOBS, "2x4", ["fifo", "sjf"])


def text_of(chart: Any) -> str:
    return str(chart.to_dict())


@pytest.mark.parametrize("draw", CHARTS)
def test_charts_of_one_run_of_several_and_of_named_ones(
    draw: Callable[..., Any], runs: wt.Comparison
) -> None:
    assert "'sjf" in text_of(draw(runs))
    assert "'fifo" in text_of(draw(runs["fifo"]))
    assert "'mine" in text_of(draw({"mine": runs["fifo"]}))
    with pytest.raises(wt.SpecError, match="plot: found 'runs'; expected an Outcome"):
        draw("runs")


def test_charts_show_themselves_and_are_written(runs: wt.Comparison, tmp_path: Path) -> None:
    chart = wt.plot.ecdf(runs, "jct")
    assert list(chart._repr_mimebundle_()) == ["image/svg+xml", "text/plain"]
    with alt.renderers.enable("json"):
        assert "application/json" in chart._repr_mimebundle_()[0]
    for ending, begin in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        chart.save(str(tmp_path / f"chart{ending}"))
        assert (tmp_path / f"chart{ending}").read_bytes().startswith(begin)
    with pytest.raises(wt.SpecError, match=r"unknown name 'waits'. Did you mean 'wait'\?"):
        wt.plot.ecdf(runs, "waits")  # type: ignore[arg-type] # the message is about it


def test_a_gantt_chart(runs: wt.Comparison) -> None:
    drawn = text_of(wt.plot.gantt(runs["fifo"]))
    assert "'node 0" in drawn
    assert text_of(wt.plot.gantt(runs["fifo"], (0, 50))) != drawn
    with pytest.raises(wt.SpecError, match="nothing to draw"):
        wt.plot.gantt(runs["fifo"], (50, 50))


@pytest.mark.slow
def test_a_forest_plot_of_a_study(tmp_path: Path) -> None:
    study = wt.Study.from_mapping(
        {
            "traces": ["synthetic:kalos:jobs=200:load=1.2"],
            "policies": ["fifo", "sjf"],
            "seeds": 3,
        }
    )
    results = wt.run_study(study, tmp_path / "out", workers=1)
    assert "'sjf" in text_of(wt.plot.forest(results))
    found = compare_results(results, metrics=("avg_jct",), resamples=99)
    assert "'sjf" in text_of(wt.plot.forest(found, "avg_jct"))
    with pytest.raises(wt.SpecError, match="metric: unknown name 'avg_wait'"):
        wt.plot.forest(found, "avg_wait")
