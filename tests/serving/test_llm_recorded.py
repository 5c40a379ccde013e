"""Schedulers of real engines against their recorded runs, request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from llm_recorded import cases, model_of, read, recorded, served

if TYPE_CHECKING:
    from pathlib import Path

#: One of each scheduler, and of what else there is; the others take longer together.
QUICK = (
    *("conv-orca", "bursts-vllm_v0", "conv-sarathi-512", "bursts-sarathi-pp2"),
    *("conv-vllm_v0-lw2", "conv-vllm_v1-2048", "conv-vllm_v1-512-open"),
    *("chats-vllm_v1-cached-tight", "chats-4x-prefix_affinity", "chats-split-1G", "conv-layers"),
)


def _check(data_dir: Path, folder: Path, name: str) -> None:
    run = served(data_dir, cases(data_dir)[name], folder)
    rows = recorded(data_dir, name)
    for column in ("first_token", "finish"):
        np.testing.assert_allclose(getattr(run, column), rows[column], rtol=0, atol=1e-9)
    for column in {"restarts", "cached_tokens", "replica"} & rows.keys():
        np.testing.assert_array_equal(getattr(run, column), rows[column])
    expected = read(data_dir, "expected.json")
    figures = run.metrics(
        **expected["slo"], carbon=expected["carbon_g_per_kwh"], price=expected["price_per_gpu_hour"]
    )
    for figure, value in {**expected["cases"], **expected["ours"]}[name].items():
        assert figures[figure] == (value if value is None else pytest.approx(value, rel=1e-9))


@pytest.mark.parametrize("name", QUICK)
def test_recorded_runs(data_dir: Path, tmp_path: Path, name: str) -> None:
    _check(data_dir, tmp_path, name)


@pytest.mark.slow
def test_all_recorded_runs(data_dir: Path, tmp_path: Path) -> None:
    names = list(cases(data_dir))
    assert len(names) >= 54
    for name in names:
        _check(data_dir, tmp_path, name)


def test_costs_of_iterations(data_dir: Path, tmp_path: Path) -> None:
    known = cases(data_dir)
    asked = read(data_dir, "expected.json")["costs"]
    assert len(asked) >= 28
    for one in asked:
        cost = model_of(data_dir, known[one.pop("case")], tmp_path).cost
        seconds = one.pop("seconds")
        assert cost.seconds(**one) == pytest.approx(seconds, rel=1e-11)
