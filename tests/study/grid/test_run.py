"""Flying a study: the same bytes by whomever, errors kept, the dead replaced, nothing repeated."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from studies import digests, study_of, write_trace

import windtunnel as wt
from windtunnel.errors import SpecError, TraceError
from windtunnel.study.grid import Study, open_results, run_study
from windtunnel.study.grid.executors import GivenExecutor, Processes
from windtunnel.study.grid.flying import Order, fly_order
from windtunnel.study.grid.inputs import MappedTable, prepare
from windtunnel.study.grid.measure import GROUPS, METRICS, SCHEMA
from windtunnel.study.grid.plan import plan
from windtunnel.study.grid.store import Store
from windtunnel.study.grid.supervise import MOST_DEATHS, fly_all
from windtunnel.study.offered_load import offered_load
from windtunnel.study.worker_processes import WorkerDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

LOADED: dict[str, Any] = {"loads": [0.8, "recorded"], "seeds": 2}


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """An executor of somebody else's: two threads of this process."""
    with ThreadPoolExecutor(2) as executor:
        yield executor


def test_groups_and_big_jobs_are_of_the_window(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    study = study_of(tmp_path, policies=["sjf"], options={"window": "20%..60%"})
    (row,) = run_study(study, tmp_path / "out", on=threads).rows
    assert row["num_jobs"] == 24
    assert row["big_max_wait"] <= row["max_wait"]
    for groups in GROUPS:
        sums = {name: sum(group[name] for group in row[groups]) for name in ("num_jobs", "wait")}
        assert sums["num_jobs"] == 24
        assert sums["wait"] == pytest.approx(24 * row["avg_wait"])


def test_rows_are_what_simulate_returns(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    study = study_of(tmp_path, policies=["fifo", "las:quantum=30"], queueing=["skip"], loads=[1.1])
    found = run_study(study, tmp_path / "out", on=threads)
    jobs = wt.open_trace(tmp_path / "jobs.csv").jobs
    submit = jobs["submit_time"].to_numpy()
    natural = offered_load(jobs, 16, np.ones(len(submit), dtype=bool))
    scaled = jobs.set_column(
        jobs.column_names.index("submit_time"),
        jobs.schema.field("submit_time"),
        [submit.min() + (submit - submit.min()) * (natural / 1.1)],
    )
    for row, policy in zip(found.rows, ("fifo", "las:quantum=30"), strict=True):
        metrics = wt.simulate(scaled, "2x8", policy, queueing="skip").metrics()
        assert set(metrics) <= {*METRICS, "stability"}
        assert {name: row[name] for name in metrics} == metrics
        settings = json.loads(row["settings"])
        assert (settings["policy"], settings["queueing"]) == (policy, "skip")
        for group in GROUPS:
            assert sum(part["num_jobs"] for part in row[group]) == metrics["num_jobs"]
            waited = sum(part["wait"] for part in row[group])
            assert waited / metrics["num_jobs"] == pytest.approx(metrics["avg_wait"], rel=1e-12)
            done = sum(part["jct"] for part in row[group])
            assert done / metrics["num_jobs"] == pytest.approx(metrics["avg_jct"], rel=1e-12)
        assert [part["group"] for part in row["users"]] == [f"u{i}" for i in range(9)]


@pytest.mark.slow
def test_one_worker_two_workers_and_threads_leave_the_same_bytes(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    study = study_of(tmp_path, **LOADED)
    for name, options in {
        "one": {"workers": 1},
        "two": {"workers": 2},
        "threads": {"on": threads},
    }.items():
        run_study(study, tmp_path / name, **options)
    assert digests(tmp_path / "one") == digests(tmp_path / "two") == digests(tmp_path / "threads")
    assert len(digests(tmp_path / "one")) == 8 + 2  # the runs, all of them together, the manifest
    assert threads.submit(int, "3").result() == 3  # still open


def test_a_run_with_an_error_is_kept_and_stops_no_other(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    study = study_of(tmp_path, clusters=["2x8", "2x4", "own"], seeds=2)
    out = tmp_path / "out"
    found = run_study(study, out, on=threads)
    errors = {(row["cluster"], row["error"] and row["error"].split(":")[0]) for row in found.rows}
    assert errors == {("2x8", None), ("2x4", None), ("own", "SpecError")}
    assert [row["status"] for row in found.failures] == ["failed"] * 4
    small = study_of(tmp_path, clusters=["1x4"])
    found = run_study(small, tmp_path / "small", on=threads)
    assert all(row["error"].startswith("SchemaError: ") for row in found.failures)
    assert all("num_gpus" in row["error"] for row in found.failures)
    assert len(found.failures) == 2
    again: list[str] = []
    run_study(small, tmp_path / "small", on=threads, on_done=again.append)
    assert again == []
    run_study(small, tmp_path / "small", on=threads, on_done=again.append, retry_failed=True)
    assert sorted(again) == ["fifo", "sjf"]


def test_a_policy_of_the_user_s_that_raises_is_named_as_the_fault(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "raising.py").write_text("def key(job, now):\n    raise ValueError('no idea')\n")
    study = study_of(tmp_path, policies=["fifo", "raising:key"])
    found = run_study(study, tmp_path / "out", on=threads)
    (failure,) = found.failures
    assert failure["error"] == (
        "raising.py, line 2, raised ValueError (no idea). "
        "Policy 'key' was asked at t=1 s for the key of job 'j15'."
    )


def test_a_finished_run_is_not_flown_again_and_a_lost_one_is(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    study, out = study_of(tmp_path, **LOADED), tmp_path / "out"
    run_study(study, out, on=threads)
    whole = digests(out)
    lost = sorted((out / "runs").iterdir())[3]
    lost.unlink()
    (out / "results.parquet").unlink()
    (out / "runs" / ".half.parquet.x.part").write_bytes(b"PAR1")
    assert open_results(out).table.num_rows == 7
    flown: list[str] = []
    counts: list[tuple[int, int]] = []
    run_study(
        study,
        out,
        on=threads,
        on_done=flown.append,
        on_start=lambda done, total: counts.append((done, total)),
    )
    assert (len(flown), counts) == (1, [(7, 8)])
    assert digests(out) == whole


def test_a_study_may_grow_in_its_folder(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    out = tmp_path / "out"
    run_study(study_of(tmp_path), out, on=threads)
    grown = study_of(tmp_path, policies=["srtf", "fifo", "sjf"], seeds=2)
    flown: list[str] = []
    found = run_study(grown, out, on=threads, on_done=flown.append)
    assert sorted(flown) == ["fifo", "sjf", "srtf", "srtf"]
    assert [row["policy"] for row in found.rows] == [
        *("srtf", "srtf", "fifo", "fifo", "sjf", "sjf"),
    ]


def test_another_trace_or_version_is_not_mixed_in(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    study, out = study_of(tmp_path), tmp_path / "out"
    run_study(study, out, on=threads)
    before = digests(out)
    write_trace(tmp_path / "jobs.csv", seed=1)
    with pytest.raises(SpecError, match="is not what it was"):
        run_study(study, out, on=threads)
    write_trace(tmp_path / "jobs.csv")
    run_study(study, out, on=threads)
    assert digests(out) == before
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    manifest["versions"]["windtunnel"] = "0.0.9"
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(SpecError, match=r"windtunnel 0\.0\.9"):
        run_study(study, out, on=threads)


def test_two_processes_do_not_write_one_folder(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    other = Store(tmp_path / "out")
    with store.locked(), pytest.raises(SpecError, match="another process"), other.locked():
        pass
    with other.locked():
        pass


def test_a_lock_whose_file_another_process_takes_away_is_sought_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if another process gave up between our opening of its file and our lock."""
    store, lock = Store(tmp_path / "out"), fcntl.flock
    left = [tmp_path / "out", tmp_path / "out"]

    def give_up_first(file: IO[str], operation: int) -> None:
        if left:
            shutil.rmtree(left.pop())
        lock(file, operation)

    monkeypatch.setattr("windtunnel.study.grid.store.fcntl.flock", give_up_first)
    with store.locked():
        assert not left
        assert store.runs.is_dir()
        with pytest.raises(SpecError, match="another process"), Store(store.folder).locked():
            pass
        left.extend([tmp_path / "out"] * 99)
        with pytest.raises(SpecError, match="another process"), Store(store.folder).locked():
            pass
        left.clear()
        Store(store.folder)


def test_giving_up_leaves_what_another_process_has_begun(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    with store.locked():
        (store.runs / "of-another.part").touch()
    assert (store.runs / "of-another.part").exists()


@pytest.mark.parametrize("name", ["notes.txt", "results.parquet"])
def test_a_folder_with_other_files_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine", encoding="utf-8")
    with pytest.raises(SpecError, match="other files"):
        Store(tmp_path / "out")
    with pytest.raises(SpecError, match="folder of a study"):
        open_results(tmp_path / "out")


def test_a_damaged_result_is_refused(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    out = tmp_path / "out"
    run_study(study_of(tmp_path), out, on=threads)
    broken = next((out / "runs").iterdir())
    broken.write_bytes(broken.read_bytes()[:100])
    (out / "results.parquet").unlink()
    with pytest.raises(TraceError, match=broken.name):
        open_results(out)
    (out / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(SpecError, match="manifest"):
        open_results(out)


def test_traces_that_are_made_differ_by_seed_and_read_ones_do_not(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    study = study_of(
        tmp_path,
        traces=[
            {"trace": "synthetic:kalos:jobs=60", "name": "made"},
            {"trace": str(write_trace(tmp_path / "jobs.csv")), "name": "read"},
        ],
        clusters=["64x8"],
        policies=["fifo"],
        seeds=3,
        options={"oversize": "reject", "incomplete": "reject"},
    )
    found = run_study(study, tmp_path / "out", on=threads)
    jcts = {
        name: {row["avg_jct"] for row in found.rows if row["trace"] == name}
        for name in ("made", "read")
    }
    assert (len(jcts["made"]), len(jcts["read"])) == (3, 1)
    inputs = found.manifest["inputs"]
    assert sorted(inputs) == ["made seed 0", "made seed 1", "made seed 2", "read"]
    assert not list((tmp_path / "out" / "inputs").iterdir())


def test_energy_is_accounted_for_where_it_is_asked_for(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    from windtunnel.energy import PowerModel, Series, account

    text = "pue = 1.2\nhost_w = 300.0\n[gpus.default]\nidle_w = 60.0\nactive_w = 400.0\n"
    (tmp_path / "power.toml").write_text(text, encoding="utf-8")
    study = study_of(tmp_path, energy={"power": "power.toml", "carbon": 400, "tariff": "0.2"})
    found = run_study(study.located(tmp_path), tmp_path / "out", on=threads)
    outcome = wt.simulate(wt.open_trace(tmp_path / "jobs.csv").jobs, "2x8", "fifo")
    book = account(
        outcome,
        PowerModel.from_toml(tmp_path / "power.toml"),
        carbon=Series.constant(400.0),
        tariff=Series.constant(0.2),
    ).summary()
    row = found.rows[0]
    for name in ("energy_j", "carbon_kg", "cost"):
        assert row[name] == book[name]
        assert row[name] > 0
    (tmp_path / "power.toml").write_text(text.replace("400", "500"), encoding="utf-8")
    with pytest.raises(SpecError, match="is not what it was"):
        run_study(study.located(tmp_path), tmp_path / "out", on=threads)


def test_jobs_that_all_are_rejected_leave_a_row_without_waits(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    text = "job_id,submit_time,duration,num_gpus\na,0,10,8\nb,5,10,8\n"
    (tmp_path / "big.csv").write_text(text, encoding="utf-8")
    study = study_of(
        tmp_path,
        traces=[str(tmp_path / "big.csv")],
        clusters=["1x4"],
        policies=["fifo"],
        loads=["recorded", 0.9],
        options={"oversize": "reject"},
    )
    plain, loaded = run_study(study, tmp_path / "out", on=threads).rows
    assert (plain["status"], plain["num_rejected"], plain["avg_wait"]) == ("ok", 2, None)
    assert plain["weeks"] == plain["users"] == plain["sizes"] == []
    assert loaded["status"] == "failed"
    assert "offer no load" in loaded["error"]


def test_every_metric_of_a_run_has_a_column() -> None:
    jobs = {
        "submit_time": [0.0, 1.0],
        "duration": [5.0, 6.0],
        "num_gpus": [1, 1],
        "deadline": [4.0, 90.0],
        "user": ["a", "b"],
    }
    metrics = wt.simulate(jobs, "pool:1").metrics()
    assert "avg_tardiness" in metrics
    assert set(metrics) <= {*METRICS, "stability"}
    assert set(METRICS) <= set(SCHEMA.names)


# --- workers that die ---------------------------------------------------------------------------


def _deadly(order: Order) -> tuple[pa.Table, float]:
    """Fly a run, but die of those on 7 nodes, and the first time of those on 5."""
    marker = order.table.path + ".died"  # type: ignore[attr-defined]
    if order.run.cluster == "7x8":
        os.kill(os.getpid(), signal.SIGKILL)
    if order.run.cluster == "5x8" and not os.path.exists(marker):  # noqa: PTH110
        with open(marker, "w", encoding="ascii"):  # noqa: PTH123
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return fly_order(order)


def _orders(tmp_path: Path, clusters: list[str]) -> list[Order]:
    study = study_of(tmp_path, clusters=clusters)
    given = prepare(study, [("bursts", None)], tmp_path, lambda _: None)["bursts", None]
    spec = {name: wt.ClusterSpec.uniform(nodes=int(name[0]), gpus_per_node=8) for name in clusters}
    return [
        Order(run, MappedTable(str(given.path)), spec[run.cluster].to_mapping())
        for run in plan(study)
    ]


@pytest.mark.slow
def test_a_run_that_kills_its_worker_fails_and_the_others_fly(tmp_path: Path) -> None:
    orders = _orders(tmp_path, ["2x8", "3x8", "5x8", "6x8", "7x8"])
    rows: list[dict[str, Any]] = []

    def keep(row: pa.Table, _: float) -> None:
        rows.extend(row.select(["run_id", "cluster", "status", "error"]).to_pylist())

    fly_all(Processes(2), orders, keep, _deadly)
    assert sorted(row["run_id"] for row in rows) == sorted(order.run.run_id for order in orders)
    failed = [row for row in rows if row["status"] == "failed"]
    assert {row["cluster"] for row in failed} == {"7x8"}
    assert len(failed) == 2
    assert all(f"died {MOST_DEATHS} times" in row["error"] for row in failed)


class _Losing(ThreadPoolExecutor):
    """An executor that says of every third call that its worker died, as Ray would."""

    calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        type(self).calls += 1
        if type(self).calls % 3 == 0:
            return super().submit(_die)
        return super().submit(fn, *args, **kwargs)


def _die() -> None:
    raise WorkerDiedError


def test_a_run_whose_worker_died_flies_again(tmp_path: Path) -> None:
    orders = _orders(tmp_path, ["2x8", "3x8"])
    rows: list[pa.Table] = []
    with _Losing(1) as executor:
        fly_all(GivenExecutor(executor, 2), orders, lambda row, _: rows.append(row))
    assert sorted(row["run_id"][0].as_py() for row in rows) == sorted(o.run.run_id for o in orders)
    assert all(row["status"][0].as_py() == "ok" for row in rows)


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    (order, *_) = _orders(tmp_path, ["2x8"])
    with pytest.raises(SpecError, match=r"expected 0\.0\.1"):
        fly_order(replace(order, version="0.0.1"))


def test_results_hold_no_time_of_day(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    found = run_study(study_of(tmp_path), tmp_path / "out", on=threads)
    assert not [name for name in SCHEMA.names if "seconds" in name or "wall" in name]
    metadata = pq.read_metadata(tmp_path / "out" / "results.parquet")
    assert metadata.num_rows == found.num_runs
    times = (tmp_path / "out" / "timings.jsonl").read_text("utf-8").splitlines()
    assert len(times) == found.num_runs


def test_an_unknown_executor_is_refused(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    with pytest.raises(SpecError, match="processes, ray"):
        run_study(study, tmp_path / "out", on="threads")
    with pytest.raises(SpecError, match="at least 1"):
        run_study(study, tmp_path / "out", workers=0)


def test_a_study_of_nothing_to_compare_has_empty_tables(tmp_path: Path) -> None:
    study = Study.from_mapping({"traces": ["philly"], "policies": ["fifo"]})
    store = Store(tmp_path / "out")
    assert store.gather([]).num_rows == 0
    assert len(plan(study)) == 1
