"""Sia on several GPU types: its configurations, its rules, and a recorded workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from check_artifact_runs import check_sia, table

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.policies.pollux.clock import Clock, ElasticJob
from windtunnel.policies.pollux.fitting import one_thread
from windtunnel.policies.pollux.roaming import Machines
from windtunnel.policies.pollux.sia import Sia, configurations
from windtunnel.throughput.training_profiles import read_profiles_by_type

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scipy")
KINDS = ("aws",) * 6 + ("dgx-ext",) * 2 + ("rtx",) * 3
SIZES = (4,) * 6 + (8,) * 5


@pytest.fixture(scope="module")
def machines(data_dir: Path) -> Machines:
    """The published cluster."""
    root = data_dir / "elastic"
    applications = read_profiles_by_type(
        root / "sia" / "profiles", root / "pollux" / "profiles", "aws"
    )
    return Machines(KINDS, SIZES, applications)


def _jobs(machines: Machines, data_dir: Path, count: int) -> list[ElasticJob]:
    rows = table(data_dir / "elastic" / "sia" / "workloads" / "philly.csv")[:count]
    known = machines.applications["aws"]
    return [
        ElasticJob(r["name"], known[r["application"]], float(r["time"]), int(r["num_replicas"]),
                   int(r["batch_size"]))
        for r in rows
    ]  # fmt: skip


def test_configurations_are_powers_of_two_then_whole_nodes() -> None:
    found = configurations(Machines(KINDS, SIZES))
    assert len(found) == 19
    assert [c.gpus for c in found if c.kind == "aws"] == [1, 2, 4, 8, 12, 16, 20, 24]
    assert [c.gpus for c in found if c.kind == "dgx-ext"] == [1, 2, 4, 8, 16]
    assert [c.gpus for c in found if c.kind == "rtx"] == [1, 2, 4, 8, 16, 24]


class _Watched(Sia):
    """Sia, with a look at each decision."""

    def __call__(self, active: Any, free: list[int], now: float, interval: float) -> Any:
        before = {job.job.name: (job.nodes, job.delay, job.most_gpus) for job in active}
        chosen = super().__call__(active, list(free), now, interval)
        held = np.bincount([n for nodes in chosen.values() for n in nodes], minlength=len(free))
        assert (held <= free).all()
        for name, nodes in chosen.items():
            old, delay, most = before[name]
            assert len({KINDS[node] for node in nodes}) == 1
            assert len(nodes) <= most or nodes == old
            if delay > 0:  # who still restarts keeps what it restarts on
                assert len(nodes) == len(old)
                assert KINDS[nodes[0]] == KINDS[old[0]]
        return chosen


def test_every_decision_can_be(machines: Machines, data_dir: Path) -> None:
    with one_thread():
        done = Clock(_jobs(machines, data_dir, 4), SIZES, 60.0).run(_Watched(machines))
    assert all(job.end is not None for job in done)
    assert max(job.starts for job in done) > 1  # a job begins on one GPU and grows
    assert {len(job.stays[0].nodes) for job in done} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("number", ["1", "2"])
def test_a_workload_within_the_band(machines: Machines, data_dir: Path, number: str) -> None:
    folder = data_dir / "elastic" / "sia"
    runs = {row["run"]: row for row in table(folder / "targets" / "runs.csv")}
    run = runs[f"sia_philly_workload-{number}_60_HIGHS"]
    assert check_sia(run, table(folder / "workloads" / "philly.csv"), machines, 0.06)["within"]


def test_the_command_flies_sia(machines: Machines, data_dir: Path, tmp_path: Path) -> None:
    base, typed = (
        data_dir / "elastic" / "pollux" / "profiles",
        data_dir / "elastic" / "sia" / "profiles",
    )
    for name in ("applications", "validation"):
        (tmp_path / f"{name}.csv").write_text((base / f"{name}.csv").read_text())
    for name in ("placements", "scalability"):
        (tmp_path / f"{name}.csv").write_text((typed / f"{name}.csv").read_text())
    trace = wt.open_trace(data_dir / "elastic" / "sia" / "workloads" / "philly.csv")
    jobs = trace.jobs.slice(0, 3)
    profiles = str(tmp_path)
    run = wt.simulate(
        jobs, "2x8:dgx-ext,3x8:rtx", "pollux:sia", compat="pollux", throughputs=profiles
    )
    assert run.metrics()["num_finished"] == 3
    assert run.settings["parameters"]["own_batch"] == 1
    for cluster in ("2x8:nothing", "2x6:rtx", "1x4:rtx,1x8:rtx"):
        with pytest.raises(SpecError):
            wt.simulate(jobs, cluster, "pollux:sia", compat="pollux", throughputs=profiles)
    for text in ("sia:seed=1", "sia:power=1", "sia:rounding=2", "tiresias:power=-1"):
        with pytest.raises(SpecError):
            wt.simulate(jobs, "2x8:rtx", f"pollux:{text}", compat="pollux", throughputs=profiles)


def test_a_job_stays_where_the_placement_has_put_it_otherwise() -> None:
    """Eight GPUs that `spread` has put on two nodes are a place, if no configuration."""
    jobs = {"submit_time": [0.0, 0.0], "duration": [600.0, 600.0], "num_gpus": [8, 1]}
    outcome = wt.simulate(
        jobs, "8x8:A100,4x4:T4", "pollux:sia", placement="spread", penalty=200.0, until=10_000.0
    )
    assert outcome.table["end_time"].to_pylist() == [800.0, 800.0]


def test_a_job_on_two_types_stays_there() -> None:
    """Six GPUs on a node of each type: more than all of the type that its configuration names."""
    jobs = {"submit_time": [0.0], "duration": [500.0], "num_gpus": [6]}
    outcome = wt.simulate(jobs, "1x4:A100,2x4:T4", "pollux:sia", penalty=200.0)
    assert outcome.table["nodes"].to_pylist() == [[0, 1]]
    assert outcome.table["end_time"].to_pylist() == [700.0]


def test_a_job_that_no_single_type_holds_is_refused() -> None:
    jobs = {"submit_time": [0, 1], "duration": [9, 9], "num_gpus": [2, 6], "job_id": ["a", "b"]}
    with pytest.raises(wt.SpecError, match="job 'b': fits the nodes of no GPU type alone"):
        wt.simulate(jobs, "1x4:A,1x4:B", "pollux:sia")
