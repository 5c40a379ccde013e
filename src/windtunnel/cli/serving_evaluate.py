"""``windtunnel serving evaluate``: published cases served again, beside what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import OneOf, Seconds, out_option, output_options
from windtunnel.cli.serving_told import cell, check_ending, save

if TYPE_CHECKING:
    from pathlib import Path

#: Where the published cases lie, so do the published latencies.
PROFILE = "profile_stages.csv"
#: Rows told one by one on a terminal.
_TOLD = 20


@click.command(short_help="Serve published cases again.")
@click.argument("cases", metavar="CASES.jsonl")
@click.option(
    "--profile",
    metavar="FILE|synthetic",
    help="CSV of stage latencies and memory of the cases' models.  [default: profile_stages.csv "
    "beside CASES.jsonl if there is one, else synthetic]",
)
@click.option(
    "--overheads",
    type=OneOf("none", "alpaserve"),
    default="alpaserve",
    show_default=True,
    metavar="none|alpaserve",
    help="What serving costs besides the profile.",
)
@click.option(
    "--warm-up",
    type=Seconds(),
    default=10.0,
    show_default=True,
    help="Leave so much out at both ends, counted in requests.",
)
@out_option("FILE", "Write a row a case (.csv, .parquet).")
@output_options
def evaluate(
    *,
    cases: str,
    profile: str | None,
    overheads: str,
    warm_up: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Serve each case of CASES.jsonl, a workload with its placement, and compare.

    Fields of a line: model_set, num_models, total_rate, rate_distribution, arrival, cv, slo_scale,
    duration_s, groups, mem_budget_bytes, and goodput, what was published.
    """
    from pathlib import Path

    from windtunnel import serving as rooms
    from windtunnel.cli.saving import ENDINGS
    from windtunnel.cli.screen import progress, shows_progress

    check_ending(out, ENDINGS)
    asked = rooms.read_cases(cases)
    if profile is None:
        beside = Path(cases).parent / PROFILE
        profile = str(beside) if beside.is_file() else "synthetic"
    costs = rooms.synthetic_profile() if profile == "synthetic" else rooms.read_profile(profile)
    found = []
    show = shows_progress(as_json=as_json)
    with progress("Serving", total=len(asked), show=show) as done:
        for case in asked:
            found.append(rooms.evaluate(case, costs, overheads=overheads, warm_up=warm_up))
            done("case")
    apart = [abs(row["difference"]) for row in found if row["difference"] is not None]
    told: dict[str, Any] = {
        "settings": {"profile": profile, "overheads": overheads, "warm_up": warm_up},
        "num_cases": len(found),
        "num_published": len(apart),
        "largest_difference": max(apart, default=None),
        "mean_difference": sum(apart) / len(apart) if apart else None,
        "cases": found,
        "out": None if out is None else str(out),
    }
    if out is not None:
        import pyarrow as pa

        save(pa.Table.from_pylist(found), out)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(told)
        return
    _tell(told)


def _tell(told: dict[str, Any]) -> None:
    from windtunnel.cli.screen import heading, line, plain_table, screen
    from windtunnel.report.format import plural

    console = screen()
    heading(console, f"{plural(told['num_cases'], 'case')}, {told['num_published']} published")
    console.print(line(f"latencies: {told['settings']['profile']}"), soft_wrap=True)
    names = ("goodput", "published", "difference", "mean_latency_s", "p99_latency_s")
    rows = [
        [str(row["line"]), *(cell(row[name]) for name in names)] for row in told["cases"][:_TOLD]
    ]
    columns = ["line", "within SLO", "published", "difference", "mean, s", "P99, s"]
    console.print(plain_table(columns, rows, numbers=5))
    if len(told["cases"]) > _TOLD:
        console.print(line(f"{len(told['cases']) - _TOLD} more cases: see --json."))
    if told["num_published"]:
        console.print(
            line(
                f"Apart from what was published: {cell(told['largest_difference'])} at most, "
                f"{cell(told['mean_difference'])} on average."
            )
        )
