"""`windtunnel lab`: what is refused before a page is served. tests/browser has the page."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.lab.bench import current
from windtunnel.lab.export import study_toml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("marimo", reason="needs the extra 'lab'")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be served; nothing is."""
    benches: list[Any] = []
    monkeypatch.setattr("windtunnel.lab.server.Server.serve", lambda _: benches.append(current()))
    return benches


def test_the_address_is_printed_before_the_page_is_served(
    run: Callable[..., Any], lecture: Path, served: list[Any]
) -> None:
    data = run("lab", lecture, "--port", 0, "--json").json
    assert data["url"].startswith("http://127.0.0.1:")
    assert data["trace"]["num_jobs"] == 4
    (bench,) = served
    assert bench.source.trace == str(lecture)
    out = " ".join(run("lab", lecture, "--port", 0, "--no-browser").out.split())
    assert "is at http://127.0.0.1:" in out


def test_without_a_trace_it_shows_jobs_like_serens(
    run: Callable[..., Any], served: list[Any]
) -> None:
    run("lab", "synthetic:seren:jobs=50", "--port", 0, "--json", "--seed", 3)
    (bench,) = served
    assert (bench.source.trace, bench.source.reading) == ("synthetic:seren:jobs=50", {})
    assert bench.source.seed == 3
    assert bench.trace.jobs.num_rows == 50


def test_a_port_that_is_taken_is_refused(
    refused: Callable[..., str], lecture: Path, served: list[Any]
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        message = refused("lab", lecture, "--port", other.getsockname()[1])
    assert "expected a free port" in message
    assert served == []


def test_what_is_missing_is_named(
    refused: Callable[..., str], lecture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "marimo", None)
    assert "pip install 'windtunnel[lab]'" in refused("lab", lecture)


def test_a_trace_that_cannot_be_read_is_refused(refused: Callable[..., str]) -> None:
    assert "no/such.csv" in refused("lab", "no/such.csv", "--port", 0)


SITE = """
[site]
cluster = "3x8"
slowdown = "spread=0.5"
[scheduler]
policy = "sjf"
queueing = "skip"
restore_time = 60
"""


@pytest.mark.parametrize("option", ["--cluster", "--site"])
@pytest.mark.parametrize(
    ("words", "nodes", "gpus"),
    [("4x8:A100", 4, 8), ("kalos", 302, 8), ("c.toml", 2, 4), ("site.toml", 3, 8)],
)
def test_the_controls_stand_at_the_cluster_that_is_named(
    run: Callable[..., Any],
    served: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    words: str,
    nodes: int,
    gpus: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text('name = "c"\n[[node_types]]\ncount = 2\ngpus = 4\n')
    (tmp_path / "site.toml").write_text(SITE)
    run("lab", "synthetic:kalos:jobs=40", option, words, "--port", 0, "--json")
    (bench,) = served
    assert (bench.first.nodes, bench.first.gpus_per_node) == (nodes, gpus)
    assert bench.source.cluster == words
    (outcome,) = bench.fly(replace(bench.first, policies=("fifo", "fifo"))).values()
    assert outcome.cluster.num_gpus == nodes * gpus


def test_a_site_file_holds_as_a_whole(
    run: Callable[..., Any], served: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.toml").write_text(SITE)
    run("lab", "synthetic:kalos:jobs=60", "--site", "site.toml", "--port", 0, "--json")
    (bench,) = served
    first = bench.first
    assert (first.policies, first.queueing) == (("sjf", "srtf"), "skip")
    outcomes = bench.fly(first)
    for policy, outcome in outcomes.items():
        words = ("--policy", policy, "--oversize", "reject", "--incomplete", "reject", "--json")
        same = run("simulate", "synthetic:kalos:jobs=60", "--site", "site.toml", *words).json
        assert outcome.metrics()["avg_jct"] == same["avg_jct"]
    (tmp_path / "STUDY.toml").write_text(study_toml(bench, first))
    run("study", "run", "STUDY.toml", "--out", "runs", "--workers", 1, "--json")
    found = run("study", "show", "runs", "--json").out
    assert all(str(outcome.metrics()["avg_jct"])[:8] in found for outcome in outcomes.values())


@pytest.mark.parametrize("words", ["nope", "0x8", "4x", "1000001x8", "pool:9" + "9" * 30])
def test_a_cluster_that_is_none_is_refused_before_anything_is_served(
    refused: Callable[..., str], served: list[Any], words: str
) -> None:
    message = refused("lab", "synthetic:kalos:jobs=40", "--cluster", words, "--port", 0)
    assert refused("simulate", "synthetic:kalos:jobs=40", "--cluster", words) == message
    assert served == []
