"""`windtunnel lab`: what is refused before a page is served. tests/browser has the page."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.lab.bench import current

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


def test_the_address_is_told_before_the_page_is_served(
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
