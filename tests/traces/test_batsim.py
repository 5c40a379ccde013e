"""Batsim's workloads and results, read and written."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.companions import HOLDING_COLUMNS
from windtunnel.errors import SchemaError, TraceError, WindtunnelError
from windtunnel.schema import as_jobs
from windtunnel.traces.batsim import read_batsim
from windtunnel.traces.batsim_writer import COLUMNS, batsim_losses, flown, write_batsim
from windtunnel.traces.interval_set import (
    count_of,
    format_intervals,
    number_resources,
    parse_intervals,
)
from windtunnel.traces.kubernetes.reader import read_kueue
from windtunnel.traces.native import read_native
from windtunnel.traces.philly_raw import read_philly_raw
from windtunnel.traces.readers import reader_for

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,"
    "success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,"
    "stretch,allocated_resources,consumed_energy,metadata\n"
)
RESULTS = (
    "1,w0,long,0,8,7200,1,COMPLETED_SUCCESSFULLY,10,3600,3610,10,3610,1.0028,0-7,1250.5,\n"
    "2,w0,short,5.5,16,50,0,COMPLETED_WALLTIME_REACHED,10,50,60,4.5,54.5,1.09,8-15 20-27,-1,x\n"
    "3,w0,short,6,65,-1,0,REJECTED,,,,,,,,,\n"
)
WORKLOAD: dict[str, Any] = {
    "nb_res": 64,
    "jobs": [
        {"id": "a", "subtime": 10, "walltime": 7200, "res": 8, "profile": "long"},
        {"id": 2, "subtime": 5.5, "res": 16, "profile": "new", "walltime": -1, "extra": 1},
        {"id": "c", "subtime": 5.5, "res": 1, "profile": "mpi", "walltime": 5},
        {"id": "d", "subtime": 20, "res": 1, "profile": "long", "walltime": 60},
    ],
    "profiles": {
        "long": {"type": "delay", "delay": 3600},
        "new": {"type": "DelayProfile", "delay": 42.25},
        "mpi": {"type": "parallel_homogeneous", "cpu": 1e6, "com": 0},
    },
}


def results(tmp_path: Path, text: str = HEADER + RESULTS) -> Path:
    path = tmp_path / "out_jobs.csv"
    path.write_text(text)
    return path


def workload(tmp_path: Path, **changes: Any) -> Trace:
    path = tmp_path / "workload.json"
    path.write_text(json.dumps(WORKLOAD | changes, indent=1))
    return read_batsim(path)


def test_a_workload(tmp_path: Path) -> None:
    trace = workload(tmp_path)
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["2", "c", "a", "d"]
    assert jobs["submit_time"] == [5.5, 5.5, 10.0, 20.0]
    assert jobs["duration"] == [42.25, None, 3600.0, 3600.0]
    assert jobs["estimate"] == [None, 5.0, 7200.0, 60.0]
    assert jobs["num_gpus"] == [16.0, 1.0, 8.0, 1.0]
    assert jobs["profile"] == ["new", "mpi", "long", "long"]
    assert jobs["start_time"] == jobs["status"] == [None] * 4
    assert trace.cluster is not None
    assert (trace.cluster.num_gpus, trace.cluster.is_pool) == (64, True)
    notes = " ".join(trace.metadata.notes)
    for words in ("as one GPU", "'parallel_homogeneous' (1)", "their walltime", "'extra'", "sort"):
        assert words in notes


def test_a_workload_without_a_platform(tmp_path: Path) -> None:
    bare = {name: value for name, value in WORKLOAD.items() if name != "nb_res"}
    path = tmp_path / "w.json.gz"
    path.write_bytes(gzip.compress(json.dumps(bare).encode()))
    assert read_batsim(path).cluster is None
    trace = workload(tmp_path, nb_res=0)
    assert trace.cluster is None
    assert any("nb_res 0" in note for note in trace.metadata.notes)


def test_results(tmp_path: Path) -> None:
    trace = read_batsim(results(tmp_path))
    jobs = trace.jobs.to_pydict()
    assert jobs["job_id"] == ["1", "2", "3"]
    assert jobs["submit_time"] == [0.0, 5.5, 6.0]
    assert jobs["start_time"] == [10.0, 10.0, None]
    assert jobs["end_time"] == [3610.0, 60.0, None]
    assert jobs["duration"] == [3600.0, 50.0, None]
    assert jobs["estimate"] == [7200.0, 50.0, None]
    assert jobs["num_gpus"] == [8.0, 16.0, 65.0]
    assert jobs["status"] == ["completed", "timeout", "cancelled"]
    assert jobs["final_state"][2] == "REJECTED"
    assert jobs["consumed_energy"] == [1250.5, None, None]
    assert trace.holdings is not None
    assert trace.holdings.column_names == [column.name for column in HOLDING_COLUMNS]
    held = trace.holdings.to_pylist()
    assert [row["node"] for row in held if row["job_id"] == "1"] == [str(n) for n in range(8)]
    second = [int(row["node"]) for row in held if row["job_id"] == "2"]
    assert second == [*range(8, 16), *range(20, 28)]
    assert {(row["start_time"], row["end_time"]) for row in held if row["job_id"] == "2"} == {
        (10.0, 60.0)
    }


def test_several_workloads_and_another_allocation(tmp_path: Path) -> None:
    text = HEADER + RESULTS.replace("2,w0", "1,w1").replace("8-15 20-27", "8-15 20")
    trace = read_batsim(results(tmp_path, text))
    assert trace.jobs["job_id"].to_pylist() == ["w0!1", "w1!1", "w0!3"]
    assert trace.jobs["num_gpus"].to_pylist() == [8.0, 9.0, 65.0]
    assert any("another number of resources" in note for note in trace.metadata.notes)


def test_the_short_file_of_old_versions(tmp_path: Path) -> None:
    text = (
        "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,"
        "success,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,"
        "consumed_energy,allocated_resources\n1,w,0,2,9,1,1,5,6,1,6,1.2,-1,3 5\n"
    )
    (row,) = read_batsim(results(tmp_path, text)).jobs.to_pylist()
    assert (row["status"], row["num_gpus"], row["duration"]) == ("completed", 2.0, 5.0)


def test_unknown_states_are_counted(tmp_path: Path) -> None:
    trace = read_batsim(results(tmp_path, HEADER + RESULTS.replace("REJECTED", "LOST")))
    assert trace.jobs["status"].to_pylist()[2] == "unknown"
    assert any("'LOST' (1)" in note for note in trace.metadata.notes)


def test_the_content_tells_the_format(tmp_path: Path) -> None:
    cases = [
        ("w.json", json.dumps(WORKLOAD).encode(), read_batsim),
        ("w.json", json.dumps(WORKLOAD | {"nb_res": None}).encode(), read_batsim),
        ("out_jobs.csv", HEADER.encode(), read_batsim),
        ("o.json", b'{"apiVersion": "v1", "kind": "List", "items": []}', read_kueue),
        ("o.json", b'[{"jobid": "a", "attempts": []}]', read_philly_raw),
        ("jobs.csv", b"job_id,submit_time,duration,num_gpus\n", read_native),
    ]
    for name, head, read in cases:
        assert reader_for(tmp_path / name, head).read is read


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs": []}, "at least one job"),
        ({"jobs": [{"id": 1}]}, r"Batsim workload.*subtime.*\$\.jobs\[0\]"),
        ({"jobs": [WORKLOAD["jobs"][0] | {"res": "8"}]}, r"\$\.jobs\[0\]\.res"),
        ({"jobs": [WORKLOAD["jobs"][0] | {"res": 10**400}]}, r"\$\.jobs\[0\]\.res"),
        ({"jobs": [WORKLOAD["jobs"][0] | {"profile": "lon"}]}, "'lon'.*job 1.*mean 'long'"),
        ({"profiles": {}}, "name of one of the profiles"),
        ({"profiles": {**WORKLOAD["profiles"], "long": {"type": "delay"}}}, "a delay in seconds"),
    ],
)
def test_bad_workloads(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        workload(tmp_path, **changes)


def test_rules_of_the_schema_hold(tmp_path: Path) -> None:
    twice = WORKLOAD["jobs"] + [WORKLOAD["jobs"][0] | {"res": -1, "id": "e"}]
    with pytest.raises(SchemaError, match=r"num_gpus.*\(1 row, first in line 5"):
        workload(tmp_path, jobs=twice)
    path = results(tmp_path, HEADER + RESULTS.replace("2,w0", "1,w0"))
    with pytest.raises(SchemaError, match="each id once"):
        read_batsim(path)
    trace = read_batsim(path, bad_rows="drop")
    assert (trace.jobs.num_rows, trace.metadata.rows_read) == (2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (json.dumps(WORKLOAD)[:-9], "valid JSON.*cut"),
        ("[]", "Batsim workload"),
        (HEADER, "no rows"),
        (HEADER + RESULTS.replace("20-27", "27-20"), "line 3, column 'allocated_resources'"),
        (HEADER + RESULTS.replace("20-27", "2-999999999"), "column 'allocated_resources'"),
        (HEADER + RESULTS.replace(",3600,", ",soon,"), "line 2, column 'execution_time': .*'soon'"),
        (HEADER + RESULTS[:-9], "cut"),
        (HEADER.replace("execution_time", "x") + RESULTS, "a column 'execution_time'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_batsim(results(tmp_path, text))


@given(resources=st.sets(st.integers(0, 60)))
def test_interval_sets_come_back(resources: set[int]) -> None:
    spans = parse_intervals(format_intervals(resources))
    assert {n for low, high in spans for n in range(low, high + 1)} == resources
    assert count_of(spans) == len(resources)
    assert parse_intervals(" ".join(map(str, resources))) == spans


@pytest.mark.parametrize("text", ["a", "1-", "-1", "3-1", "1,2", "1-2-3", "1.5"])
def test_what_is_no_interval_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_intervals(text)


STAYS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 5)), max_size=30)


@given(stays=STAYS)
def test_numbered_resources_never_overlap(stays: list[tuple[int, int, int]]) -> None:
    """Two stays that share time share no number; the highest number is the peak."""
    asked = [(float(a), float(a + d), count) for a, d, count in stays]
    numbers = number_resources(asked)
    for i, (begin, end, count) in enumerate(asked):
        assert len(set(numbers[i])) == count
        for j in range(i):
            if begin < asked[j][1] and asked[j][0] < end:
                assert not set(numbers[i]) & set(numbers[j])
    # A stay without length holds its GPUs for the instant of its start, too.
    peak = max(
        (sum(c for a, b, c in asked if a <= t < b or a == b == t) for t, _, _ in asked), default=0
    )
    assert max((number for given in numbers for number in given), default=-1) + 1 <= peak


def jobs_of(**columns: list[Any]) -> pa.Table:
    rows = len(next(iter(columns.values())))
    plain = {"submit_time": 0.0, "duration": 60.0, "num_gpus": 1.0}
    return as_jobs({**{name: [value] * rows for name, value in plain.items()}, **columns})


def written(tmp_path: Path, jobs: Any, **options: Any) -> list[dict[str, str]]:
    path = tmp_path / "jobs.csv"
    write_batsim(jobs, path, **options)
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert tuple(reader.fieldnames or ()) == COLUMNS
    return rows


def test_the_columns_are_those_of_batsim() -> None:
    assert ",".join(COLUMNS) + "\n" == HEADER


def test_recorded_times(tmp_path: Path) -> None:
    """Jobs a and b overlap, c follows a and takes its numbers; d was rejected."""
    jobs = jobs_of(
        job_id=["a", "b", "c", "d"],
        submit_time=[0.0, 1.0, 2.0, 3.0],
        start_time=[0.0, 5.0, 10.0, None],
        end_time=[10.0, 25.0, 14.0, None],
        duration=[10.0, 20.0, 4.0, None],
        num_gpus=[2.0, 3.0, 1.0, 99.0],
        estimate=[20.0, None, None, None],
        status=["completed", "timeout", "failed", "cancelled"],
        user=["x", None, None, None],
    )
    first, second, third, fourth = written(tmp_path, jobs)
    assert ",".join(first[name] for name in COLUMNS) == (
        "a,w0,10,0,2,20,1,COMPLETED_SUCCESSFULLY,0,10,10,0,10,1,0-1,-1,"
    )
    assert (second["allocated_resources"], third["allocated_resources"]) == ("2-4", "0")
    assert second["waiting_time"], second["stretch"] == ("4", "1.2")
    assert (second["requested_time"], second["success"]) == ("-1", "0")
    assert (fourth["final_state"], fourth["starting_time"], fourth["allocated_resources"]) == (
        "REJECTED",
        "",
        "",
    )
    losses = batsim_losses(jobs)
    assert any("'user'" in text for text in losses)
    assert any("numbered here" in text for text in losses)
    assert len(losses) == 2


def test_what_batsim_cannot_hold_is_listed() -> None:
    jobs = jobs_of(
        status=["node_fail", "preempted", "unknown", "completed"],
        start_time=[1.0, 1.0, 1.0, None],
    )
    losses = " ".join(batsim_losses(jobs))
    assert "unknown state (no state): 3." in losses
    assert "evalys cannot draw (simulate the trace to give them one): 1." in losses


def test_an_end_that_is_worked_out_is_noted() -> None:
    jobs = jobs_of(start_time=[1.0, 1.0], end_time=[None, 11.0], status=["failed", "failed"])
    losses = " ".join(batsim_losses(jobs))
    assert "without an end, which is written as start + run time: 1." in losses


def test_fractions_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"Batsim counts resources \(1 row, first in row 2: 0.5"):
        write_batsim(jobs_of(num_gpus=[1.0, 0.5]), tmp_path / "o.csv")
    with pytest.raises(SchemaError, match="at most 10,000,000 GPUs of a job"):
        write_batsim(jobs_of(num_gpus=[1e300], start_time=[0.0]), tmp_path / "o.csv")
    assert list(tmp_path.iterdir()) == []


def test_gzip_is_the_same_bytes_twice(tmp_path: Path) -> None:
    jobs = jobs_of(start_time=[0.0])
    for name in ("a.csv.gz", "b.csv.gz", "a.csv"):
        write_batsim(jobs, tmp_path / name)
    packed = (tmp_path / "a.csv.gz").read_bytes()
    assert packed == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.csv").read_bytes()


def test_a_run_of_the_simulator(tmp_path: Path) -> None:
    """The hand-checked case of the house: 2 nodes x 4 GPUs, FIFO, starts 0, 0, 4, 10, 18, 18."""
    rows = [(0, 10, 3), (0, 4, 4), (1, 3, 2), (2, 8, 8), (3, 1, 1), (4, 2, 1)]
    submit, duration, gpus = (list(column) for column in zip(*rows, strict=True))
    jobs = as_jobs({"submit_time": submit, "duration": duration, "num_gpus": gpus})
    outcome = wt.simulate(jobs, "2x4", policy="fifo")
    table = flown(jobs, outcome.table)
    written_rows = written(tmp_path, table)
    starts = [0, 0, 4, 10, 18, 18]
    assert [float(row["starting_time"]) for row in written_rows] == starts
    assert [float(row["execution_time"]) for row in written_rows] == duration
    allocated = [row["allocated_resources"] for row in written_rows]
    assert [count_of(parse_intervals(text)) for text in allocated] == gpus
    assert allocated[:2] == ["0-2", "3-6"]
    assert allocated[3] == "0-7"
    again = read_batsim(tmp_path / "jobs.csv")
    assert again.jobs["status"].to_pylist() == ["completed"] * 6
    assert again.jobs["end_time"].to_pylist() == outcome.table["end_time"].to_pylist()
    assert any("numbered here" in text for text in batsim_losses(table))


def test_a_run_that_rejects_and_does_not_end(tmp_path: Path) -> None:
    jobs = as_jobs(
        {"submit_time": [0, 0, 0, 90], "duration": [9, 9, 60, 9], "num_gpus": [2, 99, 2, 1]}
    )
    outcome = wt.simulate(jobs, "pool:2", policy="fifo", oversize="reject", until=20.0)
    rows = written(tmp_path, flown(jobs, outcome.table))
    assert [row["final_state"] for row in rows] == [
        "COMPLETED_SUCCESSFULLY",
        "REJECTED",
        "RUNNING",
        "NOT_SUBMITTED",
    ]
    assert [row["starting_time"] for row in rows] == ["0", "", "9", ""]
    assert [row["finish_time"] for row in rows] == ["9", "", "", ""]
    with pytest.raises(SchemaError, match="the ids of the jobs"):
        flown(jobs.slice(1), outcome.table)


TIME = st.floats(0, 1e9)
TEXT = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=6).filter(
    lambda text: text.strip() == text
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Tables of which Batsim can hold every column."""
    rows = []
    for number in range(draw(st.integers(1, 8))):
        submit = draw(TIME)
        status = draw(st.sampled_from(["completed", "failed", "timeout", "cancelled", "pending"]))
        ran = status in {"completed", "failed", "timeout"}
        run = draw(TIME)
        start = submit + draw(TIME)
        first = draw(st.integers(0, 30))
        count = draw(st.integers(1, 9))
        rows.append(
            {
                "job_id": draw(TEXT) + str(number),
                "submit_time": submit,
                "start_time": start if ran else None,
                "end_time": start + run if ran else None,
                "duration": run if ran else None,
                "estimate": draw(st.one_of(st.none(), TIME)),
                "num_gpus": float(count),
                "status": status,
                "profile": draw(TEXT),
                "workload_name": "w0",
                "final_state": None,
                "allocated_resources": format_intervals(range(first, first + count))
                if ran
                else None,
                "consumed_energy": draw(st.one_of(st.none(), TIME)),
                "metadata": draw(st.one_of(st.none(), TEXT)),
            }
        )
    table = pa.Table.from_pylist(rows).sort_by("submit_time")
    for index, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            kind = pa.string() if field.name not in NUMBERS else pa.float64()
            table = table.set_column(index, field.name, table[field.name].cast(kind))
    return as_jobs(table)


NUMBERS = ("start_time", "end_time", "duration", "estimate", "consumed_energy")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(jobs=tables())
def test_what_batsim_can_hold_comes_back(tmp_path: Path, jobs: pa.Table) -> None:
    path = tmp_path / "jobs.csv"
    write_batsim(jobs, path)
    again = read_batsim(path).jobs
    assert again.drop_columns(["final_state"]).to_pylist() == (
        jobs.drop_columns(["final_state"]).to_pylist()
    )
    assert batsim_losses(jobs) == ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    where=st.integers(0, 2000),
    kind=st.sampled_from(["cut", "drop", "nul", "comma", "negative"]),
    source=st.sampled_from(["json", "csv"]),
)
def test_mutated_files_give_a_trace_or_one_clear_error(
    tmp_path: Path, where: int, kind: str, source: str
) -> None:
    text = HEADER + RESULTS if source == "csv" else json.dumps(WORKLOAD, indent=1)
    at = where % len(text)
    text = {
        "cut": text[:at],
        "drop": text[:at] + text[at + 1 :],
        "nul": text[:at] + "\0" + text[at:],
        "comma": text[:at] + "," + text[at:],
        "negative": text[:at] + "-" + text[at:],
    }[kind]
    path = results(tmp_path, text)
    try:
        trace = read_batsim(path)
    except WindtunnelError as error:
        assert str(path) in str(error)  # noqa: PT017 - one of two lawful ends
        return
    assert trace.metadata.rows_read == trace.jobs.num_rows + sum(trace.metadata.dropped.values())


@pytest.mark.data
def test_the_reference_samples(data_dir: Path, tmp_path: Path) -> None:
    folder = data_dir / "formats"
    trace = read_batsim(folder / "batsim_workload_v4.json")
    assert trace.jobs["duration"].to_pylist() == [3600.0, 42.0]
    assert trace.jobs["estimate"].to_pylist() == [7200.0, None]
    assert trace.cluster is not None
    assert trace.cluster.num_gpus == 64
    trace = read_batsim(folder / "batsim_jobs.csv")
    assert trace.jobs["num_gpus"].to_pylist() == [8.0, 16.0, 65.0]
    path = tmp_path / "again.csv"
    write_batsim(trace.jobs, path)
    assert read_batsim(path).jobs.to_pylist() == trace.jobs.to_pylist()
    lines = [(folder / "batsim_jobs.csv").read_text().splitlines(), path.read_text().splitlines()]
    assert lines[0][0] == lines[1][0]
