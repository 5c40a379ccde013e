"""The command ``windtunnel`` itself: its commands and the options before them."""

from __future__ import annotations

import click

import windtunnel as package
from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option

#: Command -> the module that holds it, in the order of the help.
COMMANDS: dict[str, str] = {
    "traces": "windtunnel.cli.traces",
    "fetch": "windtunnel.cli.traces",
    "describe": "windtunnel.cli.describe",
    "figures": "windtunnel.cli.figures",
    "convert": "windtunnel.cli.traces",
    "fit": "windtunnel.cli.fit",
    "learn": "windtunnel.cli.learn",
    "simulate": "windtunnel.cli.simulate",
    "why": "windtunnel.cli.simulate",
    "compare": "windtunnel.cli.compare",
    "study": "windtunnel.cli.study",
    "bench": "windtunnel.cli.bench",
    "pack": "windtunnel.cli.pack",
    "predict": "windtunnel.cli.predict",
    "report": "windtunnel.cli.report",
    "whatif": "windtunnel.cli.whatif",
    "plan": "windtunnel.cli.plan",
    "validate": "windtunnel.cli.validate",
    "gavel": "windtunnel.cli.gavel",
    "throughput": "windtunnel.cli.throughput",
    "morphling": "windtunnel.cli.morphling",
    "energy": "windtunnel.cli.energy",
    "serving": "windtunnel.cli.serving",
    "lab": "windtunnel.cli.lab",
    "demo": "windtunnel.cli.demo",
}


@click.group(
    cls=LazyGroup,
    homes=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `windtunnel demo`. Every command takes --json and --help.",
)
@click.version_option(package.__version__, message="windtunnel %(version)s")
@debug_option
def windtunnel() -> None:
    """Fly a GPU cluster's recorded history again, under any scheduling policy.

    A trace is a cluster's list of jobs: a published one by name, a file of your own, or - for
    standard input. Windtunnel shows what it looks like, schedules it again on the cluster you
    describe, and tells what would have changed for whom.
    """
