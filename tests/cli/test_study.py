"""`windtunnel study`: run, show, compare and tune on the command line."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.report.latex import escaped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = "job_id,submit_time,duration,num_gpus,user\n" + "".join(
    f"j{i},{i * 3},{(i * 37) % 90 + 5},{(1, 1, 2, 4)[i % 4]},u{i % 7}\n" for i in range(80)
)
STUDY = """\
name = "small"
traces = ["jobs.csv"]
clusters = ["1x8"]
policies = ["fifo", "sjf"]
queueing = ["strict"]
loads = [0.8, 1.2]
seeds = 2
"""
SEARCH = """\
[search]
objective = "avg_jct"
policy = "las:quantum={quantum}"
trials = 3
[search.space]
quantum = { low = 5, high = 100, whole = true }
[search.constraints]
num_preemptions = { max = 100000 }
"""


def written(folder: Path) -> Path:
    (folder / "jobs.csv").write_text(JOBS, encoding="utf-8")
    path = folder / "small.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture(scope="module")
def flown(run: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the study, flown; no test writes into it."""
    folder = tmp_path_factory.mktemp("study")
    ran = run("study", "run", written(folder), "--out", folder / "out", "--workers", 1, "--json")
    assert (ran.code, ran.err) == (0, "")
    data = ran.json
    assert (data["num_runs"], data["num_finished"], data["num_failed"]) == (8, 8, 0)
    return folder / "out"


@pytest.mark.slow
def test_show_tells_averages_and_runs(run: Callable[..., Any], flown: Path) -> None:
    data = run("study", "show", flown, "--metric", "avg_wait,utilization", "--json").json
    assert [row["num_runs"] for row in data["averages"]] == [2, 2, 2, 2]
    for row in data["averages"]:
        values = [
            r["avg_wait"]
            for r in data["runs"]
            if (r["policy"], r["load"]) == (row["policy"], row["load"])
        ]
        assert row["avg_wait"] == pytest.approx(sum(values) / 2)
    ran = run("study", "show", flown)
    assert ran.code == 0
    for text in ("8 runs, all finished", "fifo", "sjf", "0.8", "Wait, mean"):
        assert text in ran.out
    assert "results.parquet" in "".join(ran.out.split())  # the path may be longer than a line


def test_compare_tells_changes_with_intervals(run: Callable[..., Any], flown: Path) -> None:
    words = ("study", "compare", flown, "--over", "users", "--metric", "avg_wait")
    data = run(*words, "--json").json
    assert data["baseline"] == "fifo"
    assert [c["condition"] and c["condition"]["load"] for c in data["contrasts"]] == [
        0.8,
        1.2,
        None,
    ]
    for contrast in data["contrasts"]:
        change = contrast["change"]
        assert change["num_draws"] == 7
        assert change["low"] <= change["estimate"] <= change["high"]
        assert contrast["verdict"] in ("better", "unclear")
    for claim in data["claims"]:
        assert re.search(r"95 % interval .+ to .+ \(n = 7 users\)", claim)
    ran = run(*words)
    assert ran.code == 0
    for text in ("policy against fifo", "95 % interval", "Claims", "Notes", "again with"):
        assert text in ran.out


@pytest.mark.slow
def test_no_claim_is_made_of_one_log_flown_twice(run: Callable[..., Any], flown: Path) -> None:
    ran = run("study", "compare", flown)
    assert "None: no interval excludes no change." in ran.out
    assert "the log is the same for every seed" in " ".join(ran.out.split())


@pytest.mark.slow
def test_the_page_opens_offline_and_holds_the_claims(
    run: Callable[..., Any], flown: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    data = run("study", "compare", flown, "--over", "users", "--out", page, "--json").json
    html = page.read_text("utf-8")
    assert data["page"] == str(page)
    assert not re.search(r'(src|href)="(https?:)?//', html)
    assert "<script" not in html
    assert html.count('<svg class="chart"') == 2
    plain = re.sub(r"\s+", " ", html.replace("\u00a0", " "))
    for claim in data["claims"]:
        assert re.sub(r"\s+", " ", claim) in plain
    first = page.read_bytes()
    run("study", "compare", flown, "--over", "users", "--out", page)
    assert page.read_bytes() == first


@pytest.mark.slow
def test_hostile_names_are_harmless_on_page_and_terminal(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text(JOBS.replace("u3", "<b>u3</b>"), encoding="utf-8")
    evil = "<script>alert(1)</script>\\u001b[31m"
    text = STUDY.replace('"jobs.csv"', f'{{ trace = "jobs.csv", name = "{evil}" }}')
    text = text.replace('"sjf"', f'{{ policy = "sjf", name = "{evil}" }}')
    (tmp_path / "evil.toml").write_text(text.replace('"small"', f'"{evil}"'), encoding="utf-8")
    out, page = tmp_path / "out", tmp_path / "page.html"
    assert run("study", "run", tmp_path / "evil.toml", "--out", out, "--workers", 1).code == 0
    ran = run("study", "compare", out, "--over", "users", "--out", page)
    assert ran.code == 0
    assert "\x1b" not in ran.out
    html = page.read_text("utf-8")
    assert "<script" not in html
    assert "\x1b" not in html


@pytest.mark.slow
def test_tune_finds_the_best_of_its_trials(
    run: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("optuna", reason="Optuna is not installed (extra search)")
    file.write_text(STUDY + SEARCH, encoding="utf-8")
    words = ("study", "tune", file, "--out", tmp_path / "out", "--workers", 1)
    data = run(*words, "--json").json
    assert len(data["trials"]) == 3
    assert data["best"]["objective"] == min(trial["objective"] for trial in data["trials"])
    assert set(data["baseline"]) == {"fifo", "sjf"}
    ran = run(*words)
    for text in ("Best: quantum", "To compare with", "fifo: ", "kept", "again with"):
        assert text in ran.out


@pytest.mark.slow
def test_the_folder_is_called_as_the_study(run: Callable[..., Any], file: Path) -> None:
    ran = run("study", "run", file, "--workers", 1)
    assert ran.code == 0
    assert (file.parent / "small" / "results.parquet").is_file()
    assert "windtunnel study compare" in ran.out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("polices = ['fifo']\n" + STUDY, "Did you mean 'policies'"),
        (STUDY.replace('"sjf"', '"sjff"'), "Did you mean 'sjf'"),
        (STUDY.replace('"1x8"', '"1y8"'), "NODESxGPUS"),
        (STUDY.replace("jobs.csv", "missing.csv"), "missing.csv"),
        (STUDY.replace("[0.8, 1.2]", "[0.8, 0.8]"), "twice"),
        ("[", "cannot be read as TOML"),
    ],
)
def test_a_wrong_study_is_refused(
    refused: Callable[..., str], file: Path, text: str, expected: str
) -> None:
    file.write_text(text, encoding="utf-8")
    assert expected in refused("study", "run", file)
    assert not (file.parent / "small").exists()


def test_wrong_words_are_refused(
    refused: Callable[..., str], file: Path, flown: Path, tmp_path: Path
) -> None:
    assert "cannot be read" in refused("study", "run", tmp_path / "no.toml")
    nowhere = tmp_path / "nowhere"
    assert "expected processes, ray" in refused(
        *("study", "run", file, "--on", "spark", "--out", nowhere)
    )
    assert not nowhere.exists()
    assert "folder of a study" in refused("study", "show", tmp_path)
    assert "Did you mean 'avg_wait'" in refused("study", "show", flown, "--metric", "avg_wat")
    assert "Did you mean 'sjf'" in refused("study", "compare", flown, "--baseline", "sjff")
    assert "at least one name" in refused("study", "compare", flown, "--metric", "")
    assert "at least one name" in refused("study", "show", flown, "--metric", ",")
    assert "no mean over jobs" in refused(
        *("study", "compare", flown, "--over", "weeks", "--metric", "p99_wait")
    )
    assert ".html" in refused("study", "compare", flown, "--out", tmp_path / "page.gif")
    assert "the study has none" in refused("study", "tune", file)


@pytest.mark.slow
def test_failures_are_reported(run: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    file.write_text(STUDY.replace('["1x8"]', '["1x8", "1x2"]'), encoding="utf-8")
    ran = run("study", "run", file, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 0
    assert "16 runs, all finished, 8 with an error." in ran.out
    assert "breaks the schema: column 'num_gpus'" in " ".join(ran.out.split())
    assert "SchemaError" in ran.out
    data = run("study", "show", tmp_path / "out", "--json").json
    assert len(data["failures"]) == 8
    assert json.dumps(data).count("SchemaError") >= 8


def test_paper_outputs_hold_the_comparison(
    run: Callable[..., Any], flown: Path, tmp_path: Path
) -> None:
    asked = ("study", "compare", flown, "--over", "users", "--out")
    data = run(*asked, tmp_path / "numbers.csv", "--json").json
    rows = list(csv.DictReader((tmp_path / "numbers.csv").read_text("utf-8").splitlines()))
    assert {row["unit"] for row in rows if row["metric"] == "avg_wait"} == {"s"}
    assert [row["metric"] for row in rows] == [c["metric"] for c in data["contrasts"]]
    for row, contrast in zip(rows, data["contrasts"], strict=True):
        assert float(row["change"]) == contrast["change"]["estimate"]
        assert (row["policy"], row["verdict"]) == (contrast["value"], contrast["verdict"])
    run(*asked, tmp_path / "tables.tex")
    tables = (tmp_path / "tables.tex").read_text("utf-8")
    assert tables.count(r"\begin{tabular}") == len(data["metrics"])
    assert all(escaped(contrast["value"]) in tables for contrast in data["contrasts"])
    run(*asked, tmp_path / "figure.svg")
    words = (tmp_path / "figure.svg").read_text("utf-8")
    assert all(contrast["value"] in words for contrast in data["contrasts"])
    assert "Wait, mean" in words
    run(*asked, tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
