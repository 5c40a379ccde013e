"""Charts of serving a language model: TTFT, TPOT and end to end, and goodput against rate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.quantiles import quantiles
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import beside, on_page, on_paper, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import Series
from windtunnel.report.palette import MUTED, SERIES, colours

if TYPE_CHECKING:
    from windtunnel.report.chart.marks import Tips
    from windtunnel.serving import LlmOutcome

Row = dict[str, Any]
#: Width and height of a plotting area, px.
WIDTH, HEIGHT = 390, 260
#: Points of a curve, at most.
_POINTS = 300
#: Latency -> title of its axis.
LATENCIES = {
    "ttft": "Time to first token, s",
    "tpot": "Time per output token after the first, s",
    "e2e": "End to end, s",
}
#: A curve over more than this factor is drawn on a logarithmic axis.
_WIDE = 50.0


def distribution_rows(outcome: LlmOutcome, name: str) -> list[Row]:
    """Return a latency's distribution: ``latency`` (s) and ``share`` (% of those that have it).

    Args:
        outcome: the run.
        name: ttft, tpot or e2e; requests refused have none, those of one token no tpot.
    """
    values = getattr(outcome, name)
    values = values[~np.isnan(values)]
    if not len(values):
        return []
    steps = np.linspace(0, 1, min(_POINTS, len(values) + 1)).tolist()
    found = quantiles(values, steps).tolist()
    return [{"latency": v, "share": 100 * s} for s, v in zip(steps, found, strict=True)]


def distribution_chart(outcome: LlmOutcome, name: str, slo: float = math.inf) -> Any:
    """Return the distribution of a latency, with its SLO; None where no request has it."""
    chart = _distribution(outcome, name, slo)
    return None if chart is None else on_page(chart)


def _distribution(outcome: LlmOutcome, name: str, slo: float) -> Any:
    rows = distribution_rows(outcome, name)
    if not rows:
        return None
    low, high = rows[0]["latency"], rows[-1]["latency"]
    kind = "log" if low > 0 and high / low > _WIDE else "linear"
    apart = {"labelOverlap": True, "labelSeparation": 8}
    x = Axis(
        "latency", LATENCIES[name], kind, count=4, grid=False, scale={"nice": False}, more=apart
    )
    title = f"Requests, % (n = {_known(outcome, name):,})"
    tips: Tips = {"latency": ("s", ".4g"), "share": ("% by then", ".1f")}
    y = Axis("share", title, domain=(0, 100))
    line = marks.lines(rows, x, y, order="share", tips=tips, color=colours(2)[1])
    layers = [line, marks.guide(slo)] if low < slo < high else [line]
    return over(*layers, width=WIDTH, height=HEIGHT)


def _known(outcome: LlmOutcome, name: str) -> int:
    return int((~np.isnan(getattr(outcome, name))).sum())


def rate_rows(by_rate: list[Row]) -> list[Row]:
    """Return goodput and rate as curves: ``rate``, ``kind`` and ``requests`` (1/s)."""
    rows = []
    for one in by_rate:
        rows.append({"rate": one["rate"], "kind": "asked for", "requests": one["rate"]})
        rows.append({"rate": one["rate"], "kind": "goodput", "requests": one["goodput"]})
    return rows


def goodput_chart(by_rate: list[Row]) -> Any:
    """Return goodput against rate beside what is asked for; None without rates."""
    return on_page(_goodput(by_rate)) if by_rate else None


def _goodput(by_rate: list[Row]) -> Any:
    rows = rate_rows(by_rate)
    kinds = Series(
        "kind",
        ["goodput", "asked for"],
        [SERIES[1][0], MUTED[0]],
        [[1, 0], [3, 3]],
        symbol="stroke",
    )
    x = Axis("rate", "Rate, requests/s", grid=False)
    y = Axis("requests", "Requests within all SLOs, 1/s")
    tips: Tips = {"rate": ("requests/s", ".4g"), "requests": ("goodput, 1/s", ".4g")}
    good = "datum.kind == 'goodput'"
    dots = marks.dots(rows, x, y, kinds, size=22, tips=tips, where=good)
    return over(marks.lines(rows, x, y, kinds), dots, width=WIDTH, height=HEIGHT)


def llm_chart(outcome: LlmOutcome, by_rate: list[Row], slo: dict[str, float]) -> Any:
    """Return all charts as one, for paper."""
    panels = [_distribution(outcome, name, slo.get(name, math.inf)) for name in LATENCIES]
    panels += [_goodput(by_rate)] if by_rate else []
    return on_paper(beside([one for one in panels if one is not None], 2))
