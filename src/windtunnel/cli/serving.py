"""``windtunnel serving``: workloads, simulation and placement search for model serving."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import OneOf, debug_option, out_option, output_options
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
    placed,
    search_options,
    switch_from,
    switch_options,
)
from windtunnel.cli.serving_told import (
    TOLD,
    cell,
    check_ending,
    more,
    replace,
    save,
    tell,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.serving import Profile, ServingOutcome, Workload, WorkloadSpec

_HOME = "windtunnel.cli.serving"
#: What `--out` of a simulation may end in.
CHARTS_AND_TABLES = (".html", ".svg", ".csv", ".parquet")


@click.group(
    cls=LazyGroup,
    homes={
        "workload": _HOME,
        "simulate": _HOME,
        "search": _HOME,
        "capacity": "windtunnel.cli.serving_capacity",
        "sweep": "windtunnel.cli.serving_sweep",
        "replace": "windtunnel.cli.serving_replace",
        "evaluate": "windtunnel.cli.serving_evaluate",
        "fleet": "windtunnel.cli.serving_fleet",
        "llm": "windtunnel.cli.serving_llm",
        "llm-capacity": "windtunnel.cli.serving_llm_capacity",
        "llm-fit": "windtunnel.cli.serving_llm_fit",
        "llm-replay": "windtunnel.cli.serving_llm_replay",
    },
    short_help="Serve models on groups of GPUs; search placements (AlpaServe).",
)
@debug_option
def serving() -> None:
    """Serve requests for many models on groups of GPUs, and search where the models should lie."""


@click.command(short_help="Draw or replay requests.")
@workload_options
@out_option("FILE", "Write the requests (.csv, .parquet).")
@output_options
def workload(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Draw requests for several models, or replay recorded ones; tell what they are like.

    WORKLOAD.toml has the options below as keys, with underscores; TRACE is a file of recorded
    requests (Azure Functions or LLM, BurstGPT, Mooncake, GenTD26). Options go before a file's keys.
    """
    import numpy as np

    _, _, drawn = drawn_from(asked)
    if out is not None:
        save(drawn.table, out)
    counts = np.bincount(drawn.model, minlength=len(drawn.models)).tolist()
    models = []
    for index, name in enumerate(drawn.models):
        gaps = np.diff(drawn.arrival[drawn.model == index])
        mean = float(gaps.mean()) if len(gaps) else 0.0
        cv = float(gaps.std()) / mean if mean else None
        told = {"model": index, "name": name, "num_requests": counts[index]}
        models.append(
            {**told, "rate": counts[index] / drawn.span if drawn.span else None, "cv": cv}
        )
    data = {
        "num_requests": len(drawn),
        "span": drawn.span,
        "models": models,
        "out": None if out is None else str(out),
    }
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(data)
        return
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.report.format import count

    console = screen()
    heading(console, f"{count(len(drawn))} requests in {drawn.span:.6g} s")
    rows = [
        [str(m["model"]), m["name"], count(m["num_requests"]), cell(m["rate"]), cell(m["cv"])]
        for m in models[:TOLD]
    ]
    columns = ["index", "model", "requests", "rate, 1/s", "cv of gaps"]
    console.print(plain_table(columns, rows, numbers=3))
    more(console, len(models))


@click.command(short_help="Serve a workload with a placement.")
@workload_options
@click.option(
    "--placement",
    metavar="FILE.json",
    help='Where models lie: a list of {"parallel": [dp, op, pp], "models": [0, 3]}, one a group.',
)
@click.option(
    "--policy",
    metavar="NAME",
    help=f"Search the placement first: {POLICIES} sr-replace-60 places anew every 60 s.",
)
@click.option("--gpus", type=click.IntRange(min=1, max=4096), help="GPUs of --policy.")
@search_options
@switch_options
@click.option(
    "--free-switch", is_flag=True, help="sr-replace: changes cost nothing and empty every queue."
)
@click.option(
    "--simulator",
    type=OneOf("immediate", "events", "batching"),
    default="immediate",
    show_default=True,
    metavar="NAME",
    help="immediate (the published one), events (messages cost time), batching.",
)
@click.option(
    "--dispatch",
    default="least_work",
    show_default=True,
    metavar="RULE",
    help="Which group (immediate): least_work, shortest_queue, round_robin, random, two_choices, "
    "earliest_finish.",
)
@warm_up_option
@click.option(
    "--mem-gib",
    type=float,
    metavar="X",
    help="Memory for weights on a GPU.  [default: any of --placement, 13 for --policy]",
)
@out_option("FILE", "Write a page (.html), curves (.svg) or the requests' fates (.csv, .parquet).")
@output_options
def simulate(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Serve a workload, and tell how many requests met their deadline.

    WORKLOAD.toml or TRACE as for `windtunnel serving workload`. Models lie where --placement says,
    such as `windtunnel serving search --out` writes, or where --policy puts them.
    """
    from windtunnel.cli.screen import progress, shows_progress

    check_ending(out, CHARTS_AND_TABLES)
    spec, profile, drawn = drawn_from(asked)
    with progress("Searching", show=shows_progress(as_json=as_json)) as done:
        where = placed(asked, spec, drawn, profile, done)
    found = _served(where, spec, (drawn, profile), asked)
    figures = found.metrics(asked["warm_up"])
    if out is not None:
        write(found, where, out)
    told: dict[str, Any] = {
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
        told["starts"] = list(where.schedule.starts)
        told["placements"] = [one.data() for one in where.schedule.placements]
    told["out"] = None if out is None else str(out)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(told)
        return
    tell(figures, where.placement, f"{where.name}, {asked['simulator']} simulator")


@click.command(short_help="Search where models should lie.")
@workload_options
@click.option("--gpus", type=click.IntRange(min=1, max=4096), required=True, help="GPUs to use.")
@click.option(
    "--policy",
    default="mp-search",
    show_default=True,
    metavar="NAME",
    help=POLICIES,
)
@search_options
@click.option(
    "--test-seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="Also evaluate on the workload drawn with this seed, which the search has not seen.",
)
@warm_up_option
@memory_option
@out_option("FILE.json", "Write the placement.")
@output_options
def search(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Search the placement that serves the workload best, and tell what it is worth."""
    from windtunnel import serving as rooms
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.serving.search import REFINE
    from windtunnel.serving.search import search as find

    check_ending(out, (".json",))
    spec, profile, drawn = drawn_from(asked)
    if asked["test_seed"] is not None and spec.requests is not None:
        raise click.UsageError("--test-seed draws requests; these are recorded ones.")
    with progress("Searching", show=shows_progress(as_json=as_json)) as done:
        found = find(
            drawn,
            profile,
            asked["gpus"],
            asked["policy"],
            mem_budget=asked["mem_gib"] * GIB,
            overheads=spec.overheads,
            group=degrees(asked["group"]),
            refine=REFINE if asked["refine"] is None else asked["refine"],
            workers=asked["workers"],
            on_done=done,
        )

    def worth(requests: Workload) -> dict[str, Any]:
        run = rooms.simulate(found.placement, requests, profile, overheads=spec.overheads)
        return run.metrics(asked["warm_up"])

    figures = worth(drawn)
    test = None
    if asked["test_seed"] is not None:
        test = worth(spec.but(seed=asked["test_seed"]).draw(profile))
    if out is not None:
        replace(out, json.dumps(found.placement.data(), indent=1) + "\n")
    if as_json:
        from windtunnel.cli.machine import print_json

        told = {
            "settings": found.settings,
            "placement": found.placement.data(),
            "score": found.score,
            "simulations": found.simulations,
            "unplaced": list(found.unplaced),
            "metrics": figures,
            "test_metrics": test,
            "out": None if out is None else str(out),
        }
        print_json(told)
        return
    console = tell(figures, found.placement, f"{asked['policy']}, {found.simulations} simulations")
    from windtunnel.cli.screen import bullets

    notes = [f"Models without a replica: {', '.join(map(str, found.unplaced))}."]
    unseen = [] if test is None else [_unseen(test)]
    bullets(console, "Mind", notes * bool(found.unplaced) + unseen)


def _unseen(test: dict[str, Any]) -> str:
    return (
        f"On requests that the search has not seen: attainment {cell(test['slo_attainment'])}, "
        f"mean latency {cell(test['mean_latency'])} s."
    )


def _served(
    where: Placed, spec: WorkloadSpec, costs: tuple[Workload, Profile], asked: dict[str, Any]
) -> ServingOutcome:
    from windtunnel import serving as rooms
    from windtunnel.serving.simulate import DELAYS

    budget = None if asked["mem_gib"] is None else asked["mem_gib"] * GIB
    shared: dict[str, Any] = {"overheads": spec.overheads, "mem_budget": budget}
    if where.schedule is not None:
        if asked["simulator"] != "immediate":
            raise click.UsageError("--policy sr-replace: expected the immediate simulator.")
        switch = None if asked["free_switch"] else switch_from(asked)
        return rooms.simulate_schedule(
            where.schedule, *costs, switch=switch, dispatch=asked["dispatch"], **shared
        )
    if asked["simulator"] == "batching":
        return rooms.simulate_batches(where.placement, *costs, **shared)
    if asked["simulator"] == "events":
        # The published event simulator has delays where the immediate one has a fixed overhead.
        name = spec.overheads
        if name in DELAYS:
            shared["overheads"] = rooms.Overheads(0.009 if name == "alpaserve" else 0.0)
            shared["delays"] = DELAYS[name]
        return rooms.simulate_events(where.placement, *costs, seed=spec.seed, **shared)
    return rooms.simulate(
        where.placement, *costs, dispatch=asked["dispatch"], seed=spec.seed, **shared
    )
