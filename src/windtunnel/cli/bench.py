"""``windtunnel bench``: policies on the frozen scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windtunnel.cli.options import flag, option
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.screen import progress
from windtunnel.cli.study import names

if TYPE_CHECKING:
    from windtunnel.report.result import Result


@click.command(short_help="Score policies on twelve frozen scenarios, with bounds and intervals.")
@click.argument("policies", metavar="[POLICY]...", nargs=-1)
@option(
    "--scenarios NAMES",
    "Some of the scenarios, separated by commas, for a quick look.  [default: all twelve]",
)
@option(
    "--holdout [N]",
    "Fly seeds that nobody has seen, drawn from N; without N from the machine's randomness.",
    is_flag=False,
    flag_value="new",
)
@flag(
    "--clairvoyant",
    "A policy of one's own may know true durations and jobs to come; a class of its own.",
)
@presented(PAGES, "Write the leaderboard as one page.", metavar="FILE.html", reads="policies")
def bench(
    policies: tuple[str, ...], *, scenarios: str | None, holdout: str | None, clairvoyant: bool
) -> Result:
    """Score each POLICY, built in or package.module:name, on the frozen scenarios of bench-1.

    Without a POLICY the board of the built-in ones is shown. A score of 1 could not be beaten by
    any scheduler: it is the mean over proved lower bounds. A policy of one's own decides in a
    process of its own, which learns only what a scheduler may know.
    """
    from windtunnel.board.bench import bench as measured
    from windtunnel.report.board_result import board_result

    chosen = () if scenarios is None else names(scenarios, "--scenarios", "kalos")
    with progress("Flying"):
        found = measured(policies, scenarios=chosen, holdout=holdout, clairvoyant=clairvoyant)
    return board_result(found)
