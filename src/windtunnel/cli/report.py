"""``windtunnel report``: what an operator asks of a log, answered in tables and on a page."""

from __future__ import annotations

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option


@click.group(
    cls=LazyGroup,
    homes={
        "waste": "windtunnel.cli.report_waste",
        "goodput": "windtunnel.cli.report_goodput",
        "queue": "windtunnel.cli.report_queue",
        "cost": "windtunnel.cli.report_cost",
    },
    short_help="An operator's questions: waste, goodput, waits and their causes, cost.",
)
@debug_option
def report() -> None:
    """Answer an operator's questions of a log: where GPU hours went, why jobs waited, who pays."""
