"""Who held what when, cut at every change: the side of the holdings in the join with samples.

A GPU's time is cut where a job gets or gives it up; between two cuts the same jobs hold it. A
sample then falls on exactly one segment, however many jobs share the GPU, and a job is found once
for a sample, however its holdings overlap. There are at most two cuts a holding, so the segments
stay as small as the holdings.

Samples of a GPU are looked up in that GPU's time line, those of a GPU that no holding names in the
line of holdings of the whole node, and those of a node (``gpu`` null) in the line of everything
held on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.relation import relation
from windtunnel.companions import HOLDING_COLUMNS, companion_schema
from windtunnel.errors import SchemaError, Violation

if TYPE_CHECKING:
    from windtunnel.companions import Relation


@dataclass(frozen=True)
class Grid:
    """Time in equal pieces, so that a sample is compared with the few segments in its own.

    A join on equal pieces needs neither side sorted: samples stream through it, on any backend.

    Attributes:
        origin: where piece 0 begins, s; earlier times are in it too.
        width: length of a piece, s.
        last: number of the last piece; later times are in it too.
    """

    origin: float
    width: float
    last: int

    def piece_of(self, time: np.ndarray) -> np.ndarray:
        """Return the piece that each time is in, int64, shape (n,)."""
        pieces = np.floor((time - self.origin) / self.width)
        return np.clip(pieces, 0, self.last).astype(np.int64)


@dataclass(frozen=True)
class Segments:
    """The time lines of all devices.

    Attributes:
        named: table ``node``, ``gpu``, ``line`` int64: GPUs that a holding names.
        nodes: table ``node``, ``any_line``, ``node_line`` int64: for a GPU of the node that no
            holding names, and for the node as a whole.
        pieces: table ``line``, ``piece`` int64, ``begin``, ``finish`` (float64 s, infinite = no
            end), ``segment`` int64: the segments that someone held, once for each piece of time
            that they touch.
        grid: how time is cut into pieces.
        begin: when each segment begins, s, shape (segments,).
        finish: when it ends, s; infinite = never.
        holders: table ``segment``, ``holder`` (text), ``shared`` bool (another holds it too).
        is_node: whether a segment is of a node as a whole, bool, shape (segments,).
        held: holder -> seconds that it held devices, as its holdings name them (two GPUs for a
            minute are 120 s, a whole node 60); infinite where one has no end.
    """

    named: pa.Table
    nodes: pa.Table
    pieces: pa.Table
    grid: Grid
    begin: np.ndarray
    finish: np.ndarray
    holders: pa.Table
    is_node: np.ndarray
    held: dict[str, float]


def segments_of(holdings: Relation | None) -> Segments:
    """Return the time lines of some holdings.

    Args:
        holdings: who held which device when (`windtunnel.companions.HOLDING_COLUMNS`); fits
            memory. None = nobody held any.

    Raises:
        SchemaError: a column is missing, a holding has no start, node or job, or ends before it
            starts.
    """
    known = companion_schema(HOLDING_COLUMNS).empty_table() if holdings is None else holdings
    held = relation(known, ("job_id", "node", "gpu", "start_time", "end_time")).to_pyarrow()
    _check(held)
    who, names = _codes(held["job_id"])
    node, nodes = _codes(held["node"])
    gpu, gpus = _codes(held["gpu"])
    start = np.asarray(held["start_time"].to_numpy(), np.float64)
    end = np.nan_to_num(np.asarray(held["end_time"].to_numpy(), np.float64), nan=np.inf)
    pairs, line, row = _on_lines(node, gpu, len(nodes), len(gpus))
    cut_line, begin, segment, holder = _cut(line, start[row], end[row], who[row])
    finish = begin + _lengths(cut_line, begin)
    pieces, grid = _pieces(cut_line, begin, finish, np.unique(segment))
    count = len(nodes)
    shared = np.bincount(segment, minlength=len(begin))[segment] > 1
    return Segments(
        named=pa.table(
            {
                "node": nodes.take(pa.array(pairs[:, 0])),
                "gpu": gpus.take(pa.array(pairs[:, 1])),
                "line": np.arange(len(pairs)) + 2 * count,
            }
        ),
        nodes=pa.table(
            {"node": nodes, "any_line": np.arange(count), "node_line": np.arange(count) + count}
        ),
        pieces=pieces,
        grid=grid,
        begin=begin,
        finish=finish,
        holders=pa.table(
            {"segment": segment, "holder": names.take(pa.array(holder)), "shared": shared}
        ),
        is_node=(cut_line >= count) & (cut_line < 2 * count),
        held=_held(who, names, np.column_stack([who, node, gpu]), start, end),
    )


def _on_lines(
    node: np.ndarray, gpu: np.ndarray, nodes: int, gpus: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lay holdings on the time lines that they matter to.

    Lines 0 .. nodes - 1 are those of GPUs that no holding names, the next as many those of the
    nodes as a whole, the rest those of the GPUs named.

    Args:
        node: each holding's node, int64, shape (n,).
        gpu: its GPU, -1 = the whole node.

    Returns:
        The GPUs named, (node, gpu) in rows, sorted; and line and holding of each laying.
    """
    whole, named = np.flatnonzero(gpu < 0), np.flatnonzero(gpu >= 0)
    keys = node[named] * max(gpus, 1) + gpu[named]
    known, of_named = np.unique(keys, return_inverse=True)
    pairs = np.column_stack([known // max(gpus, 1), known % max(gpus, 1)])
    # A whole node is also held where its GPUs are named by others.
    place, pair = _matches(node[whole], pairs[:, 0])
    layings = (
        (node + nodes, np.arange(len(node))),
        (node[whole], whole),
        (of_named + 2 * nodes, named),
        (pair + 2 * nodes, whole[place]),
    )
    line, row = (np.concatenate(of) for of in zip(*layings, strict=True))
    return pairs, line, row


def _pieces(
    line: np.ndarray, begin: np.ndarray, finish: np.ndarray, held: np.ndarray
) -> tuple[pa.Table, Grid]:
    """Cut held segments into pieces of time, on average about as many again as there are.

    Args:
        line: line of each segment, int64, shape (segments,); so are ``begin`` and ``finish``, s.
        begin: see ``line``.
        finish: see ``line``.
        held: the segments that someone held, int64.
    """
    span = float(begin.max() - begin.min()) if len(begin) else 0.0
    per_line = max(1, math.ceil(len(begin) / max(1, len(np.unique(line)))))
    origin = float(begin.min()) if len(begin) else 0.0
    grid = Grid(origin, span / per_line if span > 0 else 1.0, per_line)
    line, begin, finish = line[held], begin[held], finish[held]
    first = grid.piece_of(begin)
    spans = grid.piece_of(finish) - first + 1
    table = pa.table(
        {
            "line": np.repeat(line, spans),
            "piece": np.repeat(first, spans) + _counting(spans),
            "begin": np.repeat(begin, spans),
            "finish": np.repeat(finish, spans),
            "segment": np.repeat(held, spans),
        }
    )
    return table, grid


def _held(
    who: np.ndarray, names: pa.Array, things: np.ndarray, start: np.ndarray, end: np.ndarray
) -> dict[str, float]:
    """Return how long each held what its holdings name, overlapping ones counted once."""
    _, thing = np.unique(things, axis=0, return_inverse=True)
    line, begin, segment, holder = _cut(thing.reshape(-1), start, end, who)
    lengths = _lengths(line, begin)
    seconds = np.zeros(len(names))
    np.add.at(seconds, holder, lengths[segment])
    return dict(zip(names.to_pylist(), seconds.tolist(), strict=True))


def _check(held: pa.Table) -> None:
    bad = []
    for name in ("job_id", "node", "start_time"):
        lacking = int(held[name].null_count)
        if lacking:
            bad.append(Violation(name, "a value in every holding", lacking))
    backwards = pc.sum(pc.less(held["end_time"], held["start_time"])).as_py() or 0
    if backwards:
        bad.append(Violation("end_time", "end_time >= start_time", int(backwards)))
    if bad:
        raise SchemaError("holdings", bad)


def _codes(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return a text column as numbers, -1 = null, and the distinct texts that they stand for."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    coded = whole.cast(pa.string()).dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(codes, np.int64), coded.dictionary


def _matches(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every pair (place in left, place in right) of equal numbers; ``right`` is sorted."""
    first = np.searchsorted(right, left, side="left")
    counts = np.searchsorted(right, left, side="right") - first
    places = np.repeat(np.arange(len(left)), counts)
    steps = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places, np.repeat(first, counts) + steps


def _cut(
    line: np.ndarray, start: np.ndarray, end: np.ndarray, who: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cut time lines at every start and end of a holding.

    Args:
        line: time line of each holding, int64, shape (n,).
        start: from then on, s; ``end`` until before then, infinite = still.
        end: see ``start``.
        who: the holder, int64.

    Returns:
        Line and begin of each segment, shape (segments,), in order of both; and who holds which,
        each pair once, as two int64 arrays: segment, holder.
    """
    real = end > start
    line, start, end, who = line[real], start[real], end[real], who[real]
    lines, times = np.concatenate([line, line]), np.concatenate([start, end])
    order = np.lexsort((times, lines))
    lines, times = lines[order], times[order]
    is_new = np.append(True, (lines[1:] != lines[:-1]) | (times[1:] != times[:-1]))[: len(lines)]
    finite = np.isfinite(times)
    is_cut = is_new & finite
    # An end that never comes lies behind the last cut of its line, where the next line begins.
    place = np.empty(len(lines), np.int64)
    place[order] = np.cumsum(is_cut) - finite
    spans = place[len(line) :] - place[: len(line)]
    segment = np.repeat(place[: len(line)], spans) + _counting(spans)
    pairs = np.unique(np.stack([segment, np.repeat(who, spans)]), axis=1)
    return lines[is_cut], times[is_cut], pairs[0], pairs[1]


def _lengths(line: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Return the length of each segment, s; the last of a line has no end."""
    lengths = np.full(len(begin), np.inf)
    follows = line[1:] == line[:-1]
    lengths[:-1][follows] = (begin[1:] - begin[:-1])[follows]
    return lengths


def _counting(spans: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... for each span, one behind the other."""
    within: np.ndarray = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
    return within
