"""The options that say which requests are served, and the workload that they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import OneOf, Seconds, seed_option

if TYPE_CHECKING:
    from windtunnel.cli.options import Command
    from windtunnel.serving import Profile, Workload


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
            "--repeat",
            type=click.IntRange(min=1, max=10_000),
            default=1,
            help="Each request so many times, at its own instant.",
        ),
        click.option(
            "--thin",
            type=float,
            default=1.0,
            metavar="P",
            help="Keep each request with this probability.",
        ),
        click.option(
            "--compress",
            type=float,
            default=1.0,
            metavar="X",
            help="Let requests arrive X times as fast.",
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


memory_option = click.option(
    "--mem-gib",
    type=float,
    default=13.0,
    show_default=True,
    metavar="X",
    help="Memory for weights on a GPU.",
)
warm_up_option = click.option(
    "--warm-up",
    type=Seconds(),
    default=0.0,
    show_default=True,
    help="Leave so much out at both ends, counted in requests.",
)


def drawn_from(asked: dict[str, Any]) -> tuple[Profile, Workload]:
    """Return the profile and the requests that the options ask for."""
    profile, drawn = _source(asked)
    scaled = drawn.compress(asked["compress"]).thin(asked["thin"], asked["seed"] or 0)
    return profile, scaled.repeat(asked["repeat"])


def _source(asked: dict[str, Any]) -> tuple[Profile, Workload]:
    """Return the profile and the requests before they are scaled."""
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
    slo = rooms.slos(models, profile, asked["slo_scale"]).tolist()
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
