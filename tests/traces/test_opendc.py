"""OpenDC workloads, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.companions import TASK_COLUMNS
from windtunnel.errors import SchemaError, TraceError, WindtunnelError
from windtunnel.schema import as_jobs
from windtunnel.traces import open_trace
from windtunnel.traces.batsim import read_batsim
from windtunnel.traces.native import read_native, write_parquet
from windtunnel.traces.opendc import read_opendc
from windtunnel.traces.opendc_writer import (
    FRAGMENTS_SCHEMA,
    TASKS_SCHEMA,
    opendc_losses,
    write_opendc,
)
from windtunnel.traces.readers import reader_for
from windtunnel.traces.trace import TraceMetadata

if TYPE_CHECKING:
    from pathlib import Path

TASKS = (
    "id,name,submission_time,duration,cpu_count,cpu_capacity,mem_capacity,gpu_count,gpu_capacity,"
    "parents,children,nature,deadline\n"
    "2,b,1759752600000,3000,8,16000.0,2048,,,1,,deferrable,1759752610500\n"
    "1,a,1759752000000,3600000,96,268800.0,983040,8,11280.0,,2,,-1\n"
)
FRAGMENTS = "id,duration,cpu_usage,gpu_usage\n1,900000,268800.0,0\n1,2700000,134400.0,8460.0\n"
EPOCH = "2025-10-06T12:00:00+00:00"


def csv_files(tmp_path: Path, tasks: str = TASKS, fragments: str | None = FRAGMENTS) -> Path:
    path = tmp_path / "my_tasks.csv"
    path.write_text(tasks)
    if fragments is not None:
        (tmp_path / "my_fragments.csv").write_text(fragments)
    return path


def test_tasks_and_fragments(tmp_path: Path) -> None:
    """Task 1 used 268.8 GHz for a quarter of its time and half of that for the rest: 168 GHz."""
    trace = read_opendc(csv_files(tmp_path))
    first, second = trace.jobs.to_pylist()
    assert {name: value for name, value in first.items() if value is not None} == {
        "job_id": "1",
        "submit_time": 0.0,
        "duration": 3600.0,
        "num_gpus": 8.0,
        "num_cpus": 96.0,
        "mem_gib": 960.0,
        "template": "a",
        "cpu_capacity": 268800.0,
        "gpu_capacity": 11280.0,
        "children": "2",
        "cpu_usage": 168000.0,
        "gpu_usage": 6345.0,
        "num_fragments": 2,
    }
    assert (second["submit_time"], second["duration"], second["num_gpus"]) == (600.0, 3.0, 0.0)
    assert (second["parents"], second["nature"], second["deadline"]) == ("1", "deferrable", 610.5)
    assert second["cpu_usage"] is None
    assert trace.metadata.epoch == EPOCH
    assert trace.metadata.rows_read == 2
    notes = " ".join(trace.metadata.notes)
    assert "Tasks without a fragment, which OpenDC leaves out: 1." in notes
    assert "my_fragments.csv" in notes
    assert trace.tasks is not None
    assert trace.tasks.column_names == [column.name for column in TASK_COLUMNS]
    assert trace.tasks["cpus_used"].to_pylist() == [60.0, None]
    assert trace.tasks["gpus_used"].to_pylist() == [4.5, None]


def test_without_fragments(tmp_path: Path) -> None:
    trace = read_opendc(csv_files(tmp_path, fragments=None))
    assert trace.tasks is None
    assert "cpu_usage" not in trace.jobs.column_names


def test_fragments_that_do_not_belong_are_noted(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(FRAGMENTS + "9,1,1,1\n2,2000,1,1\n")
    trace = read_opendc(csv_files(tmp_path, fragments=None), fragments=other)
    notes = " ".join(trace.metadata.notes)
    assert "Fragments of no task: 1." in notes
    assert "another time than their duration, which is kept: 1." in notes
    assert trace.jobs["duration"].to_pylist() == [3600.0, 3.0]


INSTANT = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize("how", ["int", "string", "instants", "old names", "few columns"])
def test_parquet_of_every_age(tmp_path: Path, how: str) -> None:
    times = [1759752000000, 1759752600250]
    columns: dict[str, Any] = {
        "id": pa.array([1, 2], pa.int32()),
        "submission_time": pa.array(times, pa.int64()),
        "duration": pa.array([1000, 2500], pa.int64()),
        "cpu_count": pa.array([4, 8], pa.int32()),
        "cpu_capacity": pa.array([8.0, 16.0]),
        "mem_capacity": pa.array([1024, 512], pa.int64()),
        "gpu_count": pa.array([1, None], pa.int32()),
        "parents": pa.array([[], [1]], pa.list_(pa.int32())),
        "deferrable": pa.array([True, None]),
        "host": pa.array(["h1", None]),
    }
    if how == "string":
        columns["id"] = pa.array(["1", "2"])
        columns["parents"] = pa.array([[], ["1"]], pa.list_(pa.string()))
    if how == "instants":
        columns["submission_time"] = pa.array(times, INSTANT)
    if how == "old names":
        for old, new in (
            ("submissionTime", "submission_time"),
            ("maxCores", "cpu_count"),
            ("requiredMemory", "mem_capacity"),
            ("gpuMaxCores", "gpu_count"),
        ):
            columns[old] = columns.pop(new)
        columns["requiredMemory"] = columns["requiredMemory"].cast(pa.float64())
    if how == "few columns":
        columns = {name: columns[name] for name in ("id", "submission_time", "duration")}
    pq.write_table(pa.table(columns), tmp_path / "tasks.parquet")
    fragments = {
        "id": columns["id"],
        "timestamp": pa.array(times, INSTANT),
        "duration": pa.array([1000, 2500], pa.int64()),
        "cpu_count": pa.array([4, 8], pa.int32()),
        "cpu_usage": pa.array([4.0, 8.0]),
    }
    pq.write_table(pa.table(fragments), tmp_path / "fragments.parquet")
    for path in (tmp_path / "tasks.parquet", tmp_path):
        trace = read_opendc(path)
        jobs = trace.jobs.to_pydict()
        assert jobs["job_id"] == ["1", "2"]
        assert jobs["submit_time"] == [0.0, 600.25]
        assert jobs["duration"] == [1.0, 2.5]
        assert jobs["cpu_usage"] == [4.0, 8.0]
        assert trace.metadata.epoch == EPOCH
        if how != "few columns":
            assert jobs["num_gpus"] == [1.0, 0.0]
            assert jobs["num_cpus"] == [4.0, 8.0]
            assert jobs["mem_gib"] == [1.0, 0.5]
            assert jobs["parents"] == [None, "1"]
            assert jobs["host"] == ["h1", None]
            assert jobs["deferrable"] == ["true", None]
            assert trace.tasks is not None
            assert trace.tasks["cpus_used"].to_pylist() == [2.0, 4.0]
            assert trace.tasks["node"].to_pylist() == ["h1", None]
        else:
            assert jobs["num_gpus"] == [0.0, 0.0]


def test_the_format_is_found_and_steals_nothing(tmp_path: Path) -> None:
    assert reader_for(tmp_path / "x.csv", TASKS.encode()).read is read_opendc
    assert reader_for(tmp_path / "tasks.parquet", b"PAR1").read is read_opendc
    assert reader_for(tmp_path / "jobs.parquet", b"PAR1").read is read_native
    ours = b"job_id,submit_time,duration,num_gpus\n"
    assert reader_for(tmp_path / "tasks.csv", ours).read is read_native
    batsim = b"job_id,submission_time,requested_number_of_resources,duration\n"
    assert reader_for(tmp_path / "tasks.csv", batsim).read is read_batsim
    path = tmp_path / "my_tasks.parquet"
    write_parquet({"submit_time": [0.0], "duration": [1.0], "num_gpus": [2.0]}, path)
    assert read_opendc(path).jobs["num_gpus"].to_pylist() == [2.0]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("", "empty"),
        (TASKS.splitlines()[0] + "\n", "no rows"),
        (TASKS.replace("duration", "length", 1), "a column 'duration'"),
        (TASKS.replace(",3000,", ",soon,"), "line 2, column 'duration': found 'soon'"),
        (TASKS[:-40], "cut"),
        (TASKS.replace("1759752600000", "1e30"), "years 1 to 9999|finite|line"),
    ],
)
def test_bad_tasks(tmp_path: Path, tasks: str, message: str) -> None:
    if "1e30" in tasks:
        tasks = tasks.replace("1759752000000", "1e30")
    with pytest.raises(TraceError, match=message):
        read_opendc(csv_files(tmp_path, tasks))


def test_bad_fragments_parquet_and_folders(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"my_fragments\.csv, line 2, column 'cpu_usage'"):
        read_opendc(csv_files(tmp_path, fragments=FRAGMENTS.replace("268800.0", "many")))
    with pytest.raises(TraceError, match=r"a folder with tasks\.parquet"):
        read_opendc(tmp_path)
    path = tmp_path / "tasks.parquet"
    for content in (b"PAR1 and then nothing", b"no parquet"):
        path.write_bytes(content)
        with pytest.raises(TraceError, match="a whole Parquet file"):
            read_opendc(path)
    pq.write_table(pa.table({"id": [1], "submission_time": ["x"], "duration": [1]}), path)
    with pytest.raises(TraceError, match="line 1, column 'submission_time': found 'x'"):
        read_opendc(path)
    with pytest.raises(TraceError, match="a file that exists"):
        read_opendc(tmp_path / "no" / "tasks.parquet")


def test_rules_of_the_schema_hold(tmp_path: Path) -> None:
    path = csv_files(tmp_path, TASKS.replace(",3000,", ",-3000,"))
    with pytest.raises(SchemaError, match=r"duration.*line 2"):
        read_opendc(path)
    trace = read_opendc(path, bad_rows="drop")
    assert (trace.jobs.num_rows, trace.metadata.rows_read) == (1, 2)
    assert trace.tasks is not None
    assert trace.tasks.num_rows == 1


def jobs_of(**columns: list[Any]) -> pa.Table:
    rows = len(next(iter(columns.values())))
    plain = {"submit_time": 0.0, "duration": 60.0, "num_gpus": 1.0}
    return as_jobs({**{name: [value] * rows for name, value in plain.items()}, **columns})


ABOUT = TraceMetadata("t", "t", epoch=EPOCH)


def test_the_files_have_exactly_the_types_of_opendc(tmp_path: Path) -> None:
    jobs = jobs_of(
        job_id=["7", "3"],
        submit_time=[0.5, 0.0],
        duration=[60.0, 1.25],
        num_gpus=[8.0, 0.5],
        num_cpus=[96.0, None],
        mem_gib=[960.0, 0.5],
        template=["x", None],
        user=["ann", None],
    )
    assert write_opendc(jobs, tmp_path / "w", metadata=ABOUT) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w"]
    tasks = pq.read_table(tmp_path / "w" / "tasks.parquet")
    assert tasks.schema.equals(TASKS_SCHEMA)
    assert [str(field.type) for field in tasks.schema] == [
        "int32", "string", "int64", "int64", "int32", "double", "int64", "int32", "double",
        "list<element: int32>", "list<element: int32>", "string", "int64",
    ]  # fmt: skip
    assert tasks.select(range(9)).to_pylist() == [
        {"id": 3, "name": None, "submission_time": 1759752000000, "duration": 1250, "cpu_count": 0,
         "cpu_capacity": 0.0, "mem_capacity": 512, "gpu_count": 1, "gpu_capacity": 500.0},
        {"id": 7, "name": "x", "submission_time": 1759752000500, "duration": 60000,
         "cpu_count": 96, "cpu_capacity": 96000.0, "mem_capacity": 983040, "gpu_count": 8,
         "gpu_capacity": 8000.0},
    ]  # fmt: skip
    fragments = pq.read_table(tmp_path / "w" / "fragments.parquet")
    assert fragments.schema.equals(FRAGMENTS_SCHEMA)
    assert fragments.to_pylist() == [
        {"id": 3, "duration": 1250, "cpu_usage": 0.0, "gpu_usage": 500.0},
        {"id": 7, "duration": 60000, "cpu_usage": 96000.0, "gpu_usage": 8000.0},
    ]
    losses = " ".join(opendc_losses(jobs, metadata=ABOUT))
    for words in (
        "does not have: 'user'.",
        "Clock speeds and usage are not known",
        "a fraction of a GPU or core, whose count is rounded up: 1.",
        "unknown GPUs, cores or memory, written as 0: 1.",
    ):
        assert words in losses
    assert "epoch" not in losses


def test_what_is_lost_is_listed(tmp_path: Path) -> None:
    jobs = jobs_of(
        job_id=["a", "b", "c"],
        submit_time=[0.0, 1.00001, None],
        num_cpus=[1.0, 2.0, 3.0],
        mem_gib=[1.0, 0.0001, 1.0],
        template=["x", "y", "z"],
    )
    assert write_opendc(jobs, tmp_path / "w") == 2
    tasks = pq.read_table(tmp_path / "w" / "tasks.parquet")
    assert tasks["name"].to_pylist() == ["a", "b"]
    assert tasks["id"].to_pylist() == [1, 2]
    assert tasks["submission_time"].to_pylist() == [0, 1000]
    losses = " ".join(opendc_losses(jobs))
    for words in (
        "1970-01-01",
        "tasks are numbered from 1",
        "left out: 1.",
        "finer than a millisecond, which are rounded: 1.",
        "finer than a MiB, which is rounded: 1.",
    ):
        assert words in losses


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"submit_time": [None]}, "needs both"),
        ({"duration": [1e300]}, "as OpenDC's types hold"),
        ({"num_gpus": [1e10]}, "as OpenDC's types hold"),
        ({"cpu_usage": ["x"]}, "column .cpu_usage.: expected numbers"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, columns: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        write_opendc(jobs_of(**columns), tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_an_old_folder_is_filled_and_a_place_that_is_none_refused(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "tasks.parquet").write_text("old")
    write_opendc(jobs_of(job_id=["1"]), folder)
    names = ["fragments.parquet", "notes.txt", "tasks.parquet"]
    assert sorted(p.name for p in folder.iterdir()) == names
    assert read_opendc(folder).jobs.num_rows == 1
    assert open_trace(folder).jobs["job_id"].to_pylist() == ["1"]
    assert [p.name for p in tmp_path.iterdir()] == ["w"]
    for place in (tmp_path / "no" / "w", folder / "notes.txt"):
        with pytest.raises(TraceError, match="can be written to"):
            write_opendc(jobs_of(job_id=["1"]), place)
    assert (folder / "notes.txt").read_text() == "mine"
    assert sorted(p.name for p in folder.iterdir()) == names


MILLIS = st.integers(0, 10**12).map(lambda ms: ms / 1000)
MHZ = st.floats(0, 1e6)
WORD = st.one_of(st.none(), st.text(st.characters(exclude_categories=["C"]), min_size=1))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Tables of which OpenDC can hold every column."""
    ids = draw(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8, unique=True))
    rows = []
    for number, name in enumerate(ids):
        capacity, gpu_capacity = draw(MHZ), draw(MHZ)
        rows.append(
            {
                "job_id": str(name),
                "submit_time": draw(MILLIS) if number else 0.0,
                "duration": draw(MILLIS),
                "num_gpus": float(draw(st.integers(0, 10**4))),
                "num_cpus": float(draw(st.integers(0, 10**4))),
                "mem_gib": draw(st.integers(0, 2**40)) / 1024,
                "template": draw(WORD),
                "cpu_capacity": capacity,
                "gpu_capacity": gpu_capacity,
                "parents": draw(
                    st.one_of(st.none(), st.sampled_from(ids).map(lambda n: f"{n}|{n}"))
                ),
                "children": None,
                "nature": draw(WORD),
                "deadline": draw(st.one_of(st.none(), MILLIS)),
            }
        )
    table = pa.Table.from_pylist(rows)
    for index, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            kind = pa.float64() if field.name == "deadline" else pa.string()
            table = table.set_column(index, field.name, table[field.name].cast(kind))
    return as_jobs(table.sort_by("submit_time"))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(jobs=tables())
def test_what_opendc_can_hold_comes_back(tmp_path: Path, jobs: pa.Table) -> None:
    folder = tmp_path / "w"
    write_opendc(jobs, folder, metadata=ABOUT)
    again = read_opendc(folder)
    more = ["cpu_usage", "gpu_usage", "num_fragments"]
    assert again.jobs.drop_columns(more).to_pylist() == jobs.to_pylist()
    assert again.metadata.epoch == EPOCH
    assert opendc_losses(jobs, metadata=ABOUT) == ()
    assert opendc_losses(again.jobs, metadata=again.metadata) == ()
    write_opendc(again.jobs, folder, metadata=again.metadata)
    twice = read_opendc(folder).jobs
    assert twice.to_pylist() == again.jobs.to_pylist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(where=st.integers(0, 600), kind=st.sampled_from(["cut", "drop", "nul", "comma", "minus"]))
def test_mutated_files_give_a_trace_or_one_clear_error(
    tmp_path: Path, where: int, kind: str
) -> None:
    at = where % len(TASKS)
    text = {
        "cut": TASKS[:at],
        "drop": TASKS[:at] + TASKS[at + 1 :],
        "nul": TASKS[:at] + "\0" + TASKS[at:],
        "comma": TASKS[:at] + "," + TASKS[at:],
        "minus": TASKS[:at] + "-" + TASKS[at:],
    }[kind]
    path = csv_files(tmp_path, text)
    try:
        trace = read_opendc(path)
    except WindtunnelError as error:
        assert str(path) in str(error)  # noqa: PT017 - one of two lawful ends
        return
    assert trace.metadata.rows_read == trace.jobs.num_rows + sum(trace.metadata.dropped.values())


@pytest.mark.data
def test_the_reference_sample(data_dir: Path) -> None:
    trace = read_opendc(data_dir / "formats" / "opendc_tasks.csv")
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["1", "2"]
    assert jobs["template"] == ["job-1001", "job-1002"]
    assert jobs["num_gpus"] == [8.0, 32.0]
    assert jobs["duration"] == [3600.0, 14421.0]
    assert jobs["submit_time"] == [0.0, 600.0]
    assert jobs["mem_gib"] == [960.0, 3840.0]
    assert jobs["num_fragments"] == [2, 1]
    assert trace.metadata.epoch == EPOCH
