"""``windtunnel serving sweep``: attainment and latency against rate, cv, SLO scale and GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.serving_options import (
    memory_option,
    placement_from,
    spec_from,
    warm_up_option,
    workload_options,
)
from windtunnel.cli.serving_placed import GIB, POLICIES
from windtunnel.cli.serving_told import cell, check_ending, command_line, save
from windtunnel.cli.serving_told import replace as write_text

_ENDINGS = (".html", ".svg", ".csv", ".parquet")


class Axis(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """A name and the values that it takes: ``rate=10,20,40`` or ``rate=10:40:4``, four of them."""

    name = "axis"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Values:
        """Return name and values.

        Raises:
            click.BadParameter: it is something else.
        """
        if isinstance(value, Values):
            return value
        text = str(value)
        name, _, words = text.partition("=")
        try:
            if words.count(":") == 2:  # noqa: PLR2004 - from, to, how many
                first, last, many = words.split(":")
                low, high, count = float(first), float(last), int(many)
                steps = range(max(count, 1))
                values = tuple(low + (high - low) * i / max(count - 1, 1) for i in steps)
            else:
                values = tuple(float(word) for word in words.split(","))
        except ValueError:
            self.fail(f"found {text!a}; expected such as rate=10,20 or cv=1:5:9.", param, ctx)
        return Values(text, name.strip().replace("-", "_"), values)


class Values:
    """An axis as it was typed.

    Attributes:
        text: as typed.
        name: of the axis.
        values: of it.
    """

    def __init__(self, text: str, name: str, values: tuple[float, ...]) -> None:
        self.text, self.name, self.values = text, name, values

    def __str__(self) -> str:
        return self.text


@click.command(short_help="Attainment against rate, cv, SLO scale, GPUs.")
@workload_options
@click.option(
    "--over",
    type=Axis(),
    multiple=True,
    required=True,
    metavar="AXIS=VALUES",
    help="rate, cv, slo-scale, gpus or compress, with values 10,20,40 or 10:40:7. May be repeated: "
    "one axis changes at a time.",
)
@click.option("--gpus", type=click.IntRange(min=1, max=4096), required=True, help="GPUs to use.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help=f"Searched at every point; may be repeated: {POLICIES}  [default: sr, mp-search]",
)
@click.option(
    "--placement",
    "files",
    multiple=True,
    metavar="FILE.json",
    help="A placement that stays; may be repeated.",
)
@click.option(
    "--refine",
    type=click.IntRange(min=0),
    metavar="N",
    help="Simulations spent on improving each placement.  [default: 400]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=1024),
    default=1,
    show_default=True,
    help="Threads; the result is the same.",
)
@warm_up_option
@memory_option
@out_option("FILE", "Write a page (.html), charts (.svg) or the figures (.csv, .parquet).")
@output_options
def sweep(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Serve the workload while one thing changes, and tell how candidates do.

    Candidates are policies, which place anew at every point, and placements that stay.
    """
    from windtunnel import serving as rooms
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.serving.search import REFINE

    check_ending(out, _ENDINGS)
    spec = spec_from(asked)
    policies = asked["policies"] or (() if asked["files"] else ("sr", "mp-search"))
    candidates: dict[str, Any] = {name: name for name in policies}
    candidates |= {Path(name).stem: placement_from(name) for name in asked["files"]}
    over = {axis.name: axis.values for axis in asked["over"]}
    points = len(candidates) * (1 + sum(len(values) for values in over.values()))
    show = shows_progress(as_json=as_json)
    with progress("Serving", total=points, show=show) as done:
        found = rooms.sweep(
            spec,
            asked["gpus"],
            over,
            candidates,
            mem_budget=asked["mem_gib"] * GIB,
            warm_up=asked["warm_up"],
            refine=REFINE if asked["refine"] is None else asked["refine"],
            workers=asked["workers"],
            on_done=done,
        )
    if out is not None:
        _write(found, out)
    if as_json:
        from windtunnel.cli.machine import print_json

        placements = {name: one.data() for name, one in found.placements.items()}
        told = {"workload": spec.data(), "gpus": found.gpus, "rows": found.rows}
        told |= {"placements": placements, "out": None if out is None else str(out)}
        print_json(told)
        return
    _tell(found)


def _write(found: Any, out: Path) -> None:
    ending = out.suffix.lower()
    if ending == ".html":
        from windtunnel.report.serving_page import sweep_page

        write_text(out, sweep_page(found, command=command_line()))
    elif ending == ".svg":
        from windtunnel.report.chart.saving import write_chart
        from windtunnel.report.serving_sweep_chart import sweep_chart

        write_chart(out, sweep_chart(found))
    else:
        import pyarrow as pa

        save(pa.Table.from_pylist(found.rows), out)


def _tell(found: Any) -> None:
    from windtunnel.cli.screen import heading, plain_table, screen

    console = screen()
    for axis in dict.fromkeys(row["axis"] for row in found.rows):
        heading(console, axis.replace("_", " "))
        names = ("slo_attainment", "mean_latency", "p99_latency")
        rows = [
            [f"{row['value']:g}", row["candidate"], *(cell(row[n]) for n in names), row["groups"]]
            for row in found.rows
            if row["axis"] == axis
        ]
        columns = ["value", "candidate", "within SLO", "mean, s", "P99, s", "groups"]
        console.print(plain_table(columns, rows))
