"""Decisions of the two loops, and what dependencies ask for, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from dependencies import Dependencies

from windtunnel.sim.slurm.requests import SlurmRequest
from windtunnel.sim.slurm.tables import SlurmTables
from windtunnel.site.slurm_conf import read_slurm_conf

if TYPE_CHECKING:
    from pathlib import Path

CONF = """
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
PriorityType=priority/multifactor
NodeName=g[1-3] CPUs=32 RealMemory=256000 Gres=gpu:8
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
"""


def asked(number: int, **more: Any) -> SlurmRequest:
    values: dict[str, Any] = {
        "identity": number, "submit": float(number), "user": "ann", "account": "", "qos": "",
        "partitions": (), "min_nodes": 1, "max_nodes": 1, "cpus": 4, "node_cpus": 4, "limit": 600,
    }  # fmt: skip
    return SlurmRequest(**(values | more))


def tables(folder: Path, *requests: SlurmRequest) -> SlurmTables:
    (folder / "slurm.conf").write_text(CONF)
    return SlurmTables(read_slurm_conf(folder), list(requests))


@pytest.mark.parametrize(("gpus", "node"), [(0, 1), (1, 0)])
def test_a_gpu_job_goes_to_the_first_node_a_cpu_job_to_the_fullest(
    tmp_path: Path, gpus: int, node: int
) -> None:
    # g2 has 16 of 32 processors and 4 of 8 GPUs free. A job with GPUs counts on each node only the
    # processors that it asks for there: all nodes are alike to it, and the first one is taken.
    site = tables(tmp_path, asked(1, node_gpus=4), asked(2, node_gpus=gpus))
    site.loops.put_running(0, 0, 0, [(1, 16, 0, 4)])
    site.loops.put_pending(1)
    assert site.loops.run_main(10) == [1]
    assert site.jobs.columns["part"][1] == 0
    assert [(there, cpus) for there, cpus, _, _ in site.stays.of(1)] == [(node, 4)]


@pytest.mark.parametrize(("requeued", "order"), [(None, [0, 1]), (50, [1, 0])])
def test_of_equal_priorities_the_requeued_job_comes_later(
    tmp_path: Path, requeued: int | None, order: list[int]
) -> None:
    site = tables(tmp_path, asked(1), asked(2))
    for job in range(2):
        site.jobs.columns["priority"][job] = 7
    if requeued is not None:
        site.jobs.columns["submitted"][0] = requeued
    for job in range(2):
        site.loops.put_pending(job)
    assert [job for job, _ in site.loops.queued()] == order


#: Job 0 ended well, 1 did not, 2 runs, 3 waits; j4 is an array of two: one ended, one runs.
@pytest.mark.parametrize(
    ("words", "met"),
    [
        ("", True),
        ("afterok:j0", True),
        ("afterok:j1", False),
        ("afternotok:j0", False),
        ("afternotok:j1", True),
        ("afterany:j0:j1", True),
        ("afterany:j2", None),
        ("after:j2", True),
        ("after:j3", None),
        ("afterok:j4", None),
        ("after:j4", True),
        ("afterok:j0,afterok:j1", False),
        ("afterok:j2,afterok:j1", False),
        ("afterok:j1?afterany:j2", None),
        ("afterok:j1?afterany:j0", True),
        ("afterok:j1?afternotok:j0", False),
        ("singleton", None),
    ],
)
def test_dependencies(words: str, met: Any) -> None:
    names = ["j0", "j1", "j2", "j3", "j4", "j4", "j5"]
    extra = {"j2": "--job-name=one", "j5": "--job-name=one"}
    record: Any = SimpleNamespace(
        rows=[{"job": name} for name in names],
        work=[
            {"job": n, "user": "ann", "extra": extra.get(n, ""), "dependency": ""} for n in names
        ],
        requests=[SimpleNamespace(identity=at) for at in range(len(names))],
    )
    record.work[6]["dependency"] = words
    ends = {0: True, 1: False, 4: True}
    begun = {0, 1, 2, 4, 5}
    assert Dependencies(record).met(6, begun.__contains__, ends.get) is met
