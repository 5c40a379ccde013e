"""Token serving against hand-worked cases, a second implementation, and recorded requests."""

from __future__ import annotations

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.cli.root import windtunnel
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving.llm_capacity import llm_capacity
from windtunnel.serving.llm_files import read_llm_model
from windtunnel.serving.llm_fit import fit_llm
from windtunnel.serving.llm_model import LlmModel, synthetic_llm
from windtunnel.serving.llm_simulate import goodput_by_rate, simulate_llm
from windtunnel.serving.request_traces import RequestTrace, read_requests

Asked = list[tuple[float, int, int]]


def _trace(asked: Asked) -> RequestTrace:
    time, prompt, output = (np.array(column) for column in zip(*asked, strict=True))
    zeros = np.zeros(len(asked), dtype=np.int64)
    return RequestTrace("made", "azure_llm", time.astype(float), zeros, ("",), prompt, output)


def _step(
    asked: Asked, running: dict[int, int], first: list[float], last: list[float], now: float
) -> None:
    """Give each running request its token; those that have all of theirs leave."""
    for i in list(running):
        running[i] += 1
        if running[i] == 1:
            first[i] = now
        if running[i] >= asked[i][2]:
            last[i] = now
            del running[i]


def _second(
    asked: Asked, model: LlmModel, replicas: int, *, turns: bool
) -> tuple[list[float], list[float]]:
    """Serve by lists and dictionaries; first and last tokens, NaN where refused."""
    first, last = [math.nan] * len(asked), [math.nan] * len(asked)
    waiting: list[list[int]] = [[] for _ in range(replicas)]
    running: list[dict[int, int]] = [{} for _ in range(replicas)]
    ends: dict[int, float] = {}
    left, turn = list(range(len(asked))), 0
    while left or ends:
        now = min([*ends.values(), *(asked[i][0] for i in left[:1])])
        for r in [r for r, end in ends.items() if end == now]:
            del ends[r]
            _step(asked, running[r], first, last, now)
        while left and asked[left[0]][0] == now:
            i = left.pop(0)
            if asked[i][1] + asked[i][2] > model.kv_limit:
                continue
            loads = [len(waiting[r]) + len(running[r]) for r in range(replicas)]
            waiting[turn if turns else loads.index(min(loads))].append(i)
            turn = (turn + 1) % replicas
        for r in range(replicas):
            if r in ends:
                continue
            old = dict(running[r])
            new: list[int] = []
            while waiting[r] and len(running[r]) < model.max_batch:
                held = [*running[r], waiting[r][0]]
                if sum(asked[i][1] + asked[i][2] for i in held) > model.kv_limit:
                    break
                new.append(waiting[r].pop(0))
                running[r][new[-1]] = 0
            a, b, c, d = model.costs.tolist()
            if running[r]:
                read = sum(asked[i][1] + made for i, made in old.items())
                ends[r] = now + (a + b * sum(asked[i][1] for i in new) + c * len(old) + d * read)
    return first, last


def test_three_requests_by_hand() -> None:
    # a = 1, b = 0.5, c = 0.25, d = 0.125, 20 tokens of KV. Request 0 (2 + 3 tokens) prefills 0 - 2.
    # Request 1 (4 + 2, at 1) joins at 2: 1 + 2 + 0.25 + 3 / 8 = 3.625 -> 5.625. Request 2
    # (10 + 1, at 3) would make 22 tokens, and waits. Next: 2 decode, KV 4 + 5: 1 + 0.5 + 9 / 8 =
    # 2.625 -> 8.25, both end. Request 2 prefills 1 + 5 -> 14.25.
    model = LlmModel(1.0, 0.5, 0.25, 0.125, kv_limit=20)
    run = simulate_llm(_trace([(0, 2, 3), (1, 4, 2), (3, 10, 1)]), model)
    assert run.ttft.tolist() == [2.0, 4.625, 11.25]
    assert run.e2e.tolist() == [8.25, 7.25, 11.25]
    assert run.tpot[:2].tolist() == [3.125, 2.625]
    assert np.isnan(run.tpot[2])
    assert run.peak_kv.tolist() == [11]
    figures = run.metrics(ttft=5, tpot=3)
    assert figures["slo_attainment"] == 1 / 3
    assert figures["goodput"] == 1 / 14.25
    assert figures["utilization"] == 1.0


def test_single_request_in_closed_form() -> None:
    model, prompt, output = synthetic_llm(), 1000, 200
    run = simulate_llm(_trace([(7.0, prompt, output)]), model)
    a, b, c, d = model.costs.tolist()
    steps = output - 1
    decode = steps * (a + c + d * prompt) + d * steps * (steps + 1) / 2
    assert run.ttft[0] == pytest.approx(a + b * prompt)
    assert run.e2e[0] == pytest.approx(a + b * prompt + decode)
    assert run.tpot[0] == pytest.approx(decode / steps)


asked_lists = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(0, 6)), min_size=1, max_size=25
).map(lambda rows: sorted(((t / 2, p, o) for t, p, o in rows), key=lambda row: row[0]))


@given(
    asked_lists,
    st.integers(1, 4),
    st.integers(5, 30),
    st.integers(1, 4),
    st.sampled_from(["least_loaded", "round_robin"]),
)
def test_second_implementation(asked: Asked, n: int, limit: int, batch: int, rule: str) -> None:
    model = LlmModel(0.25, 0.125, 0.0625, 0.03125, kv_limit=limit, max_batch=batch)
    run = simulate_llm(_trace(asked), model, n, rule)
    first, last = _second(asked, model, n, turns=rule == "round_robin")
    arrival = np.array([row[0] for row in asked])
    np.testing.assert_array_equal(run.ttft, np.array(first) - arrival)
    np.testing.assert_array_equal(run.e2e, np.array(last) - arrival)
    fits = np.array([p + o <= limit for _, p, o in asked])
    assert (np.isfinite(run.finish) == fits).all()
    assert run.peak_kv.max() <= limit


def test_fit_recovers_costs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    costs = synthetic_llm().costs
    counts = rng.integers(0, [4000, 64, 100_000], size=(50, 3))
    times = costs[0] + counts @ costs[1:]
    lines = [
        f"{p},{s},{k},{t!r}" for (p, s, k), t in zip(counts.tolist(), times.tolist(), strict=True)
    ]
    file = tmp_path / "measured.csv"
    head = "prefill_tokens,decode_seqs,kv_tokens,iteration_time"
    file.write_text("\n".join([head, *lines]))
    fit = fit_llm(file)
    np.testing.assert_allclose(fit.costs, costs, rtol=1e-8)
    assert fit.mean_relative_error < 1e-10
    file.write_text(f"{head}\n1,2,3,-1\n")
    with pytest.raises(TraceError, match="iteration_time"):
        fit_llm(file)
    file.write_text(f"{head}\n1,2,3,1\n")
    with pytest.raises(TraceError, match="independently"):
        fit_llm(file)


@given(st.integers(0, 1000))
def test_fit_is_nonnegative_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, times = rng.integers(0, 50, size=(12, 3)), rng.uniform(0.1, 1, size=12)
    lines = [",".join(map(str, [*c, t])) for c, t in zip(counts.tolist(), times, strict=True)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "measured.csv"
        head = "prefill_tokens,decode_seqs,kv_tokens,iteration_time"
        file.write_text("\n".join([head, *lines]))
        fit = fit_llm(file, weights="absolute")
    design = np.column_stack([np.ones(12), counts])
    optimize = pytest.importorskip("scipy.optimize", reason="scipy is not installed")
    expected, residual = optimize.nnls(design, times)
    np.testing.assert_allclose(fit.costs, expected, atol=1e-9)
    assert fit.rmse == pytest.approx(residual / math.sqrt(12))


def test_model_file(tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    text = "iteration_s=0.01\nprefill_token_s=1e-4\ndecode_seq_s=0\nkv_token_s=0\nkv_limit=1000\n"
    file.write_text(text)
    assert read_llm_model(file) == LlmModel(0.01, 1e-4, 0, 0, 1000)
    file.write_text(text + "max_bach=3\n")
    with pytest.raises(SpecError, match="max_batch"):
        read_llm_model(file)


@pytest.mark.parametrize("name", ["azure_llm_2023_conv.csv.gz", "mooncake"])
def test_recorded_requests(data_dir: Path, name: str) -> None:
    file = next((data_dir / "serving_traces").glob(f"*{name}*"))
    trace = read_requests(file)
    assert isinstance(trace, RequestTrace)
    trace = trace.window(0, 600)
    found = llm_capacity(trace, synthetic_llm(), limits=10.0)
    every = [
        np.quantile(simulate_llm(trace, synthetic_llm(), n).ttft, 0.99)
        for n in range(1, found.replicas + 1)
    ]
    assert every[-1] <= 10.0
    assert all(p99 > 10.0 for p99 in every[:-1])
    assert np.isfinite(found.outcome.finish).all()


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "ttft"), [("azure_llm_2023_code.csv.gz", 1.0), ("mooncake_conversation.jsonl.gz", 5.0)]
)
def test_capacity_for_whole_traces(data_dir: Path, name: str, ttft: float) -> None:
    trace = read_requests(data_dir / "serving_traces" / name)
    assert isinstance(trace, RequestTrace)
    found = llm_capacity(trace, synthetic_llm(), ttft)
    assert found.replicas > 1
    assert np.quantile(found.outcome.ttft, 0.99) <= ttft
    fewer = simulate_llm(trace, synthetic_llm(), found.replicas - 1)
    assert np.quantile(fewer.ttft, 0.99) > ttft
    # What was asked for was made: a token an iteration, and as many prompts as there are.
    assert np.isfinite(found.outcome.finish).all()
    served = trace.prompt_tokens.sum() * synthetic_llm().prefill_token_s
    assert found.outcome.busy.sum() > served


def test_at_other_rates() -> None:
    rows = [(float(i), 100 + i, 1 + i % 4) for i in range(30)]
    trace, model = _trace(rows), synthetic_llm()
    (slow, fast) = goodput_by_rate(trace, model, [0.5, 50.0], ttft=0.03, tpot=0.02)
    # 29 gaps of 1 s for 30 requests: 30 / 29 a second as recorded.
    exact = [(t / (50 / (30 / 29)), p, o) for t, p, o in rows]
    expected = simulate_llm(_trace(exact), model).metrics(0.03, 0.02)
    for name, value in expected.items():
        assert fast[name] == pytest.approx(value)
    assert slow["slo_attainment"] == 1
    assert fast["p99_ttft"] > slow["p99_ttft"]
    for rates in ([0.0], [math.nan]):
        with pytest.raises(SpecError, match="rate"):
            goodput_by_rate(trace, model, rates)
    with pytest.raises(SpecError, match="no two requests"):
        goodput_by_rate(_trace([(0.0, 1, 1)]), model, [1.0])


def test_command_line(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    rows = [{"timestamp": 100 * i, "input_length": 500, "output_length": 9} for i in range(200)]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    runner = CliRunner()
    run = runner.invoke(
        windtunnel, ["serving", "llm", str(file), "--ttft", "1", "--tpot", "0.1", "--json"]
    )
    assert run.exit_code == 0, run.output
    requests = read_requests(file)
    assert isinstance(requests, RequestTrace)
    expected = simulate_llm(requests, synthetic_llm()).metrics(1, 0.1)
    assert json.loads(run.stdout)["metrics"] == expected
    run = runner.invoke(
        windtunnel, ["serving", "llm-capacity", str(file), "--ttft", "0.06", "--json"]
    )
    assert run.exit_code == 0, run.output
    data = json.loads(run.stdout)
    assert data["replicas"] == llm_capacity(requests, synthetic_llm(), 0.06).replicas
    for options, message in (
        (["--ttft", "0.001"], "P99 is 0.028 s with any number of replicas"),
        (
            ["--ttft", "0.03", "--rate", "90", "--max-replicas", "1"],
            "with 1 replicas, wanted <= 0.03 s",
        ),
    ):
        run = runner.invoke(windtunnel, ["serving", "llm-capacity", str(file), *options])
        assert run.exit_code == 2
        assert message in " ".join(run.output.split())
