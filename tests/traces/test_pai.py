"""The raw PAI v2020 trace: seven tables without header lines."""

from __future__ import annotations

import errno
import gc
import gzip
import io
import itertools
import sys
import tarfile
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.characterize import distribution, overview
from windtunnel.characterize.relation import relation, rows
from windtunnel.companions import NODE_COLUMNS, TASK_COLUMNS
from windtunnel.errors import SpecError, TraceError
from windtunnel.traces import open_trace, source
from windtunnel.traces.pai import hashing, instances, joins, parse, spool
from windtunnel.traces.pai.reader import read_pai

sys.path.insert(0, str(Path(__file__).parent))  # tests are not a package

import pai_oracle as oracle
from pai_tables import COLUMNS, GOOD, archive, pack, record, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.traces.trace import Trace

TASKS = "pai_task_table"


def opened(tmp_path: Path, **changed: list[str] | None) -> Trace:
    """Open the good folder with some tables changed, or left out (None)."""
    tables = {**GOOD, **changed}
    folder = tmp_path / "pai"
    return open_trace(write(folder, {n: t for n, t in tables.items() if t is not None}))


def rows_of(trace: Trace) -> dict[str, dict[str, Any]]:
    """Return the tasks by their ids."""
    return {row["task_id"]: row for row in trace.tasks.to_pyarrow().to_pylist()}


def task(**cells: object) -> str:
    """Return a record of the task table."""
    usual = {"job_name": "j1", "task_name": "worker", "inst_num": "1.0", "status": "Terminated"}
    return record(TASKS, **{**usual, **cells})


def instance(**cells: object) -> str:
    """Return a record of the instance table."""
    usual = {"job_name": "j1", "task_name": "worker", "status": "Terminated"}
    return record("pai_instance_table", **{**usual, **cells})


def test_a_task_with_its_job_instances_and_group_is_a_job(tmp_path: Path) -> None:
    trace = opened(tmp_path)
    worker, ps = trace.jobs.to_pylist()
    assert worker | {
        "job_id": "j1/worker",
        "submit_time": 100.0,
        "start_time": 110.0,
        "end_time": 400.0,
        "duration": 280.5,  # (280 + 281) / 2
        "num_gpus": 1.0,
        "num_tasks": 2,
        "num_cpus": 12.0,
        "mem_gib": 58.59375,
        "gpu_type": "V100",
        "gpu_type_assigned": "T4",
        "user": "u1",
        "template": "g1",
        "workload": "bert",
        "status": "completed",
        "runtime": 300.0,
        "wait_time": 10.0,
        "plan_cpu": 600.0,
        "plan_gpu": 50.0,
        "plan_mem": 29.296875,
        "pai_job": "j1",
        "inst_id": "id1",
    } == worker  # fmt: skip
    unknown = ("end_time", "duration", "num_gpus", "runtime", "plan_gpu")
    assert [ps[name] for name in unknown] == [None] * len(unknown)
    assert (ps["status"], ps["wait_time"], ps["start_time"]) == ("running", 5.0, 105.0)
    assert trace.metadata.rows_read == trace.jobs.num_rows == 2
    notes = " ".join(trace.metadata.notes)
    assert "1 tasks have no instance with start and end" in notes
    assert "1 tasks have no plan_gpu" in notes
    assert "pai_instance_table 3" in notes


def test_an_instance_is_a_task_with_what_was_measured_of_it(tmp_path: Path) -> None:
    trace = opened(tmp_path)
    assert trace.tasks.columns[: len(TASK_COLUMNS)] == tuple(c.name for c in TASK_COLUMNS)
    types = trace.tasks.schema().to_pyarrow().types[: len(TASK_COLUMNS)]
    assert types == [c.type for c in TASK_COLUMNS]
    rows = rows_of(trace)
    assert sorted(rows) == ["w1", "w2", "w3"]
    first = {
        "job_id": "j1/worker",
        "node": "m1",
        "gpu": "/dev/nvidia0",
        "start_time": 110.0,
        "end_time": 390.0,
        "status": "completed",
        "num_gpus": 0.5,
        "num_cpus": 6.0,
        "mem_gib": 29.296875,
        "gpus_used": 0.125,
        "cpus_used": 2.5,
        "mem_used_gib": 1.5,
        "gpu_mem_used_gib": 0.5,
        "inst_name": "i1",
        "inst_id": "id1",
        "worker_name": "w1",
        "node_gpu_type": "T4",
        "max_mem": 2.5,
        "max_gpu_wrk_mem": 0.75,
        "read": 10.0,
        "write": 20.0,
        "read_count": 3.0,
        "write_count": 4.0,
        "machine_cpu_iowait": 0.1,
        "machine_cpu_usr": 0.3,
        "machine_cpu": 8.0,
    }
    assert rows["w1"] | first == rows["w1"]
    assert (rows["w2"]["gpus_used"], rows["w2"]["node_gpu_type"]) == (None, "MISC")
    assert (rows["w3"]["end_time"], rows["w3"]["gpu"], rows["w3"]["cpus_used"]) == (None, None, 1.0)


def test_machines_are_nodes_and_the_cluster(tmp_path: Path) -> None:
    trace = opened(tmp_path)
    assert trace.nodes.column_names == [c.name for c in NODE_COLUMNS]
    assert trace.nodes["gpu_type"].to_pylist() == ["T4", "MISC", None]
    assert trace.nodes["num_gpus"].to_pylist() == [2.0, 8.0, 0.0]
    assert (trace.cluster.num_nodes, trace.cluster.num_gpus) == (3, 10)
    only_cpus = opened(tmp_path, pai_machine_spec=["m1,CPU,96,512,0"])
    assert only_cpus.cluster is None
    assert any("No machine has a GPU" in note for note in only_cpus.metadata.notes)


def test_hour_and_weekday_are_right_in_the_zone(tmp_path: Path) -> None:
    """The notebook prints the first time of the trace as 1970-01-25 00:00:03+08:00."""
    trace = opened(tmp_path, pai_task_table=[task(start_time="2044803.0")])
    submit = trace.jobs["submit_time"][0].as_py()
    moment = datetime.fromisoformat(trace.metadata.epoch) + timedelta(seconds=submit)
    local = moment.astimezone(ZoneInfo(trace.metadata.zone))
    assert local.isoformat() == "1970-01-25T00:00:03+08:00"
    with pytest.raises(SpecError, match="unknown time zone"):
        read_pai(tmp_path / "pai", zone="Shanghai")


@pytest.mark.parametrize("memory", ["1 TB", "100MiB", "GiB", "-1GiB", "1GiB'; DROP"])
def test_an_amount_of_memory_is_checked(tmp_path: Path, memory: str) -> None:
    with pytest.raises(SpecError, match=r"memory: found .* expected at least 256MiB"):
        read_pai(write(tmp_path / "pai", GOOD), memory=memory)


def test_questions_may_use_the_memory_that_they_are_given(tmp_path: Path) -> None:
    trace = read_pai(write(tmp_path / "pai", GOOD), memory="0.5 GiB")
    backend = trace.tasks.get_backend()
    (limit,) = backend.raw_sql("SELECT current_setting('memory_limit')").fetchone()
    assert limit == "512.0 MiB"


def test_tasks_join_with_tables_in_memory(tmp_path: Path) -> None:
    trace = opened(tmp_path)
    nodes = relation(trace.nodes, ("node", "num_gpus")).rename(there="num_gpus")
    tasks = relation(trace.tasks, ("task_id", "node"))
    joined = tasks.inner_join(nodes, "node").order_by("task_id")
    assert [row["there"] for row in rows(joined.select("there"))] == [2.0, 8.0, 2.0]


def test_zero_and_empty_times_are_unknown_and_such_tasks_stand_last(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        pai_task_table=[
            task(task_name="a", start_time="0.0", end_time="9.0"),
            task(task_name="b", start_time="7.0", end_time="0"),
            task(task_name="c", end_time="8"),
            task(task_name="d", start_time="5.0"),
        ],
    )
    assert trace.jobs["job_id"].to_pylist() == ["j1/d", "j1/b", "j1/a", "j1/c"]
    assert trace.jobs["submit_time"].to_pylist() == [5.0, 7.0, None, None]
    assert trace.jobs["end_time"].to_pylist() == [None, None, 9.0, 8.0]
    notes = " ".join(trace.metadata.notes)
    assert "2 tasks have no start_time in the task table: they stand last." in notes
    assert "Tasks were sorted by submission" in notes


def test_only_instances_with_start_and_end_count_for_the_run_time(tmp_path: Path) -> None:
    instances = [
        instance(worker_name="a", start_time="0.0", end_time="50.0"),
        instance(worker_name="b", start_time="20.0", end_time="0.0"),
        instance(worker_name="c", start_time="30.0", end_time="31.0"),
        instance(worker_name="d", start_time="40.0", end_time="43.0"),
    ]
    trace = opened(tmp_path, pai_task_table=[task(start_time="10")], pai_instance_table=instances)
    (job,) = trace.jobs.to_pylist()
    assert (job["instance_start"], job["instance_end"], job["duration"]) == (20.0, 50.0, 2.0)
    assert job["wait_time"] == 10.0


def test_times_that_contradict_are_unknown_and_counted(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        pai_task_table=[
            task(task_name="a", start_time="10.0", end_time="20.0"),  # starts at 5
            task(task_name="b", start_time="10.0", end_time="11.0"),  # starts at 12
            task(task_name="c", start_time="10.0", end_time="9.0"),  # no instance
            task(task_name="d", start_time="10.0", end_time="90.0"),  # runs for -1 s
        ],
        pai_instance_table=[
            instance(task_name="a", worker_name="a", start_time="5.0", end_time="20.0"),
            instance(task_name="b", worker_name="b", start_time="12.0", end_time="13.0"),
            instance(task_name="d", worker_name="d", start_time="20.0", end_time="19.0"),
        ],
    )
    jobs = trace.jobs.to_pydict()
    assert jobs["start_time"] == [None, 12.0, None, 20.0]
    assert jobs["end_time"] == [20.0, None, None, 90.0]
    assert jobs["duration"] == [15.0, 1.0, None, None]
    assert jobs["instance_start"] == [5.0, 12.0, None, 20.0]
    assert jobs["task_end"] == [20.0, 11.0, 9.0, 90.0]
    assert jobs["wait_time"] == [-5.0, 2.0, None, 10.0]
    assert jobs["runtime"] == [10.0, 1.0, -1.0, 80.0]
    notes = " ".join(trace.metadata.notes)
    assert "1 tasks start before they are submitted" in notes
    assert "2 tasks end before they are submitted or start" in notes
    assert "1 tasks have a mean run time below 0" in notes
    assert "1 instances end before they start" in notes


def test_of_several_instances_of_a_worker_the_last_by_status_and_times_is_measured(
    tmp_path: Path,
) -> None:
    """Failed < Running < Terminated < Waiting < unknown; then start, end, place in the file."""
    tries = [
        ("Failed", "9.0", "9.0"),
        ("Terminated", "3.0", "4.0"),
        ("Terminated", "3.0", "8.0"),
        ("Terminated", "3.0", "8.0"),
        ("Terminated", "0.0", "9.0"),
        ("Running", "7.0", ""),
    ]
    lines = [
        instance(worker_name="w1", inst_name=f"i{n}", status=s, start_time=b, end_time=e)
        for n, (s, b, e) in enumerate(tries)
    ]
    trace = opened(tmp_path, pai_instance_table=lines)
    measured = [r for r in rows_of(trace).values() if r["cpus_used"] is not None]
    assert [r["inst_name"] for r in measured] == ["i3"]
    assert [r["machine_cpu"] for r in measured] == [8.0]
    assert sorted(rows_of(trace)) == ["w1", "w1#2", "w1#3", "w1#4", "w1#5", "w1#6"]
    assert any(note.startswith("5 instances share their worker") for note in trace.metadata.notes)


def test_unknown_status_and_times_sort_last_as_in_the_notebook(tmp_path: Path) -> None:
    for tries, best in (
        ([("Waiting", "1.0"), ("", "0.0"), ("Terminated", "9.0")], "i1"),
        ([("Failed", ""), ("Failed", "99.0")], "i0"),
    ):
        lines = [
            instance(worker_name="w1", inst_name=f"i{n}", status=s, start_time=b)
            for n, (s, b) in enumerate(tries)
        ]
        trace = opened(tmp_path, pai_instance_table=lines)
        rows = rows_of(trace).values()
        assert [r["inst_name"] for r in rows if r["cpus_used"] is not None] == [best]


def test_names_that_repeat_or_meet_are_numbered(tmp_path: Path) -> None:
    names = [("a/b", "c"), ("a", "b/c"), ("a", "x"), ("a", "x"), ("a", "x#2"), ("a", "x")]
    trace = opened(
        tmp_path,
        pai_task_table=[
            task(job_name=job, task_name=name, start_time=n)
            for n, (job, name) in enumerate(names, 1)
        ],
        pai_instance_table=[
            instance(job_name="a", task_name="x", worker_name="w", start_time="9", end_time="11"),
            instance(job_name="a", task_name="b/c", worker_name="v", start_time="9"),
        ],
    )
    ids = trace.jobs["job_id"].to_pylist()
    assert ids == ["a/b/c", "a/b/c##2", "a/x", "a/x##2", "a/x#2", "a/x##3"]
    # Instances cannot tell tasks of one name apart: they count for each, and name the first.
    assert trace.jobs["duration"].to_pylist() == [None, None, 2.0, 2.0, None, 2.0]
    assert {r["task_id"]: r["job_id"] for r in rows_of(trace).values()} == {
        "w": "a/x",
        "v": "a/b/c##2",
    }
    assert any(note.startswith("3 tasks have the names") for note in trace.metadata.notes)


def test_a_task_without_a_worker_is_called_by_its_instance_or_place(tmp_path: Path) -> None:
    lines = [instance(inst_name="i"), instance(), instance(worker_name="i")]
    trace = opened(tmp_path, pai_instance_table=lines)
    assert sorted(rows_of(trace)) == ["i", "i#2", "instance 2"]


def test_rows_that_match_nothing_or_repeat_a_key_are_counted(tmp_path: Path) -> None:
    extra = {
        "pai_job_table": ["j1,id9,u9,,,", "j7,id7,u7,,,"],
        TASKS: [task(job_name="j8", start_time="900")],
        "pai_instance_table": [instance(job_name="j9", worker_name="w9", machine="m9")],
        "pai_sensor_table": [
            record("pai_sensor_table", worker_name="w1", cpu_usage="1.0"),
            record("pai_sensor_table", worker_name="w8"),
            record("pai_sensor_table"),
        ],
        "pai_group_tag_table": ["id1,u1,,g9,", "id8,u8,,g8,"],
        "pai_machine_spec": ["m1,T4,1,1,1"],
        "pai_machine_metric": ["w1" + "," * 11, "w7" + "," * 11],
    }
    trace = opened(tmp_path, **{name: [*GOOD[name], *extra[name]] for name in GOOD})
    expected = {
        "1 rows of pai_job_table repeat the key of an earlier one, which counts.",
        "1 rows of pai_group_tag_table repeat the key of an earlier one, which counts.",
        "1 rows of pai_machine_spec repeat the key of an earlier one, which counts.",
        "1 rows of pai_sensor_table repeat a worker: its first counts.",
        "1 rows of pai_machine_metric repeat a worker: its first counts.",
        "2 rows of pai_sensor_table belong to no instance.",
        "1 rows of pai_machine_metric belong to no instance.",
        "1 tasks have no row in the job table.",
        "1 rows of the job table have no task.",
        "1 rows of the group tag table belong to no job.",
        "1 instances have no task in the task table.",
        "1 instances name a machine without specification.",
    }
    assert expected <= set(trace.metadata.notes)
    assert trace.jobs["user"].to_pylist() == ["u1", "u1", None]
    assert trace.jobs["template"].to_pylist() == ["g1", "g1", None]
    assert trace.nodes.num_rows == 3
    rows = rows_of(trace)
    assert (rows["w9"]["job_id"], rows["w9"]["num_cpus"]) == ("j9/worker", None)
    assert rows["w1"]["cpus_used"] == 2.5
    assert len(rows) == 4


@pytest.mark.parametrize("missing", [name for name in GOOD if name != TASKS])
def test_a_missing_table_is_named_with_what_it_costs(tmp_path: Path, missing: str) -> None:
    trace = opened(tmp_path, **{missing: None})
    (note,) = [n for n in trace.metadata.notes if n.startswith(f"There is no {missing}: ")]
    assert "without it, no " in note
    assert trace.jobs.num_rows == 2
    lost = [n for n in trace.metadata.notes if "belong to no" in n or "have no row" in n]
    assert bool(lost) == (missing == "pai_instance_table")  # then measurements are nobody's
    assert (trace.tasks is None) == (missing == "pai_instance_table")
    assert (trace.cluster is None) == (trace.nodes is None) == (missing == "pai_machine_spec")


def test_the_task_table_alone_is_a_trace(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path / "pai", {TASKS: GOOD[TASKS]}))
    assert sum(n.startswith("There is no ") for n in trace.metadata.notes) == 6
    assert trace.jobs["submit_time"].to_pylist() == [100.0, 100.0]
    assert overview(trace.jobs)["num_gpu_jobs"] == 1


def test_group_stands_in_and_is_stood_in_for_by_the_user(tmp_path: Path) -> None:
    trace = opened(tmp_path, pai_group_tag_table=["other,u,,g,"])
    assert trace.jobs["template"].to_pylist() == ["u1", "u1"]
    trace = opened(tmp_path, pai_job_table=["j1,id1,,,,"], pai_group_tag_table=["id1,u2,,,"])
    assert trace.jobs["user"].to_pylist() == trace.jobs["template"].to_pylist() == ["u2", "u2"]


def test_statuses_and_gang_sizes_that_say_nothing(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        pai_task_table=[
            task(task_name="a", status="Evicted", inst_num="0.0", plan_cpu="100"),
            task(task_name="worker", status="", inst_num="", plan_gpu="50.0"),
            task(task_name="c", status="Waiting", inst_num="3", plan_gpu="150"),
        ],
        pai_instance_table=[
            instance(worker_name="x", status="Failed"),
            instance(worker_name="y", status="Running"),
            instance(worker_name="z", status="Evicted", task_name="a"),
        ],
    )
    assert rows_of(trace)["z"]["status"] == "unknown"
    assert trace.jobs["status"].to_pylist() == ["unknown", "running", "pending"]
    assert trace.jobs["source_status"].to_pylist() == ["Evicted", "Running", "Waiting"]
    assert trace.jobs["num_tasks"].to_pylist() == [None, None, 3]
    assert trace.jobs["num_gpus"].to_pylist() == [None, None, 4.5]
    assert trace.jobs["num_cpus"].to_pylist() == [None, None, None]
    notes = " ".join(trace.metadata.notes)
    assert "1 tasks have a status other than" in notes
    assert "1 instances have a status other than" in notes
    assert "2 tasks have no inst_num, or 0" in notes


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv.gz", ".tar.gz"])
def test_packed_tables_read_as_plain_ones(tmp_path: Path, ending: str) -> None:
    plain = opened(tmp_path)
    rows = rows_of(plain)
    pack(tmp_path / "pai", ending)
    packed = open_trace(tmp_path / "pai")
    assert packed.jobs.equals(plain.jobs)
    assert rows_of(packed) == rows


def test_header_lines_and_header_files_may_be_there_and_must_agree(tmp_path: Path) -> None:
    plain = opened(tmp_path)
    tables = {name: [",".join(COLUMNS[name].split()), *lines] for name, lines in GOOD.items()}
    folder = write(tmp_path / "headed", tables)
    (folder / f"{TASKS}.header").write_text(tables[TASKS][0] + "\n")
    assert open_trace(folder).jobs.equals(plain.jobs)
    (folder / f"{TASKS}.header").write_text("job_name,task_name\n")
    with pytest.raises(TraceError, match=r"task_table.header: found 'job_name,task_name'; expect"):
        open_trace(folder)
    (folder / f"{TASKS}.header").unlink()
    swapped = ",".join(reversed(COLUMNS["pai_group_tag_table"].split()))
    write(folder, {"pai_group_tag_table": [swapped, "bert,g1,V100,u1,id1"]})
    with pytest.raises(TraceError, match=r"group_tag_table.csv, line 1: .*no header line, or one"):
        open_trace(folder)
    write(folder, {"pai_group_tag_table": [",".join(COLUMNS["pai_group_tag_table"].split())]})
    with pytest.raises(TraceError, match=r"group_tag_table.csv: expected at least one row"):
        open_trace(folder)


def test_the_plain_table_goes_before_the_packed_one(tmp_path: Path) -> None:
    folder = write(tmp_path / "pai", GOOD)
    (folder / f"{TASKS}.csv.gz").write_bytes(b"not looked at")
    notes = open_trace(folder).metadata.notes
    assert f"{TASKS}.csv was read, not {TASKS}.csv.gz beside it." in notes


def test_a_folder_is_opened_by_what_lies_in_it(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"expected a file. It is a folder"):
        open_trace(tmp_path)
    with pytest.raises(TraceError, match=r"a folder with pai_task_table.csv or .*tar.gz in it"):
        open_trace(tmp_path, format="pai")
    folder = write(tmp_path / "pai", GOOD)
    assert open_trace(f"{folder}/").name == "pai"
    for name in (TASKS, "pai_sensor_table"):
        with pytest.raises(TraceError, match=r"the folder of the PAI tables. .*open its folder"):
            open_trace(folder / f"{name}.csv")
    (folder / f"{TASKS}.csv").unlink()
    with pytest.raises(TraceError, match=r"a folder with pai_task_table.csv or .*tar.gz in it"):
        open_trace(folder)
    for nowhere in (tmp_path / "nothing", "x" * 5000):
        with pytest.raises(TraceError, match="a folder that"):
            read_pai(nowhere)


def odd_archive(**attributes: object) -> bytes:
    """Return an archive whose one member is odd."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo(f"{TASKS}.csv")
        for name, value in attributes.items():
            setattr(member, name, value)
        tar.addfile(member)
    return buffer.getvalue()


def two_members() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in (f"./{TASKS}.csv", "readme"):
            data = (GOOD[TASKS][0] + "\n").encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive(f"../{TASKS}.csv", b"x\n"), r"one plain file, pai_task_table.csv"),
        (archive(f"/etc/{TASKS}.csv", b"x\n"), r"one plain file, pai_task_table.csv"),
        (archive("pai_job_table.csv", b"x\n"), r"found 'pai_job_table.csv'; expected"),
        (odd_archive(type=tarfile.SYMTYPE, linkname="/etc/passwd"), r"is a link, a folder or"),
        (odd_archive(type=tarfile.DIRTYPE), r"is a link, a folder or a special file"),
        (odd_archive(type=tarfile.FIFOTYPE), r"is a link, a folder or a special file"),
        (two_members(), r"found 'readme'; expected .*That is a second member"),
        (archive(f"{TASKS}.csv", b"x\n" * 4000)[:-9], r"a whole packed file. It is cut or"),
        (gzip.compress(b"j1,worker\n", mtime=0), r"a whole packed file"),
        (gzip.compress(b"\0" * 10240, mtime=0), r"an archive with pai_task_table.csv in it"),
        (b"plain", r"gzip data, as the name ends in .gz"),
        (archive(f"{TASKS}.csv", b""), r"a file with content. It is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_an_odd_archive_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / f"{TASKS}.tar.gz").write_bytes(data)
    with pytest.raises(TraceError, match=message) as caught:
        open_trace(tmp_path)
    assert caught.value.file == str(tmp_path / f"{TASKS}.tar.gz")
    assert {path.name for path in tmp_path.iterdir()} == {f"{TASKS}.tar.gz"}


@pytest.mark.parametrize("ending", [".csv.gz", ".tar.gz"])
def test_a_packed_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    folder = write(tmp_path / "pai", {TASKS: itertools.repeat(GOOD[TASKS][0], 200_000)})
    pack(folder, ending)
    monkeypatch.setattr(source, "RATIO_FLOOR", 1_000_000)
    with pytest.raises(TraceError, match=r"grows at most 200 times"):
        open_trace(folder)
    monkeypatch.setattr(source, "MAX_RATIO", 10_000)
    monkeypatch.setattr(source, "MAX_BYTES", 1_000_000)
    with pytest.raises(TraceError, match=r"at most 1,000,000 bytes"):
        open_trace(folder)


def test_the_temporary_database_goes_with_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    trace = opened(tmp_path)
    tasks = trace.tasks
    assert len(list(scratch.iterdir())) == 1
    del trace
    gc.collect()
    assert tasks.count().to_pyarrow().as_py() == 3
    del tasks
    gc.collect()
    assert list(scratch.iterdir()) == []
    with pytest.raises(TraceError):
        opened(tmp_path, pai_sensor_table=["one field"])
    gc.collect()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("table", ["pai_instance_table", "pai_sensor_table"])
def test_a_full_disk_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    column = "end_time" if table == "pai_instance_table" else "read"
    append = spool.Numbers.append

    def full(self: spool.Numbers, values: Any) -> None:
        if self.path.name.endswith(column):
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, values)

    monkeypatch.setattr(spool.Numbers, "append", full)
    with pytest.raises(TraceError, match=r"room for its tables .*No space left .*TMPDIR"):
        opened(tmp_path)


# Bad input ---------------------------------------------------------------------------------------


def changed(name: str, line: int, old: str, new: str) -> dict[str, list[str]]:
    """Return a table of the good folder with some text of one line (from 1) replaced."""
    lines = list(GOOD[name])
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return {name: lines}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (changed(TASKS, 2, "1.0", "one"), "line 2, column 'inst_num': found 'one'; expected a wh"),
        (changed(TASKS, 2, "1.0", "1.5"), "line 2, column 'inst_num': found '1.5'"),
        (changed(TASKS, 2, "1.0", "3e9"), "line 2, column 'inst_num': found '3e9'"),
        (changed(TASKS, 1, "100.0", "-1"), "line 1, column 'start_time': found '-1'; expected a n"),
        (changed(TASKS, 1, "100.0", "nan"), "line 1, column 'start_time': found 'nan'"),
        (changed(TASKS, 1, "50.0", "inf"), "line 1, column 'plan_gpu': found 'inf'"),
        (changed(TASKS, 1, "50.0", "-0.0"), "line 1, column 'plan_gpu': found '-0.0'"),
        (changed(TASKS, 1, "50.0", "5_0"), "line 1, column 'plan_gpu': found '5_0'"),
        (changed(TASKS, 1, "50.0", "0x1"), "line 1, column 'plan_gpu': found '0x1'"),
        (changed(TASKS, 1, "50.0", " "), "line 1, column 'plan_gpu': found ' '"),
        (changed(TASKS, 2, "j1", ""), "line 2, column 'job_name': found ''; expected a name"),
        (changed(TASKS, 2, "ps", '""'), "line 2, column 'task_name': found ''; expected a name"),
        (changed(TASKS, 2, ",MISC", ""), "line 2: .*10 fields, found 9. It is the last line"),
        (changed(TASKS, 1, ",T4", ",T4,"), "line 1: .*expected 10 fields, found 11"),
        (changed(TASKS, 2, "MISC", '"MISC'), "line 2: expected balanced quotes"),
        (changed(TASKS, 2, "MISC", "M\0C"), "expected text without NUL bytes"),
        (
            changed("pai_sensor_table", 1, "250.0", "fast"),
            "sensor_table.csv, line 1, column 'cpu_usage': found 'fast'",
        ),
        (
            changed("pai_instance_table", 3, "105.0", "1O5"),
            "instance_table.csv, line 3, column 'start_time': found '1O5'",
        ),
        (
            changed("pai_machine_metric", 1, "390.0", "x"),
            "machine_metric.csv, line 1, column 'end_time': found 'x'",
        ),
        (changed("pai_machine_spec", 1, ",2", ",2.5"), "line 1, column 'cap_gpu': found '2.5'"),
        (changed("pai_machine_spec", 2, "96", "0"), "line 2, column 'cap_cpu': found '0'"),
        (changed("pai_machine_spec", 2, "m2", ""), "line 2, column 'machine': found ''"),
        (changed("pai_machine_spec", 2, "MISC", "A|B"), "machines that make a cluster"),
        (changed("pai_job_table", 1, "90.0", "?"), "job_table.csv, line 1, column 'start_time'"),
        ({"pai_job_table": []}, "job_table.csv: expected a file with content. It is empty"),
        ({TASKS: ["", " "]}, "It holds only blank lines"),
    ],
)
def test_a_wrong_cell_is_named_by_line_and_column(
    tmp_path: Path, tables: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        opened(tmp_path, **tables)
    assert "\n" not in str(caught.value)


def test_all_wrong_rows_are_counted(tmp_path: Path) -> None:
    lines = [task(start_time="x" if n % 3 == 2 else n + 1) for n in range(30)]
    with pytest.raises(TraceError, match=r"line 3, .* found 'x'.*10 rows of the table are wrong"):
        opened(tmp_path, pai_task_table=lines)


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("prepare", "line"),
    [
        (lambda lines: b"\n".join(lines) + b"\n", 3),
        (lambda lines: b"\r\n".join(lines) + b"\r\n", 3),
        (lambda lines: b"\xef\xbb\xbf" + b"\n".join(lines), 3),
        (lambda lines: b"\n\n" + b"\n\n\n".join(lines), 9),
        (b"\r".join, 3),
        (lambda lines: b"\n".join(lines).replace(b"second", b'"sec\nond"'), 4),
        (lambda lines: b'"' + b"\n".join(lines).replace(b",", b'",', 1), 3),
        (lambda lines: ",".join(COLUMNS[TASKS].split()).encode() + b"\n" + b"\n".join(lines), 4),
    ],
    ids=["lf", "crlf", "bom", "blank", "cr", "newline in quotes", "quotes", "header"],
)
@pytest.mark.parametrize("ending", [".csv", ".tar.gz"])
def test_the_line_is_right_however_lines_are_written(
    tmp_path: Path, prepare: Callable[[list[bytes]], bytes], line: int, ending: str
) -> None:
    good = [task(task_name=n, start_time="1").encode() for n in ("first", "second", "third")]
    path = tmp_path / f"{TASKS}{ending}"

    def put(lines: list[bytes]) -> None:
        data = prepare(lines)
        path.write_bytes(data if ending == ".csv" else archive(f"{TASKS}.csv", data))

    put(good)
    trace = open_trace(tmp_path)
    assert trace.jobs.num_rows == 3
    put([*good[:2], good[2].replace(b"Terminated,1", b"Terminated,bad")])
    with pytest.raises(TraceError, match=rf", line {line}, column 'start_time': found 'bad'"):
        open_trace(tmp_path)
    put([*good[:2], good[2].replace(b"third", b"th\xffrd")])
    with pytest.raises(TraceError, match=rf", line {line}, column 'task_name': .*UTF-8 text"):
        open_trace(tmp_path)


def test_text_that_is_left_out_is_looked_at_too(tmp_path: Path) -> None:
    folder = write(tmp_path / "pai", GOOD)
    path = folder / "pai_instance_table.csv"
    path.write_bytes(path.read_bytes().replace(b"w2,id1", b"w2,id\xe9"))
    with pytest.raises(TraceError, match=r"line 2, column 'inst_id': .*expected UTF-8 text"):
        open_trace(folder)
    path.write_bytes(path.read_bytes().replace(b"id\xe9", "idé".encode()))
    assert open_trace(folder).jobs.num_rows == 2
    path.write_bytes(path.read_bytes().decode().encode("utf-16"))
    with pytest.raises(TraceError, match=r"It is UTF-16"):
        open_trace(folder)


# Against the second implementation ---------------------------------------------------------------

JOBS = st.sampled_from(["a", "b", "c"])
ROLES = st.sampled_from(["ps", "worker"])
TIMES = st.sampled_from(["", "0.0", "1.0", "2.0", "3.0", "5.0", "8.0", "13.0"])
WORDS = st.sampled_from(["", "Failed", "Running", "Terminated", "Waiting", "Evicted"])
PLANS = st.sampled_from(["", "0", "25.0", "50", "100.0", "800.0"])
WORKERS = st.sampled_from(["", *(f"w{n}" for n in range(9))])
SPOTS = st.sampled_from(["", "m1", "m2", "m9"])
NUMBERS = st.sampled_from(["", "0.0", "0.5", "12.25", "1e3"])
IDS = st.sampled_from(["", "x", "y", "z"])
_CELLS = {
    "job_name": JOBS, "task_name": ROLES, "inst_num": st.sampled_from(["", "0", "1.0", "2", "7"]),
    "status": WORDS, "start_time": TIMES, "end_time": TIMES, "plan_cpu": PLANS, "plan_mem": PLANS,
    "plan_gpu": PLANS, "gpu_type": st.sampled_from(["T4", "MISC", ""]), "worker_name": WORKERS,
    "inst_name": st.sampled_from(["", "i1", "i2"]), "inst_id": IDS, "machine": SPOTS,
    "user": st.sampled_from(["", "u", "v"]), "gpu_type_spec": st.sampled_from(["", "V100"]),
    "group": st.sampled_from(["", "g"]), "workload": st.sampled_from(["", "bert"]),
    "gpu_name": st.sampled_from(["", "0", "1"]),
}  # fmt: skip


def table_of(name: str, most: int) -> st.SearchStrategy[list[str]]:
    """Return tables of random records."""
    cells = [_CELLS.get(column, NUMBERS) for column in COLUMNS[name].split()]
    return st.lists(st.tuples(*cells).map(",".join), min_size=1, max_size=most)


MACHINES = ["m1,T4,96,512,2", "m2,MISC,,,8", "m1,P100,64,512,2"]
FOLDERS = st.fixed_dictionaries(
    {
        "pai_job_table": table_of("pai_job_table", 6),
        TASKS: table_of(TASKS, 12),
        "pai_instance_table": table_of("pai_instance_table", 30),
        "pai_sensor_table": table_of("pai_sensor_table", 12),
        "pai_group_tag_table": table_of("pai_group_tag_table", 5),
        "pai_machine_spec": st.just(MACHINES),
        "pai_machine_metric": table_of("pai_machine_metric", 12),
    }
)


@pytest.mark.slow
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables=FOLDERS)
def test_joins_agree_with_plain_python(tmp_path: Path, tables: dict[str, list[str]]) -> None:
    agrees_with_the_oracle(tmp_path, tables)


@pytest.fixture
def _small_pieces_and_equal_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables come in pieces of a few rows, and names of one length have one hash."""
    monkeypatch.setattr(parse, "_BLOCK", 256)
    for module in (spool, instances, joins):
        monkeypatch.setattr(module, "_AT_ONCE", 3)
    monkeypatch.setattr(spool, "_CODED_AT_ONCE", 2)
    monkeypatch.setattr(
        hashing, "hashes", lambda texts: np.array([len(t or "") for t in texts.to_pylist()], "u8")
    )


@pytest.mark.slow
@pytest.mark.usefixtures("_small_pieces_and_equal_hashes")
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables=FOLDERS)
def test_joins_agree_where_hashes_do_not_tell_names_apart(
    tmp_path: Path, tables: dict[str, list[str]]
) -> None:
    agrees_with_the_oracle(tmp_path, tables)


@pytest.mark.usefixtures("_small_pieces_and_equal_hashes")
def test_numbered_ids_meet_none_of_the_files_own_where_hashes_are_equal(tmp_path: Path) -> None:
    workers = ["i", "i", "k#2", "i#3", "k", "k", "m#2", "n"]
    trace = opened(tmp_path, pai_instance_table=[instance(worker_name=w) for w in workers])
    assert sorted(rows_of(trace)) == ["i", "i##2", "i#3", "k", "k##2", "k#2", "m#2", "n"]


def agrees_with_the_oracle(tmp_path: Path, tables: dict[str, list[str]]) -> None:
    """Open a folder and compare all of it with what plain Python makes of the same lines."""
    trace = open_trace(write(tmp_path / "pai", tables))
    parsed = {name: oracle.parse(name, lines) for name, lines in tables.items()}
    expected = oracle.jobs(parsed)
    found = trace.jobs.select(list(expected[0])).to_pylist()
    assert found == expected
    assert trace.metadata.rows_read == trace.jobs.num_rows == len(tables[TASKS])
    wanted = oracle.tasks(parsed)
    columns = list(wanted[0])
    ids = {row["task_id"]: row for row in wanted}
    assert len(ids) == len(wanted)
    assert {r["task_id"]: r for r in trace.tasks.select(*columns).to_pyarrow().to_pylist()} == ids
    known = [row["duration"] for row in expected if row["duration"] is not None]
    shown = distribution(trace.jobs, "duration")
    assert (shown["n"], shown["left_out"]) == (len(known), len(expected) - len(known))


# The real machine table --------------------------------------------------------------------------


@pytest.mark.data
def test_the_released_machine_table(data_dir: Path, tmp_path: Path) -> None:
    """1,897 machines, 6,742 GPUs, 156,576 cores, 948,224 GB: the repository's README."""
    folder = write(tmp_path / "pai", {TASKS: GOOD[TASKS]})
    (folder / "pai_machine_spec.csv").symlink_to(data_dir / "pai" / "pai_machine_spec.csv")
    trace = open_trace(folder)
    assert trace.nodes.num_rows == trace.cluster.num_nodes == 1897
    assert trace.cluster.num_gpus == 6742
    nodes = trace.nodes.to_pydict()
    assert sum(nodes["num_cpus"]) == 156_576
    assert sum(nodes["mem_gib"]) == 948_224
    assert set(trace.cluster.gpu_types) == {"T4", "P100", "V100", "V100M32", "MISC"}
    bare = [t for t, gpus in zip(nodes["gpu_type"], nodes["num_gpus"], strict=True) if not gpus]
    assert bare == [None] * 83


@pytest.mark.data
def test_the_columns_are_the_released_ones(data_dir: Path) -> None:
    import json

    from windtunnel.traces.pai.tables import TABLES

    released = json.loads((data_dir / "pai" / "table_headers.json").read_text())
    assert {table.name: list(table.columns) for table in TABLES} == released
    assert {name: columns.split() for name, columns in COLUMNS.items()} == released


def test_a_cut_takes_the_tasks_of_its_jobs(tmp_path: Path) -> None:
    folder = write(tmp_path / "pai", GOOD)
    trace = open_trace(f"{folder}:status=running:memory=300MiB")
    assert trace.jobs["job_id"].to_pylist() == ["j1/ps"]
    assert trace.tasks is not None
    assert trace.tasks.select("inst_name").to_pyarrow().to_pydict() == {"inst_name": ["i3"]}
