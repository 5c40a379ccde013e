"""Small pieces of work for the round mechanisms, and functions that decide on shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.gavel.rounds import Rounds
from windtunnel.policies.gavel.work import ALONE, Allocator, Decision, Rules, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.policies.gavel.record import RoundLog


class Stay(NamedTuple):
    """One stay of a job (a row of the work) on GPUs of a type; ``end`` NaN = it goes on."""

    job: int
    start: float
    end: float
    kind: int
    nodes: tuple[int, ...]
    gpus: tuple[int, ...]


@dataclass
class Flown:
    """What came of a run of `Rounds`, with what a `RoundLog` tells of the other mechanisms."""

    work: Work
    outcome: wt.Outcome
    policy: Rounds

    @property
    def end(self) -> np.ndarray:
        """When each job was done, s, NaN = not."""
        return self.outcome.flight.end

    @property
    def type_time(self) -> np.ndarray:
        """Seconds each job spent on each GPU type, up to the last decision."""
        return self.policy.type_time

    @property
    def gpu_time(self) -> np.ndarray:
        """GPU-seconds held by each job, half of those it shares."""
        flight = self.outcome.flight
        held: np.ndarray = flight.run_time * self.work.gangs
        return held if flight.gpu_time is None else flight.gpu_time

    @property
    def solves(self) -> int:
        """Decisions on shares."""
        return self.policy.solves

    def stays(self) -> list[Stay]:
        """Every stay, in order of start."""
        flight = self.outcome.flight
        kind_of = {
            int(node): kind for kind, nodes in enumerate(self.work.node_index) for node in nodes
        }
        found = []
        for at, job in enumerate(flight.segment_job.tolist()):
            low, high = flight.node_offset[at : at + 2]
            nodes = tuple(flight.nodes[low:high].tolist())
            gpus = tuple(flight.node_gpus[low:high].tolist())
            span = float(flight.segment_start[at]), float(flight.segment_end[at])
            found.append(Stay(job, *span, kind_of[nodes[0]], nodes, gpus))
        return found


def fly_in_rounds(
    work: Work,
    allocate: Allocator,
    rules: Rules,
    **options: Any,
) -> Flown:
    """Fly work by `Rounds` on an engine, as `windtunnel.study.gavel_rounds` does."""
    jobs = {
        "job_id": work.names,
        "submit_time": work.submit,
        "duration": work.steps / work.fastest,
        "num_gpus": work.gangs.astype(float),
    }
    nodes = [
        (int(at), wt.NodeType(1, int(size), name))
        for name, where, sizes in zip(work.gpu_types, work.node_index, work.node_sizes, strict=True)
        for at, size in zip(where, sizes, strict=True)
    ]
    cluster = wt.ClusterSpec(tuple(node for _, node in sorted(nodes, key=lambda pair: pair[0])))
    policy = Rounds(work, np.arange(work.num_jobs), allocate, rules)
    until = None if np.isinf(rules.until) else rules.until
    return Flown(work, wt.simulate(jobs, cluster, policy, until=until, **options), policy)


def stays_of(run: RoundLog | Flown) -> list[Stay]:
    """Every stay of a run, in order of start."""
    if isinstance(run, Flown):
        return run.stays()
    columns = (run._job, run._start, run._end, run._spot)
    return [
        Stay(job, start, end, spot.kind, spot.nodes, spot.gpus)
        for job, start, end, spot in zip(*columns, strict=True)
    ]


def work_of(
    speeds: list[list[float]],
    steps: list[float],
    *,
    nodes: list[list[int]],
    submit: list[float] | None = None,
    gangs: Sequence[float] | None = None,
    spread: list[list[float]] | None = None,
    pairs: np.ndarray | None = None,
) -> Work:
    """Return work: speeds by job and type, steps by job, GPUs of each node of each type."""
    count, first, index = len(steps), 0, []
    for sizes in nodes:
        index.append(np.arange(first, first + len(sizes)))
        first += len(sizes)
    table = np.array(speeds, float).reshape(count, len(nodes))
    return Work(
        names=[f"j{row}" for row in range(count)],
        gpu_types=tuple("abcdef"[: len(nodes)]),
        num_gpus=np.array([sum(sizes) for sizes in nodes]),
        node_sizes=tuple(np.array(sizes) for sizes in nodes),
        node_index=tuple(index),
        submit=np.zeros(count) if submit is None else np.array(submit, float),
        steps=np.array(steps, float),
        gangs=np.ones(count, int) if gangs is None else np.array(gangs),
        speeds=table,
        spread_speeds=table if spread is None else np.array(spread, float),
        kinds=np.arange(count),
        pair_speeds=pairs,
    )


def always(shares: list[list[float]]) -> Allocator:
    """Return a function that gives each job the same shares whenever it is asked."""
    table = np.array(shares, float)

    def decide(now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        del now, left
        return Decision(np.column_stack([active, np.full(len(active), ALONE)]), table[active])

    return decide


@st.composite
def works(draw: st.DrawFn) -> Work:
    """Draw up to 8 jobs on up to 3 types, all of which can run somewhere, some in pairs."""
    types = draw(st.integers(1, 3))
    nodes = [draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)) for _ in range(types)]
    capacity = [sum(sizes) for sizes in nodes]
    count = draw(st.integers(1, 8))
    speed = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.7])
    gangs, speeds = [], []
    for _ in range(count):
        gangs.append(draw(st.sampled_from([g for g in (1, 2, 4) if g <= max(capacity)])))
        row = [draw(speed) for _ in range(types)]
        largest = int(np.argmax(capacity))
        row[largest] = row[largest] or 1.0
        speeds.append(row)
    steps = [float(draw(st.integers(1, 3000))) for _ in range(count)]
    submit = sorted(draw(st.floats(0, 5000)) for _ in range(count))
    pairs = None
    if draw(st.booleans()):
        alone = np.array(speeds)
        pairs = np.zeros((count, count, types, 2))
        for one in range(count):
            for other in range(one, count):
                ratio = draw(st.sampled_from([0.0, 0.4, 0.8]))
                pairs[one, other] = np.stack([alone[one], alone[other]], axis=1) * ratio
                pairs[other, one] = pairs[one, other][:, ::-1]
    spread = [[value * 0.5 for value in row] for row in speeds]
    return work_of(
        *(speeds, steps), nodes=nodes, submit=submit, gangs=gangs, spread=spread, pairs=pairs
    )


@st.composite
def deciders(draw: st.DrawFn, work: Work) -> Allocator:
    """Draw a function that gives arbitrary shares, of pairs too; not all of them feasible."""
    seed = draw(st.integers(0, 2**16))

    def decide(now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        del left
        rng = np.random.default_rng([seed, int(now), len(active)])
        alone = np.column_stack([active, np.full(len(active), ALONE)])
        members = np.concatenate([alone, work.pairs_among(active)])
        shares = rng.uniform(0, 1, (len(members), work.num_types))
        shares *= rng.uniform(0, 1, shares.shape) < 0.6
        return Decision(members, shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))

    return decide


def use_over_time(stays: list[Stay]) -> dict[tuple[int, int], int]:
    """Return the most GPUs in use of each (type, node), jobs that share GPUs counted as many."""
    most: dict[tuple[int, int], int] = {}
    for now in sorted({stay.start for stay in stays}):
        used: dict[tuple[int, int], int] = {}
        for stay in stays:
            if stay.start <= now and not stay.end <= now:  # NaN: still running
                for node, gpus in zip(stay.nodes, stay.gpus, strict=True):
                    key = (stay.kind, node)
                    used[key] = used.get(key, 0) + gpus
        for key, gpus in used.items():
            most[key] = max(most.get(key, 0), gpus)
    return most
