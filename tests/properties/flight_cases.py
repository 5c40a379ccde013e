"""What the property tests draw: jobs with many ties, clusters of every kind, and runs of them.

Times are multiples of 1/4 s and small, so that equal instants are frequent and float64 is exact.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.placements.scored_catalogue import scored_placements
from windtunnel.policies.service_order import Gittins, Las, Srsf, Tiresias
from windtunnel.sim.contract import FunctionPolicy

Jobs = dict[str, list[Any]]

#: Share of the cases flown: a twentieth in `make test` (all of them in `make test-engines`),
#: twenty times as many where somebody looks for trouble.
_SHARE = {"brief": 0.05, "quarter": 0.25, "explore": 20.0}.get(
    os.environ.get("HYPOTHESIS_PROFILE", ""), 1.0
)

POLICIES = (
    "fifo",
    "sjf",
    "sjf-estimate",
    "priority",
    "sjf-preemptive",
    "srtf",
    "priority-preemptive",
)
NOT_PREEMPTIVE = POLICIES[:4]
#: Static orders with parameters.
KEYED = (
    "sjf:aging=0.5",
    "sjf:by=estimate:aging=2",
    "priority:aging=1.5",
    "qssf:by=rolling",
    "edf:slack=2",
    "sju",
    "sjf-preemptive:by=rolling:last=2",
    "priority-preemptive:aging=4",
)
BACKFILLING = ("easy", "easy-sjbf", "easy-perfect", "conservative")


def draws(number: int) -> int:
    """Return how many of so many cases are flown in this run."""
    return max(1, round(number * _SHARE))


def largest_first(jobs: wt.Jobs) -> Any:
    """Tier 1: most GPUs first, with many ties."""
    return -jobs.num_gpus


def short_when_late(job: wt.JobView, now: float) -> float:
    """Tier 2: depends on the job and on the instant at which it is asked."""
    return (job.duration if now > 3 else job.num_gpus) - job.remaining / 2


@dataclass(frozen=True)
class Case:
    """One run: everything that `windtunnel.simulate` takes but the engine."""

    jobs: Jobs
    cluster: wt.ClusterSpec
    policy: Any
    queueing: str | None
    placement: str | None
    save_time: float
    restore_time: float
    until: float | None
    sharing: str | None = None
    resources: str = "all"
    slowdown: wt.Slowdown | None = None
    events: str = "batch"

    def fly(self, engine: str, **changes: Any) -> wt.Outcome:
        """Run it on an engine."""
        case = replace(self, **changes)
        return wt.simulate(
            case.jobs,
            case.cluster,
            case.policy,
            queueing=case.queueing,
            placement=case.placement,
            sharing=case.sharing,
            resources=case.resources,
            engine=engine,
            save_time=case.save_time,
            restore_time=case.restore_time,
            slowdown=case.slowdown,
            until=case.until,
            events=case.events,
            oversize="reject",
            incomplete="reject",
        )


def quarters(low: int, high: int) -> st.SearchStrategy[float]:
    """Multiples of 1/4 s from ``low`` to ``high`` s."""
    return st.integers(4 * low, 4 * high).map(lambda count: count / 4)


def job_lists(
    *, whole: bool = True, max_size: int = 14, typed: bool = True, min_size: int = 0
) -> st.SearchStrategy[Jobs]:
    """Jobs tables as mappings, any order of submission.

    Args:
        whole: whole GPUs only, in tasks; else shares and CPU requests.
        max_size: most jobs.
        typed: some jobs name GPU types.
        min_size: fewest jobs.
    """
    columns: dict[str, st.SearchStrategy[Any]] = {
        "submit_time": st.one_of(st.integers(0, 3).map(float), quarters(0, 12)),
        "duration": st.one_of(st.just(0.0), st.integers(1, 4).map(float), quarters(0, 15)),
        "estimate": st.integers(0, 4).map(float),
        "priority": st.one_of(st.none(), st.integers(-2, 2).map(float)),
    }
    if typed:
        kinds = ("A", "B", "A|B", " B | A ", "C", "")
        columns["gpu_type"] = st.one_of(st.none(), st.none(), st.sampled_from(kinds))
    if whole:
        columns["task"] = st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(1, 5)))
        columns["num_cpus"] = st.none()
    else:
        columns["num_gpus"] = st.one_of(
            st.integers(0, 6).map(float),
            st.sampled_from((0.1, 0.25, 0.3, 0.5, 0.7, 1 / 3, 1.5)),
        )
        columns["num_cpus"] = st.one_of(st.none(), st.sampled_from((0.0, 0.5, 1.0, 2.0, 4.0)))
    rows = st.lists(st.tuples(*columns.values()), min_size=min_size, max_size=max_size)
    return rows.map(lambda drawn: _columns(list(columns), drawn))


def _columns(names: list[str], rows: list[tuple[Any, ...]]) -> Jobs:
    jobs = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    if "task" in jobs:
        pairs = jobs.pop("task")
        # Without a number of tasks the first number is the whole gang, up to four times as large.
        jobs["num_gpus"] = [float(g * (t or 1 + g % 4)) for g, t in pairs]
        jobs["num_tasks"] = [t for _, t in pairs]
    return jobs


@st.composite
def with_unknowns(draw: st.DrawFn, jobs: st.SearchStrategy[Jobs]) -> Jobs:
    """Jobs of which, now and then, one lacks what a run needs."""
    drawn = draw(jobs)
    count = len(drawn["duration"])
    if count and draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from(("submit_time", "duration", "num_gpus")))
        drawn[name] = list(drawn[name])
        drawn[name][draw(st.integers(0, count - 1))] = None
    return drawn


def node_clusters() -> st.SearchStrategy[wt.ClusterSpec]:
    """Clusters with nodes: alike, of several sizes and types, and of more than one bitset word."""
    kinds = st.one_of(st.none(), st.sampled_from("AB"))
    uniform = st.builds(wt.ClusterSpec.uniform, st.integers(1, 4), st.integers(1, 5), kinds)
    node_type = st.builds(wt.NodeType, st.integers(1, 3), st.integers(0, 5), kinds)
    mixed = (
        st.lists(node_type, min_size=1, max_size=4)
        .filter(lambda types: any(t.gpus for t in types))
        .map(lambda types: wt.ClusterSpec(tuple(types), "mixed"))
    )
    # Filler nodes of a type nobody asks for push the useful ones behind the first 64.
    wide = st.tuples(st.integers(60, 130), mixed).map(
        lambda drawn: wt.ClusterSpec(
            (wt.NodeType(drawn[0], 1, "filler"), *drawn[1].node_types), "wide"
        )
    )
    return st.one_of(uniform, uniform, mixed, mixed, wide)


def pool_clusters() -> st.SearchStrategy[wt.ClusterSpec]:
    """Pools, with and without core limits, one or several GPU types."""
    cores = st.one_of(st.none(), st.sampled_from((0.5, 2.0, 4.0, 6.5)))
    one = st.builds(wt.ClusterSpec.pool, st.integers(1, 8), cores)
    part = st.tuples(st.integers(1, 5), cores)
    several = st.tuples(part, part).map(
        lambda parts: wt.ClusterSpec(
            tuple(
                wt.NodeType(1, gpus, kind, cpus)
                for kind, (gpus, cpus) in zip("AB", parts, strict=True)
            ),
            "pools",
            is_pool=True,
        )
    )
    return st.one_of(one, one, several)


def device_clusters(*, racks: bool = False) -> st.SearchStrategy[wt.ClusterSpec]:
    """Clusters whose nodes have cores and memory, here and there; some without GPUs."""
    per_rack = st.integers(1, 3) if racks else st.none()
    node_type = st.builds(
        wt.NodeType,
        count=st.integers(1, 3),
        gpus=st.integers(0, 4),
        gpu_type=st.sampled_from((None, "A", "B")),
        cpus=st.sampled_from((None, 2.0, 4.0, 9.5)),
        mem_gib=st.sampled_from((None, 4.0, 10.0)),
        nodes_per_rack=per_rack,
    )
    some = st.lists(node_type, min_size=1, max_size=4)
    narrow = some.filter(lambda types: any(t.gpus for t in types))
    filler = wt.NodeType(
        61, 1, "filler", 1.0, 1.0, 7 if racks else None
    )  # pushes the others behind the first 64
    wide = narrow.map(lambda types: [filler, *types])
    return st.one_of(narrow, narrow, wide).map(lambda ts: wt.ClusterSpec(tuple(ts), "devices"))


@st.composite
def device_jobs(draw: st.DrawFn, *, pooled: bool) -> Jobs:
    """Jobs that ask for whole GPUs or shares, cores and memory, in one task or several."""
    each = st.one_of(
        st.integers(0, 4).map(float), st.sampled_from((0.1, 0.25, 0.3, 0.5, 0.7, 0.999))
    )
    if pooled:
        each = st.one_of(each, st.sampled_from((1.5, 2.25)))
    row = st.tuples(each, st.sampled_from((None, 1, 1, 2, 3, 5)), st.sampled_from((0.0, 0.5, 2.0)),
                    st.sampled_from((None, 0.0, 1.0, 3.5)))  # fmt: skip
    jobs = draw(job_lists(whole=True))
    rows = draw(st.lists(row, min_size=len(jobs["submit_time"]), max_size=20))
    rows = rows[: len(jobs["submit_time"])]
    jobs["num_gpus"] = [gpus * (tasks or 1) for gpus, tasks, _, _ in rows]
    jobs["num_tasks"] = [tasks for _, tasks, _, _ in rows]
    jobs["num_cpus"] = [cores * (tasks or 1) for _, tasks, cores, _ in rows]
    jobs["mem_gib"] = [None if mem is None else mem * (tasks or 1) for _, tasks, _, mem in rows]
    return jobs


@st.composite
def device_cases(
    draw: st.DrawFn,
    *,
    policy: Any = None,
    rules: tuple[str | None, ...] = (None, "strict", "skip", "easy", "easy_sjbf", "conservative"),
    racks: bool = False,
) -> Case:
    """Runs on nodes with devices, cores and memory, under every placement that there is."""
    sharing = draw(st.sampled_from(("devices", "devices", "pooled")))
    names = [
        name
        for name, kind in scored_placements().items()
        if sharing == "devices" or not kind.needs_devices
    ]
    options = st.sampled_from(
        ("", "", ":ties=name", ":ties=random", ":gang=fill", ":scores=float:gang=fill")
    )
    topology = st.sampled_from((":topology=rack", ":topology=rack-only") if racks else ("",))
    chosen = draw(st.sampled_from(POLICIES) if policy is None else policy)
    preempts = chosen in POLICIES[4:] or not isinstance(chosen, str)
    return Case(
        jobs=draw(device_jobs(pooled=sharing == "pooled")),
        cluster=draw(device_clusters(racks=racks)),
        policy=chosen,
        queueing=draw(st.sampled_from(rules[:3] if preempts else rules)),
        placement=draw(st.sampled_from(names)) + draw(options) + draw(topology),
        save_time=draw(st.sampled_from((0.0, 0.25))),
        restore_time=0.0,
        until=draw(st.one_of(st.none(), st.none(), quarters(0, 25))),
        sharing=sharing,
        resources=draw(st.sampled_from(("all", "all", "gpus"))),
    )


def service_cases() -> st.SearchStrategy[Case]:
    """Runs under orders by service, where changing over costs less than a turn."""
    kinds = (Las(1.0), Las(2.75), Tiresias(1.0, (2.0, 8.0)), Tiresias(3.0, 5.0), Srsf())
    policy = st.sampled_from((*kinds, Gittins([1.0, 2.0, 5.0, 9.0, 30.0], 1.0)))
    return st.builds(
        replace,
        cases(policy=policy),
        save_time=st.just(0.25),
        restore_time=st.sampled_from((0, 0.5)),
    )


def policies() -> st.SearchStrategy[Any]:
    """Built-in policies and functions of tiers 1 and 2, preemptive or not."""
    made = [
        FunctionPolicy(largest_first),
        FunctionPolicy(largest_first, "largest-preemptive", preemptive=True),
        FunctionPolicy(short_when_late),
        FunctionPolicy(short_when_late, "short-preemptive", preemptive=True),
    ]
    return st.sampled_from([*POLICIES, *KEYED, "srtf", "sjf-preemptive", *BACKFILLING, *made])


def backfilling_cases(**fixed: Any) -> st.SearchStrategy[Case]:
    """Runs that backfill, under the policies named for it and under any order."""
    named = cases(policy=st.sampled_from(BACKFILLING), rules=(None,), **fixed)
    orders = st.sampled_from([*NOT_PREEMPTIVE, FunctionPolicy(largest_first)])
    ordered = cases(policy=orders, rules=("easy", "easy_sjbf", "conservative"), **fixed)
    return st.one_of(named, named, ordered)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    horizon: bool = True,
    policy: Any = None,
    rules: tuple[str | None, ...] = (None, "strict", "skip"),
) -> Case:
    """Runs of every kind."""
    on = draw(st.sampled_from(("nodes", "nodes", "pool", "nodes as pool")))
    if on == "pool":
        cluster, placement = draw(pool_clusters()), draw(st.sampled_from((None, "pool", "spread")))
    else:
        cluster = draw(node_clusters())
        placement = (
            "pool" if on == "nodes as pool" else draw(st.sampled_from(("best_fit", "spread")))
        )
    whole = on == "nodes" or draw(st.booleans())
    until = draw(st.one_of(st.none(), st.none(), quarters(0, 25))) if horizon else None
    return Case(
        jobs=draw(with_unknowns(job_lists(whole=whole))),
        cluster=cluster,
        policy=draw(policies() if policy is None else policy),
        queueing=draw(st.sampled_from(rules)),
        placement=placement,
        save_time=draw(st.sampled_from((0.0, 0.0, 0.25, 2.0))),
        restore_time=draw(st.sampled_from((0.0, 0.0, 1.0))),
        until=until,
    )
