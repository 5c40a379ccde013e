"""The PAI simulator's recorded runs: every completion time and every node, job by job.

24 runs: 2,000 single jobs on two pools and on three nodes in four node orders, and 900 gangs on 380
nodes of five kinds under three rules of GPU types; see the reference's README.
"""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.data

ORDERS = {
    None: None,
    "node_id_order": "first_fit",
    "fewest_idle_gpu_first": "least_idle",
    "most_idle_gpu_first": "most_idle",
    "lowest_utilisation_first": "lowest_utilization",
}
HETEROGENEOUS = wt.ClusterSpec(
    (
        wt.NodeType(16, 0, "CPU", 96),
        wt.NodeType(56, 8, "MISC", 96),
        wt.NodeType(100, 2, "T4", 96),
        wt.NodeType(160, 2, "P100", 64),
        wt.NodeType(48, 8, "V100", 96),
    )
)
CLUSTERS = {
    "pool_20gpu_464cpu": wt.ClusterSpec.pool(20, cpus=464),
    "pool_100gpu_2322cpu": wt.ClusterSpec.pool(100, cpus=2322),
    "homogeneous_3x(8gpu,96cpu)": wt.ClusterSpec.uniform(3, 8, cpus_per_node=96),
    "hetero_1352gpu_380nodes": HETEROGENEOUS,
}
#: Which GPU types bind, by the reference's rule.
BIND = {
    None: None,
    "ignore_type": (),
    "exact_type": None,
    "v100_jobs_only_on_v100": ("V100",),
}
POLICIES: dict[str, Any] = {
    "FIFO": "fifo",
    "SJF": "sjf",
    "SJU": lambda jobs: jobs.user_dur,
    "SJG": lambda jobs: jobs.group_dur,
    "SJGG": lambda jobs: jobs.group_gpu_dur,
}
ARRIVALS = {
    "trace submit_time": None,
    "100 jobs every 60 s": "100/60",
    "300 jobs every 60 s": "300/60",
}


@pytest.fixture
def folder(data_dir: Path) -> Path:
    """The recorded runs."""
    return data_dir / "pai_sim_reference"


def rows_of(folder: Path, about: dict[str, Any]) -> list[dict[str, str]]:
    cluster = about["cluster"].replace("(", "").replace(")", "").replace(",", "_")
    stem = about["jobs_file"].removesuffix(".csv")
    with (folder / f"per_job_{stem}__{cluster}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def fly(folder: Path, about: dict[str, Any], engine: str) -> wt.Outcome:
    return wt.simulate(
        wt.open_trace(str(folder / about["jobs_file"])).jobs,
        CLUSTERS[about["cluster"]],
        POLICIES[about["policy"]],
        placement=ORDERS[about["node_order"]],
        bind_types=BIND[about["gpu_type_rule"]],
        arrivals=ARRIVALS[about["arrivals"]],
        compat="pai",
        engine=engine,
    )


def listed_nodes(text: str) -> list[tuple[int, int]]:
    """Return (node, tasks), by node, from ``3*2 5``, or ``7``."""
    parts = (part.partition("*") for part in text.split())
    return sorted((int(node), int(times or 1)) for node, _, times in parts)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_every_completion_and_every_node_is_the_simulators(folder: Path, engine: str) -> None:
    runs = json.loads((folder / "results.json").read_text())["runs"]
    assert len(runs) == 24
    for about in runs:
        out = fly(folder, about, engine)
        rows = rows_of(folder, about)
        assert out.jobs["job_id"].to_pylist() == [row["job_id"] for row in rows]
        jct = out.table["jct"].to_pylist()
        assert jct == [int(row[f"jct__{about['run']}"]) for row in rows], about["run"]
        metrics = out.metrics()
        for name in ("jct", "wait"):
            assert metrics[f"avg_{name}"] == pytest.approx(about[f"avg_{name}_s"], abs=1e-4)
        assert metrics["makespan"] == about["makespan_s"]
        if not out.cluster.is_pool:
            where = {s["row"]: (s["nodes"], s["node_tasks"]) for s in out.segments.to_pylist()}
            for job, row in enumerate(rows):
                held = sorted(zip(*where[job], strict=True))
                assert held == listed_nodes(row[f"nodes__{about['run']}"]), (about["run"], job)
