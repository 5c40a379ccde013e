"""Small PAI folders in the exact layout of the release: CSV without header lines."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

COLUMNS = {
    "pai_job_table": "job_name inst_id user status start_time end_time",
    "pai_task_table": "job_name task_name inst_num status start_time end_time plan_cpu plan_mem "
    "plan_gpu gpu_type",
    "pai_instance_table": "job_name task_name inst_name worker_name inst_id status start_time "
    "end_time machine",
    "pai_sensor_table": "job_name task_name worker_name inst_id machine gpu_name cpu_usage "
    "gpu_wrk_util avg_mem max_mem avg_gpu_wrk_mem max_gpu_wrk_mem read write read_count "
    "write_count",
    "pai_group_tag_table": "inst_id user gpu_type_spec group workload",
    "pai_machine_spec": "machine gpu_type cap_cpu cap_mem cap_gpu",
    "pai_machine_metric": "worker_name machine start_time end_time machine_cpu_iowait "
    "machine_cpu_kernel machine_cpu_usr machine_gpu machine_load_1 machine_net_receive "
    "machine_num_worker machine_cpu",
}
#: One job of two tasks; the workers have three instances, of which two have sensors.
GOOD = {
    "pai_job_table": ["j1,id1,u1,Terminated,90.0,400.0"],
    "pai_task_table": [
        "j1,worker,2.0,Terminated,100.0,400.0,600.0,29.296875,50.0,T4",
        "j1,ps,1.0,Running,100.0,,1200.0,8.0,,MISC",
    ],
    "pai_instance_table": [
        "j1,worker,i1,w1,id1,Terminated,110.0,390.0,m1",
        "j1,worker,i2,w2,id1,Terminated,120.0,401.0,m2",
        "j1,ps,i3,w3,id1,Running,105.0,0.0,m1",
    ],
    "pai_sensor_table": [
        "j1,worker,w1,id1,m1,/dev/nvidia0,250.0,12.5,1.5,2.5,0.5,0.75,10.0,20.0,3.0,4.0",
        "j1,ps,w3,id1,m1,,100.0,,4.0,5.0,,,1.0,2.0,3.0,4.0",
    ],
    "pai_group_tag_table": ["id1,u1,V100,g1,bert"],
    "pai_machine_spec": ["m1,T4,96,512,2", "m2,MISC,96,512,8", "m3,CPU,96,512,0"],
    "pai_machine_metric": ["w1,m1,110.0,390.0,0.1,0.2,0.3,40.0,5.0,6.0,7.0,8.0"],
}


def write(folder: Path, tables: dict[str, Iterable[str]]) -> Path:
    """Write tables as the release has them, one line a record; return the folder."""
    folder.mkdir(exist_ok=True)
    for name, lines in tables.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.csv").write_text(text, encoding="utf-8", newline="")
    return folder


def record(name: str, **cells: object) -> str:
    """Return a record of a table; cells that are not given are empty."""
    return ",".join(str(cells.get(column, "")) for column in COLUMNS[name].split())


def pack(folder: Path, ending: str) -> None:
    """Replace every CSV of a folder by a packed one (``.csv.gz`` or ``.tar.gz``)."""
    for path in folder.glob("*.csv"):
        data = path.read_bytes()
        path.unlink()
        target = path.with_name(path.stem + ending)
        target.write_bytes(gzip.compress(data) if ending == ".csv.gz" else archive(path.name, data))


def archive(name: str, data: bytes) -> bytes:
    """Return a ``.tar.gz`` with one member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
