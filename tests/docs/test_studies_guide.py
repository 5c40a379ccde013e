"""The STUDY.toml of the guide to studies is flown, compared and tuned as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from windtunnel.cli.root import windtunnel
from windtunnel.study.grid import Study

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "studies.md"
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _run(*words: str) -> dict[str, object]:
    result = CliRunner().invoke(windtunnel, ["study", *words, "--json"])
    assert result.exit_code == 0, result.stderr
    data: dict[str, object] = json.loads(result.stdout)
    return data


@pytest.mark.slow
def test_the_guides_study_runs(tmp_path: Path) -> None:
    study, search = BLOCK.findall(GUIDE.read_text(encoding="utf-8"))
    file, out = tmp_path / "STUDY.toml", str(tmp_path / "out")
    file.write_text(study + search, encoding="utf-8")
    assert Study.load(file).search is not None
    data = _run("run", str(file), "--out", out, "--workers", "2")
    assert (data["num_runs"], data["num_failed"]) == (4 * 2 * 6, 0)
    compared = _run("compare", out, "--out", str(tmp_path / "page.html"))
    assert compared["baseline"] == "fifo"
    assert (tmp_path / "page.html").is_file()
    pytest.importorskip("optuna", reason="Optuna is not installed (extra search)")
    trials = _run("tune", str(file), "--out", out, "--workers", "2")["trials"]
    assert isinstance(trials, list)
    assert len(trials) == 12
