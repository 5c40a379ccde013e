"""`windtunnel.testing`: its scenarios are right, its checks hold for our own and find mistakes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings

import windtunnel as wt
from windtunnel import testing
from windtunnel.placements import PLACEMENTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("plugins_forgotten")
JOBS = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 2, 1]}


@pytest.mark.parametrize("scenario", testing.SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_scenarios_come_out_as_worked_out_by_hand(
    scenario: testing.Scenario, engine: str
) -> None:
    assert scenario.starts
    for policy, starts in scenario.starts.items():
        outcome = wt.simulate(
            scenario.jobs, scenario.cluster, policy, engine=engine, **scenario.options
        )
        assert tuple(outcome.table["start_time"].to_pylist()) == starts, policy
        testing.check_outcome(outcome)


@pytest.mark.slow
@settings(max_examples=60)
@given(jobs=testing.jobs(shares=True, memory=True), cluster=testing.clusters(memory=True))
def test_runs_of_what_the_strategies_draw_keep_to_the_rules(
    jobs: dict[str, Any], cluster: wt.ClusterSpec
) -> None:
    for policy, queueing in (("fifo", "conservative"), ("srtf", "skip"), ("las:quantum=2", "easy")):
        testing.check_outcome(
            wt.simulate(jobs, cluster, policy, queueing=queueing, oversize="reject")
        )


@settings(max_examples=40)
@given(jobs=testing.jobs(), cluster=testing.clusters(memory=True))
def test_runs_with_failures_and_horizons_keep_to_the_rules(
    jobs: dict[str, Any], cluster: wt.ClusterSpec
) -> None:
    options: dict[str, Any] = {"oversize": "reject", "save_time": 1.0}
    testing.check_outcome(wt.simulate(jobs, cluster, "srtf", until=8.0, **options))
    found = wt.simulate(jobs, cluster, "fifo", disruptions="mtbf:40s/mttr:2s", until=500, **options)
    testing.check_outcome(found)


def changed(name: str, at: int, value: float) -> wt.Outcome:
    outcome = wt.simulate(JOBS, "1x2", "fifo")
    if name == "num_gpus":  # two at once, on GPUs for one
        both = wt.simulate(JOBS, "2x2", "fifo")
        return replace(both, cluster=outcome.cluster)
    array = getattr(outcome.flight, name).copy()
    array[at] = value
    return replace(outcome, flight=replace(outcome.flight, **{name: array}))


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("start", 2, 0.5, "job '2' .* starts before it is submitted: 0.5"),
        ("end", 0, np.nan, "job '0' .* is over and has no end"),
        ("end", 0, -3, "job '0' .* ends before it starts"),
        ("status", 0, 2, "job '0' .* is not over and has an end"),
        ("segment_start", 1, 10, "job '1' .* does not start with its first stay: 30"),
        ("num_gpus", 0, 0, "the cluster has 2 GPUs, and 3 are held at t=0 s"),
        ("segment_end", 0, 12, "stays differ from run time"),
        ("node_gpus", 0, 2, "a stay has other GPUs than it holds: 2"),
        ("run_time", 0, 12, "stays differ from run time"),
    ],
)
def test_what_is_wrong_is_found(name: str, at: int, value: float, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        testing.check_outcome(changed(name, at, value))


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las:quantum=2", "tiresias", "fair-share"])
def test_policies_of_ours(policy: str) -> None:
    testing.check_policy(policy)


def test_a_policy_that_is_not_the_same_each_time() -> None:
    rng = np.random.default_rng(3)
    with pytest.raises(AssertionError, match="differs"):
        testing.check_policy(lambda jobs: rng.random(len(jobs)))
    testing.check_policy(lambda jobs: -jobs.submit_time)


@pytest.mark.parametrize("name", ["spread", "fgd", "gpu_packing", "random", "dot_prod"])
def test_placements_of_ours(name: str) -> None:
    assert name in PLACEMENTS
    testing.check_placement(name)
    testing.check_placement(lambda node, request: node.index % 2)


@pytest.mark.parametrize("name", ["rolling", "mean:user", "oracle", "requested"])
def test_predictors_of_ours(name: str) -> None:
    if name == "mean:user":
        name = "sju"
    testing.check_predictor(name)


def test_a_predictor_that_peeks_or_says_nonsense() -> None:
    class Peeking:
        def fit(self, jobs: Any, durations: Any) -> None: ...

        def predict(self, jobs: Any) -> Any:
            return [-1.0] * len(jobs)

    with pytest.raises(AssertionError, match="predicted -1 s"):
        testing.check_predictor(Peeking)


def test_readers(tmp_path: Path) -> None:
    path = tmp_path / "log.mine"
    path.write_text("0 5 1\n1 5 2\n")

    @wt.reader("mine")
    def read(path: Path) -> dict[str, list[float]]:
        try:
            rows = [line.split() for line in path.read_text().splitlines()]
            columns = [[float(word) for word in column] for column in zip(*rows, strict=True)]
            return dict(zip(("submit_time", "duration", "num_gpus"), columns, strict=True))
        except ValueError as error:
            raise wt.TraceError(str(path), "three numbers a line") from error

    testing.check_reader("mine", path)

    @wt.reader("careless")
    def careless(path: Path) -> dict[str, list[float]]:
        rows = [line.split() for line in path.read_text().splitlines()]
        columns = [[float(word) for word in column] for column in zip(*rows, strict=True)]
        return dict(zip(("submit_time", "duration", "num_gpus"), columns, strict=True))

    with pytest.raises(AssertionError, match="rubbish ends in UnicodeDecodeError"):
        testing.check_reader("careless", path)


@pytest.mark.parametrize("name", ["csv", "parquet", "swf", "sacct", "batsim", "opendc"])
def test_writers_of_ours(name: str) -> None:
    testing.check_writer(name, wt.open_trace("synthetic:kalos:jobs=20:seed=1"))


def test_sites_models_and_metrics() -> None:
    testing.check_site("kalos")
    testing.check_site(wt.ClusterSpec.uniform(2, 4))
    testing.check_throughput_model("bert")
    testing.check_metric(lambda outcome: outcome.metrics()["max_wait"])
    with pytest.raises(wt.SpecError, match=r"metric <lambda>: returned 'long'; expected a number"):
        testing.check_metric(lambda outcome: "long")
