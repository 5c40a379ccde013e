"""The HTML page of a capacity search for language models: set-ups, their prices, what was tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.report.format import plural
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, table_of
from windtunnel.report.result_page import result_page
from windtunnel.serving.llm_limits import AT_MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.sections import Table
    from windtunnel.serving import Limits, RequestTrace
    from windtunnel.serving.llm_capacity import LlmChoice

_PRICES = {"gpus": "GPUs", "energy_kwh": "kWh", "carbon_kg": "carbon, kg", "money": "money"}


def llm_capacity_page(
    requests: RequestTrace, choices: Sequence[LlmChoice], limits: Limits, *, command: str
) -> str:
    """Return the page of a search, as one self-contained HTML text.

    Args:
        requests: that were served.
        choices: of `windtunnel.serving.llm_choices`, the cheapest first.
        limits: that each had to keep.
        command: what makes the page again, printed at its end.
    """
    found = [one for one in choices if one.found is not None]
    result = Result(
        title="Capacity for a language model",
        headline=_headline(found[0]),
        subtitle=[clean(requests.name), plural(len(requests), "request")],
        parts=[
            Part("Set-ups, the cheapest first", tables=[("", _prices(found))]),
            Part("What was tried", tables=[("", _tried(found, limits))]),
        ],
        notes=[
            *(f"limit: {name} {_side(name)} {bound:g}" for name, bound in limits.bounds.items()),
            *(f"{_name(one)}: {one.reason}" for one in choices if one.found is None),
        ],
    )
    return result_page(result, command=command)


def _headline(best: LlmChoice) -> str:
    found = best.found
    assert found is not None  # noqa: S101 - those that suffice come first
    keep = "keeps" if found.replicas == 1 else "keep"
    words = f"{plural(found.replicas, 'replica')} on {plural(found.gpus, 'GPU')} {keep} every limit"
    fewer = found.met.get(found.replicas - 1)
    return f"{words}; one fewer does not." if fewer is False else f"{words}."


def _side(name: str) -> str:
    return "at most" if name in AT_MOST else "at least"


def _name(choice: LlmChoice) -> str:
    return clean(f"{choice.setup.name}, {choice.setup.dispatch}")


def _prices(found: Sequence[LlmChoice]) -> Table:
    rows = [
        [
            _name(one),
            str(one.found.replicas),
            *(_text(one.figures.get(price)) for price in _PRICES),
            *(_text(one.figures.get(name)) for name in ("p99_ttft", "p99_tpot")),
        ]
        for one in found
        if one.found is not None
    ]
    columns = ["set-up", "replicas", *_PRICES.values(), "P99 TTFT, s", "P99 TPOT, s"]
    return table_of(columns, rows)


def _tried(found: Sequence[LlmChoice], limits: Limits) -> Table:
    rows = [
        [_name(one), str(n), *(_text(figures[name]) for name in limits.bounds), _met(one, n)]
        for one in found
        if one.found is not None
        for n, figures in sorted(one.found.tried.items())
    ]
    return table_of(["set-up", "replicas", *limits.bounds, "keeps all limits"], rows)


def _met(choice: LlmChoice, replicas: int) -> str:
    return "yes" if choice.found is not None and choice.found.met[replicas] else "no"


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
