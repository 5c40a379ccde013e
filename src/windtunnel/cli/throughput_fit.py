"""``windtunnel throughput fit``: a training model from measured points."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import plain
from windtunnel.cli.options import COUNT, flag, option
from windtunnel.cli.presenting import presented
from windtunnel.errors import SpecError
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.report.sections import Table
    from windtunnel.throughput.fitting import Fit
    from windtunnel.throughput.made import MeasuredPoints, MeasuredSteps

#: Published profiles are called by other names than their models.
_PROFILE_NAMES = {"llama7b": "llama7", "llama30b": "llama30"}


@click.command(short_help="Learn a model of speeds from a CSV of measured points.")
@click.argument("points", metavar="POINTS.csv")
@option("--name NAME", "What to call the model.  [default: the file's name]")
@option(
    "--like MODEL", "A model that comes with windtunnel: what POINTS does not tell is as with it."
)
@option("--batch N", "Samples of an iteration.", COUNT)
@option("--parameters N", "The model's parameters.", COUNT)
@option(
    "--pcie GB/s",
    "Bandwidth between a GPU and its CPUs; fitted where nobody tells.",
    click.FloatRange(min=0, min_open=True),
)
@option(
    "--nvlink GB/s",
    "Bandwidth between the GPUs of a node; fitted where nobody tells.",
    click.FloatRange(min=0, min_open=True),
)
@option("--gpu-type TYPE", "GPUs that were measured; none = the model counts on all.")
@flag("--refine", "Search longer than the published fit does.")
@presented(
    (".json",), "Write the model (.json), for every command that takes a MODEL.", reads="points"
)
def fit(*, points: str, refine: bool, **asked: Any) -> Result:
    """Fit Morphling's analytic model to POINTS, and make a model that every policy can use.

    POINTS has a row a measured point with the columns plan, placement and iteration_time (s), where
    known cpu_threads, forward_time, sync_time and update_time (s), and in every row what is known
    of the model: global_batch_size, parameters, hidden, layers, sequence, pcie, nvlink and network
    (GB/s), gpus_per_card, gpu_memory_gib. Morphling's published tables and profiles (X.config.csv
    with X.data.csv) are read, too.

    With the columns nodes, num_gpus, local_batch, step_time and sync_time (s), and in every row
    first_batch, largest_batch, least_local, most_local and noise_scale (examples), it is a goodput
    model that is fitted: of a job that chooses its batch size by its GPUs.
    """
    from windtunnel.report.sections import Fact
    from windtunnel.throughput.accuracy import prediction_errors
    from windtunnel.throughput.made import fit_model
    from windtunnel.throughput.model_file import model_data
    from windtunnel.traces.training_points import read_points, read_steps

    name, gpu_type = asked["name"] or _stem(points), asked["gpu_type"]
    if (steps := read_steps(points)) is not None:
        return _goodput(steps, name, gpu_type, points)
    known = _completed(read_points(points), points, asked)
    model, found, notes = fit_model(known, name=name, provenance=points, refine=refine)
    data = {
        **model_data(replace(model, gpu_type=gpu_type)),
        "fit": None if found is None else _fit_data(found, len(known.profile)),
        "errors": [asdict(error) for error in prediction_errors(model)],
        "notes": notes,
    }
    facts = [Fact(name, f"{value:.6g}") for name, value in (data["fitted"] or {}).items()]
    if data["fit"] is not None:
        count = f"{data['fit']['points']} points"
        facts.append(Fact("objective", f"{data['fit']['objective']:.6g}", note=count))
    caption = "Predictions against the measured points, %"
    return Result(
        f"{model.name}: {len(model.table.rows)} measured points",
        facts=facts,
        parts=[Part("", tables=[(caption, _errors(data["errors"]))])],
        cautions=notes,
        data=data,
        text=lambda: json.dumps(plain(data), indent=2, allow_nan=False) + "\n",
    )


def _goodput(steps: MeasuredSteps, name: str, gpu_type: str | None, points: str) -> Result:
    from windtunnel.policies.pollux.fitting import fitted_training
    from windtunnel.report.sections import Fact
    from windtunnel.throughput.accuracy import TRUSTED
    from windtunnel.throughput.goodput_file import goodput_data

    model = fitted_training(steps, name=name, gpu_type=gpu_type, provenance=points)
    data = goodput_data(model)
    mean = model.mean_percent or 0.0
    cautions = []
    if mean > TRUSTED:
        cautions.append(f"Steps are {mean:.0f} % off in the mean; up to {TRUSTED:g} % is trusted.")
    facts = [Fact(key, f"{value:.6g}") for key, value in data["step"].items()]
    facts.append(Fact("mean error of steps", f"{mean:.1f} %", note=f"{len(steps.times)} points"))
    return Result(
        f"{name}: goodput on up to {model.most_gpus} GPUs",
        facts=facts,
        cautions=cautions,
        data=data,
        text=lambda: json.dumps(plain(data), indent=2, allow_nan=False) + "\n",
    )


def _errors(errors: list[dict[str, Any]]) -> Table:
    rows = [
        (
            *(error["plan"], "several" if error["several_nodes"] else "one", str(error["points"])),
            *(
                "" if error[key] is None else f"{error[key]:.1f}"
                for key in ("mean_percent", "max_percent")
            ),
        )
        for error in errors
    ]
    return table_of(("plan", "nodes", "points", "mean", "largest"), rows, texts=1)


def _stem(points: str) -> str:
    """Return a file's name without its endings."""
    from windtunnel.traces.source import short_name

    name = short_name(points)
    for ending in (".config", ".data", ".placements"):
        name = name.removesuffix(ending)
    return name


def _completed(known: MeasuredPoints, points: str, asked: dict[str, Any]) -> MeasuredPoints:
    """Return the points with what options say of the model, and what a like model has."""
    from windtunnel.throughput.morphling_models import training_model, training_models

    facts, notes = dict(known.facts), list(known.notes)
    given = {"global_batch_size": asked["batch"], "parameters": asked["parameters"]}
    given |= {"pcie": asked["pcie"], "nvlink": asked["nvlink"]}
    for key, value in given.items():
        if value is not None and facts.setdefault(key, value) != value:
            option = {"global_batch_size": "--batch"}.get(key, f"--{key}")
            raise SpecError(option, f"found {value:g}; expected {facts[key]:g}, which POINTS says.")
    like = asked["like"]
    if like is None and points.endswith((".config.csv", ".data.csv", ".placements.csv")):
        stem = _stem(points)  # the published files leave their settings to their models
        like = _PROFILE_NAMES.get(stem, stem)
        like = like if like in training_models() else None
    if like is None:
        return replace(known, facts=facts, notes=notes)
    model = training_model(like)
    links = model.bandwidths
    theirs: dict[str, float | None] = {
        key: getattr(model, key)
        for key in ("global_batch_size", "parameters", "hidden", "layers", "sequence")
    }
    theirs |= {"gpus_per_card": model.gpus_per_card, "gpu_memory_gib": model.gpu_memory_gib}
    if links is not None:
        theirs |= {"pcie": links.pcie, "nvlink": links.nvlink}
    taken = [key for key, value in theirs.items() if value is not None and key not in facts]
    notes.append(f"As with {like}: {', '.join(taken)}.")
    facts = {key: value for key, value in theirs.items() if value is not None} | facts
    return replace(known, facts=facts, notes=notes)


def _fit_data(found: Fit, count: int) -> dict[str, Any]:
    return {
        "points": count,
        "objective": found.objective,
        "on_bounds": list(found.on_bounds),
        "fitted_too": list(found.fitted_too),
    }
