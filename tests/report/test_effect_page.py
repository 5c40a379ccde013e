"""The page of what prediction buys: harmless, and its sentences follow the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from windtunnel.report import effect_charts, effect_findings
from windtunnel.report.effect_result import effect_result
from windtunnel.report.result_page import result_page
from windtunnel.schema import as_jobs
from windtunnel.study.prediction_effect import PredictionEffect, prediction_effect
from windtunnel.traces import Trace, TraceMetadata

EVIL = "<script>alert(1)</script>"


def jobs(*, gang: bool) -> dict[str, Any]:
    """Pairs of 10 s on two GPUs, behind two of 100 s each time, and a gang of two if wanted."""
    rows = []
    for start in range(0, 4000, 400):
        rows += [(start, 10, 1)] * 2 + [(start + 1, 100, 1)] * 2 + [(start + 2, 10, 1)] * 2
    rows += [(1, 20, 2)] if gang else []
    rows.sort()
    return {
        "submit_time": [row[0] for row in rows],
        "duration": [row[1] for row in rows],
        "num_gpus": [row[2] for row in rows],
        "user": ["u"] * len(rows),
    }


def study(table: dict[str, Any], cluster: str = "pool:2", **options: Any) -> PredictionEffect:
    asked = {"loads": [0.3], "models": ["oracle"], "agings": [1], "reservations": False}
    return prediction_effect(table, cluster, **{**asked, **options})


@pytest.fixture(scope="module")
def found() -> PredictionEffect:
    return study(jobs(gang=True), models=["oracle", "sju"], loads=[0.3, 0.5])


def test_names_of_the_trace_stay_text(found: PredictionEffect) -> None:
    about = TraceMetadata(name=EVIL, source=EVIL, licence=None, notes=(EVIL,))
    page = result_page(effect_result(found, Trace(as_jobs(jobs(gang=True)), about)), command=EVIL)
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<svg ") == 4


def test_the_same_study_gives_the_same_page(found: PredictionEffect) -> None:
    trace = Trace(as_jobs(jobs(gang=True)), TraceMetadata(name="made-up", source="", licence=None))
    first, second = (result_page(effect_result(found, trace), command="again") for _ in range(2))
    assert first == second


def test_a_gain_is_reported_with_its_numbers() -> None:
    """Of six jobs two wait 9 s and two 108 s; shortest first makes that 8 and 19 (8 + 10 + 1)."""
    table = jobs(gang=False)
    load = 2400 / (2 * 3602)
    found = study(table, loads=[load])
    (fifo, sjf, _) = found.runs.to_pylist()
    assert fifo["avg_wait"] == pytest.approx((9 + 9 + 108 + 108) / 6)
    assert sjf["avg_wait"] == pytest.approx((8 + 8 + 19 + 19) / 6)
    text = effect_findings.headline(found)
    assert "oracle cuts the mean wait by 77 % (9 s instead of 39 s)" in text
    assert "of the gain" not in text  # shortest first itself is chosen: there is nothing to keep


def test_no_gain_is_reported_as_none() -> None:
    found = study(jobs(gang=False), "pool:64", loads=[0.001])
    text = effect_findings.headline(found)
    assert text == (
        "Predicting run times gains nothing here: at load 0.001 nobody waits under fifo."
    )
    assert "No setting keeps to it" in dict(effect_findings.sentences(found))["What to run"]


def test_starvation_is_reported_where_it_is_and_denied_where_not(found: PredictionEffect) -> None:
    text = dict(effect_findings.sentences(found))["Where big jobs starve"]
    for load in found.loads:
        bad = {r["model"] for r in found.at(load) if r["kind"] == "shortest" and r["starves"]}
        line = text[text.index(f"At load {load:g} ") :].split(". ")[0]
        assert ("under no predictor" in line) == (not bad)
        for name in bad:
            assert f"{name} (P99" in line


def test_charts_draw_the_tables(found: PredictionEffect) -> None:
    rows = effect_charts.wait_rows(found)
    names = {row["policy"] for row in rows}
    assert {"fifo", "sjf:by=oracle", "sjf:by=sju"} <= names
    assert {row["load"] for row in rows} == {"load 0.3", "load 0.5"}
    points = effect_charts.tradeoff_rows(found)
    base = [row for row in points if row["kind"] == "fifo"]
    assert [(row["wait"], row["big"], row["step"]) for row in base] == [(1, 1, 0)] * 2
    steps = [row["step"] for row in points if row["load"] == "load 0.3"]
    assert sorted(steps) == list(range(len(steps)))
    curves = effect_charts.errors_chart(found).to_dict()["layer"][1]["data"]["values"]
    assert {row["model"] for row in curves} == {
        "sju (n = 54)"
    }  # nothing has ended before the first seven
    title = effect_charts.waits_chart(found).to_dict()["spec"]["encoding"]["x"]["title"]
    assert title.startswith("Mean wait (log scale")


def test_a_mean_wait_that_falls_with_the_load_is_explained(found: PredictionEffect) -> None:
    """At the higher load short jobs keep the gang out; at the lower they wait for it."""
    rows = [(0, 10, 1), (5, 100, 2), *((8 + 8 * k, 10, 1) for k in range(21))]
    names = ("submit_time", "duration", "num_gpus")
    table: dict[str, Any] = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    falling = study({**table, "user": ["u"] * len(rows)}, loads=[0.625, 1.25])
    waits = {row["load"]: row["avg_wait"] for row in falling.runs.to_pylist()[::3]}
    assert waits[1.25] < waits[0.625]
    text = dict(effect_findings.sentences(falling))["What prediction buys"]
    assert "Under fifo the mean wait at load 1.25 is shorter than at 0.625" in text
    assert "jobs of 2 GPUs, n = 1: mean wait 0 s at load 0.625, 2 m 5" in text
    assert "is shorter than" not in dict(effect_findings.sentences(found))["What prediction buys"]
