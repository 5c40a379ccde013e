"""Charts of recurring training: what a configuration costs, and what learning costs.

Three questions, three charts: which configurations are worth anything (energy against time), how
cost varies over batch sizes and power limits (a map), and when learning pays back (regret).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.energy.optimum import configurations, default_configuration, optimum, pareto_front
from windtunnel.energy.seeds import BASELINE
from windtunnel.plain import fields_of
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, data, on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import FONT, Series
from windtunnel.report.format import unit_for
from windtunnel.report.palette import INK, MUTED, SERIES, SHADE

if TYPE_CHECKING:
    from windtunnel.energy.optimum import Configuration
    from windtunnel.energy.seeds import EnergyStudy
    from windtunnel.energy.workload import Workload
    from windtunnel.report.chart.marks import Tips

#: Width and height of a plotting area, px.
WIDTH, HEIGHT = 330, 250
_BLACK, _BLUE, _RED = (SERIES[place][0] for place in range(3))
#: Quantiles of the band over seeds.
_LOW, _HIGH = 0.1, 0.9
#: The map's colours end at this multiple of the optimum's cost.
_DARKEST = 4.0
_BLUES = ("#e8f1f8", "#08306b")
#: Configurations this many times beyond the front and the default are not drawn beside them.
_FAR = 1.5
_TIMES = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
_ENERGIES = (("GJ", 1e9), ("MJ", 1e6), ("kJ", 1e3), ("J", 1.0))
#: Regrets that differ by this factor are drawn on a logarithmic axis.
_WIDE = 20.0


def title_of(workload: Workload, eta: float) -> str:
    """Return what a chart is about, with its number of runs: ``cifar100 on v100, eta 0.5``."""
    runs = sum(len(epochs) for epochs in workload.epochs.values())
    cells = sum(len(sweep.power_limits) for sweep in workload.sweeps.values())
    return f"{workload.name}, \u03b7 = {eta:g}: {cells} configurations, {runs} recorded runs"


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
            **fields_of(one, "batch_size", "power_limit", "label", "tta_s", "eta_j", "cost_j"),
            "kind": kind(one),
            "on_front": (one.batch_size, one.power_limit) in front,
        }
        for one in found
        if one.feasible
    ]


def pareto_chart(workload: Workload, eta: float) -> Any:
    """Return energy against time to the target: a point a feasible configuration, and the front."""
    every = pareto_rows(workload, eta)
    rows = _near(every)
    time_name, second = unit_for(float(np.median([row["tta_s"] for row in rows])), _TIMES, 3)
    energy_name, joule = unit_for(float(np.median([row["eta_j"] for row in rows])), _ENERGIES)
    for row in rows:
        row["time"], row["energy"] = row["tta_s"] / second, row["eta_j"] / joule
    scale = {"zero": False, "padding": 8}
    x = Axis("time", f"Time to target, {time_name}", count=7, scale=scale)
    y = Axis("energy", f"Energy to target, {energy_name}", scale=scale)
    paint = {"optimum": _RED, "default": _BLACK, "front": _BLUE, "other": MUTED[1]}
    kinds = Series("kind", list(paint), list(paint.values()), font=FONT, where="bottom")
    shapes = marks.shapes(
        "kind", ["optimum", "default", "front", "other"], ["diamond", "square", "circle", "circle"]
    )
    tips: Tips = {
        "label": ("batch size @ W", ""),
        "time": (f"time, {time_name}", ".4g"),
        "energy": (f"energy, {energy_name}", ".4g"),
        "cost_j": ("cost, J", ".4g"),
    }
    source = data(rows)
    named = "datum.kind == 'optimum' || datum.kind == 'default'"
    look: dict[str, Any] = {"align": "left", "dx": 8, "dy": 9, "fontSize": 10, "where": named}
    layers = [
        marks.steps(source, x, y, color=_BLUE, strokeWidth=1, where="datum.on_front"),
        marks.dots(source, x, y, kinds, size=26, tips=tips, where=f"!({named})", channels=shapes),
        marks.dots(source, x, y, kinds, size=80, tips=tips, where=named, channels=shapes),
        marks.texts(source, x, y, "label", color="white", stroke="white", strokeWidth=3, **look),
        marks.texts(source, x, y, "label", color=INK[0], **look),
    ]
    far = len(every) - len(rows)
    title = "Energy against time" + (f" ({far} far dearer ones not shown)" if far else "")
    return over(*layers, width=WIDTH, height=HEIGHT, title=title)


def _near(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that are not far beyond both the front and the default."""
    kept = [row for row in rows if row["on_front"] or row["kind"] == "default"]
    limits = {m: _FAR * max(row[m] for row in kept) for m in ("tta_s", "eta_j")}
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
            **fields_of(one, "batch_size", "power_limit", "feasible"),
            "cost_j": one.cost_j if one.feasible else None,
            "ratio": one.cost_j / best.cost_j if one.feasible else None,
            "kind": "optimum" if one == best else "default" if one == default else "",
        }
        for one in configurations(workload, eta)
    ]


def map_chart(workload: Workload, eta: float) -> Any:
    """Return cost over batch sizes and power limits, as a multiple of the optimum's."""
    rows = map_rows(workload, eta)
    x = Axis("batch_size", "Batch size", "ordinal", grid=False)
    y = Axis("power_limit", "Power limit, W", "ordinal", order="descending", grid=False)
    tips: Tips = {
        "batch_size": ("batch size", ""),
        "power_limit": ("limit, W", ""),
        "ratio": ("cost / optimum", ".3f"),
    }
    source, feasible = data(rows), "datum.feasible"
    cells = marks.heat(
        source,
        x,
        y,
        "ratio",
        where=feasible,
        tips=tips,
        stroke="white",
        title="Cost / optimum",
        scale={"type": "log", "domain": [1, _DARKEST], "clamp": True, "range": _BLUES},
        legend={"orient": "bottom", "gradientLength": 150, "values": [1, 1.5, 2, 3, 4]},
    )
    frames = Series(
        "kind", ["optimum", "default"], [_RED, _BLACK], font=FONT, where="bottom", symbol="square"
    )
    fail = {"fill": SHADE[0], "stroke": "white"}
    cross = {"text": "\u00d7", "color": MUTED[0]}
    layers = [
        cells,
        marks.mark(
            source,
            "rect",
            x,
            y,
            tips=tips,
            style=fail,
            where=f"!{feasible}",
        ),
        marks.mark(source, "text", x, y, style=cross, where=f"!{feasible}"),
        *(
            marks.texts(
                source,
                x,
                y,
                "ratio",
                form=".2f",
                fontSize=9,
                color=ink,
                where=f"{feasible} && {test}",
            )
            for test, ink in (("datum.ratio > 2", "white"), ("datum.ratio <= 2", INK[0]))
        ),
        marks.outlines(source, x, y, frames, where="datum.kind != ''"),
    ]
    note = "" if all(row["feasible"] for row in rows) else " (\u00d7: some runs miss the target)"
    width = max(WIDTH, 34 * len(workload.batch_sizes))
    height = max(HEIGHT, 22 * len(workload.power_limits))
    return over(*layers, width=width, height=height, title=f"Cost{note}")


def optimum_chart(workload: Workload, eta: float) -> Any:
    """Return the Pareto chart and the map of cost beside each other."""
    both = [pareto_chart(workload, eta), map_chart(workload, eta)]
    return on_paper(beside(both, spacing=30, title=title_of(workload, eta)))


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
    rows = regret_rows(study)
    last = study.settings["recurrences"]
    ends = [abs(row["mean"]) for row in rows if row["recurrence"] == last]
    wide = max(ends) > _WIDE * max(1.0, sorted(ends)[len(ends) // 2])
    title = "Cumulative regret, optimal jobs"
    y = Axis("mean", title)
    if wide:
        domain = (min(row["low"] for row in rows), max(row["high"] for row in rows))
        ticks = (-1, 0, 1, 10, 100, 1000, 10_000, 100_000)
        y = Axis("mean", f"{title} (logarithmic)", "symlog", domain, ticks, scale={"constant": 1})
    x = Axis("recurrence", "Recurrence", domain=(1, last), grid=False)
    names = [BASELINE, *(name for name in study.replications if name != BASELINE)]
    optimizers = Series("optimizer", names, font=FONT, legend=True, symbol="stroke")
    tips: Tips = {
        "optimizer": ("optimizer", ""),
        "recurrence": ("recurrence", ",d"),
        "mean": ("mean regret", ".2f"),
        "low": ("10 % of seeds below", ".2f"),
        "high": ("90 % of seeds below", ".2f"),
    }
    layers = [
        marks.area(rows, x, replace(y, field="low", end="high"), optimizers),
        marks.lines(rows, x, y, optimizers, tips=tips),
    ]
    seeds = len(study.settings["seeds"])
    about = (
        f"{study.workload.name}, \u03b7 = {study.settings['eta']:g}, \u03b2 = "
        f"{study.settings['beta']:g}: {seeds} seed{'s' * (seeds != 1)}, mean and middle 80 %"
    )
    return on_paper(over(*layers, width=2 * WIDTH + 100, height=HEIGHT, title=about))
