"""Which thread of a time-line each stay of a run is drawn on: GPUs as threads, nodes as processes.

Where the run modelled devices, a thread is the GPU that the job held; jobs that shared it lie on
threads of their own beside it. Where GPUs of a node were only counted, each stay gets the lowest
ones that are free. Where there are no GPUs to tell apart (a pool, a pooled node, a job without
GPUs), a thread is a slot: the lowest that is free.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.report.stays import stay_times
from windtunnel.sim.observe.holdings import has_nodes

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome

#: Columns of a node besides its GPUs 0, 1, ...: slots, and slots of jobs without GPUs.
SLOTS = 1 << 20
NO_GPUS = SLOTS + 1
#: Thread numbers of a GPU's further shares: a step above every GPU's own.
_SHARE_STEP = 1000


@dataclass(frozen=True)
class Slices:
    """What is drawn on threads: one entry a stay and thread, by (start, stay, node).

    Attributes:
        stay: Int array (k,), row in the segments.
        process: Int array (k,), node index; the number of nodes = on no node in particular.
        column: Int array (k,), the GPU of the node, `SLOTS` or `NO_GPUS`.
        lane: Int array (k,), which thread of that column: 0, 1, ... where several jobs share it.
    """

    stay: np.ndarray
    process: np.ndarray
    column: np.ndarray
    lane: np.ndarray

    @property
    def thread(self) -> np.ndarray:
        """Int array (k,), thread numbers: a GPU's own is its number in the node."""
        base = np.where(self.column == SLOTS, 0, np.minimum(self.column, SLOTS))
        step = np.where(self.column >= SLOTS, 1, _SHARE_STEP)
        numbers: np.ndarray = base + self.lane * step
        return numbers


def num_threads(outcome: Outcome) -> np.ndarray:
    """Return on how many threads each stay is drawn, Int array (s,)."""
    flight = outcome.flight
    stays = len(flight.segment_job)
    if not has_nodes(outcome):
        return np.ones(stays, dtype=np.int64)
    stay = np.repeat(np.arange(stays), np.diff(flight.node_offset))
    width = np.maximum(_width(outcome, slice(None)), 1)
    counts: np.ndarray = np.bincount(stay, width, minlength=stays)
    return np.maximum(counts.astype(np.int64), 1)


def slices(outcome: Outcome, stays: np.ndarray) -> Slices:
    """Return the threads of some of a run's stays; no two of them overlap on one thread.

    Args:
        outcome: the run.
        stays: Int array, rows in the segments, ascending.
    """
    start, end = stay_times(outcome)
    stay, process, column = _held(outcome, stays)
    order = np.lexsort((column, process, stay, start[stay]))
    stay, process, column = stay[order], process[order], column[order]
    if _knows_devices(outcome):
        lane = lowest_free((process << 21) | column, start[stay], end[stay])
        return Slices(stay, process, column, lane)
    # Where GPUs are only counted, all of a node's are one column, whose lanes are its GPUs.
    counted = column < SLOTS
    column = np.where(counted, 0, column)
    lane = lowest_free((process << 21) | column, start[stay], end[stay])
    return Slices(stay, process, np.where(counted, lane, column), np.where(counted, 0, lane))


def lowest_free(group: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the lowest lane of its group that is free at each entry's start, Int array (k,).

    A lane is free again from the end of its last entry on.

    Args:
        group: Int array (k,), who shares lanes.
        start: Float array (k,), s, ascending.
        end: Float array (k,), s.

    >>> lowest_free(np.zeros(3, int), np.array([0.0, 1.0, 2.0]), np.array([2.0, 5.0, 3.0])).tolist()
    [0, 1, 0]
    """
    lanes: list[int] = []
    busy: dict[int, list[tuple[float, int]]] = {}
    free: dict[int, list[int]] = {}
    for key, begin, stop in zip(group.tolist(), start.tolist(), end.tolist(), strict=True):
        held = busy.setdefault(key, [])
        spare = free.setdefault(key, [])
        while held and held[0][0] <= begin:
            heapq.heappush(spare, heapq.heappop(held)[1])
        lane = heapq.heappop(spare) if spare else len(held)
        heapq.heappush(held, (stop, lane))
        lanes.append(lane)
    return np.array(lanes, dtype=np.int64)


def _knows_devices(outcome: Outcome) -> bool:
    return len(outcome.flight.devices) > 0


def _width(outcome: Outcome, entries: slice | np.ndarray) -> np.ndarray:
    """Return how many GPUs are held at each of the flight's entries of nodes; a pool's has none."""
    flight = outcome.flight
    if _knows_devices(outcome):
        held: np.ndarray = np.bitwise_count(flight.devices[entries]).astype(np.int64)
        return held
    if outcome.settings.get("sharing") is not None:
        return np.zeros(len(flight.nodes[entries]), dtype=np.int64)
    gpus: np.ndarray = flight.node_gpus[entries].astype(np.int64)
    return gpus


def _held(outcome: Outcome, stays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return stay, process and column, one entry a thread (GPUs that are counted: 0, 1, ...)."""
    flight = outcome.flight
    sizes = np.diff(flight.node_offset)[stays] if has_nodes(outcome) else np.zeros_like(stays)
    at = np.repeat(flight.node_offset[stays] - (np.cumsum(sizes) - sizes), sizes)
    at = at + np.arange(len(at))
    stay, node = np.repeat(stays, sizes), flight.nodes[at].astype(np.int64)
    width = _width(outcome, at)
    if _knows_devices(outcome):
        sets = flight.devices[at].astype(np.int64)
        bits = (sets[:, None] >> np.arange(int(sets.max(initial=0)).bit_length())) & 1
        which, gpu = np.nonzero(bits)
    else:
        which = np.repeat(np.arange(len(at)), width)
        gpu = np.arange(len(which)) - np.repeat(np.cumsum(width) - width, width)
    without = width == 0
    slot = np.where(flight.node_gpus[at[without]] > 0, SLOTS, NO_GPUS)
    nowhere = stays[sizes == 0]
    asks = outcome.num_gpus[flight.segment_job[nowhere]] > 0
    return (
        np.concatenate([stay[which], stay[without], nowhere]),
        np.concatenate(
            [node[which], node[without], np.full(len(nowhere), outcome.cluster.num_nodes)]
        ),
        np.concatenate([gpu, slot, np.where(asks, SLOTS, NO_GPUS)]),
    )


def thread_name(column: int, lane: int) -> str:
    """Return what a thread is called; see `Slices`."""
    if column == SLOTS:
        return f"slot {lane}"
    if column == NO_GPUS:
        return f"no GPU, slot {lane}"
    return f"GPU {column}" if lane == 0 else f"GPU {column}, share {lane + 1}"
