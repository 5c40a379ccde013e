"""Placements of a user's own: one function, with every rule, on both engines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.placements import PLACEMENTS, placement, split_placement
from windtunnel.testing import assert_outcomes_equal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.placements.asked import CandidateNode, Request

pytestmark = pytest.mark.usefixtures("plugins_forgotten")

ENGINES = ("compiled", "reference")
JOBS: dict[str, list[Any]] = {
    "submit_time": [0, 1, 2, 3, 4, 5, 6, 7],
    "duration": [50, 40, 60, 30, 20, 70, 10, 30],
    "num_gpus": [1, 2, 4, 0.5, 8, 1, 2, 0.5],
    "estimate": [60, 60, 60, 60, 60, 90, 30, 60],
    "mem_gib": [10, 20, 30, 5, 60, 10, 50, 5],
}


def last(node: CandidateNode, request: Request) -> float:
    """Prefer the last node."""
    return node.index


def by_name(node: CandidateNode, request: Request) -> float:
    """Go by much of what is shown, with ties, huge and tiny numbers."""
    wanted = request.num_gpus * (1 + request.mem_gib) + request.num_tasks
    left = node.free_gpus - request.num_gpus
    return math.sin(int(node.name[-1]) * wanted) * 1e12 if left > 1 else -1e-300 * node.num_tasks


def nodes(outcome: wt.Outcome) -> list[list[int]]:
    found: list[list[int]] = outcome.table["nodes"].to_pylist()
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_the_highest_number_wins(engine: str) -> None:
    jobs = {"submit_time": [0, 0, 0], "duration": [9, 9, 9], "num_gpus": [1, 4, 1]}
    found = wt.simulate(jobs, "3x4", placement=last, engine=engine)
    assert nodes(found) == [[2], [1], [2]]
    assert found.settings["placement"] == "last"
    assert nodes(wt.simulate(jobs, "3x4", engine=engine)) == [[0], [1], [0]]


@pytest.mark.parametrize("rule", ["strict", "skip", "easy", "conservative"])
@pytest.mark.parametrize("policy", ["fifo", "srtf", "las:quantum=15"])
@pytest.mark.parametrize("function", [last, by_name])
def test_both_engines_agree(rule: str, policy: str, function: Callable[..., float]) -> None:
    cluster = wt.ClusterSpec((wt.NodeType(2, 4, mem_gib=64), wt.NodeType(1, 8, mem_gib=128)))
    jobs = {name: values * 3 for name, values in JOBS.items()}
    jobs["submit_time"] = [i * 7 for i in range(24)]
    flown = [
        wt.simulate(jobs, cluster, policy, queueing=rule, placement=function, engine=engine)
        for engine in ENGINES
    ]
    assert_outcomes_equal(*flown)
    assert nodes(flown[0]) != nodes(wt.simulate(jobs, cluster, policy, queueing=rule))


@pytest.mark.parametrize("options", ["gang=fill", "ties=random", "topology=rack"])
def test_options_of_scored_placements(options: str) -> None:
    placement("even")(lambda node, request: -(node.index % 2))
    cluster = wt.ClusterSpec((wt.NodeType(6, 2, nodes_per_rack=2),))
    jobs = {"submit_time": [0, 1, 2], "duration": [9, 9, 9], "num_gpus": [1, 4, 1], "num_tasks": [1, 4, 1]}  # fmt: skip  # noqa: E501
    flown = [
        wt.simulate(jobs, cluster, placement=f"even:{options}", engine=engine, seed=3)
        for engine in ENGINES
    ]
    assert_outcomes_equal(*flown)
    assert flown[0].settings["placement"] == f"even:{options}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("given", [math.nan, "much", None])
def test_what_is_no_number_ends_the_run(engine: str, given: Any) -> None:
    def odd(node: CandidateNode, request: Request) -> Any:
        return given

    with pytest.raises(
        wt.PolicyError, match=r"policy 'odd': the placement gave .* for node 'node-0"
    ):
        wt.simulate(JOBS, "2x8", placement=odd, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_function_raises_comes_out(engine: str) -> None:
    def broken(node: CandidateNode, request: Request) -> float:
        raise ZeroDivisionError(node.name)

    with pytest.raises(ZeroDivisionError, match="node-0000"):
        wt.simulate(JOBS, "2x8", placement=broken, engine=engine)


def test_names_and_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_places.py").write_text("def coolest(node, request):\n    return 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    found = split_placement("own_places:coolest:ties=name")
    assert found[:2] == ("own_places:coolest", {"ties": "name"})
    assert wt.simulate(JOBS, "2x8", placement="own_places:coolest").settings["placement"] == (
        "own_places:coolest"
    )
    assert placement("mine")(last) is last
    assert "mine" in PLACEMENTS
    with pytest.raises(wt.SpecError, match="'FGD' is a built-in placement; choose another name"):
        placement("FGD")
    with pytest.raises(wt.SpecError, match=r"expected \(node, request\)"):
        wt.simulate(JOBS, "2x8", placement=lambda node: 0)
    with pytest.raises(wt.SpecError, match="placement: found 7; expected a name or a function"):
        wt.simulate(JOBS, "2x8", placement=7)
    with pytest.raises(wt.SpecError, match=r"unknown name 'best_fitt'. Did you mean 'best_fit'\?"):
        wt.simulate(JOBS, "2x8", placement="best_fitt")
    assert wt.simulate(JOBS, "pool:8", placement=last).settings["placement"] == "pool"
