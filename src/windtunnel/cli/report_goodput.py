"""``windtunnel report goodput``: GPU time that made progress, what failures cost, lemon nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceWish, open_wish
from windtunnel.cli.options import TIME, option, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.report.result import Result


@click.command(short_help="What did failures cost, and which nodes are lemons?")
@trace_options
@option(
    "--checkpoint",
    "Work between checkpoints, such as 1h.  [default: none; an interrupted attempt loses all]",
    TIME,
)
@option("--startup", "What a job's first attempt needs before it works.", TIME, default="0s")
@option("--restart", "What each later attempt needs.", TIME, default="0s")
@presented(PAGES, "Write the answer as one page.", metavar="FILE.html")
def goodput(
    *, trace: str, checkpoint: float | None, startup: float, restart: float, **asked: Any
) -> Result:
    """Tell how much GPU time of TRACE made progress, what interruptions cost, which nodes fail.

    Goodput, the effective training time ratio (ETTR) and the mean time to failure (MTTF) by job
    size with intervals; hours lost by cause; lemon nodes, told apart from outages, where the log
    names nodes. Records of requeued jobs (sacct's duplicates) are attempts of one job.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.characterize.goodput import recorded_goodput
    from windtunnel.report.goodput_report import goodput_answer, goodput_data

    if checkpoint is not None and not checkpoint > 0:
        raise SpecError("--checkpoint", f"found {checkpoint:g} s; expected it above 0.")
    opened = open_wish(TraceWish(trace, **asked))
    found = recorded_goodput(opened.jobs, checkpoint=checkpoint, startup=startup, restart=restart)
    return goodput_answer(found, opened, checkpoint).with_data(
        {"trace": trace_data(opened), **goodput_data(found), "checkpoint": checkpoint}
    )
