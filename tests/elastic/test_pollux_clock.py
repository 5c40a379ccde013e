"""Pollux's published clock: recorded runs job by job, and rules worked by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
import pytest
from check_artifact_runs import MEASURES, check, flown, table

import windtunnel as wt
from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.policies.pollux.clock import place
from windtunnel.throughput.training_profiles import read_profiles

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def root(data_dir: Path) -> Path:
    """Profiles, workloads and targets."""
    return data_dir / "elastic" / "pollux"


def test_tables_as_published(root: Path) -> None:
    apps = read_profiles(root / "profiles")
    assert apps["cifar10"].step_time((3, 4), 128) == pytest.approx(
        (0.21455393841392115, 0.10614989184329385), rel=1e-12
    )
    assert apps["imagenet"].step_time((2, 4, 4, 2), 100) == pytest.approx(
        (0.5804505341193256, 0.04155062504656167), rel=1e-12
    )
    assert apps["yolov3"].step_time((4, 1), 8) == apps["yolov3"].step_time((1, 4), 8)
    assert apps["deepspeech2"].step_time((4,) * 8, 20) == pytest.approx(
        (1.3899019956588743, 0.5889793141682943), rel=1e-12
    )
    assert apps["cifar10"].gain(1000, 10) == pytest.approx(5.814114548060759, rel=1e-12)
    assert apps["imagenet"].gain(5000, 45) == pytest.approx(22.028817385399403, rel=1e-12)
    assert apps["cifar10"].goals[10] == 4297.0
    with pytest.raises(SpecError, match="was not measured"):
        apps["bert"].step_time((1,), 500)
    with pytest.raises(SpecError, match="outside of the measured"):
        apps["bert"].gain(11, 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", ["tiresias_1.0_6", "tiresias_1.0_6_interval300", "optimus_1.0_6_nodes24_gpus2"]
)
def test_every_job_equal(root: Path, name: str) -> None:
    run = next(row for row in table(root / "targets" / "runs.csv") if row["run"] == name)
    wanted = {r["name"]: r for r in table(root / "targets" / "jobs.csv") if r["run"] == name}
    jobs = flown(
        run, table(root / "workloads" / f"load-{run['load']}.csv"), read_profiles(root / "profiles")
    )
    found = check(run, [jobs], wanted)
    assert found["within"]
    for measure in MEASURES:
        compared: dict[str, Any] = found["compared"][measure]
        assert (compared["equal"], compared["compared"]) == (160, 160), measure


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["tiresias", "optimus"])
def test_every_given_run_equal(root: Path, policy: str) -> None:
    from check_artifact_runs import main

    assert main([str(root), "--json", f"--policy={policy}"]) == 0


def test_the_command_flies_a_workload(root: Path) -> None:
    trace = wt.open_trace(root / "workloads" / "load-1.0.csv")
    jobs = trace.jobs.filter(pc.equal(trace.jobs["vc"], "6"))
    profiles = str(root / "profiles")
    run = wt.simulate(jobs, "16x4", "pollux:tiresias", compat="pollux", throughputs=profiles)
    found = run.metrics()
    assert found["avg_jct"] == pytest.approx(3469.69375, rel=1e-12)
    assert found["num_finished"] == 160
    # Nobody holds more GPUs than there are, whenever one looks.
    flight = run.flight
    gpus = np.add.reduceat(flight.node_gpus, flight.node_offset[:-1])
    times = np.concatenate([flight.segment_end, flight.segment_start])
    order = np.argsort(times, kind="stable")  # who leaves at an instant, leaves first
    assert np.concatenate([-gpus, gpus])[order].cumsum().max() <= 64
    with pytest.raises(SpecError, match="they need compat"):
        wt.simulate(jobs, "16x4", "pollux:sia:believed=0")
    with pytest.raises(SpecError, match="nodes of one size"):
        wt.simulate(jobs, "pool:64", "pollux:optimus", compat="pollux", throughputs=profiles)
    with pytest.raises(SpecError, match="folder of profiles"):
        wt.simulate(jobs, "16x4", "pollux:optimus", compat="pollux")
    with pytest.raises(TraceError, match="a table of profiles"):
        wt.simulate(jobs, "16x4", "pollux:optimus", compat="pollux", throughputs="nowhere")
    with pytest.raises(SchemaError, match="GPUs that the cluster has"):
        wt.simulate(jobs, "1x4", "pollux:optimus", compat="pollux", throughputs=profiles)


def test_gpus_come_from_the_node_with_most_free_ones() -> None:
    free = [2, 4, 4]
    assert place(6, free) == (1, 1, 1, 1, 2, 2)
    assert free == [2, 0, 2]
    assert place(3, free) == (0, 0, 2)
