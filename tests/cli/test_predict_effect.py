"""`windtunnel predict effect`: its JSON, its words, its page, and what it refuses."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel.study import effect_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORDS = ("--cluster", "pool:4", "--model", "oracle,sjg", "--loads", "0.8,1.2", "--aging", "1,10")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two hundred jobs of recurring groups on few GPUs, one of them without a duration."""
    rng = np.random.default_rng(1)
    rows = ["job_id,submit_time,start_time,end_time,num_gpus,user,template"]
    for n in range(200):
        kind = int(rng.integers(4))
        start, run = n * 60 + 5, int(20 * 4**kind * rng.lognormal(0, 0.2)) + 1
        gpus = 4 if n % 40 == 7 else 1
        end = "" if n == 50 else start + run
        rows.append(f"j{n},{n * 60},{start},{end},{gpus},u{kind % 2},t{kind}")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_json_holds_every_run_at_every_load(run: Callable[..., Any], log: Path) -> None:
    data = run("predict", "effect", log, *WORDS, "--json").json
    labels = [
        *("fifo", "sjf:by=oracle", "sjf:by=sjg", "sjf:by=sjg:aging=1", "sjf:by=sjg:aging=10"),
        *("sjf:by=sjg + easy", "easy-sjbf:estimates=sjg"),
    ]
    assert [(r["load"], r["policy"]) for r in data["runs"]] == [
        (load, label) for load in (0.8, 1.2) for label in labels
    ]
    assert {r["num_finished"] for r in data["runs"]} == {199} == {data["num_flown"]}
    assert data["num_rejected"] == 1
    assert data["model"] == "sjg"
    assert data["big"] == {"least_gpus": 4, "sizes": ["3-4"], "num_jobs": 5}
    assert [(p["model"], p["peeks"]) for p in data["predictions"]] == [
        ("oracle", True),
        ("sjg", False),
    ]
    assert data["predictions"][0]["error_cdf"][0] == {"error": 0.0, "share": 1.0, "n": 199}
    assert (
        sum(row["n"] for row in data["predictions"][1]["by_size"])
        == (data["predictions"][1]["num_predicted"])
    )
    assert [row["load"] for row in data["choice"]["by_load"]] == [0.8, 1.2]
    assert data["choice"]["tolerance"] == 1.1
    assert set(data["sentences"]) == {
        *("What prediction buys", "How far off it is", "Where it helps"),
        *("Where big jobs starve", "What to run"),
    }
    sizes = [r for r in data["sizes"] if r["load"] == 0.8 and r["policy"] == "fifo"]
    assert [(r["size"], r["num_jobs"]) for r in sizes] == [("1", 194), ("3-4", 5)]
    fifo = data["runs"][0]
    mean = sum(r["num_jobs"] * r["avg_wait"] for r in sizes) / 199
    assert mean == pytest.approx(fifo["avg_wait"])


def test_the_command_that_is_shown_gives_the_same_again(run: Callable[..., Any], log: Path) -> None:
    first = run("predict", "effect", log, *WORDS, "--no-reservations", "--json").json
    again = shlex.split(first["command"])
    assert again[0] == "windtunnel"
    assert run(*again[1:], "--json").json == first


def test_words_and_page(run: Callable[..., Any], log: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = run("predict", "effect", log, *WORDS, "--out", page)
    assert ran.code == 0
    assert "What to run" in ran.out
    assert "again with" in ran.out
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "<script" not in html
    assert "http:" not in html.replace('xmlns="http://www.w3.org/2000/svg"', "").replace(
        'xmlns:xlink="http://www.w3.org/1999/xlink"', ""
    )
    assert html.count("<svg ") == 4
    for label in ("sjf:by=sjg:aging=10", "easy-sjbf:estimates=sjg", "Load 1.2"):
        assert label in html


def test_a_study_without_cures_still_has_its_page(
    run: Callable[..., Any], log: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ("--cluster", "pool:4000", "--model", "oracle", "--loads", "0.1", "--aging", "none")
    ran = run("predict", "effect", log, *words, "--no-reservations", "--out", page)
    assert ran.code == 0
    assert "gains nothing here: at load 0.1 nobody waits" in " ".join(ran.out.split())
    assert "Nothing to draw" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--loads", "0.9,zero"), "numbers above 0"),
        (("--loads", "1,1"), "each once"),
        (("--loads", "none"), "1 or more"),
        (("--aging", "-1"), "numbers above 0"),
        (("--model", "oracel"), "oracle"),
        (("--model", ","), "at least one predictor"),
        (("--model", "sjg,sjg"), "twice"),
        (("--cluster", "pai/0"), "1/0"),
        (("--cluster", "nowhere/2"), "nowhere/2"),
        (("--placement", "bestfit"), "best_fit"),
        (("--out", "page.txt"), ".html"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    refused: Callable[..., str], log: Path, words: tuple[str, ...], expected: str
) -> None:
    assert expected in refused("predict", "effect", log, "--cluster", "pool:4", *words)


def test_defaults_are_the_studys_own() -> None:
    from windtunnel.cli import predict_effect

    def numbers(text: str) -> tuple[float, ...]:
        return tuple(float(word) for word in text.split(","))

    assert numbers(predict_effect.LOADS) == effect_settings.LOADS
    assert numbers(predict_effect.AGINGS) == effect_settings.AGINGS
    assert tuple(predict_effect.MODELS.split(",")) == effect_settings.MODELS
