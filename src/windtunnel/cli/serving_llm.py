"""``windtunnel serving llm``: recorded requests on replicas of a language model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from windtunnel.cli.llm_told import tell_rates, tell_run
from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.serving_told import check_ending

if TYPE_CHECKING:
    from windtunnel.serving import LlmOutcome, RequestTrace

_SETTINGS = ("replicas", "dispatch", "ttft", "tpot", "e2e", "rate", "carbon", "tariff", "price")


@click.command(short_help="Serve a language model as its engine does.")
@trace_options
@model_option
@click.option(
    "--rates",
    metavar="X,Y,...",
    help="Tell goodput at these rates, too.  [default: eight on a page]",
)
@out_option("FILE", "Write a page (.html) or charts (.svg).")
@click.option(
    "--requests",
    "requests_out",
    metavar="OUT.csv",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a row a request.",
)
@click.option(
    "--replicas", type=click.IntRange(1, 65536), default=1, show_default=True, help="Replicas."
)
@click.option(
    "--dispatch",
    default="least_loaded",
    show_default=True,
    metavar="RULE",
    help="least_loaded, round_robin, least_waiting, least_tokens or prefix_affinity.",
)
@slo_options
@engine_options
@output_options
def llm(
    *, trace: str, out: Path | None, requests_out: Path | None, as_json: bool, **asked: Any
) -> None:
    """Serve TRACE, such as an Azure LLM, BurstGPT or Mooncake file, on replicas of a model.

    Tells time to first token, time per output token, gaps between tokens, end-to-end latency,
    goodput under the SLOs given, and energy where the model's file tells power.
    """
    from windtunnel import serving as rooms

    check_ending(out, (".html", ".svg"))
    check_ending(requests_out, (".csv", ".csv.gz", ".parquet"))
    requests, model = requests_from(trace, asked), model_from(asked["model"], asked)
    run = rooms.simulate_llm(requests, model, asked["replicas"], asked["dispatch"])
    slo = slos_from(asked)
    figures = run.metrics(**slo, **prices_from(asked))
    rates = _rates(asked["rates"], requests) if asked["rates"] or out is not None else []
    by_rate = rooms.goodput_by_rate(
        requests, model, rates, replicas=asked["replicas"], dispatch=asked["dispatch"], **slo
    ) if rates else []  # fmt: skip
    if out is not None:
        _write(run, by_rate, slo, out)
    if requests_out is not None:
        save_requests(run, requests_out)
    if as_json:
        from windtunnel.cli.machine import print_json

        told: dict[str, Any] = {"settings": {name: asked[name] for name in _SETTINGS}}
        told |= {"model": model.data(), "metrics": figures, "prefix_hits": requests.prefix_hits()}
        print_json({**told, "by_rate": by_rate, "out": None if out is None else str(out)})
        return
    tell_run(figures, asked["replicas"])
    tell_rates(by_rate)


def _rates(text: str | None, requests: RequestTrace) -> list[float]:
    """Return the rates asked for; else eight from half of the requests' own to four times it."""
    if text is not None:
        try:
            return [float(word) for word in text.split(",")]
        except ValueError as error:
            raise click.UsageError(f"--rates: found {text!a}; expected numbers 1,2,4.") from error
    span = float(requests.arrival[-1]) if len(requests) else 0.0
    return [len(requests) / span * step / 2 for step in range(1, 9)] if span else []


def _write(
    run: LlmOutcome, by_rate: list[dict[str, Any]], slo: dict[str, float], out: Path
) -> None:
    from windtunnel.cli.serving_told import command_line, replace

    if out.suffix.lower() == ".html":
        from windtunnel.report.llm_page import llm_page

        replace(out, llm_page(run, by_rate, slo, command=command_line()))
    else:
        from windtunnel.report.chart.saving import write_chart
        from windtunnel.report.llm_charts import llm_chart

        write_chart(out, llm_chart(run, by_rate, slo))
