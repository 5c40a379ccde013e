"""``windtunnel throughput plan``: the plan for each limit of resources (figure 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import out_option, output_options

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.throughput.figure7 import PickedPlan
    from windtunnel.throughput.training import TrainingModel


@click.command(short_help="Which plan runs under shrinking limits, and how fast it was measured.")
@click.argument("model", metavar="MODEL", default="llama7b_bsz16")
@out_option("FILE", "Write the chart (.html, .svg, .png).")
@output_options
def plan(*, model: str, out: Path | None, as_json: bool) -> None:
    """Pick MODEL's plan on 32, 16, 4 and 1 GPUs, as figure 7 of the Morphling paper does.

    The published model of speeds rates the plans; told are the measured seconds of the best rated
    one, and of the fastest plan that each rival may run. MODEL must have been measured at those
    limits: llama7b_bsz16 was.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.errors import SpecError
    from windtunnel.throughput.figure7 import figure7
    from windtunnel.throughput.morphling_models import training_model

    check_out(out, (".html", ".svg", ".png"), "")
    known = training_model(model)
    rows = figure7(known)
    if any(row.plan is None for row in rows if row.approach == "Morphling"):
        raise SpecError("MODEL", f"{known.name} was not measured at the limits of figure 7.")
    data = [_data(known, row) for row in rows]
    if out is not None:
        from windtunnel.report.chart.saving import write_chart
        from windtunnel.report.throughput_chart import plan_chart

        title = f"{known.title}: plans under shrinking limits"
        write_chart(out, plan_chart(title, data), title)
    if as_json:
        from windtunnel.cli.machine import print_json

        told = None if out is None else str(out)
        print_json({"model": known.name, "limits": data, "out": told})
        return
    _print(known, rows, out)


def _data(model: TrainingModel, row: PickedPlan) -> dict[str, Any]:
    seconds = row.iteration_time
    return {
        "approach": row.approach,
        "num_gpus": sum(map(int, row.placement)),
        "placement": row.placement,
        "cpu_threads": row.threads,
        "plan": None if row.plan is None else row.plan.name,
        "predicted_throughput": row.predicted,
        "iteration_time": seconds,
        "throughput": None if seconds is None else model.global_batch_size / seconds,
    }


def _print(model: TrainingModel, rows: tuple[PickedPlan, ...], out: Path | None) -> None:
    from windtunnel.cli.screen import bullets, heading, line, plain_table, screen

    console = screen()
    heading(console, f"{model.title}: seconds per iteration of {model.global_batch_size} samples")
    table = [
        (
            row.approach,
            row.plan.name,
            row.placement,
            str(row.threads),
            "" if row.predicted is None else f"{row.predicted:.4f}",
            f"{row.iteration_time:g}",
            f"{model.global_batch_size / row.iteration_time:.4g}",
        )
        for row in rows
        if row.plan is not None and row.iteration_time is not None
    ]
    headings = (
        "approach",
        "plan",
        "placement",
        "threads",
        "predicted/s",
        "s/iteration",
        "samples/s",
    )
    console.print(plain_table(headings, table, numbers=4))
    missing = [f"{row.approach} cannot run on {row.placement}." for row in rows if not row.plan]
    bullets(console, "Mind", missing)
    if out is not None:
        console.print()
        console.print(line(f"The result is in {out}"), soft_wrap=True)
