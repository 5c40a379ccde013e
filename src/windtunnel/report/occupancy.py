"""Who was where when: a Gantt chart of a small run, a heat map of node x time of a large one.

A Gantt chart has a bar for every stay on every GPU (`windtunnel.report.threads`). A heat map has a
cell for some nodes and a span of time: the share of their GPUs that jobs held, an exact mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import WIDTH, on_page, over
from windtunnel.report.chart.axes import PERCENT, Axis, names, span
from windtunnel.report.chart.series import Series
from windtunnel.report.curves import Row, time_unit
from windtunnel.report.format import count, plural
from windtunnel.report.names import clean, labels
from windtunnel.report.palette import SERIES
from windtunnel.report.result import Drawing, Part, Result
from windtunnel.report.result_page import result_page
from windtunnel.report.stays import stay_times
from windtunnel.report.templating import embedded
from windtunnel.report.threads import slices, thread_name
from windtunnel.sim.metrics import horizon, size_classes
from windtunnel.sim.observe.holdings import has_nodes

if TYPE_CHECKING:
    from windtunnel.report.chart.marks import Tips
    from windtunnel.sim.outcome import Outcome

#: A run with more bars, or on more threads, is drawn as a heat map.
MAX_BARS = 1000
MAX_THREADS = 64
#: Spans of time and groups of nodes of a heat map: at most 5,000 cells.
TIME_BINS = 120
NODE_GROUPS = 40
#: Shades of a heat map, so that cells alike in a row become one.
_SHADES = 20
#: Groups of jobs that get a colour of their own; the others share the last one.
_COLOURS = 7
_OTHERS = "others"
HOW_TO_ZOOM = (
    "Drag to move over time, turn the wheel to zoom, hold the pointer over a mark for its numbers."
)


@dataclass(frozen=True)
class Occupancy:
    """A chart of who was where, with what it shows.

    Attributes:
        chart: an Altair chart.
        title: what it is.
        caption: what is drawn, in which unit, of how many.
    """

    chart: Any
    title: str
    caption: str

    def drawing(self, name: str, title: str, *, live: bool) -> Drawing:
        """Return it as a picture of a page, which `scripts` bring to life where it is live."""

        def draw() -> Any:
            # Checking thousands of cells against a schema takes a second.
            return alive(self.chart, name) if live else self.chart.to_dict(validate=False)

        return Drawing(name, title, self.caption, draw, title or self.title)


def occupancy(outcome: Outcome, window: tuple[float, float] | None = None) -> Occupancy | None:
    """Return the chart of a run; None where there is nothing to draw, or no nodes to draw it on.

    Args:
        outcome: the run.
        window: from when until when, s; None = from the first submission to the end.
    """
    first, last = window or horizon(outcome)
    pooled = outcome.cluster.is_pool or outcome.settings.get("placement") == "pool"
    if last <= first or not len(outcome.flight.segment_start):
        return None
    if not (pooled or has_nodes(outcome)):
        return None
    rows = gantt_rows(outcome, first, last)
    if rows:
        return _gantt(outcome, rows, first, last)
    if not has_nodes(outcome):
        return None
    return _heat_map(outcome, first, last)


def gantt_rows(outcome: Outcome, first: float, last: float) -> list[Row]:
    """Return the bars of a run's stays, in order of threads and time; none if there are too many.

    Rows: ``thread`` (its name), ``place`` (its number in order), ``job``, ``group`` (virtual
    cluster, or size), ``gpus``, ``from`` and ``until`` (s since ``first``).
    """
    start, end = stay_times(outcome)
    stays = np.flatnonzero((start < last) & ((end > first) | (start >= first)))
    if len(stays) > MAX_BARS:
        return []
    drawn = slices(outcome, stays)
    order = np.lexsort((start[drawn.stay], drawn.lane, drawn.column, drawn.process))
    keys = [
        tuple(key)
        for key in np.stack([drawn.process, drawn.column, drawn.lane], axis=1)[order].tolist()
    ]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    if len(keys) > MAX_BARS or len(places) > MAX_THREADS:
        return []
    _, _, groups = _groups(outcome)
    rows = []
    for stay, key in zip(drawn.stay[order].tolist(), keys, strict=True):
        row = int(outcome.flight.segment_job[stay])
        rows.append(
            {
                "thread": _thread_name(outcome, *key),
                "place": places[key],
                "job": clean(outcome.jobs["job_id"][row].as_py()),
                "group": groups[row],
                "gpus": float(outcome.num_gpus[row]),
                "from": float(max(start[stay], first) - first),
                "until": float(min(end[stay], last) - first),
            }
        )
    return rows


def heat_rows(outcome: Outcome, first: float, last: float) -> list[Row]:
    """Return the cells of the heat map, those that are idle left out.

    Rows: ``node`` and ``node_end`` (the nodes, the last one excluded), ``from`` and ``until`` (s
    since ``first``), ``share`` (mean share of the nodes' GPUs that jobs held, to a twentieth).
    """
    nodes, shares = held_shares(outcome, first, last)
    edges = np.linspace(0.0, last - first, shares.shape[1] + 1)
    levels = np.round(shares * _SHADES).astype(np.int64)
    rows = []
    for group, level in enumerate(levels):
        change = np.flatnonzero(np.append(True, level[1:] != level[:-1]))
        for begin, stop in zip(change, np.append(change[1:], len(level)), strict=True):
            if level[begin]:
                rows.append(
                    {
                        "node": int(nodes[group]),
                        "node_end": int(nodes[group + 1]),
                        "from": float(edges[begin]),
                        "until": float(edges[stop]),
                        "share": int(level[begin]) / _SHADES,
                    }
                )
    return rows


def held_shares(
    outcome: Outcome, first: float, last: float, *, bins: int = TIME_BINS, groups: int = NODE_GROUPS
) -> tuple[np.ndarray, np.ndarray]:
    """Return what share of their GPUs nodes had in use, exact means over equal spans of time.

    Args:
        outcome: a run that knows its nodes.
        first: begin of the first span, s.
        last: end of the last span, s.
        bins: number of spans.
        groups: nodes that follow each other are put together into at most so many groups.

    Returns:
        Int array (g + 1,): where groups of nodes begin, and the end; and a Float array (g, bins);
        0 where nodes have no GPUs.
    """
    flight, cluster = outcome.flight, outcome.cluster
    edges = np.linspace(0, cluster.num_nodes, min(groups, cluster.num_nodes) + 1)
    nodes = np.round(edges).astype(np.int64)
    stay = np.repeat(np.arange(len(flight.segment_job)), np.diff(flight.node_offset))
    start, end = (np.clip(times[stay], first, last) for times in stay_times(outcome))
    group = np.searchsorted(nodes, flight.nodes, side="right") - 1
    width = (last - first) / bins
    used = np.zeros((len(nodes) - 1, bins + 1))
    for times, sign in ((start, 1.0), (end, -1.0)):
        # What begins within a span counts for the rest of it, and whole in those that follow.
        at = np.minimum(((times - first) / width).astype(np.int64), bins - 1)
        amount = sign * flight.node_gpus
        part = np.clip((first + (at + 1) * width - times) / width, 0.0, 1.0)
        np.add.at(used, (group, at), amount * part)
        np.add.at(used, (group, at + 1), amount * (1.0 - part))
    held = np.cumsum(used, axis=1)[:, :bins]
    sizes = np.repeat(
        [kind.gpus for kind in cluster.node_types], [kind.count for kind in cluster.node_types]
    )
    gpus = np.diff(np.append(0, np.cumsum(sizes))[nodes])[:, None]
    shares = np.divide(held, gpus, out=np.zeros_like(held), where=gpus > 0)
    return nodes, np.clip(shares, 0.0, 1.0)


def occupancy_page(
    outcome: Outcome, title: str, window: tuple[float, float] | None = None, *, command: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Return a page with the chart of a run, which can be inspected and zoomed; and its notes.

    Args:
        outcome: the run.
        title: the page's heading.
        window: from when until when, s; None = from the first submission to the end.
        command: what makes the page again, printed at its end.
    """
    drawn = occupancy(outcome, window)
    notes: tuple[str, ...] = ()
    if drawn is None:
        notes = ("Nothing to draw: no job ran, or the run knows no nodes.",)
        part = Part("Who ran where")
    else:
        picture = drawn.drawing("occupancy", "", live=True)
        part = Part(drawn.title, HOW_TO_ZOOM, drawings=[picture], is_wide=True)
    result = Result(
        clean(title, 160),
        parts=[part],
        notes=[clean(note, 400) for note in (*outcome.notes, *notes)],
        subtitle=[clean(outcome.settings["policy"]), clean(outcome.cluster.describe(), 200)],
    )
    return result_page(result, command=command, scripts=scripts() if drawn else ()), notes


def alive(chart: Any, name: str) -> Any:
    """Return a chart as markup that `scripts` bring to life: tooltips, and zooming over time.

    Args:
        chart: an Altair chart with a time axis.
        name: letters, digits and hyphens; unique in the page.
    """
    zoom = {"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"}
    spec = chart.to_dict(validate=False)  # thousands of cells; the tests draw it checked
    fit = {"type": "fit-x", "contains": "padding"}
    spec |= {"width": "container", "autosize": fit, "params": [zoom]}
    return Markup(
        '<div class="chart live" id="{0}"></div>\n'
        '<script type="application/json" data-chart="{0}">{1}</script>'
    ).format(name, embedded(spec))


def scripts() -> list[Any]:
    """Return what brings every `alive` chart of a page to life; once a page, at its end."""
    from windtunnel.report.figures.writing import vega_script

    start = (
        'for (const one of document.querySelectorAll("script[data-chart]")) '
        'drawChart("#" + one.dataset.chart, JSON.parse(one.textContent), '
        '{renderer: "svg", ast: true, mode: "vega-lite", actions: false});'
    )
    return [Markup(vega_script()), Markup(start)]  # noqa: S704 - ours


def _groups(outcome: Outcome) -> tuple[str, list[str], list[str]]:
    """Return what jobs are coloured by, its values in order, and each job's."""
    names = outcome.jobs["vc"].to_pylist()
    if len(set(names) - {None}) < 2:  # noqa: PLR2004 - one is nothing to tell apart
        classes, texts = size_classes(outcome.num_gpus)
        return "GPUs of the job", texts, [texts[index] for index in classes.tolist()]
    held = outcome.num_gpus * outcome.flight.run_time
    size: dict[Any, float] = {}
    for name, amount in zip(names, held.tolist(), strict=True):
        size[name] = size.get(name, 0.0) + amount
    top = sorted(size, key=lambda name: (-size[name], name or ""))[: _COLOURS - 1]
    shown = dict(zip(top, labels("(none)" if n is None else n for n in top), strict=True))
    order = [*shown.values(), _OTHERS]
    return "virtual cluster", order, [shown.get(name, _OTHERS) for name in names]


def _thread_name(outcome: Outcome, process: int, column: int, lane: int) -> str:
    if not has_nodes(outcome):
        return f"slot {lane}"
    where = f"node {process}" if process < outcome.cluster.num_nodes else "no node"
    return f"{where}, {thread_name(column, lane)}"


def _span_of(first: float, last: float, *, grid: bool) -> tuple[Axis, Tips, float]:
    """Return the axis of time, what its ends say under the pointer, and its unit in s."""
    unit, length = time_unit(last - first)
    title = f"Time since the first submission, {unit}"
    x = span("from", title, domain=(0, (last - first) / length), end="until", grid=grid)
    ends = {field: (f"{field}, {unit}", ",.4~g") for field in ("from", "until")}
    return x, ends, length


def _in_unit(rows: list[Row], length: float) -> list[Row]:
    return [{**row, "from": row["from"] / length, "until": row["until"] / length} for row in rows]


def _gantt(outcome: Outcome, rows: list[Row], first: float, last: float) -> Occupancy:
    x, ends, length = _span_of(first, last, grid=True)
    threads = list(dict.fromkeys(row["thread"] for row in rows))
    present = {row["group"] for row in rows}
    of, order, _ = _groups(outcome)
    kinds = [kind for kind in order if kind in present]
    colours = [pair[0] for pair in SERIES[1 : 1 + _COLOURS]]
    paint = [colours[i % _COLOURS] for i in range(len(kinds))]
    groups = Series("group", kinds, paint, title=of, legend=True)
    tips: Tips = {
        "job": ("job", ""),
        "group": (of, ""),
        "gpus": ("GPUs", ",~r"),
        "thread": ("where", ""),
    }
    chart = marks.gantt(
        _in_unit(rows, length),
        x,
        names("thread", threads),
        groups,
        tips=tips | ends,
        height={"band": 0.86},
        cornerRadius=1,
        clip=True,
    )
    height = len(threads) * (14 if len(threads) > 24 else 18)  # noqa: PLR2004
    jobs = len({row["job"] for row in rows})
    caption = (
        f"One bar a stay and GPU: n = {count(len(rows))} bars of {plural(jobs, 'job')} on "
        f"{plural(len(threads), 'thread')}; time in {time_unit(last - first)[0]}."
    )
    return Occupancy(on_page(over(chart, width=WIDTH, height=height)), "Who ran where", caption)


def _round_numbers(end: int) -> list[int]:
    """Return about five round numbers from 0 to below ``end``."""
    power = 1
    while end > 60 * power:
        power *= 10
    step = next(times * power for times in (1, 2, 5, 10) if end <= 6 * times * power)
    return list(range(0, end, step))


def _heat_map(outcome: Outcome, first: float, last: float) -> Occupancy:
    x, ends, length = _span_of(first, last, grid=False)
    nodes = outcome.cluster.num_nodes
    y = Axis(
        "node", "Node", domain=(nodes, 0), ticks=_round_numbers(nodes), end="node_end", grid=False
    )
    tips: Tips = {
        "node": ("from node", ",d"),
        "node_end": ("to before node", ",d"),
        "share": ("GPUs in use", ".0%"),
    }
    legend = {
        "values": [0.25, 0.5, 0.75, 1],
        "labelExpr": PERCENT,
        "symbolType": "square",
        "symbolFillColor": SERIES[1][0],
        "symbolStrokeWidth": 0,
    }
    chart = marks.heat(
        _in_unit(heat_rows(outcome, first, last), length),
        x,
        y,
        "share",
        channel="opacity",
        scale={"domain": [0, 1], "range": [0, 1]},
        title="GPUs in use",
        legend=legend,
        tips=tips | ends,
        color=SERIES[1][0],
    )
    together = -(-nodes // NODE_GROUPS)
    each = "each node" if together == 1 else f"up to {together} nodes that follow each other"
    caption = (
        f"Share of GPUs held by jobs: exact means of {each} over {TIME_BINS} equal spans of time, "
        f"in steps of 5 %; blank is idle; n = {count(len(outcome.flight.segment_job))} stays on "
        f"{plural(nodes, 'node')}; time in {time_unit(last - first)[0]}."
    )
    drawn = on_page(over(chart, width=WIDTH, height=240))
    return Occupancy(drawn, "How full the nodes are", caption)
