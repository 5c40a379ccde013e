"""``windtunnel throughput curve``: what more GPUs bring a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import Parsed, one_of, option
from windtunnel.cli.presenting import CHARTS, TABLES, presented, rows_table
from windtunnel.cli.throughput import opened, option_data
from windtunnel.errors import SpecError
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.report.sections import Table
    from windtunnel.throughput.options import Option
    from windtunnel.throughput.plans import Plan
    from windtunnel.throughput.sharing import Share
    from windtunnel.throughput.training import TrainingModel


_MOST = 4096
#: GPUs of a node of the published scheduler.
_NODE = 8


def _gpu_range(word: str) -> tuple[int, int]:
    """Return the least and the most of ``1..64``, or of a number of GPUs."""
    found = re.fullmatch(r"(?:(\d{1,6})\.\.)?(\d{1,6})", word.strip(), re.ASCII)
    most = int(found[2]) if found else 0
    least = int(found[1]) if found and found[1] is not None else most
    if not 1 <= least <= most <= _MOST:
        raise ValueError(f"found {word!a}; expected GPUs as 1..64, at most {_MOST}.")
    return least, most


@click.command(short_help="Speed against GPUs with the best plan at each size; a chart.")
@click.argument("model", metavar="MODEL")
@option("--gpus A..B", "Sizes.", Parsed("range", _gpu_range), default="1..64")
@option("--node-gpus N", "GPUs of a node.", click.IntRange(min=1, max=1024), default=8)
@option(
    "--node-cpus N",
    "CPUs of a node, which plans with an optimizer on CPUs need.",
    click.IntRange(min=0, max=100_000),
    default=96,
)
@option("--plan PLAN", "Only this plan, such as zero-dp or 244.")
@option(
    "--compat morphling",
    "The published scheduler's own curve: its stored parameters, one node, measured times ignored.",
    one_of("morphling"),
)
@option(
    "--threads N",
    "With --compat: CPU threads a GPU.  [default: 1]",
    click.IntRange(min=1, max=1024),
)
@presented(
    (*CHARTS, *TABLES),
    "Write the chart (.html, .svg, .png, .pdf) or the curve (.csv, .parquet).",
    reads="model",
)
def curve(
    *,
    model: str,
    gpus: tuple[int, int],
    node_gpus: int,
    node_cpus: int,
    plan: str | None,
    compat: str | None,
    threads: int | None,
) -> Result:
    """Compute MODEL's resource sensitivity curve: its speed with at most so many GPUs.

    At each size the fastest plan that is measured, or lies between measured points; a size that
    gains nothing keeps the smaller, cheaper option. Sizes too small to run on are null.
    """
    from windtunnel.report.throughput_chart import curve_chart
    from windtunnel.throughput.plans import Plan

    if threads is not None and compat is None:
        raise SpecError("--threads", "goes with --compat morphling; see --node-cpus.")
    known = opened(model)
    only = None if plan is None else Plan.parse(plan)
    least, most = gpus
    if compat is None:
        found = known.curve(most, node_gpus=node_gpus, node_cpus=node_cpus, plan=only)
    else:
        found = _published(known, most, only, threads or 1)
    rows = [_row(known, size, found[size - 1]) for size in range(least, most + 1)]
    notes = ["Sizes that are not listed run as the next smaller one: more GPUs gain nothing."]
    if rows and rows[0]["plan"] is None:
        notes.append("Fewer GPUs than the first size have no option.")

    return Result(
        f"{known.name}: speed by GPUs",
        f"{known.title}: {known.global_batch_size} samples an iteration.",
        parts=[Part("", tables=[("", _sizes(rows))])],
        cautions=[*notes, *known.notes],
        data={
            "model": known.name,
            "global_batch_size": known.global_batch_size,
            "provenance": known.provenance,
            "notes": list(known.notes),
            "curve": rows,
        },
        table=lambda: rows_table(rows),
        chart=lambda: curve_chart(known, rows),
    )


def _published(
    model: TrainingModel, most: int, plan: Plan | None, threads: int
) -> tuple[Option | None, ...]:
    """Return the published scheduler's curve; beyond a node it stays as it is."""
    from windtunnel.throughput.options import Option
    from windtunnel.throughput.published import published_best, published_prediction

    if model.stored is None:
        raise SpecError("--compat", f"the published scheduler does not know {model.name}.")
    curve: list[Option | None] = []
    for size in range(1, most + 1):
        if size > _NODE:
            curve.append(curve[-1])
        elif plan is None:
            best = published_best(model, size, threads=threads)
            curve.append(
                None
                if best is None
                else Option(
                    best[1],
                    (best[2],),
                    threads * best[2],
                    model.global_batch_size / best[0],
                    measured=False,
                )
            )
        else:
            seconds = published_prediction(model, plan, size, threads=threads)
            own = None if seconds is None else Option(plan, (size,), threads * size, seconds, False)
            curve.append(own)
    return tuple(curve)


def _row(model: TrainingModel, size: int, option: Option | None) -> dict[str, Any]:
    """Return a size of the curve; the GPUs that its option uses are ``num_gpus``."""
    if option is None:
        empty = dict.fromkeys(("num_gpus", "plan", "placement", "num_cpus"))
        return {"gpus": size, **empty, "iteration_time": None, "measured": None, "throughput": None}
    speed = model.global_batch_size / option.iteration_time
    return {"gpus": size, **option_data(option), "throughput": speed}


def _sizes(rows: list[dict[str, Any]]) -> Table:
    """Return the sizes at which the curve rises."""
    rises, before = [], None
    for row in rows:
        if row["plan"] is not None and row["num_gpus"] != before:
            before = row["num_gpus"]
            rises.append(row)
    cells = [
        (
            *(row["plan"], row["placement"], "measured" if row["measured"] else "predicted"),
            *(str(row["num_gpus"]), str(row["num_cpus"])),
            *(f"{row['iteration_time']:.5g}", f"{row['throughput']:.5g}"),
        )
        for row in rises
    ]
    headings = ("plan", "placement", "time is", "GPUs", "CPUs", "s/iteration", "samples/s")
    return table_of(headings, cells, texts=2)


@click.command(short_help="Share a few GPUs among jobs: equally, and as Morphling does.")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@option(
    "--gpus N",
    "GPUs in all, on empty nodes of 8 with 96 CPUs.",
    click.IntRange(min=1, max=4096),
    required=True,
)
@presented(CHARTS, "Write the chart (.html, .svg, .png, .pdf).")
def allocate(*, models: tuple[str, ...], gpus: int) -> Result:
    """Share GPUs among one job of each MODEL, by two schedulers.

    simple gives every job as many GPUs, the last one the remainder too; morphling gives them where
    they raise the sum of normalised speeds most. Each job runs its fastest measured plan. A
    normalised speed is that over the job's speed on all the GPUs.
    """
    from windtunnel.report.throughput_chart import share_chart
    from windtunnel.throughput.sharing import SCHEDULERS, share

    known = [opened(text) for text in models]
    shares = {name: share(known, gpus, name) for name in SCHEDULERS}
    drawn = [
        {"scheduler": name, **_data(one), "job": job}
        for name, given in shares.items()
        for one, job in zip(given, _numbered([one.model for one in given]), strict=True)
    ]
    meaning = "Normalised: speed over that of the fastest plan on all the GPUs."
    schedulers = {
        name: {
            "jobs": [_data(one) for one in given],
            "sum_normalized_throughput": sum(one.normalised for one in given),
        }
        for name, given in shares.items()
    }
    return Result(
        f"{gpus} GPUs shared",
        parts=[Part("", tables=[("", _shares(shares))])],
        cautions=[meaning, *(f"{model.name}: {note}" for model in known for note in model.notes)],
        data={"num_gpus": gpus, "schedulers": schedulers},
        chart=lambda: share_chart(drawn, gpus),
    )


def _numbered(names: list[str]) -> list[str]:
    """Return names with a number behind each that stands there more than once."""
    return [
        f"{name} ({names[: place + 1].count(name)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _data(one: Share) -> dict[str, Any]:
    option = one.option
    return {
        "job": one.model,
        "num_gpus": one.num_gpus,
        "plan": None if option is None else option.plan.name,
        "iteration_time": None if option is None else option.iteration_time,
        "normalized_throughput": one.normalised,
        "num_cpus": 0 if option is None else option.num_cpus,
    }


def _shares(shares: Mapping[str, Sequence[Share]]) -> Table:
    """Return every scheduler's jobs, and what they are together."""
    rows = []
    for name, given in shares.items():
        for one in given:
            option = one.option
            plan, seconds = ("", "")
            if option is not None:
                plan, seconds = option.plan.name, f"{option.iteration_time:.7g}"
            share = f"{one.normalised:.2f}"
            rows.append((name, one.model, plan, seconds, str(one.num_gpus), share))
        total = f"{sum(one.normalised for one in given):.2f}"
        rows.append((name, "together", "", "", str(sum(s.num_gpus for s in given)), total))
    headings = ("scheduler", "job", "plan", "s/iteration", "GPUs", "normalised")
    return table_of(headings, rows, texts=2)
