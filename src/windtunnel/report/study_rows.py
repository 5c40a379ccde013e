"""A study in words and rows: progress, averages, comparisons, claims; for terminal and page."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from windtunnel.checked import checked_choice
from windtunnel.report.format import MINUS, UNKNOWN, count, number, plural
from windtunnel.report.measures import BY_KEY
from windtunnel.report.names import clean
from windtunnel.sim.observe.stability import STABLE
from windtunnel.study.grid.measure import OK
from windtunnel.study.grid.paired import AXES, BETTER, FEW, NOTHING, UNCLEAR, WORSE, axis_label
from windtunnel.study.resume_costs import FREE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.study.grid.paired import Contrast, Paired
    from windtunnel.study.grid.store import Results
    from windtunnel.study.statistics import Interval

#: Failures that are listed one by one.
_LISTED = 5
#: Metrics that comparisons of runs do not show: label and how many units make one shown.
_OTHERS: dict[str, tuple[str, float, str]] = {
    "energy_j": ("Energy", 3.6e6, " kWh"),
    "carbon_kg": ("Carbon", 1.0, " kg CO2eq"),
    "cost": ("Cost", 1.0, ""),
}
#: Verdict of a comparison -> what a table says.
WORDS = {
    BETTER: "better",
    WORSE: "worse",
    UNCLEAR: "no claim",
    FEW: "too few draws",
    NOTHING: "not comparable",
}


def metric_label(metric: str) -> str:
    """Return what to call a metric.

    >>> metric_label("avg_wait"), metric_label("big_p99_wait"), metric_label("energy_j")
    ('Wait, mean', 'Big jobs: wait, P99', 'Energy')
    """
    if metric in BY_KEY:
        return BY_KEY[metric].label
    if metric in _OTHERS:
        return _OTHERS[metric][0]
    inner = metric.removeprefix("big_")
    if inner in BY_KEY and inner != metric:
        label = BY_KEY[inner].label
        return f"Big jobs: {label[0].lower()}{label[1:]}"
    return metric


def metric_unit(metric: str) -> str:
    """Return the unit in which a metric is written as a number; empty where it has none.

    >>> metric_unit("avg_wait"), metric_unit("big_p99_wait"), metric_unit("utilization")
    ('s', 's', '')
    """
    units = {"energy_j": "J", "carbon_kg": "kg CO2eq"}
    known = BY_KEY.get(metric.removeprefix("big_"))
    return units.get(metric, "") if known is None else known.unit


def metric_text(metric: str, value: float | None) -> str:
    """Return a metric's value for people.

    >>> metric_text("avg_wait", 90.0), metric_text("energy_j", 7.2e6), metric_text("cost", None)
    ('1 m 30 s', '2.00 kWh', '\u2013')
    """
    inner = metric.removeprefix("big_")
    if inner in BY_KEY:
        return BY_KEY[inner].text(value)
    if metric in _OTHERS:
        _, unit, word = _OTHERS[metric]
        return UNKNOWN if value is None else f"{number(value / unit)}{word}"
    return number(value)


def change_text(change: float | None) -> str:
    """Return a relative change.

    >>> (
    ...     change_text(-0.351),
    ...     change_text(0.0004),
    ...     change_text(None),
    ...     change_text(2.5),
    ...     change_text(-0.9996),
    ... )
    ('\u221235 %', '+0.04 %', '\u2013', '+250 %', '\u221299.9 %')
    """
    if change is None or change != change:  # noqa: PLR0124 - NaN
        return UNKNOWN
    value = 100 * change
    text = f"{value:+.1f}" if abs(value) < 9.95 else f"{value:+.0f}"  # noqa: PLR2004
    if float(text) == 0:  # which side of none it is on is what intervals are read for
        text = f"{value:+.2f}"
    if text == "-100" and change > -1:  # nearly all is not all
        text = f"{max(value, -99.9):.1f}"
    if float(text) == 0:
        text = "0.0"
    return f"{text.replace('-', MINUS)} %"


def interval_text(interval: Interval) -> str:
    """Return the ends of an interval of a change."""
    if not interval.is_known:
        return UNKNOWN
    return f"{change_text(interval.low)} to {change_text(interval.high)}"


def parameters_text(parameters: dict[str, Any]) -> str:
    """Return parameters in a line.

    >>> parameters_text({"aging": 3.2, "queueing": "skip"})
    'aging 3.2, queueing skip'
    """
    return ", ".join(f"{name} {value}" for name, value in parameters.items())


def progress_line(results: Results) -> str:
    """Return how far a study is, in a sentence."""
    done, total = results.table.num_rows, results.num_runs
    whole = f"{plural(total, 'run')}, all finished" if done == total else ""
    part = f"{count(done)} of {plural(total, 'run')} finished"
    bad = len(results.failures)
    return f"{whole or part}{f', {count(bad)} with an error' if bad else ''}."


def queue_lines(results: Results) -> tuple[list[str], list[str]]:
    """Return what to mind of the runs' queues, and what else a reader must know of their jobs."""
    rows = [row for row in results.rows if row["status"] == OK and row["stability"] is not None]
    unsure: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["stability"] != STABLE:
            counts = unsure.setdefault(row["stability"], {})
            counts[clean(row["policy"])] = counts.get(clean(row["policy"]), 0) + 1
    cautions = [
        f"{plural(sum(of.values()), 'run')} of {count(len(rows))} {verdict}: "
        f"{'; '.join(f'{count(number)} of {policy}' for policy, number in of.items())}. Such a "
        "mean says how long the runs were."
        for verdict, of in sorted(unsure.items(), reverse=True)
    ]
    options = results.manifest["study"].get("options", {})
    arrivals = options.get("arrivals") or "open: as recorded, however long jobs wait"
    notes = [f"Arrivals: {arrivals}. Measured: {options.get('window') or 'all jobs'}."]
    cost = " + ".join(
        str(options[name]) for name in ("save_time", "restore_time") if options.get(name)
    )
    notes += [f"A preempted job pays to go on, s: {clean(cost)}."] if cost else []
    free = sum(any(FREE in note for note in row["notes"]) for row in rows)
    if free:
        notes.append(f"In {count(free)} of {plural(len(rows), 'run')}: {FREE}")
    if rows and not cautions:
        notes.insert(0, f"Queue: stable in all {plural(len(rows), 'run')}.")
    return cautions, notes


def failure_lines(results: Results) -> list[str]:
    """Return what failed: a sentence an error, the most frequent first."""
    counts: dict[str, list[dict[str, Any]]] = {}
    for row in results.failures:
        key = f"{row['policy']}: {_first_fact(row['error'])}"
        counts.setdefault(key, []).append(row)
    ordered = sorted(counts.items(), key=lambda item: -len(item[1]))
    lines = [f"{plural(len(rows), 'run')}: {text}" for text, rows in ordered[:_LISTED]]
    rest = sum(len(rows) for _, rows in ordered[_LISTED:])
    return lines + ([f"{plural(rest, 'run')} more, for other reasons."] if rest else [])


def _first_fact(error: str) -> str:
    """Return the first line of an error that tells something; ``... :`` announces the next."""
    lines = [line.strip().removeprefix("- ") for line in error.splitlines() if line.strip()]
    last = next((i for i, line in enumerate(lines) if not line.endswith(":")), 0)
    return " ".join(lines[: last + 1])


def averages(results: Results, metrics: Iterable[str]) -> list[dict[str, Any]]:
    """Return means over seeds, a row a place of the grid.

    Rows: the axes (`paired.AXES`), ``num_runs`` (finished without an error) and each metric (its
    mean over these runs; None without one).

    Raises:
        SpecError: an unknown metric.
    """
    wanted = list(metrics)
    for metric in wanted:
        checked_choice("--metric", metric, results.metrics)
    rows = {row["run_id"]: row for row in results.rows}
    places: dict[tuple[str, ...], dict[str, Any]] = {}
    for cell in results.manifest["grid"]:
        key = tuple(axis_label(cell, axis) for axis in AXES)
        place = places.setdefault(key, {"axes": {axis: cell[axis] for axis in AXES}, "rows": []})
        row = rows.get(cell["run_id"])
        if row is not None and row["status"] == OK:
            place["rows"].append(row)
    return [
        {
            **place["axes"],
            "num_runs": len(place["rows"]),
            **{metric: _mean(row[metric] for row in place["rows"]) for metric in wanted},
        }
        for place in places.values()
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def varying(cells: Iterable[dict[str, Any]]) -> list[str]:
    """Return the axes on which places differ, in order; those of one value say nothing."""
    listed = list(cells)
    return [axis for axis in AXES if len({axis_label(cell, axis) for cell in listed}) > 1]


def average_columns(results: Results, metrics: Iterable[str]) -> list[str]:
    """Return the headings of the table of averages."""
    axes = varying(results.manifest["grid"]) or ["policy"]
    return [*axes, "runs", *(metric_label(metric) for metric in metrics)]


def average_cells(
    results: Results, rows: Iterable[dict[str, Any]], metrics: Iterable[str]
) -> list[list[str]]:
    """Return the cells of the table of averages."""
    axes, wanted = varying(results.manifest["grid"]) or ["policy"], list(metrics)
    return [
        [
            *(axis_label(row, axis) for axis in axes),
            count(row["num_runs"]),
            *(metric_text(metric, row[metric]) for metric in wanted),
        ]
        for row in rows
    ]


def condition_text(found: Paired, contrast: Contrast) -> str:
    """Return the condition of a comparison: what tells it from the others."""
    conditions = [c.condition for c in found.contrasts if c.condition is not None]
    if contrast.condition is None:
        return "all together"
    axes = [axis for axis in AXES if axis != found.between]
    differing = [
        axis for axis in axes if len({axis_label(place, axis) for place in conditions}) > 1
    ]
    texts = [_axis_text(axis, axis_label(contrast.condition, axis)) for axis in differing]
    return ", ".join(texts)


def _axis_text(axis: str, label: str) -> str:
    """Return a place on an axis in running text."""
    if axis == "load":
        return f"load {label}"
    return label if axis in ("trace", "cluster", "policy") else f"{axis} {label}"


def claims(found: Paired) -> list[str]:
    """Return what the intervals allow to claim, a sentence each: all together, else each."""
    sentences = []
    by_pair = itertools.groupby(found.contrasts, key=lambda c: (c.metric, c.value))
    for _, group in by_pair:
        listed = list(group)
        together = [c for c in listed if c.condition is None and c.verdict != NOTHING] or listed
        sentences += [_claim(found, c) for c in together if c.verdict in (BETTER, WORSE)]
    return sentences


def _claim(found: Paired, contrast: Contrast) -> str:
    verb = "beats" if contrast.verdict == BETTER else "loses to"
    change = contrast.change
    metric = metric_label(contrast.metric)
    where = "" if contrast.condition is None else condition_text(found, contrast)
    who = f"{clean(contrast.value)} {verb} {clean(contrast.baseline)}{' at ' * bool(where)}{where}"
    return (
        f"{who}: "
        f"{metric[0].lower()}{metric[1:]} {change_text(change.estimate)}, "
        f"{100 * found.confidence:g} % interval {interval_text(change)} "
        f"(n = {change.num_draws} {found.over})."
    )
