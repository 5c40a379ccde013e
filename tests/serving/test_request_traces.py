"""Recorded requests: what is in the files, how they become workloads, and damaged files."""

from __future__ import annotations

import gzip
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.errors import SpecError, TraceError
from windtunnel.serving import Gamma, merge, read_profile
from windtunnel.serving.refit import digamma, fit_gamma, from_minutes, map_functions, refit, replay
from windtunnel.serving.request_traces import MinuteCounts, RequestTrace, read_requests

if TYPE_CHECKING:
    from pathlib import Path

MINUTES = ",".join(str(minute) for minute in range(1, 1441))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "count", "span", "cv", "prompt", "output"),
    [
        ("azure_llm_2023_code.csv.gz", 8819, 3435.948056, 13.1513, 18_059_974, 245_896),
        ("azure_llm_2023_conv.csv.gz", 19366, 3501.721937, 1.09417, 22_361_870, 4_088_665),
        ("mooncake_conversation.jsonl.gz", 12031, 3536.999, None, None, None),
    ],
)
def test_published_traces(
    data_dir: Path,
    name: str,
    count: int,
    span: float,
    cv: float | None,
    prompt: int | None,
    output: int | None,
) -> None:
    trace = read_requests(data_dir / "serving_traces" / name)
    assert isinstance(trace, RequestTrace)
    assert len(trace.arrival) == count
    assert trace.arrival[-1] == pytest.approx(span, abs=1e-6)
    if cv is None:
        assert trace.prompt_tokens.mean() == pytest.approx(12035.061, abs=5e-4)
        assert trace.output_tokens.mean() == pytest.approx(342.619, abs=5e-4)
    else:
        gaps = np.diff(trace.arrival)
        assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=1e-5)
        assert (trace.prompt_tokens.sum(), trace.output_tokens.sum()) == (prompt, output)


def test_functions_2021(tmp_path: Path) -> None:
    file = tmp_path / "calls.csv.gz"
    rows = "app,func,end_timestamp,duration\na,f,10,4\nb,g,7,5\na,f,20,1\na,h,21,1\n"
    file.write_bytes(gzip.compress(rows.encode()))
    trace = read_requests(file)
    assert isinstance(trace, RequestTrace)
    assert trace.arrival.tolist() == [2, 6, 19, 20]
    assert trace.functions == ("a/f", "b/g", "a/h")
    workload = replay(trace, ["m", "n"])
    assert workload.model.tolist() == [1, 0, 0, 0]  # stripe: f, h to model 0, g to model 1
    later = trace.window(5.0, 20.5)
    assert later.functions == ("a/f", "a/h")
    assert later.arrival.tolist() == [1, 14, 15]
    assert replay(later, ["m", "n"]).model.tolist() == [0, 0, 1]


def test_functions_2019(tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    counts = ["0"] * 1440
    counts[1], counts[3] = "600", "60"
    none = ",".join(["0"] * 1440)
    lines = [f"HashOwner,HashApp,HashFunction,Trigger,{MINUTES}", f"o,a,f,http,{none}"]
    file.write_text("\n".join([*lines, f"o,a,g,http,{','.join(counts)}"]))
    day = read_requests(file)
    assert isinstance(day, MinuteCounts)
    hour = day.window(0, 60)
    assert (hour.functions, hour.counts.sum()) == (("o/a/g",), 660)
    workload = from_minutes(hour, ["m", "n"], cv=2.0, rate_scale=0.5, seed=4)
    expected = [Gamma(5.0, 2.0).arrivals(60, 4, 60.0), Gamma(0.5, 2.0).arrivals(60, 5, 180.0)]
    np.testing.assert_array_equal(workload.arrival, np.concatenate(expected))


def test_refitting_keeps_and_scales_rate_and_cv() -> None:
    drawn = [Gamma(8.0, 2.0).arrivals(20_000, 3), Gamma(2.0, 0.5).arrivals(20_000, 4)]
    workload = merge(["m", "n"], drawn, slo=[1.0, 2.0])
    again = refit(workload, window=20_000, duration=20_000, rate_scale=2.0, cv_scale=1.5, seed=9)
    for model, (rate, cv) in enumerate([(16.0, 3.0), (4.0, 0.75)]):
        gaps = np.diff(again.arrival[again.model == model])
        assert 1 / gaps.mean() == pytest.approx(rate, rel=0.03)
        assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05)
    assert set(again.slo[again.model == 1]) == {2.0}


def test_windows_and_seeds_of_refitting() -> None:
    """Windows of 10 s: model 0 has 3, 2 and 0 arrivals, model 1 has 4 in the last only."""
    arrivals = [np.array([1.0, 2.0, 4.0, 11.0, 12.0]), np.array([21.0, 22.5, 23.0, 27.0])]
    found = refit(merge(["m", "n"], arrivals), window=10.0, duration=30.0, seed=5)
    first = Gamma(*fit_gamma(arrivals[0][:3], 10.0)).arrivals(10.0, 5, 0.0)
    last = Gamma(*fit_gamma(arrivals[1], 10.0)).arrivals(10.0, 7, 20.0)
    np.testing.assert_array_equal(found.arrival, np.concatenate([first, last]))
    assert fit_gamma(np.array([1.0, 1.001, 1.002]), 60.0)[0] == 3 / 60


def test_digamma_and_the_fit_against_scipy() -> None:
    special = pytest.importorskip("scipy.special", reason="scipy is not installed")
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    for x in (1e-3, 0.1, 0.5, 1.0, 3.7, 25.0, 1e6):
        assert digamma(x) == pytest.approx(float(special.digamma(x)), rel=1e-12)
    times = Gamma(3.0, 2.5).arrivals(500.0, 2)
    shape, _, scale = stats.gamma.fit(np.diff(times) + 1e-6, floc=0)
    rate, cv = fit_gamma(times, 500.0)
    assert rate == pytest.approx(1 / (shape * scale), rel=1e-6)
    assert cv == pytest.approx(1 / math.sqrt(shape), rel=1e-6)


def test_mappings() -> None:
    assert map_functions(5, 2).tolist() == [0, 1, 0, 1, 0]
    assert map_functions(0, 2, "round_robin").tolist() == []
    with pytest.raises(SpecError, match="Did you mean 'stripe'"):
        map_functions(5, 2, "stripes")


LLM = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns TIMESTAMP"),
        ("a,b\n1,2\n", "columns TIMESTAMP"),
        (LLM, "at least one request"),
        (LLM + "2023-11-16 18:17:03.97,7\n", "line 2, column 'GeneratedTokens'"),
        (LLM + "2023-11-16 18:17:03.97,nan,7\n", "column 'ContextTokens'"),
        (LLM + "yesterday,7,7\n", "expected a time like"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 2}\n[]\n', "line 2"),
        ('{"timestamp": 0, "input_length": 1}\n', "column 'output_length'"),
        ("app,func,end_timestamp,duration\na,f,1,inf\n", "column 'duration'"),
        ("HashOwner,HashApp,HashFunction,Trigger,1,2\n", "a column '3'"),
    ],
)
def test_damaged_requests(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "requests"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_requests(file)


def test_a_cut_archive(tmp_path: Path) -> None:
    file = tmp_path / "requests.gz"
    whole = gzip.compress(b"TIMESTAMP,ContextTokens,GeneratedTokens\n" + b"x" * 10_000)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match="readable text"):
        read_requests(file)


HEAD = "model,dp,op,pp,batch_size,stage,stage_latency_s,stage_weight_bytes\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model\nm\n", "a column 'dp'"),
        (HEAD, "at least one row"),
        (HEAD + "m,1,1,2,1,0,0.1,5\n", "2 stages of m"),
        (HEAD + "m,1,1,1,1,0,0.1,5\n" * 2, "line 3, column 'stage'"),
        (HEAD + "m,1,1,1,1,0,-1,5\n", "column 'stage_latency_s'"),
        (HEAD + "m,1,0,1,1,0,1,5\n", "whole number >= 1"),
    ],
)
def test_damaged_profiles(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "profile.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_profile(file)
