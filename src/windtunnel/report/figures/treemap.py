"""What is the cluster used for? AcmeTrace figure 4: jobs and GPU time by workload, as treemaps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.states import workload_mix
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import FONT, text_width
from windtunnel.report.chart.series import Series as Entries
from windtunnel.report.figures.collecting import Answer, Lacking, Measure, within
from windtunnel.report.figures.look import GAP
from windtunnel.report.figures.panels import arranged, heading, panels_of
from windtunnel.report.figures.squarify import squarified

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.figures.collecting import FigureData
    from windtunnel.report.figures.look import Look
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Series, Sources

#: Width of a treemap over its height.
ASPECT = 1.25
#: Room around a label inside its box, px, and from line to line.
_MARGIN = 3.0
_LEADING = 1.15 * FONT
#: Fills lighter than this (relative luminance) carry dark letters.
_LIGHT = 0.4


def workload_treemaps(sources: Sources) -> FigureData:
    """Return a pair of treemaps a trace: GPU jobs, and their GPU time, by workload."""
    return within(
        sources,
        [
            Measure("jobs", partial(_treemap, of="num_jobs"), "there is no GPU job"),
            Measure("GPU time", partial(_treemap, of="gpu_time"), "no GPU job has a run time"),
        ],
    )


def _treemap(series: Series, of: str) -> Answer:
    """Return the boxes of one treemap, largest first, in a room of `ASPECT` by 1.

    Raises:
        Lacking: no job has a workload, or none of them has any GPU time.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

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
            "of": pa.array([of] * len(boxes), pa.string()),
            "amount": pa.array(amounts, pa.int64()),
            "percent": percent,
            "x": pa.array([box.x for box in boxes], pa.float64()),
            "y": pa.array([box.y for box in boxes], pa.float64()),
            "width": pa.array([box.width for box in boxes], pa.float64()),
            "height": pa.array([box.height for box in boxes], pa.float64()),
            "n": pa.array([jobs_drawn] * len(boxes), pa.int64()),
            "left_out": pa.array([unlisted + without_time] * len(boxes), pa.int64()),
        }
    )
    return Answer(table, jobs_drawn, unlisted + without_time, "", chosen.notes)


def draw_treemaps(table: pa.Table, look: Look) -> Any:
    """Return the chart of `workload_treemaps`: a pair a row, every share in the key beside it."""
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
        letter, rows[0]["trace"], alone=alone, second=f"{noun} (n = {rows[0]['n']:,})", room=width
    )
    values: list[Row] = []
    texts: list[Row] = []
    for row, entry, fill in zip(rows, entries, fills, strict=True):
        box = {key: row[key] * scale for key in ("x", "y", "width", "height")}
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
        room=width,
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
    """Return the lines that stand in a box: name and share, the name, or none, as there is room.

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
