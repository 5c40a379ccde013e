"""Charts of a comparison: outcomes in, Altair charts out.

Every chart is drawn on data that `windtunnel.report.curves` has already made small. Altair is
imported by the functions that draw, so importing this module costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report import curves
from windtunnel.report.palette import GRID, INK, MUTED, SHADE, colours, dashes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.sim.outcome import Outcome

#: Width of the plotting area, px; a whole chart is about 60 px wider and scales as one picture.
WIDTH = 352
#: Room for the labels of the y axis, px: the same everywhere, so that charts align on a page.
_LABELS = 40
_TICKS: tuple[float, ...] = (
    *(1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400),
    *(365 * 86400, 3650 * 86400, 36500 * 86400),
)
#: A Vega expression: seconds as 10 s, 1 min, 6 h, 7 d, 10 y.
_TICK_LABEL = (
    "datum.value < 60 ? format(datum.value, '~g') + ' s' : "
    "datum.value < 3600 ? format(datum.value / 60, '~g') + ' min' : "
    "datum.value < 86400 ? format(datum.value / 3600, '~g') + ' h' : "
    "datum.value < 31536000 ? format(datum.value / 86400, '~g') + ' d' : "
    "format(datum.value / 31536000, '~g') + ' y'"
)
#: Vega expressions: a fraction as 50 %, a count as 1,500 or 20k.
PERCENT = "format(datum.value * 100, ',.2~f') + ' %'"
_COUNT = (
    "datum.value < 10000 ? format(datum.value, ',~r') : format(datum.value / 1000, ',~r') + 'k'"
)
#: A tick so near the right end would hang its label over it.
_LAST_TICK = 1.1
#: GPU types that get a panel, those with most GPUs.
TOP_TYPES = 6
#: Characters of a legend entry that still fits half the width.
_LONG_ENTRY = 24
#: Shares at the edge under this are not worth a dot.
_SEEN = 0.005
EDGE_NOTE = "log scale; left edge: 0 to 1 s"


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
    import altair as alt

    rows = curves.distributions(outcomes, quantity)
    longest = [
        float(sample.max())
        for sample in (curves.values(outcome, quantity) for outcome in outcomes.values())
        if len(sample)
    ]
    domain = [
        curves.counted(name, len(curves.values(outcome, quantity)))
        for name, outcome in curves.named(outcomes)
    ]
    starts = [row for row in rows if row["seconds"] == curves.EDGE]
    zeros = list({row["policy"]: row for row in starts if row["share"] >= _SEEN}.values())
    noun, which = {"wait": ("Wait", "started"), "jct": ("Completion time", "finished")}[quantity]
    x = alt.X(
        "seconds:Q",
        title=f"{noun} ({EDGE_NOTE})",
        scale=log_scale(longest),
        axis=time_axis(longest),
    )
    y = alt.Y(
        "share:Q",
        title=f"Share of {which} jobs at or below",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(labelExpr=PERCENT, tickCount=5, minExtent=_LABELS, maxExtent=_LABELS),
    )
    color, dash = _policy(domain), _dash(domain)
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2, interpolate="linear", clip=True)
        .encode(x=x, y=y, color=color, strokeDash=dash, order=alt.Order("share:Q"))
    )
    dots = (
        alt.Chart(alt.Data(values=zeros))
        .mark_point(filled=True, size=45, opacity=1)
        .encode(x=x, y=y, color=color)
    )
    return themed(alt.layer(lines, dots).properties(width=WIDTH, height=230))


def utilization(outcomes: Mapping[str, Outcome]) -> Any:
    """Return the share of GPUs in use over time, a panel a run, the first run behind each."""
    return _panels(outcomes, "utilization", "GPUs in use, mean of each time bin", PERCENT, (0, 1))


def queue(outcomes: Mapping[str, Outcome]) -> Any:
    """Return the number of waiting jobs over time, a panel a run, the first run behind each."""
    return _panels(outcomes, "queue", "Waiting jobs, mean of each time bin", _COUNT, None)


def oldest(outcomes: Mapping[str, Outcome]) -> Any:
    """Return how long the oldest waiting job has waited over time, a panel a run."""
    title = "Longest wait so far of any job, most in each time bin"
    return _panels(outcomes, "oldest", title, _TICK_LABEL, None)


def fragmentation(outcomes: Mapping[str, Outcome]) -> Any:
    """Return fragments as a share of all GPUs over time, a panel a run."""
    return _panels(outcomes, "fragmentation", "Fragments, mean of each time bin", PERCENT, None)


def by_type(outcomes: Mapping[str, Outcome]) -> Any | None:
    """Return the share of GPUs in use over time, a panel a GPU type, a line a run.

    None where there is nothing to draw; see `windtunnel.report.curves.by_type`.
    """
    import altair as alt

    rows, unit = curves.by_type(outcomes, TOP_TYPES)
    if not rows:
        return None
    names = [name for name, _ in curves.named(outcomes)]
    kinds = list(dict.fromkeys(row["type"] for row in rows))
    line = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(interpolate="step-after", strokeWidth=1.2)
        .encode(
            x=alt.X("time:Q", title=f"Time since the first submission, {unit}", axis=_span_axis()),
            y=alt.Y(
                "value:Q",
                title=None,
                scale=alt.Scale(domain=[0, 1]),
                axis=_small_axis(PERCENT),
            ),
            color=_policy(names),
            strokeDash=_dash(names),
        )
        .properties(width=WIDTH, height=76)
    )
    header = _header("GPUs of each type in use, mean of each time bin")
    facet = alt.Facet("type:N", sort=kinds, header=header)
    return themed(line.facet(facet, columns=1, spacing=10))


def _panels(
    outcomes: Mapping[str, Outcome],
    curve: curves.Curve,
    title: str,
    number: str,
    limits: tuple[float, float] | None,
) -> Any:
    import altair as alt

    rows, unit = curves.over_time(outcomes, curve)
    names = [name for name, _ in curves.named(outcomes)]
    x = alt.X("time:Q", title=f"Time since the first submission, {unit}", axis=_span_axis())
    floor = 0.02 if curve == "fragmentation" else 1.0
    top = max((max(row["value"], row["first"]) for row in rows), default=0.0)
    y = alt.Y(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=list(limits or (0, max(top, floor))), nice=limits is None),
        axis=_small_axis(number, curves.round_times(top) if curve == "oldest" else None),
    )
    source = alt.Chart(alt.Data(values=rows))
    color = _policy(names, legend=False)
    area = source.mark_area(interpolate="step-after", opacity=0.25, line=False)
    line = source.mark_line(interpolate="step-after", strokeWidth=1.2)
    layers = [area.encode(x=x, y=y, color=color), line.encode(x=x, y=y, color=color)]
    if len(names) > 1:
        reference = source.mark_line(interpolate="step-after", strokeWidth=0.8)
        layers.insert(1, reference.encode(x=x, y=alt.Y("first:Q"), color=alt.value(INK[0])))
    height = 110 if len(names) <= 2 else 76  # noqa: PLR2004
    layered = alt.layer(*layers).properties(width=WIDTH, height=height)
    facet = alt.Facet("policy:N", sort=names, header=_header(title))
    return themed(layered.facet(facet, columns=1, spacing=10))


def waits_by_size(outcomes: Mapping[str, Outcome]) -> Any:
    """Return waits by job size: per size and run a line from P50 to P99 with a dot at P90.

    Returns:
        An Altair layered chart of rows ``size``, ``policy``, ``num_jobs``, ``p50``, ``p90``,
        ``p99`` (s, drawn on the left edge where a second or less).
    """
    import altair as alt

    rows = curves.waits_by_size(outcomes)
    names = [name for name, _ in curves.named(outcomes)]
    sizes = curves.size_order({row["size"] for row in rows})
    ends = [row[p] for row in rows for p in ("p50", "p90", "p99")]
    y = alt.Y(
        "size:N",
        sort=sizes,
        title="GPUs of the job",
        scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2),
        axis=_size_axis(),
    )
    offset = alt.YOffset("policy:N", sort=names, scale=alt.Scale(domain=names))
    x = alt.X(
        "p50:Q",
        title=f"Wait, P50 to P99, dot: P90 ({EDGE_NOTE})",
        scale=log_scale(ends),
        axis=time_axis(ends),
    )
    source = alt.Chart(alt.Data(values=rows))
    color = _policy(names)
    bars = source.mark_rule(strokeWidth=2).encode(x=x, x2="p99:Q", y=y, yOffset=offset, color=color)
    dots = source.mark_point(filled=True, size=38, opacity=1).encode(
        x=alt.X("p90:Q"), y=y, yOffset=offset, color=color
    )
    height = max(110, len(sizes) * (10 + 9 * len(names)))
    return themed(alt.layer(bars, dots).properties(width=WIDTH, height=height))


def shares_by_size(outcome: Outcome, runs: int = 1) -> Any:
    """Return the share of jobs and of GPU time that each job size has.

    Args:
        outcome: any run; the jobs are the same in all.
        runs: number of runs in the chart of waits beside it, whose height this one takes.
    """
    import altair as alt

    rows = curves.shares_by_size(outcome)
    sizes = curves.size_order({row["size"] for row in rows})
    kinds = ["jobs", "GPU time held"]
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(cornerRadiusEnd=1)
        .encode(
            x=alt.X(
                "share:Q",
                title="Share of all",
                axis=alt.Axis(labelExpr=PERCENT, tickCount=5, grid=True),
                scale=alt.Scale(nice=False),
            ),
            y=alt.Y(
                "size:N",
                sort=sizes,
                title="GPUs of the job",
                scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2),
                axis=_size_axis(),
            ),
            yOffset=alt.YOffset("of:N", sort=kinds, scale=alt.Scale(domain=kinds)),
            color=alt.Color(
                "of:N",
                title=None,
                scale=alt.Scale(domain=kinds, range=[SHADE[0], MUTED[0]]),
                legend=legend_above(kinds),
            ),
        )
    )
    height = max(110, len(sizes) * (10 + 9 * runs))
    return themed(chart.properties(width=WIDTH, height=height))


def _header(title: str) -> Any:
    import altair as alt

    return alt.Header(
        title=title, orient="top", labelAnchor="start", titleAnchor="start", labelPadding=3
    )


def _small_axis(number: str, ticks: list[float] | None = None) -> Any:
    """Return the y axis of a small panel; ``number`` is a Vega expression of a label."""
    import altair as alt

    where = {"tickCount": 3} if ticks is None else {"values": ticks, "tickCount": len(ticks)}
    return alt.Axis(labelExpr=number, minExtent=_LABELS, maxExtent=_LABELS, **where)


def _span_axis() -> Any:
    import altair as alt

    return alt.Axis(grid=False, tickCount=7, labelOverlap="greedy", labelFlush=False)


def _size_axis() -> Any:
    import altair as alt

    return alt.Axis(
        labelExpr="replace(datum.label, '-', '\u2013')",
        minExtent=_LABELS,
        maxExtent=_LABELS,
        ticks=False,
        domain=False,
    )


def log_scale(seconds: list[float]) -> Any:
    """Return the logarithmic scale on which these times, s, have room."""
    import altair as alt

    low, high = curves.limits(seconds)
    return alt.Scale(type="log", domain=[low, high], nice=False)


def time_axis(seconds: list[float]) -> Any:
    """Return the axis of `log_scale`, with ticks at round times."""
    import altair as alt

    low, high = curves.limits(seconds)
    return alt.Axis(
        values=[tick for tick in _TICKS if low <= tick <= high / _LAST_TICK],
        labelExpr=_TICK_LABEL,
        labelOverlap="greedy",
        labelFlush=False,
        grid=True,
    )


def _policy(domain: list[str], *, legend: bool = True) -> Any:
    import altair as alt

    scale = alt.Scale(domain=domain, range=colours(len(domain)))
    shown = legend_above(domain) if legend else None
    return alt.Color("policy:N", title=None, sort=domain, scale=scale, legend=shown)


def _dash(domain: list[str]) -> Any:
    import altair as alt

    scale = alt.Scale(domain=domain, range=dashes(len(domain)))
    return alt.StrokeDash(
        "policy:N", title=None, sort=domain, scale=scale, legend=legend_above(domain)
    )


def legend_above(entries: list[str]) -> Any:
    """Return a legend above the chart: two columns, or one where an entry is long."""
    import altair as alt

    long = max(map(len, entries), default=0) > _LONG_ENTRY
    columns = 1 if long else min(2, max(1, len(entries)))
    limit = WIDTH - 30 if long else WIDTH // 2
    return alt.Legend(orient="top", direction="horizontal", labelLimit=limit, columns=columns)


def themed(chart: Any) -> Any:
    """Return ``chart`` in the house's type and colours, without a background."""
    text = {"labelColor": MUTED[0], "titleColor": INK[0], "labelFontSize": 12, "titleFontSize": 12}
    return (
        chart.configure(
            background="transparent",
            font="sans-serif",
            aria=False,
            padding={"left": 2, "right": 14, "top": 4, "bottom": 2},
        )
        .configure_view(stroke=None)
        .configure_axis(
            **text,
            titleFontWeight="normal",
            titlePadding=8,
            gridColor=GRID[0],
            domainColor=MUTED[0],
            tickColor=MUTED[0],
            labelPadding=5,
        )
        .configure_header(**text, titleFontWeight="normal", labelFontWeight="bold")
        .configure_legend(**text, symbolStrokeWidth=2.5, symbolSize=90, columnPadding=18)
    )
