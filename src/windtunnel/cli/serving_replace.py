"""``windtunnel serving replace``: placing anew over time, for free and at a price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import Seconds, output_options
from windtunnel.cli.serving_options import (
    drawn_from,
    memory_option,
    warm_up_option,
    workload_options,
)
from windtunnel.cli.serving_placed import GIB, switch_from, switch_options
from windtunnel.cli.serving_told import cell

if TYPE_CHECKING:
    from windtunnel.serving import ServingOutcome

_MEASURES = ("slo_attainment", "mean_latency", "p99_latency")


@click.command(short_help="Place anew over time, for free and at a price.")
@workload_options
@click.option("--gpus", type=click.IntRange(min=1, max=4096), required=True, help="GPUs to use.")
@click.option(
    "--every",
    type=Seconds(),
    default=60.0,
    show_default=True,
    help="Place anew for each stretch of so long.",
)
@click.option(
    "--policy",
    default="sr-greedy",
    show_default=True,
    metavar="NAME",
    help="How each stretch is placed; see `windtunnel serving search`.",
)
@switch_options
@warm_up_option
@memory_option
@output_options
def replace(*, as_json: bool, **asked: Any) -> None:
    """Compare one placement for all requests with a new one for each stretch of them.

    Every stretch is placed knowing its requests, which no operator does: an upper bound. It is
    served twice, once with free changes that empty every queue (Clockwork++), and once with work
    under way finished first and weights loaded.
    """
    from windtunnel import serving as rooms
    from windtunnel.cli.screen import progress, shows_progress

    spec, profile, drawn = drawn_from(asked)
    shared = {"mem_budget": asked["mem_gib"] * GIB, "overheads": spec.overheads}
    switch = switch_from(asked)
    with progress("Placing", show=shows_progress(as_json=as_json)) as done:
        once = rooms.search(drawn, profile, asked["gpus"], asked["policy"], refine=0, **shared)
        schedule = rooms.search_schedule(
            drawn, profile, asked["gpus"], asked["every"], asked["policy"], on_done=done, **shared
        )
    runs: dict[str, ServingOutcome] = {
        "once": rooms.simulate(once.placement, drawn, profile, **shared),
        "anew_free": rooms.simulate_schedule(schedule, drawn, profile, **shared),
        "anew_paid": rooms.simulate_schedule(schedule, drawn, profile, switch=switch, **shared),
    }
    figures = {name: run.metrics(asked["warm_up"]) for name, run in runs.items()}
    if as_json:
        from windtunnel.cli.machine import print_json

        placements = [placement.data() for placement in schedule.placements]
        told = {"starts": list(schedule.starts), "placements": placements, "metrics": figures}
        print_json(told)
        return
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.report.format import count

    console = screen()
    title = f"{count(len(drawn))} requests, {asked['gpus']} GPUs, {asked['policy']}"
    heading(console, f"{title}, {len(schedule.starts)} stretches")
    names = {"once": "once", "anew_free": "anew, free", "anew_paid": "anew, at a price"}
    rows = [[text, *(cell(figures[name][m]) for m in _MEASURES)] for name, text in names.items()]
    console.print(plain_table(["placed", "within SLO", "mean, s", "P99, s"], rows, numbers=3))
