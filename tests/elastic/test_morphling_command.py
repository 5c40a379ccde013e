"""``windtunnel morphling compare``, ``simulate --penalty`` and the charts of elastic runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from elastic_cases import MODELS, NODES, jobs_of

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.report.elastic_charts import comparison_chart, gpu_rows, timeline_chart
from windtunnel.study.elastic_comparison import ElasticComparison

if TYPE_CHECKING:
    from pathlib import Path

CSV = """\
name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla
bert-0,0,10,bert,4,32,0,zero-dp,1000,0
vit-1,5,10,vit,2,16,0,ga,100,1
"""


def command(*words: str) -> Any:
    """Run the command; return its result."""
    return CliRunner().invoke(windtunnel, list(words))


@pytest.fixture
def workload(tmp_path: Path) -> str:
    """A workload of two jobs."""
    path = tmp_path / "workload-tiny.csv"
    path.write_text(CSV)
    return str(path)


def test_simulate_with_a_penalty(workload: str) -> None:
    words = ("simulate", workload, "--cluster", "1x8:A800", "--policy", "fixed-plan", "--json")
    answer = json.loads(command(*words, "--penalty", "100").output)
    assert answer["avg_jct"] == pytest.approx(
        (2 * 100 + 1000 * 0.22865789473684212 + 100 * 0.08795470349928912) / 2
    )
    assert answer["settings"]["penalty"] == 100.0
    assert "--penalty 100" in answer["command"]
    refused = command(*words[:4], "--policy", "fifo", "--penalty", "100")
    assert refused.exit_code == 2
    assert "only elastic policies resize jobs" in refused.output


def test_elastic_and_other_policies_on_one_page(workload: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("compare", workload, "--cluster", "1x8:A800", "--policies", "fifo,morphling")
    result = command(*words, "--out", str(page))
    assert result.exit_code == 0, result.output
    assert "Changes a job" in page.read_text() or "GPU time launching" in page.read_text()
    assert "GPU time launching" in result.output


def test_compare_tells_every_run(workload: str, tmp_path: Path) -> None:
    words = ("morphling", "compare", "--traces", workload, "--policies", "fixed-plan,morphling")
    out = tmp_path / "figures"
    answer = json.loads(command(*words, "--out", str(out), "--json").output)
    assert [(row["policy"], row["penalty"]) for row in answer["runs"]] == [
        ("fixed-plan", 260.0),
        ("morphling", 260.0),
        ("fixed-plan", 0.0),
        ("morphling", 0.0),
    ]
    assert all(row["num_finished"] == 2 for row in answer["runs"])
    assert {path.name for path in out.iterdir()} >= {"comparison.html", "comparison.json"}
    assert len(answer["out"]) == 4
    shown = command(*words)
    assert shown.exit_code == 0
    assert "fixed-plan" in shown.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policies", "fifo"), "resizes no jobs"),
        (("--policies", "morphlin"), "Did you mean 'morphling'?"),
        (("--penalties", "x"), "expected such as 260,0"),
        (("--penalties", "-1"), "expected such as 260,0"),
        (("--policies", "morphling,morphling"), "each once"),
        (("--out", "/nowhere/at/all"), "expected a folder"),
    ],
)
def test_compare_refuses_in_one_message(
    workload: str, words: tuple[str, ...], message: str
) -> None:
    result = command("morphling", "compare", "--traces", workload, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def runs() -> dict[tuple[str, str, float], wt.Outcome]:
    """Two runs of a few jobs, one with a change."""
    jobs = jobs_of(
        (0, "steep", 4, "ga", 400), (3, "flat", 1, "ga", 60), (4, "steep", 8, "ga", 90, 1)
    )
    return {
        ("toy", name, 20.0): wt.simulate(jobs, NODES, name, models=MODELS, penalty=20.0)
        for name in ("fixed-plan", "morphling")
    }


def test_the_comparison_chart_has_a_bar_a_run() -> None:
    comparison = ElasticComparison(runs())
    chart = comparison_chart(comparison).to_dict()
    text = json.dumps(chart)
    assert "Completion time, mean, h" in text
    assert "n = 3 jobs" in text
    for row in comparison.rows():
        assert f"{row['avg_jct'] / 3600:.2f}" in text


def test_the_time_line_shows_what_was_held() -> None:
    for outcome in runs().values():
        rows = gpu_rows(outcome)
        held = sum((row["high"] - row["low"]) * (row["end"] - row["start"]) for row in rows)
        assert held * 3600 == pytest.approx(outcome.metrics()["gpu_time"])
        for row in rows:
            overlaps = [
                other
                for other in rows
                if other is not row
                and other["low"] < row["high"]
                and row["low"] < other["high"]
                and other["start"] < row["end"] - 1e-12
                and row["start"] < other["end"] - 1e-12
            ]
            assert not overlaps
        assert "GPU, node by node" in json.dumps(timeline_chart(outcome).to_dict())
    with pytest.raises(ValueError, match="not elastic"):
        gpu_rows(wt.simulate(jobs_of((0, "flat", 1, "ga", 1)), NODES, "fifo"))
