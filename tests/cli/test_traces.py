"""`windtunnel traces`, `fetch` and `describe`."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from windtunnel.traces import registry
from windtunnel.traces import registry as published

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def test_the_list_holds_traces_formats_and_clusters(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WINDTUNNEL_DATA", raising=False)
    monkeypatch.setenv("WINDTUNNEL_CACHE", str(tmp_path))
    data = run("traces", "--json").json
    known = {trace["name"]: trace["available"] for trace in data["traces"]}
    assert known | {"philly": "download", "synthetic:kalos": "generated"} == known
    assert {"native", "swf", "philly"} <= {reader["name"] for reader in data["formats"]}
    assert {"kalos", "philly"} <= {cluster["name"] for cluster in data["clusters"]}
    printed = run("traces")
    assert (printed.code, printed.err) == (0, "")
    for text in ("philly", "to download", "synthetic:seren", ".swf", "2,416 GPUs"):
        assert text in printed.out


def test_fetch_prints_where_the_files_are(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content = b"timestamp,duration,num_gpus,gpu_time,cluster\n"
    file = published.PublishedFile(
        "jobs", "http://localhost:9/x", len(content), hashlib.sha256(content).hexdigest(), "x.csv"
    )
    entry = published.PublishedTrace("toy", "a toy", "CC0", "nobody", "philly", (file,))
    monkeypatch.setitem(published.PUBLISHED, "toy", entry)
    monkeypatch.setenv("WINDTUNNEL_DATA", str(tmp_path))
    (tmp_path / "x.csv").write_bytes(content)
    ran = run("fetch", "toy", "--json")
    files = {"jobs": str(tmp_path / "x.csv")}
    assert {"name": "toy", "files": files, "licence": "CC0"}.items() <= ran.json.items()
    assert "x.csv" in run("fetch", "toy").out


def test_a_published_trace_that_is_not_here_is_downloaded_before_it_is_read(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WINDTUNNEL_DATA", raising=False)
    monkeypatch.setenv("WINDTUNNEL_CACHE", str(tmp_path))
    asked = []

    def no_network(*args: Any, **_: Any) -> None:
        asked.append(args[0].name)
        raise registry.TraceError("philly", "a network")

    monkeypatch.setattr(registry, "_download", no_network)
    assert "a network" in refused("describe", "philly")
    assert asked == ["philly"]


def test_describe_tells_the_trace_in_numbers(run: Callable[..., Any], tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "job_id,submit_time,duration,num_gpus,vc,status\n"
        "a,0,3600,8,red,completed\nb,10,1800,1,blue,failed\nc,20,,1,,\n",
        encoding="utf-8",
    )
    data = run("describe", jobs, "--json").json
    assert data["trace"]["num_jobs"] == 3
    assert data["cluster"] is None
    assert data["overview"]["gpu_time"] == 8 * 3600 + 1800
    assert {row["vc"] for row in data["shares"]["vc"]} == {"red", "blue", "(none)"}
    assert set(data["shares"]) == {"num_gpus", "vc", "workload", "status"}
    printed = run("describe", jobs)
    assert (printed.code, printed.err) == (0, "")
    for text in ("jobs", "By virtual cluster", "red", "By status", "8.50 GPU h"):
        assert text in printed.out
    assert "By workload" not in printed.out


def test_describe_takes_the_options_of_synthetic_traces(run: Callable[..., Any]) -> None:
    data = run("describe", "synthetic:seren:jobs=50:seed=2", "--json").json
    assert data["trace"]["settings"]["seed"] == 2
    assert data["overview"]["num_jobs"] == 50
