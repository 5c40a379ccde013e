"""``windtunnel serving fleet``: language models and groups of other models on one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import option
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import progress
from windtunnel.cli.serving_options import memory_option
from windtunnel.cli.serving_placed import GIB, POLICIES
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.serving import Fleet


@click.command(short_help="Language models and others on one cluster.")
@click.argument("fleet", metavar="FLEET.toml")
@option("--gpus", "GPUs to use.", click.IntRange(min=1, max=4096), required=True)
@option("--policy NAME", f"Places the models of fixed latency: {POLICIES}", default="mp-search")
@memory_option
@presented((".html",), "Write a page.", metavar="FILE.html", reads="fleet")
def fleet(*, fleet: str, **asked: Any) -> Result:
    """Share out GPUs so that the most requests are in time.

    FLEET.toml has a table for each language model: model and requests (files), and tp, rate,
    dispatch, ttft, tpot and e2e if wanted. Its workload names a file of models of fixed latency,
    which are placed in groups.
    """
    from windtunnel import serving as rooms

    spec = rooms.read_fleet(fleet)
    others: dict[str, Any] = {}
    if spec.workload is not None:
        profile = spec.workload.read_profile()
        others = {"workload": spec.workload.draw(profile), "profile": profile}
        others |= {"mem_budget": asked["mem_gib"] * GIB, "overheads": spec.workload.overheads}
    with progress("Searching") as done:
        found = rooms.search_fleet(
            asked["gpus"], spec.llms, policy=asked["policy"], on_done=done, **others
        )
    from windtunnel.report.serving_page import SHARES, fleet_page, shares

    return Result(
        f"{100 * found.attainment:.2f} % of all requests in time",
        parts=[Part("", tables=[("", table_of(list(SHARES), shares(found), texts=1))])],
        data=_data(found),
        page=lambda command: fleet_page(found, command=command),
    )


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
