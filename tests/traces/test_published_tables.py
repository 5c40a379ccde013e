"""Published job tables, damaged: a whole trace or one clear error, never a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.errors import WindtunnelError
from windtunnel.traces import open_trace
from windtunnel.traces.header import header_has

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

FORMATS = {
    "acme": "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
    "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
    + "".join(
        f"j{i},u{i % 3},{1 + i},{8 * (1 + i)},120,1000,1.0,Eval,FAILED,2023-05-17 11:0{i}:00+00:00,"
        f"2023-05-17 11:0{i}:10+00:00,2023-05-17 12:00:00+00:00,,,18,10.0,9.0\n"
        for i in range(8)
    ),
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,"
    "duration,queue\n"
    + "".join(
        f"{i},u,v,8,64,1,COMPLETED,2020-04-01 00:0{i}:00,2020-04-01 00:0{i}:05,"
        f"2020-04-01 01:00:00,3600,5\n"
        for i in range(8)
    ),
    "acme-helios": "job_id,gpu_num,node_num,state,duration,cluster\n"
    + "".join(f"{i},8,1,COMPLETED,{i}.0,Venus\n" for i in range(8)),
    "acme-philly": "gpu_num,duration,state\n" + "".join(f"{i},{i},Pass\n" for i in range(8)),
    "acme-pai": "plan_cpu,plan_gpu,wait_time,status,duration\n"
    + "".join(f"600.0,2{i}.0,{i},Failed,1{i}.5\n" for i in range(8)),
    "pai-sim": "job_id,user,group,gpu_type,num_inst,num_cpu,num_gpu,submit_time,duration,wait_time,"
    "user_dur,user_gpu_dur,group_dur,group_gpu_dur\n"
    + "".join(f"{i},u,g,T4,{1 + i},8,0.25,{i},{i},0.0,4.8,1.5,1.3,1.3\n" for i in range(8)),
    "pai-sim-totals": "job_id,user,num_gpu,num_cpu,num_pod,duration,job_name,submit_time,group,"
    "gpu_type,wait_time,user_dur,group_dur,group_gpu_dur\n"
    + "".join(f"{i},u,2.5,60.0,10.0,5{i},n,{i},g,T4,3,386.0,67.5,61.0\n" for i in range(8)),
    "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
    + "".join(f"{i},{1 + i},{i},100{i},vgg16,5{i},0\n" for i in range(8)),
    "asi": "pod_id,workload_id,server_id,gpu_spec_public,priority_class,job_type_public,"
    "model_type_public,is_genai_request,gpu_request,duration_hours,schedule_delay_sec,"
    "ready_delay_sec,ready_status,schedule_status\n"
    + "".join(f"p{i},w,s,A10,HP,dev,genai,true,0.5,{i}.5,3,,true,true\n" for i in range(8)),
    "dlrm": "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,disk_limit,"
    "creation_time,scheduled_time,deletion_time\n"
    + "".join(f"i{i},HN,a,12,1,120.0,800.0,{i}.0,{i}.5,\n" for i in range(8)),
    "genai": "gmt_create,predict_type,predict_status,exec_time_seconds,groupId,prompt_length,"
    "num_lora\n"
    + "".join(f"2024-11-15 16:57:5{i},TXT_2_IMG,SUCCEED,3{i}.0,G,6.0,0\n" for i in range(8)),
}
CELLS = (
    *("", " ", "0", "-1", "-0.0", "1e400", "nan", "inf", "9" * 25, "9007199254740993", "1e308"),
    *("x", "\x1b[31m", '"', "é", "2023-05-17", "9999-12-31 23:59:59+00:00", "0001-01-01 00:00:00"),
    *("9999-12-31 23:59:59", "2023-05-17 11:00:00-12:00", "1677-01-01 00:00:00", "true", "null"),
)
CHANGE = st.one_of(
    st.tuples(
        st.just("cell"), st.integers(0, 8), st.integers(0, 16), st.sampled_from(CELLS) | st.text()
    ),
    st.tuples(st.just("line"), st.integers(0, 8), st.integers(0, 2), st.just("")),
    st.tuples(st.just("byte"), st.integers(0, 255), st.integers(0, 900), st.just("")),
    st.tuples(st.just("cut"), st.integers(0, 8), st.integers(0, 900), st.just("")),
)


def changed(data: bytes, kind: str, first: int, second: int, cell: str) -> bytes:
    """Return the file with one cell, line or byte changed, or cut."""
    lines = data.split(b"\n")
    row = first % len(lines)
    if kind == "cell":
        cells = lines[row].split(b",")
        cells[second % len(cells)] = cell.encode(errors="surrogatepass")
        lines[row] = b",".join(cells)
    elif kind == "line":
        lines[row : row + 1] = [lines[row]] * second
    elif kind == "byte":
        at = second % max(len(data), 1)
        return data[:at] + bytes([first]) + data[at + 1 :]
    else:
        return data[: second % max(len(data), 1)]
    return b"\n".join(lines)


def opened(path: Path, name: str) -> Trace | WindtunnelError:
    """Open a file, with its one error in place of the trace; any other error is a defect."""
    try:
        return open_trace(path, format=name)
    except WindtunnelError as error:
        return error


@pytest.mark.parametrize("name", list(FORMATS))
def test_the_good_file_is_read_whole_and_recognised(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(FORMATS[name])
    trace = open_trace(path, format=name)
    assert trace.jobs.num_rows == trace.metadata.rows_read == 8
    assert trace.metadata.licence
    if name != "acme-philly":  # its three columns say too little: it is named
        assert open_trace(path).jobs.equals(trace.jobs)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", list(FORMATS))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200
)
@given(changes=st.lists(CHANGE, min_size=1, max_size=3))
def test_damaged_files_give_a_whole_trace_or_one_clear_error(
    tmp_path: Path, name: str, changes: list[tuple[str, int, int, str]]
) -> None:
    data = FORMATS[name].encode()
    for change in changes:
        data = changed(data, *change)
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    trace = opened(path, name)
    if isinstance(trace, WindtunnelError):
        assert str(path) in str(trace)
        return
    meta = trace.metadata
    assert meta.rows_read == trace.jobs.num_rows + sum(meta.dropped.values())
    assert trace.jobs.num_rows > 0


@pytest.mark.parametrize("head", [b"", b"\xff\xfe", b'"a', b"\x00,a", b"\n\n", b"PAR1\x15"])
def test_a_header_that_is_none_is_not_recognised(head: bytes) -> None:
    assert not header_has(head, "a", "b")
