"""Model files: what they may say, and one message for each thing that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel import serving
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving.llm_files import llm_models_toml

if TYPE_CHECKING:
    from pathlib import Path

COST = "[cost]\niteration_s = 0.01\nprefill_token_s = 1e-4\ndecode_seq_s = 0\nkv_token_s = 0\n"
CURVE = '[cost]\nform = "piecewise"\niteration_s = 0.01\nprefill_knots = [[1, 0.1], [9, 0.2]]\n'
ENGINE = "[engine]\nnum_blocks = 50\n"
SPLIT = (
    "[split]\nprefill_replicas = 1\ndecode_replicas = 2\nkv_bytes_per_token = 8\nbandwidth = 1e9\n"
)


def _read(folder: Path, text: str) -> serving.LlmModel:
    file = folder / "model.toml"
    file.write_text(text)
    return serving.read_llm_model(file)


def test_everything_comes_back_from_its_own_text(tmp_path: Path) -> None:
    power = "[power]\nidle_w = 1\nprefill_w = 3\ndecode_w = 2\n"
    pool = f'{SPLIT}decode_dispatch = "least_tokens"\n[split.decode]\ntoken_budget = 7\n'
    model = _read(tmp_path, COST + ENGINE + power + pool)
    assert model.split is not None
    assert model.split.engines(model.pages)[1].token_budget == 7
    (tmp_path / "again.toml").write_text(llm_models_toml({"a/b": model, "curve": _read(
        tmp_path, CURVE + ENGINE)}))  # fmt: skip
    assert serving.read_llm_model(f"{tmp_path}/again.toml#a/b") == model
    assert serving.read_llm_model(f"{tmp_path}/again.toml#curve").cost.form == "piecewise"


def test_models_share_what_stands_outside(tmp_path: Path) -> None:
    cost = COST.replace("[cost]", "")
    text = f"{ENGINE}[one]\n{cost}[two]\n{cost}gpus = 4\n[two.engine]\nnum_blocks = 9\n"
    (tmp_path / "both.toml").write_text(text)
    one, two = (serving.read_llm_model(f"{tmp_path}/both.toml#{name}") for name in ("one", "two"))
    assert (one.gpus, one.pages.num_blocks) == (1, 50)
    assert (two.gpus, two.pages.num_blocks) == (4, 9)
    with pytest.raises(SpecError, match="choose one"):
        serving.read_llm_model(tmp_path / "both.toml")


WRONG = [
    (COST + ENGINE + 'scheduler = "vllm"\n', "engine: scheduler: unknown name 'vllm'"),
    (COST.replace("[cost]", '[cost]\nform = "cubic"') + ENGINE, "unknown name 'cubic'"),
    (COST + ENGINE + "scheduler = 3\n", "engine: scheduler: unknown name 3. Known: orca"),
    (COST.replace("[cost]", "[cost]\nform = [1]") + ENGINE, "cost.form: unknown name [1]"),
    (COST + ENGINE + "tokn_budget = 1\n", "Did you mean 'token_budget'"),
    (COST + "[engine]\nblock_size = 16\n", "engine.num_blocks: is missing"),
    *(
        (COST + ENGINE.replace("num_blocks = 50\n", "") + text, f"{text.split()[0]}: found")
        for text in (
            "num_blocks = 0\n",
            "num_blocks = 5\ntoken_budget = 0\n".replace("num_blocks = 5\n", "")
            + "num_blocks = 5\n",
            "max_num_seqs = 1.5\nnum_blocks = 5\n",
            "block_size = true\nnum_blocks = 5\n",
            "stages = -1\nnum_blocks = 5\n",
        )
    ),
    (COST + ENGINE + "watermark = 1.5\n", "watermark: found 1.5; expected 0 to 1"),
    (COST + ENGINE + "stages = 2\n", "stages: found 2; vllm_v1 has one"),
    (
        COST + ENGINE + 'scheduler = "sarathi"\nprefix_caching = true\n',
        "prefix_caching: expected scheduler vllm_v1",
    ),
    (COST + ENGINE + 'scheduler = "sarathi"\n' + SPLIT, "expected scheduler vllm_v1"),
    (
        COST + ENGINE + 'scheduler = "sarathi"\nmax_num_seqs = 3\nstages = 4\n',
        "engine: max_num_seqs: found 3; expected one a stage at least, 4",
    ),
    (COST + SPLIT + ENGINE.replace("[engine]", "[power]"), "num_blocks"),
    (CURVE.replace("[9, 0.2]", "[1, 0.2]") + ENGINE, "prefill_knots: found 1 behind 1"),
    (CURVE.replace("[9, 0.2]", "9") + ENGINE, "prefill_knots: found 9; expected pairs"),
    (CURVE.replace(", [9, 0.2]", "") + ENGINE, "found 1; expected at least 2 knots"),
    (
        CURVE + "decode_contexts = [1, 2]\ndecode_batches = [1, 2]\ndecode_s = [[1.0, 2.0]]\n",
        "decode_s: found rows of [2]; expected 2 (decode_contexts) of 2",
    ),
    (COST.replace("1e-4", "-1") + ENGINE, "prefill_token_s: found -1"),
    (COST.replace("1e-4", "nan") + ENGINE, "prefill_token_s: found nan"),
    (COST.replace("0.01", "0") + ENGINE, "iteration_s: found 0"),
    (COST + ENGINE + "[power]\nidle_w = 1\nprefill_w = -2\ndecode_w = 1\n", "prefill_w: found -2"),
    (COST + ENGINE + "[power]\nidle_w = 1\n", "power.prefill_w: is missing"),
    (COST + ENGINE + SPLIT + 'decode_dispatch = "luck"\n', "decode_dispatch: unknown name 'luck'"),
    (COST + ENGINE + SPLIT + "decode_dispatch = 3\n", "decode_dispatch: unknown name 3"),
    ("cost = 3\n" + ENGINE, "cost: found 3; expected a table"),
    (COST, "kv_limit: is missing"),
    ("[power]\nidle_w = 1\n", "is missing"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[words for _, words in WRONG])
def test_one_message_for_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        _read(tmp_path, text)
    assert words in str(caught.value)
    assert "model.toml" in str(caught.value)


def test_iterations_may_cost_what_they_hold_alone(tmp_path: Path) -> None:
    of_tokens = COST.replace("0.01", "0").replace("decode_seq_s = 0", "decode_seq_s = 1e-3")
    trace = serving.RequestTrace(arrival=[0.0], prompt_tokens=[30], output_tokens=[3])
    run = serving.simulate_llm(trace, _read(tmp_path, of_tokens + ENGINE))
    assert (run.first_token[0], run.finish[0]) == pytest.approx((0.003, 0.005))


def test_peaks_are_tokens_whatever_they_are_counted_in(tmp_path: Path) -> None:
    trace = serving.RequestTrace(arrival=[0.0], prompt_tokens=[30], output_tokens=[4])
    pools = SPLIT + "[split.decode]\nblock_size = 8\n"
    for text, replicas, peaks in (
        (ENGINE, 1, [48]),
        (ENGINE + 'scheduler = "orca"\n', 1, [34]),
        (ENGINE + pools, 2, [32, 0, 40, 0, 0, 0]),
    ):
        run = serving.simulate_llm(trace, _read(tmp_path, COST + text), replicas)
        assert run.peak_kv.tolist() == peaks


def test_what_only_requests_can_tell(tmp_path: Path) -> None:
    trace = serving.RequestTrace(
        arrival=[0.0, 1.0], prompt_tokens=[30, 40], output_tokens=[3, 0], blocks=[[1], [1]]
    )
    odd = _read(tmp_path, COST + ENGINE + "block_size = 24\nprefix_caching = true\n")
    with pytest.raises(SpecError, match="block_size: found 24; prefix_caching with ids expects"):
        serving.simulate_llm(trace, odd)
    model = _read(tmp_path, COST + ENGINE)
    run = serving.simulate_llm(trace, model)
    # Without output tokens, one is made.
    assert run.gap_counts.sum() == 2
    assert np.isfinite(run.finish).all()
    tight = model.but(num_blocks=2)
    assert serving.simulate_llm(trace, tight).metrics()["num_rejected"] == 2
    with pytest.raises(SpecError, match="2 requests are larger than 2 blocks of 16 tokens"):
        serving.llm_capacity(trace, tight, {"p99_ttft": 1.0})
    free = CURVE.replace("[9, 0.2]", "[2, 0.01]") + ENGINE
    with pytest.raises(SpecError, match="an iteration takes no time"):
        serving.simulate_llm(trace, _read(tmp_path, free))
    with pytest.raises(SpecError, match="limits: unknown name 'p99_tft'"):
        serving.llm_capacity(trace, model, {"p99_tft": 1.0})
    with pytest.raises(SpecError, match="dispatch: unknown name 'luck'"):
        serving.simulate_llm(trace, model, 1, "luck")
    for replicas in (0, 1.5, True, 10**9):
        with pytest.raises(SpecError, match="replicas: found"):
            serving.simulate_llm(trace, model, replicas)  # type: ignore[arg-type] # on purpose


def test_kernel_tables_that_make_no_sense(tmp_path: Path) -> None:
    cost = '[cost]\nform = "layers"\nprofile = "gone"\nlayers = 2\nhidden = 8\n'
    with pytest.raises(TraceError, match="gone_dense"):
        _read(tmp_path, cost + ENGINE)
