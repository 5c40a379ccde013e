"""``windtunnel serving llm-replay``: an engine's request log beside its simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.llm_options import engine_options, model_from
from windtunnel.cli.options import option
from windtunnel.cli.presenting import presented
from windtunnel.cli.serving_told import cell
from windtunnel.report.format import plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.serving.llm_replay import Replay

_WORDS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "end to end"}


@click.command("llm-replay", short_help="Hold the simulation against an engine's request log.")
@click.argument("log", metavar="LOG.jsonl")
@option("--model MODEL.toml[#NAME]", "The engine, and what it costs.", required=True)
@engine_options
@presented(
    (".html",), "Write a page that shows request by request.", metavar="FILE.html", reads="log"
)
def llm_replay(*, log: str, model: str, **asked: Any) -> Result:
    """Serve the requests of a vLLM log again, and tell measured and simulated figures.

    LOG.jsonl has a line a request: input_toks, output_toks, queued_ts, first_token_ts and
    last_token_ts (s); a request arrives when it was queued.
    """
    from windtunnel import serving as rooms

    found = rooms.replay_log(log, model_from(model, asked))
    from windtunnel.report.llm_replay_page import replay_page

    mean = found.mean_absolute_error
    table = table_of(["s", "measured", "simulated", "error, %"], _figures(found))
    return Result(
        f"{plural(len(found.log.first), 'request')}, measured and simulated",
        parts=[Part("", tables=[("", table)])],
        notes=[] if mean is None else [f"mean |error| {100 * mean:.2f} %"],
        data=found.told(),
        page=lambda command: replay_page(found, command=command),
    )


def _figures(found: Replay) -> list[list[str]]:
    rows = []
    for name, value in found.measured.items():
        point, _, latency = name.partition("_")
        error = found.error[name]
        percent = "" if error is None else f"{100 * error:+.2f}"
        title = f"{_WORDS[latency]} {point if point == 'mean' else point.upper()}"
        rows.append([title, cell(value), cell(found.simulated[name]), percent])
    return rows
