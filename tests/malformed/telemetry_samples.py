"""A small valid file of every telemetry format, of the published curves, and of PAI's tables."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
from grids import grid
from samples import (
    Reading,
    Sample,
    counting,
    counting_lines,
    reading_telemetry,
    reading_trace,
    uncountable,
)

from windtunnel.telemetry.published import percentiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from grids import Grid

_WIDE = """\
Time,10.140.0.1-0,10.140.0.1-1,"gpu ü, 2"
2023-07-01 00:00:00+08:00,0.0,1.5,99
2023-07-01 00:00:15+08:00,,2.5,98
2023-07-01 00:00:30+08:00,3,NaN,97
2023-07-01 00:00:45+08:00,4,5,96
2023-07-01 00:01:00+08:00,6,7,95
"""
_IPMI = """\
Time,IP,CPU_Power,MEM_Power,Sys_Total_Power
2023-08-01 00:00:00,10.0.0.1,200,90,2000
2023-08-01 00:05:00,10.0.0.2,210,,2100
2023-08-01 00:10:00,"ü, 3",205,95,
2023-08-01 00:15:00,10.0.0.1,206,96,2050.5
2023-08-01 00:20:00,10.0.0.1,207,97,2060
"""
_DCGM = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1"} 97 1759752300000
DCGM_FI_DEV_GPU_UTIL{gpu="1",Hostname="n1"} NaN 1759752301000
DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="ü\\"n\\\\"} 45.5 1759752302000
DCGM_FI_DEV_POWER_USAGE{gpu="0",hpc_job="17"} 371.526 1759752303000
up{job="dcgm"} 1 1759752304000
DCGM_FI_DEV_POWER_USAGE{gpu="1"} 1e2 1759752305000
"""
_GENAI = """\
timestamp_anon,container_ip,value
0,10.0.0.1,0.5
60,10.0.0.2,
120,"ü, x",1.5
180,10.0.0.1,2
240,,3
"""
_PHILLY_GPU = """\
time,machineId,gpu0_util,gpu1_util
2017-10-03 00:08:00 PDT,m1,60.8,NA
2017-10-03 00:09:00 PDT,m2,3,4
2017-10-03 00:10:00 PDT,ü,5,6
2017-11-27 00:04:00 PST,m1,7,8
2017-11-27 00:05:00 PST,m1,9,10.5
"""
_PHILLY_CPU = """\
time,machine_id,cpu_util
2017-11-27 00:04:00 PST,m29,31.845
2017-11-27 00:05:00 PST,m29,NA
2017-11-27 00:06:00 PST,"ü, x",32
2017-11-27 00:07:00 PST,m30,33
2017-11-27 00:08:00 PST,m31,34
"""
_PHILLY_MEM = """\
time,machine_id,mem_total,mem_free
2017-10-03 00:06:00 PDT,m1,1000.0,250.0
2017-10-03 00:07:00 PDT,m2,NA,NA
2017-10-03 00:08:00 PDT,m3,0,0
2017-10-03 00:09:00 PDT,ü,1000,500
2017-10-03 00:10:00 PDT,m1,1000,100
"""
_PAI_COLUMNS = {
    "pai_task_table": """job_name task_name inst_num status start_time end_time plan_cpu plan_mem
        plan_gpu gpu_type""",
    "pai_job_table": "job_name inst_id user status start_time end_time",
    "pai_instance_table": """job_name task_name inst_name worker_name inst_id status start_time
        end_time machine""",
    "pai_sensor_table": """job_name task_name worker_name inst_id machine gpu_name cpu_usage
        gpu_wrk_util avg_mem max_mem avg_gpu_wrk_mem max_gpu_wrk_mem read write read_count
        write_count""",
    "pai_machine_spec": "machine gpu_type cap_cpu cap_mem cap_gpu",
}
_PAI = {
    "pai_task_table": """\
j1,worker,2.0,Terminated,100.0,400.0,600.0,29.296875,50.0,T4
j1,ps,1.0,Running,100.0,,1200.0,8.0,,MISC
j2,"wörker, 2",1.0,Failed,200.0,300.0,600.0,29.0,100.0,V100
j3,tensorflow,4.0,Waiting,,,600.0,29.0,25.0,
j4,tensorflow,1.0,Terminated,500.0,600.5,600.0,29.0,200.0,P100
""",
    "pai_job_table": """\
j1,id1,u1,Terminated,90.0,400.0
j2,id2,ü,Failed,190.0,300.0
j3,id3,u1,Waiting,250.0,
j4,id4,u2,Terminated,450.0,600.5
j9,id9,u2,Failed,1.0,2.0
""",
    "pai_instance_table": """\
j1,worker,i1,w1,id1,Terminated,110.0,390.0,m1
j1,worker,i2,w2,id1,Terminated,120.0,401.0,m2
j1,ps,i3,w3,id1,Running,105.0,0.0,m1
j2,"wörker, 2",i4,w4,id2,Failed,205.0,300.0,m1
j4,tensorflow,i5,w5,id4,Terminated,505.0,600.0,m2
""",
    "pai_sensor_table": """\
j1,worker,w1,id1,m1,/dev/nvidia0,250.0,12.5,1.5,2.5,0.5,0.75,10.0,20.0,3.0,4.0
j1,worker,w2,id1,m2,/dev/nvidia0,250.0,12.5,1.5,2.5,0.5,0.75,10.0,20.0,3.0,4.0
j1,ps,w3,id1,m1,,100.0,,4.0,5.0,,,1.0,2.0,3.0,4.0
j4,tensorflow,w5,id4,m2,/dev/nvidia1,250.0,12.5,1.5,2.5,0.5,0.75,10.0,20.0,3.0,4.0
jx,ü,w9,id9,m2,,1,2,3,4,5,6,7,8,9,10
""",
    "pai_machine_spec": """\
m1,T4,96,512,2
m2,MISC,96,512,8
m3,CPU,96,512,0
mü,V100,96,512,8
m5,P100,64,512,2
""",
}


def _wide(name: str, file: str, text: str, names: int | None = None, **more: Any) -> Sample:
    found = grid(text)
    width = 1 if names is None else len(found.columns) - names
    defaults: dict[str, Any] = {
        "name": name,
        "file": file,
        "data": text.encode(),
        "records": len(found.rows) * width,
        "read": reading_telemetry(name),
        "count": counting(found, names=names),
        "grid": found,
    }
    return Sample(**defaults | more)


def telemetry_samples() -> list[Sample]:
    """Return the samples of `windtunnel.telemetry`, but for those of JSON and Parquet."""
    lines = grid(_DCGM, mark=" ", quoted=False, columns="series value time")
    return [
        _wide("acme-wide", "GPU_UTIL.csv", _WIDE, 1),
        _wide("ipmi", "GPU_AB_Power.csv", _IPMI),
        Sample("dcgm", "scrape.prom", _DCGM.encode(), 6, reading_telemetry("dcgm"),
               counting_lines("#"), grid=lines),
        _wide("genai-telemetry", "gpu_util_anon.csv", _GENAI, read=reading_telemetry("genai")),
        _wide("philly-gpu-util", "cluster_gpu_util", _PHILLY_GPU, 2),
        _wide("philly-cpu-util", "cluster_cpu_util", _PHILLY_CPU),
        _wide("philly-mem-util", "cluster_mem_util", _PHILLY_MEM),
    ]  # fmt: skip


def _curves(path: Path) -> Reading:
    table = percentiles(path)
    return Reading(table.num_rows, {}, table, ())


def curve_samples() -> list[Sample]:
    """Return a file of published curves as pickle (old and new) and as ``.npz``."""
    value, percent = np.array([0.5, 1.0, 350.25, 400.0]), np.array([0.0, 25.0, 75.0, 100.0])
    buffer = io.BytesIO()
    np.savez(buffer, gpu_power__power_w__x=value, gpu_power__power_w__y=percent)
    names = {"pickle": 4, "old pickle": 0}
    return [
        *(
            Sample(f"curves {name}", "gpu_power_seren.pkl", pickle.dumps([value, percent], number),
                   4, _curves, uncountable)
            for name, number in names.items()
        ),
        Sample("curves npz", "curves.npz", buffer.getvalue(), 4, _curves, uncountable),
    ]  # fmt: skip


def _counting_headless(cells: Grid) -> Callable[[bytes], int | None]:
    """Return a counter of records that may, or may not, stand below a line of their names."""
    count = counting(cells)

    def without_header(data: bytes) -> int | None:
        found = count(data)
        first = data.removeprefix(b"\xef\xbb\xbf").lstrip().replace(b"\r", b"\n").split(b"\n")[0]
        names = [name.strip(b'" ') for name in first.split(b",")]
        return found if found is None else found - (names == [n.encode() for n in cells.columns])

    return without_header


def pai_samples() -> list[Sample]:
    """Return PAI's folder, once for each table that may be at fault."""
    found = []
    tables = {name: grid(text, columns=_PAI_COLUMNS[name]) for name, text in _PAI.items()}
    tasks = tuple("/".join(cells[:2]) for cells in tables["pai_task_table"].rows)
    for name, cells in tables.items():
        text = _PAI[name]
        others = {f"{n}.csv": t.encode() for n, t in _PAI.items() if n != name}
        is_main = name == "pai_task_table"
        found.append(
            Sample(
                name=f"pai {name}",
                file=f"{name}.csv",
                data=text.encode(),
                records=5,
                read=reading_trace("pai", folder=True),
                count=_counting_headless(cells) if is_main else lambda _: 5,
                grid=cells,
                ids=tasks if is_main else (),
                coupled=frozenset(cells.columns[:2]) if is_main else frozenset(),
                beside=others,
                cost=50,
            )
        )
    return found
