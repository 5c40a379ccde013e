"""``windtunnel serving``: workloads, simulation and placement search for model serving."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import flag, lazy_group, one_of, option
from windtunnel.cli.presenting import TABLES, presented
from windtunnel.cli.screen import progress
from windtunnel.cli.serving_options import (
    degrees,
    drawn_from,
    memory_option,
    warm_up_option,
    workload_options,
)
from windtunnel.cli.serving_placed import (
    GIB,
    POLICIES,
    Placed,
    effort_from,
    placed,
    refuse_large,
    search_options,
    switch_from,
    switch_options,
)
from windtunnel.cli.serving_results import (
    CHARTS_AND_TABLES,
    MODELS_SHOWN,
    cell,
    left_out,
    run_result,
)
from windtunnel.report.format import count
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.serving import Profile, ServingOutcome, Workload, WorkloadSpec


@lazy_group(
    "Serve models on groups of GPUs; search placements (AlpaServe).",
    workload="serving",
    simulate="serving",
    search="serving",
    capacity="serving_capacity",
    sweep="serving_sweep",
    replace="serving_sweep",
    evaluate="serving_sweep",
    fleet="serving_capacity",
    llm="serving_llm",
    llm_capacity="serving_llm",
    llm_fit="serving_llm_fit",
    llm_replay="serving_llm_fit",
    llm_sweep="serving_llm",
)
def serving() -> None:
    """Serve requests for many models on groups of GPUs, and search where the models should lie."""


@click.command(short_help="Draw or replay requests.")
@workload_options
@presented(TABLES, "Write the requests (.csv, .parquet).", reads="")
def workload(**asked: Any) -> Result:
    """Draw requests for several models, or replay recorded ones; tell what they are like.

    WORKLOAD.toml has the options below as keys, with underscores; TRACE is a file of recorded
    requests (Azure Functions or LLM, BurstGPT, Mooncake, GenTD26). Options go before a file's keys.
    """
    import numpy as np

    _, _, drawn = drawn_from(asked)
    counts = np.bincount(drawn.model, minlength=len(drawn.models)).tolist()
    models = []
    for index, name in enumerate(drawn.models):
        gaps = np.diff(drawn.arrival[drawn.model == index])
        mean = float(gaps.mean()) if len(gaps) else 0.0
        cv = float(gaps.std()) / mean if mean else None
        row = {"model": index, "name": name, "num_requests": counts[index]}
        models.append({**row, "rate": counts[index] / drawn.span if drawn.span else None, "cv": cv})
    rows = [
        [str(m["model"]), m["name"], count(m["num_requests"]), cell(m["rate"]), cell(m["cv"])]
        for m in models[:MODELS_SHOWN]
    ]
    columns = ["index", "model", "requests", "rate, 1/s", "cv of gaps"]
    return Result(
        f"{count(len(drawn))} requests in {drawn.span:.6g} s",
        parts=[Part("", tables=[("", table_of(columns, rows, texts=1))])],
        notes=left_out(len(models)),
        data={"num_requests": len(drawn), "span": drawn.span, "models": models},
        table=lambda: drawn.table,
    )


@click.command(short_help="Serve a workload with a placement.")
@workload_options
@option(
    "--placement FILE.json",
    'Where models lie: a list of {"parallel": [dp, op, pp], "models": [0, 3]}, one a group.',
)
@option(
    "--policy NAME", f"Search the placement first: {POLICIES} sr-replace-60 places anew every 60 s."
)
@option("--gpus", "GPUs of --policy.", click.IntRange(min=1, max=4096))
@search_options
@switch_options
@flag("--free-switch", "sr-replace: changes cost nothing and empty every queue.")
@option(
    "--simulator NAME",
    "immediate (the published one), events (messages cost time), batching.",
    one_of("immediate", "events", "batching"),
    default="immediate",
)
@option(
    "--dispatch RULE",
    "Which group (immediate): least_work, shortest_queue, round_robin, random, two_choices, "
    "earliest_finish.",
    default="least_work",
)
@warm_up_option
@option(
    "--mem-gib X",
    "Memory for weights on a GPU.  [default: any of --placement, 13 for --policy]",
    float,
)
@presented(
    CHARTS_AND_TABLES,
    "Write a page (.html), curves (.svg) or the requests' fates (.csv, .parquet).",
    reads="",
)
def simulate(**asked: Any) -> Result:
    """Serve a workload, and tell how many requests met their deadline.

    WORKLOAD.toml or TRACE as for `windtunnel serving workload`. Models lie where --placement says,
    such as `windtunnel serving search --out` writes, or where --policy puts them.
    """
    spec, profile, drawn = drawn_from(asked)
    with progress("Searching") as done:
        where = placed(asked, spec, drawn, profile, done)
    found = _served(where, spec, (drawn, profile), asked)
    figures = found.metrics(asked["warm_up"])
    data: dict[str, Any] = {
        "settings": {
            **found.settings,
            "placed_by": where.name,
            "warm_up": asked["warm_up"],
            "seed": spec.seed,
        },
        "workload": spec.data(),
        "metrics": figures,
        "placement": where.placement.data(),
    }
    if where.schedule is not None:
        data["starts"] = list(where.schedule.starts)
        data["placements"] = [one.data() for one in where.schedule.placements]

    def page(command: str) -> str:
        from windtunnel.report.serving_page import serving_page

        return serving_page(found, where.schedule or where.placement, where.name, command=command)

    def chart() -> Any:
        from windtunnel.report.serving_chart import serving_chart

        return serving_chart(found)

    title = f"{where.name}, {asked['simulator']} simulator"
    more: dict[str, Any] = {"data": data, "table": lambda: found.table}
    return run_result(figures, where.placement, title, **more, page=page, chart=chart)


@click.command(short_help="Search where models should lie.")
@workload_options
@option("--gpus", "GPUs to use.", click.IntRange(min=1, max=4096), required=True)
@option("--policy NAME", POLICIES, default="mp-search")
@search_options
@option(
    "--test-seed N",
    "Also evaluate on the workload drawn with this seed, which the search has not seen.",
    click.IntRange(min=0),
)
@warm_up_option
@memory_option
@presented((".json",), "Write the placement.", metavar="FILE.json", reads="")
def search(**asked: Any) -> Result:
    """Search the placement that serves the workload best, and tell what it is worth."""
    from windtunnel import serving as api
    from windtunnel.serving.search.policies import search as find

    spec, profile, drawn = drawn_from(asked)
    if asked["test_seed"] is not None and spec.requests is not None:
        raise click.UsageError("--test-seed draws requests; these are recorded ones.")
    refuse_large(asked, drawn, profile)
    with progress("Searching") as done:
        found = find(
            drawn,
            profile,
            asked["gpus"],
            asked["policy"],
            overheads=spec.overheads,
            group=degrees(asked["group"]),
            **effort_from(asked, done),
        )

    def worth(requests: Workload) -> dict[str, Any]:
        run = api.simulate(found.placement, requests, profile, overheads=spec.overheads)
        return run.metrics(asked["warm_up"])

    figures = worth(drawn)
    test = None
    if asked["test_seed"] is not None:
        test = worth(spec.but(seed=asked["test_seed"]).draw(profile))
    unplaced = f"Models without a replica: {', '.join(map(str, found.unplaced))}."
    return run_result(
        figures,
        found.placement,
        f"{asked['policy']}, {found.simulations} simulations",
        cautions=[*[unplaced] * bool(found.unplaced), *([] if test is None else [_unseen(test)])],
        data={
            "settings": found.settings,
            "placement": found.placement.data(),
            "score": found.score,
            "simulations": found.simulations,
            "unplaced": list(found.unplaced),
            "metrics": figures,
            "test_metrics": test,
        },
        text=lambda: json.dumps(found.placement.data(), indent=1) + "\n",
    )


def _unseen(test: dict[str, Any]) -> str:
    return (
        f"On requests that the search has not seen: attainment {cell(test['slo_attainment'])}, "
        f"mean latency {cell(test['mean_latency'])} s."
    )


def _served(
    where: Placed, spec: WorkloadSpec, costs: tuple[Workload, Profile], asked: dict[str, Any]
) -> ServingOutcome:
    from windtunnel import serving as api
    from windtunnel.serving.simulate import DELAYS

    budget = None if asked["mem_gib"] is None else asked["mem_gib"] * GIB
    shared: dict[str, Any] = {"overheads": spec.overheads, "mem_budget": budget}
    if where.schedule is not None:
        if asked["simulator"] != "immediate":
            raise click.UsageError("--policy sr-replace: expected the immediate simulator.")
        switch = None if asked["free_switch"] else switch_from(asked)
        return api.simulate_schedule(
            where.schedule, *costs, switch=switch, dispatch=asked["dispatch"], **shared
        )
    if asked["simulator"] == "batching":
        return api.simulate_batches(where.placement, *costs, **shared)
    if asked["simulator"] == "events":
        # The published event simulator has delays where the immediate one has a fixed overhead.
        name = spec.overheads
        if name in DELAYS:
            shared["overheads"] = api.Overheads(0.009 if name == "alpaserve" else 0.0)
            shared["delays"] = DELAYS[name]
        return api.simulate_events(where.placement, *costs, seed=spec.seed, **shared)
    return api.simulate(
        where.placement, *costs, dispatch=asked["dispatch"], seed=spec.seed, **shared
    )
