"""``windtunnel serving``: workloads, simulation and placement search for model serving."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import OneOf, debug_option, out_option, output_options
from windtunnel.cli.serving_options import (
    drawn_from,
    memory_option,
    warm_up_option,
    workload_options,
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

    from windtunnel.serving import Placement, Profile, ServingOutcome, Workload

_HOME = "windtunnel.cli.serving"
_GIB = 2.0**30
#: What `--out` of a simulation may end in.
CHARTS_AND_TABLES = (".html", ".svg", ".csv", ".parquet")


@click.group(
    cls=LazyGroup,
    homes={
        "workload": _HOME,
        "simulate": _HOME,
        "search": _HOME,
        "replace": "windtunnel.cli.serving_replace",
        "llm": "windtunnel.cli.serving_llm",
        "llm-capacity": "windtunnel.cli.serving_llm",
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
    """Draw requests for several models, or replay recorded ones; tell what they are like."""
    import numpy as np

    _, drawn = drawn_from(asked)
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
@click.argument("placement", metavar="PLACEMENT")
@workload_options
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
    help="Refuse a placement that needs more memory for weights on a GPU.  [default: any]",
)
@out_option("FILE", "Write curves (.html, .svg) or the requests' fates (.csv, .parquet).")
@output_options
def simulate(*, placement: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Serve a workload with PLACEMENT, and tell how many requests met their deadline.

    PLACEMENT is a JSON file, such as `windtunnel serving search --out` writes: a list of
    {"parallel": [dp, op, pp], "models": [0, 3]}, one a group of GPUs.
    """
    check_ending(out, CHARTS_AND_TABLES)
    placed = _placement(placement)
    profile, drawn = drawn_from(asked)
    found = _served(placed, drawn, profile, asked)
    figures = found.metrics(asked["warm_up"])
    if out is not None:
        write(found, out)
    settings = {**found.settings, "warm_up": asked["warm_up"], "seed": asked["seed"] or 0}
    told: dict[str, Any] = {"settings": settings, "metrics": figures, "placement": placed.data()}
    told["out"] = None if out is None else str(out)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(told)
        return
    tell(figures, placed, f"{asked['simulator']} simulator")


@click.command(short_help="Search where models should lie.")
@workload_options
@click.option("--gpus", type=click.IntRange(min=1, max=4096), required=True, help="GPUs to use.")
@click.option(
    "--policy",
    default="mp-search",
    show_default=True,
    metavar="NAME",
    help="sr-greedy, sr-uniform, round-robin, mp-greedy, mp-search, mp-search-sep or beam.",
)
@click.option(
    "--group",
    metavar="OP,PP",
    help="Tensor and pipeline degree of the groups of mp-greedy, beam and round-robin.",
)
@click.option(
    "--refine",
    type=click.IntRange(min=0),
    metavar="N",
    help="Simulations spent on improving the best one.  [default: 400]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=1024),
    default=1,
    show_default=True,
    help="Threads; the result is the same.",
)
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
    if asked["test_seed"] is not None and asked["requests"] is not None:
        raise click.UsageError("--test-seed draws requests; --requests replays recorded ones.")
    profile, drawn = drawn_from(asked)
    with progress("Searching", show=shows_progress(as_json=as_json)) as done:
        found = find(
            drawn,
            profile,
            asked["gpus"],
            asked["policy"],
            mem_budget=asked["mem_gib"] * _GIB,
            overheads=asked["overheads"],
            group=_degrees(asked["group"]),
            refine=REFINE if asked["refine"] is None else asked["refine"],
            workers=asked["workers"],
            on_done=done,
        )

    def worth(requests: Workload) -> dict[str, Any]:
        run = rooms.simulate(found.placement, requests, profile, overheads=asked["overheads"])
        return run.metrics(asked["warm_up"])

    figures = worth(drawn)
    test = None
    if asked["test_seed"] is not None:
        test = worth(drawn_from({**asked, "seed": asked["test_seed"]})[1])
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


def _degrees(text: str | None) -> Any:
    from windtunnel.errors import SpecError, quote
    from windtunnel.serving import Parallel

    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 2 or not all(p.strip().isdecimal() and int(p) for p in parts):  # noqa: PLR2004
        raise SpecError("--group", f"found {quote(text)}; expected two degrees, such as 1,4.")
    return Parallel(1, int(parts[0]), int(parts[1]))


def _placement(name: str) -> Placement:
    from pathlib import Path

    from windtunnel.errors import TraceError
    from windtunnel.serving import as_placement

    try:
        data = json.loads(Path(name).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise TraceError(name, "a placement in JSON", hint=str(error)) from error
    return as_placement(data, name)


def _served(
    placed: Placement, drawn: Workload, profile: Profile, asked: dict[str, Any]
) -> ServingOutcome:
    from windtunnel import serving as rooms
    from windtunnel.serving.simulate import DELAYS

    budget = None if asked["mem_gib"] is None else asked["mem_gib"] * _GIB
    shared = {"overheads": asked["overheads"], "mem_budget": budget}
    seed = asked["seed"] or 0
    if asked["simulator"] == "batching":
        return rooms.simulate_batches(placed, drawn, profile, **shared)
    if asked["simulator"] == "events":
        # The published event simulator has delays where the immediate one has a fixed overhead.
        name = asked["overheads"]
        shared["overheads"] = rooms.Overheads(0.009 if name == "alpaserve" else 0.0)
        return rooms.simulate_events(
            placed, drawn, profile, delays=DELAYS[name], seed=seed, **shared
        )
    return rooms.simulate(placed, drawn, profile, dispatch=asked["dispatch"], seed=seed, **shared)
