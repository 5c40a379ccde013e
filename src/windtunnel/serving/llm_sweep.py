"""How set-ups of a language model do beside each other, and as one thing about them changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError
from windtunnel.serving.llm_engine import ENGINE_KEYS
from windtunnel.serving.llm_simulate import simulate_llm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windtunnel.serving.llm_capacity import LlmSetup
    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.llm_outcome import Intensity
    from windtunnel.serving.request_traces import RequestTrace

_FLAGS = ("prefix_caching", "reserve_prompt")
#: What may change: the requests' rate (1/s), replicas, and every number of an engine.
LLM_AXES = ("rate", "replicas", *(key for key in ENGINE_KEYS if key != "scheduler"))


@dataclass(frozen=True)
class _Point:
    axis: str
    value: float | None
    setup: LlmSetup
    requests: RequestTrace
    model: LlmModel
    replicas: int


def llm_sweep(
    requests: RequestTrace,
    setups: Sequence[LlmSetup],
    over: Mapping[str, Sequence[float]] | None = None,
    replicas: int = 1,
    *,
    ttft: float = math.inf,
    tpot: float = math.inf,
    e2e: float = math.inf,
    carbon: float | Intensity | None = None,
    price: float | None = None,
    tariff: float | Intensity | None = None,
    on_done: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Serve the same requests with several set-ups while one thing at a time changes.

    Args:
        requests: of which all count.
        setups: models and rules of dispatch.
        over: axis of `LLM_AXES` -> its values, 0 or 1 for what is on or off; the rest stays as it
            is. None = nothing changes.
        replicas: of each set-up.
        ttft: SLO, s.
        tpot: SLO, s.
        e2e: SLO, s.
        carbon: g/kWh, or how it changes over the trace's time.
        price: of a GPU for an hour.
        tariff: of a kWh, or how it changes over the trace's time.
        on_done: called after each simulation.

    Returns:
        A row a point and set-up, in the order asked for: ``axis`` and ``value`` (empty and None
        where nothing changes), ``candidate`` (the set-up's name and rule), ``replicas`` and
        `LlmOutcome.metrics`.

    Raises:
        SpecError: an unknown axis, no values, or one that makes no sense; two set-ups of one name.
    """
    names = [setup.title for setup in setups]
    for name in names:
        if names.count(name) > 1:
            raise SpecError("setups", f"found {name!a} twice; expected each set-up once.")
    points = [
        _point(requests, setup, replicas, axis, value)
        for axis, values in _axes(over)
        for value in values
        for setup in setups
    ]
    rows = []
    for point in points:
        run = simulate_llm(point.requests, point.model, point.replicas, point.setup.dispatch)
        figures = run.metrics(ttft, tpot, e2e, carbon, price, tariff=tariff)
        about = {"axis": point.axis, "value": point.value, "candidate": point.setup.title}
        rows.append({**about, "replicas": point.replicas, **figures})
        if on_done is not None:
            on_done("point")
    return rows


def _axes(
    over: Mapping[str, Sequence[float]] | None,
) -> list[tuple[str, Sequence[float | None]]]:
    for axis, values in (over or {}).items():
        checked_choice("over", axis, LLM_AXES)
        if not values:
            raise SpecError("over", f"expected values of {axis}.")
    return list(over.items()) if over else [("", (None,))]


def _point(
    requests: RequestTrace, setup: LlmSetup, replicas: int, axis: str, value: float | None
) -> _Point:
    """Return what is served at a point, and with what."""
    model = setup.model
    value = None if value is None else float(value)
    if value is None:
        return _Point(axis, None, setup, requests, model, replicas)
    if axis == "rate":
        requests = requests.at_rate(value)
    elif axis == "watermark":
        model = model.but(watermark=value)
    elif not value.is_integer():
        raise SpecError("over", f"{axis}: found {value:g}; expected whole numbers.")
    elif axis == "replicas":
        replicas = int(value)
    elif axis in _FLAGS and value not in (0, 1):
        raise SpecError("over", f"{axis}: found {value:g}; expected 0 or 1.")
    else:
        model = model.but(**{axis: bool(value) if axis in _FLAGS else int(value)})
    return _Point(axis, value, setup, requests, model, replicas)
