"""Recorded requests: what is in the files, how they become workloads, and damaged files."""

from __future__ import annotations

import csv
import gzip
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import SpecError, TraceError
from windtunnel.serving import Gamma, merge, read_profile, token_formats
from windtunnel.serving.refit import digamma, fit_gamma, from_minutes, map_functions, refit, replay
from windtunnel.serving.request_traces import MinuteCounts, RequestTrace, read_requests
from windtunnel.serving.token_tables import read_table

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
        assert sum(map(len, trace.blocks)) == 288_500
        assert len({block for blocks in trace.blocks for block in blocks}) == 182_790
        assert trace.prefix_hits() == pytest.approx(0.36641, abs=5e-6)
    else:
        gaps = np.diff(trace.arrival)
        assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=1e-5)
        assert (trace.prompt_tokens.sum(), trace.output_tokens.sum()) == (prompt, output)


@pytest.mark.data
def test_published_lengths(data_dir: Path) -> None:
    trace = read_requests(data_dir / "serving_traces" / "arxiv_summarization_lengths.csv.gz")
    assert isinstance(trace, RequestTrace)
    assert (trace.format, len(trace)) == ("lengths", 28257)
    assert trace.prompt_tokens.mean() == pytest.approx(2588.078, abs=5e-4)
    assert trace.output_tokens.mean() == pytest.approx(291.430, abs=5e-4)
    drawn = trace.drawn(Gamma(20.0, 2.0), 2000.0, seed=3)
    np.testing.assert_array_equal(drawn.arrival, Gamma(20.0, 2.0).arrivals(2000.0, 3))
    assert drawn.prompt_tokens.mean() == pytest.approx(2588.078, rel=0.02)
    pairs = set(zip(trace.prompt_tokens.tolist(), trace.output_tokens.tolist(), strict=True))
    mine = set(zip(drawn.prompt_tokens.tolist(), drawn.output_tokens.tolist(), strict=True))
    assert mine <= pairs  # prompt and output are drawn together


@pytest.mark.data
def test_published_diffusion_requests(data_dir: Path) -> None:
    """26,823 requests from 2024-11-15 on; each names its base model."""
    trace = read_requests(data_dir / "alibaba_v2026_genai" / "lora_request_trace.parquet")
    assert isinstance(trace, RequestTrace)
    assert (trace.format, len(trace)) == ("genai", 26823)
    assert 22 * 86400 < trace.arrival[-1] < 24 * 86400
    dealt = np.bincount(replay(trace, ["m", "n"]).model)
    assert dealt.tolist() == np.bincount(trace.function % 2).tolist()


@pytest.mark.parametrize(
    ("form", "text", "arrival", "prompt", "output"),
    [
        (
            "azure_llm",  # as published in 2024: offset and microseconds, here unsorted
            (
                "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:01.500930+00:00,7,2\n"
                "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,9,0\n"
            ),
            [0.0, 0.99007, 1.491],
            [2162, 9, 7],
            [5, 0, 2],
        ),
        (
            "azure_lmm",
            (
                "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
                "2024-10-15 13:00:00.25,1,900,40\n2024-10-15 13:00:02.5,0,30,10\n"
            ),
            [0.0, 2.25],
            [900, 30],
            [40, 10],
        ),
        (
            "burstgpt",
            (
                "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,"
                "Total tokens,Log Type\n5,a,1.5,ChatGPT,472,18,490,Conversation log\n\n"
                "45,,0,GPT-4,1087,0,1087,API log\n"
            ),
            [0.0, 40.0],
            [472, 1087],
            [18, 0],
        ),
        (
            "vidur",
            "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,4808,10\n1.75,3180,8\n",
            [0.0, 1.25],
            [4808, 3180],
            [10, 8],
        ),
        (
            "mooncake",  # tool-and-agent: the same layout
            (
                '{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [4]}\n'
                '{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": []}\n'
            ),
            [0.0, 3.053],
            [6955, 6472],
            [52, 26],
        ),
    ],
)
def test_layouts(
    tmp_path: Path,
    form: str,
    text: str,
    arrival: list[float],
    prompt: list[int],
    output: list[int],
) -> None:
    file = tmp_path / "requests"
    file.write_text(text)
    trace = read_requests(file)
    assert isinstance(trace, RequestTrace)
    assert trace.format == form
    assert form == "mooncake" or read_table(file, form, gzipped=False) is not None
    assert trace.arrival == pytest.approx(arrival, abs=1e-9)
    assert trace.prompt_tokens.tolist() == prompt
    assert trace.output_tokens.tolist() == output
    assert trace.images.tolist() == ([1, 0] if form == "azure_lmm" else [])
    assert trace.functions == (("ChatGPT", "GPT-4") if form == "burstgpt" else ("",))
    assert trace.compress(2.0).arrival == pytest.approx(np.array(arrival) / 2)
    with pytest.raises(SpecError, match="finite number > 0"):
        trace.compress(0.0)


MOMENTS = st.tuples(
    st.integers(0, 59), st.integers(0, 9_999_999), st.sampled_from(["", ".0", ".5", "digits"])
)
CELLS = st.one_of(
    st.integers(-1, 30).map(str), st.sampled_from(["", "nan", "2.0", "1e3", " 7", "x", '"4"'])
)


@given(
    form=st.sampled_from(["azure_llm", "azure_lmm", "burstgpt", "vidur", "lengths"]),
    rows=st.lists(st.tuples(MOMENTS, st.lists(CELLS, min_size=4, max_size=4)), max_size=5),
    plain=st.lists(st.integers(0, 99), min_size=3, max_size=3),
    zone=st.sampled_from(["", "+00:00"]),
)
@settings(max_examples=300)
def test_tables_are_read_as_rows(
    tmp_path_factory: pytest.TempPathFactory,
    form: str,
    rows: list[tuple[tuple[int, int, str], list[str]]],
    plain: list[int],
    zone: str,
) -> None:
    """The quick reader gives what the reader of rows gives, or leaves the file to it."""
    layout = token_formats.LAYOUTS[form]
    heads = layout.columns
    lines = [",".join(heads)]
    for (second, digits, fraction), cells in rows:
        decimals = {"digits": f".{digits:07d}"}.get(fraction, fraction)
        first = {"TIMESTAMP": f"2024-05-10 00:00:{second:02d}{decimals}{zone}", "Model": cells[0]}
        spare = iter([*map(str, plain), *cells] if second % 2 else cells)
        lines.append(",".join(first.get(name) or next(spare) for name in heads))
    file = tmp_path_factory.mktemp("requests") / "table.csv"
    file.write_text("\n".join(lines) + "\n")
    quick = read_table(file, form, gzipped=False)
    numbered = enumerate(csv.DictReader(lines), start=2)
    try:
        slow = token_formats.from_rows(file, numbered, layout)
    except TraceError:
        assert quick is None
        return
    if quick is not None:
        for mine, its in zip(quick, slow, strict=True):
            np.testing.assert_array_equal(mine, its)


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


PLAIN = "arrival,prompt_tokens,output_tokens\n"
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
        (LLM + "\n2023-11-16 18:17:03.97,7,2.5\n", "line 3, column 'GeneratedTokens'"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\nnan,1,1\n", "column 'arrived_at'"),
        ("num_prefill_tokens,num_decode_tokens\n1,-1\n", "column 'num_decode_tokens'"),
        ("Timestamp,Model,Request tokens,Response tokens\n1,a,2\n", "column 'Response tokens'"),
        (LLM + "2023-11-16 18:17:03.97,7,7,9\n", "line 2: found .*7,9'; expected 3 cells"),
        (PLAIN + "1,99999999999999999999,5\n", "line 2, column 'prompt_tokens': found '9999"),
        (PLAIN + "1,9000000000000000000,5\n", "line 2, column 'prompt_tokens': found '9000"),
        (PLAIN + "1,-3,5\n", "line 2, column 'prompt_tokens': found '-3'"),
        (PLAIN + "soon,3,5\n", "line 2, column 'arrival': found 'soon'"),
        (
            '{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": [0.5]}',
            "'hash_ids'",
        ),
        ("PAR1 and then nothing", "a Parquet file"),
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
        (HEAD + "m,1,1,1,1,0,1,5,6\n", "line 2"),
    ],
)
def test_damaged_profiles(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "profile.csv"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_profile(file)


def test_gzipped_profile(tmp_path: Path) -> None:
    file = tmp_path / "profile.csv.gz"
    file.write_bytes(gzip.compress(("\ufeff" + HEAD + "m,1,1,1,1,0,0.5,5\n").encode()))
    assert read_profile(file).latency("m") == 0.5


def test_prefixes_by_hand(tmp_path: Path) -> None:
    """The third request has its first two blocks cached; of the fourth, 3 comes behind a miss."""
    lists = [[1, 2], [3], [1, 2, 4], [9, 3]]
    file = tmp_path / "requests.jsonl"
    rows = [
        f'{{"timestamp": {9 - i}, "input_length": 1, "output_length": 1, "hash_ids": {one}}}'
        for i, one in enumerate(reversed(lists))  # unsorted in the file
    ]
    file.write_text("\n".join(rows))
    trace = read_requests(file)
    assert isinstance(trace, RequestTrace)
    assert trace.blocks == ((1, 2), (3,), (1, 2, 4), (9, 3))
    assert trace.prefix_hits() == 2 / 8
    assert trace.window(0.0005, 9.0).blocks == ((3,), (1, 2, 4), (9, 3))
    assert trace.compress(2.0).blocks == trace.blocks
    assert set(trace.drawn(Gamma(50.0), 1.0).blocks) <= set(trace.blocks)
    file.write_text('{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1.5]}')
    with pytest.raises(TraceError, match="column 'hash_ids'"):
        read_requests(file)


def test_requests_that_make_no_sense() -> None:
    none = np.empty(0, dtype=np.int64)
    zeros, ones = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64)
    for arrival in ([1.0, 0.0], [0.0, math.nan]):
        with pytest.raises(SpecError, match="ascending"):
            RequestTrace("made", "vidur", np.array(arrival), zeros, ("",), ones, ones)
    with pytest.raises(SpecError, match="prompt_tokens"):
        RequestTrace("made", "vidur", np.zeros(2), zeros, ("",), -ones, ones)
    for made in ({"arrival": ["soon"]}, {"arrival": [0.0], "prompt_tokens": ["many"]}):
        with pytest.raises(SpecError, match="expected one number a request"):
            RequestTrace(**made)
    two = {"arrival": [0.0, 1.0], "output_tokens": [1, 1]}
    for tokens in ([1e300, 1], [math.inf, 1], [10**15, 1], np.array([2**63, 1], dtype=np.uint64)):
        with pytest.raises(SpecError, match="prompt_tokens: expected one whole number from 0 to"):
            RequestTrace(**two, prompt_tokens=tokens)
    for blocks in ([[1]], [1, 2], [[[1]], [[2]]]):
        with pytest.raises(SpecError, match="blocks: expected one list of ids a request"):
            RequestTrace(**two, prompt_tokens=[1, 1], blocks=blocks)
    empty = RequestTrace("made", "vidur", np.empty(0), none, (), none, none)
    with pytest.raises(SpecError, match="no requests"):
        empty.drawn(Gamma(1.0), 10.0)
