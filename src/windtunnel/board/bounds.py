"""Proved lower bounds: what no scheduler can beat, whatever it knows.

A job j is submitted at r, asks for g of the cluster's m GPUs and works for p seconds at least, so
it needs an area of a = g p. Completion is C. Every schedule keeps to these, and leaving any rule or
any other job out only makes room; so each bound of fewer rules, or of some of the jobs, holds.

* C >= r + p.
* *Shortest remaining area first*: give each job, at every instant, the share of the m GPUs that it
  holds, of one machine that works off m areas a second. That is a preemptive schedule of one
  machine with the same completions, and of those SRPT has the least sum (Schrage 1968).
* *Mean busy times*: let M be the mean of the instants at which a job works, weighted by the GPUs
  it then holds. A job that holds at most g of them works p seconds before C at least, so
  C >= M + p / 2. The sum of M on one machine is least where the released job of the least *whole*
  area goes first (Goemans 1997: preemptive, areas as lengths, equal weights).
* The last completion is at least r + (areas submitted at r or later) / m for each r.

Where every job is bound to one GPU type the bounds are taken type by type, and added up. Docs:
docs/bench.md has the proof's sketch.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.board.elastic_jobs import PENALTY, options_of
from windtunnel.board.scenarios import LATE, SPAN, WORST

if TYPE_CHECKING:
    from windtunnel.board.workloads import Drawn


def least_total(
    submit: np.ndarray, shortest: np.ndarray, area: np.ndarray, num_gpus: float
) -> float:
    """Return a lower bound of the sum of completion times (end - submission), s.

    Args:
        submit: Float array (n,), s.
        shortest: Float array (n,), the least time that each job works, s.
        area: Float array (n,), the least GPU time of each, GPU-s.
        num_gpus: GPUs of the cluster.

    >>> one = np.ones(2)
    >>> least_total(0 * one, 10 * one, 10 * one, 1), least_total(0 * one, 10 * one, 10 * one, 2)
    (30.0, 20.0)
    """
    lengths = area / num_gpus
    served = float(_one_machine(submit, lengths, by_whole=False)[0].sum())
    busy = float(_one_machine(submit, lengths, by_whole=True)[1].sum() + shortest.sum() / 2)
    return max(float((submit + shortest).sum()), served, busy) - float(submit.sum())


def _one_machine(
    submit: np.ndarray, lengths: np.ndarray, *, by_whole: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return completions and mean busy times of jobs on one machine that preempts, shape (n,) each.

    Args:
        submit: s.
        lengths: s.
        by_whole: the least whole length goes first; else the least that is left.
    """
    ends, busy = np.zeros(len(submit)), np.zeros(len(submit))
    waiting: list[tuple[float, int, float]] = []  # rank, job, seconds left
    order = np.argsort(submit, kind="stable").tolist()
    now, place = 0.0, 0
    while place < len(order) or waiting:
        if not waiting:
            now = max(now, float(submit[order[place]]))
        while place < len(order) and submit[order[place]] <= now:
            job = order[place]
            heapq.heappush(waiting, (float(lengths[job]), job, float(lengths[job])))
            place += 1
        rank, job, left = heapq.heappop(waiting)
        until = float(submit[order[place]]) if place < len(order) else np.inf
        work = min(left, until - now)
        busy[job] += work * (now + work / 2) / max(float(lengths[job]), 1e-300)
        now += work
        if work < left:
            left -= work
            heapq.heappush(waiting, (rank if by_whole else left, job, left))
        else:
            ends[job] = now
    return ends, busy


def lower_bound(drawn: Drawn, measured: np.ndarray) -> float:
    """Return what no policy's value of a scenario can be below.

    Args:
        drawn: scenario and seed.
        measured: Bool array (n,), the jobs that are measured.
    """
    jobs = drawn.jobs.filter(measured)
    submit = np.asarray(jobs["submit_time"].to_numpy(), float)
    shortest, area = _least_work(drawn, measured)
    measure = drawn.scenario.measure
    if measure == LATE:
        deadline = np.asarray(jobs["deadline"].to_numpy(), float)
        return 1 + float((submit + shortest > deadline).mean())
    if measure == SPAN:
        everything = np.ones(drawn.jobs.num_rows, dtype=bool)
        return _least_span(drawn, *_least_work(drawn, everything))
    if measure == WORST:
        groups = np.array(jobs["vc"].to_pylist(), dtype=object)
        found = [
            _least_mean(drawn, *(part[groups == name] for part in (submit, shortest, area)))
            for name in sorted(set(groups.tolist()))
        ]
        return max(found)
    kinds = np.array(jobs["gpu_type"].to_pylist(), dtype=object)
    pools = _pools(drawn)
    if all(kind in pools for kind in kinds):
        total = sum(
            least_total(submit[kinds == k], shortest[kinds == k], area[kinds == k], gpus)
            for k, gpus in pools.items()
        )
        return total / len(submit)
    return _least_mean(drawn, submit, shortest, area)


def _least_mean(drawn: Drawn, submit: np.ndarray, shortest: np.ndarray, area: np.ndarray) -> float:
    return least_total(submit, shortest, area, drawn.cluster.num_gpus) / len(submit)


def _least_span(drawn: Drawn, shortest: np.ndarray, area: np.ndarray) -> float:
    """Return a lower bound of the time from the first submission to the last completion, s."""
    submit = np.asarray(drawn.jobs["submit_time"].to_numpy(), float)
    order = np.argsort(submit, kind="stable")
    behind = np.cumsum(area[order][::-1])[::-1]
    filled = submit[order] + behind / drawn.cluster.num_gpus
    return max(float((submit + shortest).max()), float(filled.max())) - float(submit.min())


def _least_work(drawn: Drawn, measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least time and the least GPU time of each measured job."""
    jobs = drawn.jobs.filter(measured)
    duration = np.asarray(jobs["duration"].to_numpy(), float)
    area = duration * np.asarray(jobs["num_gpus"].to_numpy(), float)
    if drawn.scenario.twin != "elastic":
        return duration, area
    shortest = np.empty(len(duration))
    for row, (model, steps) in enumerate(
        zip(jobs["template"].to_pylist(), jobs["steps"].to_pylist(), strict=True)
    ):
        times = np.array([(o.iteration_time, o.num_gpus) for o in options_of(model)])
        spent = steps * times[:, 0] + PENALTY
        shortest[row] = min(duration[row], float(spent.min()))
        area[row] = min(area[row], float((spent * times[:, 1]).min()))
    return shortest, area


def _pools(drawn: Drawn) -> dict[str, float]:
    """Return the GPUs of each type."""
    found: dict[str, float] = {}
    for nodes in drawn.cluster.node_types:
        if nodes.gpu_type is not None:
            found[nodes.gpu_type] = found.get(nodes.gpu_type, 0.0) + nodes.count * nodes.gpus
    return found
