"""``windtunnel serving evaluate``: published cases served again, beside what was published."""

from __future__ import annotations

from typing import Any

import click

from windtunnel.cli.options import TIME, one_of, option
from windtunnel.cli.presenting import TABLES, presented
from windtunnel.cli.screen import progress
from windtunnel.cli.serving_told import cell
from windtunnel.report.format import plural
from windtunnel.report.result import Part, Result, table_of

#: Where the published cases lie, so do the published latencies.
PROFILE = "profile_stages.csv"
#: Rows told one by one on a terminal.
_TOLD = 20


@click.command(short_help="Serve published cases again.")
@click.argument("cases", metavar="CASES.jsonl")
@option(
    "--profile FILE|synthetic",
    "CSV of stage latencies and memory of the cases' models.  [default: profile_stages.csv "
    "beside CASES.jsonl if there is one, else synthetic]",
)
@option(
    "--overheads none|alpaserve",
    "What serving costs besides the profile.",
    one_of("none", "alpaserve"),
    default="alpaserve",
)
@option("--warm-up", "Leave so much out at both ends, counted in requests.", TIME, default=10.0)
@presented(TABLES, "Write a row a case (.csv, .parquet).", reads="cases")
def evaluate(*, cases: str, profile: str | None, overheads: str, warm_up: float) -> Result:
    """Serve each case of CASES.jsonl, a workload with its placement, and compare.

    Fields of a line: model_set, num_models, total_rate, rate_distribution, arrival, cv, slo_scale,
    duration_s, groups, mem_budget_bytes, and goodput, what was published.
    """
    from pathlib import Path

    from windtunnel import serving as rooms

    asked = rooms.read_cases(cases)
    if profile is None:
        beside = Path(cases).parent / PROFILE
        profile = str(beside) if beside.is_file() else "synthetic"
    costs = rooms.synthetic_profile() if profile == "synthetic" else rooms.read_profile(profile)
    found = []
    with progress("Serving", total=len(asked)) as done:
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
    }

    def table() -> Any:
        import pyarrow as pa

        return pa.Table.from_pylist(found)

    names = ("goodput", "published", "difference", "mean_latency_s", "p99_latency_s")
    rows = [[str(row["line"]), *(cell(row[name]) for name in names)] for row in found[:_TOLD]]
    columns = ["line", "within SLO", "published", "difference", "mean, s", "P99, s"]
    notes = [f"{len(found) - _TOLD} more cases: see --json."] * (len(found) > _TOLD)
    if apart:
        notes.append(
            f"Apart from what was published: {cell(told['largest_difference'])} at most, "
            f"{cell(told['mean_difference'])} on average."
        )
    return Result(
        f"{plural(len(found), 'case')}, {len(apart)} published",
        parts=[Part("", tables=[("", table_of(columns, rows))])],
        notes=notes,
        settings=[("latencies", profile)],
        data=told,
        table=table,
    )
