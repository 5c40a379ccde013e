"""``windtunnel serving llm-capacity``: the cheapest set-up of a language model in limits."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.llm_options import (
    engine_options,
    prices_from,
    requests_from,
    setup_options,
    setups_from,
    short_span,
    slo_options,
    slos_from,
    trace_options,
)
from windtunnel.cli.options import option, word_option
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.serving import Limits
    from windtunnel.serving.llm_capacity import LlmChoice

_LIMIT = re.compile(r"\s*(\w+)\s*(<=|>=)\s*(\S+)\s*")
_PRICES = ("gpus", "energy_kwh", "carbon_kg", "money")


@click.command("llm-capacity", short_help="How many GPUs a language model needs.")
@trace_options
@setup_options
@option(
    "--limit FIGURE<=X",
    "Such as p99_ttft<=1s, p90_tpot<=50ms, slo_attainment>=0.95; repeat for several.  "
    "[default: p99_ttft<=--ttft]",
    dest="limits",
    multiple=True,
)
@slo_options
@word_option("--cheapest", "gpus", "kwh", "carbon", "money", told="What decides between set-ups.")
@option("--max-replicas", "Give up beyond.", click.IntRange(1, 65536), default=1024)
@engine_options
@presented((".html",), "Write a page.", metavar="FILE.html")
def llm_capacity(*, trace: str, **asked: Any) -> Result:
    """Search the fewest replicas that serve TRACE within every --limit, with nobody refused.

    With --ttft alone: P99 time to the first token <= --ttft. Of several set-ups (models, --tp,
    --split-ratio, --dispatch) the cheapest comes first.
    """
    from windtunnel import serving as rooms

    limits = _limits(asked)
    requests = requests_from(trace, asked)
    setups, prices = setups_from(asked), prices_from(asked)
    with progress("Searching") as done:
        choices = rooms.llm_choices(
            requests, setups, limits, cheapest=asked["cheapest"],
            max_replicas=asked["max_replicas"], on_done=done, **prices,
        )  # fmt: skip
    best = choices[0]
    if best.found is None:  # llm_choices has said why
        raise click.ClickException(str(best.reason))
    from windtunnel.report.llm_result import llm_capacity_result

    data = {
        "replicas": best.found.replicas,
        "gpus": best.found.gpus,
        "tried": _tried(choices),
        "choices": [_row(choice) for choice in choices],
        "model": best.setup.model.data(),
        "metrics": best.figures,
    }
    return llm_capacity_result(requests, choices, limits).with_data(data)


def _limits(asked: dict[str, Any]) -> Limits:
    """Return the limits that were typed; else P99 TTFT <= ``--ttft``."""
    from windtunnel.serving import Limits
    from windtunnel.serving.llm_limits import AT_LEAST, AT_MOST

    bounds = {}
    for text in asked["limits"]:
        found = _LIMIT.fullmatch(text)
        if found is None:
            raise click.UsageError(f"--limit: found {text!a}; expected such as p99_ttft<=1s.")
        name, side, bound = found.groups()
        wanted = ">=" if name in AT_LEAST else "<="
        if side != wanted and name in (*AT_LEAST, *AT_MOST):
            raise click.UsageError(f"--limit: found {text!a}; expected {name}{wanted}X.")
        if name in bounds:
            raise click.UsageError(f"--limit: {name} has two limits; give the stricter one.")
        bounds[name] = _bound(text, bound, is_span=name not in AT_LEAST)
    if not bounds:
        if asked["ttft"] is None:
            raise click.UsageError("expected a --limit, or --ttft.")
        bounds = {"p99_ttft": asked["ttft"]}
    return Limits(bounds, **slos_from(asked))


def _bound(text: str, bound: str, *, is_span: bool) -> float:
    try:
        value = short_span(bound) if is_span else float(bound)
    except (ValueError, SpecError):
        value = 0.0
    if not 0 < value < math.inf:
        wanted = "a time > 0, such as 1s, 100ms or 2m" if is_span else "a number > 0"
        raise click.UsageError(f"--limit: found {text!a}; expected {wanted}.")
    return value


def _tried(choices: list[LlmChoice]) -> list[dict[str, Any]]:
    return [
        {**_of(choice), "replicas": n, "met": choice.found.met[n], **figures}
        for choice in choices
        if choice.found is not None
        for n, figures in sorted(choice.found.tried.items())
    ]


def _of(choice: LlmChoice) -> dict[str, Any]:
    return {"model": choice.setup.name, "dispatch": choice.setup.dispatch}


def _row(choice: LlmChoice) -> dict[str, Any]:
    replicas = None if choice.found is None else choice.found.replicas
    prices = {name: choice.figures.get(name) for name in _PRICES}
    return {**_of(choice), "replicas": replicas, **prices, "reason": choice.reason}
