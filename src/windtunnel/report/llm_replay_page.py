"""The page of a request log beside its simulation: twelve figures, and request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import on_page, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.format import count, plural
from windtunnel.report.llm_charts import HEIGHT, LATENCIES, WIDTH
from windtunnel.report.llm_page import model_words
from windtunnel.report.names import clean
from windtunnel.report.palette import MUTED, SERIES
from windtunnel.report.result import Result
from windtunnel.report.result_page import result_page
from windtunnel.report.sections import Cell, Fact, Line, Table
from windtunnel.report.serving_page import section

if TYPE_CHECKING:
    from windtunnel.serving.llm_replay import Replay

#: Dots of a chart, at most: requests are drawn evenly over the log.
_MOST = 1000
_POINTS = ("mean", "p50", "p90", "p99")
_TITLES = {"ttft": "Time to first token", "tpot": "Time per output token", "e2e": "End to end"}


def replay_page(found: Replay, *, command: str) -> str:
    """Return the page of a replay, as one self-contained HTML text.

    Args:
        found: the replay.
        command: what makes the page again, printed at its end.
    """
    drawn = {name: _request_by_request(found, name) for name in LATENCIES}
    shown = {name: one for name, one in drawn.items() if one[2] is not None}
    error = found.mean_absolute_error
    mean = "" if error is None else f"{100 * error:.2f} %"
    result = Result(
        title="An engine's log, replayed",
        subtitle=[clean(found.log.requests.name), plural(found.num_rows, "request")],
        headline=f"The simulated figures are {mean} off the measured ones, on average.",
        facts=[
            Fact("Mean |error| of twelve figures", mean),
            Fact("Evictions, simulated", count(int(found.outcome.restarts.sum()))),
            Fact("Iterations, simulated", count(int(found.outcome.iterations.sum()))),
        ],
        parts=[section("Measured and simulated", [("", _figures(found))], shown, "replay")],
        notes=model_words(found.outcome.model),
    )
    return result_page(result, command=command)


def replay_rows(found: Replay, name: str) -> list[dict[str, Any]]:
    """Return a latency request by request: ``measured`` and ``simulated``, s."""
    measured, simulated = found.log.latencies()[name], getattr(found.outcome, name)
    known = np.flatnonzero(~np.isnan(measured) & ~np.isnan(simulated))
    if len(known) > _MOST:
        known = known[np.linspace(0, len(known) - 1, _MOST).round().astype(int)]
    pairs = zip(measured[known].tolist(), simulated[known].tolist(), strict=True)
    return [{"measured": one, "simulated": other} for one, other in pairs]


def _request_by_request(found: Replay, name: str) -> tuple[str, str, Any]:
    rows = replay_rows(found, name)
    words = f"A dot a request (n = {count(len(rows))}); on the line both are equal."
    if not rows:
        return _TITLES[name], words, None
    most = max(max(row.values()) for row in rows)
    x = Axis("measured", f"Measured: {LATENCIES[name].lower()}", grid=False, count=4)
    y = Axis("simulated", "Simulated, s")
    same = [{"measured": at, "simulated": at} for at in (0.0, most)]
    line = marks.lines(same, x, y, color=MUTED[0], strokeDash=[3, 3])
    tips: marks.Tips = {"measured": ("measured, s", ".4g"), "simulated": ("simulated, s", ".4g")}
    dots = marks.dots(rows, x, y, tips=tips, size=18, opacity=0.6, color=SERIES[1][0])
    return _TITLES[name], words, on_page(over(line, dots, width=WIDTH, height=HEIGHT))


def _figures(found: Replay) -> Table:
    lines = []
    for name in LATENCIES:
        cells = []
        for point in _POINTS:
            at = f"{point}_{name}"
            measured, simulated, error = found.measured[at], found.simulated[at], found.error[at]
            if measured is None or simulated is None:
                cells.append(Cell(""))
                continue
            note = "" if error is None else f"{100 * error:+.2f} %"
            cells.append(Cell(f"{measured:.4g} / {simulated:.4g}", note=note))
        lines.append(Line(LATENCIES[name], cells))
    return Table("measured / simulated", ["mean", "P50", "P90", "P99"], lines)
