"""What set-ups of a language model do beside each other, and against what changes: one result."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.report.format import count, plural
from windtunnel.report.names import clean, labels
from windtunnel.report.result import Drawing, Part, Result
from windtunnel.report.sections import Cell, Line, Table
from windtunnel.report.serving_chart import MEASURES, TITLES, axes_of, panel, sweep_chart
from windtunnel.report.serving_page import sweep_headline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.serving import RequestTrace

Row = dict[str, Any]
#: Columns of a set-up at a point, and whether more is better or worse.
_COLUMNS = {
    "gpus": ("GPUs", -1),
    "slo_attainment": ("within SLOs, 0 to 1", 1),
    "goodput": ("goodput, 1/s", 1),
    "p99_ttft": ("P99 TTFT, s", -1),
    "p99_tpot": ("P99 TPOT, s", -1),
    "p99_e2e": ("P99 end to end, s", -1),
    "num_rejected": ("refused", -1),
    "energy_kwh": ("kWh", -1),
    "carbon_kg": ("carbon, kg", -1),
    "money": ("money", -1),
}
_SHARE = "slo_attainment"
#: What decides, in a sentence.
_WORDS = {_SHARE: "Requests within all SLOs", "p99_ttft": "P99 time to first token"}
_DRAWN = ("p99_ttft", "p99_tpot", "energy_kwh", "carbon_kg", "money")


def llm_sweep_result(
    requests: RequestTrace, rows: Sequence[Row], slo: Mapping[str, float]
) -> Result:
    """Return what was found, for a terminal, a page, charts and tables.

    Args:
        requests: that were served.
        rows: of `windtunnel.serving.llm_sweep`; those of no axis are set-ups, the first of which
            the others are held against.
        slo: ``ttft``, ``tpot`` and ``e2e``, s; infinite = none.
    """
    names = list(dict.fromkeys(row["candidate"] for row in rows))
    short = dict(zip(names, labels(names, 40), strict=True))
    shown = [{**row, "candidate": short[row["candidate"]]} for row in rows]
    is_sweep = bool(rows[0]["axis"])
    promised = {name: limit for name, limit in slo.items() if math.isfinite(limit)}
    drawn = [*([_SHARE] if promised else []), *_DRAWN]
    charts = functools.partial(sweep_chart, shown, lambda _: drawn) if is_sweep else None

    return Result(
        title="Language models: what changes" if is_sweep else "Language models: what if",
        subtitle=[
            clean(requests.name),
            plural(len(requests), "request"),
            plural(len(names), "set-up"),
        ],
        headline=(_sweep_headline if is_sweep else _what_if_headline)(shown, drawn[0]),
        parts=_swept(shown, drawn, len(requests)) if is_sweep else [_compared(shown)],
        notes=[f"SLO: {name.upper()} of at most {limit:g} s" for name, limit in promised.items()],
        data={"rows": list(rows)},
        table=lambda: pa.Table.from_pylist(list(rows)),
        chart=charts,
    )


def _swept(rows: Sequence[Row], measures: Sequence[str], requests: int) -> list[Part]:
    """Return a part an axis: its charts and its table."""
    parts = []
    many = len({row["candidate"] for row in rows}) > 1
    for axis in axes_of(rows):
        here = [row for row in rows if row["axis"] == axis]
        title = TITLES.get(axis, axis)
        drawings = [
            Drawing(
                f"{axis}-{measure}".replace("_", "-"),
                f"{MEASURES[measure][0].partition(',')[0]} against {axis}",
                f"{'Higher' if _COLUMNS[measure][1] > 0 else 'Lower'} is better. "
                f"n = {count(requests)} requests a point.",
                functools.partial(panel, here, axis, measure),
            )
            for measure in measures
            if any(row[measure] is not None for row in here)
        ]
        lines = [
            Line(f"{row['value']:g}" + (f": {row['candidate']}" if many else ""), _cells(row, None))
            for row in here
        ]
        corner = f"{axis}: set-up" if many else axis
        table = Table(corner, [words for words, _ in _COLUMNS.values()], lines)
        parts.append(Part(title, tables=[("", table)], drawings=drawings))
    return parts


def _compared(rows: Sequence[Row]) -> Part:
    """Return every set-up, and how far it is from the first."""
    first = rows[0]
    lines = [Line(row["candidate"], _cells(row, None if row is first else first)) for row in rows]
    table = Table("set-up", [words for words, _ in _COLUMNS.values()], lines)
    return Part("Set-ups, against the first", tables=[("", table)])


def _cells(row: Row, first: Row | None) -> list[Cell]:
    """Return the figures of a row, with the change from the first set-up's."""
    cells = []
    for name, (_, sense) in _COLUMNS.items():
        value, base = row[name], None if first is None else first[name]
        text = "" if value is None else f"{value:.4g}"
        change = None if value is None or not base else value / base - 1
        if not change:
            cells.append(Cell(text))
            continue
        verdict = "better" if change * sense > 0 else "worse"
        cells.append(Cell(text, note=f"{100 * change:+.1f} %", verdict=verdict))
    return cells


def _sweep_headline(rows: Sequence[Row], measure: str) -> str:
    """Say who is ahead; of one set-up, what its first axis changes."""
    if len({row["candidate"] for row in rows}) > 1:
        return sweep_headline(rows, lambda _: measure)
    axis = rows[0]["axis"]
    known = [row for row in rows if row["axis"] == axis and row[measure] is not None]
    ends = [known[0], known[-1]] if len(known) > 1 else known
    figures = [f"{_figure(row, measure)} at {axis} {row['value']:g}" for row in ends]
    return f"{_WORDS[measure]}: {', '.join(figures)}." if figures else "No request was served."


def _what_if_headline(rows: Sequence[Row], measure: str) -> str:
    """Say which set-up is ahead of the first."""
    first = rows[0]
    if first[measure] is None:
        return f"{first['candidate']} served no request."
    text = f"{_WORDS[measure]}: {_figure(first, measure)} with {first['candidate']}"
    others = [row for row in rows[1:] if row[measure] is not None]
    if not others:
        return f"{text}."
    sense = _COLUMNS[measure][1]
    best = max(others, key=lambda row: sense * row[measure])
    ahead = sense * best[measure] > sense * first[measure]
    leader = f"{_figure(best, measure)} with {best['candidate']}"
    return f"{text}, {leader}." if ahead else f"{text}; no other does better."


def _figure(row: Row, measure: str) -> str:
    return f"{100 * row[measure]:.4g} %" if measure == _SHARE else f"{row[measure]:.4g} s"
