"""What the serving commands print and write."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.cli.serving_placed import Placed
    from windtunnel.serving import Placement, ServingOutcome

#: Models told one by one on a terminal.
TOLD = 12


def tell(figures: dict[str, Any], placed: Placement, title: str) -> Any:
    """Print a run's figures, groups and first models; return the console."""
    from windtunnel.cli.screen import facts, heading, plain_table, screen
    from windtunnel.report.format import count, plural

    console = screen()
    requests, gpus = plural(figures["num_counted"], "request"), plural(placed.num_gpus, "GPU")
    heading(console, f"{requests}, {gpus}, {title}")
    names = {
        "slo_attainment": "within SLO",
        "mean_latency": "mean latency, s",
        "p50_latency": "P50 latency, s",
        "p90_latency": "P90 latency, s",
        "p99_latency": "P99 latency, s",
        "throughput": "good requests/s",
        "utilization": "GPU time in use",
    }
    facts(console, [(text, cell(figures[key])) for key, text in names.items()])
    groups: dict[str, list[int]] = {}
    for group in placed.groups:
        groups.setdefault(group.parallel.name, []).append(len(group.models))
    heading(console, "Groups")
    rows = [[name, str(len(held)), _range(held)] for name, held in groups.items()]
    console.print(plain_table(["(dp,op,pp)", "groups", "models in each"], rows, numbers=2))
    heading(console, "Models")
    cells = [
        [
            str(one["model"]), one["name"], count(one["num_counted"]),
            cell(one["slo_attainment"]), cell(one["mean_latency"]), cell(one["p99_latency"]),
        ]
        for one in figures["by_model"][:TOLD]
    ]  # fmt: skip
    columns = ["index", "model", "requests", "within SLO", "mean, s", "P99, s"]
    console.print(plain_table(columns, cells, numbers=4))
    more(console, len(figures["by_model"]))
    return console


def _range(held: list[int]) -> str:
    low, high = min(held), max(held)
    return f"{low} to {high}" if low < high else str(low)


def more(console: Any, models: int) -> None:
    """Say how many models were left out of a table."""
    if models > TOLD:
        from windtunnel.cli.screen import line

        console.print(line(f"{models - TOLD} more models: see --json."))


def cell(value: float | None) -> str:
    """Return a number as a table shows it; nothing where it is unknown."""
    return "" if value is None or math.isnan(value) else f"{value:.4g}"


def check_ending(out: Path | None, endings: tuple[str, ...]) -> None:
    """Refuse a file whose name does not end as it should.

    Raises:
        click.UsageError: it does not.
    """
    if out is not None and out.suffix.lower() not in endings:
        raise click.UsageError(f"--out: expected a name that ends in {', '.join(endings)}.")


def save(table: Any, out: Path) -> None:
    """Write a table as its name asks for."""
    from windtunnel.cli.saving import ENDINGS, save_table

    check_ending(out, ENDINGS)
    save_table(table, out)


def write(found: ServingOutcome, where: Placed, out: Path) -> None:
    """Write the page, the chart or the table of a run, by the ending of the name."""
    ending = out.suffix.lower()
    if ending == ".html":
        from windtunnel.report.serving_page import serving_page

        placements = where.schedule or where.placement
        replace(out, serving_page(found, placements, where.name, command=command_line()))
    elif ending == ".svg":
        from windtunnel.report.chart.saving import write_chart
        from windtunnel.report.serving_chart import serving_chart

        write_chart(out, serving_chart(found))
    else:
        save(found.table, out)


def command_line() -> str:
    """Return the command under way as it may be typed again."""
    context = click.get_current_context()
    words = ["windtunnel", "serving", str(context.info_name)]
    behind: list[str] = []
    for param in context.command.params:
        if not param.name:
            continue
        if context.get_parameter_source(param.name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params.get(param.name)
        if isinstance(param, click.Argument):
            words += [] if value is None else [str(value)]
        elif getattr(param, "is_flag", False):
            behind.append((param.opts if value else param.secondary_opts)[0])
        else:
            for one in value if getattr(param, "multiple", False) and value else [value]:
                behind += [param.opts[0], _typed(one)]
    return shlex.join(words + behind)


def _typed(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(f"{part:g}" for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def replace(out: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    from windtunnel.report.page import write_page

    write_page(out, text)
