"""Reading and writing a language model's file."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote
from windtunnel.serving.llm_costs import LINEAR, Cost, LinearCost, PiecewiseCost, RooflineCost
from windtunnel.serving.llm_engine import ENGINE_KEYS, Engine, Power, Split
from windtunnel.serving.llm_layers import LayersCost
from windtunnel.serving.llm_model import LlmModel
from windtunnel.serving.llm_numbers import known_keys, needed
from windtunnel.toml_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMS: dict[str, type[Cost]] = {
    one.form: one for one in (LinearCost, PiecewiseCost, RooflineCost, LayersCost)
}
#: Tables that are never a model.
_PARTS = ("cost", "engine", "power", "split")
_TOP = (*LINEAR[:4], "kv_limit", "max_batch", "gpus", *_PARTS)
_POOLS = ("prefill", "decode")


def read_llm_model(path: str | Path) -> LlmModel:
    """Read a model from TOML with the attributes of `LlmModel` as keys.

    A file with several models has a table for each, which ``FILE.toml#NAME`` chooses; what stands
    outside of them holds for each that does not say otherwise.

    Raises:
        SpecError: not TOML, a key is missing or unknown, a value is wrong, or no table is chosen.
        TraceError: a table of kernel times cannot be read.
    """
    return _read(path, _table_of(path))


def with_cost(path: str | Path, cost: Cost, *, only_if_missing: bool = False) -> LlmModel:
    """Return a file's model with another cost; the file need not have one.

    Args:
        path: as of `read_llm_model`.
        cost: in place of the file's.
        only_if_missing: keep the file's where it has one.

    Raises:
        SpecError: as of `read_llm_model`.
    """
    data = dict(_table_of(path))
    own = any(key in data for key in (*LINEAR[:4], "cost"))
    if own and only_if_missing:
        return read_llm_model(path)
    for key in (*LINEAR[:4], "cost"):
        data.pop(key, None)
    return _read(path, data, cost)


def _read(path: str | Path, data: Mapping[str, Any], cost: Cost | None = None) -> LlmModel:
    try:
        return _model(data, Path(str(path).partition("#")[0]).parent, cost)
    except SpecError as error:
        raise SpecError(str(path), str(error)) from error


def _table_of(path: str | Path) -> dict[str, Any]:
    """Return the keys of the model that a file has, or that is chosen."""
    name, _, chosen = str(path).partition("#")
    data: dict[str, Any] = read_toml(name)
    models = [key for key, value in data.items() if isinstance(value, dict) and key not in _PARTS]
    own = any(key in data for key in (*LINEAR[:4], "cost"))
    if chosen and chosen not in models:
        raise SpecError.unknown(name, chosen, models)
    if models and (chosen or not own):
        if not chosen and len(models) > 1:
            raise SpecError(name, f"has several models; choose one: {name}#{models[0]}.")
        shared = {key: value for key, value in data.items() if key not in models}
        data = {**shared, **data[chosen or models[0]]}
    for key in data:
        checked_choice(f"{path}: key", key, _TOP)
    return data


def _model(data: Mapping[str, Any], folder: Path, cost: Cost | None = None) -> LlmModel:
    plain = {key: data[key] for key in data if key not in _PARTS}
    if cost is not None:
        plain["cost"] = cost
    if "cost" in data:
        for key in LINEAR[:4]:
            if key in data:
                raise SpecError(key, "stands beside [cost]; expected one of them.")
        plain["cost"] = _cost("cost", data["cost"], folder)
    if "engine" in data:
        given = known_keys("engine", data["engine"], ENGINE_KEYS)
        plain["engine"] = _checked("engine", Engine, _with_blocks(given, data))
    if "power" in data:
        keys = ("idle_w", "prefill_w", "decode_w")
        given = known_keys("power", data["power"], keys)
        for key in keys:
            needed("power", given, key)
        plain["power"] = _checked("power", Power, given)
    if "split" in data:
        if "engine" not in data:
            raise SpecError("split", "expected an [engine] with scheduler vllm_v1 beside it.")
        plain["split"] = _split(data["split"], folder)
    return LlmModel(**plain)


def _with_blocks(engine: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an engine's keys; Orca's exact reservation may know tokens alone."""
    given = dict(engine)
    if "num_blocks" not in given and given.get("scheduler") == "orca" and "kv_limit" in data:
        given["num_blocks"] = data["kv_limit"]
        given.setdefault("block_size", 1)
    needed("engine", given, "num_blocks")
    return given


def _checked(where: str, kind: Any, given: Mapping[str, Any]) -> Any:
    try:
        return kind(**given)
    except SpecError as error:
        raise SpecError(where, str(error)) from error


def _cost(where: str, given: Any, folder: Path) -> Cost:
    if not isinstance(given, dict):
        raise SpecError(where, f"found {quote(given)}; expected a table.")
    form = given.get("form", "linear")
    if not isinstance(form, str) or form not in _FORMS:
        raise SpecError.unknown(f"{where}.form", form, _FORMS)
    kind = _FORMS[form]
    keys = [one.name for one in fields(kind)]  # type: ignore[arg-type] # every form is a dataclass
    known_keys(where, given, ("form", *keys))
    for one in fields(kind):  # type: ignore[arg-type] # as above
        if one.default is one.default_factory:  # both missing: it has to be given
            needed(where, given, one.name)
    plain = {key: _fixed(value) for key, value in given.items() if key != "form"}
    if kind is LayersCost and isinstance(plain["profile"], str):
        plain["profile"] = str(folder / plain["profile"])
    try:
        return _checked(where, kind, plain)  # type: ignore[no-any-return] # a cost
    except (TypeError, ValueError) as error:
        raise SpecError(where, f"found a value of a wrong kind: {error}.") from error


def _fixed(value: Any) -> Any:
    return tuple(_fixed(one) for one in value) if isinstance(value, list) else value


def _split(given: Any, folder: Path) -> Split:
    keys = [one.name for one in fields(Split) if not one.name.endswith("_cost")]
    plain = dict(known_keys("split", given, keys))
    for key in ("prefill_replicas", "decode_replicas", "kv_bytes_per_token", "bandwidth"):
        needed("split", plain, key)
    for pool in _POOLS:
        if pool in plain:
            own = dict(known_keys(f"split.{pool}", plain[pool], (*ENGINE_KEYS, "cost")))
            if "cost" in own:
                plain[f"{pool}_cost"] = _cost(f"split.{pool}.cost", own.pop("cost"), folder)
            plain[pool] = own
    return _checked("split", Split, plain)  # type: ignore[no-any-return] # a split


def llm_models_toml(models: Mapping[str, LlmModel]) -> str:
    """Return models as TOML that `read_llm_model` reads, a table for each name."""
    return "\n".join(_table([name], model.data()) for name, model in models.items())


def _table(path: list[str], data: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(_key(name) for name in path)}]"]
    lines += [
        f"{_key(key)} = {_value(value)}" for key, value in data.items() if not _is_table(value)
    ]
    inner = [_table([*path, key], value) for key, value in data.items() if _is_table(value)]
    return "\n".join(["\n".join(lines), *inner]) + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _key(name: str) -> str:
    plain = name.replace("_", "a").isalnum() and name.isascii()
    return name if plain else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)
