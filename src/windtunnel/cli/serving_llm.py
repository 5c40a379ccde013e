"""``windtunnel serving llm|llm-capacity|llm-sweep``: a language model on its replicas."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.flying import is_typed
from windtunnel.cli.llm_options import (
    engine_options,
    model_from,
    model_option,
    prices_from,
    requests_from,
    save_requests,
    setup_options,
    setups_from,
    short_span,
    slo_options,
    slos_from,
    trace_options,
)
from windtunnel.cli.opening import check_out
from windtunnel.cli.options import option, word_option
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import progress
from windtunnel.cli.serving_results import CHARTS_AND_TABLES
from windtunnel.cli.serving_sweep import AXIS
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.serving import Limits, RequestTrace
    from windtunnel.serving.llm_capacity import LlmChoice


_SETTINGS = ("replicas", "dispatch", "ttft", "tpot", "e2e", "rate", "carbon", "tariff", "price")


@click.command(short_help="Serve a language model as its engine does.")
@trace_options
@model_option
@option("--rates X,Y,...", "Tell goodput at these rates, too.  [default: eight on a page]")
@option(
    "--requests OUT.csv",
    "Write a row a request.",
    click.Path(path_type=Path, dir_okay=False),
    dest="requests_out",
)
@option("--replicas", "Replicas.", click.IntRange(1, 65536), default=1)
@option(
    "--dispatch RULE",
    "least_loaded, round_robin, least_waiting, least_tokens or prefix_affinity.",
    default="least_loaded",
)
@slo_options
@engine_options
@presented((".html", ".svg"), "Write a page (.html) or charts (.svg).")
def llm(*, trace: str, requests_out: Path | None, **asked: Any) -> Result:
    """Serve TRACE, such as an Azure LLM, BurstGPT or Mooncake file, on replicas of a model.

    Tells time to first token, time per output token, gaps between tokens, end-to-end latency,
    goodput under the SLOs given, and energy where the model's file tells power.
    """
    from windtunnel import serving

    check_out(requests_out, (".csv", ".csv.gz", ".parquet"), trace, "--requests")
    requests, model = requests_from(trace, asked), model_from(asked["model"], asked)
    run = serving.simulate_llm(requests, model, asked["replicas"], asked["dispatch"])
    slo = slos_from(asked)
    figures = run.metrics(**slo, **prices_from(asked))
    rates = _rates(asked["rates"], requests) if asked["rates"] or is_typed("out") else []
    by_rate = serving.goodput_by_rate(
        requests, model, rates, replicas=asked["replicas"], dispatch=asked["dispatch"], **slo
    ) if rates else []  # fmt: skip
    if requests_out is not None:
        save_requests(run, requests_out)

    from windtunnel.report.llm_result import llm_result

    data = {
        "settings": {name: asked[name] for name in _SETTINGS},
        "model": model.data(),
        "metrics": figures,
        "prefix_hits": requests.prefix_hits(),
        "by_rate": by_rate,
    }
    return llm_result(run, by_rate, slo, figures).with_data(data)


def _rates(text: str | None, requests: RequestTrace) -> list[float]:
    """Return the rates asked for; else eight from half of the requests' own to four times it."""
    if text is not None:
        try:
            return [float(word) for word in text.split(",")]
        except ValueError as error:
            raise click.UsageError(f"--rates: found {text!a}; expected numbers 1,2,4.") from error
    span = float(requests.arrival[-1]) if len(requests) else 0.0
    return [len(requests) / span * step / 2 for step in range(1, 9)] if span else []


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
@word_option(
    "--cheapest", "gpus", "kwh", "carbon", "money", help_text="What decides between set-ups."
)
@option("--max-replicas", "Give up beyond.", click.IntRange(1, 65536), default=1024)
@engine_options
@presented((".html",), "Write a page.", metavar="FILE.html")
def llm_capacity(*, trace: str, **asked: Any) -> Result:
    """Search the fewest replicas that serve TRACE within every --limit, with nobody refused.

    With --ttft alone: P99 time to the first token <= --ttft. Of several set-ups (models, --tp,
    --split-ratio, --dispatch) the cheapest comes first.
    """
    from windtunnel import serving

    limits = _limits(asked)
    requests = requests_from(trace, asked)
    setups, prices = setups_from(asked), prices_from(asked)
    with progress("Searching") as done:
        choices = serving.llm_choices(
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


@click.command("llm-sweep", short_help="Language models: what if, and against what changes.")
@trace_options
@setup_options
@option(
    "--over AXIS=VALUES",
    "rate, replicas or a key of the engine (num_blocks, token_budget, ...), with values "
    "10,20,40 or 10:40:7, 0,1 for off and on. May be repeated: one axis changes at a time.",
    AXIS,
    multiple=True,
)
@option("--replicas", "Replicas of each set-up.", click.IntRange(1, 65536), default=1)
@slo_options
@engine_options
@presented(
    CHARTS_AND_TABLES,
    "Write a page (.html), charts (.svg) or the figures (.csv, .parquet).",
)
def llm_sweep(*, trace: str, **asked: Any) -> Result:
    """Serve TRACE with every set-up (models, --tp, --split-ratio, --dispatch) at every point.

    Without --over it is a what-if: every set-up is held against the first. --over rate brings the
    same requests faster or slower. Tells latency, goodput, GPUs, kWh, carbon and money of each.
    """
    from windtunnel import serving
    from windtunnel.report.llm_sweep_page import llm_sweep_result

    over = {axis.name: axis.values for axis in asked["over"]}
    slo, prices = slos_from(asked), prices_from(asked)
    requests, setups = requests_from(trace, asked), setups_from(asked)
    points = len(setups) * (sum(map(len, over.values())) or 1)
    with progress("Serving", total=points) as done:
        rows = serving.llm_sweep(
            requests, setups, over, asked["replicas"], on_done=done, **slo, **prices
        )
    return llm_sweep_result(requests, rows, slo)
