"""`generate`: determinism, scaling, load, columns and refusals."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from windtunnel.cluster import preset
from windtunnel.errors import SpecError
from windtunnel.schema import JOBS
from windtunnel.traces.synthetic.arrivals import _local_hours
from windtunnel.traces.synthetic.generate import generate
from windtunnel.traces.synthetic.published import NAMES, published
from windtunnel.traces.synthetic.workload_facts import WorkloadFacts

WORKLOADS = [name for name in NAMES if isinstance(published(name), WorkloadFacts)]


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def test_names_are_sorted_and_known() -> None:
    clusters = ("venus", "earth", "saturn", "uranus")
    helios = {"helios", *(f"helios-{cluster}" for cluster in clusters)}
    assert set(NAMES) == {"kalos", "seren", "philly", "pai"} | helios
    assert list(NAMES) == sorted(NAMES)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cpu_jobs", [False, True])
def test_same_arguments_same_bytes(name: str, cpu_jobs: bool) -> None:  # noqa: FBT001
    first, second = (
        generate(name, jobs=3000, load=0.9, seed=5, cpu_jobs=cpu_jobs) for _ in range(2)
    )
    assert as_bytes(first.jobs) == as_bytes(second.jobs)
    assert first.metadata == second.metadata


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
def test_seeds_differ(name: str) -> None:
    first, second = (generate(name, jobs=500, seed=seed).jobs for seed in (0, 1))
    assert first["duration"].to_pylist() != second["duration"].to_pylist()
    assert first["submit_time"].to_pylist() != second["submit_time"].to_pylist()


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("jobs", [1, 2, 3, 17, 400, 12_345])
def test_scaled_counts_are_within_one_of_their_share(name: str, jobs: int) -> None:
    facts = published(name)
    assert isinstance(facts, WorkloadFacts)
    table = generate(name, jobs=jobs, seed=2).jobs
    assert table.num_rows == jobs
    workload = np.array(table["workload"].to_pylist())
    duration = table["duration"].to_numpy()
    real = facts.type_jobs()
    for kind, total in zip(facts.types, real, strict=True):
        mine = duration[workload == kind]
        assert abs(len(mine) - total / real.sum() * jobs) < 1
        binned = np.diff(facts.duration_counts(kind), prepend=0)
        knots = np.concatenate([[0.0], 2.0 ** np.arange(len(binned))])
        for k, expected in enumerate(binned):
            inside = int(((mine > knots[k]) & (mine <= knots[k + 1])).sum())
            assert abs(inside - expected / total * len(mine)) < 1


@pytest.mark.parametrize("name", WORKLOADS)
def test_scaled_gpu_time_stays_near_the_shares(name: str) -> None:
    facts = published(name)
    assert isinstance(facts, WorkloadFacts)
    table = generate(name, jobs=100_000, seed=1).jobs
    weight = table["duration"].to_numpy() * table["num_gpus"].to_numpy()
    workload = np.array(table["workload"].to_pylist())
    for kind, share in facts.gpu_time_share.items():
        assert 100 * weight[workload == kind].sum() / weight.sum() == pytest.approx(share, abs=0.5)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("load", [0.3, 0.85, 1.4])
def test_load_sets_the_span(name: str, load: float) -> None:
    trace = generate(name, jobs=2000, load=load, seed=3)
    jobs = trace.jobs
    gpu_time = float(np.nansum(jobs["duration"].to_numpy() * jobs["num_gpus"].to_numpy()))
    span = float(jobs["submit_time"].to_numpy().max())
    assert gpu_time / (span * preset(name).num_gpus) == pytest.approx(load, rel=1e-3)


def test_the_real_span_without_a_load() -> None:
    submit = generate("kalos").jobs["submit_time"].to_numpy()
    assert submit[0] == 0
    assert submit[-1] == 107 * 86_400
    assert (np.diff(submit) >= 0).all()
    assert (submit == np.floor(submit)).all()


def test_arrivals_follow_the_day_and_the_week() -> None:
    submit = generate("seren", jobs=60_000).jobs["submit_time"].to_numpy()
    by_hour = np.bincount((submit // 3600 % 24).astype(int), minlength=24)
    assert by_hour[14:18].mean() > 3 * by_hour[2:6].mean()
    # 2023-03-01 was a Wednesday: days 3 and 4 are the weekend.
    by_day = np.bincount((submit // 86_400 % 7).astype(int), minlength=7)
    assert by_day[[3, 4]].mean() < 0.85 * by_day[[0, 1, 2, 5, 6]].mean()


@pytest.mark.parametrize("name", WORKLOADS)
def test_columns_of_a_trace_by_workload(name: str) -> None:
    trace = generate(name, jobs=20_000, seed=4)
    jobs = trace.jobs
    assert jobs.schema.names == JOBS.names
    assert jobs["estimate"].null_count == jobs["gpu_type"].null_count == jobs.num_rows
    for column in ("user", "vc", "workload", "template", "status", "priority", "num_cpus"):
        assert jobs[column].null_count == 0, column
    start, end = jobs["start_time"].to_numpy(), jobs["end_time"].to_numpy()
    assert (end - start == jobs["duration"].to_numpy()).all()
    gpus, tasks = jobs["num_gpus"].to_numpy(), jobs["num_tasks"].to_numpy()
    assert (gpus / tasks <= 8).all()
    assert ((gpus <= 8) | (gpus % 8 == 0)).all()
    assert (gpus <= preset(name).num_gpus).all()
    workload = np.array(jobs["workload"].to_pylist())
    priority = jobs["priority"].to_numpy()
    assert set(priority[workload == "Pretrain"]) == {3.0}
    assert set(priority[workload == "Eval"]) == {0.0}
    users = jobs["user"].value_counts().to_pylist()
    assert max(row["counts"] for row in users) > 5 * jobs.num_rows / len(users)
    assert len(jobs["template"].unique()) < jobs.num_rows / 2


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WORKLOADS])
@pytest.mark.parametrize("cpu_jobs", [False, True])
def test_columns_of_the_other_traces(name: str, cpu_jobs: bool) -> None:  # noqa: FBT001
    trace = generate(name, jobs=20_000, seed=4, cpu_jobs=cpu_jobs)
    jobs, metadata = trace.jobs, trace.metadata
    assert jobs.schema.names[: len(JOBS.names)] == JOBS.names
    assert (jobs.num_rows > 20_000) == (cpu_jobs and name != "philly")
    assert metadata.rows_read == jobs.num_rows
    assert metadata.name == f"synthetic:{name}"
    assert "CC BY 4.0" in metadata.licence
    for column in ("submit_time", "user", "template", "status", "num_cpus", "num_tasks"):
        assert jobs[column].null_count == 0, column
    for column in ("estimate", "workload", "priority"):
        assert jobs[column].null_count == jobs.num_rows, column
    assert len(jobs["job_id"].unique()) == jobs.num_rows
    submit = jobs["submit_time"].to_numpy()
    assert (np.diff(submit) >= 0).all()
    known = jobs.filter(jobs["duration"].is_valid())
    start, end = known["start_time"].to_numpy(), known["end_time"].to_numpy()
    assert end - start == pytest.approx(known["duration"].to_numpy(), abs=1e-6)
    gpus, tasks = jobs["num_gpus"].to_numpy(), jobs["num_tasks"].to_numpy()
    assert (gpus / tasks <= 8).all()
    assert (gpus <= preset(name).num_gpus).all()
    users = jobs["user"].value_counts().to_pylist()
    assert max(row["counts"] for row in users) > 5 * jobs.num_rows / len(users)
    assert len(jobs["template"].unique()) < jobs.num_rows / 2


@pytest.mark.parametrize("name", [name for name in NAMES if name != "pai"])
def test_only_pai_has_tasks(name: str) -> None:
    assert generate(name, jobs=5).tasks is None
    with pytest.raises(SpecError, match="tasks: only synthetic:pai has tasks"):
        generate(name, jobs=5, tasks=True)


def test_the_clock_goes_back_in_autumn() -> None:
    # 5 November 2017, 02:00 in Los Angeles: the hour from 1 to 2 comes twice.
    start = datetime(2017, 11, 4, tzinfo=ZoneInfo("America/Los_Angeles"))
    hours = _local_hours(start, 60)
    assert hours[:26].tolist() == list(range(26))
    assert hours[26:].tolist() == list(range(25, 59))


def test_cores_a_gpu() -> None:
    seren = generate("seren", jobs=2000).jobs
    assert (seren["num_cpus"].to_numpy() == 16 * seren["num_gpus"].to_numpy()).all()
    kalos = generate("kalos", jobs=2000).jobs
    gpus, cores = kalos["num_gpus"].to_numpy(), kalos["num_cpus"].to_numpy()
    assert set(cores[gpus <= 8]) == {120.0}
    assert (cores[gpus > 8] == 15 * gpus[gpus > 8]).all()


def test_metadata() -> None:
    trace = generate("Kalos", jobs=50, load=0.5, seed=9, cpu_jobs=True)
    metadata = trace.metadata
    assert metadata.name == "synthetic:kalos"
    assert "CC BY 4.0" in metadata.licence
    assert metadata.epoch == "2023-05-17T00:00:00+00:00"
    assert metadata.rows_read == trace.jobs.num_rows
    assert metadata.settings == {"jobs": 50, "load": 0.5, "seed": 9, "cpu_jobs": True}
    assert metadata.notes
    assert trace.cluster == preset("kalos")


@pytest.mark.parametrize("jobs", [0, -1, 2.5, True, "many", 10**12])
def test_bad_jobs_are_refused(jobs: object) -> None:
    with pytest.raises(SpecError, match=r"jobs: found .*; expected a whole number"):
        generate("kalos", jobs=jobs)  # type: ignore[arg-type]


@pytest.mark.parametrize("load", [0, -0.5, float("nan"), float("inf"), "high"])
def test_bad_loads_are_refused(load: object) -> None:
    with pytest.raises(SpecError, match=r"load: found .*; expected a finite number > 0"):
        generate("kalos", load=load)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(SpecError, match=r"seed: found .*; expected a whole number >= 0"):
        generate("kalos", jobs=10, seed=seed)  # type: ignore[arg-type]


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(SpecError, match="Did you mean 'kalos'"):
        generate("kalso")
