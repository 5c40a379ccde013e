"""The time-line of a serving run: which group of GPUs serves which models when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import on_page, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.chart.series import Series
from windtunnel.report.palette import GRID, INK, MUTED, SERIES
from windtunnel.serving import Placement, Schedule

if TYPE_CHECKING:
    from windtunnel.report.chart.marks import Tips
    from windtunnel.serving import ServingOutcome

#: Width and most height of the plotting area, px.
WIDTH, MOST_HEIGHT = 900, 520
#: Equal spans of time that a cell may begin and end at.
BINS = 120
#: Depths of colour that can be distinguished.
_LEVELS = 4
#: Kinds of models with colours of their own; the rest shares grey.
_KINDS = 6
_OTHERS = "other models"


class Band(NamedTuple):
    """A group during one stretch.

    Attributes:
        segment: of the schedule.
        group: index in its placement.
        first: GPU.
        last: GPU after its last.
        start: s.
        stop: s.
        stages: of its pipeline.
        name: its configuration.
    """

    segment: int
    group: int
    first: int
    last: int
    start: float
    stop: float
    stages: int
    name: str


def bands(outcome: ServingOutcome, placed: Placement | Schedule) -> list[Band]:
    """Return every group of every stretch, from the first arrival to the last answer."""
    arrival = outcome.workload.arrival
    if not len(arrival):
        return []
    begin = float(arrival[0])
    answered = outcome.finish[outcome.accepted]
    end = float(max(arrival[-1], answered.max() if len(answered) else begin))
    if end == begin:
        return []
    placements: tuple[Placement, ...] = (placed,) if isinstance(placed, Placement) else ()
    starts = [begin]
    if isinstance(placed, Schedule):
        placements, starts = placed.placements, [begin, *placed.starts[1:]]
    found = []
    for segment, (placement, start, stop) in enumerate(
        zip(placements, starts, [*starts[1:], end], strict=True)
    ):
        first = 0
        for index, group in enumerate(placement.groups):
            last = first + group.parallel.gpus
            pp, name = group.parallel.pp, group.parallel.name
            found.append(Band(segment, index, first, last, start, stop, pp, name))
            first = last
    return found


def cell_rows(outcome: ServingOutcome, placed: Placement | Schedule) -> list[dict[str, Any]]:
    """Return what each group serves over time.

    Returns:
        A row a cell: ``first``, ``last`` (GPUs, the last exclusive), ``start``, ``stop`` (s),
        ``group`` (configuration), ``kind`` (the type of model with most requests in service),
        ``level`` (1 to 4 quarters of a request in service a stage, on average, 4 = one or more)
        and ``in_service`` (that average). Cells without a request are left out; equal neighbours
        are one.
    """
    every = bands(outcome, placed)
    if not every:
        return []
    names = np.array(outcome.workload.models)
    kinds = kinds_of(outcome)
    place = {kind: index for index, kind in enumerate(kinds)}
    kind_of = np.array([place.get(name, len(kinds) - 1) for name in names.tolist()])
    edges = np.linspace(every[0].start, max(band.stop for band in every), BINS + 1)
    there = outcome.accepted
    starts = placed.starts[1:] if isinstance(placed, Schedule) else ()
    segment = np.searchsorted(np.array(starts), outcome.workload.arrival, side="right")
    rows: list[dict[str, Any]] = []
    for band in every:
        mine = there & (segment == band.segment) & (outcome.group == band.group)
        # What began in a stretch may end in the next: the group's cells go on as long.
        area = np.zeros((len(kinds), BINS))
        asked = kind_of[outcome.workload.model[mine]]
        for kind in np.unique(asked).tolist():
            which = asked == kind
            begin, end = outcome.start[mine][which], outcome.finish[mine][which]
            area[kind] = np.diff(_passed(begin, edges) - _passed(end, edges))
        rows += _cells(band, area / np.diff(edges) / band.stages, edges, kinds)
    return rows


def kinds_of(outcome: ServingOutcome) -> list[str]:
    """Return the types of models in order of requests; those beyond six as one."""
    names = np.array(outcome.workload.models)[outcome.workload.model]
    known, counts = np.unique(names, return_counts=True)
    order = sorted(zip(-counts, known.tolist(), strict=True))
    kinds = [str(name) for _, name in order]
    return kinds if len(kinds) <= _KINDS else [*kinds[:_KINDS], _OTHERS]


def _passed(times: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the sum over times of max(0, at - time), shape of ``at``: an area up to each edge."""
    order = np.sort(times)
    sums = np.concatenate([[0.0], np.cumsum(order)])
    count = np.searchsorted(order, at, side="right")
    return np.asarray(count * at - sums[count])


def _cells(
    band: Band, busy: np.ndarray, edges: np.ndarray, kinds: list[str]
) -> list[dict[str, Any]]:
    """Return the cells of a group; busy is requests in service a stage, (kinds, bins)."""
    total = busy.sum(axis=0)
    level = np.minimum(np.ceil(total * _LEVELS - 1e-9), _LEVELS).astype(int)
    kind = busy.argmax(axis=0)
    rows: list[dict[str, Any]] = []
    for at in np.flatnonzero(level > 0).tolist():
        last = rows[-1] if rows else None
        same = last is not None and last["at"] == at - 1
        if (
            same
            and last is not None
            and (last["kind"], last["level"]) == (kinds[kind[at]], int(level[at]))
        ):
            cells = last["cells"] + 1
            last["in_service"] += (float(total[at]) - last["in_service"]) / cells
            last |= {"at": at, "cells": cells, "stop": float(edges[at + 1])}
            continue
        rows.append(
            {
                "at": at,
                "cells": 1,
                "first": band.first,
                "last": band.last,
                "start": float(edges[at]),
                "stop": float(edges[at + 1]),
                "group": band.name,
                "kind": kinds[kind[at]],
                "level": int(level[at]),
                "in_service": float(total[at]),
            }
        )
    return [{k: v for k, v in row.items() if k not in ("at", "cells")} for row in rows]


def timeline_chart(outcome: ServingOutcome, placed: Placement | Schedule) -> Any:
    """Return GPUs down, time across: each group coloured by what it serves; None if nothing."""
    rows = cell_rows(outcome, placed)
    if not rows:
        return None
    frames = [
        {"first": b.first, "last": b.last, "start": b.start, "stop": b.stop}
        for b in bands(outcome, placed)
    ]
    gpus = max(frame["last"] for frame in frames)
    every = kinds_of(outcome)
    kinds = [kind for kind in every if any(row["kind"] == kind for row in rows)]
    paint = [_colour(every.index(kind), kind) for kind in kinds]
    served = Series("kind", kinds, paint, legend=True, width=WIDTH, symbol="square")
    x = Axis("start", "Time, s", end="stop", count=15, grid=False, scale={"nice": False})
    y = Axis(
        "first",
        "GPU",
        domain=(0, gpus),
        end="last",
        count=9,
        grid=False,
        scale={"reverse": True},
        more={"tickMinStep": 1},
    )
    tips: Tips = {
        "kind": ("serves", ""),
        "group": ("group", ""),
        "in_service": ("in service a stage", ".2f"),
    }
    many = len(frames) > 400  # noqa: PLR2004 - frames would hide what they frame
    outline: dict[str, Any] = {
        "filled": False,
        "stroke": GRID[0] if many else MUTED[0],
        "strokeWidth": 0.6,
    }
    layers = [
        marks.gantt(
            rows, x, y, served, tips=tips, strokeWidth=0, channels=marks.depth("level", _LEVELS)
        ),
        *([marks.gantt(loads, x, y, color=INK[0])] if (loads := _loads(outcome)) else []),
        marks.gantt(frames, x, y, **outline),
    ]
    height = min(MOST_HEIGHT, max(120, 26 * gpus))
    return on_page(over(*layers, width=WIDTH, height=height))


def _colour(place: int, kind: str) -> str:
    return SERIES[-1][0] if kind == _OTHERS else SERIES[1 + place % (len(SERIES) - 2)][0]


def _loads(outcome: ServingOutcome) -> list[dict[str, Any]]:
    """Return the stretches in which groups load weights, drawn dark."""
    return [
        {
            "first": load["first_gpu"],
            "last": load["first_gpu"] + load["gpus"],
            "start": load["drained"],
            "stop": load["loaded"],
        }
        for load in outcome.settings.get("loading", [])
    ]
