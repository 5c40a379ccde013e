"""``windtunnel plan``: what to choose, by search over flights."""

from __future__ import annotations

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option


@click.group(
    cls=LazyGroup,
    homes={"reliability": "windtunnel.cli.plan_reliability"},
    short_help="What to choose: checkpoints, spare nodes, nodes to drain.",
)
@debug_option
def plan() -> None:
    """Choose by search over flights, with what theory says beside it."""
