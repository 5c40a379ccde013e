"""``windtunnel serving capacity``: the fewest GPUs that serve enough requests in time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.serving_options import (
    drawn_from,
    memory_option,
    warm_up_option,
    workload_options,
)
from windtunnel.cli.serving_placed import GIB, POLICIES
from windtunnel.cli.serving_told import cell, check_ending, tell
from windtunnel.cli.serving_told import replace as write_text

if TYPE_CHECKING:
    from pathlib import Path


@click.command(short_help="How many GPUs a workload needs.")
@workload_options
@click.option(
    "--attainment",
    type=float,
    default=0.99,
    show_default=True,
    metavar="X",
    help="Share of requests within their SLO.",
)
@click.option("--policy", default="mp-search", show_default=True, metavar="NAME", help=POLICIES)
@click.option(
    "--max-gpus",
    type=click.IntRange(1, 4096),
    default=256,
    show_default=True,
    help="Give up beyond.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=1024),
    default=1,
    show_default=True,
    help="Threads; the result is the same.",
)
@click.option(
    "--refine",
    type=click.IntRange(min=0),
    metavar="N",
    help="Simulations spent on improving each placement.  [default: 400]",
)
@warm_up_option
@memory_option
@out_option("FILE.json", "Write the placement.")
@output_options
def capacity(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Search the fewest GPUs on which a placement serves enough of the requests in time.

    The number found suffices and one fewer, searched too, does not.
    """
    from windtunnel import serving as rooms
    from windtunnel.cli.screen import heading, plain_table, progress, shows_progress
    from windtunnel.serving.search import REFINE

    check_ending(out, (".json",))
    spec, profile, drawn = drawn_from(asked)
    with progress("Searching", show=shows_progress(as_json=as_json)) as done:
        found = rooms.fewest_gpus(
            drawn,
            profile,
            asked["attainment"],
            asked["policy"],
            mem_budget=asked["mem_gib"] * GIB,
            overheads=spec.overheads,
            max_gpus=asked["max_gpus"],
            refine=REFINE if asked["refine"] is None else asked["refine"],
            workers=asked["workers"],
            on_done=done,
        )
    placement = found.found.placement
    run = rooms.simulate(placement, drawn, profile, overheads=spec.overheads)
    figures = run.metrics(asked["warm_up"])
    if out is not None:
        write_text(out, json.dumps(placement.data(), indent=1) + "\n")
    tried = [{"gpus": n, "slo_attainment": share} for n, share in sorted(found.tried.items())]
    if as_json:
        from windtunnel.cli.machine import print_json

        told = {
            "gpus": found.gpus,
            "attainment": asked["attainment"],
            "tried": tried,
            "placement": placement.data(),
            "metrics": figures,
            "workload": spec.data(),
            "out": None if out is None else str(out),
        }
        print_json(told)
        return
    console = tell(figures, placement, f"the fewest for {asked['attainment']:g} in time")
    heading(console, "Searched")
    rows = [[str(one["gpus"]), cell(one["slo_attainment"])] for one in tried]
    console.print(plain_table(["GPUs", "within SLO"], rows, numbers=2))
