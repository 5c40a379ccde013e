"""Charts of answers: bars of parts, curves, and dots with their intervals. Rows in, charts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.charts import WIDTH, log_scale, themed, time_axis
from windtunnel.report.palette import MUTED, colours

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]
#: Height of a bar with its gap, px.
_BAR = 22
#: Characters of a legend entry that still fits half the width.
_LONG_ENTRY = 20


def part_bars(
    rows: Sequence[Row],
    *,
    of: str,
    parts: Sequence[str],
    value: str,
    title: str,
    corner: str = "",
    shown: Sequence[str] | None = None,
) -> Any:
    """Return horizontal bars, each made of parts.

    Args:
        rows: with the keys ``of`` (the bar's name), ``part`` and ``value``.
        of: key of the bars' names.
        parts: names of the parts, in the order in which they follow each other.
        value: key of the numbers.
        title: of the value axis, with its unit.
        corner: of the axis of names.
        shown: order of the bars; None = as they come.
    """
    import altair as alt

    order = list(shown) if shown is not None else list(dict.fromkeys(row[of] for row in rows))
    numbered = [{**row, "place": list(parts).index(row["part"])} for row in rows]
    chart = (
        alt.Chart(alt.Data(values=numbered))
        .mark_bar(height=14)
        .encode(
            y=alt.Y(
                f"{of}:N",
                sort=order,
                title=corner or None,
                axis=alt.Axis(labelLimit=150, ticks=False, domain=False),
            ),
            x=alt.X(f"{value}:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5)),
            color=_colour(parts, skip=1),
            order=alt.Order("place:Q"),
        )
        .properties(width=WIDTH - 60, height=max(60, _BAR * len(order)))
    )
    return themed(chart)


def part_columns(
    rows: Sequence[Row],
    *,
    at: str,
    parts: Sequence[str],
    value: str,
    title: str,
    corner: str,
) -> Any:
    """Return upright bars, each made of parts, such as one for each hour of the day.

    Args:
        rows: with the keys ``at`` (a whole number), ``part`` and ``value``.
        at: key of the bars' places.
        parts: names of the parts, lowest first.
        value: key of the numbers.
        title: of the value axis, with its unit.
        corner: of the other axis.
    """
    import altair as alt

    numbered = [{**row, "place": list(parts).index(row["part"])} for row in rows]
    chart = (
        alt.Chart(alt.Data(values=numbered))
        .mark_bar(width=9)
        .encode(
            x=alt.X(
                f"{at}:Q",
                title=corner,
                scale=alt.Scale(domain=[-0.7, 23.7], nice=False),
                axis=alt.Axis(values=[0, 6, 12, 18], grid=False),
            ),
            y=alt.Y(f"{value}:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5)),
            color=_colour(parts, skip=1),
            order=alt.Order("place:Q"),
        )
        .properties(width=WIDTH, height=200)
    )
    return themed(chart)


def curves(
    rows: Sequence[Row], *, x: str, y: str, x_title: str, y_title: str, names: Sequence[str]
) -> Any:
    """Return curves over a number, a colour each.

    Args:
        rows: with the keys ``name``, ``x`` and ``y``.
        x: key of the abscissa.
        y: key of the ordinate.
        x_title: with its unit.
        y_title: with its unit.
        names: the curves, the first in black.
    """
    import altair as alt

    chart = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=alt.X(
                f"{x}:Q", title=x_title, scale=alt.Scale(nice=False), axis=alt.Axis(grid=False)
            ),
            y=alt.Y(f"{y}:Q", title=y_title, axis=alt.Axis(tickCount=5)),
            color=_colour(names, key="name"),
            order=alt.Order(f"{x}:Q"),
        )
        .properties(width=WIDTH, height=200)
    )
    return themed(chart)


def wait_spans(rows: Sequence[Row], *, of: str, corner: str) -> Any:
    """Return spans of waits on a logarithmic axis: a line from low to high, a dot in between.

    Args:
        rows: with the keys ``of``, ``low``, ``middle`` and ``high`` (s, not under 1).
        of: key of the spans' names.
        corner: of the axis of names.
    """
    import altair as alt

    ends = [row[key] for row in rows for key in ("low", "high")]
    source = alt.Chart(alt.Data(values=list(rows)))
    y = alt.Y(
        f"{of}:N",
        sort=list(dict.fromkeys(row[of] for row in rows)),
        title=corner,
        axis=alt.Axis(labelLimit=150, ticks=False, domain=False),
    )
    x = alt.X(
        "low:Q",
        title="Wait (log scale; left edge: 0 to 1 s)",
        scale=log_scale(ends),
        axis=time_axis(ends),
    )
    blue = colours(2)[1]
    layers = [
        source.mark_rule(strokeWidth=3, color=blue).encode(x=x, x2="high:Q", y=y),
        source.mark_point(filled=True, size=60, color=colours(1)[0], opacity=1).encode(
            x="middle:Q", y=y
        ),
    ]
    height = max(60, _BAR * len({row[of] for row in rows}))
    return themed(alt.layer(*layers).properties(width=WIDTH - 60, height=height))


def difference_spans(rows: Sequence[Row], *, of: str, title: str) -> Any:
    """Return differences with their intervals around a line at 0.

    Args:
        rows: with the keys ``of``, ``low``, ``middle``, ``high``.
        of: key of the names.
        title: of the value axis, with its unit.
    """
    import altair as alt

    source = alt.Chart(alt.Data(values=list(rows)))
    y = alt.Y(
        f"{of}:N",
        sort=list(dict.fromkeys(row[of] for row in rows)),
        title=None,
        axis=alt.Axis(labelLimit=190, ticks=False, domain=False),
    )
    layers = [
        source.mark_rule(color=MUTED[0], strokeDash=[2, 3]).encode(x=alt.datum(0)),
        source.mark_rule(strokeWidth=3, color=colours(2)[1]).encode(
            x=alt.X("low:Q", title=title, axis=alt.Axis(tickCount=5)), x2="high:Q", y=y
        ),
        source.mark_point(filled=True, size=60, color=colours(1)[0], opacity=1).encode(
            x="middle:Q", y=y
        ),
    ]
    height = max(60, _BAR * len({row[of] for row in rows}))
    return themed(alt.layer(*layers).properties(width=WIDTH - 60, height=height))


def _colour(names: Sequence[str], key: str = "part", skip: int = 0) -> Any:
    """Return the colours of names; of areas the first is left out: black is for lines."""
    import altair as alt

    shown = list(names)
    columns = 1 if max(map(len, shown), default=0) > _LONG_ENTRY else 2
    return alt.Color(
        f"{key}:N",
        title=None,
        sort=shown,
        scale=alt.Scale(domain=shown, range=colours(len(shown) + skip)[skip:]),
        legend=alt.Legend(
            orient="top", direction="horizontal", columns=columns, labelLimit=WIDTH // columns
        ),
    )
