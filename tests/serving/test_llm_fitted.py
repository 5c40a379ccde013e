"""Fits against published measurements, and replays of real engines' logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from llm_recorded import FOLDER, cases, model_of, read

from windtunnel import serving
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving.llm_costs import LinearCost
from windtunnel.serving.llm_replay import fit_log, replay_log

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {"rtx4090_llama31_8b": (2587, 256), "rtxpro6000_llama31_8b": (36577, 128)}


def _measured(data_dir: Path, folder: Path, name: str, **cost: Any) -> serving.LlmModel:
    case = dict(cases(data_dir)["conv-layers"])
    case["num_blocks"], case["max_num_seqs"] = RUNS[name]
    case["prefix_caching"] = True
    case["cost"] = {**case["cost"], "profile": f"profiles/{name}_tp1", **cost}
    return model_of(data_dir, case, folder)


@pytest.mark.parametrize(("name", "most"), [(name, 0.02 + 0.03 * k) for k, name in enumerate(RUNS)])
def test_real_runs_from_kernel_tables(
    data_dir: Path, tmp_path: Path, name: str, most: float
) -> None:
    log = data_dir / FOLDER / "vllm_runs" / name / "requests.jsonl.gz"
    found = replay_log(log, _measured(data_dir, tmp_path, name))
    assert len(found.error) == 12
    error = found.mean_absolute_error
    assert error is not None
    assert error <= most
    data = found.data()
    assert data["num_requests"] == 300
    for figure, value in data["error"].items():
        assert value == pytest.approx(data["simulated"][figure] / data["measured"][figure] - 1)
    with_host = _measured(data_dir, tmp_path, name, overhead_s=0.001)
    if name == "rtxpro6000_llama31_8b":
        assert replay_log(log, with_host).mean_absolute_error == pytest.approx(0.0107, abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUNS))
def test_costs_from_the_first_half_of_a_log(data_dir: Path, tmp_path: Path, name: str) -> None:
    log = data_dir / FOLDER / "vllm_runs" / name / "requests.jsonl.gz"
    found = fit_log(log, _measured(data_dir, tmp_path, name))
    assert (found.fitted.num_rows, found.held_back.num_rows) == (150, 150)
    assert (found.held_back.mean_absolute_error or 1) <= 0.035
    assert isinstance(found.model.cost, LinearCost)


def test_fits_of_published_iterations(data_dir: Path) -> None:
    file = data_dir / FOLDER / "measured_iterations.csv"
    linear = serving.fit_llms(file, held_back=0.3)
    curves = serving.fit_llms(file, "piecewise", held_back=0.3)
    published = read(data_dir, "expected.json")["fits"]
    assert list(linear) == list(published)
    for name, known in published.items():
        fit = linear[name]
        assert fit.num_rows == known["num_rows"]
        for key, value in known["linear"].items():
            assert getattr(fit.cost, key) == pytest.approx(value, rel=1e-9)
        assert fit.mean_relative_error == pytest.approx(known["linear_mean_relative_error"])
        for held, wanted in (
            (fit.held_back, known["held_back"]),
            (curves[name].held_back, known["piecewise_held_back"]),
        ):
            for key, value in wanted.items():
                assert getattr(held, key) == pytest.approx(value, rel=1e-9)
    prefill = [fit.held_back.prefill for fit in curves.values() if fit.held_back]
    decode = [fit.held_back.decode for fit in curves.values() if fit.held_back]
    assert np.mean(np.array(prefill, dtype=float)) <= 0.05
    assert np.mean(np.array(decode, dtype=float)) <= 0.05


def test_capacity_as_recorded(data_dir: Path, tmp_path: Path) -> None:
    for one in read(data_dir, "expected.json")["capacity"]:
        case = cases(data_dir)[one["case"]]
        requests = serving.read_requests(data_dir / FOLDER / case["requests"])
        assert isinstance(requests, serving.RequestTrace)
        model = model_of(data_dir, case, tmp_path)
        if one["replicas"] is None:
            with pytest.raises(SpecError, match="with any number of replicas"):
                serving.llm_capacity(requests, model, one["limits"], one["dispatch"])
            continue
        found = serving.llm_capacity(requests, model, one["limits"], one["dispatch"])
        assert found.replicas == one["replicas"]
        assert found.met == {n: one["tried"][str(n)] for n in found.met}
        assert not found.met.get(found.replicas - 1, False)


def test_logs_that_make_no_sense(tmp_path: Path) -> None:
    row = {"input_toks": 5, "output_toks": 3, "queued_ts": 1.0}
    row |= {"first_token_ts": 2.0, "last_token_ts": 3.0}
    file = tmp_path / "log.jsonl"
    model = serving.synthetic_llm()
    for change, words in (
        ({"first_token_ts": 0.5}, "line 2, column 'first_token_ts': found 0.5; expected 1.0 or"),
        ({"last_token_ts": 1.5}, "column 'last_token_ts'"),
        ({"output_toks": 0}, "column 'output_toks': found 0; expected 1 or more"),
        ({"input_toks": "x"}, "column 'input_toks': found 'x'"),
        ({"queued_ts": None}, "column 'queued_ts'"),
    ):
        file.write_text("\n".join(json.dumps(one) for one in (row, {**row, **change})))
        with pytest.raises(TraceError) as caught:
            replay_log(file, model)
        assert words in str(caught.value)
    file.write_text(json.dumps(row))
    assert replay_log(file, model).measured["mean_ttft"] == 1.0
    requests = serving.read_requests(file)
    assert isinstance(requests, serving.RequestTrace)
    assert (requests.format, requests.prompt_tokens.tolist()) == ("vllm_log", [5])
