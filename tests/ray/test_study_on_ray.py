"""Studies on a real local Ray cluster: the bytes of processes, and no run lost with a worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deadly import fly_or_die
from studies import digests, study_of, write_trace

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.study.grid import open_results, run_study
from windtunnel.study.grid.executors import executor_for
from windtunnel.study.grid.flying import Order
from windtunnel.study.grid.inputs import prepare
from windtunnel.study.grid.plan import plan
from windtunnel.study.grid.supervise import MOST_DEATHS, fly_all

if TYPE_CHECKING:
    import pyarrow as pa

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own sockets
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Seconds in which anything here is over, or hangs.
LONG = 240
GRID: dict[str, Any] = {
    "policies": ["fifo", "sjf", "srtf"],
    "loads": [0.8, 1.1, "recorded"],
    "seeds": 3,
    "queueing": ["skip"],
}


def test_a_cluster_that_is_not_there_is_reported(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    if ray.is_initialized():
        pytest.skip("this process is connected to a cluster")
    with pytest.raises(SpecError, match="--on"):
        run_study(study_of(tmp_path), tmp_path / "out", on="ray:127.0.0.1:9")


def test_ray_and_processes_leave_the_same_bytes(cluster: str, tmp_path: Path) -> None:
    study = study_of(tmp_path, **GRID)
    for name, options in {
        "ray": {"on": "ray"},
        "one": {"workers": 1},
        "two": {"workers": 2},
    }.items():
        run_study(study, tmp_path / name, **options)
    found = open_results(tmp_path / "ray")
    assert (found.num_runs, found.table.num_rows, found.failures) == (27, 27, [])
    assert digests(tmp_path / "ray") == digests(tmp_path / "one") == digests(tmp_path / "two")


def test_a_study_begun_on_processes_goes_on_on_ray(cluster: str, tmp_path: Path) -> None:
    study, out = study_of(tmp_path, **GRID), tmp_path / "out"
    run_study(study, out, workers=1)
    whole = digests(out)
    for path in sorted((out / "runs").iterdir())[::2]:
        path.unlink()
    flown: list[str] = []
    run_study(study, out, on="ray", on_done=flown.append)
    assert len(flown) == 14
    assert digests(out) == whole


def _orders(executor: Any, tmp_path: Path, marks: Path) -> list[Order]:
    study = study_of(tmp_path, policies=["fifo", "sjf"], seeds=3)
    (given,) = prepare(study, [("bursts", None)], tmp_path, lambda _: None).values()
    table = executor.ship(given)
    mapping = wt.ClusterSpec.uniform(nodes=2, gpus_per_node=8).to_mapping()
    runs = [replace(run, options={"slowdown": str(marks)}) for run in plan(study)]
    return [Order(run, table, mapping) for run in runs]


def test_a_worker_that_dies_does_not_lose_the_study(cluster: str, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    executor = executor_for("ray", 2)
    rows: list[dict[str, Any]] = []

    def keep(row: pa.Table, _: float) -> None:
        rows.extend(row.select(["run_id", "seed", "status", "error"]).to_pylist())

    orders = _orders(executor, tmp_path, marks)
    fly_all(executor, orders, keep, fly_or_die)
    executor.close(landed=True)
    assert sorted(row["run_id"] for row in rows) == sorted(order.run.run_id for order in orders)
    dead = [row for row in rows if "its worker died" in (row["error"] or "")]
    assert {row["seed"] for row in dead} == {2}
    assert len(dead) == 2
    assert all(f"{MOST_DEATHS} times" in row["error"] for row in dead)
    assert len(list(marks.iterdir())) == 4  # those of seeds 1 and 2 did die


def test_a_worker_killed_from_outside_does_not_lose_the_study(cluster: str, tmp_path: Path) -> None:
    """SIGKILL to a Ray worker while the study runs; the bytes are the undisturbed ones."""
    write_trace(tmp_path / "many.csv", jobs=1500)
    traces = [{"trace": str(tmp_path / "many.csv"), "name": "many"}]
    study = study_of(tmp_path, traces=traces, seeds=20, policies=["fifo", "srtf"])
    killed: list[int] = []
    flown: list[str] = []
    enough = threading.Event()

    def assassin() -> None:
        if not enough.wait(LONG):
            return
        victims = _ray_workers()
        for pid in victims[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    thread = threading.Thread(target=assassin, daemon=True)
    thread.start()

    def landed(policy: str) -> None:
        flown.append(policy)
        if len(flown) == 5:
            enough.set()
            time.sleep(0.2)

    run_study(study, tmp_path / "hurt", on="ray", on_done=landed)
    thread.join(LONG)
    assert killed
    assert len(flown) == 40
    assert open_results(tmp_path / "hurt").failures == []
    run_study(study, tmp_path / "whole", workers=2)
    assert digests(tmp_path / "hurt") == digests(tmp_path / "whole")


def _ray_workers() -> list[int]:
    """Return the ids of the Ray workers below this process."""
    titles: dict[int, str] = {}
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                titles[int(entry.name)] = (entry / "cmdline").read_text("utf-8", "replace")
                stat = (entry / "stat").read_text("utf-8", "replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    # Ray's own agents are called alike, but for what they do; its node ends with them.
    names = [title.split("\0")[0].strip() for title in titles.values()]
    found = dict(zip(titles, names, strict=True))
    busy = [pid for pid, name in found.items() if name == "ray::_called"]
    idle = [pid for pid, name in found.items() if name == "ray::IDLE"]
    return [pid for pid in (*busy, *idle) if is_ours(pid)]


def test_the_command_joins_a_cluster_that_runs(cluster: str, tmp_path: Path) -> None:
    """From another process, by the cluster's address, and by ``RAY_ADDRESS``."""
    study = study_of(tmp_path, seeds=2)
    file = tmp_path / "STUDY.toml"
    file.write_text(
        f'traces = [{{ trace = "{tmp_path / "jobs.csv"}", name = "bursts" }}]\n'
        'clusters = ["2x8"]\npolicies = ["fifo", "sjf"]\nseeds = 2\n',
        encoding="utf-8",
    )
    run_study(study, tmp_path / "whole", workers=1)
    for name, on, environment in (
        ("named", f"ray:{cluster}", {}),
        ("found", "ray", {"RAY_ADDRESS": cluster}),
    ):
        words = ["study", "run", str(file), "--out", str(tmp_path / name), "--on", on, "--json"]
        ran = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "windtunnel", *words],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
        )
        assert ran.returncode == 0, ran.stderr
        data = json.loads(ran.stdout)
        assert (data["num_finished"], data["num_failed"]) == (4, 0)
        results = [tmp_path / folder / "results.parquet" for folder in (name, "whole")]
        assert results[0].read_bytes() == results[1].read_bytes()
