"""Runs with models of slow-downs for the property tests: every kind of factor and of run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flight_cases import Case, cases, device_cases
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies import resolve_policy
from windtunnel.policies.service_order import Las, Srsf, Tiresias
from windtunnel.sim.contract import BACKFILLING
from windtunnel.sim.factor_tables import ShareFactor, SpreadFactor

NAMES = ("a", "b", None)
SPREAD_BY = ((), (SpreadFactor("a", 2.0, 0.25), SpreadFactor("b", 4.0, 1.5)))
SHARE_BY = ((), (ShareFactor("a", "b", 0.75, 0.6), ShareFactor("b", "b", 0.9, 0.9)))
TOPOLOGIES = ("", "", ":topology=rack", ":topology=rack-only")
SERVICE = (Las(1.0), Tiresias(1.0, (2.0, 8.0)), Srsf())


def models() -> st.SearchStrategy[wt.Slowdown]:
    """Models of every kind."""
    factor = st.sampled_from((1.0, 0.5, 0.8, 0.3))
    return st.builds(
        wt.Slowdown,
        spread=st.sampled_from((1.0, 0.42, 1.25)),
        rack=factor,
        share=factor,
        cpu=st.sampled_from((0.0, 0.28, 0.9)),
        spread_by=st.sampled_from(SPREAD_BY),
        share_by=st.sampled_from(SHARE_BY),
        traffic=st.just(3.0),
        links=st.sampled_from(({"host": 1e9}, {"host": 4.0}, {"rack": 2.5, "host": 3.5})),
    )


def with_racks(case: Case, per_rack: int) -> Case:
    """The same run on a cluster with racks, its jobs with workloads."""
    kinds = [
        wt.NodeType(k.count, k.gpus, k.gpu_type, k.cpus, k.mem_gib, per_rack)
        for k in case.cluster.node_types
    ]
    count = len(case.jobs["submit_time"])
    jobs = {**case.jobs, "workload": [NAMES[row * row % 3] for row in range(count)]}
    return replace(case, jobs=jobs, cluster=wt.ClusterSpec(tuple(kinds), case.cluster.name))


def fitting(model: wt.Slowdown, case: Case) -> wt.Slowdown:
    """The part of a model that speaks of what a run has."""
    raw = model.to_mapping()
    if case.cluster.is_pool or case.placement == "pool":
        return wt.Slowdown()
    if all(kind.cpus is None for kind in case.cluster.node_types):
        raw["cpu"] = 0.0
    if case.sharing == "pooled":
        raw |= {"share": 1.0, "share_by": ()}
    return wt.Slowdown.from_mapping(raw)


@st.composite
def slowed_cases(draw: st.DrawFn) -> tuple[Case, wt.Slowdown]:
    """Runs that both engines fly, on whole nodes, devices and pools."""
    orders = draw(st.sampled_from((None, st.sampled_from(SERVICE))))
    on_nodes = cases(policy=orders, rules=(None, "strict", "skip", *BACKFILLING))
    drawn: Case = draw(st.one_of(on_nodes, device_cases(policy=orders)))
    preempts = resolve_policy(drawn.policy).preemptive
    changes: dict[str, Any] = {}
    if drawn.queueing in BACKFILLING and preempts:
        changes["queueing"] = "skip"
    if isinstance(drawn.policy, (Las, Tiresias)):
        changes["restore_time"] = 0.0
        changes["save_time"] = min(drawn.save_time, 0.25)
    if not drawn.cluster.is_pool:
        drawn = with_racks(drawn, draw(st.integers(1, 3)))
        if drawn.sharing is not None and ":topology" not in drawn.placement:
            changes["placement"] = drawn.placement + draw(st.sampled_from(TOPOLOGIES))
    case = replace(drawn, **changes)
    return case, fitting(draw(models()), case)
