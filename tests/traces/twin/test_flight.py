"""Does a twin wait as its source does? Both are flown under FIFO on one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import windtunnel as wt
from windtunnel.schema import as_jobs
from windtunnel.traces.twin.fit import fit

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.sim.outcome import Outcome


def gpus_for(jobs: pa.Table, load: float) -> int:
    """GPUs of eights on which the jobs' GPU time over their span is ``load``."""
    submit, gpus, duration = (
        jobs[name].cast(pa.float64()).to_numpy() for name in ("submit_time", "num_gpus", "duration")
    )
    wanted = (gpus * duration).sum() / (submit.max() - submit.min()) / load
    return int(max(np.ceil(wanted / 8), np.ceil(gpus.max() / 8)) * 8)


def flown(jobs: pa.Table, gpus: int, queueing: str) -> Outcome:
    cluster = wt.ClusterSpec.uniform(nodes=gpus // 8, gpus_per_node=8)
    return wt.simulate(jobs, cluster, policy="fifo", queueing=queueing)


def test_waits_of_a_busy_cluster_are_of_the_same_size() -> None:
    rng = np.random.default_rng(8)
    jobs = 6000
    columns = {
        "submit_time": np.sort(rng.uniform(0, 20 * 86_400, jobs)),
        "duration": rng.lognormal(7, 1.2, jobs),
        "num_gpus": rng.choice([1.0, 2.0, 4.0, 8.0], jobs, p=[0.6, 0.2, 0.1, 0.1]),
    }
    source = as_jobs(columns)
    gpus = gpus_for(source, 0.8)
    real = flown(source, gpus, "strict").metrics()
    waits = []
    for seed in range(3):
        twin = fit(source).generate(seed=seed).jobs
        outcome = flown(twin, gpus, "strict").metrics()
        assert outcome["num_jobs"] == jobs
        waits.append(outcome["p90_wait"])
    # Any two draws of such a log differ as much.
    assert 0.4 < np.median(waits) / real["p90_wait"] < 2.5


@pytest.mark.slow
def test_a_real_trace_waits_about_as_long_as_its_twin(data_dir: Path) -> None:
    source = wt.open_trace(str(data_dir / "philly" / "philly_sia.csv.gz"), format="philly")
    gpus = gpus_for(source.jobs, 0.8)
    real = flown(source.jobs, gpus, "strict").metrics()
    twin = flown(fit(source).generate().jobs, gpus, "strict").metrics()
    for measure in ("p50_wait", "p90_wait"):
        assert 0.5 < twin[measure] / real[measure] < 2.0
