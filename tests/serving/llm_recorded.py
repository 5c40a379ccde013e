"""The recorded cases of language-model serving: their model files, requests and outputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.csv as pcsv

from windtunnel import serving

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

FOLDER = "llm_serving"
_ENGINE = (
    *("scheduler", "token_budget", "max_num_seqs", "block_size", "num_blocks", "watermark"),
    *("prefix_caching", "reserve_prompt", "reserve_tokens", "stages"),
)


def read(data: Path, name: str) -> Any:
    return json.loads((data / FOLDER / name).read_text())


def cases(data: Path) -> dict[str, dict[str, Any]]:
    return {**read(data, "cases.json"), **read(data, "cases_ours.json")}


def text_of(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {text_of(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(text_of(one) for one in value) + "]"
    return json.dumps(value)


def _table(name: str, keys: dict[str, Any]) -> list[str]:
    return [f"[{name}]", *(f"{key} = {text_of(value)}" for key, value in keys.items())]


def model_of(data: Path, case: dict[str, Any], folder: Path) -> serving.LlmModel:
    """Return a case's model, by way of a file."""
    cost = dict(case["cost"])
    if "profile" in cost:
        cost["profile"] = str(data / FOLDER / cost["profile"])
    lines = [f"gpus = {case.get('gpus', 1)}", *_table("cost", cost)]
    lines += _table("engine", {key: case[key] for key in _ENGINE if key in case})
    lines += _table("power", read(data, "expected.json")["power"])
    if "disaggregation" in case:
        split = dict(case["disaggregation"])
        split["decode_dispatch"] = split.pop("decode_router")
        lines += _table("split", split)
    file = folder / "model.toml"
    file.write_text("\n".join(lines))
    return serving.read_llm_model(file)


def served(data: Path, case: dict[str, Any], folder: Path) -> serving.LlmOutcome:
    """Serve a case."""
    requests = serving.read_requests(data / FOLDER / case["requests"])
    assert isinstance(requests, serving.RequestTrace)
    model = model_of(data, case, folder)
    return serving.simulate_llm(requests, model, case["replicas"], case["router"])


def recorded(data: Path, name: str) -> dict[str, np.ndarray]:
    """Return a case's recorded columns."""
    table = pcsv.read_csv(data / FOLDER / "oracle" / f"{name}.csv.gz")
    found = {column: table[column].to_numpy() for column in table.column_names}
    first = "first_token_at" if "first_token_at" in found else "prefill_completed_at"
    return {**found, "first_token": found[first], "finish": found["completed_at"]}
