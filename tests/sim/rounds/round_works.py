"""Small pieces of work for the round mechanisms, and functions that decide on shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from windtunnel.sim.rounds import ALONE, Decision, RoundLog, Work

if TYPE_CHECKING:
    from collections.abc import Callable


def work_of(
    speeds: list[list[float]],
    steps: list[float],
    *,
    nodes: list[list[int]],
    submit: list[float] | None = None,
    gangs: list[int] | None = None,
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


def always(shares: list[list[float]]) -> Callable[[float, np.ndarray, np.ndarray], Decision]:
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
def deciders(draw: st.DrawFn, work: Work) -> Callable[[float, np.ndarray, np.ndarray], Decision]:
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


def use_over_time(log: RoundLog) -> dict[tuple[int, int], int]:
    """Return the most GPUs in use of each (type, node), jobs that share GPUs counted once."""
    stays = list(zip(log._job, log._start, log._end, log._spot, strict=True))
    instants = sorted({start for _, start, _, _ in stays})
    most: dict[tuple[int, int], int] = {}
    for now in instants:
        used: dict[tuple[int, int], int] = {}
        for _, start, end, spot in stays:
            if start <= now and not end <= now:  # NaN: still running
                for node, gpus in zip(spot.nodes, spot.gpus, strict=True):
                    key = (spot.kind, node)
                    used[key] = used.get(key, 0) + gpus
        for key, gpus in used.items():
            most[key] = max(most.get(key, 0), gpus)
    return most
