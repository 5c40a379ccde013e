"""``windtunnel study``: experiments at scale."""

from __future__ import annotations

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option


@click.group(
    cls=LazyGroup,
    homes={
        "run": "windtunnel.cli.study_run",
        "show": "windtunnel.cli.study_show",
        "compare": "windtunnel.cli.study_show",
        "tune": "windtunnel.cli.study_tune",
    },
    short_help="Experiments: many runs, on every core or a Ray cluster.",
)
@debug_option
def study() -> None:
    """Fly a grid of runs - traces, clusters, policies, loads, seeds - and tell who beats whom.

    STUDY.toml describes the grid. Results lie in a folder; a run that is there is not flown again,
    so that an interrupted study goes on where it was.
    """
