"""What a tier-3 policy may ask the cluster and the queue, and waking it at a later instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel import schema
from windtunnel.cluster.devices import DeviceNode, device_demand
from windtunnel.cluster.free import FreeNodes, FreePool
from windtunnel.cluster.free_devices import FreeDevices
from windtunnel.cluster.parts import free_units, holding_types, nodes_of_types, restricted
from windtunnel.sim.contract import FunctionPolicy
from windtunnel.sim.problem import build
from windtunnel.site.scheduler import EVENT_ORDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIXED = wt.ClusterSpec(
    (wt.NodeType(1, 4, "T4"), wt.NodeType(2, 2, "V100"), wt.NodeType(1, 4, "T4")), "mixed"
)
JOBS = {
    "job_id": ["a", "b", "c", "d"],
    "submit_time": [0.0, 1.0, 2.0, 2.0],
    "duration": [6.0, 3.0, 1.0, 2.0],
    "num_gpus": [2.0, 4.0, 1.0, 1.0],
    "gpu_type": [None, "T4", "V100", None],
    "vc": ["x", "x", None, "y"],
}


def spied(
    see: Callable[[float, Any, Any], Any], cluster: Any = MIXED, jobs: Any = JOBS
) -> list[Any]:
    """What ``see`` returns at each decision of a policy that starts whoever fits, by arrival."""
    seen = []

    def spy(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        seen.append((now, see(now, queue, cluster)))
        for job in queue:
            if cluster.fit(job) is not None:
                yield wt.Start(job)

    wt.simulate(jobs, cluster, spy)
    return seen


def ids(jobs: Any) -> list[str]:
    return [job.job_id for job in jobs]


def test_what_is_free_and_who_has_it() -> None:
    seen = spied(
        lambda now, queue, cluster: (
            cluster.free_by_node,
            cluster.free_by_type,
            cluster.usage_by_vc,
        )
    )
    # a goes to the first V100 node, which it fills; b to the first T4 node.
    assert seen[:3] == [
        (0, ([4, 2, 2, 4], {"T4": 8, "V100": 4}, {})),
        (1, ([4, 0, 2, 4], {"T4": 8, "V100": 2}, {"x": 2})),
        (2, ([0, 0, 2, 4], {"T4": 4, "V100": 2}, {"x": 6})),
    ]
    # c and d share the second one; b and d end at 4, c at 3.
    assert seen[3] == (3, ([0, 0, 1, 4], {"T4": 4, "V100": 1}, {"x": 6, "y": 1}))
    assert seen[-1] == (6, ([4, 2, 2, 4], {"T4": 8, "V100": 4}, {}))


def test_the_whole_cluster_by_type() -> None:
    def see(now: float, queue: Any, cluster: Any) -> Any:
        return cluster.gpu_types, cluster.gpus_by_type

    assert spied(see)[0][1] == (("T4", "V100"), {"T4": 8, "V100": 4})
    plain = {name: JOBS[name] for name in ("submit_time", "duration", "num_gpus")}
    assert spied(see, "2x4", plain)[0][1] == ((None,), {None: 8})

    def see_pool(now: float, queue: Any, cluster: Any) -> Any:
        return cluster.free_by_node, cluster.free_by_type

    half = plain | {"num_gpus": [0.5, 1.0, 1.0, 1.0]}
    assert spied(see_pool, "pool:4", half)[1][1] == ([3.5], {None: 3.5})


def test_what_came_and_went() -> None:
    seen = spied(lambda now, queue, cluster: (ids(queue.arrived), ids(cluster.finished)))
    assert seen == [
        (0, (["a"], [])),
        (1, (["b"], [])),
        (2, (["c", "d"], [])),
        (3, ([], ["c"])),
        (4, ([], ["b", "d"])),
        (6, ([], ["a"])),
    ]


def test_where_a_job_runs_and_what_class_it_is_of() -> None:
    def see(now: float, queue: Any, cluster: Any) -> Any:
        running = {job.job_id: cluster.where(job) for job in cluster.running}
        waiting = {job.job_id: (cluster.where(job), cluster.demand_class(job)) for job in queue}
        return running, waiting

    seen = spied(see)
    assert seen[2][1][0] == {"a": [(1, 2)], "b": [(0, 4)]}
    assert seen[3][1][0] == {"a": [(1, 2)], "b": [(0, 4)], "d": [(2, 1)]}
    assert [where for where, _ in seen[2][1][1].values()] == [None, None]
    classes = [kind for _, kind in seen[2][1][1].values()]
    assert classes[0] != classes[1]  # c takes V100 only


def test_fit_on_some_types() -> None:
    def see(now: float, queue: Any, cluster: Any) -> Any:
        kinds: list[Any] = [None, ("T4",), ("V100",), ("T4", "V100"), ()]
        return [cluster.fit(queue[0], kind) for kind in kinds] if now == 0 else None

    jobs = {"submit_time": [0], "duration": [5], "num_gpus": [2]}
    assert spied(see, jobs=jobs)[0][1] == [[(1, 2)], [(0, 2)], [(1, 2)], [(1, 2)], None]
    # A gang too large for a node of one type lies over several; that type alone tells its layout.
    gang = {"submit_time": [0], "duration": [5], "num_gpus": [4], "num_tasks": [4]}
    assert spied(see, jobs=gang)[0][1] == [[(0, 4)], [(0, 4)], [(1, 2), (2, 2)], [(0, 4)], None]
    only = jobs | {"gpu_type": ["T4"]}
    assert spied(see, jobs=only)[0][1] == [[(0, 2)], [(0, 2)], None, [(0, 2)], None]
    assert spied(lambda now, queue, cluster: cluster.fit(2.0, ("T4",)), jobs=jobs)[0][1] == [(0, 2)]


def test_fit_without_some_jobs_changes_nothing() -> None:
    def see(now: float, queue: Any, cluster: Any) -> Any:
        if now != 1:
            return None
        hold = cluster.running
        before = cluster.free_by_node
        found = [cluster.fit(queue[0]), cluster.fit(queue[0], without=hold)]
        assert cluster.free_by_node == before
        return found, cluster.fit(queue[0], ("V100",), hold)

    jobs = {
        "submit_time": [0, 1],
        "duration": [5, 5],
        "num_gpus": [12, 4],
        "num_tasks": [None, 1],
    }
    seen = spied(see, jobs=jobs)
    assert seen[1][1] == ([None, [(0, 4)]], None)


def test_a_place_that_was_asked_for_by_type_is_taken() -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        for job in queue:
            where = cluster.fit(job, ("T4",))
            if where is not None:
                yield wt.Start(job, where)

    jobs = {"submit_time": [0, 0, 0], "duration": [5, 5, 5], "num_gpus": [2, 4, 4]}
    out = wt.simulate(jobs, MIXED, decide)
    assert out.table["nodes"].to_pylist() == [[0], [3], [0]]
    assert out.table["start_time"].to_pylist() == [0, 0, 5]


def test_types_that_the_cluster_lacks() -> None:
    with pytest.raises(wt.SpecError, match=r"gpu_types: unknown name 'V10'. Did you mean 'V100'"):
        spied(lambda now, queue, cluster: cluster.fit(queue[0], ("V10",)))


# Waking


def patient(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    """Start each job 2.5 s after it came."""
    for job in queue:
        if now >= job.submit_time + 2.5:
            yield wt.Start(job)
        else:
            yield wt.Wake(job.submit_time + 2.5)


@pytest.mark.parametrize("events", EVENT_ORDERS)
def test_a_policy_is_woken(events: str) -> None:
    jobs = {"submit_time": [0, 1, 7], "duration": [1, 1, 1], "num_gpus": [1, 1, 1]}
    out = wt.simulate(jobs, "pool:4", patient, events=events)
    assert out.table["start_time"].to_pylist() == [2.5, 3.5, 9.5]
    # Arrivals at 0, 1, 7; ends at 3.5, 4.5, 10.5; woken at 2.5, at 9.5, and at 3.5 as well.
    assert out.flight.scheduling_points == 8
    assert wt.simulate(jobs, "pool:4", patient, events=events, until=3).table[
        "start_time"
    ].to_pylist() == [2.5, None, None]


def always(decision: Callable[[float], Any]) -> Callable[..., Iterator[Any]]:
    def decide(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        yield decision(now)

    return decide


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (lambda now: now, "asks to decide at 3.0; expected a later time"),
        (lambda now: now - 1, "asks to decide at 2.0"),
        (lambda now: float("nan"), "asks to decide at nan"),
        (lambda now: float("inf"), "asks to decide at inf"),
        (lambda now: now + 1, "starts none of 1 waiting jobs on an idle cluster"),
    ],
)
def test_waking_that_is_refused(at: Callable[[float], float], message: str) -> None:
    jobs = {"submit_time": [3], "duration": [1], "num_gpus": [1]}
    with pytest.raises(wt.PolicyError, match=message):
        wt.simulate(jobs, "pool:1", always(lambda now: wt.Wake(at(now))))


def test_rounds_are_not_woken() -> None:
    policy = FunctionPolicy(always(lambda now: wt.Wake(now + 1)), every=5.0)
    jobs = {"submit_time": [3], "duration": [1], "num_gpus": [1]}
    with pytest.raises(wt.PolicyError, match="decides in rounds"):
        wt.simulate(jobs, "pool:1", policy)


# Parts of a cluster

DEVICE_NODES = st.lists(
    st.builds(
        DeviceNode,
        name=st.uuids().map(str),
        gpus=st.integers(0, 4),
        gpu_type=st.sampled_from(("A", "B", "C")),
        cores=st.sampled_from((None, 4000, 9000)),
        mem=st.sampled_from((None, 64)),
    ),
    min_size=1,
    max_size=6,
)


@given(
    DEVICE_NODES,
    st.sampled_from(({"gpus": 1}, {"gpus": 3}, {"milli": 250}, {"milli": 700, "cores": 3000})),
    st.integers(1, 5),
    st.sampled_from((None, frozenset("A"), frozenset("AB"))),
    st.sampled_from((frozenset("A"), frozenset("BC"), frozenset("ABC"))),
    st.booleans(),
)
def test_a_restricted_demand_is_the_demand_of_those_types(
    nodes: Any,
    wanted: Any,
    count: int,
    types: Any,
    part: Any,
    pooled: bool,  # noqa: FBT001 - drawn
) -> None:
    demand = device_demand(nodes, **wanted, count=count, types=types, pooled=pooled)
    free = FreeDevices(nodes, pooled=pooled)
    kinds = [node.gpu_type for node in nodes]
    found = restricted(demand, free, nodes_of_types(kinds, part))
    both = part if types is None else part & types
    assert found == device_demand(nodes, **wanted, count=count, types=both, pooled=pooled)
    assert free_units(free) == [node.gpus * 1000 for node in nodes]
    holding = {
        kind
        for kind in set(kinds)
        if device_demand(
            nodes,
            **wanted,
            count=count,
            types=frozenset({kind}) & (types or {kind}),
            pooled=pooled,
        ).capacity
        >= count
    }
    assert holding_types(demand, free, kinds) == holding


def test_restricted_whole_gpus_and_pools() -> None:
    jobs = {"submit_time": [0], "duration": [5], "num_gpus": [6], "num_tasks": [2]}
    free = FreeNodes([4, 2, 7, 8])
    cluster = wt.ClusterSpec(
        tuple(wt.NodeType(1, gpus, kind) for gpus, kind in ((4, "A"), (2, "A"), (7, "B"), (8, "B")))
    )
    seen = build(schema.as_jobs(jobs), cluster, as_pool=False).demands
    demand = restricted(seen[0], free, 0b0111)
    # Tasks of 3 GPUs: 3 of the first node's 4, none of the second's, 6 of the third's 7.
    assert (demand.allowed, demand.largest, demand.smallest, demand.capacity) == (0b0111, 6, 3, 9)
    assert holding_types(seen[0], free, ["A", "A", "B", "B"]) == {"B"}
    nobody = restricted(seen[0], free, 0b0010)
    assert (nobody.largest, nobody.smallest, nobody.capacity) == (0, 0, 0)
    pool = FreePool([5, 6], [None, None])
    assert restricted(seen[0], pool, 0b01).capacity == 3


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_without_a_job_that_waits_is_without_nothing(engine: str) -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        for job in queue:
            others = [other for other in queue if other is not job]
            assert cluster.where(job) is None
            assert cluster.fit(job, without=others) == cluster.fit(job)
            assert cluster.fit(3, without=others) == cluster.fit(3)
            if cluster.fit(job) is not None:
                yield wt.Start(job)

    assert wt.simulate(JOBS, MIXED, decide, engine=engine).metrics()["num_finished"] == 4
