"""``windtunnel serving llm``: recorded requests on replicas of a language model."""

from __future__ import annotations

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
    slo_options,
    slos_from,
    trace_options,
)
from windtunnel.cli.opening import check_out
from windtunnel.cli.options import option
from windtunnel.cli.presenting import presented

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.serving import RequestTrace

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
    from windtunnel import serving as rooms

    check_out(requests_out, (".csv", ".csv.gz", ".parquet"), trace, "--requests")
    requests, model = requests_from(trace, asked), model_from(asked["model"], asked)
    run = rooms.simulate_llm(requests, model, asked["replicas"], asked["dispatch"])
    slo = slos_from(asked)
    figures = run.metrics(**slo, **prices_from(asked))
    rates = _rates(asked["rates"], requests) if asked["rates"] or is_typed("out") else []
    by_rate = rooms.goodput_by_rate(
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
