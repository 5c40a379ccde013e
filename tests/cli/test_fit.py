"""`windtunnel fit`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option
from windtunnel.traces.twin.twin import Twin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Four hundred jobs of people whose names must not get out."""
    rng = np.random.default_rng(0)
    rows = ["job_id,submit_time,duration,num_gpus,user,vc,workload,status"]
    for n in range(400):
        size = rng.choice([1, 1, 8])
        rows.append(
            f"zz{n},{n * 60},{int(rng.lognormal(6, 1)) + 1},{size},bob{n % 12},lab-x,Moonshot,"
            f"{'completed' if n % 4 else 'failed'}"
        )
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def fit_run() -> Callable[..., Any]:
    """Run the command by itself: ``fit_run(path, "--json")`` gives code, stdout and stderr."""
    group = debug_option(
        LazyGroup("windtunnel", homes={"fit": "windtunnel.cli.fit"})  # type: ignore[type-var]
    )

    def call(*words: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(group, ["fit", *(str(word) for word in words)])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout, result.stderr

    return call


def test_a_twin_is_written_and_compared(
    fit_run: Callable[..., Any], log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "log.twin.toml"
    code, shown, error = fit_run(log, "--out", out)
    assert (code, error) == (0, "")
    for words in ("run time, median", "GPU time", "jobs failed", "25 %", "smallest group", "5 jobs",
                  "differential privacy", "Next: windtunnel simulate"):  # fmt: skip
        assert words in shown
    text = out.read_text(encoding="utf-8")
    for secret in ("zz", "bob", "lab-x", "Moonshot", "log.csv"):
        assert secret not in text
    assert Twin.load(out).jobs == 400


def test_json_has_stable_keys(fit_run: Callable[..., Any], log: Path, tmp_path: Path) -> None:
    out = tmp_path / "log.twin.json"
    code, shown, _ = fit_run(
        log, "--out", out, "--min-count", 8, "--keep-workloads", "--seed", 3, "--json"
    )
    data = json.loads(shown)
    assert code == 0
    assert set(data) == {
        *("out", "bytes", "jobs", "min_count", "strata", "users", "kept", "fidelity", "judged"),
        *("notes", "command"),
    }
    assert (data["jobs"], data["min_count"], data["strata"]) == (400, 8, 2)
    assert (data["users"], data["kept"]) == (12, ["workload"])
    assert data["bytes"] == out.stat().st_size
    rows = {row["measure"]: row for row in data["fidelity"]}
    assert rows["jobs"] == {"measure": "jobs", "unit": "jobs", "source": 400.0, "twin": 400.0}
    assert rows["jobs failed"]["twin"] == rows["jobs failed"]["source"] == 0.25
    assert {row["kind"] for row in data["judged"]} == {"column", "pair", "flown"}
    assert "Moonshot" in out.read_text(encoding="utf-8")


def test_a_synthetic_trace_takes_jobs_and_seed(fit_run: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "k.twin.toml"
    code, shown, _ = fit_run("synthetic:kalos:jobs=600", "--seed", 1, "--out", out, "--json")
    assert code == 0
    assert json.loads(shown)["jobs"] == 600


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--out", "o.twin.toml", "--min-count", "300"], "too few to hide each among 300"),
        (["--out", "o.twin.toml", "--min-count", "1"], "--min-count"),
        (["--out", "o.twin.toml", "--bins", "1"], "--bins"),
        (["--out", "o.csv"], "expected .toml or .json"),
        (["--out", "o.json"], "o.twin.json"),
        (["--out", "nowhere/o.toml"], "folder that exists"),
        ([], "--out"),
    ],
)
def test_bad_input_writes_nothing(
    fit_run: Callable[..., Any],
    log: Path,
    tmp_path: Path,
    words: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, error = fit_run(log, *words)
    assert (code, out) == (2, "")
    assert expected in error
    assert error.count("Error: ") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_an_old_twin_outlives_a_refusal(
    fit_run: Callable[..., Any], log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.twin.toml"
    out.write_text("old", encoding="utf-8")
    code, _, _ = fit_run(log, "--out", out, "--min-count", 201)
    assert code == 2
    assert out.read_text(encoding="utf-8") == "old"
