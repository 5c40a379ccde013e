"""``windtunnel serving sweep|replace|evaluate``: as one thing changes, over time, and by case."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import TIME, Parsed, one_of, option
from windtunnel.cli.presenting import TABLES, presented, rows_table
from windtunnel.cli.screen import progress
from windtunnel.cli.serving_options import (
    drawn_from,
    memory_option,
    placement_from,
    spec_from,
    warm_up_option,
    workload_options,
)
from windtunnel.cli.serving_placed import (
    GIB,
    POLICIES,
    effort_from,
    refine_option,
    switch_from,
    switch_options,
)
from windtunnel.cli.serving_results import CHARTS_AND_TABLES, cell
from windtunnel.report.format import count, plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.serving import ServingOutcome


@dataclass(frozen=True)
class Values:
    """An axis and the values that it takes, as it was typed, too."""

    text: str
    name: str
    values: tuple[float, ...]

    def __str__(self) -> str:
        return self.text


#: Values of an axis, at most.
_MOST_VALUES = 10_000


def _axis(text: str) -> Values:
    """Return an axis of ``rate=10,20,40`` or ``rate=10:40:4``, four of them."""
    name, _, words = text.partition("=")
    try:
        if words.count(":") == 2:  # noqa: PLR2004 - from, to, how many
            first, last, many = words.split(":")
            low, high = float(first), float(last)
            count = min(int(many), _MOST_VALUES + 1)
            values = tuple(low + (high - low) * i / max(count - 1, 1) for i in range(count))
        else:
            values = tuple(float(word) for word in words.split(","))
    except ValueError:
        values = ()
    if not 0 < len(values) <= _MOST_VALUES:
        expected = f"such as rate=10,20 or rate=10:40:4, at most {_MOST_VALUES} values"
        raise ValueError(f"found {text!a}; expected {expected}.")
    return Values(text, name.strip().replace("-", "_"), values)


#: Of ``--over``.
AXIS = Parsed("axis", _axis)


@click.command(short_help="Attainment against rate, cv, SLO scale, GPUs.")
@workload_options
@option(
    "--over AXIS=VALUES",
    "rate, cv, slo-scale, gpus or compress, with values 10,20,40 or 10:40:7. May be repeated: "
    "one axis changes at a time.",
    AXIS,
    multiple=True,
    required=True,
)
@option("--gpus", "GPUs to use.", click.IntRange(min=1, max=4096), required=True)
@option(
    "--policy NAME",
    f"Searched at every point; may be repeated: {POLICIES}  [default: sr, mp-search]",
    dest="policies",
    multiple=True,
)
@option(
    "--placement FILE.json", "A placement that stays; may be repeated.", dest="files", multiple=True
)
@refine_option
@option("--workers", "Threads; the result is the same.", click.IntRange(min=1, max=1024), default=1)
@warm_up_option
@memory_option
@presented(
    CHARTS_AND_TABLES,
    "Write a page (.html), charts (.svg) or the figures (.csv, .parquet).",
    reads="",
)
def sweep(**asked: Any) -> Result:
    """Serve the workload while one thing changes, and tell how candidates do.

    Candidates are policies, which place anew at every point, and placements that stay.
    """
    from windtunnel import serving

    spec = spec_from(asked)
    policies = asked["policies"] or (() if asked["files"] else ("sr", "mp-search"))
    candidates: dict[str, Any] = {name: name for name in policies}
    candidates |= {Path(name).stem: placement_from(name) for name in asked["files"]}
    over = {axis.name: axis.values for axis in asked["over"]}
    points = len(candidates) * (1 + sum(len(values) for values in over.values()))
    with progress("Serving", total=points) as done:
        found = serving.sweep(
            spec,
            asked["gpus"],
            over,
            candidates,
            warm_up=asked["warm_up"],
            **effort_from(asked, done),
        )
    placements = {name: one.data() for name, one in found.placements.items()}
    from windtunnel.report.serving_page import sweep_result

    data = {
        "workload": spec.data(),
        "gpus": found.gpus,
        "rows": found.rows,
        "placements": placements,
    }
    return dataclasses.replace(sweep_result(found), data=data, table=lambda: rows_table(found.rows))


_MEASURES = ("slo_attainment", "mean_latency", "p99_latency")


@click.command(short_help="Place anew over time, for free and at a price.")
@workload_options
@option("--gpus", "GPUs to use.", click.IntRange(min=1, max=4096), required=True)
@option("--every", "Place anew for each stretch of so long.", TIME, default=60.0)
@option(
    "--policy NAME",
    "How each stretch is placed; see `windtunnel serving search`.",
    default="sr-greedy",
)
@switch_options
@warm_up_option
@memory_option
@presented(reads="")
def replace(**asked: Any) -> Result:
    """Compare one placement for all requests with a new one for each stretch of them.

    Every stretch is placed knowing its requests, which no operator does: an upper bound. It is
    served twice, once with free changes that empty every queue (Clockwork++), and once with work
    under way finished first and weights loaded.
    """
    from windtunnel import serving

    spec, profile, drawn = drawn_from(asked)
    shared = {"mem_budget": asked["mem_gib"] * GIB, "overheads": spec.overheads}
    switch = switch_from(asked)
    with progress("Placing") as done:
        once = serving.search(drawn, profile, asked["gpus"], asked["policy"], refine=0, **shared)
        schedule = serving.search_schedule(
            drawn, profile, asked["gpus"], asked["every"], asked["policy"], on_done=done, **shared
        )
    runs: dict[str, ServingOutcome] = {
        "once": serving.simulate(once.placement, drawn, profile, **shared),
        "anew_free": serving.simulate_schedule(schedule, drawn, profile, **shared),
        "anew_paid": serving.simulate_schedule(schedule, drawn, profile, switch=switch, **shared),
    }
    figures = {name: run.metrics(asked["warm_up"]) for name, run in runs.items()}
    title = f"{count(len(drawn))} requests, {asked['gpus']} GPUs, {asked['policy']}"
    names = {"once": "once", "anew_free": "anew, free", "anew_paid": "anew, at a price"}
    rows = [[text, *(cell(figures[name][m]) for m in _MEASURES)] for name, text in names.items()]
    table = table_of(["placed", "within SLO", "mean, s", "P99, s"], rows)
    placements = [placement.data() for placement in schedule.placements]
    return Result(
        f"{title}, {len(schedule.starts)} stretches",
        parts=[Part("", tables=[("", table)])],
        data={"starts": list(schedule.starts), "placements": placements, "metrics": figures},
    )


#: Where the published cases lie, so do the published latencies.
PROFILE = "profile_stages.csv"
#: Rows shown one by one on a terminal.
_ROWS_SHOWN = 20


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

    from windtunnel import serving

    asked = serving.read_cases(cases)
    if profile is None:
        beside = Path(cases).parent / PROFILE
        profile = str(beside) if beside.is_file() else "synthetic"
    costs = serving.synthetic_profile() if profile == "synthetic" else serving.read_profile(profile)
    found = []
    with progress("Serving", total=len(asked)) as done:
        for case in asked:
            found.append(serving.evaluate(case, costs, overheads=overheads, warm_up=warm_up))
            done("case")
    apart = [abs(row["difference"]) for row in found if row["difference"] is not None]
    data: dict[str, Any] = {
        "settings": {"profile": profile, "overheads": overheads, "warm_up": warm_up},
        "num_cases": len(found),
        "num_published": len(apart),
        "largest_difference": max(apart, default=None),
        "mean_difference": sum(apart) / len(apart) if apart else None,
        "cases": found,
    }

    names = ("goodput", "published", "difference", "mean_latency_s", "p99_latency_s")
    rows = [[str(row["line"]), *(cell(row[name]) for name in names)] for row in found[:_ROWS_SHOWN]]
    columns = ["line", "within SLO", "published", "difference", "mean, s", "P99, s"]
    notes = [f"{len(found) - _ROWS_SHOWN} more cases: see --json."] * (len(found) > _ROWS_SHOWN)
    if apart:
        notes.append(
            f"Apart from what was published: {cell(data['largest_difference'])} at most, "
            f"{cell(data['mean_difference'])} on average."
        )
    return Result(
        f"{plural(len(found), 'case')}, {len(apart)} published",
        parts=[Part("", tables=[("", table_of(columns, rows))])],
        notes=notes,
        settings=[("latencies", profile)],
        data=data,
        table=lambda: rows_table(found),
    )
