"""The recorded line of a trace: who waited from when to when, and what was free meanwhile.

For `windtunnel.study.wait_causes`: the jobs that ask for GPUs in the order of their line, and what
each class of equal requests met at every instant at which one of it waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from windtunnel.cluster.free import EVERY_NODE, FreeNodes, FreePool
from windtunnel.placements import resolve_placement
from windtunnel.predictors.features import numbers
from windtunnel.sim.timeline import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.characterize.recorded import Recorded
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.problem import Problem

#: Reasons of a job that only the queue holds; with another one it is not in the line.
_IN_LINE = ("Resources", "Priority")


@dataclass(frozen=True)
class History:
    """The GPU jobs in line, arrays of shape (k,) in the line's order.

    Attributes:
        rows: row in the jobs table.
        submit: s; so are the next four.
        eligible: from then on only the queue holds it; not after its start.
        start: NaN = it never started.
        end: NaN = it holds its GPUs to the end of the log, or never started.
        leave: when it left the line; infinite = it still waits.
        demand: its class in the problem.
        units: GPU units that it asks for.
        vcs: virtual cluster, its code.
        names: the codes' names.
        units_per_gpu: GPU units a GPU.
        ahead: until when a job before it in the line waits; -infinite = never.
        has_eligible: whether the source says when jobs were eligible.
    """

    rows: np.ndarray
    submit: np.ndarray
    eligible: np.ndarray
    start: np.ndarray
    end: np.ndarray
    leave: np.ndarray
    demand: np.ndarray
    units: np.ndarray
    vcs: np.ndarray
    names: list[str]
    units_per_gpu: int
    ahead: np.ndarray
    has_eligible: bool

    @classmethod
    def of(cls, found: Recorded, problem: Problem) -> History:
        """Return the jobs of the problem that ask for GPUs."""
        asks = (problem.gpus > 0) & ~_held_back(found)[problem.rows]
        rows, demand, units = problem.rows[asks], problem.demand_of[asks], problem.gpus[asks]
        submit, start, end = found.submit[rows], found.start[rows], found.end[rows]
        eligible, has_eligible = _eligible(found, rows)
        ended = numbers(found.jobs, "end_time")[rows]
        leave = np.where(np.isnan(start), np.where(np.isnan(ended), np.inf, ended), start)
        eligible = np.fmin(eligible, leave)
        order = np.lexsort((rows, eligible))
        leave = leave[order]
        ahead = np.concatenate([[-np.inf], np.maximum.accumulate(leave)[:-1]])[: len(leave)]
        codes, names = found.names("vc")
        return cls(
            *(rows[order], submit[order], eligible[order], start[order], end[order], leave),
            *(demand[order], units[order], codes[rows][order], names, problem.units),
            *(ahead, has_eligible),
        )

    @cached_property
    def by_vc(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Virtual cluster -> instants, rising, and GPU units that it holds from each on."""
        found = {}
        ran = ~np.isnan(self.start)
        for vc in np.unique(self.vcs[ran]):
            mask = ran & (self.vcs == vc)
            end = np.where(np.isnan(self.end[mask]), np.inf, self.end[mask])
            times = np.concatenate([[-np.inf], self.start[mask], end])
            units = self.units[mask].astype(np.float64)
            instants, held = steps(times, np.concatenate([[0.0], units, -units]))
            found[int(vc)] = (instants, held)
        return found


def _held_back(found: Recorded) -> np.ndarray:
    """Return which jobs never started and say that something else than the queue held them."""
    unstarted = np.isnan(found.start)
    if "reason" not in found.jobs.column_names:
        return np.zeros(len(unstarted), dtype=bool)
    reasons = found.jobs["reason"].to_pylist()
    other = np.array([word is not None and word not in _IN_LINE for word in reasons], dtype=bool)
    held: np.ndarray = unstarted & other
    return held


def _eligible(found: Recorded, rows: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return since when only the queue holds each job, and whether the source says it."""
    submit = found.submit[rows]
    if "eligible_time" not in found.jobs.column_names:
        return submit, False
    import pyarrow as pa
    import pyarrow.compute as pc

    times = pc.cast(found.jobs["eligible_time"], pa.float64(), safe=False).to_numpy()
    eligible = np.asarray(times, dtype=np.float64)[rows]
    return np.fmax(np.where(np.isnan(eligible), submit, eligible), submit), bool(
        np.isfinite(eligible).any()
    )


@dataclass
class States:
    """What jobs of one class met while one of them waited.

    Attributes:
        times: rising instants at which it changed, s.
        free: free GPU units from each on, at most what the class asks for.
        fits: whether a placement exists.
    """

    times: Any
    free: Any
    fits: Any


@dataclass(frozen=True)
class Replayed:
    """The states of each class, and how many jobs did not fit where they are recorded."""

    of_class: dict[int, States]
    unplaced: int


def replay(history: History, problem: Problem, cluster: ClusterSpec, *, as_pool: bool) -> Replayed:
    """Go along the recorded starts and ends, and note what each class in line meets."""
    sizes = problem.sizes.tolist()
    free: Any = FreePool(sizes, [None] * len(sizes)) if as_pool else FreeNodes(sizes)
    placement: Any = resolve_placement("pool" if as_pool else "best_fit", cluster)
    nodes = _RecordedNodes(free, placement, {}, as_pool)
    waiting: dict[int, int] = {}
    states: dict[int, States] = {}
    for now, batch in _events(history):
        for kind, place in batch:
            code = int(history.demand[place])
            if kind == _ENDS:
                nodes.give(place, problem.demands[code])
            elif kind == _STARTS:
                nodes.take(place, problem.demands[code])
            else:
                waiting[code] = waiting.get(code, 0) + (1 if kind == _JOINS else -1)
        for code, number in waiting.items():
            if number:
                state = states.setdefault(code, States([], [], []))
                units, fits = nodes.meets(problem.demands[code])
                if not state.times or (state.free[-1], state.fits[-1]) != (units, fits):
                    state.times.append(now)
                    state.free.append(units)
                    state.fits.append(fits)
    for state in states.values():
        state.times, state.free = np.array(state.times), np.array(state.free)
        state.fits = np.array(state.fits, dtype=bool)
    return Replayed(states, nodes.unplaced)


@dataclass
class _RecordedNodes:
    """The cluster along the recorded history.

    Attributes:
        free: its free state.
        placement: how jobs are put on it.
        where: place in line of a running job -> where it is.
        as_pool: nodes are not distinguished.
        over: GPU units of running jobs that did not fit.
        unplaced: how many jobs did not fit.
    """

    free: Any
    placement: Any
    where: dict[int, Any]
    as_pool: bool
    over: int = 0
    unplaced: int = 0

    def take(self, place: int, demand: Any) -> None:
        """Start a job, even if it does not fit."""
        taken = self.placement.place(self.free, demand)
        if taken is None:
            self.over += demand.gpus
            self.unplaced += 1
        else:
            self.where[place] = taken
            self.free.take(taken, demand)

    def give(self, place: int, demand: Any) -> None:
        """End a job."""
        taken = self.where.pop(place, None)
        if taken is None:
            self.over -= demand.gpus
        else:
            self.free.give(taken, demand)

    def meets(self, demand: Any) -> tuple[int, bool]:
        """Return the free GPU units that a job may use, at most its own, and whether it fits."""
        if demand.allowed == EVERY_NODE:
            units = int(self.free.total)
        elif self.as_pool:
            pools = enumerate(self.free.free)
            units = sum(free for pool, free in pools if demand.allowed >> pool & 1)
        else:
            counts = enumerate(self.free.by_free)
            units = sum(n * (nodes & demand.allowed).bit_count() for n, nodes in counts if n)
        fits = self.as_pool or self.placement.place(self.free, demand) is not None
        return min(units - self.over, demand.gpus), fits


#: Kinds of events, in the order in which they happen at one instant.
_ENDS, _LEAVES, _JOINS, _STARTS = range(4)


def _events(history: History) -> Iterator[tuple[float, list[tuple[int, int]]]]:
    """Yield (instant, [(kind, place), ...]) in order of time; ends before starts."""
    waited = history.leave > history.eligible
    # A stay of no length takes nothing.
    ran = ~np.isnan(history.start) & (history.end != history.start)
    ended = ran & ~np.isnan(history.end)
    parts = (
        (_ENDS, np.flatnonzero(ended), history.end),
        (_LEAVES, np.flatnonzero(waited & np.isfinite(history.leave)), history.leave),
        (_JOINS, np.flatnonzero(waited), history.eligible),
        (_STARTS, np.flatnonzero(ran), history.start),
    )
    times = np.concatenate([when[places] for _, places, when in parts])
    kinds = np.concatenate([np.full(len(places), kind) for kind, places, _ in parts])
    places = np.concatenate([places for _, places, _ in parts])
    order = np.lexsort((places, kinds, times))
    times, kinds, places = times[order], kinds[order].tolist(), places[order].tolist()
    bounds = np.flatnonzero(np.diff(times, prepend=-np.inf, append=np.inf))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield float(times[begin]), list(zip(kinds[begin:end], places[begin:end], strict=True))


def gpus_alone(cluster: ClusterSpec) -> ClusterSpec:
    """Return the cluster without its cores and memory."""
    kinds = tuple(
        msgspec.structs.replace(node, cpus=None, mem_gib=None) for node in cluster.node_types
    )
    return msgspec.structs.replace(cluster, node_types=kinds)
