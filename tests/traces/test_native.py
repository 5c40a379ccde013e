"""Our own format: written and read back exactly, and every broken rule reported at once."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.spread import spread_by
from windtunnel.errors import SchemaError, TraceError
from windtunnel.schema import JOBS, STATUSES, as_jobs
from windtunnel.traces import open_trace, write_csv, write_parquet
from windtunnel.traces.native import read_native

if TYPE_CHECKING:
    from pathlib import Path

MINIMAL = "job_id,submit_time,duration,num_gpus\na,0,10,1\nb,5,20.5,0.5\n"


def written(tmp_path: Path, text: str, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_minimal_csv(tmp_path: Path) -> None:
    trace = open_trace(written(tmp_path, MINIMAL))
    assert trace.jobs.schema.names == JOBS.names
    assert trace.jobs["duration"].to_pylist() == [10.0, 20.5]
    assert trace.jobs["num_gpus"].to_pylist() == [1.0, 0.5]
    assert trace.jobs["user"].null_count == 2
    assert (trace.name, trace.metadata.rows_read, trace.metadata.dropped) == ("t", 2, {})


def test_duration_may_come_from_start_and_end(tmp_path: Path) -> None:
    text = "job_id,submit_time,num_gpus,start_time,end_time\na,0,1,3,10\nb,0,1,,\n"
    assert read_native(written(tmp_path, text)).jobs["duration"].to_pylist() == [7.0, None]


def test_extra_columns_stay_as_text(tmp_path: Path) -> None:
    text = MINIMAL.replace("num_gpus\n", "num_gpus,shoe size\n").replace(",1\n", ",1,042\n")
    jobs = read_native(written(tmp_path, text.replace(",0.5\n", ",0.5,\n"))).jobs
    assert jobs["shoe size"].to_pylist() == ["042", None]


def test_a_sources_own_figures_come_back_as_numbers(tmp_path: Path) -> None:
    """As text they could not be drawn: ``describe`` refused the table that ``convert`` had made."""
    names = ("source_duration", "source_queue", "plan_gpu", "instance_start", "task_end")
    text = MINIMAL.replace("num_gpus\n", f"num_gpus,{','.join(names)}\n")
    text = text.replace(",1\n", ",1,12.5,,100,3,9\n").replace(",0.5\n", ",0.5,nan,3,25,,\n")
    jobs = read_native(written(tmp_path, text)).jobs
    assert jobs["source_queue"].to_pylist() == [None, 3.0]
    assert jobs["plan_gpu"].to_pylist() == [100.0, 25.0]
    for fact in ("duration", "wait", "num_gpus", "wait_share"):
        assert spread_by(jobs, source_fact(jobs, fact)).num_rows
    with pytest.raises(TraceError, match=r"source_duration.*'inf'.*finite"):
        read_native(written(tmp_path, text.replace("12.5", "inf")))


def test_another_delimiter(tmp_path: Path) -> None:
    path = written(tmp_path, MINIMAL.replace(",", ";"))
    assert open_trace(path, delimiter=";").jobs.num_rows == 2


def test_a_missing_column_suggests_the_nearest(tmp_path: Path) -> None:
    text = MINIMAL.replace("num_gpus", "num_gpu").replace("duration", "durations")
    with pytest.raises(SchemaError) as caught:
        read_native(written(tmp_path, text))
    message = str(caught.value)
    assert "t.csv" in message
    assert "Did you mean 'num_gpu'?" in message
    assert "Did you mean 'durations'?" in message


def test_every_broken_rule_is_reported_with_its_line(tmp_path: Path) -> None:
    text = (
        "job_id,submit_time,duration,num_gpus,status\n"
        "a,0,10,1,completed\n\n"
        "a,0,-1,1,completed\n"
        "b,nan,10,-2,done\n"
    )
    with pytest.raises(SchemaError) as caught:
        read_native(written(tmp_path, text))
    found = {(v.column, v.row, v.count) for v in caught.value.violations}
    assert found == {
        ("job_id", 4, 1),
        ("submit_time", 5, 1),
        ("duration", 4, 1),
        ("num_gpus", 5, 1),
        ("status", 5, 1),
    }


def test_a_bad_number_names_file_line_column_value_and_expectation(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        read_native(written(tmp_path, MINIMAL.replace("20.5", "2h")))
    assert str(caught.value).endswith(
        "t.csv, line 3, column 'duration': found '2h'; expected a number of seconds."
    )


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
FLOAT = st.floats(0, allow_infinity=False, allow_nan=False).map(abs)
JOB = st.fixed_dictionaries(
    {
        "submit_time": optional(FLOAT),
        "duration": optional(FLOAT),
        "num_gpus": optional(FLOAT),
        "num_tasks": optional(st.integers(1, 2**31 - 1)),
        "gpu_type": optional(TEXT.filter(bool)),
        "user": optional(TEXT),
        "vc": optional(TEXT),
        "status": optional(st.sampled_from(STATUSES)),
        "priority": optional(st.floats(allow_nan=False, allow_infinity=False)),
        "note": optional(TEXT),
    }
)


@pytest.mark.sample(1)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(rows=st.lists(JOB, min_size=1, max_size=8), ids=st.data())
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_round_trip_is_exact(
    tmp_path: Path, ending: str, rows: list[dict[str, Any]], ids: st.DataObject
) -> None:
    names = ids.draw(
        st.lists(TEXT.filter(bool), min_size=len(rows), max_size=len(rows), unique=True)
    )
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    table = pa.table(
        {
            "job_id": pa.array(names),
            **{n: pa.array(v, JOBS.field(n).type) for n, v in columns.items() if n != "note"},
            "note": pa.array(columns["note"], pa.string()),
        }
    )
    jobs = as_jobs(table)
    path = tmp_path / f"t.{ending}"
    (write_parquet if ending == "parquet" else write_csv)(jobs, path)
    back = read_native(path).jobs
    assert back.equals(jobs)
    first = path.read_bytes()
    (write_parquet if ending == "parquet" else write_csv)(back, path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_nothing_half_written_stays_behind(tmp_path: Path) -> None:
    jobs = as_jobs({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]})
    listed = jobs.append_column("l", pa.array([[1]]))
    path = tmp_path / "t.csv"
    path.write_text("before")
    with pytest.raises(TraceError, match=r"Write Parquet instead"):
        write_csv(listed, path)
    assert path.read_text() == "before"
    with pytest.raises(TraceError, match=r"a place that can be written to"):
        write_parquet(jobs, tmp_path / "missing" / "t.parquet")
    with pytest.raises(SchemaError):
        write_csv({"submit_time": [0.0], "duration": [-1.0], "num_gpus": [1.0]}, path)
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_parquet_columns_of_other_types_are_cast(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = {"job_id": [1, 2], "submit_time": [0, 1], "duration": [5, 5], "num_gpus": [1, 1]}
    pq.write_table(pa.table({**table, "size": [1, 2]}), path)
    jobs = read_native(path).jobs
    assert jobs["job_id"].to_pylist() == ["1", "2"]
    assert jobs["size"].type == pa.int64()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"submit_time": [[1]]},
            "column 'submit_time': expected values of type double",
        ),
        (
            {"submit_time": ["noon"]},
            "'submit_time': expected values of type double, not 'noon' in row 1",
        ),
        ({"num_tasks": [0]}, "whole number >= 1"),
    ],
)
def test_parquet_of_the_wrong_types(
    tmp_path: Path, columns: dict[str, list[Any]], message: str
) -> None:
    path = tmp_path / "t.parquet"
    good = {"job_id": ["a"], "submit_time": [0.0], "duration": [5.0], "num_gpus": [1.0]}
    pq.write_table(pa.table({**good, **columns}), path)
    with pytest.raises(SchemaError, match=message):
        read_native(path)


def test_broken_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(TraceError, match=r"a file that exists"):
        read_native(path)
    write_parquet({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]}, path)
    whole = path.read_bytes()
    for data in (b"", b"PAR1", whole[:-20], b"job_id,submit_time\n1,2\n", gzip.compress(whole)):
        path.write_bytes(data)
        with pytest.raises(TraceError, match=r"a whole Parquet file"):
            read_native(path)
    pq.write_table(pa.table({"job_id": pa.array([], pa.string())}), path)
    with pytest.raises(TraceError, match=r"at least one row"):
        read_native(path)
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    with pytest.raises(TraceError, match=r"each column name once"):
        read_native(path)


@pytest.mark.parametrize("name", ["job_id", "submit_time", "user", "priority", "note"])
@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("us", "Mars/Phobos"), pa.timestamp("s"), pa.time64("ns"), pa.duration("ns")],
    ids=str,
)
def test_times_of_any_zone_and_size_in_a_column_are_no_traceback(
    tmp_path: Path, name: str, kind: pa.DataType
) -> None:
    """Python makes no time of a zone that it does not know, nor of years beyond its own."""
    plain = {"job_id": ["a"], "submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]}
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({**plain, name: pa.array([2**40], pa.int64()).cast(kind)}), path)
    if name in {"submit_time", "priority"} or (name != "note" and "Mars" in str(kind)):
        with pytest.raises(SchemaError, match=name):
            read_native(path)
    else:
        assert read_native(path).jobs.num_rows == 1


def test_views_of_texts_are_texts(tmp_path: Path) -> None:
    plain = {"job_id": ["b", "a"], "submit_time": [1.0, 0.0], "duration": [1.0] * 2}
    note = pa.array(["x", "y"], pa.string_view())
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({**plain, "num_gpus": [1.0] * 2, "note": note}), path)
    jobs = read_native(path).jobs
    assert jobs["note"].type == pa.string()
    assert jobs.take([1, 0])["note"].to_pylist() == ["y", "x"]
