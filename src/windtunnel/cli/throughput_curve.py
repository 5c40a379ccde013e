"""``windtunnel throughput curve``: what more GPUs bring a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import OneOf
from windtunnel.cli.presenting import CHARTS, TABLES, presented
from windtunnel.cli.throughput import opened, option_data

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.result import Result
    from windtunnel.report.sections import Table
    from windtunnel.throughput.options import Option
    from windtunnel.throughput.plans import Plan
    from windtunnel.throughput.training import TrainingModel

_MOST = 4096
#: GPUs of a node of the published scheduler.
_NODE = 8


class GpuRange(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """A number of GPUs, or two of them as ``1..64``."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return the least and the most.

        Raises:
            click.BadParameter: it is no such range.
        """
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(?:(\d{1,6})\.\.)?(\d{1,6})", str(value).strip(), re.ASCII)
        most = int(found[2]) if found else 0
        least = int(found[1]) if found and found[1] is not None else most
        if not 1 <= least <= most <= _MOST:
            self.fail(f"found {value!a}; expected GPUs as 1..64, at most {_MOST}.", param, ctx)
        return least, most


@click.command(short_help="Speed against GPUs with the best plan at each size; a chart.")
@click.argument("model", metavar="MODEL")
@click.option(
    "--gpus", type=GpuRange(), default="1..64", show_default=True, metavar="A..B", help="Sizes."
)
@click.option(
    "--node-gpus",
    type=click.IntRange(min=1, max=1024),
    default=8,
    show_default=True,
    metavar="N",
    help="GPUs of a node.",
)
@click.option(
    "--node-cpus",
    type=click.IntRange(min=0, max=100_000),
    default=96,
    show_default=True,
    metavar="N",
    help="CPUs of a node, which plans with an optimizer on CPUs need.",
)
@click.option("--plan", metavar="PLAN", help="Only this plan, such as zero-dp or 244.")
@click.option(
    "--compat",
    type=OneOf("morphling"),
    metavar="morphling",
    help="The published scheduler's own curve: its stored parameters, one node, measured times "
    "ignored.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1, max=1024),
    metavar="N",
    help="With --compat: CPU threads a GPU.  [default: 1]",
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
    from windtunnel.errors import SpecError
    from windtunnel.report.result import Part, Result
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

    def table() -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_pylist(rows)

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
        table=table,
        chart=lambda: curve_chart(known, rows),
    )


def _published(
    model: TrainingModel, most: int, plan: Plan | None, threads: int
) -> tuple[Option | None, ...]:
    """Return the published scheduler's curve; beyond a node it stays as it is.

    Raises:
        SpecError: the published scheduler does not know the model.
    """
    from windtunnel.errors import SpecError
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
    from windtunnel.report.result import table_of

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
