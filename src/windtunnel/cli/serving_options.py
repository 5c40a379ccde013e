"""What says which requests are served: a file, options, or both, options first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import OneOf, Seconds, seed_option

if TYPE_CHECKING:
    from windtunnel.cli.options import Command
    from windtunnel.serving import Placement, Profile, Workload, WorkloadSpec

#: Options that are attributes of `windtunnel.serving.WorkloadSpec`.
_KEYS = (
    *("profile", "models", "num_models", "slo_scale", "overheads", "seed", "duration", "rate"),
    *("rates", "cv", "requests", "slice", "mapping", "refit", "rate_scale", "cv_scale"),
    *("compress", "thin", "repeat"),
)


class Slice(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """Two times joined by a colon: from, until."""

    name = "slice"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Return the times in seconds.

        Raises:
            click.BadParameter: it is something else.
        """
        if isinstance(value, tuple):
            return value
        first, colon, last = str(value).partition(":")
        if not colon:
            self.fail(f"found {value!a}; expected from:until, such as 0:1h.", param, ctx)
        return Seconds().convert(first, param, ctx), Seconds().convert(last, param, ctx)


def workload_options(command: Command) -> Command:
    """Add WORKLOAD and what says which requests there are."""
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
            "--cv-scale",
            type=float,
            default=1.0,
            metavar="X",
            help="With --refit: cv times X; of calls by minute: their cv.",
        ),
        click.option(
            "--rate-scale", type=float, default=1.0, metavar="X", help="With --refit: rate times X."
        ),
        click.option(
            "--refit",
            type=Seconds(),
            metavar="WINDOW",
            help="Replace recorded requests by Gamma arrivals fitted to each window.",
        ),
        click.option(
            "--slice", type=Slice(), metavar="FROM:UNTIL", help="Of recorded requests: 0:1h."
        ),
        click.option(
            "--requests", metavar="FILE", help="Recorded requests, where WORKLOAD is a TOML file."
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
            default="synthetic",
            show_default=True,
            metavar="FILE",
            help="CSV of stage latencies and memory; synthetic is a made-up one.",
        ),
        click.argument("source", metavar="[WORKLOAD.toml|TRACE]", required=False),
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


def spec_from(asked: dict[str, Any]) -> WorkloadSpec:
    """Return the workload of the file, if one is given, with the options that were typed."""
    from pathlib import Path

    from windtunnel.serving import WorkloadSpec, read_workload

    source = asked["source"]
    typed = {name: asked[name] for name in _KEYS if _was_typed(name) and asked[name] is not None}
    if source is None:
        spec = WorkloadSpec()
    elif Path(source).suffix.lower() == ".toml":
        spec = read_workload(source)
    elif Path(source).suffix.lower() == ".json":
        raise click.UsageError(
            f"{source}: expected WORKLOAD.toml or recorded requests; a placement goes behind "
            "--placement."
        )
    elif "requests" in typed:
        raise click.UsageError("recorded requests are given twice: as TRACE and by --requests.")
    else:
        spec = WorkloadSpec(requests=source)
    if "models" in typed:
        typed["models"] = tuple(word.strip() for word in typed["models"].split(","))
    if "rates" in typed:
        typed["rates"] = _shape(typed["rates"])
    return spec.but(**typed)


def _was_typed(name: str) -> bool:
    context = click.get_current_context()
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def drawn_from(asked: dict[str, Any]) -> tuple[WorkloadSpec, Profile, Workload]:
    """Return what is asked for, the profile and the requests."""
    spec = spec_from(asked)
    profile = spec.read_profile()
    return spec, profile, spec.draw(profile)


def degrees(text: str | None) -> Any:
    """Return ``--group`` as a configuration; None where it was not given.

    Raises:
        SpecError: it is not two degrees.
    """
    from windtunnel.errors import SpecError, quote
    from windtunnel.serving import Parallel

    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 2 or not all(p.strip().isdecimal() and int(p) for p in parts):  # noqa: PLR2004
        raise SpecError("--group", f"found {quote(text)}; expected two degrees, such as 1,4.")
    return Parallel(1, int(parts[0]), int(parts[1]))


def placement_from(name: str) -> Placement:
    """Return the placement of a JSON file.

    Raises:
        TraceError: it is not JSON.
        SpecError: it is no placement.
    """
    import json
    from pathlib import Path

    from windtunnel.errors import TraceError
    from windtunnel.serving import as_placement

    try:
        data = json.loads(Path(name).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise TraceError(name, "a placement in JSON", hint=str(error)) from error
    return as_placement(data, name)


def _shape(text: str) -> str | tuple[float, ...]:
    if text and all(part.strip()[:1].isdigit() for part in text.split(",")):
        try:
            return tuple(float(part) for part in text.split(","))
        except ValueError:
            return text
    return text
