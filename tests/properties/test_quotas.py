"""What quotas promise, whatever comes: checked at every decision from the cluster itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from quota_cases import (
    CLUSTERS,
    MIXED,
    TYPES,
    VCS,
    Watched,
    check_limits,
    check_victim,
    options,
    quotas,
    tables,
    typed_quotas,
    used,
)

import windtunnel as wt
from windtunnel.policies.quota import Quota

if TYPE_CHECKING:
    from windtunnel.policies.quotas import Quotas

FEW = settings(max_examples=150)


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
            for better in queues[job.vc].flavors:  # the first type with quota and free nodes
                if better == kind:
                    break
                within = use[job.vc, better] + job.num_gpus <= queues[job.vc].nominal_quota[better]
                lent = sum(quota.nominal_quota[better] for quota in queues.values())
                free = sum(use[vc, better] for vc in VCS) + job.num_gpus <= lent
                assert not (within and free and cluster.fit(job, (better,)) is not None)

    policy = Watched(Quota(given_quotas, **rules), witness)
    out = wt.simulate(table, MIXED, policy)
    assert set(out.table["status"].to_pylist()) == {"finished"}
