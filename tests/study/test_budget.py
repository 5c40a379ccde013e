"""What a run would cost is known before it is flown, and refused above a stated limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.site.conditions import Conditions
from windtunnel.study.budget import MAX_BYTES, MAX_EVENTS, MAX_OF_A_JOB, Load, estimate
from windtunnel.study.resolving import resolved
from windtunnel.toml_file import MAX_BYTES as MAX_TOML
from windtunnel.toml_file import read_toml
from windtunnel.traces.native import write_csv

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400.0
JOBS = {
    "submit_time": [0.0, 10 * DAY],
    "duration": [DAY, 2 * DAY],
    "num_gpus": [4.0, 8.0],
}


def budget(cluster: str = "4x8", **fields: Any) -> Any:
    conditions = resolved(Conditions().having(cluster=cluster, **fields))
    return estimate(Load.of(as_jobs(JOBS)), conditions.site.cluster, conditions)


def test_two_jobs_come_and_go() -> None:
    load = Load.of(as_jobs(JOBS))
    assert load.held.tolist() == [DAY, 2 * DAY]
    assert load.held_gpus.tolist() == [4, 8]
    sums = [load.span, load.longest, load.run_time, load.gpu_time, load.waited, load.gpus]
    assert sums == [10 * DAY, 2 * DAY, 3 * DAY, 20 * DAY, 0, 12]
    found = budget()
    assert found.total == 4
    assert found.horizon == 12 * DAY
    assert found.memory == 32 * 8 + 4 * 300 + 2 * 400


def test_rounds_go_on_while_something_can_run() -> None:
    """A round counts as 2 events, and a fifth of one for each job that runs."""
    found = budget(policy="las:quantum=60")
    assert found.total == 4 + 2.2 * 3 * DAY / 60
    assert budget(policy="las:quantum=60", until=DAY).total == 4 + 2.4 * DAY / 60


def test_a_round_after_which_python_looks_who_was_started_costs_more(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("time,value\n0,1\n3600,2\n")
    shift = f"series={tmp_path}/prices.csv,max_delay=1h"
    plain = budget(policy="las:quantum=60", shift=shift).total - 4
    looked = budget(policy="las:quantum=60", shift=f"{shift},interruptible=true").total - 4
    assert looked > 60 * plain


def test_what_rounds_do_counts_for_what_it_costs() -> None:
    def each(policy: str) -> float:
        return float(budget(policy=policy).total - 4) / (3 * DAY / 60)

    assert each("multifactor:every=60") == 2
    assert each("gavel:max_min_fairness:round=60") == pytest.approx(800.2)
    assert each("pollux:sia:interval=60") == pytest.approx(20_000.2)


def test_rounds_of_the_reference_count_for_what_they_take() -> None:
    """A call of the fuzzer's took 60 s: rounds of 0.1 s, flown by the reference."""
    rounds = budget(policy="las:quantum=0.1").total
    assert budget(policy="las:quantum=0.1", engine="reference").total > 90 * rounds
    assert budget(engine="reference").total == 4
    with pytest.raises(SpecError, match="flown only if it is set"):
        wt.simulate(JOBS, "4x8", policy="las:quantum=0.1", engine="reference")


def test_turns_are_taken_where_more_is_wanted_than_there_is() -> None:
    """Three jobs that want all there is run one by one, and somebody always waits."""
    jobs = {"submit_time": [0.0] * 3, "duration": [3600.0] * 3, "num_gpus": [8.0] * 3}
    assert Load.of(as_jobs(jobs), 24).waited == 0
    assert Load.of(as_jobs(jobs), 8).waited == pytest.approx(3 * 3600)
    jobs["submit_time"] = [0.0, 4000.0, 8000.0]  # one after the other
    assert Load.of(as_jobs(jobs), 8).waited == 0


def test_a_turn_costs_more_where_places_are_looked_for_in_a_tree() -> None:
    fields: Any = {"policy": "las:quantum=1", "cluster": "1x8"}
    jobs = as_jobs({"submit_time": [0.0] * 3, "duration": [3600.0] * 3, "num_gpus": [8.0] * 3})
    totals = [
        estimate(Load.of(jobs, 8), given.site.cluster, given).total
        for placement in ("best_fit", "tree")
        for given in [resolved(Conditions().having(placement=placement, **fields))]
    ]
    assert totals[1] - totals[0] == pytest.approx((700 - 20) * 3 * 3600)


@pytest.mark.parametrize("count", [9, 24, 60])
def test_turns_that_are_taken_are_those_predicted(count: int) -> None:
    jobs = {
        "submit_time": np.arange(count, dtype=float),
        "duration": np.full(count, 1000.0),
        "num_gpus": np.ones(count),
    }
    found = Load.of(as_jobs(jobs), 8).waited
    taken = wt.simulate(jobs, "1x8", "las:quantum=1").metrics()["num_preemptions"]
    assert found / 3 <= taken <= 3 * found


def test_rounds_go_on_while_jobs_wait_for_a_decision() -> None:
    """Each of two jobs may wait for one of its own."""
    found = budget("1x8", policy="multifactor:every=60", decide_every="100d")
    assert found.horizon == 10 * DAY + 2.5 * DAY + 200 * DAY
    assert found.total == 4 + 2 * (3 * DAY + 200 * DAY) / 60


def test_nodes_are_looked_at_all_the_time() -> None:
    assert budget(node_sleep="earth,step=600").total == 4 + 400 * 12 * DAY / 600


def test_failures_are_those_of_the_renewal_process() -> None:
    found = budget(disruptions="mtbf:30d/mttr:1d/checkpoint:1h")
    longer = 48 * math.expm1(3600 / (30 * DAY)) * 30 - 2
    times = 2 * 4 * (12 + longer) / 31
    stops = (24 + 48) * math.expm1(3600 / (30 * DAY))
    assert found.total == pytest.approx(4 + 500 * times + 250 * 4 + 0.4 * stops)
    # Without checkpoints a job that is longer than nodes live begins for ever.
    assert budget(disruptions="mtbf:1/mttr:1000d").total > 1e12


@pytest.mark.parametrize(("mtbf", "mttr"), [(2000, 10), (1000, 100), (1000, 400)])
def test_a_gang_fails_with_all_its_nodes_and_waits_for_all(mtbf: int, mttr: int) -> None:
    jobs = {"submit_time": [0.0], "duration": [2000.0], "num_gpus": [8.0]}
    disruptions = f"mtbf:{mtbf}/mttr:{mttr}/checkpoint:100"
    conditions = resolved(Conditions().having(cluster="8x1", disruptions=disruptions))
    load = Load.of(as_jobs(jobs))
    found = estimate(load, conditions.site.cluster, conditions).horizon
    events = estimate(load, conditions.site.cluster, conditions).total / 500
    runs = [wt.simulate(jobs, "8x1", disruptions=disruptions, seed=seed) for seed in range(20)]
    ends = np.mean([run.table["end_time"].to_pylist()[0] for run in runs])
    taken = 2 * 8 * ends / (mtbf + mttr)
    assert found <= ends
    assert taken / 5 <= events <= 5 * taken


@pytest.mark.parametrize(
    ("cluster", "fields", "cause"),
    [
        ("4x8", {"policy": "las:quantum=1e-3"}, "rounds of las"),
        ("4x8", {"policy": "gavel:max_min_fairness:round=0.1"}, "rounds of gavel"),
        ("4x8", {"node_sleep": "earth,step=1e-3"}, "looks of node_sleep, one in 0.001 s"),
        ("4x8", {"disruptions": "mtbf:1/mttr:1000d"}, "failures and repairs"),
        ("800x1000000", {}, "800,000,000 GPUs on 800 nodes"),
    ],
)
def test_what_no_machine_can_fly_is_refused_with_the_number(
    cluster: str, fields: dict[str, Any], cause: str
) -> None:
    with pytest.raises(SpecError, match=cause) as caught:
        wt.simulate(JOBS, cluster, **fields)
    assert "--allow-large" in str(caught.value)
    limit = MAX_EVENTS + MAX_OF_A_JOB * 2
    assert f"{limit:,}" in str(caught.value) or f"{MAX_BYTES >> 30} GiB" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "simulate log.csv --cluster 4x99999999",
            "found 99,999,999; expected at most 1,000,000 GPUs",
        ),
        (
            "simulate log.csv --cluster huge.toml",
            "has 209,715,200 bytes; expected a description of at most",
        ),
        ("serving simulate --rate 2e7", "about 1.3e+09 requests; expected at most 20,000,000"),
        ("simulate log.csv --cluster 4x8 --node-sleep earth,step=1e-3", "looks of node_sleep"),
        ("simulate log.csv --cluster 4x8 --disruptions mtbf:1/mttr:1000d", "failures and repairs"),
        (
            "simulate log.csv --cluster 4x8 --policy las:quantum=1e-3 --timeline t.html",
            "rounds of las",
        ),
    ],
)
def test_the_command_refuses_what_once_was_unbounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    """Sizes have a fixed limit; what a run would cost may be allowed."""
    monkeypatch.chdir(tmp_path)
    write_csv(as_jobs(JOBS), tmp_path / "log.csv")
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(200 << 20)
    result = CliRunner().invoke(windtunnel, words.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert ("--allow-large" in result.stderr) == (
        "more than 100,000,100 are flown" in result.stderr
    )
    assert {path.name for path in tmp_path.iterdir()} == {"log.csv", "huge.toml"}


def test_it_is_flown_where_it_is_allowed() -> None:
    small = {"submit_time": [0.0], "duration": [0.01], "num_gpus": [1.0]}
    with pytest.raises(SpecError, match="allow-large"):
        wt.simulate(small, "800x1000000")
    assert wt.simulate(small, "800x1000000", allow_large=True).metrics()["num_finished"] == 1
    with pytest.raises(SpecError, match="expected true or false"):
        wt.simulate(small, "8x1", allow_large="yes")


def test_ordinary_runs_are_far_from_the_limit() -> None:
    held, gpus = np.array([30 * DAY, 3 * 3600]), np.array([64.0, 8.0])
    year = Load(10_000_000, 365 * DAY, 30 * DAY, 1e7 * 3 * 3600, 1e7 * 8 * 3 * 3600, held, gpus)
    for fields in ({"policy": "las"}, {"disruptions": "mtbf:30d/mttr:4h/checkpoint:1h"}):
        conditions = resolved(Conditions().having(cluster="2000x8:A100", **fields))
        found = estimate(year, conditions.site.cluster, conditions)
        assert found.total < MAX_EVENTS + MAX_OF_A_JOB * year.jobs
        assert found.memory <= MAX_BYTES + (1 << 30)


def test_a_description_has_a_size_that_people_write(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    with path.open("wb") as file:
        file.truncate(MAX_TOML + 1)
    with pytest.raises(SpecError, match=r"has 8,388,609 bytes; expected a description of at most"):
        read_toml(path)


def test_launches_that_take_for_ever_are_refused() -> None:
    fields: Any = {"policy": "morphling", "node_sleep": "venus"}
    wt.simulate(JOBS, "4x8", penalty=260.0, **fields)
    for penalty in (1e12, {"bert": 1e12}):
        with pytest.raises(SpecError, match="for looks of node_sleep"):
            wt.simulate(JOBS, "4x8", penalty=penalty, **fields)
