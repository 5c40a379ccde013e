"""`windtunnel predict durations`."""

from __future__ import annotations

import importlib.util
import json
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option
from windtunnel.predictors import backtest
from windtunnel.predictors.knowledge import KNOWN_AFTER
from windtunnel.traces.native import read_native

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three hundred jobs of recurring templates."""
    rng = np.random.default_rng(0)
    rows = ["job_id,submit_time,start_time,end_time,num_gpus,user,template,estimate,status"]
    for n in range(300):
        kind = int(rng.integers(4))
        start = n * 600 + int(rng.integers(100))
        run = int((kind + 1) * 200 * rng.lognormal(0, 0.3)) + 1
        rows.append(
            f"j{n},{n * 600},{start},{start + run},{2**kind},u{n % 3},t{kind},{2 * run},completed"
        )
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def predict_run() -> Callable[..., tuple[int, str, str]]:
    """Run the command by itself: ``predict_run("durations", path)`` gives code, stdout, stderr."""
    group = debug_option(
        LazyGroup("windtunnel", homes={"predict": "windtunnel.cli.predict"})  # type: ignore[type-var]
    )

    def call(*words: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(group, ["predict", *(str(word) for word in words)])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout, result.stderr

    return call


def test_json_holds_every_model_with_its_measures(
    predict_run: Callable[..., Any], log: Path
) -> None:
    models = "rolling,sjg,requested,noise"
    code, out, err = predict_run(
        "durations", log, "--model", models, "--interval", "0.8", "--seed", 3, "--json"
    )
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert set(data) == {"headline", "trace", "models", "notes", "command", "out"}
    assert [model["model"] for model in data["models"]] == [
        "rolling", "sjg", "requested", "noise:seed=3"
    ]  # fmt: skip
    jobs = read_native(log).jobs
    for name, found in zip(models.split(","), data["models"], strict=True):
        expected = backtest(jobs, name, coverage=0.8, seed=3)
        assert {k: found[k] for k in expected.summary()} == expected.summary()
        assert found["error_cdf"] == expected.error_cdf().to_pylist()
        assert found["by_size"] == expected.by_size().to_pylist()
        assert found["by_recurrence"] == expected.by_recurrence().to_pylist()
        assert found["by_source"] == expected.by_source().to_pylist()
        assert found["settings"]["coverage"] == 0.8
    asked = data["models"][2]
    assert (asked["within_50"], asked["within_100"], asked["median_error"]) == (0.0, 1.0, 1.0)
    assert [model["peeks"] for model in data["models"]] == [False, False, False, True]
    assert any("noise:seed=3: knows the true run times" in note for note in data["notes"])


def test_the_terminal_shows_models_side_by_side(predict_run: Callable[..., Any], log: Path) -> None:
    code, out, err = predict_run(
        "durations", log, "--model", "rolling,oracle", "--warm-up", "1d", "--horizon", "2d"
    )
    assert (code, err) == (0, "")
    for text in ("rolling", "oracle", "\u2264 25 %", "off by at most 25 %", "By GPUs of the job",
                 "By recurrence of the template", "recurring", "144 of 300 jobs are judged",
                 "knows the true run times", "again with"):  # fmt: skip
        assert text in " ".join(out.split())
    assert "interval" not in out
    # A line may break anywhere between two words: it is as wide as the log's path lets it be.
    shown = " ".join(predict_run("durations", log, "--interval", 0.9)[1].split())
    assert "90 %" in shown
    assert "lies in the predicted interval" in shown


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_every_prediction_is_written_and_the_command_gives_it_again(
    predict_run: Callable[..., Any], log: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"predicted{ending}"
    words = ("--model", "rolling:last=5,sju", "--known-after", "end", "--refresh", "6h",
             "--interval", "0.5", "--horizon", "1d", "--out", out, "--json")  # fmt: skip
    data = json.loads(predict_run("durations", log, *words)[1])
    table = pq.read_table(out) if ending == ".parquet" else pcsv.read_csv(out)
    assert table.num_rows == 600
    assert table.column_names == [
        *("model", "job_id", "predicted", "source", "runs", "history", "template_runs"),
        *("trained_on", "low", "high", "submit_time", "num_gpus", "duration", "judged"),
    ]
    assert table["model"].to_pylist() == ["rolling:last=5"] * 300 + ["sju"] * 300
    assert sum(table["judged"].to_pylist()) == 2 * 144
    before = out.read_bytes()
    out.unlink()
    command = shlex.split(data["command"])
    assert command[:3] == ["windtunnel", "predict", "durations"]
    assert predict_run(*command[2:])[0] == 0
    assert out.read_bytes() == before


@pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="scikit-learn is of the extra ml"
)
def test_trees_are_trained_as_often_as_asked_for(
    predict_run: Callable[..., Any], log: Path
) -> None:
    code, out, _ = predict_run(
        *("durations", log, "--model", "cart", "--refresh-jobs", 50, "--min-history", 60),
        *("--train-last", 80, "--json"),
    )
    assert code == 0
    (found,) = json.loads(out)["models"]
    settings = found["settings"]
    assert (settings["refresh"], settings["refresh_jobs"]) == (None, 50)
    assert (settings["min_history"], settings["train_last"]) == (60, 80)
    sources = {row["source"]: row["n"] for row in found["by_source"]}
    # The first hundred completions come with the fall-back: 60 are not enough for a round 50.
    assert 195 <= sources["model"] <= 200
    assert found["num_fallback"] == 300 - sources["model"] - sources["none"]


def test_a_synthetic_trace_is_predicted_too(predict_run: Callable[..., Any]) -> None:
    code, out, _ = predict_run(
        "durations", "synthetic:kalos:jobs=500", "--seed", 2, "--model", "rolling", "--json"
    )
    assert code == 0
    assert json.loads(out)["models"][0]["num_jobs"] == 500


#: Words behind ``predict durations FILE`` -> what the message must hold.
WRONG = {
    ("--model", "rollin"): ["'rollin'", "Did you mean 'rolling'?"],
    ("--model", "rolling:lst=2"): ["'lst'", "Did you mean 'last'?"],
    ("--model", "rolling,rolling:last=10"): ["twice"],
    ("--model", ","): ["at least one predictor"],
    ("--model", "column:nope"): ["'nope'", "no column"],
    ("--model", "column:user"): ["'u0' in row 1", "numbers of seconds"],
    ("--refresh", "soon"): ["--refresh", "'soon'"],
    ("--refresh", "0"): ["refresh", "> 0"],
    ("--refresh", "1d", "--refresh-jobs", "5"): ["refresh", "one of them"],
    ("--interval", "1.5"): ["--interval", "1.5"],
    ("--known-after", "ended"): ["Did you mean 'end'?"],
    ("--warm-up", "2d", "--horizon", "1d"): ["--horizon", "--warm-up"],
    ("--warm-up", "900d"): ["no job was submitted"],
    ("--out", "predicted.txt"): [".csv or .parquet"],
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_words_are_refused_in_one_message(
    predict_run: Callable[..., Any], log: Path, words: tuple[str, ...]
) -> None:
    code, out, err = predict_run("durations", log, *words)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("Error: ") == 1
    for word in WRONG[words]:
        assert word in err


def test_jobs_that_never_ended_cannot_be_judged(
    predict_run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "open.csv"
    path.write_text("job_id,submit_time,duration,num_gpus,status\na,0,5,1,running\n", "utf-8")
    code, out, err = predict_run("durations", path)
    assert (code, out) == (2, "")
    assert "open.csv" in err
    assert "has ended" in err


def test_help_names_what_may_be_predicted(predict_run: Callable[..., Any]) -> None:
    assert "durations" in predict_run("--help")[1]
    assert "Did you mean 'durations'?" in predict_run("duration", "x")[2]
    help_text = predict_run("durations", "--help")[1]
    for name in KNOWN_AFTER:
        assert name in help_text
