"""Charts of runs' energy: power over time by source under the cap, and who used the energy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report import power_curves
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import OWN, WIDTH, beside, on_page, over, titled
from windtunnel.report.chart.axes import NUMBER, Axis, names, span
from windtunnel.report.chart.series import Series
from windtunnel.report.curves import counted
from windtunnel.report.names import labels
from windtunnel.report.palette import INK, SERIES, SHADE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.energy.account import Account

#: Colours of `power_curves.SOURCES`: jobs stand out, the rest recedes.
_COLOURS = (SERIES[1][0], SERIES[5][0], SERIES[7][0], SHADE[0])
_CAP = SERIES[2][0]
_LABELS = 40


def power_over_time(books: Mapping[str, Account]) -> Any | None:
    """Return power over time, stacked by source, a panel a run, with the cap and the intensity.

    The cap is a line in each panel; the carbon intensity (or else the price) has a panel of its own
    below. None where no run has a span.

    Args:
        books: run name -> its energy, in order; all with the same series.
    """
    rows, unit, watt_name = power_curves.power_rows(books)
    if not rows:
        return None
    present = {row["source"] for row in rows}
    paint = {
        name: colour
        for (_, name), colour in zip(power_curves.SOURCES, _COLOURS, strict=True)
        if name in present
    }
    first = next(iter(books.values()))
    series = first.carbon or first.tariff
    caps = [_cap_rows(book, books, watt_name) for book in books.values()]
    top = max([*(row["high"] for row in rows), *(row["value"] for cap in caps for row in cap)])
    title = f"Time since the first submission, {unit}"
    start, stop, _, second = power_curves.times_of(books)
    x = span("time", None, domain=(0, (stop - start) / second))
    last = replace(x, title=title)
    panels: list[Any] = []
    for name, book, cap in zip(labels(books), books.values(), caps, strict=True):
        lowest = series is None and book is list(books.values())[-1]
        heading = f"{counted(name, book.outcome.jobs.num_rows)}: {watt_name}, mean of each time bin"
        heading += "; line: cap" if cap else ""
        mine = [row for row in rows if row["policy"] == name]
        sources = Series("source", list(paint), list(paint.values()), legend=not panels)
        y = Axis(
            "low",
            None,
            domain=(0, top),
            labels=NUMBER,
            count=4,
            end="high",
            extent=_LABELS,
            scale={"nice": True},
        )
        along = last if lowest else x
        layers = [marks.area(mine, along, y, sources, opacity=1, interpolate="step-after")]
        if cap:
            at = replace(y, field="value", end="")
            layers.append(marks.steps(cap, along, at, color=_CAP, strokeWidth=1.5))
        height = 130 if len(books) <= 2 else 90  # noqa: PLR2004 - small panels where there are many
        panels.append(over(*layers, width=WIDTH, height=height, title=titled(heading)))
    if series is not None:
        panels.append(_intensity(books, last, is_carbon=first.carbon is not None))
    return on_page(beside(panels, 1, spacing=14, own=[name for name in OWN if name != "x"]))


def _cap_rows(
    book: Account, books: Mapping[str, Account], watt_name: str
) -> list[power_curves.Row]:
    size = {"MW": 1e6, "kW": 1e3, "W": 1.0}[watt_name]
    return [] if book.cap is None else power_curves.step_rows(book.cap, books, size)


def _intensity(books: Mapping[str, Account], x: Axis, *, is_carbon: bool) -> Any:
    first = next(iter(books.values()))
    series = first.carbon if is_carbon else first.tariff
    rows = [] if series is None else power_curves.step_rows(series, books)
    what = "carbon intensity: gCO2eq per kWh" if is_carbon else "price: money per kWh"
    y = Axis("value", None, count=3, extent=_LABELS, scale={"zero": is_carbon})
    line = marks.steps(rows, x, y, color=INK[0], strokeWidth=1.2)
    return over(line, width=WIDTH, height=60, title=titled(what))


def energy_by(books: Mapping[str, Account], column: str) -> Any | None:
    """Return energy by group of jobs, a bar a run; None where there is one group only.

    Args:
        books: run name -> its energy, in order.
        column: ``user``, ``vc``, ``workload`` ..., or ``gpu_type``: the type that jobs were on.
    """
    if column == "gpu_type":
        rows, unit = power_curves.type_rows(books)
    else:
        rows, unit = power_curves.group_rows(books, column)
    if not rows:
        return None
    groups = list(dict.fromkeys(row["group"] for row in rows))
    y = names("group", groups, extent=130, scale={"paddingInner": 0.3, "paddingOuter": 0.2})
    x = Axis("energy", f"Energy of jobs\u2019 GPUs, {unit}")
    drawn = marks.bars(rows, x, y, Series("policy", labels(books)), cornerRadiusEnd=1)
    height = max(60, len(groups) * (10 + 8 * len(books)))
    return on_page(over(drawn, width=WIDTH - 60, height=height))
