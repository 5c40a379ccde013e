"""Jobs that share uplinks: closed forms on a star and a two-level tree, and max-min fairness."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.cluster.levels import Levels
from windtunnel.errors import SpecError
from windtunnel.sim.uplinks import fair_rates

ENGINES = ("compiled", "reference")


def ends(jobs: list[tuple[float, float, int]], cluster: str, engine: Any, **more: Any) -> list[Any]:
    """Ends of jobs of (submission, duration, GPUs)."""
    submit, duration, gpus = zip(*jobs, strict=True)
    table = {"submit_time": submit, "duration": duration, "num_gpus": gpus}
    found: list[Any] = (
        wt.simulate(table, cluster, engine=engine, **more).table["end_time"].to_pylist()
    )
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_star_of_hosts(engine: str) -> None:
    # Nodes of two GPUs: the first job is on nodes 0 and 1, the second on 1 and 2. Node 1's uplink
    # carries what one of them wants: both go at 1/2 until the shorter one is done.
    network = "traffic=4,link.host=4"
    assert ends([(0, 10, 3), (0, 4, 3)], "3x2", engine, slowdown=network) == [14, 8]
    # With room for both nobody is slowed; alone the first one always has all of it.
    network = "traffic=4,link.host=8"
    assert ends([(0, 10, 3), (0, 4, 3)], "3x2", engine, slowdown=network) == [10, 4]
    # An uplink of half of what one wants halves both again, and the one that stays alone.
    assert ends([(0, 10, 3), (0, 4, 3)], "3x2", engine, slowdown="traffic=4,link.host=2") == [
        28,
        16,
    ]
    # A job inside one node crosses nothing.
    network = "traffic=4,link.host=1"
    assert ends([(0, 10, 2), (0, 4, 2)], "3x2", engine, slowdown=network) == [10, 4]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("jobs", [1, 2, 3, 5])
def test_jobs_through_one_hub_share_its_uplink(engine: str, jobs: int) -> None:
    """Processor sharing: the i-th of k jobs ends (k - i) times what it has more after the last."""
    # Job i is on a node of its own leaf and on one of the hub; the hub carries what one wants.
    paths = [(name,) for at in range(jobs) for name in (f"leaf{at}", "hub")]
    star = Levels(("rack",), paths=tuple(paths))
    work = [60.0 * (at + 1) for at in range(jobs)]
    table = [(0.0, seconds, 2) for seconds in work]
    model = {"slowdown": "traffic=6,link.rack=6", "topology": star}
    found = ends(table, f"{2 * jobs}x1", engine, **model)
    expected, before = [], 0.0
    for at, seconds in enumerate(work):
        last = work[at - 1] if at else 0.0
        before += (jobs - at) * (seconds - last)
        expected.append(before)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_level_tree(engine: str) -> None:
    # Nodes of one GPU in racks of four. A: nodes 0-4, B: 5-9, C: 10 and 11. A and B share the
    # uplink of rack 1; C crosses hosts' uplinks alone.
    jobs = [(0.0, 12.0, 5), (0.0, 4.0, 5), (0.0, 7.0, 2)]
    topology = {"topology": "rack=4"}
    tree = "traffic=6,link.host=100,link.rack=6"
    assert ends(jobs, "12x1", engine, slowdown=tree, **topology) == [16, 8, 7]
    # Hosts that carry a third of what is wanted are the bottleneck: 1/3 for everybody, always.
    tree = "traffic=6,link.host=2,link.rack=6"
    assert ends(jobs, "12x1", engine, slowdown=tree, **topology) == pytest.approx([36, 12, 21])
    # Rack 1 gives 1/4 each; alone A has 1/2, what one uplink carries of what it wants.
    tree = "traffic=6,link.host=100,link.rack=3"
    assert ends(jobs, "12x1", engine, slowdown=tree, **topology) == [32, 16, 7]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("placement", "end"), [("best_fit", 21), ("tree", 11)])
def test_a_what_if_of_placement(engine: str, placement: str, end: float) -> None:
    # Racks of two nodes with one GPU. A long job on node 0, then two jobs of two: best fit puts
    # them on 1 and 2, 3 and 4, so that both cross the uplink of nodes 2 and 3 at 1/2; by the tree
    # each has a rack of its own.
    jobs = [(0, 99, 1), (1, 10, 2), (1, 10, 2)]
    more = {"topology_request": "preferred:rack"} if placement == "tree" else {}
    more |= {"topology": "rack=2", "slowdown": "traffic=5,link.rack=5", "placement": placement}
    assert ends(jobs, "6x1", engine, **more) == [99, end, end]


@settings(max_examples=200)
@given(
    st.dictionaries(st.integers(0, 20), st.sets(st.integers(0, 5), min_size=1), max_size=8),
    st.lists(st.floats(0.5, 30), min_size=6, max_size=6),
    st.floats(0.5, 20),
)
def test_rates_are_max_min_fair(
    crossing: dict[int, set[int]], capacity: list[float], traffic: float
) -> None:
    """Nothing is overfull; who gets less than all has a full uplink where nobody gets more."""
    asked = {job: sorted(links) for job, links in crossing.items()}
    rates = fair_rates(asked, capacity, traffic)
    used = [sum(rates[job] * traffic for job in asked if link in asked[job]) for link in range(6)]
    for link in range(6):
        assert used[link] <= capacity[link] * (1 + 1e-9)
    for job, links in asked.items():
        assert 0 < rates[job] <= 1
        assert rates[job] == 1 or any(
            used[link] >= capacity[link] * (1 - 1e-9)
            and all(rates[o] <= rates[job] * (1 + 1e-9) for o in asked if link in asked[o])
            for link in links
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("traffic=5", "links"),
        ("link.host=5", "links"),
        ("traffic=5,link.host=0", "links.host"),
        ("traffic=-1,link.host=1", "traffic"),
        ("traffic=5,link.host=1,link.host=2", "twice"),
        ("traffic=5,link.pod=1", "pod"),
        ("traffic=5,link.rack=1", "rack"),
        ("traffic=5,lonk=1", "lonk"),
    ],
)
def test_wrong_models_are_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        wt.simulate({"submit_time": [0], "duration": [1], "num_gpus": [1]}, "2x2", slowdown=text)


def test_a_pool_has_no_uplinks() -> None:
    with pytest.raises(SpecError, match="on a pool"):
        ends([(0, 1, 1)], "pool:2", "auto", slowdown="traffic=1,link.host=1")
