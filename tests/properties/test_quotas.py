"""What quotas promise, whatever comes: checked at every decision from the cluster itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.quota import Quota
from windtunnel.policies.quotas import Quotas

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW = settings(max_examples=150)
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


@FEW
@given(
    st.one_of(tables(), tables((0.25, 1.0, 2.0, 4.0), crowded=True)), quotas(), options(), CLUSTERS
)
def test_limits_hold_and_nobody_within_quota_is_preempted_by_others(
    table: Any, given_quotas: Quotas, rules: dict[str, Any], cluster: str
) -> None:
    """On pools, on whole GPUs of nodes, and, where a job asks for a share, on devices."""
    queues = {queue.vc: queue for queue in given_quotas.queues}
    gone: list[tuple[Any, float]] = []  # victims of the next start, with their queue's use before

    def witness(now: float, decision: Any, cluster: Any, queue: Any) -> None:
        use = used(cluster)
        check_limits(queues, use)
        if isinstance(decision, wt.Preempt):
            gone.append((decision.job, use[decision.job.vc]))
        elif isinstance(decision, wt.Start):
            job = decision.job
            for victim, before in gone:
                check_victim(queues, rules, victim, job, before)
            if rules["fair_sharing"] == "no" and any(v.vc != job.vc for v, _ in gone):
                assert use[job.vc] + job.num_gpus <= queues[job.vc].nominal_quota
            gone.clear()
        elif decision is None:
            assert not gone  # nobody goes in vain

    policy = Watched(Quota(given_quotas, **rules), witness)
    out = wt.simulate(table, cluster, policy, save_time=0.25)
    assert set(out.table["status"].to_pylist()) == {"finished"}


@FEW
@given(tables((1.0,)), quotas(), st.sampled_from(("StrictFIFO", "BestEffortFIFO")), st.booleans())
def test_with_reclaim_a_queue_has_its_nominal_quota_back_at_once(
    table: Any,
    given_quotas: Quotas,
    strategy: str,
    fair: bool,  # noqa: FBT001 - drawn
) -> None:
    """On GPUs that do not fragment, and enough of them for everybody's nominal quota."""
    queues = {queue.vc: queue for queue in given_quotas.queues}

    def witness(now: float, decision: Any, cluster: Any, queue: Any) -> None:
        if decision is None:
            use = used(cluster)
            for job in queue:
                assert use[job.vc] >= queues[job.vc].nominal_quota, (now, job)

    rules = {"queueing_strategy": strategy, "fair_sharing": "yes" if fair else "no"}
    policy = Watched(Quota(given_quotas, reclaim_within_cohort="Any", **rules), witness)
    wt.simulate(table, f"pool:{given_quotas.total:g}", policy)


@FEW
@given(tables(), CLUSTERS)
def test_without_virtual_clusters_it_is_fifo(table: Any, cluster: str) -> None:
    plain = {name: values for name, values in table.items() if name not in ("vc", "priority")}
    for strategy, queueing in (("StrictFIFO", "strict"), ("BestEffortFIFO", "skip")):
        out = wt.simulate(plain, cluster, f"quota:queueing_strategy={strategy}")
        fifo = wt.simulate(plain, cluster, "fifo", queueing=queueing)
        assert out.table.equals(fifo.table)
        assert out.segments.equals(fifo.segments)


@FEW
@given(tables(), st.sampled_from(("StrictFIFO", "BestEffortFIFO")))
def test_hard_quotas_are_clusters_of_their_own(table: Any, strategy: str) -> None:
    """On GPUs that do not fragment: each virtual cluster as if it had a pool of its size."""
    policy = Quota(dict.fromkeys(VCS, 5), borrowing="none", queueing_strategy=strategy)
    together = wt.simulate(table, "pool:20", policy).table.to_pylist()
    queueing = "strict" if strategy == "StrictFIFO" else "skip"
    for vc in VCS:
        rows = [row for row, name in enumerate(table["vc"]) if name == vc]
        alone = {name: [values[row] for row in rows] for name, values in table.items()}
        if not rows:
            continue
        apart = wt.simulate(alone, "pool:5", "priority", queueing=queueing).table
        starts = [together[row]["start_time"] for row in rows]
        assert starts == apart["start_time"].to_pylist()


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


@FEW
@given(
    tables((0.0, 1.0, 2.0), crowded=True),
    st.lists(st.sampled_from((None, "V100", "T4", "T4|V100")), min_size=24, max_size=24),
    typed_quotas(),
    options(),
)
def test_quotas_hold_for_each_gpu_type(
    table: Any, kinds: list[str | None], given_quotas: Quotas, rules: dict[str, Any]
) -> None:
    queues: dict[str, Any] = {queue.vc: queue for queue in given_quotas.queues}
    table |= {"gpu_type": kinds[: len(table["vc"])]}

    def witness(now: float, decision: Any, cluster: Any, queue: Any) -> None:
        use = {(vc, kind): 0.0 for vc in VCS for kind in TYPES}
        for job in cluster.running:
            held = {TYPES[node // 2] for node, _ in cluster.where(job)}
            if job.num_gpus:
                (kind,) = held  # a gang has one type, which it accepts
                assert job.gpu_type is None or kind in job.gpu_type.split("|")
                use[job.vc, kind] += job.num_gpus
        for kind in TYPES:
            total = sum(quota.nominal_quota[kind] for quota in queues.values())
            assert sum(use[vc, kind] for vc in VCS) <= total
            for vc, quota in queues.items():
                if quota.borrowing_limit is not None:
                    limit = quota.nominal_quota[kind] + quota.borrowing_limit[kind]
                    assert use[vc, kind] <= limit
        if isinstance(decision, wt.Start) and decision.job.num_gpus:
            job = decision.job
            (kind,) = {TYPES[node // 2] for node, _ in decision.where or []}
            for better in queues[job.vc].flavors:  # the first type with quota and room
                if better == kind:
                    break
                within = use[job.vc, better] + job.num_gpus <= queues[job.vc].nominal_quota[better]
                lent = sum(quota.nominal_quota[better] for quota in queues.values())
                free = sum(use[vc, better] for vc in VCS) + job.num_gpus <= lent
                assert not (within and free and cluster.fit(job, (better,)) is not None)

    policy = Watched(Quota(given_quotas, **rules), witness)
    out = wt.simulate(table, MIXED, policy)
    assert set(out.table["status"].to_pylist()) == {"finished"}
