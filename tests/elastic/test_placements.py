"""Where the options of elastic jobs go under each placement, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt

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
