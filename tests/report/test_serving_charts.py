"""Pages of model serving: the rows behind the charts, and what stands on the pages."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windtunnel import serving
from windtunnel.report.llm_charts import distribution_rows, goodput_chart, rate_rows
from windtunnel.report.llm_result import llm_result
from windtunnel.report.result_page import result_page
from windtunnel.report.serving_chart import measures_of, panel, point_rows
from windtunnel.report.serving_page import serving_page, sweep_result
from windtunnel.report.serving_timeline import bands, cell_rows, kinds_of, timeline_chart
from windtunnel.serving import (
    Group,
    LlmModel,
    Parallel,
    Placement,
    Profile,
    RequestTrace,
    Schedule,
    ServingOutcome,
    Stages,
    Switch,
    WorkloadSpec,
)

ONE = Placement((Group(Parallel(), (0, 1)), Group(Parallel(1, 1, 2), ())))


def served(finish_at: float = 120.0) -> ServingOutcome:
    """Return a by b on one GPU: type a 0 to 30 and 60 to 90, type b 30 to 60, till the end."""
    stages = Stages(np.array([30.0]), np.array([2.0**30]), np.zeros(1))
    profile = Profile("hand", {(name, Parallel(), 1): stages for name in "ab"})
    times = [np.array([0.0, 60.0, finish_at - 30.0]), np.array([30.0])]
    return serving.simulate(ONE, serving.merge(["a", "b"], times), profile)


def test_cells_of_the_time_line_by_hand() -> None:
    rows = cell_rows(served(), ONE)
    found = [(r["kind"], r["start"], r["stop"], r["first"], r["last"], r["level"]) for r in rows]
    assert found == [("a", 0, 30, 0, 1, 4), ("b", 30, 60, 0, 1, 4), ("a", 60, 120, 0, 1, 4)]
    assert [(b.first, b.last, b.stages) for b in bands(served(), ONE)] == [(0, 1, 1), (1, 3, 2)]


def test_depth_is_requests_in_service() -> None:
    """Every request is in service from start to finish: the areas add up."""
    spec = WorkloadSpec(num_models=6, duration=60.0, rate=15.0, cv=3.0, slo_scale=5.0)
    profile = spec.read_profile()
    requests = spec.draw(profile)
    found = serving.search(requests, profile, 4, refine=0)
    run = serving.simulate(found.placement, requests, profile)
    rows = cell_rows(run, found.placement)
    stages = {group.parallel.name: group.parallel.pp for group in found.placement.groups}
    area = sum(r["in_service"] * (r["stop"] - r["start"]) * stages[r["group"]] for r in rows)
    assert area == pytest.approx(float(np.nansum(run.finish - run.start)), rel=1e-9)
    assert {row["level"] for row in rows} <= {1, 2, 3, 4}


def test_loading_is_drawn() -> None:
    stages = Stages(np.array([1.0]), np.array([2.0**30]), np.zeros(1))
    profile = Profile("hand", {("m", Parallel(), 1): stages})
    requests = serving.merge(["m", "m"], [np.array([9.5]), np.array([10.0])])
    only = [Placement((Group(Parallel(), (model,)),)) for model in (0, 1)]
    schedule = Schedule((9.5, 10.0), tuple(only))
    switch = Switch(2.0**29)
    run = serving.simulate_schedule(schedule, requests, profile, switch=switch)
    (load,) = run.settings["loading"]
    assert (load["segment"], load["drained"], load["loaded"]) == (1, 10.5, 12.5)
    layers = timeline_chart(run, schedule).to_dict()["layer"]
    (dark,) = [one for one in layers if one["mark"].get("color")]
    assert dark["data"]["values"] == [{"first": 0, "last": 1, "start": 10.5, "stop": 12.5}]
    free = serving.simulate_schedule(schedule, requests, profile)
    assert len(timeline_chart(free, schedule).to_dict()["layer"]) == len(layers) - 1


def test_one_request_that_is_refused() -> None:
    profile = serving.synthetic_profile()
    requests = serving.merge(["small"], [np.array([5.0])], slo=0.01)
    here = Placement((Group(Parallel(), (0,)),))
    run = serving.simulate(here, requests, profile)
    assert timeline_chart(run, here) is None
    page = serving_page(run, here, "one", command="").replace("\xa0", " ")
    assert "0.00 % of 1 request in time; 1 refused." in page


def test_more_types_than_colours() -> None:
    names = [f"m{i}" for i in range(9)]
    requests = serving.merge(names, [np.arange(10.0 - i) for i in range(9)])
    empty = Placement((Group(Parallel(), ()),))
    run = serving.simulate(empty, requests, serving.synthetic_profile())
    assert kinds_of(run) == [*names[:6], "other models"]
    assert timeline_chart(run, empty) is None


def test_pages_of_runs() -> None:
    page = serving_page(served(), ONE, "<b>by hand</b>", command="windtunnel & more")
    page = page.replace("\xa0", " ")
    for text in (
        *("100.00 % of 4 requests in time; none refused.", "Time-line of groups"),
        *("GPU 1 to 2", "(1,1,2)", "&lt;b&gt;by hand&lt;/b&gt;", "windtunnel &amp; more"),
    ):
        assert text in page
    assert "<b>by hand" not in page
    assert "Models without a replica" not in page
    half = Placement((Group(Parallel(), (0,)),))
    page = serving_page(served(), half, "half", command="").replace("\xa0", " ")
    assert "Models without a replica: 1: b." in page
    assert "<script" not in page
    nothing = served().workload.window(-2.0, -1.0)
    stages = Stages(np.array([30.0]), np.array([2.0**30]), np.zeros(1))
    profile = Profile("hand", {(name, Parallel(), 1): stages for name in "ab"})
    empty = serving.simulate(ONE, nothing, profile)
    page = serving_page(empty, ONE, "empty", command="")
    assert "There was no request" in page.replace("\xa0", " ")


def test_pages_of_sweeps() -> None:
    spec = WorkloadSpec(num_models=3, duration=40.0, rate=6.0, slo_scale=3.0)
    over = {"rate": [4.0, 12.0], "gpus": [1, 2]}
    found = serving.sweep(spec, 2, over, {"sr": "sr", "mp": "mp-search"}, refine=0)
    rows = point_rows(found.rows, "rate", "slo_attainment")
    assert [row["figure"] for row in rows] == [
        100 * row["slo_attainment"] for row in found.rows if row["axis"] == "rate"
    ]
    encoding = panel(found.rows, "gpus", "slo_attainment").to_dict()["layer"][0]["encoding"]
    assert (encoding["x"]["title"], encoding["y"]["title"]) == (
        "GPUs",
        "Requests within their SLO, %",
    )
    page = result_page(sweep_result(found), command="windtunnel serving sweep").replace("\xa0", " ")
    for text in ("Attainment against GPUs", "n = ", "Groups of mp", "(1,1,1)"):
        assert text in page
    no_slo = serving.sweep(spec.but(slo_scale=None), 2, over, {"sr": "sr"}, refine=0)
    assert measures_of(no_slo, "rate") == ["mean_latency", "p99_latency"]
    assert measures_of(no_slo, "slo_scale") == ["slo_attainment", "mean_latency"]
    nothing = serving.sweep(spec, 1, {"gpus": [1]}, {"sr": "sr"}, mem_budget=1.0, refine=0)
    assert "No candidate is ahead" in result_page(sweep_result(nothing), command="").replace(
        "\xa0", " "
    )


def test_pages_of_language_models() -> None:
    zeros = np.zeros(4, dtype=np.int64)
    asked = np.array([[100, 5], [200, 1], [50, 9], [9000, 2]])
    trace = RequestTrace(
        "made", "vidur", np.array([0.0, 1.0, 2.0, 3.0]), zeros, ("",), asked[:, 0], asked[:, 1]
    )
    run = serving.simulate_llm(trace, LlmModel(0.01, 1e-4, 1e-4, 1e-7, kv_limit=1000))
    for name, count in (("ttft", 3), ("tpot", 2), ("e2e", 3)):
        values = np.sort(getattr(run, name)[~np.isnan(getattr(run, name))])
        rows = distribution_rows(run, name)
        assert len(values) == count
        assert (rows[0]["latency"], rows[-1]["latency"]) == (values[0], values[-1])
        assert (rows[0]["share"], rows[-1]["share"]) == (0, 100)
    by_rate = serving.goodput_by_rate(trace, run.model, [1.0, 2.0], ttft=0.5)
    goodput = [row["requests"] for row in rate_rows(by_rate) if row["kind"] == "goodput"]
    assert goodput == [row["goodput"] for row in by_rate]
    assert goodput_chart([]) is None
    page = result_page(
        llm_result(run, by_rate, {"ttft": 0.5, "tpot": math.inf}), command="windtunnel"
    )
    page = page.replace("\xa0", " ")
    for text in ("75.00 % of 4 requests met their SLOs.", "Goodput against rate", "0.5 s", "n = 4"):
        assert text in page
