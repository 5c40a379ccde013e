"""Charts of what prediction buys: the study's tables in, Altair charts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.charts import (
    EDGE_NOTE,
    PERCENT,
    WIDTH,
    legend_above,
    log_scale,
    themed,
    time_axis,
)
from windtunnel.report.curves import EDGE, size_order
from windtunnel.report.names import labels
from windtunnel.report.palette import MUTED, colours
from windtunnel.study.effect_choice import TOLERANCE

if TYPE_CHECKING:
    from windtunnel.study.prediction_effect import PredictionEffect

Row = dict[str, Any]
#: Relative errors between which the distribution is drawn.
_ERRORS = (0.01, 100.0)
#: Room for the names of settings beside a chart, px.
_NAMES = 168
#: Waits of more times fifo's are drawn at this, the mean with its number.
_TOP = 1.5
_TIMES = "format(datum.value, '.2~f') + '\u00d7'"


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
    import altair as alt

    rows = wait_rows(found)
    names = [shown_names(found)[label] for label in compared(found)]
    sizes = size_order({row["size"] for row in rows})
    ends = [row["wait"] for row in rows]
    y = alt.Y(
        "size:N",
        sort=sizes,
        title="GPUs of the job",
        axis=alt.Axis(
            labelExpr="replace(datum.label, '-', '\u2013')", ticks=False, domain=False, grid=True
        ),
    )
    x = alt.X(
        "wait:Q",
        title=f"Mean wait ({EDGE_NOTE})",
        scale=log_scale(ends),
        axis=time_axis(ends),
    )
    color = alt.Color(
        "policy:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=colours(len(names))),
        legend=legend_above(names),
    )
    dots = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=46, opacity=0.85)
        .encode(x=x, y=y, color=color)
        .properties(width=WIDTH, height=max(60, 15 * len(sizes)))
    )
    return themed(_by_load(found, dots))


def _limit(source: Any) -> Any:
    """Return the rule right of which big jobs starve, drawn once a panel."""
    import altair as alt

    one = source.transform_aggregate(rows="count()", groupby=["load"])
    return one.mark_rule(color=MUTED[0], strokeDash=[2, 3]).encode(x=alt.datum(TOLERANCE))


def _by_load(found: PredictionEffect, chart: Any) -> Any:
    """Return a chart as panels, one a load, one below the other."""
    import altair as alt

    order = [load_name(load) for load in found.loads]
    header = alt.Header(title=None, orient="top", labelAnchor="start", labelPadding=3)
    return chart.facet(alt.Facet("load:N", sort=order, header=header), columns=1, spacing=14)


def errors_chart(found: PredictionEffect) -> Any:
    """Return the distribution of relative errors, a curve a predictor; the rule is at 25 %.

    Predictors that know the truth are left out: they have no error, or one that was made up.
    """
    import altair as alt

    low, high = _ERRORS
    kinds = found.predictions.to_pylist()
    counts = {row["model"]: row["num_predicted"] for row in kinds if not row["peeks"]}
    given = [name for name, n in counts.items() if n]
    names = {
        name: f"{label} (n = {counts[name]:,})"
        for name, label in zip(given, labels(given, 32), strict=True)
    }
    rows = [
        {"model": names[row["model"]], "error": row["error"], "share": row["share"]}
        for row in found.errors.to_pylist()
        if row["model"] in names and low <= row["error"] <= high
    ]
    if not rows:
        return None
    domain = list(names.values())
    x = alt.X(
        "error:Q",
        title="|predicted \u2212 true| / true (log scale)",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=[0.01, 0.1, 0.25, 1, 10, 100], labelExpr=PERCENT, labelFlush=False),
    )
    y = alt.Y(
        "share:Q",
        title="Share of predicted jobs at or below",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(labelExpr=PERCENT, tickCount=5),
    )
    scale = alt.Scale(domain=domain, range=colours(len(domain) + 1)[1:])
    color = alt.Color("model:N", title=None, sort=domain, scale=scale, legend=legend_above(domain))
    curves = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2, clip=True)
    mark = alt.Chart(alt.Data(values=[{"error": 0.25}]))
    rule = mark.mark_rule(color=MUTED[0], strokeDash=[2, 3]).encode(x="error:Q")
    layers = alt.layer(rule, curves.encode(x=x, y=y, color=color))
    return themed(layers.properties(width=WIDTH, height=230))


def starvation_chart(found: PredictionEffect) -> Any:
    """Return the big jobs' waits over those under first come first served, a panel a load.

    A dot is the P99 of their waits, a tick their longest; the rule is the most that is allowed.
    """
    import altair as alt

    names = shown_names(found)
    rows = [
        {
            "load": load_name(row["load"]),
            "policy": names[row["policy"]],
            "p99": row["big_p99_ratio"],
            "longest": row["big_max_ratio"],
            "starves": "starves the big jobs" if row["starves"] else "does not",
        }
        for row in found.runs.to_pylist()
        if row["kind"] != "fifo" and _finite(row)
    ]
    if not rows:
        return None
    order = [name for name in names.values() if name in {row["policy"] for row in rows}]
    title = "Wait over that under fifo: dot P99, stroke longest"
    scale = alt.Scale(zero=True, nice=True)
    x = alt.X("p99:Q", title=title, scale=scale, axis=alt.Axis(labelExpr=_TIMES, tickCount=6))
    y = alt.Y(
        "policy:N",
        sort=order,
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=_NAMES, minExtent=_NAMES, grid=True),
    )
    verdicts = ["does not", "starves the big jobs"]
    blue, vermillion = colours(3)[1:]
    color = alt.Color(
        "starves:N",
        title=None,
        sort=verdicts,
        scale=alt.Scale(domain=verdicts, range=[blue, vermillion]),
        legend=legend_above(verdicts),
    )
    source = alt.Chart(alt.Data(values=rows))
    dots = source.mark_point(filled=True, size=46, opacity=1).encode(x=x, y=y, color=color)
    strokes = source.mark_tick(thickness=2, size=11, opacity=1).encode(
        x="longest:Q", y=y, color=color
    )
    layers = alt.layer(_limit(source), strokes, dots)
    width = WIDTH + 40 - _NAMES
    return themed(_by_load(found, layers.properties(width=width, height=16 * len(order))))


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
    """Return what is gained against what the big jobs pay, a panel a load.

    A line joins first come first served, the agings in order, and shortest first. What is beyond
    `_TOP` times stands on that edge, a mean wait with its number.
    """
    import altair as alt

    rows = [
        row | {"x": min(row["big"], _TOP), "y": min(row["wait"], _TOP), "word": _word(row)}
        for row in tradeoff_rows(found)
    ]
    if not rows:
        return None
    kinds = ["fifo", "aging", "shortest", "reservation"]
    x = alt.X(
        "x:Q",
        title="Big jobs: worse of P99 and longest wait, over fifo\u2019s",
        scale=alt.Scale(zero=False, padding=16),
        axis=alt.Axis(labelExpr=_TIMES, tickCount=6),
    )
    y = alt.Y(
        "y:Q",
        title="Mean wait, over fifo\u2019s",
        scale=alt.Scale(zero=False, padding=14),
        axis=alt.Axis(labelExpr=_TIMES, tickCount=6),
    )
    scale = alt.Scale(domain=kinds, range=colours(len(kinds)))
    color = alt.Color("kind:N", title=None, sort=kinds, scale=scale, legend=legend_above(kinds))
    source = alt.Chart(alt.Data(values=rows))
    line = source.transform_filter("datum.step != null").mark_line(
        strokeWidth=1, color=MUTED[0], strokeDash=[3, 2]
    )
    dots = source.mark_point(filled=True, size=50, opacity=1)
    below = "datum.setting == 'easy-sjbf'"  # both reservations may stand on the upper edge
    words = [
        source.transform_filter(test)
        .mark_text(align="left", dx=6, dy=dy, fontSize=11)
        .encode(x=x, y=y, text="word:N", color=color)
        for test, dy in ((f"!({below})", -6), (below, 12))
    ]
    layers = alt.layer(
        _limit(source),
        line.encode(x=x, y=y, order="step:Q"),
        dots.encode(x=x, y=y, color=color),
        *words,
    )
    return themed(_by_load(found, layers.properties(width=WIDTH, height=190)))
