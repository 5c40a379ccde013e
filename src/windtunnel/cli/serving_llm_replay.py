"""``windtunnel serving llm-replay``: an engine's request log beside its simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.llm_options import engine_options, model_from
from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.serving_told import cell, check_ending

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.serving.llm_replay import Replay

_WORDS = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "end to end"}


@click.command("llm-replay", short_help="Hold the simulation against an engine's request log.")
@click.argument("log", metavar="LOG.jsonl")
@click.option(
    "--model", required=True, metavar="MODEL.toml[#NAME]", help="The engine, and what it costs."
)
@engine_options
@out_option("FILE.html", "Write a page that shows request by request.")
@output_options
def llm_replay(*, log: str, model: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Serve the requests of a vLLM log again, and tell measured and simulated figures.

    LOG.jsonl has a line a request: input_toks, output_toks, queued_ts, first_token_ts and
    last_token_ts (s); a request arrives when it was queued.
    """
    from windtunnel import serving as rooms

    check_ending(out, (".html",))
    found = rooms.replay_log(log, model_from(model, asked))
    if out is not None:
        from windtunnel.cli.serving_told import command_line, replace
        from windtunnel.report.llm_replay_page import replay_page

        replace(out, replay_page(found, command=command_line()))
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({**found.told(), "out": None if out is None else str(out)})
        return
    _tell(found)


def _tell(found: Replay) -> None:
    from windtunnel.cli.screen import heading, line, plain_table, screen
    from windtunnel.report.format import plural

    console = screen()
    heading(console, f"{plural(len(found.log.first), 'request')}, measured and simulated")
    rows = []
    for name, value in found.measured.items():
        point, _, latency = name.partition("_")
        error = found.error[name]
        percent = "" if error is None else f"{100 * error:+.2f}"
        title = f"{_WORDS[latency]} {point if point == 'mean' else point.upper()}"
        rows.append([title, cell(value), cell(found.simulated[name]), percent])
    console.print(plain_table(["s", "measured", "simulated", "error, %"], rows, numbers=3))
    if found.mean_absolute_error is not None:
        console.print(line(f"mean |error| {100 * found.mean_absolute_error:.2f} %"))
