"""Reading a file that names what shares a cluster: language models, and a workload of others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.checked import checked_choice, checked_count, checked_number
from windtunnel.errors import SpecError, quote
from windtunnel.serving.llm_engine import LLM_DISPATCH
from windtunnel.serving.llm_files import read_llm_model
from windtunnel.serving.llm_numbers import MOST, known_keys, needed
from windtunnel.serving.request_traces import read_token_requests
from windtunnel.serving.search.fleet import LlmService
from windtunnel.serving.workload_spec import WorkloadSpec, read_workload
from windtunnel.toml_file import read_toml

_SLOS = ("ttft", "tpot", "e2e")
_KEYS = ("model", "requests", "tp", "rate", "dispatch", *_SLOS)


@dataclass(frozen=True)
class FleetSpec:
    """What shares a cluster.

    Attributes:
        llms: the language models.
        workload: of the models of fixed latency; None where there are none.
    """

    llms: tuple[LlmService, ...]
    workload: WorkloadSpec | None


def read_fleet(path: str | Path) -> FleetSpec:
    """Read a fleet from TOML; files named in it lie beside it.

    ``workload`` names a file of `windtunnel.serving.read_workload`. Each table is a language model
    with ``model`` (a file of `windtunnel.serving.read_llm_model`), ``requests`` (a trace), and, if
    wanted, ``tp`` (degrees to choose from), ``rate`` (requests/s), ``dispatch``, ``ttft``, ``tpot``
    and ``e2e`` (SLOs, s).

    Raises:
        SpecError: not TOML, an unknown or missing key, or a wrong value.
        TraceError: a trace cannot be read, or tells no tokens.
    """
    data: dict[str, Any] = read_toml(str(path))
    beside = Path(path).parent
    workload = data.pop("workload", None)
    try:
        if workload is not None:
            _text("workload", workload)
        services = [_service(name, table, beside) for name, table in data.items()]
    except SpecError as error:
        raise SpecError(str(path), str(error)) from error
    if workload is None and not services:
        raise SpecError(str(path), "expected a table of a language model, or workload.")
    spec = None if workload is None else read_workload(beside / workload)
    return FleetSpec(tuple(services), spec)


def _service(name: str, given: Any, beside: Path) -> LlmService:
    table = known_keys(name, given, _KEYS)
    for key in ("model", "requests"):
        _text(f"{name}.{key}", needed(name, table, key))
    degrees = table.get("tp", [])
    if not isinstance(degrees, list):
        raise SpecError(f"{name}.tp", f"found {quote(degrees)}; expected a list of numbers.")
    for degree in degrees:
        checked_count(f"{name}.tp", degree, most=MOST)
    slos = {k: checked_number(f"{name}.{k}", table[k], above=0) for k in _SLOS if k in table}
    requests = read_token_requests(beside / table["requests"])
    if "rate" in table:
        requests = requests.at_rate(checked_number(f"{name}.rate", table["rate"], above=0))
    model = read_llm_model(beside / table["model"])
    rule = table.get("dispatch", "least_loaded")
    checked_choice(f"{name}.dispatch", rule, LLM_DISPATCH)
    return LlmService(name, requests, model, tuple(degrees), rule, **slos)


def _text(key: str, value: Any) -> None:
    if not isinstance(value, str):
        raise SpecError(key, f"found {quote(value)}; expected a file's name.")
