"""``windtunnel throughput allocate``: a few GPUs for a few jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.throughput import opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

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
@out_option("FILE", "Write the chart (.html, .svg, .png).")
@output_options
def allocate(*, models: tuple[str, ...], gpus: int, out: Path | None, as_json: bool) -> None:
    """Share GPUs among one job of each MODEL, by two schedulers.

    simple gives every job as many GPUs, the last one the remainder too; morphling gives them where
    they raise the sum of normalised speeds most. Each job runs its fastest measured plan. A
    normalised speed is that over the job's speed on all the GPUs.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.throughput.sharing import SCHEDULERS, share

    check_out(out, (".html", ".svg", ".png"), "")
    known = [opened(text) for text in models]
    shares = {name: share(known, gpus, name) for name in SCHEDULERS}
    if out is not None:
        from windtunnel.report.chart.saving import write_chart
        from windtunnel.report.throughput_chart import share_chart

        rows = [
            {"scheduler": name, **_data(one), "job": job}
            for name, given in shares.items()
            for one, job in zip(given, _told_apart([one.model for one in given]), strict=True)
        ]
        write_chart(out, share_chart(rows, gpus), f"{gpus} GPUs shared")
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(
            {
                "num_gpus": gpus,
                "schedulers": {
                    name: {
                        "jobs": [_data(one) for one in given],
                        "sum_normalized_throughput": sum(one.normalised for one in given),
                    }
                    for name, given in shares.items()
                },
                "out": None if out is None else str(out),
            }
        )
        return
    notes = [f"{model.name}: {note}" for model in known for note in model.notes]
    _print(gpus, shares, out, notes)


def _told_apart(names: list[str]) -> list[str]:
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


def _print(
    gpus: int, shares: Mapping[str, Sequence[Share]], out: Path | None, notes: Sequence[str]
) -> None:
    from windtunnel.cli.screen import bullets, heading, line, plain_table, screen

    console = screen()
    heading(console, f"{gpus} GPUs shared")
    rows = []
    for name, given in shares.items():
        for one in given:
            option = one.option
            told = (
                ("", "") if option is None else (option.plan.name, f"{option.iteration_time:.7g}")
            )
            rows.append((name, one.model, *told, str(one.num_gpus), f"{one.normalised:.2f}"))
        total = f"{sum(one.normalised for one in given):.2f}"
        rows.append((name, "together", "", "", str(sum(s.num_gpus for s in given)), total))
    headings = ("scheduler", "job", "plan", "s/iteration", "GPUs", "normalised")
    console.print(plain_table(headings, rows, numbers=3))
    meaning = "Normalised: speed over that of the fastest plan on all the GPUs."
    bullets(console, "Mind", [meaning, *notes])
    if out is not None:
        console.print()
        console.print(line(f"The result is in {out}"), soft_wrap=True)
