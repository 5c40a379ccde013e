"""How full is each node, when? GPUs allocated, by kind of node and node by node, as heat maps.

With many nodes a row is a band of neighbours: the nodes of a type in order of the mean share that
was allocated, fullest first, cut into bands of as many nodes each. Rows and steps are few
enough for a page; each cell is the exact mean over its time and nodes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from windtunnel.characterize.allocation import NONE, allocation_over_time
from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import over
from windtunnel.report.chart.axes import Axis, texts
from windtunnel.report.chart.series import FONT
from windtunnel.report.curves import time_unit
from windtunnel.report.figures.collecting import Answer, Lacking, Measure, with_columns, within
from windtunnel.report.figures.gpus import span_of, step_for
from windtunnel.report.figures.panels import LINE, Plan, arranged, heading, panels_of
from windtunnel.report.figures.requests import tasks_of
from windtunnel.report.figures.sources import GAP
from windtunnel.report.format import plural
from windtunnel.report.names import clean

if TYPE_CHECKING:
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series

#: What the second map shows, whose rows are nodes or bands of them.
_BY_NODE = "GPUs allocated by node"
#: Cells of one map.
STEPS = 48
BANDS = 60
#: Width of the names of the rows, px.
_NAMES = 66.0


def _map(series: Series, by: str) -> Answer:
    """Return the cells of one map."""
    tasks = tasks_of(series)
    nodes = series.trace.nodes
    if nodes is None or not nodes.num_rows:
        raise Lacking("the trace has no nodes table")
    span = span_of(tasks)
    step = step_for(span, STEPS)
    found = allocation_over_time(tasks, nodes, by=by, step=step)
    if not found.num_rows:
        return Answer(found, 0, 0)
    times = list(dict.fromkeys(found["time"].to_pylist()))
    names = found[by].to_pylist()[:: len(times)]
    given = np.asarray(found["gpu"].to_numpy()).reshape(len(names), len(times))
    capacity = _capacity(nodes, by)
    held = [i for i, name in enumerate(names) if capacity.get(name, _NOTHING).gpus > 0]
    if not held:
        return Answer(found, 0, 0)
    n, left_out, reasons = (found[name][0].as_py() for name in ("n", "left_out", "why"))
    # Nodes on which nothing ever ran are nodes, too: they were given to nobody.
    idle = [name for name, has in capacity.items() if has.gpus > 0 and name not in set(names)]
    given = np.concatenate([given[held], np.zeros((len(idle), len(times)))])
    rows = [names[i] for i in held] + idle
    bands = _bands(rows, given, capacity, by)
    table = _cells(bands, np.array(times), step, span)
    return Answer(with_columns(table, n=n, left_out=left_out), n, left_out, reasons)


def _capacity(nodes: pa.Table, by: str) -> dict[str, Capacity]:
    """Return name -> what there is of each kind of node, or of each node."""
    sums: dict[str, Capacity] = {}
    for node, kind, gpus in zip(
        *(nodes[name].to_pylist() for name in ("node", "gpu_type", "num_gpus")), strict=True
    ):
        key = node if by == "node" else kind or NONE
        has = sums.get(key, _NOTHING)
        sums[key] = Capacity(kind or NONE, has.gpus + (gpus or 0.0), has.nodes + 1)
    return sums


class Capacity(NamedTuple):
    """What there is of a kind of node, or of a node: GPU type, GPUs, nodes."""

    kind: str
    gpus: float
    nodes: int


_NOTHING = Capacity(NONE, 0.0, 0)


class Band(NamedTuple):
    """A row of a map: what it is called, its nodes, and the share allocated at each step."""

    name: str
    nodes: int
    share: np.ndarray


def _bands(
    names: list[str], given: np.ndarray, capacity: dict[str, Capacity], by: str
) -> list[Band]:
    """Return the rows of a map from top to bottom; a band is of one kind of nodes."""
    whole = np.array([capacity[name].gpus for name in names])
    mean = given.sum(axis=1) / whole
    kinds = [capacity[name].kind for name in names]
    order = sorted(range(len(names)), key=lambda i: (kinds[i], -mean[i], names[i]))
    size = 1 if by != "node" else -(-len(names) // BANDS)
    bands = []
    for kind in sorted(set(kinds)):
        mine = [i for i in order if kinds[i] == kind]
        for first in range(0, len(mine), size):
            part = mine[first : first + size]
            share = given[part].sum(axis=0) / whole[part].sum()
            nodes = sum(capacity[names[i]].nodes for i in part)
            bands.append(Band(clean(kind if size > 1 else names[part[0]], 12), nodes, share))
    return bands


def _cells(
    bands: list[Band], times: np.ndarray, step: float, span: tuple[float, float]
) -> pa.Table:
    """Return a row a band and step, with its time since the span's beginning in a fit unit."""
    unit, length = time_unit(span[1] - span[0])
    zero = span[0]
    rows, steps = len(bands), len(times)
    return pa.table(
        {
            "row": np.repeat(np.arange(rows), steps),
            "name": [band.name for band in bands for _ in range(steps)],
            "nodes": np.repeat([band.nodes for band in bands], steps),
            "from": np.tile((times - zero) / length, rows),
            "to": np.tile((times + step - zero) / length, rows),
            "unit": pa.repeat(unit, rows * steps),
            "share": np.concatenate([band.share for band in bands]),
        }
    )


def _draw(table: pa.Table, look: Look) -> Any:
    """Return the maps: dark is empty, bright is full."""
    panels = panels_of(table)
    beside = min(look.columns, len(panels))
    width = look.panel_width(beside, _NAMES + 10)
    top = max(1.0, *(row["share"] for row in table.to_pylist()))
    limit = look.width / beside - GAP / 2
    drawn = []
    for letter, title, rows in panels:
        nodes = max(row["nodes"] for row in rows)
        banded = nodes > 1 and title.endswith(_BY_NODE)
        second = f"a row: up to {nodes:,} nodes" if banded else ""
        named = heading(letter, title, alone=len(panels) == 1, second=second, limit=limit)
        drawn.append(_map_panel(rows, width, top, named))
    return arranged(drawn, beside)


def _map_panel(rows: list[Row], width: float, top: float, title: Any) -> Any:
    count = rows[-1]["row"] + 1
    names = {row["row"]: row["name"] for row in rows}
    line = LINE if count <= 12 else max(3.0, 180 / count)  # noqa: PLR2004 (rows with a name each)
    shown = {row + 0.5: names[row] for row in _named_rows(names, line)}
    values = [
        {"a": r["from"], "b": r["to"], "row": r["row"], "end": r["row"] + 1, "share": r["share"]}
        for r in rows
    ]
    domain = (max(min(r["from"] for r in rows), 0.0), max(r["to"] for r in rows))
    n = f"(n = {plural(rows[0]['n'], 'task')})"
    x = Axis(
        "a",
        f"Time since the first task, {rows[0]['unit']} {n}",
        domain=domain,
        end="b",
        grid=False,
        scale={"clamp": True},
    )
    chart = marks.heat(
        values,
        x,
        texts("row", shown, count, _NAMES, end="end"),
        "share",
        scale={"scheme": "cividis", "domain": [0, top], "clamp": True},
        title="GPUs allocated",
        legend={
            "format": ".0%",
            "gradientLength": min(120.0, width / 2),
            "gradientThickness": 8,
            "titleOrient": "left",
            "tickCount": 3,
        },
    )
    return over(chart, width=width, height=line * count, title=title)


def _named_rows(names: dict[int, str], line: float) -> list[int]:
    """Return the rows that carry their name: the first of each, as far apart as type is high."""
    shown: list[int] = []
    for row, name in names.items():
        if row and names[row - 1] == name:
            continue
        if not shown or (row - shown[-1]) * line >= FONT + 1:
            shown.append(row)
    return shown


_NO_GPUS = "no task is on a node with GPUs"
#: The share of GPUs allocated, by kind of node and by node, over time.
ALLOCATION = Plan(
    within(
        Measure("GPUs allocated by kind of node", partial(_map, by="gpu_type"), _NO_GPUS),
        Measure(_BY_NODE, partial(_map, by="node"), _NO_GPUS),
    ),
    _draw,
)
