"""Results as tables, in notebooks, and in files."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import windtunnel as wt
from windtunnel.study.grid.measure import SCHEMA
from windtunnel.testing import assert_outcomes_equal

JOBS: dict[str, Any] = {
    "job_id": ["a", "<b>&", "c"],
    "submit_time": [0, 0, 1],
    "duration": [30, 10, 25],
    "num_gpus": [1, 2, 1],
    "estimate": [40, 40, 40],
}
WAYS: list[dict[str, Any]] = [
    {},
    {"policy": "srtf", "queueing": "easy", "slowdown": "spread=0.5"},
    {"disruptions": "mtbf:20s/mttr:3s", "seed": 3},
    {"until": 5.0, "placement": "fgd", "bind_types": ()},
    {"policy": "nobody", "oversize": "reject"},
]


def flown(**options: Any) -> wt.Outcome:
    options = {"policy": "fifo", **options}
    if options["policy"] == "nobody":
        options["policy"] = lambda jobs: -jobs.num_gpus
    return wt.simulate({**JOBS, "num_gpus": [1, 2, 9]} if "oversize" in options else JOBS,
                       "1x2:A100", **options)  # fmt: skip


def results(runs: int) -> wt.Results:
    rows = [{"policy": "<i>", "seed": seed, "avg_wait": 3.0} for seed in range(runs)]
    manifest = {"name": "<b>", "runs": [*map(str, range(40))]}
    return wt.Results(Path("study"), manifest, pa.Table.from_pylist(rows, schema=SCHEMA))


def test_an_outcome_is_a_table_wherever_tables_are_taken() -> None:
    outcome = flown()
    assert pa.table(outcome).equals(outcome.table)
    frame = pd.DataFrame(outcome)
    assert list(frame.columns) == outcome.table.column_names
    assert frame["wait"].tolist() == outcome.table["wait"].to_pylist()
    found = duckdb.sql("select max(wait) from outcome").fetchall()
    assert found == [(max(outcome.table["wait"].to_pylist()),)]
    runs = wt.compare(JOBS, "1x2", ["fifo", "sjf"])
    assert pd.DataFrame(runs)["policy"].tolist() == ["fifo", "sjf"]
    assert pa.table(runs).equals(runs.table)


def test_polars_takes_an_outcome() -> None:
    pl = pytest.importorskip("polars", reason="polars is of the extra docs")
    outcome = flown()
    assert pl.DataFrame(outcome)["wait"].to_list() == outcome.table["wait"].to_pylist()


def test_a_trace_serves_wherever_jobs_are_asked_for() -> None:
    trace = wt.open_trace("synthetic:kalos:jobs=50:seed=1")
    whole = wt.simulate(trace, "kalos")
    assert_outcomes_equal(whole, wt.simulate(trace.jobs, "kalos"))


@pytest.mark.parametrize("options", WAYS)
def test_an_outcome_comes_back_as_it_was(options: dict[str, Any], tmp_path: Path) -> None:
    outcome = flown(**options)
    outcome.save(tmp_path / "a")
    outcome.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = wt.Outcome.load(tmp_path / "a")
    assert_outcomes_equal(outcome, again)
    assert again.settings == outcome.settings
    assert again.metrics() == outcome.metrics()
    assert again.table.equals(outcome.table)


@pytest.mark.data
def test_an_elastic_outcome_comes_back(data_dir: Path, tmp_path: Path) -> None:
    trace = wt.open_trace("morphling:base:jobs=first-10")
    outcome = wt.simulate(trace.jobs, "8x8", "morphling")
    outcome.save(tmp_path / "run")
    again = wt.Outcome.load(tmp_path / "run")
    assert again.metrics() == outcome.metrics()
    assert again.segments.equals(outcome.segments)


def test_comparisons_traces_and_studies_come_back(tmp_path: Path) -> None:
    runs = wt.compare(JOBS, "1x2", ["fifo", "sjf"])
    runs.save(tmp_path / "runs")
    again = wt.Comparison.load(tmp_path / "runs")
    assert again.table.equals(runs.table)
    assert_outcomes_equal(again["sjf"], runs["sjf"])
    trace = wt.open_trace("synthetic:kalos:jobs=50:seed=1")
    trace = replace(trace, holdings=pa.table({"job_id": ["x"]}))
    trace.save(tmp_path / "trace")
    loaded = wt.Trace.load(tmp_path / "trace")
    assert loaded.jobs.equals(trace.jobs)
    assert loaded == replace(trace, jobs=loaded.jobs, holdings=loaded.holdings)
    study = wt.Study.from_mapping({"traces": ["philly"], "policies": ["fifo"], "seeds": 3})
    study.save(tmp_path / "study.toml")
    read = wt.Study.load(tmp_path / "study.toml")
    assert read.trace_entries() == study.trace_entries()
    assert (read.policies, read.seeds) == (study.policies, study.seeds)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "run"
    flown().save(path)
    with pytest.raises(wt.TraceError, match="found 'a outcome'; expected a windtunnel trace"):
        wt.Trace.load(path)
    with pytest.raises(wt.TraceError, match=r"It cannot be read: .*No such file"):
        wt.Outcome.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("job_id,submit_time\n")
    with pytest.raises(wt.TraceError, match="text: expected a windtunnel outcome as"):
        wt.Outcome.load(tmp_path / "text")
    with zipfile.ZipFile(path) as archive:
        about = json.loads(archive.read("about.json"))
    for change, message in (
        ({"version": 0}, "It has layout 0, this windtunnel reads 1: make it again"),
        ({"value": {"record": ["Popen", {}]}}, "It cannot be read: 'Popen'"),
        ({"value": {"record": ["Outcome", {}]}}, "It was altered"),
    ):
        with zipfile.ZipFile(tmp_path / "changed", "w") as archive:
            archive.writestr("about.json", json.dumps({**about, **change}))
        with pytest.raises(wt.TraceError, match=message):
            wt.Outcome.load(tmp_path / "changed")


def test_results_of_a_study_and_traces_are_tables_too() -> None:
    found = results(30)
    assert pa.table(found).equals(found.table)
    assert pd.DataFrame(found)["policy"].tolist() == ["<i>"] * 30
    trace = wt.open_trace("synthetic:kalos:jobs=50:seed=1")
    assert pd.DataFrame(trace)["job_id"].tolist() == trace.jobs["job_id"].to_pylist()
    pl = pytest.importorskip("polars", reason="polars is of the extra docs")
    assert pl.DataFrame(found)["seed"].to_list() == list(range(30))
    assert pl.DataFrame(trace).shape == trace.jobs.shape


def test_a_notebook_shows_the_first_runs_of_a_study() -> None:
    page = results(30)._repr_html_()
    assert "<strong>&lt;b&gt;: 30 of 40 runs</strong>" in page
    assert page.count("<tr>") == 21
    assert "<td>&lt;i&gt;</td>" in page
    assert "The first 20 are shown." in page
    assert "<ul>" not in results(3)._repr_html_()


def test_what_a_notebook_shows_is_escaped() -> None:
    runs = wt.compare(JOBS, "1x2", ["fifo", "sjf"])
    trace = wt.open_trace("synthetic:kalos:jobs=50:seed=1")
    trace = replace(trace, metadata=replace(trace.metadata, name="<script>", notes=("<img>",)))
    study = wt.Study.from_mapping({"traces": ["<b>"], "policies": ["fifo"], "name": "<i>"})
    for shown in (flown(), runs, trace, study):
        page = shown._repr_html_()
        assert page.startswith("<div><p><strong>")
        assert page.count("<td>") > 3
        for tag in ("<script>", "<img>", "<b>", "<i>"):
            assert tag not in page
    assert "<td>fifo</td>" in runs._repr_html_()
