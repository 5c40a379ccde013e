"""Where the options of elastic jobs go under each placement, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from elastic_cases import ToyModel, jobs_of

import windtunnel as wt
from windtunnel.report.level_rows import level_tables

#: Three racks of two nodes of four GPUs.
RACKS = wt.ClusterSpec((wt.NodeType(6, 4, "A", nodes_per_rack=2),))


def nodes(sizes: list[int], placement: str, cluster: Any = RACKS) -> list[list[int]]:
    """Return the nodes of jobs without throughput models that come one by one, and stay."""
    count = len(sizes)
    jobs = {
        "submit_time": list(range(count)),
        "duration": [1000] * count,
        "num_gpus": sizes,
    }
    found = [
        wt.simulate(
            jobs, cluster, "fixed-plan", placement=placement, penalty=0.0, until=500, engine=engine
        )
        for engine in ("compiled", "reference")
    ]
    one, other = (out.table["nodes"].to_pylist() for out in found)
    assert one == other
    return one


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ("best_fit", [[0], [0], [0], [1]]),
        ("first_fit", [[0], [0], [0], [1]]),
        ("spread", [[0], [1], [2], [3]]),
        ("worst_fit", [[0], [1], [2], [3]]),
        ("most_idle", [[0], [1], [2], [3]]),
        ("least_idle", [[0], [0], [0], [1]]),
    ],
)
def test_single_nodes(placement: str, expected: list[list[int]]) -> None:
    assert nodes([2, 1, 1, 3], placement) == expected


def test_pieces_of_a_gang_go_one_by_one() -> None:
    """A gang of 8 is two pieces of 4: empty nodes; the third job's 2 GPUs go where it says."""
    assert nodes([2, 8, 2], "best_fit") == [[0], [1, 2], [0]]
    assert nodes([2, 8, 2], "spread") == [[0], [1, 2], [3]]


def test_pieces_stay_in_a_rack() -> None:
    """Node 0 is in use: rack 0 has too little, and of the others rack 1 comes first."""
    assert nodes([1, 8], "best_fit:topology=rack") == [[0], [2, 3]]
    assert nodes([1, 1, 1, 8], "spread:topology=rack") == [[0], [1], [2], [4, 5]]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("placement", ["best_fit:topology=rack", "tree"])
def test_the_rack_with_the_fewest_gpus_free_to_the_job_is_taken(
    placement: str, engine: Any
) -> None:
    """Of B both racks have 8 GPUs: the first one, though it has 8 of A besides."""
    jobs = {
        "submit_time": [0],
        "duration": [10],
        "num_gpus": [8],
        "gpu_type": ["B"],
        "topology": ["required:rack"],
    }
    cluster, racks = "2x4:A,4x4:B", "rack=4"
    out = wt.simulate(
        jobs, cluster, "fixed-plan", penalty=0, topology=racks, placement=placement, engine=engine
    )
    assert out.table["nodes"].to_pylist() == [[2, 3]]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_options_may_need_more_cores_than_the_smallest_node_has(engine: Any) -> None:
    """Four GPUs with two cores each: the node of 8 cores has them, beside one of 2."""
    model = ToyModel((("ga", (1,), 1, 4.0), ("ga", (4,), 2, 1.0)))
    cluster = wt.ClusterSpec((wt.NodeType(1, 2, "B", cpus=2), wt.NodeType(1, 4, "A", cpus=8)))
    jobs = jobs_of((0, "toy", 4, "ga", 10))
    out = wt.simulate(jobs, cluster, "fixed-plan", models={"toy": model}, penalty=0, engine=engine)
    assert (out.table["nodes"].to_pylist(), out.table["end_time"].to_pylist()) == ([[1]], [10])


@pytest.mark.parametrize(("topology", "expected"), [("rack", [1, 3]), ("rack-only", [])])
def test_pieces_spill_over_racks_or_wait(topology: str, expected: list[int]) -> None:
    """The job on node 1 has ended: each of two racks has one empty node."""
    cluster = wt.ClusterSpec((wt.NodeType(4, 4, "A", nodes_per_rack=2),))
    jobs = {
        "submit_time": [0, 1, 2, 10],
        "duration": [1000, 5, 1000, 1000],
        "num_gpus": [1, 1, 1, 8],
    }
    for engine in ("compiled", "reference"):
        out = wt.simulate(
            jobs,
            cluster,
            "fixed-plan",
            placement=f"spread:topology={topology}",
            penalty=0.0,
            until=500,
            engine=engine,
        )
        assert out.table["nodes"].to_pylist() == [[0], [1], [2], expected]


def test_what_an_option_says_itself_is_refused() -> None:
    with pytest.raises(wt.errors.SpecError, match="how its GPUs lie on nodes"):
        nodes([1], "best_fit:gang=fill")
    with pytest.raises(wt.errors.SpecError, match="nodes_per_rack"):
        nodes([1], "best_fit:topology=rack", "2x4")


#: 2 blocks of 2 racks of 2 nodes of 4 GPUs.
LEVELS = "block=4,rack=2"


def in_tree(jobs: dict[str, list[Any]], **options: Any) -> list[tuple[float | None, Any]]:
    """Return start and nodes of jobs, the same on both engines."""
    given: dict[str, Any] = {"placement": "tree", "penalty": 0.0, "until": 500, **options}
    found = []
    for engine in ("compiled", "reference"):
        out = wt.simulate(jobs, "8x4", "fixed-plan", topology=LEVELS, engine=engine, **given)
        starts, where = (out.table[name].to_pylist() for name in ("start_time", "nodes"))
        found.append(list(zip(starts, where, strict=True)))
    assert found[0] == found[1]
    return found[0]


def test_pieces_of_unlike_size_lie_in_the_domain_that_is_required() -> None:
    """6 GPUs are pieces of 4 and 2. Rack 0 has 3 + 0 GPUs left, so the empty rack 1 serves.

    The next job of 6 finds 0 + 2 GPUs there, and goes on to rack 2; the job of 2 fills rack 1,
    the tightest one with as many on a node.
    """
    jobs = {
        "submit_time": [0, 1, 2, 3, 4],
        "duration": [1000] * 5,
        "num_gpus": [1, 4, 6, 6, 2],
        "topology": [None, None, *["required:rack"] * 3],
    }
    assert in_tree(jobs) == [(0, [0]), (1, [1]), (2, [2, 3]), (3, [4, 5]), (4, [3])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("required:rack", (None, [])),
        ("required:block", (30, [5, 7])),
        ("preferred:rack", (30, [5, 7])),
        ("preferred:host", (30, [5, 7])),
        ("unconstrained", (30, [3, 5])),
        (None, (30, [3, 5])),
    ],
)
def test_required_waits_and_preferred_goes_up(words: str | None, expected: Any) -> None:
    """Nodes 3, 5 and 7 are free at 30: no rack holds two pieces of 4 GPUs, and block 1 does."""
    jobs = {
        "submit_time": [*range(8), 30],
        "duration": [20 if node in (3, 5, 7) else 1000 for node in range(8)] + [10],
        "num_gpus": [4] * 8 + [8],
        "topology": [None] * 8 + [words],
    }
    assert in_tree(jobs)[-1] == expected
    if words:
        jobs["topology"] = [None] * 9
        assert in_tree(jobs, topology_request=f"{words}@8")[-1] == expected


def test_options_are_those_that_their_domain_holds() -> None:
    """A job that asks for one host has no option of several nodes; one of 8 GPUs is refused."""
    jobs = {"submit_time": [0], "duration": [9], "num_gpus": [8], "topology": ["required:host"]}
    with pytest.raises(wt.SchemaError, match="of what its topology leaves it"):
        in_tree(jobs)
    table = wt.simulate(
        jobs, "8x4", "fixed-plan", topology=LEVELS, placement="tree", oversize="reject"
    ).table
    assert table["status"].to_pylist() == ["rejected"]


@pytest.mark.parametrize(
    ("placement", "words", "message"),
    [
        ("tree:balanced", None, "spreads pods of one size evenly"),
        ("tree", "slice=rack/2", "slices are of pods of one size"),
    ],
)
def test_what_counts_pods_of_one_size_is_refused(
    placement: str, words: str | None, message: str
) -> None:
    jobs = {"submit_time": [0], "duration": [9], "num_gpus": [8], "topology": [words]}
    with pytest.raises((wt.SpecError, wt.SchemaError), match=message):
        in_tree(jobs, placement=placement)


def test_no_request_without_a_tree() -> None:
    jobs: dict[str, list[Any]] = {"submit_time": [0], "duration": [9], "num_gpus": [8]}
    with pytest.raises(wt.SpecError, match="looks at no levels"):
        in_tree(jobs, placement="best_fit", topology_request="required:rack")


def test_what_requests_cost_is_not_known_of_elastic_jobs() -> None:
    """Nor do pages ask for it; over how many domains jobs went they say."""
    jobs = {"submit_time": [0], "duration": [9], "num_gpus": [8], "topology": ["required:rack"]}
    out = wt.simulate(jobs, "8x4", "fixed-plan", topology=LEVELS, placement="tree")
    with pytest.raises(wt.SpecError, match="elastic jobs"):
        out.topology_losses()
    (title, _), *others = level_tables({"run": out})
    assert title == "Domains that jobs went over"
    assert others == []
    assert out.domains()["used"].to_pylist() == [1, 1, 2]
