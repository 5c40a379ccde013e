"""``windtunnel serving llm-sweep``: set-ups of a language model, as one thing changes or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.llm_options import (
    engine_options,
    prices_from,
    requests_from,
    setup_options,
    setups_from,
    slo_options,
    slos_from,
    trace_options,
)
from windtunnel.cli.options import option
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import progress
from windtunnel.cli.serving_sweep import AXIS
from windtunnel.cli.serving_told import CHARTS_AND_TABLES

if TYPE_CHECKING:
    from windtunnel.report.result import Result


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
    from windtunnel import serving as rooms
    from windtunnel.report.llm_sweep_page import llm_sweep_result

    over = {axis.name: axis.values for axis in asked["over"]}
    slo, prices = slos_from(asked), prices_from(asked)
    requests, setups = requests_from(trace, asked), setups_from(asked)
    points = len(setups) * (sum(map(len, over.values())) or 1)
    with progress("Serving", total=points) as done:
        rows = rooms.llm_sweep(
            requests, setups, over, asked["replicas"], on_done=done, **slo, **prices
        )
    return llm_sweep_result(requests, rows, slo)
