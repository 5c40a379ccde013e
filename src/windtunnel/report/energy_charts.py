"""Charts of recurring training: what a configuration costs, and what learning costs.

Three questions, three charts: which configurations are worth anything (energy against time), how
cost varies over batch sizes and power limits (a map), and when learning pays back (regret).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import storage
from windtunnel.energy.optimum import (
    configurations,
    default_configuration,
    optimum,
    pareto_front,
)
from windtunnel.energy.seeds import BASELINE
from windtunnel.report.figures.look import themed
from windtunnel.report.figures.writing import interactive
from windtunnel.report.page import write_page
from windtunnel.report.palette import INK, MUTED, SERIES, SHADE
from windtunnel.report.render import to_png

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.energy.optimum import Configuration
    from windtunnel.energy.seeds import EnergyStudy
    from windtunnel.energy.workload import Workload

#: Width and height of a plotting area, px.
WIDTH, HEIGHT = 330, 250
_BLACK, _BLUE, _RED = (SERIES[place][0] for place in range(3))
#: Quantiles of the band over seeds.
_LOW, _HIGH = 0.1, 0.9
#: The map's colours end at this multiple of the optimum's cost.
_DARKEST = 4.0
#: Configurations this many times beyond the front and the default are not drawn beside them.
_FAR = 1.5
#: Regrets that differ by this factor are drawn on a logarithmic axis.
_WIDE = 20.0


def title_of(workload: Workload, eta: float) -> str:
    """Return what a chart is about, with its number of runs: ``cifar100 on v100, eta 0.5``."""
    runs = sum(len(epochs) for epochs in workload.epochs.values())
    cells = sum(len(sweep.power_limits) for sweep in workload.sweeps.values())
    return f"{workload.name}, \u03b7 = {eta:g}: {cells} configurations, {runs} recorded runs"


def time_unit(seconds: float) -> tuple[str, float]:
    """Return the unit that suits a time, and its seconds."""
    for name, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 3 * size:
            return name, size
    return "s", 1.0


def energy_unit(joules: float) -> tuple[str, float]:
    """Return the unit that suits an energy, and its joules."""
    for name, size in (("GJ", 1e9), ("MJ", 1e6), ("kJ", 1e3)):
        if joules >= size:
            return name, size
    return "J", 1.0


def pareto_rows(workload: Workload, eta: float) -> list[dict[str, Any]]:
    """Return the feasible configurations as rows of the Pareto chart.

    Returns:
        ``batch_size``, ``power_limit``, ``tta_s``, ``eta_j``, ``cost_j`` and ``kind``: ``optimum``,
        ``default``, ``front`` or ``other``.
    """
    found = configurations(workload, eta)
    best, default = optimum(workload, eta), default_configuration(workload, eta)
    front = {(one.batch_size, one.power_limit) for one in pareto_front(found)}

    def kind(one: Configuration) -> str:
        if one == best:
            return "optimum"
        if one == default:
            return "default"
        return "front" if (one.batch_size, one.power_limit) in front else "other"

    return [
        {
            "batch_size": one.batch_size,
            "power_limit": one.power_limit,
            "label": one.label,
            "tta_s": one.tta_s,
            "eta_j": one.eta_j,
            "cost_j": one.cost_j,
            "kind": kind(one),
            "on_front": (one.batch_size, one.power_limit) in front,
        }
        for one in found
        if one.feasible
    ]


def pareto_chart(workload: Workload, eta: float) -> Any:
    """Return energy against time to the target: a point a feasible configuration, and the front."""
    import altair as alt

    every = pareto_rows(workload, eta)
    rows = _near(every)
    time_name, second = time_unit(float(np.median([row["tta_s"] for row in rows])))
    energy_name, joule = energy_unit(float(np.median([row["eta_j"] for row in rows])))
    for row in rows:
        row["time"], row["energy"] = row["tta_s"] / second, row["eta_j"] / joule
    scale = alt.Scale(zero=False, nice=True, padding=8)
    x = alt.X(
        "time:Q",
        title=f"Time to target, {time_name}",
        scale=scale,
        axis=alt.Axis(tickCount=7),
    )
    y = alt.Y("energy:Q", title=f"Energy to target, {energy_name}", scale=scale)
    kinds = ["optimum", "default", "front", "other"]
    color = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=[_RED, _BLACK, _BLUE, MUTED[1]]),
        legend=alt.Legend(orient="bottom", symbolOpacity=1),
    )
    shape = alt.Shape(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=kinds, range=["diamond", "square", "circle", "circle"]),
    )
    tooltip = [
        alt.Tooltip("label:N", title="batch size @ W"),
        alt.Tooltip("time:Q", title=f"time, {time_name}", format=".4g"),
        alt.Tooltip("energy:Q", title=f"energy, {energy_name}", format=".4g"),
        alt.Tooltip("cost_j:Q", title="cost, J", format=".4g"),
    ]
    front = [row for row in rows if row["on_front"]]
    marked = [row for row in rows if row["kind"] in {"optimum", "default"}]
    others = [row for row in rows if row["kind"] not in {"optimum", "default"}]
    line = alt.Chart(alt.Data(values=front)).mark_line(
        interpolate="step-after", color=_BLUE, strokeWidth=1
    )
    points = alt.Chart(alt.Data(values=others)).mark_point(filled=True, size=26, opacity=1)
    marks = alt.Chart(alt.Data(values=marked)).mark_point(filled=True, size=80, opacity=1)
    names = alt.Chart(alt.Data(values=marked)).mark_text(
        align="left", dx=8, dy=9, color=INK[0], fontSize=10
    )
    halo = names.mark_text(
        align="left", dx=8, dy=9, color="white", fontSize=10, stroke="white", strokeWidth=3
    )
    layers = [
        line.encode(x=x, y=y),
        points.encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
        marks.encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
        halo.encode(x=x, y=y, text="label:N"),
        names.encode(x=x, y=y, text="label:N"),
    ]
    far = len(every) - len(rows)
    title = "Energy against time" + (f" ({far} far dearer ones not shown)" if far else "")
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def _near(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that are not far beyond both the front and the default."""
    told = [row for row in rows if row["on_front"] or row["kind"] == "default"]
    limits = {m: _FAR * max(row[m] for row in told) for m in ("tta_s", "eta_j")}
    return [row for row in rows if all(row[m] <= limit for m, limit in limits.items())]


def map_rows(workload: Workload, eta: float) -> list[dict[str, Any]]:
    """Return every measured configuration as a cell of the map.

    Returns:
        ``batch_size``, ``power_limit``, ``feasible``, ``cost_j``, ``ratio`` (to the optimum's cost;
        None where not feasible) and ``kind``: ``optimum``, ``default`` or nothing.
    """
    best, default = optimum(workload, eta), default_configuration(workload, eta)
    return [
        {
            "batch_size": one.batch_size,
            "power_limit": one.power_limit,
            "feasible": one.feasible,
            "cost_j": one.cost_j if one.feasible else None,
            "ratio": one.cost_j / best.cost_j if one.feasible else None,
            "kind": "optimum" if one == best else "default" if one == default else "",
        }
        for one in configurations(workload, eta)
    ]


def map_chart(workload: Workload, eta: float) -> Any:
    """Return cost over batch sizes and power limits, as a multiple of the optimum's."""
    import altair as alt

    rows = map_rows(workload, eta)
    x = alt.X("batch_size:O", title="Batch size", axis=alt.Axis(labelAngle=0))
    y = alt.Y("power_limit:O", title="Power limit, W", sort="descending")
    data = alt.Chart(alt.Data(values=rows))
    tooltip = [
        alt.Tooltip("batch_size:O", title="batch size"),
        alt.Tooltip("power_limit:O", title="limit, W"),
        alt.Tooltip("ratio:Q", title="cost / optimum", format=".3f"),
    ]
    color = alt.Color(
        "ratio:Q",
        title="Cost / optimum",
        scale=alt.Scale(type="log", domain=[1, _DARKEST], range=["#e8f1f8", "#08306b"], clamp=True),
        legend=alt.Legend(
            orient="bottom", gradientLength=150, values=[1, 1.5, 2, 3, 4], direction="horizontal"
        ),
    )
    known = data.transform_filter("datum.feasible").mark_rect(stroke="white")
    failing = data.transform_filter("!datum.feasible").mark_rect(fill=SHADE[0], stroke="white")
    cross = data.transform_filter("!datum.feasible").mark_text(text="\u00d7", color=MUTED[0])
    chosen = data.transform_filter("datum.kind != ''")
    frame = chosen.mark_rect(filled=False, strokeWidth=2.5).encode(
        x=x,
        y=y,
        stroke=alt.Stroke(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=["optimum", "default"], range=[_RED, _BLACK]),
            legend=alt.Legend(
                orient="bottom",
                symbolType="square",
                symbolStrokeWidth=2.5,
            ),
        ),
    )
    ratio = alt.Text("ratio:Q", format=".2f")
    text = data.transform_filter("datum.feasible").mark_text(fontSize=9)
    dark = alt.condition("datum.ratio > 2", alt.value("white"), alt.value(INK[0]))
    layers = [
        known.encode(x=x, y=y, color=color, tooltip=tooltip),
        failing.encode(x=x, y=y, tooltip=tooltip),
        cross.encode(x=x, y=y),
        text.encode(x=x, y=y, text=ratio, color=dark),
        frame,
    ]
    sizes, limits = len(workload.batch_sizes), len(workload.power_limits)
    failing_told = (
        "" if all(row["feasible"] for row in rows) else " (\u00d7: some runs miss the target)"
    )
    return alt.layer(*layers).properties(
        width=max(WIDTH, 34 * sizes),
        height=max(HEIGHT, 22 * limits),
        title=f"Cost{failing_told}",
    )


def optimum_chart(workload: Workload, eta: float) -> Any:
    """Return the Pareto chart and the map of cost beside each other."""
    import altair as alt

    both = alt.hconcat(
        pareto_chart(workload, eta),
        map_chart(workload, eta),
        spacing=30,
    ).resolve_scale(color="independent", shape="independent", stroke="independent")
    return themed(both.properties(title=alt.Title(title_of(workload, eta), offset=12)))


def regret_rows(study: EnergyStudy) -> list[dict[str, Any]]:
    """Return regret as curves: a row an optimiser and recurrence.

    Returns:
        ``optimizer``, ``recurrence``, ``mean``, ``low`` and ``high`` (10th and 90th percentile of
        the seeds), in optimal jobs.
    """
    rows = []
    for name in study.replications:
        regret = study.regret(name)
        low, high = np.quantile(regret, [_LOW, _HIGH], axis=0)
        rows += [
            {
                "optimizer": name,
                "recurrence": at + 1,
                "mean": float(mean),
                "low": float(low[at]),
                "high": float(high[at]),
            }
            for at, mean in enumerate(regret.mean(axis=0))
        ]
    return rows


def regret_chart(study: EnergyStudy) -> Any:
    """Return cumulative regret by recurrence: mean over seeds, and the band of the middle 80 %."""
    import altair as alt

    rows = regret_rows(study)
    names = [BASELINE, *(name for name in study.replications if name != BASELINE)]
    ends = [abs(row["mean"]) for row in rows if row["recurrence"] == study.settings["recurrences"]]
    wide = max(ends) > _WIDE * max(1.0, sorted(ends)[len(ends) // 2])
    domain = [min(row["low"] for row in rows), max(row["high"] for row in rows)]
    scale = (
        alt.Scale(type="symlog", constant=1, domain=domain, nice=False)
        if wide
        else alt.Scale(nice=True)
    )
    x = alt.X("recurrence:Q", title="Recurrence", axis=alt.Axis(grid=False), scale=_whole(study))
    y_title = "Cumulative regret, optimal jobs" + (" (logarithmic)" if wide else "")
    color = alt.Color(
        "optimizer:N",
        title=None,
        sort=names,
        scale=alt.Scale(
            domain=names, range=[SERIES[i % len(SERIES)][0] for i in range(len(names))]
        ),
        legend=alt.Legend(orient="top", symbolType="stroke", symbolOpacity=1, labelLimit=220),
    )
    data = alt.Chart(alt.Data(values=rows))
    tooltip = [
        alt.Tooltip("optimizer:N"),
        alt.Tooltip("recurrence:Q"),
        alt.Tooltip("mean:Q", title="mean regret", format=".2f"),
        alt.Tooltip("low:Q", title="10 % of seeds below", format=".2f"),
        alt.Tooltip("high:Q", title="90 % of seeds below", format=".2f"),
    ]
    axis = alt.Axis(values=[-1, 0, 1, 10, 100, 1000, 10_000, 100_000]) if wide else alt.Axis()
    area = data.mark_area(opacity=0.18).encode(
        x=x, y=alt.Y("low:Q", title=y_title, scale=scale, axis=axis), y2="high:Q", color=color
    )
    line = data.mark_line(strokeWidth=1.7).encode(
        x=x, y=alt.Y("mean:Q", title=y_title, scale=scale, axis=axis), color=color, tooltip=tooltip
    )
    seeds = len(study.settings["seeds"])
    title = (
        f"{study.workload.name}, \u03b7 = {study.settings['eta']:g}, \u03b2 = "
        f"{study.settings['beta']:g}: {seeds} seed{'s' * (seeds != 1)}, mean and middle 80 %"
    )
    chart = alt.layer(area, line).properties(width=WIDTH + 100, height=HEIGHT, title=title)
    return themed(chart)


def _whole(study: EnergyStudy) -> Any:
    import altair as alt

    return alt.Scale(domain=[1, study.settings["recurrences"]], nice=False)


def write_chart(out: Path, chart: Any, title: str) -> None:
    """Write a chart as a page that loads nothing, a picture, or pixels, by the file's ending.

    Args:
        out: ends in ``.html``, ``.svg`` or ``.png``; appears whole or not at all.
        chart: from this module.
        title: of the page.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    ending = out.suffix.lower()
    if ending == ".png":
        with storage.replacing(out) as temporary:
            temporary.write_bytes(to_png(chart))
        return
    if ending == ".html":
        write_page(out, interactive(chart.to_dict(), title))
        return
    import vl_convert

    write_page(out, str(vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])))
