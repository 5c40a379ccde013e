"""Alibaba's GPU cluster of 2026: spans of pods, servers with racks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import SpecError, TraceError
from windtunnel.traces import open_trace

if TYPE_CHECKING:
    from pathlib import Path

PODS = (
    "pod_id,workload_id,server_id,gpu_spec_public,priority_class,job_type_public,model_type_public,"
    "is_genai_request,gpu_request,duration_hours,schedule_delay_sec,ready_delay_sec,ready_status,"
    "schedule_status\n"
    "p1,w1,s1,A10,HP,training,genai,true,1.0,1.5,3,4,true,true\n"
    "p1,w1,s1,A10,LP,training,genai,true,0.5,0.1,,4,true,true\n"
    "p2,,s2,H20,Other,dev,dev,false,8,240.25,100,4,true,false\n"
)
SERVERS = (
    "server_id,cluster_id,asw_id,gpu_spec_public,gpu_count,cpu_capacity_cores,day,hour\n"
    "s1,c1,a1,A10,1.0,128,0,00\n"
    "s2,c1,a2,H20,8,192,0,00\n"
    "s3,c1,,H20,8,192,0,00\n"
    "s1,c1,a1,A10,1.0,128,0,01\n"
)


def released(folder: Path, servers: str = SERVERS) -> Path:
    (folder / "asi_opensource_server_hourly.csv").write_text(servers)
    path = folder / "asi_opensource_job_execution_summary.csv"
    path.write_text(PODS)
    return path


def test_a_span_is_a_job(tmp_path: Path) -> None:
    trace = open_trace(released(tmp_path))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["p1", "p1#2", "p2"]
    assert jobs["duration"] == [5400.0, 360.0, 864_900.0]
    assert jobs["num_gpus"] == [1.0, 0.5, 8.0]
    assert jobs["priority"] == [1.0, 0.0, None]
    assert jobs["source_queue"] == [3.0, None, 100.0]
    assert jobs["submit_time"] == [None] * 3
    assert "cannot be replayed in time" in " ".join(trace.metadata.notes)


def test_servers_count_once_and_have_racks(tmp_path: Path) -> None:
    trace = open_trace(released(tmp_path))
    assert trace.nodes is not None
    assert trace.nodes["node"].to_pylist() == ["s1", "s2", "s3"]
    assert trace.cluster is not None
    assert trace.cluster.num_gpus == 17
    assert trace.cluster.topology is not None
    assert trace.cluster.topology.paths == (("a1",), ("a2",), ("of s3",))


def test_a_server_without_a_name_or_with_half_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"line 3, column 'server_id'.*a name in every row\."):
        open_trace(released(tmp_path, SERVERS.replace("s2,", ",")))
    with pytest.raises(TraceError, match="whole number of GPUs"):
        open_trace(released(tmp_path, SERVERS.replace(",8,192,0,00\ns3", ",8.5,192,0,00\ns3")))
    with pytest.raises(SpecError, match=r"line 2: .*cpus"):
        open_trace(released(tmp_path, SERVERS.replace("1.0,128,0,00", "1.0,-1,0,00")))


def test_it_is_described_and_not_flown(tmp_path: Path) -> None:
    from windtunnel import simulate

    with pytest.raises(Exception, match="submit"):
        simulate(open_trace(released(tmp_path)), "4x8:H20")
