"""Groups of jobs that overlap: the published simulator's results, and its defects left behind."""

from __future__ import annotations

import lzma
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_simulator import GROUPS
from toy import JOB, SCRIPTS, SLOW_8, TOY, Script

import windtunnel as wt
from windtunnel.energy import (
    Workload,
    groups_of_jobs,
    read_groups,
    simulate_group,
    simulate_recurrences,
    synthetic_groups,
)
from windtunnel.energy.group_study import study_groups
from windtunnel.energy.group_tables import clusters, typical_time
from windtunnel.energy.groups import group_seed
from windtunnel.errors import InfeasibleError, SpecError, TraceError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.energy import GroupResult

SERIAL = [(1000.0 * i, 1000.0 * i + 900, 1.0) for i in range(8)]


def fixture(kind: str) -> list[tuple[float, float, float]]:
    """Sixty jobs: one after the other, always overlapping, or now and then."""
    if kind == "serial":
        return [(1000.0 * i, 1000.0 * i + 900, 1.0) for i in range(60)]
    if kind == "overlap":
        return [(300.0 * i, 300.0 * i + 1000, (0.5, 1.0, 1.5)[i % 3]) for i in range(60)]
    return [
        (400.0 * i, 400.0 * i + 300 + (700 if i % 4 == 0 else 0), 0.8 + 0.1 * (i % 5))
        for i in range(60)
    ]


@pytest.mark.data
@pytest.mark.parametrize("key", GROUPS, ids=str)
def test_run_for_run_as_the_published_simulator(
    measured: Callable[[str, str], Workload], key: tuple[str, str, float]
) -> None:
    kind, dataset, beta = key
    result = simulate_group(
        measured("v100", dataset),
        fixture(kind),
        f"fixture-{kind}-{dataset}",
        beta=beta,
        compat="zeus",
    )
    runs, energy_j, time_s = GROUPS[key]
    assert len(result.runs) == runs
    assert result.energy_j == pytest.approx(energy_j, abs=1e-4, rel=1e-10)
    assert result.time_s == pytest.approx(time_s, abs=1e-4, rel=1e-10)


@pytest.mark.data
@pytest.mark.parametrize(
    ("kind", "seed", "failed", "energy_j", "time_s", "counts"),
    [
        (
            *("serial", 1837303928, 3, 2.119706e6, 2.319853e4),
            {32: 1, 64: 2, 128: 49, 256: 6, 512: 2, 1024: 2, 2048: 1},
        ),
        ("overlap", 2015430897, 0, 5.288490e6, 3.834004e4, {1024: 60}),
        (
            *("mixed", 1679558671, 3, 2.491131e6, 2.290187e4),
            {32: 1, 64: 2, 128: 17, 256: 34, 512: 4, 1024: 4, 2048: 1},
        ),
    ],
)
def test_the_fixtures(
    measured: Callable[[str, str], Workload],
    kind: str,
    seed: int,
    failed: int,
    energy_j: float,
    time_s: float,
    counts: dict[int, int],
) -> None:
    group = f"fixture-{kind}-cifar100"
    workload = measured("v100", "cifar100")
    result = simulate_group(workload, fixture(kind), group, compat="zeus")
    assert (result.seed, result.num_failed) == (seed, failed)
    assert result.energy_j == pytest.approx(energy_j, rel=5e-7)
    assert result.time_s == pytest.approx(time_s, rel=5e-7)
    assert result.runs_by_batch_size() == counts


@pytest.mark.data
def test_overlapping_jobs_do_explore(measured: Callable[[str, str], Workload]) -> None:
    workload = measured("v100", "cifar100")
    result = simulate_group(workload, fixture("overlap"), "fixture-overlap-cifar100")
    assert len(result.runs_by_batch_size()) > 5
    stuck = simulate_group(workload, fixture("overlap"), "fixture-overlap-cifar100", compat="zeus")
    assert result.energy_j < 0.6 * stuck.energy_j


def sizes(result: GroupResult) -> list[int]:
    return [one.run.batch_size for one in result.runs]


def test_jobs_one_after_the_other_are_recurrences() -> None:
    """With time between them for retries, groups and recurrences are the same thing."""
    noisy = replace(TOY, epochs={b: np.array([e[0], e[0] + 2]) for b, e in TOY.epochs.items()})
    apart = [(10_000.0 * i, 10_000.0 * i + 100, 1.0) for i in range(40)]
    for seed in range(5):
        alone = simulate_recurrences(noisy, recurrences=40, seed=seed, beta=1.6)
        group = simulate_group(noisy, apart, "g", seed=seed, beta=1.6)
        assert [one.run for one in group.runs] == [run for _, run in alone.runs]


def test_energy_and_time_are_scaled_by_the_ratio() -> None:
    result = simulate_group(TOY, [(0, 10, 0.5), (100, 110, 3.0)], "g", optimizer="default")
    assert [(one.energy_j, one.time_s, one.cost_j) for one in result.runs] == [
        (0.5 * 12600, 0.5 * 63, 0.5 * 12600),
        (3.0 * 12600, 3.0 * 63, 3.0 * 12600),
    ]


@pytest.mark.parametrize(("compat", "cost"), [("zeus", 0.0), (None, 100 * 2 * 12650.0)])
def test_a_run_that_may_not_start(compat: str | None, cost: float) -> None:
    proposals = [32, 8, 16, 16]
    result = simulate_group(SLOW_8, SERIAL[:2], "g", optimizer=Script(proposals), compat=compat)
    refused = SCRIPTS[-1].heard[1]
    assert (refused.batch_size, refused.started, refused.cost) == (8, False, cost)
    assert sizes(result) == [32, 16]
    assert result.refused == 1
    # The published simulator lets it hold its place: the next try runs after the recorded end.
    assert result.runs[-1].submission.start_time == (1900.0 if compat else 1000.0)


@pytest.mark.parametrize(("compat", "epochs"), [("zeus", 7), (None, 10)])
def test_what_the_threshold_follows(compat: str | None, epochs: int) -> None:
    # Job 1 costs 12650 J; job 2 8 failing and 16, of which 16 alone costs 9010 J. Size 8 may then
    # use 1.4 * 12650 / 1750 = 10 epochs, or, after the cheapest run, 1.4 * 9010 / 1750 = 7.
    jobs = [(0.0, 10.0, 1.0), (100.0, 110.0, 1.0), (200.0, 210.0, 1.0)]
    script = Script([32, (8, 100), 16, 8, 32])
    result = simulate_group(TOY, jobs, "g", optimizer=script, beta=1.4, compat=compat)
    assert [one.run.epochs for one in result.runs[:4]] == [9, 9, 6, epochs]


@pytest.mark.parametrize(("compat", "asked"), [("zeus", [32, 32, 32, 16]), (None, [32, 8, 16, 32])])
def test_who_is_asked_while_a_job_runs(compat: str | None, asked: list[int]) -> None:
    jobs = [(0.0, 100.0, 1.0), (10.0, 110.0, 1.0), (20.0, 120.0, 1.0), (200.0, 210.0, 1.0)]
    script = Script([32, 16] if compat else [32, 8, 16, 32])
    result = simulate_group(TOY, jobs, "g", optimizer=script, beta=9.0, compat=compat)
    assert sizes(result) == asked
    assert SCRIPTS[-1].left == []


def test_while_a_result_is_awaited_the_cheapest_size_serves() -> None:
    jobs = [(0.0, 10.0, 1.0), (20.0, 120.0, 1.0), (30.0, 40.0, 1.0), (50.0, 60.0, 1.0)]
    result = simulate_group(TOY, jobs, "g")
    # The second job explores 16; until it ends at 120 s, 32 is the cheapest known.
    assert [(one.run.batch_size, one.submission.start_time) for one in result.runs] == [
        (32, 0.0),
        (32, 30.0),
        (32, 50.0),
        (16, 20.0),
    ]
    with pytest.raises(InfeasibleError, match="before any run"):
        simulate_group(TOY, jobs, "g", optimizer=Script([None]))


def test_a_job_that_fails_for_ever_is_refused() -> None:
    hopeless = replace(TOY, job=replace(JOB, max_epochs=5))
    for compat in (None, "zeus"):
        with pytest.raises(InfeasibleError, match="a job failed 20 times"):
            simulate_group(hopeless, SERIAL, "g", compat=compat)


def test_wrong_groups_are_refused() -> None:
    with pytest.raises(SpecError, match="end >= start and a ratio > 0"):
        simulate_group(TOY, [(10, 5, 1.0)], "g")
    with pytest.raises(SpecError, match="Did you mean 'zeus'"):
        simulate_group(TOY, SERIAL, "g", compat="zuse")


@given(
    starts=st.lists(st.integers(0, 3000), min_size=1, max_size=25),
    lasts=st.integers(1, 2000),
    compat=st.sampled_from([None, "zeus"]),
    seed=st.integers(0, 1000),
)
def test_every_job_ends_in_one_run_that_reached_its_target(
    starts: list[int], lasts: int, compat: str | None, seed: int
) -> None:
    noisy = replace(TOY, epochs={b: np.array([e[0], e[0] + 3]) for b, e in TOY.epochs.items()})
    jobs = [(float(start), float(start + lasts), 1.0) for start in starts]
    result = simulate_group(noisy, jobs, "g", seed=seed, compat=compat)
    assert result.num_jobs == len(jobs)
    assert sum(one.run.reached for one in result.runs) == len(jobs)
    ends = [one.submission.end_time for one in result.runs]
    assert ends == sorted(ends)
    assert sum(one.run.profiled for one in result.runs) <= 3


CSV = """\
group,start_time,end_time,dataset,runtime_ratio
b,100,200,toy,1.5
a,0,50,toy,0.5
a,60,160,toy,1.0
"""


@pytest.mark.parametrize("pack", [bytes, lzma.compress])
def test_a_group_file_is_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "groups.csv"
    path.write_bytes(pack(CSV.encode()))
    table = read_groups(path)
    assert table.groups() == {
        ("a", "toy"): [(0.0, 50.0, 0.5), (60.0, 160.0, 1.0)],
        ("b", "toy"): [(100.0, 200.0, 1.5)],
    }
    assert table.notes == ("Rows were sorted by start, ties in the file's order.",)
    far = path.with_name("far.csv")
    far.write_text(CSV.replace("1.5", "4.5"))
    assert read_groups(far).notes[1] == "Mean runtime ratios that are not 1: 'toy' 2."


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("1.5", "0", r"line 2, column 'runtime_ratio': found '0'; expected a number > 0"),
        ("1.5", "", r"line 2, column 'runtime_ratio': found ''"),
        ("60,160", "60,59", r"line 4, column 'end_time': found '59'; expected a time not before"),
        ("60,160", "x,160", r"line 4, column 'start_time': found 'x'"),
        ("a,0", ",0", r"line 3, column 'group'"),
        ("runtime_ratio", "runtime_rate", r"column 'runtime_ratio'.*Did you mean 'runtime_rate'"),
    ],
)
def test_a_wrong_group_file_is_refused(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    path = tmp_path / "groups.csv"
    path.write_text(CSV.replace(before, after))
    with pytest.raises(TraceError, match=message):
        read_groups(path)
    cut = tmp_path / "cut.csv.xz"
    cut.write_bytes(lzma.compress(CSV.encode())[:-20])
    with pytest.raises(TraceError, match="a whole"):
        read_groups(cut)


def test_k_means_on_a_line() -> None:
    values = np.array([5.0, 1.0, 100.0, 6.0, 2.0, 101.0, 7.0])
    assert clusters(values, 3).tolist() == [1, 0, 2, 1, 0, 2, 1]
    assert clusters(values, 1).tolist() == [0] * 7
    with pytest.raises(SpecError, match="found 2 of different mean run time; expected at least 3"):
        clusters(np.array([1.0, 2.0, 1.0]), 3)


@given(st.lists(st.floats(0.1, 1e6), min_size=6, max_size=60, unique=True))
def test_clusters_are_intervals_at_their_own_centres(values: list[float]) -> None:
    array = np.array(values)
    found = clusters(array, 6)
    assert np.all(np.diff(found[np.argsort(array)]) >= 0)
    present = np.unique(found)
    centres = np.array([array[found == place].mean() for place in present])
    nearest = present[np.argmin(np.abs(array[:, None] - centres), axis=1)]
    distance = np.abs(array[:, None] - centres)
    own = distance[np.arange(len(array)), np.searchsorted(present, found)]
    assert np.all(own <= distance.min(axis=1) * (1 + 1e-9) + 1e-9), nearest


def test_jobs_become_groups_of_the_workload_that_takes_as_long() -> None:
    quick = replace(TOY, job=replace(JOB, dataset="quick"))
    sweeps = {b: replace(s, epoch_time=(99.0, 99.0)) for b, s in TOY.sweeps.items()}
    slow = replace(TOY, job=replace(JOB, dataset="slow"), sweeps=sweeps)
    jobs = as_jobs(
        {
            "submit_time": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
            "start_time": [9.0, 1.0, 2.0, 3.0, 4.0, None],
            "duration": [300.0, 10.0, 500.0, 30.0, 7.0, None],
            "template": ["long", "short", "long", "short", "once", "short"],
            "num_gpus": [1.0] * 6,
        }
    )
    table = groups_of_jobs(jobs, {"slow": slow, "quick": quick})
    assert table.groups() == {
        ("short", "quick"): [(1.0, 11.0, 0.5), (3.0, 33.0, 1.5)],
        ("long", "slow"): [(2.0, 502.0, 1.25), (9.0, 309.0, 0.75)],
    }
    assert table.notes == (
        "1 jobs without template, start or run time left out.",
        "1 jobs of groups with fewer than 2 left out.",
    )
    assert typical_time(quick) == 63.0
    with pytest.raises(SpecError, match="expected at least 2"):
        groups_of_jobs(jobs.slice(0, 0), {"slow": slow, "quick": quick})


@pytest.mark.slow
@pytest.mark.data
def test_the_stand_in_from_the_pai_twin_has_mean_ratio_1(
    measured: Callable[[str, str], Workload],
) -> None:
    workloads = {
        name: measured("v100", name)
        for name in ("cifar100", "imagenet", "librispeech", "movielens-1m", "squad", "sentiment140")
    }
    trace = wt.open_trace("synthetic:pai", jobs=5000, seed=3)
    table = groups_of_jobs(trace.jobs, workloads)
    means = table.table.group_by("dataset").aggregate([("runtime_ratio", "mean")])
    assert means.num_rows == 6
    assert means["runtime_ratio_mean"].to_pylist() == pytest.approx([1.0] * 6, abs=1e-12)
    again = groups_of_jobs(wt.open_trace("synthetic:pai", jobs=5000, seed=3).jobs, workloads)
    assert again.table.equals(table.table)
    study = study_groups(table, workloads)
    assert study.summary()["total"]["num_jobs"] == table.num_jobs
    assert study.summary()["total"]["energy_saved"] > 0.05


def test_synthetic_groups_are_seeded_and_have_mean_ratio_1() -> None:
    workloads = {"toy": TOY, "slow": replace(SLOW_8, job=replace(JOB, dataset="slow"))}
    one, again, other = (
        synthetic_groups(workloads, groups=5, jobs=9, seed=seed).table for seed in (1, 1, 2)
    )
    assert one.equals(again)
    assert not one.equals(other)
    means = one.group_by("dataset").aggregate([("runtime_ratio", "mean")])
    assert means["runtime_ratio_mean"].to_pylist() == pytest.approx([1.0, 1.0], abs=1e-12)
    with pytest.raises(SpecError, match="groups: found 0"):
        synthetic_groups(workloads, groups=0)


def test_a_study_of_groups_adds_up() -> None:
    table = synthetic_groups({"toy": TOY}, groups=4, jobs=10)
    study = study_groups(table, {"toy": TOY})
    total = study.summary()["total"]
    assert (total["num_groups"], total["num_jobs"]) == (4, 40)
    runs = study.table()
    assert runs.num_rows == total["num_runs"]
    assert pa.compute.sum(runs["scaled_energy_j"]).as_py() == pytest.approx(total["energy_j"])
    saved = 1 - total["energy_j"] / total["default_energy_j"]
    assert total["energy_saved"] == pytest.approx(saved)
    assert [row["seed"] for row in study.by_group()] == [
        group_seed(f"group-{n}") for n in (1, 2, 3, 4)
    ]
    with pytest.raises(SpecError, match=r"dataset of the groups.*Known: other"):
        study_groups(table, {"other": TOY})
