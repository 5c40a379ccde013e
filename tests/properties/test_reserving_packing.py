"""Reserving-and-packing, whatever comes: who may start does, where its plans say, and in order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies import ReservingPacking

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = ("V100", "P100", "T4")
#: Three nodes of each type, weak ones first, as PAI numbers them.
NODES = wt.ClusterSpec(tuple(wt.NodeType(3, 4, kind) for kind in reversed(TYPES)), "mixed")


class Watched(wt.Policy):
    """A policy with a witness, who is shown each decision before it is carried out."""

    name = "watched"

    def __init__(self, inner: wt.Policy, witness: Any) -> None:
        self.inner = inner
        self.witness = witness

    def for_run(self, problem: Any) -> wt.Policy:
        return Watched(self.inner.for_run(problem), self.witness)

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        for decision in self.inner.decide(now, queue, cluster):
            self.witness(now, decision, cluster, queue)
            yield decision
        self.witness(now, None, cluster, queue)


def tables() -> st.SearchStrategy[dict[str, list[Any]]]:
    row = st.tuples(
        st.integers(0, 12).map(float),
        st.integers(0, 30).map(float),
        st.sampled_from((0.0, 1.0, 2.0, 4.0, 8.0)),
        st.sampled_from((None, None, "V100", "T4", "P100|T4", "T4|V100")),
        st.sampled_from((None, 0.0, 0.5, 1.0)),
    )
    names = ("submit_time", "duration", "num_gpus", "gpu_type", "efficiency")
    rows = st.lists(row, min_size=1, max_size=24)
    return rows.map(lambda drawn: {n: [r[i] for r in drawn] for i, n in enumerate(names)})


@settings(max_examples=150)
@given(tables(), st.sampled_from(((0.0,), (3.0,), (1.0, 6.0))))
def test_plans_are_followed(table: dict[str, list[Any]], attempts: tuple[float, ...]) -> None:
    def is_high(job: Any) -> bool:
        return (table["efficiency"][job.row] or 0.0) > 0.4  # unknown is not

    def open_types(job: Any, now: float) -> list[str]:
        accepted = TYPES if job.gpu_type is None else job.gpu_type.split("|")
        plans = TYPES if is_high(job) else TYPES[::-1]
        plan = [kind for kind in plans if kind in accepted]
        step = [attempts[min(k, len(attempts) - 1)] for k in range(len(plan))]
        return [k for i, k in enumerate(plan) if now >= job.submit_time + math.fsum(step[:i])]

    started: list[tuple[bool, float, int]] = []

    def witness(now: float, decision: Any, cluster: Any, queue: Any) -> None:
        if isinstance(decision, wt.Start) and decision.job.num_gpus:
            kinds = {TYPES[::-1][node // 3] for node, _ in decision.where or []}
            assert len(kinds) == 1  # a gang has one type
            (kind,) = kinds
            job = decision.job
            for better in open_types(job, now)[: open_types(job, now).index(kind)]:
                assert cluster.fit(job, (better,)) is None
            started.append((not is_high(job), job.submit_time, job.number))
        elif decision is None:
            assert started == sorted(started)  # high ones first, by arrival
            started.clear()
            for job in queue:  # nobody waits who could start
                assert job.num_gpus
                assert all(cluster.fit(job, (kind,)) is None for kind in open_types(job, now))

    policy = ReservingPacking("efficiency", 0.4, attempt=attempts)
    out = wt.simulate(table, NODES, Watched(policy, witness))
    assert out.table["run_time"].to_pylist() == table["duration"]
