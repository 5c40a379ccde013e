"""How busy, how warm, how hungry? AcmeTrace figures 1b, 7, 8 and 9.

All from curves of percentiles (`windtunnel.report.figures.curves_of_use`): a cluster a colour, a
metric a dash, and a dot at the median.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.report.chart import marks
from windtunnel.report.chart.axes import Axis, percent
from windtunnel.report.chart.series import Series
from windtunnel.report.figures.collecting import (
    LETTERS,
    FigureData,
    Part,
    labelled,
    stacked,
    with_columns,
)
from windtunnel.report.figures.panels import Plan, by_panel, curves
from windtunnel.report.figures.sources import DASHES
from windtunnel.report.palette import SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Sources

#: Thermal design power of an A100 SXM4, W: the mark in AcmeTrace's figure 9a.
TDP = 400.0
#: A computed median may differ so much, relative, from the published one before it is noted.
_CLOSE = 0.01
_SHOWN = {
    "gpu_util": "GPU",
    "sm_activity": "SM",
    "tc_activity": "TC",
    "host_mem": "host",
    "gpu_mem": "GPU",
    "cpu_util": "CPU",
    "ib_send": "send",
    "ib_receive": "receive",
    "gpu_temp": "GPU",
    "gpu_mem_temp": "memory",
    "gpu_power": "GPU",
    "gpu_node_power": "GPU nodes",
    "cpu_node_power": "CPU nodes",
}


@dataclass(frozen=True)
class UsePanel:
    """A panel of curves of use.

    Attributes:
        title: what it shows.
        metrics: its curves.
        axis: title of x, with its unit.
        domain: of x; None = 0 to a little above the largest value.
        of_max: values are in percent of their largest.
        guide: x of a thin line, 0 = none.
    """

    title: str
    metrics: tuple[str, ...]
    axis: str
    domain: tuple[float, float] | None = (0.0, 100.0)
    of_max: bool = False
    guide: float = 0.0


GPU_UTIL = UsePanel("GPU utilisation", ("gpu_util",), "GPU utilisation, %")
_RESOURCES: tuple[UsePanel, ...] = (
    UsePanel("SM and tensor core activity", ("sm_activity", "tc_activity"), "Activity, %"),
    UsePanel("Host and GPU memory", ("host_mem", "gpu_mem"), "Memory in use, %"),
    UsePanel("CPU utilisation", ("cpu_util",), "CPU utilisation, %"),
    UsePanel("InfiniBand", ("ib_send", "ib_receive"), "Bandwidth, % of the largest", of_max=True),
)
_TEMPERATURE: tuple[UsePanel, ...] = (
    UsePanel(
        "GPU and GPU memory temperature",
        ("gpu_temp", "gpu_mem_temp"),
        "Temperature, °C",
        (20.0, 85.0),
    ),
)
_POWER: tuple[UsePanel, ...] = (
    UsePanel("GPU power", ("gpu_power",), "Power of a GPU, W (line: TDP, 400 W)", None, guide=TDP),
    UsePanel("Server power", ("gpu_node_power", "cpu_node_power"), "Power of a server, W", None),
)
_PANELS = {panel.title: panel for panel in (GPU_UTIL, *_RESOURCES, *_TEMPERATURE, *_POWER)}
WITHOUT = "utilisation is drawn from --utilization or --telemetry, and neither was given"


def use(sources: Sources, panels: Sequence[UsePanel]) -> FigureData:
    """Return the curves of some panels; one without any of its metrics is left out.

    Args:
        sources: with `Sources.curves`.
        panels: what to draw.
    """
    if sources.curves is None:
        parts = [Part("", panel.title, "all", 0, 0, WITHOUT) for panel in panels]
        return FigureData(None, tuple(parts))
    origins = list(dict.fromkeys(sources.curves["origin"].to_pylist()))
    aliases = trace_of(origins, sources.traces)
    tables: list[Any] = []
    found: list[Part] = []
    notes: list[str] = []
    if sources.curves["n"].null_count:
        notes.append("the published files do not say of how many samples they are.")
    for panel in panels:
        table = _rows(sources.curves, panel, aliases)
        if table is None:
            why = f"no curve of {' or '.join(panel.metrics)} was given"
            found.append(Part("", panel.title, "all", 0, 0, why))
            continue
        letter = LETTERS[len(tables)]
        named = labelled(table, panel=letter, title=panel.title)
        tables.append(named)
        found += _parts(named, letter, panel)
        notes += _checks(named)
    return FigureData(stacked(tables), tuple(found), tuple(dict.fromkeys(notes)))


def trace_of(origins: Sequence[str], traces: Sequence[str]) -> dict[str, str]:
    """Return the trace of the same cluster that each origin of curves has its colour from.

    An origin without one is its own. Those of traces come first, in their order.

    >>> trace_of(["Seren", "PAI"], ["synthetic:seren"])
    {'Seren': 'synthetic:seren', 'PAI': 'PAI'}
    """
    words = {trace: set(re.split(r"[\W_]+", trace.lower())) for trace in traces}
    found = {
        origin: next((trace for trace in traces if origin.lower() in words[trace]), origin)
        for origin in origins
    }
    places = {trace: place for place, trace in enumerate(traces)}
    return dict(sorted(found.items(), key=lambda pair: places.get(pair[1], len(places))))


def _rows(all_curves: pa.Table, panel: UsePanel, aliases: dict[str, str]) -> pa.Table | None:
    """Return a panel's curves with ``trace`` and ``series``, None where there is none."""
    metrics = pa.array(panel.metrics, pa.string())
    chosen = all_curves.filter(pc.is_in(all_curves["metric"], value_set=metrics))
    if not chosen.num_rows:
        return None
    places = {metric: i for i, metric in enumerate(panel.metrics)}
    origins = chosen["origin"].to_pylist()
    names = chosen["metric"].to_pylist()
    known = list(aliases)
    order = sorted(
        range(chosen.num_rows), key=lambda i: (places[names[i]], known.index(origins[i]))
    )
    chosen = chosen.take(pa.array(order, pa.int64()))
    traces = chosen["origin"].to_pylist()
    shown = [_SHOWN[metric] for metric in chosen["metric"].to_pylist()]
    series = [
        f"{trace}, {what}" if len(panel.metrics) > 1 else trace
        for trace, what in zip(traces, shown, strict=True)
    ]
    table = labelled(
        chosen.drop_columns(["origin"]), trace=chosen["origin"], series=pa.array(series)
    )
    return _of_max(table) if panel.of_max else table


def _of_max(table: pa.Table) -> pa.Table:
    """Return curves in percent of each one's largest value, as AcmeTrace's figure 7d."""
    parts = []
    for name in dict.fromkeys(table["series"].to_pylist()):
        part = table.filter(pc.equal(table["series"], name))
        largest = pc.max(part["value"]).as_py() or 1.0
        for column in ("value", "p50", "published_p50"):
            scaled = pc.multiply(pc.divide(part[column], largest), 100.0)
            part = with_columns(part, **{column: scaled})
        parts.append(part)
    return pa.concat_tables(parts)


def _parts(table: pa.Table, letter: str, panel: UsePanel) -> list[Part]:
    seen = {row["series"]: row for row in table.to_pylist()}
    return [Part(letter, panel.title, name, row["n"], 0) for name, row in seen.items()]


def _checks(table: pa.Table) -> list[str]:
    """Return a sentence for each median that is not the published one."""
    seen = {row["series"]: row for row in table.to_pylist()}
    return [
        f"{name}: the median of {row['metric']} is {row['p50']:.4g}, published is "
        f"{row['published_p50']:.4g}."
        for name, row in seen.items()
        if row["published_p50"] is not None
        and abs(row["p50"] - row["published_p50"]) > _CLOSE * max(abs(row["published_p50"]), 1.0)
    ]


def draw_use_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    """Return a panel of curves of use, with a dot at each median."""
    panel = _PANELS[rows[0]["title"]]
    first = {row["series"]: row for row in rows}
    largest = {name: max(r["value"] for r in rows if r["series"] == name) for name in first}
    unit = "W" if panel.domain is None else "°C" if panel in _TEMPERATURE else "%"
    many, alone = len(panel.metrics) > 1, len({row["trace"] for row in first.values()}) == 1
    entries = {
        name: _entry(row, unit, largest[name] if panel.domain is None else None, many, alone)
        for name, row in first.items()
    }
    domain = panel.domain or (0.0, 1.02 * max(largest.values()))
    paint = _paint(first, look)
    lone = {row["trace"] for row in first.values()}
    of = f" ({lone.pop()})" if len(lone) == 1 and len(first) > 1 else ""
    x = Axis("value", panel.axis + of, "linear", domain)
    medians = [{"value": row["p50"], "percent": 50, "c": name} for name, row in first.items()]
    y = percent(title="CDF, % of samples")
    whose = Series("c", list(first), [paint[name][0] for name in first], legend=False)
    dots = marks.dots(medians, x, y, whose, size=26, clip=True)
    return curves(
        rows,
        look,
        x=x,
        y=y,
        series="series",
        entries=entries,
        paint=paint,
        guides=[panel.guide] if panel.guide else [],
        more_layers=[dots],
        **how,
    )


def _entry(row: Row, unit: str, largest: float | None, many: bool, alone: bool) -> str:  # noqa: FBT001 (one caller)
    """Return a curve's legend entry; the trace stands at the axis where it is the only one."""
    names = [row["trace"]] if not (many and alone) else []
    names += [_SHOWN[row["metric"]]] if many else []
    n = "n not reported" if row["n"] is None else f"n = {row['n']:,}"
    most = "" if largest is None else f", max {largest:,.0f}"
    return f"{', '.join(names)}: P50 {row['p50']:,.4g}{most} {unit} ({n})"


def _paint(series: dict[str, Row], look: Look) -> dict[str, tuple[str, list[float]]]:
    """Return each curve's colour, which is its cluster's, and dash, which is its metric's."""
    origins = list(dict.fromkeys(row["trace"] for row in series.values()))
    places = colour_places(origins, look)
    metrics = list(dict.fromkeys(row["metric"] for row in series.values()))
    painted = {}
    for name, row in series.items():
        place = places[row["trace"]]
        dash = DASHES[metrics.index(row["metric"]) if len(metrics) > 1 else place % len(DASHES)]
        painted[name] = (SERIES[place % len(SERIES)][0], list(dash))
    return painted


def colour_places(origins: Sequence[str], look: Look) -> dict[str, int]:
    """Return each origin's place among the colours: its trace's, else one that no trace has.

    Two origins of one cluster (Kalos published, Kalos measured) are distinguished by their places.
    """
    places: dict[str, int] = {}
    for origin, trace in trace_of(origins, look.traces).items():
        wanted = look.traces.index(trace) if trace in look.traces else len(look.traces)
        while wanted in places.values():
            wanted = max(len(look.traces), wanted + 1)
        places[origin] = wanted
    return places


#: AcmeTrace's figures 7, 8 and 9.
RESOURCE_USE, TEMPERATURE, POWER = (
    Plan(partial(use, panels=panels), by_panel(draw_use_panel))
    for panels in (_RESOURCES, _TEMPERATURE, _POWER)
)
