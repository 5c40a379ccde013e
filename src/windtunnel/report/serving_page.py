"""The HTML pages of model serving: a run, and a sweep. One file, no script, nothing loaded."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report.columns import rows_table, runs_table
from windtunnel.report.format import count, plural
from windtunnel.report.names import MAX_TEXT, clean, labels
from windtunnel.report.result import Drawing, Part, Result, table_of
from windtunnel.report.result_page import result_page
from windtunnel.report.sections import Cell, Fact, Line, Table
from windtunnel.report.serving_chart import (
    NAMES,
    TITLES,
    axes_of,
    latency_chart,
    measures_of,
    panel,
    queue_chart,
    sweep_chart,
)
from windtunnel.report.serving_timeline import timeline_chart
from windtunnel.serving import Placement
from windtunnel.serving.sweep import groups_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.columns import Columns, Row
    from windtunnel.serving import Fleet, Schedule, ServingOutcome, Sweep, WorkloadSpec


#: Groups and models listed one by one.
_MOST_LINES = 60
#: Models without a replica that are named, at most.
_NAMED = 12
_TIMELINE = (
    "GPUs down, time across; a frame is a group. Colour: the type of model with most requests in "
    "service in 1/120 of the time; depth: requests in service a stage, in quarters, full at one "
    "or more; empty: idle. Solid, in the colour of text: weights are loaded."
)
#: Settings whose own names do not tell what they are.
_SETTINGS = {
    "by_stage": "overhead, share of a stage's time, for each stage",
    "fixed": "overhead of a request, s",
    "cv": "coefficient of variation of the gaps (cv)",
    "slo_scale": "deadline, times the latency on one GPU (slo scale)",
    "rate": "rate of all models, requests/s",
    "duration": "duration, s",
}
_LOWER = "Lower is better; refused requests have no latency."
#: Measure of a sweep -> what it is called, and which way is better.
_SWEPT = {
    "slo_attainment": ("Attainment", "Higher is better."),
    "mean_latency": ("Mean latency", _LOWER),
    "p99_latency": ("P99 latency", _LOWER),
}


def serving_page(
    outcome: ServingOutcome, placed: Placement | Schedule, name: str, *, command: str
) -> str:
    """Return the page of a run, as one self-contained HTML text.

    Args:
        outcome: the run.
        placed: where models lay.
        name: what the placement is called.
        command: what makes the page again, printed at its end.
    """
    figures = outcome.metrics()
    n = f"n = {count(len(outcome.workload))} requests"
    label = clean(name, 60)
    drawn = {
        "latency": (
            "How long requests take",
            f"Higher is better; what is missing to 100 % was refused. {n}.",
            functools.partial(latency_chart, outcome),
        ),
        "queue": (
            "Requests in the system",
            f"The most in each 1/300 of the time. {n}.",
            functools.partial(queue_chart, outcome),
        ),
    }
    line = functools.partial(timeline_chart, outcome, placed)
    wide = {"timeline": ("Which group serves what, when", _TIMELINE, line)}
    sections = [
        section("Latency and load", [], drawn, label),
        section("Time-line of groups", [], wide, label, wide=True),
    ]
    first = placed if isinstance(placed, Placement) else placed.placements[0]
    tables = [("Groups", groups_table(outcome, first))] if placed is first else []
    tables.append(("Models", models_table(figures["by_model"])))
    sections.append(section("In numbers", tables, {}, label))
    result = Result(
        title="Model serving",
        subtitle=[label, plural(len(outcome.workload), "request"), plural(first.num_gpus, "GPU")],
        headline=_share_words(figures),
        facts=_facts(figures),
        parts=sections,
        cautions=_unplaced_words(outcome, placed),
        notes=[_setting(key, value) for key, value in outcome.settings.items() if key != "loading"],
    )
    return result_page(result, command=command)


def _unplaced_words(outcome: ServingOutcome, placed: Placement | Schedule) -> list[str]:
    """Return a sentence that names the models which no group ever served; none without any."""
    every = [placed] if isinstance(placed, Placement) else placed.placements
    held = {model for one in every for group in one.groups for model in group.models}
    models = [
        f"{index}: {clean(name, 40)}"
        for index, name in enumerate(outcome.workload.models)
        if index not in held
    ]
    if not models:
        return []
    named = ", ".join(models[:_NAMED])
    more = f" and {count(len(models) - _NAMED)} more" if len(models) > _NAMED else ""
    return [f"Models without a replica: {named}{more}."]


def sweep_result(found: Sweep) -> Result:
    """Return what a sweep tells."""
    sections: list[Part] = []
    for axis in axes_of(found.rows):
        drawn = {}
        sizes = [row["num_requests"] for row in found.rows if row["axis"] == axis]
        known = sorted({size for size in sizes if size is not None})
        n = f" n = {_range(known)} requests a point." if known else ""
        for measure in measures_of(found, axis):
            name, better = _SWEPT[measure]
            chart = functools.partial(panel, found.rows, axis, measure)
            words = f"{name} against {NAMES.get(axis, axis)}"
            drawn[f"{axis}-{measure}".replace("_", "-")] = (words, better + n, chart)
        title = TITLES[axis]
        sections.append(section(title, [(title, sweep_table(found, axis))], drawn, "sweep"))
    for at, (name, run) in enumerate(found.runs.items()):
        placed = found.placements[name]
        words = f"Which group serves what, when: {clean(name, 40)}"
        line = functools.partial(timeline_chart, run, placed)
        part = section(
            f"Groups of {clean(name, 40)}",
            [("", groups_table(run, placed))],
            {f"timeline-{at}": (words, _TIMELINE, line)},
            name,
            wide=True,
        )
        sections.append(replace(part, page_only=True))
    return Result(
        title="Model serving: what changes attainment",
        subtitle=[
            plural(len(_models(found.spec)), "model"),
            plural(found.gpus, "GPU"),
            plural(len({row["candidate"] for row in found.rows}), "candidate"),
        ],
        headline=sweep_headline(found.rows, lambda axis: measures_of(found, axis)[0]),
        parts=sections,
        notes=[
            _setting(key, value)
            for key, value in found.spec.data().items()
            if value not in ((), None)
        ],
        chart=lambda: sweep_chart(found.rows, lambda axis: measures_of(found, axis)),
    )


def groups_table(outcome: ServingOutcome, placement: Placement) -> Table:
    """Return groups with their models, requests and use; the largest 60."""
    sent = outcome.metrics()["group_requests"]
    span = outcome.utilization()
    lines, first = [], 0
    total = float(outcome.busy.sum())
    for index, group in enumerate(placement.groups):
        last = first + group.parallel.gpus - 1
        gpus = f"{first}" if first == last else f"{first} to {last}"
        share = float(outcome.busy[index]) / total if total and span else 0.0
        held = ", ".join(map(str, group.models)) or "none"
        cells = [
            Cell(group.parallel.name),
            Cell(str(len(group.models)), held),
            Cell(count(sent[index])),
            Cell(f"{100 * share:.1f}"),
            Cell(clean(held, 70), held),
        ]
        lines.append(Line(f"GPU {gpus}", cells))
        first = last + 1
    columns = ["(dp,op,pp)", "models", "requests sent", "of the GPU time in use, %", "which"]
    return Table("Group", columns, lines[:_MOST_LINES])


def models_table(by_model: list[dict[str, Any]], most: int = _MOST_LINES) -> Table:
    """Return attainment and latency by model; those with most requests."""
    rows = sorted(by_model, key=lambda one: -one["num_counted"])[:most]
    named = [{**row, "name": f"{row['model']}: {clean(row['name'], 40)}"} for row in rows]
    return rows_table("Model", _MODELS, named, "name", str)


def sweep_table(found: Sweep, axis: str) -> Table:
    """Return the figures of an axis: values down, candidates across."""
    names = list(dict.fromkeys(row["candidate"] for row in found.rows))
    here = [row for row in found.rows if row["axis"] == axis]
    runs = {
        label: [row for row in here if row["candidate"] == name]
        for label, name in zip(labels(names, 40), names, strict=True)
    }
    return runs_table(NAMES.get(axis, axis), runs, "value", _SWEEP, label="{:g}".format)


def section(
    title: str,
    tables: list[tuple[str, Table]],
    drawn: dict[str, tuple[str, str, Any]],
    label: str,
    *,
    wide: bool = False,
) -> Part:
    """Return a section: its tables (caption, table), and figures by name (title, caption, draw).

    Args:
        title: its heading.
        tables: under the figures.
        drawn: the figures, drawn when they are shown; names are unique in the page.
        label: what screen readers hear behind each figure's title.
        wide: one figure a row.
    """
    drawings = [
        Drawing(name, heading, caption, draw, f"{heading}: {label}", optional=True)
        for name, (heading, caption, draw) in drawn.items()
    ]
    return Part(title, tables=tables, drawings=drawings, is_wide=wide)


def _setting(key: str, value: Any) -> str:
    """Return a setting in words: what it is, and its value without Python's brackets."""
    parts = value if isinstance(value, list | tuple) else [value]
    text = ", ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
    return f"{_SETTINGS.get(key, key.replace('_', ' '))}: {clean(text, MAX_TEXT)}"


def _facts(figures: dict[str, Any]) -> list[Fact]:
    return [
        Fact("Mean latency", f"{_seconds(figures['mean_latency'])} s"),
        Fact("P99 latency", f"{_seconds(figures['p99_latency'])} s"),
        Fact("Good requests", f"{_seconds(figures['throughput'])} /s"),
        Fact("GPU time in use", f"{_percent(figures['utilization'])} %"),
    ]


def _share_words(figures: dict[str, Any]) -> str:
    share = figures["slo_attainment"]
    if share is None:
        return "There was no request to serve."
    refused = figures["num_counted"] - figures["num_accepted"]
    words = f"{_percent(share)} % of {plural(figures['num_counted'], 'request')} in time"
    return f"{words}; {count(refused) if refused else 'none'} refused."


def sweep_headline(swept: Sequence[dict[str, Any]], decides: Callable[[str], str]) -> str:
    """Say which candidate is ahead at most points, by the measure that decides on each axis."""
    wins: dict[str, int] = {}
    points = 0
    for axis in axes_of(swept):
        measure = decides(axis)
        best = max if measure == "slo_attainment" else min
        for value in dict.fromkeys(r["value"] for r in swept if r["axis"] == axis):
            here = [
                row
                for row in swept
                if (row["axis"], row["value"]) == (axis, value) and row[measure] is not None
            ]
            if not here:
                continue
            points += 1
            top = best(row[measure] for row in here)
            ahead = [row["candidate"] for row in here if row[measure] == top]
            if len(ahead) == 1:
                wins[ahead[0]] = wins.get(ahead[0], 0) + 1
    if not wins:
        return f"No candidate is ahead of the others at any of {plural(points, 'point')}."
    name = max(wins, key=lambda one: wins[one])
    return f"{clean(name, 40)} is ahead at {wins[name]} of {plural(points, 'point')}."


def _models(spec: WorkloadSpec) -> tuple[str, ...]:
    types = spec.models or spec.read_profile().models
    return tuple(types[i % len(types)] for i in range(spec.num_models or len(types)))


def _range(known: list[int]) -> str:
    low, high = known[0], known[-1]
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def _within(row: Row) -> Cell:
    return Cell(_percent(row["slo_attainment"]), row["groups"])


_MODELS: Columns = (
    ("requests", "num_counted", count),
    ("within SLO, %", "slo_attainment", _percent),
    ("mean, s", "mean_latency", _seconds),
    ("P50, s", "p50_latency", _seconds),
    ("P90, s", "p90_latency", _seconds),
    ("P99, s", "p99_latency", _seconds),
)
_SWEEP: Columns = (
    ("within SLO, %", "", _within),
    ("mean, s", "mean_latency", _seconds),
    ("P99, s", "p99_latency", _seconds),
)


_FIGURES = {
    "p50_ttft": "P50 TTFT, s",
    "p99_ttft": "P99 TTFT, s",
    "p50_tpot": "P50 TPOT, s",
    "p99_tpot": "P99 TPOT, s",
    "p99_e2e": "P99 end to end, s",
    "utilization": "time in iterations, 0 to 1",
}
#: Heading and cells of `fleet_table`.
SHARES = ("model", "placed as", "tensor parallel", "GPUs", "within SLO")


def fleet_result(found: Fleet) -> Result:
    """Return who gets which GPUs.

    Args:
        found: by `windtunnel.serving.search_fleet`.
    """
    without = [clean(one.service.name) for one in found.llms if not one.replicas]
    return Result(
        title="One cluster for all models",
        headline=f"{100 * found.attainment:.2f} % of all requests in time.",
        subtitle=[plural(found.gpus, "GPU"), plural(len(found.llms), "language model")],
        parts=[
            Part("Who gets which GPUs", tables=[("", table_of(SHARES, shares(found), texts=1))]),
            Part("Language models", tables=[("", _latencies(found))]),
        ],
        notes=[f"models without a replica: {', '.join(without)}"] if without else [],
    )


def shares(found: Fleet) -> list[list[str]]:
    """Return a row a language model, and one of all others, in the order of `SHARES`."""
    rows = [
        [
            clean(one.service.name),
            plural(one.replicas, "replica"),
            str(one.model.cost.tensor_parallel),
            str(one.gpus),
            f"{one.attainment:.4g}",
        ]
        for one in found.llms
    ]
    if found.placed is not None:
        words = groups_text(found.placed.placement)
        worth = f"{found.placed.attainment:.4g}"
        rows.append(["other models", words, "", str(found.placed_gpus), worth])
    return rows


def _latencies(found: Fleet) -> Table:
    rows = []
    for one in found.llms:
        figures = {} if one.outcome is None else one.outcome.metrics()
        rows.append([clean(one.service.name), *(_seconds(figures.get(name)) for name in _FIGURES)])
    return table_of(["model", *_FIGURES.values()], rows)
