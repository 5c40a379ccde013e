"""The queue policies of PAI's simulator on its developers' set: every completion, to the second.

`pai_sim_reference` holds synthetic jobs with the estimate columns and what the public simulator
returns for them; its queue goes on past what does not fit.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.data
ENGINES = ("reference", "compiled")
#: Mean waits on the pool of 20 GPUs and 464 cores, s.
WAITS = {"fifo": 842.7155, "sju": 493.646, "sjg": 113.522, "sjgg": 113.8745, "sjf": 110.173}


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    path = data_dir / "pai_sim_reference"
    if not path.is_dir():
        pytest.skip("WINDTUNNEL_DATA has no folder pai_sim_reference")
    return path


@pytest.mark.sample(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", WAITS)
def test_every_completion(folder: Path, engine: str, policy: str) -> None:
    trace = wt.open_trace(str(folder / "dev_jobs_2000.csv"))
    with (folder / "per_job_dev_jobs_2000__pool_20gpu_464cpu.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected = {row["job_id"]: float(row[f"jct__dev_one_20g_{policy.upper()}"]) for row in rows}
    cluster = wt.ClusterSpec.pool(20, 464)
    out = wt.simulate(trace.jobs, cluster, policy, queueing="skip", engine=engine)
    table = out.table
    found = dict(zip(table["job_id"].to_pylist(), table["jct"].to_pylist(), strict=True))
    assert found == expected
    assert out.metrics()["avg_wait"] == pytest.approx(WAITS[policy], abs=1e-9)


def test_the_same_estimates_predicted_along_the_trace_come_between(folder: Path) -> None:
    # Without its columns the policies learn along the trace: better than arrival, worse than truth.
    jobs = wt.open_trace(str(folder / "dev_jobs_2000.csv")).jobs
    jobs = jobs.drop_columns(["user_dur", "group_dur", "group_gpu_dur"])
    cluster = wt.ClusterSpec.pool(20, 464)
    runs = wt.compare(jobs, cluster, ["fifo", "sju", "sjg", "sjf"], queueing="skip")
    waits = {name: run.metrics()["avg_wait"] for name, run in runs.outcomes.items()}
    assert waits["sjf"] < waits["sjg"] < waits["sju"] < waits["fifo"]
