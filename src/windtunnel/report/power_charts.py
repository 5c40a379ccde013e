"""Charts of runs' energy: power over time by source under the cap, and who used the energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report import power_curves
from windtunnel.report.charts import WIDTH, legend_above, themed
from windtunnel.report.curves import counted
from windtunnel.report.names import labels
from windtunnel.report.palette import INK, MUTED, SERIES, SHADE, colours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.energy.account import Account

#: Colours of `power_curves.SOURCES`: jobs stand out, the rest recedes.
_COLOURS = (SERIES[1][0], SERIES[5][0], SERIES[7][0], SHADE[0])
_CAP = SERIES[2][0]
_LABELS = 40
_NUMBER = (
    "datum.value < 10000 ? format(datum.value, ',~r') : format(datum.value / 1000, ',~r') + 'k'"
)


def power_over_time(books: Mapping[str, Account]) -> Any | None:
    """Return power over time, stacked by source, a panel a run, with the cap and the intensity.

    The cap is a line in each panel; the carbon intensity (or else the price) has a panel of its own
    below. None where no run has a span.

    Args:
        books: run name -> its energy, in order; all with the same series.
    """
    import altair as alt

    rows, unit, watt_name = power_curves.power_rows(books)
    if not rows:
        return None
    used = [name for _, name in power_curves.SOURCES if any(r["source"] == name for r in rows)]
    first = next(iter(books.values()))
    series = first.carbon or first.tariff
    caps = {name: _cap_rows(book, books, watt_name) for name, book in books.items()}
    top = max(row["high"] for row in rows)
    top = max([top, *(row["value"] for cap in caps.values() for row in cap)])
    title = f"Time since the first submission, {unit}"
    panels = []
    for number, (name, book) in enumerate(zip(labels(books), books.values(), strict=True)):
        last = series is None and number == len(books) - 1
        cap = caps[list(books)[number]]
        told = f"{counted(name, book.outcome.jobs.num_rows)}: {watt_name}, mean of each time bin"
        mine = [row for row in rows if row["policy"] == name]
        layers = [_stack(mine, _time(books, title if last else None), top, used, number == 0)]
        if cap:
            line = alt.Chart(alt.Data(values=cap)).mark_line(
                interpolate="step-after", color=_CAP, strokeWidth=1.5, clip=True
            )
            layers.append(line.encode(x="time:Q", y=alt.Y("value:Q")))
            told += "; line: cap"
        height = 130 if len(books) <= 2 else 90  # noqa: PLR2004 - small panels where there are many
        layered = alt.layer(*layers)
        panels.append(layered.properties(width=WIDTH, height=height, title=_title(told)))
    if series is not None:
        panels.append(_intensity(books, _time(books, title), is_carbon=first.carbon is not None))
    return themed(
        alt.vconcat(*panels, spacing=14).resolve_scale(color="independent", y="independent")
    )


def _title(text: str) -> Any:
    import altair as alt

    return alt.Title(text, anchor="start", fontSize=12, fontWeight="bold", color=MUTED[0], offset=4)


def _time(books: Mapping[str, Account], title: str | None) -> Any:
    import altair as alt

    return alt.X(
        "time:Q",
        title=title,
        axis=alt.Axis(grid=False, tickCount=7, labelOverlap="greedy", labelFlush=False),
        scale=alt.Scale(domain=[0, _length(books)], nice=False),
    )


def _stack(
    rows: list[power_curves.Row],
    x: Any,
    top: float,
    used: list[str],
    legend: bool,  # noqa: FBT001 - of one caller
) -> Any:
    """Return one run's power as areas on top of each other."""
    import altair as alt

    known = [name for _, name in power_curves.SOURCES]
    color = alt.Color(
        "source:N",
        title=None,
        scale=alt.Scale(domain=used, range=[_COLOURS[known.index(name)] for name in used]),
        legend=legend_above(used) if legend else None,
    )
    y = alt.Y(
        "low:Q",
        title=None,
        axis=alt.Axis(labelExpr=_NUMBER, tickCount=4, minExtent=_LABELS, maxExtent=_LABELS),
        scale=alt.Scale(domain=[0, top]),
    )
    area = alt.Chart(alt.Data(values=rows)).mark_area(interpolate="step-after")
    return area.encode(x=x, y=y, y2="high:Q", color=color)


def _length(books: Mapping[str, Account]) -> float:
    start, stop, _, second = power_curves.times_of(books)
    return (stop - start) / second


def _cap_rows(
    book: Account, books: Mapping[str, Account], watt_name: str
) -> list[power_curves.Row]:
    size = {"MW": 1e6, "kW": 1e3, "W": 1.0}[watt_name]
    return [] if book.cap is None else power_curves.step_rows(book.cap, books, size)


def _intensity(books: Mapping[str, Account], x: Any, *, is_carbon: bool) -> Any:
    import altair as alt

    first = next(iter(books.values()))
    series = first.carbon if is_carbon else first.tariff
    rows = [] if series is None else power_curves.step_rows(series, books)
    what = "carbon intensity: gCO2eq per kWh" if is_carbon else "price: money per kWh"
    axis = alt.Axis(tickCount=3, minExtent=_LABELS, maxExtent=_LABELS)
    line = alt.Chart(alt.Data(values=rows)).mark_line(
        interpolate="step-after", color=INK[0], strokeWidth=1.2
    )
    y = alt.Y("value:Q", title=None, axis=axis, scale=alt.Scale(zero=is_carbon, nice=True))
    return line.encode(x=x, y=y).properties(width=WIDTH, height=60, title=_title(what))


def energy_by(books: Mapping[str, Account], column: str) -> Any | None:
    """Return energy by group of jobs, a bar a run; None where there is one group only.

    Args:
        books: run name -> its energy, in order.
        column: ``user``, ``vc``, ``workload`` ..., or ``gpu_type``: the type that jobs were on.
    """
    import altair as alt

    if column == "gpu_type":
        rows, unit = power_curves.type_rows(books)
    else:
        rows, unit = power_curves.group_rows(books, column)
    if not rows:
        return None
    names = labels(books)
    groups = list(dict.fromkeys(row["group"] for row in rows))
    y = alt.Y(
        "group:N",
        sort=groups,
        title=None,
        scale=alt.Scale(paddingInner=0.3, paddingOuter=0.2),
        axis=alt.Axis(ticks=False, domain=False, labelLimit=130),
    )
    x = alt.X("energy:Q", title=f"Energy of jobs\u2019 GPUs, {unit}", axis=alt.Axis(tickCount=5))
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(cornerRadiusEnd=1)
        .encode(
            x=x,
            y=y,
            yOffset=alt.YOffset("policy:N", sort=names, scale=alt.Scale(domain=names)),
            color=alt.Color(
                "policy:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=colours(len(names))),
                legend=legend_above(names) if len(names) > 1 else None,
            ),
        )
    )
    height = max(60, len(groups) * (10 + 8 * len(names)))
    return themed(chart.properties(width=WIDTH - 60, height=height))
