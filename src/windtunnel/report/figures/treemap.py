"""What is the cluster used for? AcmeTrace figure 4: jobs and GPU time by workload, as treemaps."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.states import workload_mix
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import FONT, text_width
from windtunnel.report.chart.series import Series as Entries
from windtunnel.report.figures.collecting import Answer, Lacking, Measure, with_columns, within
from windtunnel.report.figures.panels import Plan, arranged, heading, panels_of
from windtunnel.report.figures.sources import GAP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series


#: Width of a treemap over its height.
ASPECT = 1.25
#: Margin around a label inside its box, px, and from line to line.
_MARGIN = 3.0
_LEADING = 1.15 * FONT
#: Fills lighter than this (relative luminance) carry dark letters.
_LIGHT = 0.4


def _treemap(series: Series, of: str) -> Answer:
    """Return the boxes of one treemap, largest first, in a rectangle of `ASPECT` by 1."""
    chosen = series.chosen
    if not chosen.jobs_of:
        raise Lacking("no GPU job has a workload")
    jobs = chosen.jobs
    mix = workload_mix(jobs, list(chosen.jobs_of), gpu_time=source_fact(jobs, "gpu_time"))
    listed = mix.filter(mix["listed"])
    keys = [(of, "descending"), ("workload", "ascending")]
    ordered = listed.take(pc.sort_indices(listed, sort_keys=keys))
    amounts = ordered[of].to_pylist()
    if not sum(amounts):
        raise Lacking("no GPU job with a workload has a run time")
    if min(amounts) < 0:  # by the source's own run times: ours are never negative
        raise Lacking("a workload's run times, by the source, add up to less than 0")
    percent = ordered["job_percent" if of == "num_jobs" else "gpu_time_percent"]
    boxes = squarified(amounts, ASPECT, 1.0)
    jobs_drawn = sum(ordered["num_jobs" if of == "num_jobs" else "n"].to_pylist())
    unlisted = sum(mix.filter(pc.invert(mix["listed"]))["num_jobs"].to_pylist())
    without_time = 0 if of == "num_jobs" else sum(ordered["left_out"].to_pylist())
    table = pa.table(
        {
            "workload": ordered["workload"],
            "of": pa.repeat(of, len(boxes)),
            "amount": pa.array(amounts, pa.int64()),
            "percent": percent,
            **{key: [getattr(box, key) for box in boxes] for key in Box._fields},
        }
    )
    table = with_columns(table, n=jobs_drawn, left_out=unlisted + without_time)
    return Answer(table, jobs_drawn, unlisted + without_time, "", chosen.notes)


def _draw(table: pa.Table, look: Look) -> Any:
    """Return the treemaps: a pair a row, every share in the key beside it."""
    panels = panels_of(table)
    columns = min(2 * look.columns, len(panels))
    width = (look.width - GAP * columns) / columns
    drawn = [
        _panel(rows, look, letter, width, alone=len(panels) == 1) for letter, _, rows in panels
    ]
    return arranged(drawn, columns)


def _panel(rows: list[Row], look: Look, letter: str, width: float, *, alone: bool) -> Any:
    scale = width / ASPECT
    names = [row["workload"] for row in rows]
    entries = [f"{row['workload']} {share_text(row['percent'])}" for row in rows]
    fills = [look.colour(name, names) for name in names]
    noun = "Jobs" if rows[0]["of"] == "num_jobs" else "GPU time"
    title = heading(
        letter, rows[0]["trace"], alone=alone, second=f"{noun} (n = {rows[0]['n']:,})", limit=width
    )
    values: list[Row] = []
    texts: list[Row] = []
    for row, entry, fill in zip(rows, entries, fills, strict=True):
        box = {key: row[key] * scale for key in Box._fields}
        values.append(
            {
                "entry": entry,
                "x": box["x"],
                "y": box["y"],
                "x2": box["x"] + box["width"],
                "y2": box["y"] + box["height"],
            }
        )
        lines = label_of(row, box["width"], box["height"])
        texts += [
            {
                "x": box["x"] + box["width"] / 2,
                "y": box["y"] + box["height"] / 2 + (i - (len(lines) - 1) / 2) * _LEADING,
                "text": text,
                "ink": "#000000" if _luminance(fill) > _LIGHT else "#ffffff",
            }
            for i, text in enumerate(lines)
        ]
    x = Axis("x", None, domain=(0, width), shown=False)
    y = Axis("y", None, domain=(scale, 0), shown=False)
    shares = Entries(
        "entry",
        entries,
        fills,
        legend=True,
        width=width,
        font=FONT,
        symbol="square",
        where="bottom",
        columns=1,
    )
    ends = replace(x, end="x2"), replace(y, end="y2")
    layers = [
        marks.gantt(values, *ends, shares, stroke="white", strokeWidth=1),
        *(
            marks.texts(
                texts,
                x,
                y,
                "text",
                fontSize=FONT,
                baseline="middle",
                color=ink,
                where=f"datum.ink == '{ink}'",
            )
            for ink in dict.fromkeys(text["ink"] for text in texts)
        ),
    ]
    return over(*layers, width=width, height=scale, title=title)


def share_text(percent: float) -> str:
    """Return a share with the digits that tell it from 0.

    >>> share_text(64.851), share_text(0.8935), share_text(0.0)
    ('64.9 %', '0.89 %', '0 %')
    """
    if not percent:
        return "0 %"
    return f"{percent:.1f} %" if percent >= 1 else f"{percent:.2g} %"


def label_of(row: Row, width: float, height: float) -> list[str]:
    """Return the lines that stand in a box: name and share, the name, or none, as they fit.

    Args:
        row: ``workload`` and ``percent``.
        width: of the box, px.
        height: of the box, px.
    """
    name, share = row["workload"], share_text(row["percent"])
    lines = int((height - 2 * _MARGIN) / _LEADING)
    for wanted in ([name, share], [f"{name} {share}"], [name]):
        if len(wanted) <= lines and max(map(text_width, wanted)) <= width - 2 * _MARGIN:
            return wanted
    return []


def _luminance(colour: str) -> float:
    """Return the relative luminance (0..1) of #rrggbb (WCAG 2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    low = 0.04045
    linear = [c / 12.92 if c <= low else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


#: A pair of treemaps a trace: GPU jobs, and their GPU time, by workload.
TREEMAPS = Plan(
    within(
        Measure("jobs", partial(_treemap, of="num_jobs"), "there is no GPU job"),
        Measure("GPU time", partial(_treemap, of="gpu_time"), "no GPU job has a run time"),
    ),
    _draw,
)


class Box(NamedTuple):
    """A rectangle: its corner nearest to (0, 0), its width and its height."""

    x: float
    y: float
    width: float
    height: float


def squarified(shares: Sequence[float], width: float, height: float) -> list[Box]:
    """Return a rectangle a share, together all of a larger one, without overlap.

    Args:
        shares: sizes >= 0, largest first for rectangles that are nearly square; not all 0.
        width: of the larger one.
        height: of the larger one.

    Returns:
        As many boxes as shares, in their order; that of i has shares[i] / sum(shares) of the area.

    Raises:
        ValueError: a share is negative or not finite, there is none above 0, or a side is not.

    >>> squarified([3, 1], 4, 1)
    [Box(x=0.0, y=0.0, width=3.0, height=1.0), Box(x=3.0, y=0.0, width=1.0, height=1.0)]
    """
    total = math.fsum(shares)
    if not (width > 0 and height > 0):
        raise ValueError(f"a treemap needs an area, not {width:g} x {height:g}")
    if not all(share >= 0 for share in shares) or not 0 < total < math.inf:
        raise ValueError("a treemap needs shares >= 0 with a sum above 0")
    areas = [share / total * width * height for share in shares]
    boxes: list[Box] = []
    free = Box(0.0, 0.0, width, height)
    start = 0
    while start < len(areas):
        side = min(free.width, free.height)
        end = start + 1
        while end < len(areas) and worst(areas[start : end + 1], side) <= worst(
            areas[start:end], side
        ):
            end += 1
        row, free = _laid(areas[start:end], free, last=end == len(areas))
        boxes += row
        start = end
    return boxes


def worst(row: Sequence[float], side: float) -> float:
    """Return the largest aspect ratio (>= 1) of a row of areas along a side."""
    total, least, most = math.fsum(row), min(row), max(row)
    if least <= 0 or total <= 0 or side <= 0:
        return math.inf
    return max(side * side * most / (total * total), total * total / (side * side * least))


def _laid(row: Sequence[float], free: Box, *, last: bool) -> tuple[list[Box], Box]:
    """Return the boxes of one row along the shorter side of what is free, and what is left."""
    total = math.fsum(row)
    upright = free.width >= free.height
    side, depth = (free.height, free.width) if upright else (free.width, free.height)
    # The last row takes what is left to the last bit, whatever the divisions before rounded off.
    thick = depth if last else (total / side if side > 0 else 0.0)
    boxes: list[Box] = []
    at = 0.0
    for i, area in enumerate(row):
        length = side - at if i == len(row) - 1 else (side * area / total if total else 0.0)
        if upright:
            boxes.append(Box(free.x, free.y + at, thick, length))
        else:
            boxes.append(Box(free.x + at, free.y, length, thick))
        at += length
    if upright:
        return boxes, Box(free.x + thick, free.y, free.width - thick, free.height)
    return boxes, Box(free.x, free.y + thick, free.width, free.height - thick)
