"""Charts of Gavel's headline experiments: ours as lines, what was published as open marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.figures.look import themed
from windtunnel.report.palette import colours, dashes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

#: Width and height of the plotting area, px.
WIDTH, HEIGHT = 420, 260
_HOUR = 3600.0


def curve_rows(
    table: pa.Table, axis: str, measure: str, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return mean and spread over seeds of a measure, in hours.

    Args:
        table: of `windtunnel.study.gavel_sweep.rate_sweep` or `makespan_sweep`.
        axis: ``rate`` or ``jobs``.
        measure: a column in s.
        names: policy -> what to call it.

    Returns:
        A row a policy and point of the axis: ``policy``, ``at``, ``hours``, ``low`` and ``high``
        (the smallest and the largest of the seeds), ``n`` (seeds). A point at which a run was given
        up is left out.
    """
    found: dict[tuple[str, float], list[float | None]] = {}
    for row in table.to_pylist():
        found.setdefault((row["policy"], float(row[axis])), []).append(row[measure])
    rows = []
    for (policy, at), values in found.items():
        hours = [value / _HOUR for value in values if value is not None]
        if len(hours) < len(values):
            continue
        rows.append(
            {
                "policy": names.get(policy, policy),
                "at": at,
                "hours": sum(hours) / len(hours),
                "low": min(hours),
                "high": max(hours),
                "n": len(hours),
            }
        )
    return rows


def sweep_chart(
    rows: list[dict[str, Any]], published: Mapping[str, Mapping[float, float]], x: str, y: str
) -> Any:
    """Return the chart of a sweep.

    Args:
        rows: of `curve_rows`.
        published: policy, by the names in ``rows`` -> point -> hours.
        x: title of the axis.
        y: title of what is measured; the unit and the number of seeds are added.
    """
    import altair as alt

    names = list(dict.fromkeys(row["policy"] for row in rows))
    seeds = sorted({row["n"] for row in rows})
    told = f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 else str(seeds[0] if seeds else 0)
    title = f"{y}, h (n = {told} seed{'s' * (told != '1')}; circles: published)"
    shown = {row["at"] for row in rows}
    marks = [
        {"policy": name, "at": at, "hours": hours}
        for name in names
        for at, hours in published.get(name, {}).items()
        if at in shown
    ]
    legend = alt.Legend(orient="top", columns=4, symbolType="stroke")
    color = alt.Color(
        "policy:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=colours(len(names))),
        legend=legend,
    )
    dash = alt.StrokeDash(
        "policy:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=dashes(len(names))),
        legend=legend,  # the same, so that both are one
    )
    across = alt.X(
        "at:Q", title=x, axis=alt.Axis(grid=False), scale=alt.Scale(zero=False, nice=True)
    )
    up = alt.Y("hours:Q", title=title, scale=alt.Scale(type="log", nice=True))
    base = alt.Chart(alt.Data(values=rows))
    lines = base.mark_line(strokeWidth=1.7, point=alt.OverlayMarkDef(size=14)).encode(
        x=across,
        y=up,
        color=color,
        strokeDash=dash,
        tooltip=[
            alt.Tooltip("policy:N"),
            alt.Tooltip("at:Q", title=x),
            alt.Tooltip("hours:Q", format=".2f", title="hours"),
            alt.Tooltip("n:Q", title="seeds"),
        ],
    )
    spread = base.mark_rule(strokeWidth=1).encode(x=across, y="low:Q", y2="high:Q", color=color)
    if not marks:
        return themed((spread + lines).properties(width=WIDTH, height=HEIGHT))
    circles = (
        alt.Chart(alt.Data(values=marks))
        .mark_point(shape="circle", filled=False, size=60, strokeWidth=1.2)
        .encode(x=across, y=up, color=color)
    )
    return themed((spread + lines + circles).properties(width=WIDTH, height=HEIGHT))


def timeline_chart(table: pa.Table) -> Any:
    """Return the chart of entities' shares of throughput over time, as a stack.

    Args:
        table: of `windtunnel.study.gavel_sweep.entity_timeline`.
    """
    import altair as alt

    rows = [
        {**row, "name": f"{row['entity']} (weight {row['weight']:g})"} for row in table.to_pylist()
    ]
    names = list(dict.fromkeys(row["name"] for row in rows))
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(size=WIDTH / max(len(rows) / max(len(names), 1), 1) - 1)
        .encode(
            x=alt.X("hour:Q", title="Time, h", axis=alt.Axis(grid=False)),
            y=alt.Y(
                "throughput:Q",
                title="Throughput, jobs at the speed of one V100 each",
                stack=True,
            ),
            color=alt.Color(
                "name:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=colours(len(names) + 1)[1:]),
                legend=alt.Legend(orient="top"),
            ),
            order=alt.Order("name:N"),
            tooltip=[
                alt.Tooltip("name:N"),
                alt.Tooltip("hour:Q"),
                alt.Tooltip("throughput:Q", format=".3f"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return themed(chart)


def chart_svg(chart: Any) -> str:
    """Return a chart as an SVG file's text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[]))


def chart_page(chart: Any, title: str) -> str:
    """Return a chart as one HTML page that loads nothing and shows values under the pointer."""
    from windtunnel.report.figures.writing import interactive

    return interactive(chart.to_dict(), title)
