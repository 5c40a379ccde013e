"""``windtunnel throughput allocate``: a few GPUs for a few jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.presenting import CHARTS, presented
from windtunnel.cli.throughput import opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.report.result import Result
    from windtunnel.report.sections import Table
    from windtunnel.throughput.sharing import Share


@click.command(short_help="Share a few GPUs among jobs: equally, and as Morphling does.")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option(
    "--gpus",
    type=click.IntRange(min=1, max=4096),
    required=True,
    metavar="N",
    help="GPUs in all, on empty nodes of 8 with 96 CPUs.",
)
@presented(CHARTS, "Write the chart (.html, .svg, .png, .pdf).")
def allocate(*, models: tuple[str, ...], gpus: int) -> Result:
    """Share GPUs among one job of each MODEL, by two schedulers.

    simple gives every job as many GPUs, the last one the remainder too; morphling gives them where
    they raise the sum of normalised speeds most. Each job runs its fastest measured plan. A
    normalised speed is that over the job's speed on all the GPUs.
    """
    from windtunnel.report.result import Part, Result
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
    from windtunnel.report.result import table_of

    rows = []
    for name, given in shares.items():
        for one in given:
            option = one.option
            plan, seconds = ("", "")
            if option is not None:
                plan, seconds = option.plan.name, f"{option.iteration_time:.7g}"
            told = (str(one.num_gpus), f"{one.normalised:.2f}")
            rows.append((name, one.model, plan, seconds, *told))
        total = f"{sum(one.normalised for one in given):.2f}"
        rows.append((name, "together", "", "", str(sum(s.num_gpus for s in given)), total))
    headings = ("scheduler", "job", "plan", "s/iteration", "GPUs", "normalised")
    return table_of(headings, rows, texts=2)
