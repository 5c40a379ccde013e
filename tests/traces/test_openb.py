"""Alibaba's openb: pods, nodes and the re-sampled variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
import pytest

from windtunnel.companions import NODE_COLUMNS
from windtunnel.errors import SpecError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.openb import read_nodes, read_openb

if TYPE_CHECKING:
    from pathlib import Path

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
PODS = (
    "p0,6000,12288,1,460,,LS,Running,100,500,120\n"
    "p1,8000,1024,8,1000,V100M16|V100M32,BE,Failed,50,60,50\n"
    "p2,4000,1024,0,0,,LS,Pending,70,90,\n"
    "p3,4000,1024,1,1000,T4,Burstable,Succeeded,50,90,51\n"
)
NODES = (
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "n0,32000,262144,0,\nn1,64000,262144,2,P100\nn2,64000,262144,2,P100\nn3,32000,262144,0,\n"
)


def pods(tmp_path: Path, text: str = HEADER + PODS) -> Path:
    path = tmp_path / "pods.csv"
    path.write_text(text)
    return path


def test_pods_become_jobs(tmp_path: Path) -> None:
    trace = open_trace(pods(tmp_path))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["p1", "p3", "p2", "p0"]
    assert jobs["num_gpus"] == [8.0, 1.0, 0.0, 0.46]
    assert jobs["start_time"] == [50.0, 51.0, None, 120.0]
    assert jobs["end_time"] == [60.0, 90.0, 90.0, 500.0]
    assert jobs["duration"] == [10.0, 39.0, None, 380.0]
    assert jobs["gpu_type"] == ["V100M16|V100M32", "T4", None, None]
    assert jobs["status"] == ["failed", "completed", "pending", "running"]
    assert jobs["workload"] == ["BE", "Burstable", "LS", "LS"]
    assert jobs["num_cpus"] == [8.0, 4.0, 4.0, 6.0]
    assert jobs["mem_gib"] == [1.0, 1.0, 1.0, 12.0]
    assert jobs["num_tasks"] == [1, 1, 1, 1]
    assert (trace.cluster, trace.nodes) == (None, None)


def test_a_variant_without_times_keeps_them_unknown(tmp_path: Path) -> None:
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    trace = open_trace(pods(tmp_path, header + "p0,6000,12288,1,460\n"))
    assert trace.jobs["num_gpus"].to_pylist() == [0.46]
    assert trace.jobs["submit_time"].to_pylist() == [None]
    assert any("no times" in note for note in trace.metadata.notes)


def test_nodes_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(NODES)
    trace = open_trace(pods(tmp_path), nodes=path)
    assert trace.cluster is not None
    assert [(t.count, t.gpus, t.gpu_type, t.cpus) for t in trace.cluster.node_types] == [
        (1, 0, None, 32.0),
        (2, 2, "P100", 64.0),
        (1, 0, None, 32.0),
    ]
    assert trace.nodes is not None
    assert trace.nodes.column_names == [column.name for column in NODE_COLUMNS]
    assert trace.nodes["node"].to_pylist() == ["n0", "n1", "n2", "n3"]
    assert trace.nodes["num_gpus"].to_pylist() == [0.0, 2.0, 2.0, 0.0]
    assert trace.nodes["num_cpus"].to_pylist() == [32.0, 64.0, 64.0, 32.0]
    assert trace.nodes["mem_gib"].to_pylist() == [256.0] * 4


def test_the_published_nodes_beside_the_pods_are_taken(tmp_path: Path) -> None:
    (tmp_path / "openb_node_list_all_node.csv").write_text(NODES)
    trace = open_trace(pods(tmp_path))
    assert trace.cluster is not None
    assert trace.cluster.num_gpus == 4
    assert any("openb_node_list_all_node.csv" in note for note in trace.metadata.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + PODS.replace("Pending", "Lost"), "line 4, column 'pod_phase': found 'Lost'"),
        (HEADER + PODS.replace(",460,", ",half,"), "line 2, column 'gpu_milli': found 'half'"),
        (HEADER.replace("qos,", "qo,") + PODS, "a column 'qos'.*Did you mean 'qo'"),
        (HEADER.replace("deletion_time", "x") + PODS, "a column 'deletion_time'"),
    ],
)
def test_bad_pods(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_openb(pods(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("sn,cpu_milli,memory_mib,gpu\nn,1,1,1\n", TraceError, "a column 'model'"),
        (NODES.replace("262144,2,", "262144,,"), TraceError, "line 3, column 'gpu'"),
        (NODES.replace("n2,", "n1,"), TraceError, "line 4, column 'sn': found 'n1'"),
        (NODES.replace("n2,", ","), TraceError, "line 4, column 'sn': expected a name"),
        (NODES.replace("262144,2,", "262144,-2,"), SpecError, "expected 0 or more GPUs"),
        (NODES.replace("262144,2,", "262144,0,"), SpecError, "no GPU"),
    ],
)
def test_bad_nodes(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(error, match=message):
        read_nodes(path)


@pytest.mark.data
def test_published_numbers(data_dir: Path) -> None:
    trace = open_trace("openb")
    jobs = trace.jobs
    assert jobs.num_rows == 8_152
    wait = pc.subtract(jobs["start_time"], jobs["submit_time"]).drop_null().to_numpy()
    assert len(wait) == 8_152 - 897
    assert np.quantile(wait, [0.5, 0.9]).tolist() == [2.0, 106.0]
    assert round(np.quantile(wait, 0.99)) == 890
    assert wait.max() == 14_330
    status = {row["values"]: row["counts"] for row in pc.value_counts(jobs["status"]).to_pylist()}
    assert status == {"running": 5_193, "failed": 1_870, "pending": 897, "completed": 192}
    qos = {row["values"]: row["counts"] for row in pc.value_counts(jobs["workload"]).to_pylist()}
    assert qos == {"LS": 4_647, "BE": 3_398, "Burstable": 100, "Guaranteed": 7}
    assert pc.sum(jobs["num_gpus"]).as_py() == pytest.approx(6_086.8)
    life = pc.subtract(jobs["end_time"], jobs["submit_time"]).to_numpy()
    assert np.quantile(life, [0.5, 0.9]).round().tolist() == [540, 6573]
    assert trace.cluster is not None
    assert (trace.cluster.num_gpus, trace.cluster.num_nodes) == (6_212, 1_523)
    assert trace.nodes is not None
    assert trace.nodes["gpu_type"].null_count == 310


@pytest.mark.data
@pytest.mark.parametrize(
    ("variant", "rows", "gpus"),
    [
        ("multigpu20", 8_324, 7_086.8),
        ("multigpu40", 8_746, 9_442.8),
        ("gpushare40", 8_152, 5_641.2),
        ("gpushare80", 8_152, 4_408.2),
        ("gpuspec33", 8_152, 6_086.8),
        ("cpu300", 10_094, 6_086.8),
    ],
)
def test_published_variants(data_dir: Path, variant: str, rows: int, gpus: float) -> None:
    trace = open_trace(f"openb:{variant}")
    assert trace.jobs.num_rows == rows
    assert pc.sum(trace.jobs["num_gpus"]).as_py() == pytest.approx(gpus, abs=0.06)
    assert trace.name == f"openb:{variant}"
