"""``windtunnel serving fleet``: language models and groups of other models on one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.serving_options import memory_option
from windtunnel.cli.serving_placed import GIB, POLICIES
from windtunnel.cli.serving_told import check_ending, command_line, replace

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.serving import Fleet


@click.command(short_help="Language models and others on one cluster.")
@click.argument("fleet", metavar="FLEET.toml")
@click.option("--gpus", type=click.IntRange(min=1, max=4096), required=True, help="GPUs to use.")
@click.option(
    "--policy",
    default="mp-search",
    show_default=True,
    metavar="NAME",
    help=f"Places the models of fixed latency: {POLICIES}",
)
@memory_option
@out_option("FILE.html", "Write a page.")
@output_options
def fleet(*, fleet: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Share out GPUs so that the most requests are in time.

    FLEET.toml has a table for each language model: model and requests (files), and tp, rate,
    dispatch, ttft, tpot and e2e if wanted. Its workload names a file of models of fixed latency,
    which are placed in groups.
    """
    from windtunnel import serving as rooms
    from windtunnel.cli.screen import progress, shows_progress

    check_ending(out, (".html",))
    spec = rooms.read_fleet(fleet)
    others: dict[str, Any] = {}
    if spec.workload is not None:
        profile = spec.workload.read_profile()
        others = {"workload": spec.workload.draw(profile), "profile": profile}
        others |= {"mem_budget": asked["mem_gib"] * GIB, "overheads": spec.workload.overheads}
    with progress("Searching", show=shows_progress(as_json=as_json)) as done:
        found = rooms.search_fleet(
            asked["gpus"], spec.llms, policy=asked["policy"], on_done=done, **others
        )
    if out is not None:
        from windtunnel.report.fleet_page import fleet_page

        replace(out, fleet_page(found, command=command_line()))
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({**_data(found), "out": None if out is None else str(out)})
        return
    _tell(found)


def _data(found: Fleet) -> dict[str, Any]:
    llms = []
    for one in found.llms:
        slo = {"ttft": one.service.ttft, "tpot": one.service.tpot, "e2e": one.service.e2e}
        each: dict[str, Any] = {"name": one.service.name, "replicas": one.replicas}
        each |= {"gpus": one.gpus, "tensor_parallel": one.model.cost.tensor_parallel}
        each |= {"slo_attainment": one.attainment}
        llms.append({**each, "metrics": one.outcome and one.outcome.metrics(**slo)})
    groups: dict[str, Any] | None = None
    if found.placed is not None:
        groups = {"gpus": found.placed_gpus, "slo_attainment": found.placed.attainment}
        groups["placement"] = found.placed.placement.data()
    told: dict[str, Any] = {"gpus": found.gpus, "slo_attainment": found.attainment}
    return {**told, "llms": llms, "groups": groups}


def _tell(found: Fleet) -> None:
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.report.fleet_page import SHARES, shares

    console = screen()
    heading(console, f"{100 * found.attainment:.2f} % of all requests in time")
    console.print(plain_table(list(SHARES), shares(found), numbers=3))
