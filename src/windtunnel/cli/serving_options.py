"""What says which requests are served: a file, options, or both, options first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.flying import is_typed
from windtunnel.cli.options import TIME, Parsed, one_of, option, seed_option, span, together
from windtunnel.errors import SpecError, TraceError, quote

if TYPE_CHECKING:
    from windtunnel.serving import Placement, Profile, Workload, WorkloadSpec

#: Options that are attributes of `windtunnel.serving.WorkloadSpec`.
_KEYS = (
    *("profile", "models", "num_models", "slo_scale", "overheads", "seed", "duration", "rate"),
    *("rates", "cv", "requests", "slice", "mapping", "refit", "rate_scale", "cv_scale"),
    *("compress", "thin", "repeat"),
)


def _slice(word: str) -> tuple[float, float]:
    """Return two times joined by a colon, s: from, until."""
    first, colon, last = word.partition(":")
    if not colon:
        raise ValueError(f"found {word!a}; expected from:until, such as 0:1h.")
    return span(first), span(last)


#: Add WORKLOAD and what says which requests there are.
workload_options = together(
    click.argument("source", metavar="[WORKLOAD.toml|TRACE]", required=False),
    option(
        "--profile FILE",
        "CSV of stage latencies and memory; synthetic is a made-up one.",
        default="synthetic",
    ),
    option(
        "--models TYPES", "Types of models, of the profile, joined by commas.  [default: all of it]"
    ),
    option(
        "--num-models N",
        "Model i has type i mod the number of types.  [default: one of each]",
        click.IntRange(min=1, max=100_000),
    ),
    option("--duration", "Of the workload.", TIME, default=200.0),
    option("--rate", "Requests/s of all models.", float, default=10.0),
    option(
        "--rates SHAPE",
        "How the rate is shared: uniform, power_law, triangle_decay, or weights 3,1,1.",
        default="uniform",
    ),
    option(
        "--cv",
        "Coefficient of variation of the gaps: 1 is Poisson, 0 deterministic.",
        float,
        default=1.0,
    ),
    option("--requests FILE", "Recorded requests, where WORKLOAD is a TOML file."),
    option("--slice FROM:UNTIL", "Of recorded requests: 0:1h.", Parsed("slice", _slice)),
    option(
        "--refit WINDOW", "Replace recorded requests by Gamma arrivals fitted to each window.", TIME
    ),
    option("--rate-scale X", "With --refit: rate times X.", float, default=1.0, show_default=False),
    option(
        "--cv-scale X",
        "With --refit: cv times X; of calls by minute: their cv.",
        float,
        default=1.0,
        show_default=False,
    ),
    option(
        "--compress X",
        "Let requests arrive X times as fast.",
        float,
        default=1.0,
        show_default=False,
    ),
    option(
        "--thin P",
        "Keep each request with this probability.",
        float,
        default=1.0,
        show_default=False,
    ),
    option(
        "--repeat",
        "Each request so many times, at its own instant.",
        click.IntRange(min=1, max=10_000),
        default=1,
        show_default=False,
    ),
    option(
        "--mapping stripe|round_robin",
        "How the functions of --requests are dealt to models.",
        one_of("stripe", "round_robin"),
        default="stripe",
    ),
    option(
        "--slo-scale X", "Deadline: X times a model's latency on one GPU.  [default: none]", float
    ),
    seed_option("Model i is drawn with seed + i.  [default: 0]"),
    option(
        "--overheads none|alpaserve",
        "What serving costs besides the profile: nothing, or 0.9 % a stage and 11 ms.",
        one_of("none", "alpaserve"),
        default="none",
    ),
)


memory_option = option("--mem-gib X", "Memory for weights on a GPU.", float, default=13.0)
warm_up_option = option(
    "--warm-up", "Leave so much out at both ends, counted in requests.", TIME, default=0.0
)


def spec_from(asked: dict[str, Any]) -> WorkloadSpec:
    """Return the workload of the file, if one is given, with the options that were typed."""
    from pathlib import Path

    from windtunnel.serving import WorkloadSpec, read_workload

    source = asked["source"]
    typed = {name: asked[name] for name in _KEYS if is_typed(name) and asked[name] is not None}
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
