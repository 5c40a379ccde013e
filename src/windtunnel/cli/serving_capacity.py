"""``windtunnel serving capacity``: the fewest GPUs that serve enough requests in time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import option
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import progress
from windtunnel.cli.serving_options import (
    drawn_from,
    memory_option,
    warm_up_option,
    workload_options,
)
from windtunnel.cli.serving_placed import GIB, POLICIES, effort_from, refine_option
from windtunnel.cli.serving_results import cell, run_result
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.serving import Fleet


@click.command(short_help="How many GPUs a workload needs.")
@workload_options
@option("--attainment X", "Share of requests within their SLO.", float, default=0.99)
@option("--policy NAME", POLICIES, default="mp-search")
@option("--max-gpus", "Give up beyond.", click.IntRange(1, 4096), default=256)
@option("--workers", "Threads; the result is the same.", click.IntRange(min=1, max=1024), default=1)
@refine_option
@warm_up_option
@memory_option
@presented((".json",), "Write the placement.", metavar="FILE.json", reads="")
def capacity(**asked: Any) -> Result:
    """Search the fewest GPUs on which a placement serves enough of the requests in time.

    The number found suffices and one fewer, searched too, does not.
    """
    from windtunnel import serving

    spec, profile, drawn = drawn_from(asked)
    with progress("Searching") as done:
        found = serving.fewest_gpus(
            drawn,
            profile,
            asked["attainment"],
            asked["policy"],
            overheads=spec.overheads,
            max_gpus=asked["max_gpus"],
            **effort_from(asked, done),
        )
    placement = found.found.placement
    run = serving.simulate(placement, drawn, profile, overheads=spec.overheads)
    figures = run.metrics(asked["warm_up"])
    tried = [{"gpus": n, "slo_attainment": share} for n, share in sorted(found.tried.items())]
    rows = [[str(one["gpus"]), cell(one["slo_attainment"])] for one in tried]
    return run_result(
        figures,
        placement,
        f"the fewest for {asked['attainment']:g} in time",
        parts=[Part("", tables=[("Searched", table_of(["GPUs", "within SLO"], rows))])],
        data={
            "gpus": found.gpus,
            "attainment": asked["attainment"],
            "tried": tried,
            "placement": placement.data(),
            "metrics": figures,
            "workload": spec.data(),
        },
        text=lambda: json.dumps(placement.data(), indent=1) + "\n",
    )


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
    from windtunnel import serving

    spec = serving.read_fleet(fleet)
    others: dict[str, Any] = {}
    if spec.workload is not None:
        profile = spec.workload.read_profile()
        others = {"workload": spec.workload.draw(profile), "profile": profile}
        others |= {"mem_budget": asked["mem_gib"] * GIB, "overheads": spec.workload.overheads}
    with progress("Searching") as done:
        found = serving.search_fleet(
            asked["gpus"], spec.llms, policy=asked["policy"], on_done=done, **others
        )
    from windtunnel.report.serving_page import fleet_result

    return fleet_result(found).with_data(_data(found))


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
    return {
        "gpus": found.gpus,
        "slo_attainment": found.attainment,
        "llms": llms,
        "groups": groups,
    }
