"""``windtunnel serving``: workloads, simulation and placement search for model serving."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import (
    OneOf,
    Seconds,
    debug_option,
    out_option,
    output_options,
    seed_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.cli.options import Command
    from windtunnel.serving import Placement, Profile, ServingOutcome, Workload

_HOME = "windtunnel.cli.serving"
_GIB = 2.0**30
#: What `--out` of a simulation may end in.
_ENDINGS = (".html", ".svg", ".csv", ".parquet")
#: Models told one by one on a terminal.
_TOLD = 12


@click.group(
    cls=LazyGroup,
    homes={"workload": _HOME, "simulate": _HOME, "search": _HOME},
    short_help="Serve models on groups of GPUs; search placements (AlpaServe).",
)
@debug_option
def serving() -> None:
    """Serve requests for many models on groups of GPUs, and search where the models should lie."""


def workload_options(command: Command) -> Command:
    """Add what says which requests there are."""
    for add in (
        click.option(
            "--overheads",
            type=OneOf("none", "alpaserve"),
            default="none",
            show_default=True,
            metavar="none|alpaserve",
            help="What serving costs besides the profile: nothing, or 0.9 % a stage and 11 ms.",
        ),
        seed_option("Model i is drawn with seed + i.  [default: 0]"),
        click.option(
            "--slo-scale",
            type=float,
            metavar="X",
            help="Deadline: X times a model's latency on one GPU.  [default: none]",
        ),
        click.option(
            "--mapping",
            type=OneOf("stripe", "round_robin"),
            default="stripe",
            show_default=True,
            metavar="stripe|round_robin",
            help="How the functions of --requests are dealt to models.",
        ),
        click.option(
            "--requests",
            metavar="FILE",
            help="Replay recorded requests instead: Azure LLM, Mooncake or Azure Functions 2021.",
        ),
        click.option(
            "--cv",
            type=float,
            default=1.0,
            show_default=True,
            help="Coefficient of variation of the gaps: 1 is Poisson, 0 deterministic.",
        ),
        click.option(
            "--rates",
            default="uniform",
            show_default=True,
            metavar="SHAPE",
            help="How the rate is shared: uniform, power_law, triangle_decay, or weights 3,1,1.",
        ),
        click.option(
            "--rate", type=float, default=10.0, show_default=True, help="Requests/s of all models."
        ),
        click.option(
            "--duration", type=Seconds(), default=200.0, show_default=True, help="Of the workload."
        ),
        click.option(
            "--num-models",
            type=click.IntRange(min=1, max=100_000),
            metavar="N",
            help="Model i has type i mod the number of types.  [default: one of each]",
        ),
        click.option(
            "--models",
            metavar="TYPES",
            help="Types of models, of the profile, joined by commas.  [default: all of it]",
        ),
        click.option(
            "--profile",
            "profile_file",
            default="synthetic",
            show_default=True,
            metavar="FILE",
            help="CSV of stage latencies and memory; synthetic is a made-up one.",
        ),
    ):
        command = add(command)
    return command


_memory = click.option(
    "--mem-gib",
    type=float,
    default=13.0,
    show_default=True,
    metavar="X",
    help="Memory for weights on a GPU.",
)
_warm_up = click.option(
    "--warm-up",
    type=Seconds(),
    default=0.0,
    show_default=True,
    help="Leave so much out at both ends, counted in requests.",
)


@click.command(short_help="Draw or replay requests.")
@workload_options
@out_option("FILE", "Write the requests (.csv, .parquet).")
@output_options
def workload(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Draw requests for several models, or replay recorded ones; tell what they are like."""
    import numpy as np

    _, drawn = _drawn(asked)
    if out is not None:
        _save(drawn.table, out)
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
        [str(m["model"]), m["name"], count(m["num_requests"]), _cell(m["rate"]), _cell(m["cv"])]
        for m in models[:_TOLD]
    ]
    columns = ["index", "model", "requests", "rate, 1/s", "cv of gaps"]
    console.print(plain_table(columns, rows, numbers=3))
    _more(console, len(models))


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
@_warm_up
@_memory
@out_option("FILE", "Write curves (.html, .svg) or the requests' fates (.csv, .parquet).")
@output_options
def simulate(*, placement: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Serve a workload with PLACEMENT, and tell how many requests met their deadline.

    PLACEMENT is a JSON file, such as `windtunnel serving search --out` writes: a list of
    {"parallel": [dp, op, pp], "models": [0, 3]}, one a group of GPUs.
    """
    _check_ending(out, _ENDINGS)
    placed = _placement(placement)
    profile, drawn = _drawn(asked)
    found = _served(placed, drawn, profile, asked)
    figures = found.metrics(asked["warm_up"])
    if out is not None:
        _write(found, out)
    settings = {**found.settings, "warm_up": asked["warm_up"], "seed": asked["seed"] or 0}
    told = {"settings": settings, "metrics": figures, "placement": placed.data()}
    told["out"] = None if out is None else str(out)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(told)
        return
    _tell(figures, placed, f"{asked['simulator']} simulator")


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
@_warm_up
@_memory
@out_option("FILE.json", "Write the placement.")
@output_options
def search(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Search the placement that serves the workload best, and tell what it is worth."""
    from windtunnel import serving as rooms
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.serving.search import REFINE
    from windtunnel.serving.search import search as find

    _check_ending(out, (".json",))
    if asked["test_seed"] is not None and asked["requests"] is not None:
        raise click.UsageError("--test-seed draws requests; --requests replays recorded ones.")
    profile, drawn = _drawn(asked)
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
        test = worth(_drawn({**asked, "seed": asked["test_seed"]})[1])
    if out is not None:
        _replace(out, json.dumps(found.placement.data(), indent=1) + "\n")
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
    console = _tell(figures, found.placement, f"{asked['policy']}, {found.simulations} simulations")
    from windtunnel.cli.screen import bullets

    notes = [f"Models without a replica: {', '.join(map(str, found.unplaced))}."]
    unseen = [] if test is None else [_unseen(test)]
    bullets(console, "Mind", notes * bool(found.unplaced) + unseen)


def _unseen(test: dict[str, Any]) -> str:
    return (
        f"On requests that the search has not seen: attainment {_cell(test['slo_attainment'])}, "
        f"mean latency {_cell(test['mean_latency'])} s."
    )


def _drawn(asked: dict[str, Any]) -> tuple[Profile, Workload]:
    """Return the profile and the requests that the options ask for."""
    from windtunnel import serving as rooms
    from windtunnel.serving.refit import replay
    from windtunnel.serving.request_traces import RequestTrace, read_requests

    name = asked["profile_file"]
    profile = rooms.synthetic_profile() if name == "synthetic" else rooms.read_profile(name)
    types = [word.strip() for word in asked["models"].split(",")] if asked["models"] else None
    types = list(profile.models) if types is None else types
    for model in types:
        profile.check_model(model, "--models")
    models = [types[i % len(types)] for i in range(asked["num_models"] or len(types))]
    slo = rooms.slos(models, profile, asked["slo_scale"])
    if asked["requests"] is None:
        drawn = rooms.generate(
            models,
            duration=asked["duration"],
            rate=asked["rate"],
            rates=_shape(asked["rates"]),
            cv=asked["cv"],
            slo=slo,
            seed=asked["seed"] or 0,
        )
        return profile, drawn
    recorded = read_requests(asked["requests"])
    if not isinstance(recorded, RequestTrace):
        raise click.UsageError(
            "--requests: calls by minute have no arrival times; see "
            "windtunnel.serving.refit.from_minutes."
        )
    return profile, replay(recorded, models, mapping=asked["mapping"], slo=slo)


def _shape(text: str) -> str | list[float]:
    if text and all(part.strip()[:1].isdigit() for part in text.split(",")):
        try:
            return [float(part) for part in text.split(",")]
        except ValueError:
            return text
    return text


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

    shared = {"overheads": asked["overheads"], "mem_budget": asked["mem_gib"] * _GIB}
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


def _tell(figures: dict[str, Any], placed: Placement, title: str) -> Any:
    from windtunnel.cli.screen import facts, heading, plain_table, screen
    from windtunnel.report.format import count

    console = screen()
    heading(console, f"{count(figures['num_counted'])} requests, {placed.num_gpus} GPUs, {title}")
    names = {
        "slo_attainment": "within SLO",
        "mean_latency": "mean latency, s",
        "p50_latency": "P50 latency, s",
        "p90_latency": "P90 latency, s",
        "p99_latency": "P99 latency, s",
        "throughput": "good requests/s",
        "utilization": "GPU time in use",
    }
    facts(console, [(text, _cell(figures[key])) for key, text in names.items()])
    groups: dict[str, list[int]] = {}
    for group in placed.groups:
        groups.setdefault(group.parallel.name, []).append(len(group.models))
    heading(console, "Groups")
    rows = [
        [
            name,
            str(len(held)),
            f"{min(held)} to {max(held)}" if min(held) < max(held) else str(held[0]),
        ]
        for name, held in groups.items()
    ]
    console.print(plain_table(["(dp,op,pp)", "groups", "models in each"], rows, numbers=2))
    heading(console, "Models")
    cells = [
        [
            str(one["model"]), one["name"], count(one["num_counted"]),
            _cell(one["slo_attainment"]), _cell(one["mean_latency"]), _cell(one["p99_latency"]),
        ]
        for one in figures["by_model"][:_TOLD]
    ]  # fmt: skip
    columns = ["index", "model", "requests", "within SLO", "mean, s", "P99, s"]
    console.print(plain_table(columns, cells, numbers=4))
    _more(console, len(figures["by_model"]))
    return console


def _more(console: Any, models: int) -> None:
    if models > _TOLD:
        from windtunnel.cli.screen import line

        console.print(line(f"{models - _TOLD} more models: see --json."))


def _cell(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.4g}"


def _check_ending(out: Path | None, endings: tuple[str, ...]) -> None:
    if out is not None and out.suffix.lower() not in endings:
        raise click.UsageError(f"--out: expected a name that ends in {', '.join(endings)}.")


def _save(table: Any, out: Path) -> None:
    from windtunnel.cli.saving import ENDINGS, save_table

    _check_ending(out, ENDINGS)
    save_table(table, out)


def _write(found: ServingOutcome, out: Path) -> None:
    from windtunnel.report.serving_chart import serving_page, serving_svg

    ending = out.suffix.lower()
    writers: dict[str, Callable[[ServingOutcome], str]] = {
        ".html": serving_page,
        ".svg": serving_svg,
    }
    if ending in writers:
        _replace(out, writers[ending](found))
    else:
        _save(found.table, out)


def _replace(out: Path, text: str) -> None:
    from windtunnel.report.page import write_page

    write_page(out, text)
