"""Charts of what prediction buys: the study's tables in, Altair charts out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import WIDTH, data, facet, on_page, over
from windtunnel.report.chart.axes import EDGE, PERCENT, TIMES, Axis, names, share, sizes, waits
from windtunnel.report.chart.series import Series
from windtunnel.report.curves import size_order
from windtunnel.report.names import labels
from windtunnel.report.palette import MUTED, colours
from windtunnel.study.effect_settings import TOLERANCE

if TYPE_CHECKING:
    from windtunnel.study.prediction_effect import PredictionEffect

Row = dict[str, Any]
#: Relative errors between which the distribution is drawn.
_ERRORS = (0.01, 100.0)
#: Width of the names of settings beside a chart, px.
_NAMES = 168
#: Waits of more times fifo's are drawn at this, the mean with its number.
_TOP = 1.5


def shown_names(found: PredictionEffect) -> dict[str, str]:
    """Return label of a setting -> distinct harmless name, in the order of the runs."""
    given = list(dict.fromkeys(found.runs["policy"].to_pylist()))
    return dict(zip(given, labels(given, 44), strict=True))


def load_name(load: float) -> str:
    """Return a load as a panel's heading.

    >>> load_name(0.9)
    'load 0.9'
    """
    return f"load {load:g}"


def compared(found: PredictionEffect) -> list[str]:
    """Return the settings that pages compare by size: the plain orders, and the rule's choice."""
    plain = [r["policy"] for r in found.at(found.loads[0]) if r["kind"] in ("fifo", "shortest")]
    chosen = found.choice.policy
    return plain if chosen is None or chosen in plain else [*plain, chosen]


def wait_rows(found: PredictionEffect) -> list[Row]:
    """Return the rows of the chart of waits by size.

    Rows: ``load`` (text), ``policy`` (name), ``size``, ``num_jobs``, ``wait`` (mean, s, not under
    `EDGE`).
    """
    names = shown_names(found)
    wanted = set(compared(found))
    return [
        {
            "load": load_name(row["load"]),
            "policy": names[row["policy"]],
            "size": row["size"],
            "num_jobs": row["num_jobs"],
            "wait": max(EDGE, row["avg_wait"]),
        }
        for row in found.sizes.to_pylist()
        if row["policy"] in wanted
    ]


def waits_chart(found: PredictionEffect) -> Any:
    """Return mean waits by size of the job, a dot a setting, a panel a load."""
    rows = wait_rows(found)
    policies = Series("policy", [shown_names(found)[label] for label in compared(found)])
    order = size_order({row["size"] for row in rows})
    x = waits("wait", "Mean wait", [row["wait"] for row in rows])
    y = replace(sizes(order), grid=True)
    dots = marks.dots(rows, x, y, policies, size=46, opacity=0.85)
    return _by_load(found, over(dots, width=WIDTH, height=max(60, 15 * len(order))))


def _by_load(found: PredictionEffect, chart: Any) -> Any:
    """Return a chart as panels, one a load, one below the other."""
    return on_page(facet(chart, "load", [load_name(load) for load in found.loads]))


def errors_chart(found: PredictionEffect) -> Any:
    """Return the distribution of relative errors, a curve a predictor; the rule is at 25 %.

    Predictors that know the truth are left out: they have no error, or one that was made up.
    """
    low, high = _ERRORS
    kinds = found.predictions.to_pylist()
    counts = {row["model"]: row["num_predicted"] for row in kinds if not row["peeks"]}
    given = [name for name, n in counts.items() if n]
    called = {
        name: f"{label} (n = {counts[name]:,})"
        for name, label in zip(given, labels(given, 32), strict=True)
    }
    rows = [
        {"model": called[row["model"]], "error": row["error"], "share": row["share"]}
        for row in found.errors.to_pylist()
        if row["model"] in called and low <= row["error"] <= high
    ]
    if not rows:
        return None
    ticks = (0.01, 0.1, 0.25, 1, 10, 100)
    title = "|predicted \u2212 true| / true (log scale)"
    x = Axis("error", title, "log", (low, high), ticks, PERCENT)
    y = share("share", "Share of predicted jobs at or below")
    models = Series("model", list(called.values()), colours(len(called) + 1)[1:], legend=True)
    curves = marks.lines(rows, x, y, models, strokeWidth=2)
    return on_page(over(marks.guide(0.25), curves, width=WIDTH, height=230))


def starvation_chart(found: PredictionEffect) -> Any:
    """Return the big jobs' waits over those under first come first served, a panel a load.

    A dot is the P99 of their waits, a tick their longest; the rule is the most that is allowed.
    """
    called = shown_names(found)
    rows = [
        {
            "load": load_name(row["load"]),
            "policy": called[row["policy"]],
            "p99": row["big_p99_ratio"],
            "longest": row["big_max_ratio"],
            "starves": "starves the big jobs" if row["starves"] else "does not",
        }
        for row in found.runs.to_pylist()
        if row["kind"] != "fifo" and _finite(row)
    ]
    if not rows:
        return None
    present = {row["policy"] for row in rows}
    order = [name for name in called.values() if name in present]
    title = "Wait over that under fifo: dot P99, stroke longest"
    x = Axis("p99", title, labels=TIMES, count=6, scale={"zero": True})
    y = names("policy", order, extent=_NAMES, grid=True)
    verdicts = Series("starves", ["does not", "starves the big jobs"], colours(3)[1:])
    layers = marks.forest(data(rows), x, y, verdicts, tick="longest", guides=[TOLERANCE], by="load")
    return _by_load(found, over(*layers, width=WIDTH + 40 - _NAMES, height=16 * len(order)))


def _finite(row: Row) -> bool:
    return float(max(row["big_p99_ratio"], row["big_max_ratio"])) < float("inf")


def tradeoff_rows(found: PredictionEffect) -> list[Row]:
    """Return the settings of the predictor that the cures go by, as points.

    Rows: ``load`` (text), ``setting`` (what tells it apart), ``kind``, ``step`` (place on the curve
    of agings; None off it), ``wait`` (mean wait over that under first come first served), ``big``
    (the worse of the big jobs' P99 and longest wait, likewise: what the rule judges).
    """
    rows = []
    for load in found.loads:
        base = next(row for row in found.at(load) if row["kind"] == "fifo")
        own = [row for row in found.at(load) if row["model"] == found.model]
        on_curve = [row for row in own if row["kind"] in ("aging", "shortest")]
        on_curve.sort(key=lambda row: row["aging"] or float("inf"))
        steps = {row["policy"]: step for step, row in enumerate([base, *on_curve])}
        if base["avg_wait"] > 0:
            rows += [
                {
                    "load": load_name(load),
                    "setting": _short(row),
                    "kind": row["kind"],
                    "step": steps.get(row["policy"]),
                    "wait": row["avg_wait"] / base["avg_wait"],
                    "big": max(row["big_p99_ratio"], row["big_max_ratio"]),
                }
                for row in (base, *own)
                if _finite(row)
            ]
    return rows


def _short(row: Row) -> str:
    """Return what tells a setting apart from the others of its predictor."""
    if row["kind"] == "fifo":
        return "fifo"
    if row["kind"] == "shortest":
        return "sjf"
    if row["kind"] == "aging":
        return f"{row['aging']:g}"
    return "sjf + easy" if row["queueing"] == "easy" else "easy-sjbf"


def _word(row: Row) -> str:
    """Return what stands at a point: the setting, and its mean wait where that is off the chart."""
    off = f" ({row['wait']:.1f}\u00d7)" if row["wait"] > _TOP else ""
    return f"{row['setting']}{off}"


def tradeoff_chart(found: PredictionEffect) -> Any:
    """Return mean wait against what the big jobs pay, a panel a load.

    A line joins first come first served, the agings in order, and shortest first. What is beyond
    `_TOP` times stands on that edge, a mean wait with its number.
    """
    rows = [
        row | {"x": min(row["big"], _TOP), "y": min(row["wait"], _TOP), "word": _word(row)}
        for row in tradeoff_rows(found)
    ]
    if not rows:
        return None
    kinds = Series("kind", ["fifo", "aging", "shortest", "reservation"])
    big = "Big jobs: worse of P99 and longest wait, over fifo\u2019s"
    x = Axis("x", big, labels=TIMES, count=6, scale={"zero": False, "padding": 16})
    y = Axis(
        "y",
        "Mean wait, over fifo\u2019s",
        labels=TIMES,
        count=6,
        scale={"zero": False, "padding": 14},
    )
    source = data(rows)
    below = "datum.setting == 'easy-sjbf'"  # both reservations may stand on the upper edge
    joined = marks.lines(
        source,
        x,
        y,
        order="step",
        where="datum.step != null",
        strokeWidth=1,
        color=MUTED[0],
        strokeDash=[3, 2],
    )
    words = [
        marks.texts(source, x, y, "word", kinds, where=test, align="left", dx=6, dy=dy, fontSize=11)
        for test, dy in ((f"!({below})", -6), (below, 12))
    ]
    limit = marks.guide(TOLERANCE, rows=source, by="load")
    dots = marks.dots(source, x, y, kinds, size=50)
    return _by_load(found, over(limit, joined, dots, *words, width=WIDTH, height=190))
