"""Charts of a comparison: outcomes in, Altair charts out.

Every chart is drawn on data that `windtunnel.report.curves` has already made small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report import curves
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import WIDTH, data, facet, on_page, over
from windtunnel.report.chart.axes import (
    EDGE,
    NUMBER,
    PERCENT,
    TIME,
    Axis,
    share,
    sizes,
    span,
    waits,
)
from windtunnel.report.chart.series import Series
from windtunnel.report.palette import INK, MUTED, SHADE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.sim.outcome import Outcome

#: Width of the labels of the y axis, px: the same everywhere, so that charts align on a page.
_LABELS = 40
#: GPU types that get a panel, those with most GPUs.
TOP_TYPES = 6
#: Shares at the edge under this are not worth a dot.
_SEEN = 0.005


def wait_cdf(outcomes: Mapping[str, Outcome]) -> Any:
    """Return the cumulative distribution of waits, a curve a run; see `cdf`."""
    return cdf(outcomes, "wait")


def jct_cdf(outcomes: Mapping[str, Outcome]) -> Any:
    """Return the cumulative distribution of completion times, a curve a run; see `cdf`."""
    return cdf(outcomes, "jct")


def cdf(outcomes: Mapping[str, Outcome], quantity: curves.Quantity) -> Any:
    """Return a cumulative distribution chart with a logarithmic time axis.

    Times of a second or less, zeros included, lie on the left edge; a dot shows their share.

    Args:
        outcomes: run name -> outcome, in order; the first is drawn in black.
        quantity: ``"wait"`` (started jobs) or ``"jct"`` (finished jobs).

    Returns:
        An Altair layered chart of rows ``policy``, ``seconds``, ``share``.
    """
    rows = curves.distributions(outcomes, quantity)
    samples = {name: curves.values(run, quantity) for name, run in curves.named(outcomes)}
    runs = Series("policy", [curves.counted(name, len(found)) for name, found in samples.items()])
    starts = [row for row in rows if row["seconds"] == EDGE]
    zeros = list({row["policy"]: row for row in starts if row["share"] >= _SEEN}.values())
    noun, which = {"wait": ("Wait", "started"), "jct": ("Completion time", "finished")}[quantity]
    x = waits("seconds", noun, [float(found.max()) for found in samples.values() if len(found)])
    y = share("share", f"Share of {which} jobs at or below", extent=_LABELS)
    lines = marks.lines(rows, x, y, runs, order="share", strokeWidth=2)
    return on_page(over(lines, marks.dots(zeros, x, y, runs), width=WIDTH, height=230))


def utilization(outcomes: Mapping[str, Outcome]) -> Any:
    """Return the share of GPUs in use over time, a panel a run, the first run behind each."""
    return _panels(outcomes, "utilization", "GPUs in use, mean of each time bin", PERCENT, (0, 1))


def queue(outcomes: Mapping[str, Outcome]) -> Any:
    """Return the number of waiting jobs over time, a panel a run, the first run behind each."""
    return _panels(outcomes, "queue", "Waiting jobs, mean of each time bin", NUMBER, None)


def oldest(outcomes: Mapping[str, Outcome]) -> Any:
    """Return how long the oldest waiting job has waited over time, a panel a run."""
    title = "Longest wait so far of any job, most in each time bin"
    return _panels(outcomes, "oldest", title, TIME, None)


def fragmentation(outcomes: Mapping[str, Outcome]) -> Any:
    """Return fragments as a share of all GPUs over time, a panel a run."""
    return _panels(outcomes, "fragmentation", "Fragments, mean of each time bin", PERCENT, None)


def by_type(outcomes: Mapping[str, Outcome]) -> Any | None:
    """Return the share of GPUs in use over time, a panel a GPU type, a line a run.

    None where there is nothing to draw; see `windtunnel.report.curves.by_type`.
    """
    rows, unit = curves.by_type(outcomes, TOP_TYPES)
    if not rows:
        return None
    runs = Series("policy", [name for name, _ in curves.named(outcomes)])
    y = share("value", None, extent=_LABELS, count=3)
    line = marks.steps(rows, _time(unit), y, runs, strokeWidth=1.2)
    kinds = list(dict.fromkeys(row["type"] for row in rows))
    title = "GPUs of each type in use, mean of each time bin"
    return on_page(facet(over(line, width=WIDTH, height=76), "type", kinds, title))


def _time(unit: str) -> Axis:
    return span("time", f"Time since the first submission, {unit}")


def _panels(
    outcomes: Mapping[str, Outcome],
    curve: curves.Curve,
    title: str,
    number: str,
    limits: tuple[float, float] | None,
) -> Any:
    rows, unit = curves.over_time(outcomes, curve)
    runs = Series("policy", [name for name, _ in curves.named(outcomes)], legend=False)
    top = max((max(row["value"], row["first"]) for row in rows), default=0.0)
    floor = 0.02 if curve == "fragmentation" else 1.0
    ticks = curves.round_times(top) if curve == "oldest" else ()
    x, source = _time(unit), data(rows)
    y = Axis(
        "value",
        None,
        domain=limits or (0, max(top, floor)),
        ticks=ticks,
        labels=number,
        count=3,
        extent=_LABELS,
        scale={"nice": limits is None},
    )
    layers = [
        marks.area(source, x, y, runs, opacity=0.25, interpolate="step-after"),
        marks.steps(source, x, y, runs, strokeWidth=1.2),
    ]
    if len(runs.names) > 1:
        first = replace(y, field="first")
        layers.insert(1, marks.steps(source, x, first, strokeWidth=0.8, color=INK[0]))
    height = 110 if len(runs.names) <= 2 else 76  # noqa: PLR2004
    return on_page(facet(over(*layers, width=WIDTH, height=height), "policy", runs.names, title))


def waits_by_size(outcomes: Mapping[str, Outcome]) -> Any:
    """Return waits by job size: per size and run a line from P50 to P99 with a dot at P90.

    Returns:
        An Altair layered chart of rows ``size``, ``policy``, ``num_jobs``, ``p50``, ``p90``,
        ``p99`` (s, drawn on the left edge where a second or less).
    """
    rows = curves.waits_by_size(outcomes)
    runs = Series("policy", [name for name, _ in curves.named(outcomes)])
    order = curves.size_order({row["size"] for row in rows})
    ends = [row[p] for row in rows for p in ("p50", "p90", "p99")]
    x = waits("p90", "Wait, P50 to P99, dot: P90", ends)
    layers = marks.forest(rows, x, sizes(order), runs, low="p50", high="p99", beside=True, size=38)
    height = max(110, len(order) * (10 + 9 * len(runs.names)))
    return on_page(over(*layers, width=WIDTH, height=height))


def shares_by_size(outcome: Outcome, runs: int = 1) -> Any:
    """Return the share of jobs and of GPU time that each job size has.

    Args:
        outcome: any run; the jobs are the same in all.
        runs: number of runs in the chart of waits beside it, whose height this one takes.
    """
    rows = curves.shares_by_size(outcome)
    order = curves.size_order({row["size"] for row in rows})
    kinds = Series("of", ["jobs", "GPU time held"], [SHADE[0], MUTED[0]])
    x = share("share", "Share of all", domain=None, scale={"nice": False})
    drawn = marks.bars(rows, x, sizes(order), kinds, cornerRadiusEnd=1)
    return on_page(over(drawn, width=WIDTH, height=max(110, len(order) * (10 + 9 * runs))))
