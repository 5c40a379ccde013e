"""Charts of Gavel's headline experiments: ours as lines, what was published as open marks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import FONT, Series
from windtunnel.report.palette import colours

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from windtunnel.report.chart.marks import Tips

#: Width and height of the plotting area, px.
WIDTH, HEIGHT = 420, 260
_HOUR = 3600.0
#: Values that differ by as much are drawn on a logarithmic axis.
_DECADE = 10


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
    names = list(dict.fromkeys(row["policy"] for row in rows))
    seeds = sorted({row["n"] for row in rows})
    n = f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 else str(seeds[0] if seeds else 0)
    title = f"{y}, h (n = {n} seed{'s' * (n != '1')}; circles: published)"
    shown = {row["at"] for row in rows}
    circles = [
        {"policy": name, "at": at, "hours": hours}
        for name in names
        for at, hours in published.get(name, {}).items()
        if at in shown
    ]
    policies = Series("policy", names, font=FONT, legend=True, symbol="stroke", width=WIDTH)
    across = Axis("at", x, grid=False, scale={"zero": False})
    values = [row["hours"] for row in (*rows, *circles)] or [1.0]
    up = Axis("hours", title, "log" if max(values) >= _DECADE * min(values) else "linear")
    tips: Tips = {
        "policy": ("policy", ""),
        "at": (x, ",~r"),
        "hours": ("hours", ".2f"),
        "n": ("seeds", ",d"),
    }
    ends = replace(up, field="low", end="high")
    layers = [
        marks.mark(rows, "rule", across, ends, series=policies, style={"strokeWidth": 1}),
        marks.lines(rows, across, up, policies, tips=tips, point={"size": 14}),
        marks.dots(circles, across, up, policies, filled=False, size=60, strokeWidth=1.2),
    ]
    return on_paper(over(*layers[: 3 if circles else 2], width=WIDTH, height=HEIGHT))


def timeline_chart(table: pa.Table) -> Any:
    """Return the chart of entities' shares of throughput over time, as a stack.

    Args:
        table: of `windtunnel.study.gavel_sweep.entity_timeline`.
    """
    rows = [
        {**row, "name": f"{row['entity']} (weight {row['weight']:g})"} for row in table.to_pylist()
    ]
    found = list(dict.fromkeys(row["name"] for row in rows))
    paint = colours(len(found) + 1)[1:]
    entities = Series("name", found, paint, font=FONT, legend=True, width=WIDTH)
    tips: Tips = {
        "name": ("entity", ""),
        "hour": ("hour", ",~r"),
        "throughput": ("throughput", ".3f"),
        "share": ("share", ".1%"),
    }
    size = WIDTH / max(len(rows) / max(len(found), 1), 1) - 1
    up = Axis("throughput", "Throughput, jobs at the speed of one V100 each")
    chart = marks.bars(
        rows,
        up,
        Axis("hour", "Time, h", grid=False),
        entities,
        upright=True,
        stacked=True,
        tips=tips,
        size=size,
    )
    return on_paper(over(chart, width=WIDTH, height=HEIGHT))
