"""Writing the Standard Workload Format, and reading it back."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.errors import SchemaError, TraceError
from windtunnel.schema import as_jobs
from windtunnel.traces.swf import FIELDS, read_swf
from windtunnel.traces.swf_writer import swf_losses, write_swf
from windtunnel.traces.trace import TraceMetadata

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("submit_time", "start_time", "end_time", "duration", "estimate", "num_gpus", "mem_gib")


def written(tmp_path: Path, jobs: Any, **options: Any) -> tuple[list[str], list[dict[str, int]]]:
    """The header and the records of a table as SWF."""
    path = tmp_path / "log.swf"
    write_swf(jobs, path, **options)
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [line for line in lines if not line.startswith(";")]
    return [line for line in lines if line.startswith(";")], [
        dict(zip(FIELDS, map(int, record.split(" ")), strict=True)) for record in records
    ]


def jobs_of(**columns: list[Any]) -> pa.Table:
    """A table; the columns not given hold one plain value."""
    rows = len(next(iter(columns.values())))
    plain = {"submit_time": 0.0, "duration": 60.0, "num_gpus": 1.0}
    return as_jobs({**{name: [value] * rows for name, value in plain.items()}, **columns})


def test_fields_and_header(tmp_path: Path) -> None:
    jobs = jobs_of(
        job_id=["a", "b"],
        submit_time=[10.0, 5.0],
        start_time=[30.0, None],
        duration=[60.0, 0.0],
        estimate=[100.0, None],
        num_gpus=[4.0, 2.0],
        mem_gib=[8.0, None],
        user=["ann", None],
        vc=["lab\nx", "shop"],
        template=["17", None],
        status=["timeout", "cancelled"],
        num_cpus=[3.0, 1.0],
    )
    about = TraceMetadata(
        "t", "t", licence="CC0", epoch="2001-09-09T01:46:40+00:00", zone="Europe/Berlin"
    )
    header, records = written(tmp_path, jobs, metadata=about, cluster=ClusterSpec.uniform(8, 4))
    unknown = dict.fromkeys(FIELDS, -1)
    assert records[1] == unknown | {
        "job": 2, "submit": 10, "wait": 20, "run": 60, "procs": 4, "requested_procs": 4,
        "requested_time": 100, "requested_memory": 2 * 2**20, "status": 0, "user": 1,
        "executable": 17, "queue": 2,
    }  # fmt: skip
    assert records[0] == unknown | {
        "job": 1, "submit": 5, "run": 0, "requested_procs": 2, "status": 5, "queue": 1,
    }  # fmt: skip
    for line in (
        "; Version: 2.2",
        "; MaxJobs: 2",
        "; MaxProcs: 32",
        "; MaxNodes: 8",
        "; UnixStartTime: 1000000000",
        "; TimeZoneString: Europe/Berlin",
        "; Acknowledge: CC0",
        "; Queue: 2 lab\\nx",
        "; Note: Columns that SWF does not have: 'num_cpus'.",
        "; Note: The job ids are not numbers: jobs are numbered from 1.",
    ):
        assert line in header
    trace = read_swf(tmp_path / "log.swf")
    assert trace.metadata.epoch == about.epoch
    assert trace.cluster == ClusterSpec.uniform(8, 4, name="log")


def test_fractions_are_refused_together_and_nothing_is_written(tmp_path: Path) -> None:
    jobs = jobs_of(num_gpus=[1.0, 0.5, 0.25], submit_time=[-1.0, 0.0, 0.0])
    with pytest.raises(SchemaError, match=r"2 rows, first in row 2: 0.5") as caught:
        write_swf(jobs, tmp_path / "log.swf")
    assert [v.column for v in caught.value.violations] == ["num_gpus", "submit_time"]
    with pytest.raises(SchemaError, match=r"below 2\*\*53"):
        write_swf(jobs_of(duration=[1e300]), tmp_path / "log.swf")
    with pytest.raises(SchemaError, match=r"'mem_gib'.*less than 2\*\*53 KiB"):
        write_swf(jobs_of(num_gpus=[1.0], mem_gib=[1e14]), tmp_path / "log.swf")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TraceError, match="can be written to"):
        write_swf(jobs_of(num_gpus=[1.0]), tmp_path / "nowhere" / "log.swf")


def test_times_are_rounded_and_it_is_noted(tmp_path: Path) -> None:
    header, (record,) = written(tmp_path, jobs_of(submit_time=[0.4], duration=[59.6]))
    assert (record["submit"], record["run"]) == (0, 60)
    assert any("fractions of a second, which are rounded: 1." in line for line in header)


def test_states_that_swf_lacks_are_listed() -> None:
    lost = swf_losses(jobs_of(status=["timeout", "preempted", "running", "completed"]))
    assert any("memory or preemption: failed: 2." in text for text in lost)
    assert any("written as -1: 1." in text for text in lost)
    bent = {"start_time": [1.0, 1.0], "duration": [5.0, 5.0], "end_time": [6.0, 9.0]}
    (loss,) = swf_losses(jobs_of(submit_time=[0.0, 0.0], **bent))
    assert loss.startswith("Jobs that ended at another time than start + run time")
    assert loss.endswith(": 1.")
    assert swf_losses(jobs_of(status=["failed"])) == ()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"mem_gib": [16.0], "num_gpus": [0.0]}, "have memory and no GPUs"),
        ({"mem_gib": [1.1], "num_gpus": [1.0]}, "fractions of a KiB a processor"),
        ({"start_time": [1.0], "end_time": [None]}, "have no end"),
        ({"start_time": [1.0], "end_time": [9.0], "duration": [None]}, "have no run time"),
        (
            {"start_time": [1.0], "duration": [None], "status": ["cancelled"]},
            "read as never started",
        ),
    ],
)
def test_what_reads_back_otherwise_is_listed(columns: dict[str, list[Any]], words: str) -> None:
    given = {"submit_time": [0.0], "duration": [5.0], "num_gpus": [2.0], **columns}
    assert [text for text in swf_losses(as_jobs(given)) if words in text and text.endswith(": 1.")]


def test_a_run_time_that_only_the_ends_tell_is_written(tmp_path: Path) -> None:
    jobs = jobs_of(submit_time=[0.0], start_time=[1.0], end_time=[9.0], duration=[None])
    _, (record,) = written(tmp_path, jobs)
    assert (record["wait"], record["run"]) == (1, 8)


def test_gzip_and_the_same_bytes_twice(tmp_path: Path) -> None:
    jobs = jobs_of(user=["x", "y"])
    write_swf(jobs, tmp_path / "a.swf.gz")
    write_swf(jobs, tmp_path / "b.swf.gz")
    packed = (tmp_path / "a.swf.gz").read_bytes()
    assert packed == (tmp_path / "b.swf.gz").read_bytes()
    write_swf(jobs, tmp_path / "a.swf")
    assert gzip.decompress(packed) == (tmp_path / "a.swf").read_bytes()


WHOLE = st.integers(0, 2**40)
MAYBE = st.one_of(st.none(), WHOLE)
NUMBER = st.one_of(st.none(), st.integers(0, 10**18 - 1).map(str))


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Tables of which SWF can hold every column."""
    rows = []
    for number in range(draw(st.integers(1, 8))):
        submit, wait, run = draw(WHOLE), draw(MAYBE), draw(MAYBE)
        start = None if wait is None else submit + wait
        status = draw(st.sampled_from(["completed", "failed", "cancelled", None]))
        gpus = draw(st.sampled_from([1, 2, 8, 4096]))
        each = draw(st.one_of(st.none(), st.integers(0, 2**20)))
        end = None if start is None or run is None else start + run
        if status == "cancelled" and run is None:  # in the queue: only when it left is known
            start, end = None, start
        row = {
            "job_id": str(number),
            "submit_time": submit,
            "start_time": start,
            "end_time": end,
            "duration": run,
            "estimate": draw(MAYBE),
            "num_gpus": gpus,
            "mem_gib": None if each is None else each * gpus,
            "status": status,
        }
        names = ("user", "vc", "template", "group", "partition", "preceding_job")
        row |= {name: draw(NUMBER) for name in names}
        rows.append(row)
    table = pa.Table.from_pylist(rows)
    for name in COLUMNS:
        table = table.set_column(
            table.column_names.index(name), name, table[name].cast(pa.float64())
        )
    for index, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(index, field.name, table[field.name].cast(pa.string()))
    return as_jobs(table.sort_by("submit_time"))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(jobs=tables())
def test_what_swf_can_hold_comes_back(tmp_path: Path, jobs: pa.Table) -> None:
    path = tmp_path / "log.swf"
    write_swf(jobs, path)
    again = read_swf(path).jobs
    assert again.drop_columns(["think_time"]).to_pylist() == jobs.to_pylist()
    assert swf_losses(jobs) == ()


@pytest.mark.data
def test_the_reference_sample_comes_back(data_dir: Path, tmp_path: Path) -> None:
    sample = read_swf(data_dir / "formats" / "sample.swf")
    path = tmp_path / "log.swf"
    write_swf(sample.jobs, path, metadata=sample.metadata)
    again = read_swf(path)
    assert again.jobs.to_pylist() == sample.jobs.to_pylist()
    assert again.metadata.epoch == sample.metadata.epoch
    assert (again.cluster is None) == (sample.cluster is None)
