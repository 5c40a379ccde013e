"""Random quotas and jobs under them, and what quotas promise, checked from the cluster itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.quotas import Quotas

if TYPE_CHECKING:
    from collections.abc import Iterator

VCS = ("a", "b", "c", "d")
RECLAIM = ("Never", "LowerPriority", "Any")


class Watched(wt.Policy):
    """A policy whose decisions a witness is shown, each before it is carried out.

    Args:
        inner: the policy.
        witness: called with (instant, decision, cluster); with None for a decision at the end.
    """

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


def priority(job: Any) -> float:
    """A job's priority; none counts as 0."""
    return 0.0 if math.isnan(job.priority) else float(job.priority)


def used(cluster: Any) -> dict[str, float]:
    """GPUs in use by virtual cluster, summed here."""
    found = dict.fromkeys(VCS, 0.0)
    for job in cluster.running:
        found[job.vc] += job.num_gpus
    assert {vc: gpus for vc, gpus in found.items() if gpus} == {
        vc: gpus for vc, gpus in cluster.usage_by_vc.items() if gpus
    }
    return found


@st.composite
def quotas(draw: st.DrawFn) -> Quotas:
    queues = []
    for vc in VCS:
        cohort = draw(st.sampled_from((None, "one", "one", "two")))
        limit = st.one_of(st.none(), st.integers(0, 4)) if cohort else st.none()
        queues.append(
            {
                "vc": vc,
                "nominal_quota": draw(st.integers(4, 8)),
                "cohort": cohort,
                "borrowing_limit": draw(limit),
                "lending_limit": draw(limit),
                "weight": draw(st.sampled_from((1.0, 1.0, 2.0, 0.5))),
            }
        )
    return Quotas.from_mapping({"queues": queues})


def tables(
    sizes: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0), *, crowded: bool = False
) -> st.SearchStrategy[Any]:
    row = st.tuples(
        st.integers(0, 4 if crowded else 12).map(float),
        st.integers(5 if crowded else 0, 9).map(float),
        st.sampled_from(sizes),
        st.sampled_from(VCS),
        st.sampled_from((None, 0.0, 1.0, 2.0)),
    )
    names = ("submit_time", "duration", "num_gpus", "vc", "priority")
    rows = st.lists(row, min_size=1, max_size=24)
    return rows.map(lambda drawn: {n: [r[i] for r in drawn] for i, n in enumerate(names)})


def options() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "queueing_strategy": st.sampled_from(("StrictFIFO", "BestEffortFIFO")),
            "reclaim_within_cohort": st.sampled_from(RECLAIM),
            "within_cluster_queue": st.sampled_from(RECLAIM[:2]),
            "fair_sharing": st.sampled_from(("no", "no", "yes")),
            "gang_timeout": st.sampled_from((float("inf"), 1.0, 2.5)),
            "backoff": st.sampled_from((0.0, 1.0, 3.0)),
            "requeuing_timestamp": st.sampled_from(("Eviction", "Creation")),
        }
    )


CLUSTERS = st.sampled_from(("pool:8", "pool:20", "4x4", "2x8", "5x4"))


def check_limits(queues: dict[str, Any], use: dict[str, float]) -> None:
    """Nobody is above nominal quota and borrowing limit, no cohort above what it has."""
    for vc, queue in queues.items():
        over = use[vc] - queue.nominal_quota
        if queue.cohort is None:
            assert over <= 0
        elif queue.borrowing_limit is not None:
            assert over <= queue.borrowing_limit
    for cohort in ("one", "two"):
        inside = [vc for vc, queue in queues.items() if queue.cohort == cohort]
        total = sum(queues[vc].nominal_quota for vc in inside)
        assert sum(use[vc] for vc in inside) <= total
        for vc in inside:  # what a queue does not lend stays its own
            limit = queues[vc].lending_limit
            if limit is not None:
                own = max(queues[vc].nominal_quota - limit, 0.0)
                assert sum(use[other] for other in inside if other != vc) <= total - own


def check_victim(
    queues: dict[str, Any], rules: dict[str, Any], victim: Any, job: Any, before: float
) -> None:
    """A job gave way to another one by the rules; ``before``: use of its queue until then."""
    if victim.vc == job.vc:
        assert rules["within_cluster_queue"] == "LowerPriority"
        assert priority(victim) < priority(job)
        return
    assert before > queues[victim.vc].nominal_quota
    assert queues[victim.vc].cohort == queues[job.vc].cohort
    assert rules["reclaim_within_cohort"] != "Never"
    if rules["reclaim_within_cohort"] == "LowerPriority":
        assert priority(victim) < priority(job)


TYPES = ("T4", "V100")
MIXED = wt.ClusterSpec(tuple(wt.NodeType(2, 4, kind) for kind in TYPES), "mixed")


@st.composite
def typed_quotas(draw: st.DrawFn) -> Quotas:
    queues = []
    for vc in VCS:
        order = draw(st.permutations(TYPES))
        limits = st.one_of(
            st.none(), st.fixed_dictionaries(dict.fromkeys(TYPES, st.integers(0, 3)))
        )
        queues.append(
            {
                "vc": vc,
                "nominal_quota": {kind: draw(st.integers(2, 3)) for kind in order},
                "cohort": "one",
                "borrowing_limit": draw(limits),
            }
        )
    return Quotas.from_mapping({"queues": queues})
