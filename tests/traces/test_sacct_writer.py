"""Our own sacct logs: what is written reads back the same, and hostile names do no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.errors import SchemaError
from windtunnel.schema import as_jobs
from windtunnel.traces import open_trace
from windtunnel.traces.sacct_words import NOTHING
from windtunnel.traces.sacct_writer import FIELDS, sacct_losses, write_sacct

if TYPE_CHECKING:
    from pathlib import Path

#: Columns that a log holds, whatever made the jobs.
HELD = (
    *("job_id", "submit_time", "start_time", "end_time", "duration", "estimate", "num_gpus"),
    *("num_cpus", "mem_gib", "gpu_type", "user", "vc", "template", "status", "priority"),
)


def back(jobs: Any, path: Path, **options: Any) -> Any:
    write_sacct(jobs, path, **options)
    return open_trace(path, format="sacct")


def test_the_sample_log_is_written_and_reads_back_the_same(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "formats" / "sacct_parsable2.txt"
    trace = open_trace(source, zone="America/New_York")
    again = back(trace.jobs, tmp_path / "log.sacct", metadata=trace.metadata)
    assert again.metadata.epoch == trace.metadata.epoch
    assert "Jobs that may run on several GPU types" in " ".join(sacct_losses(trace.jobs))
    for name in trace.jobs.column_names:
        found, expected = again.jobs[name].to_pylist(), trace.jobs[name].to_pylist()
        if name == "gpu_type":
            expected = [None if cell and "|" in cell else cell for cell in expected]
        assert found == expected, name
    header = (tmp_path / "log.sacct").read_text(encoding="utf-8").partition("\n")[0]
    assert tuple(header.split("|")) == FIELDS


def test_the_twin_of_seren_makes_the_round_trip(tmp_path: Path) -> None:
    trace = open_trace("synthetic:seren", jobs=5_000)
    again = back(trace.jobs, tmp_path / "log.sacct.gz", metadata=trace.metadata)
    for name in HELD[1:]:
        assert again.jobs[name].equals(trace.jobs[name]), name
    assert again.jobs["job_id"].to_pylist() == [str(n + 1) for n in range(5_000)]
    assert [text.partition(":")[0] for text in sacct_losses(trace.jobs)] == [
        "Columns that an sacct log does not have",
        "The job ids are none that Slurm gives",
    ]


def test_licences_are_read_and_written(tmp_path: Path) -> None:
    """Of the resources of the whole job; a log without any has no such column."""
    log = tmp_path / "log.txt"
    head = "JobID|User|State|Submit|Start|End|ElapsedRaw|AllocTRES\n"
    job = "|ann|COMPLETED|2025-01-01T00:00:00|2025-01-01T00:01:00|2025-01-01T00:03:00|120|"
    log.write_text(
        f"{head}1{job}cpu=4,gres/gpu=2,license/idl@a.b=1,license/matlab=2,node=1\n2{job}cpu=4\n"
    )
    read = open_trace(str(log), zone="UTC").jobs
    assert read["licenses"].to_pylist() == ["idl@a.b:1,matlab:2", None]
    assert back(read, tmp_path / "log.sacct").jobs["licenses"].equals(read["licenses"])
    log.write_text(f"{head}2{job}cpu=4\n")
    assert "licenses" not in open_trace(str(log), zone="UTC").jobs.column_names


_TIMES = st.integers(0, 10**7)
_NAMES = st.text("ab=+-@|,;\"'\\ \t\n\r\x1b\u202e<>&/.é训", max_size=12)


@st.composite
def _jobs(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for number in range(draw(st.integers(1, 6))):
        status = draw(st.sampled_from(("completed", "failed", "timeout", "running", "pending")))
        submit, wait, run = draw(_TIMES), draw(_TIMES), draw(st.integers(1, 10**6))
        row: dict[str, Any] = {"job_id": str(number + 1), "submit_time": submit, "status": status}
        row["num_gpus"] = draw(st.integers(0, 4096))
        row["num_cpus"] = draw(st.none() | st.integers(1, 9999))
        row["mem_gib"] = draw(st.none() | st.integers(1, 4000))
        row["estimate"] = draw(st.none() | st.integers(0, 10**6))
        row["priority"] = draw(st.integers(0, 10**9))
        row["template"], row["user"] = draw(_NAMES), draw(_NAMES)
        row["duration"] = 0 if status == "pending" else run
        if status != "pending":
            row["start_time"] = submit + wait
            row["end_time"] = None if status == "running" else submit + wait + run
        rows.append(row)
    return sorted(rows, key=lambda row: row["submit_time"])


def _table(rows: list[dict[str, Any]]) -> Any:
    names = dict.fromkeys(name for row in rows for name in row)
    return as_jobs({name: [row.get(name) for row in rows] for name in names})


@pytest.mark.slow
@given(rows=_jobs())
def test_whatever_the_names_the_rest_reads_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    jobs = _table(rows)
    path = tmp_path_factory.mktemp("log") / "log.sacct"
    again = back(jobs, path).jobs
    for name in HELD:
        if name in ("template", "user"):
            continue
        expected = jobs[name].to_pylist()
        if name in ("submit_time", "start_time", "end_time"):  # the reader counts from the first
            first = min(jobs["submit_time"].to_pylist())
            expected = [None if t is None else t - first for t in expected]
        assert again[name].to_pylist() == expected, name
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") == len(rows) + 1
    assert all(char.isprintable() or char == "\n" for char in text)
    lines = [line.split("|") for line in text.splitlines()[1:]]
    assert all(cell.lstrip()[:1] not in set("=+-@") for line in lines for cell in line if cell)
    losses = " ".join(sacct_losses(jobs))
    users = zip(again["user"].to_pylist(), jobs["user"].to_pylist(), strict=True)
    names = zip(again["template"].to_pylist(), jobs["template"].to_pylist(), strict=True)
    if any(one != other for one, other in [*users, *names]):
        assert "which read back otherwise" in losses


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("train|lr=3e-4", "train|lr=3e-4"),
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("a|=1+1", "a|'=1+1"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines", "two\\nlines"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("\u202eevil", "\\u202eevil"),
        ("x" * 10_000, "x" * 10_000),
    ],
)
def test_hostile_job_names(tmp_path: Path, name: str, cell: str) -> None:
    jobs = {"submit_time": [0], "duration": [5], "num_gpus": [1], "template": [name]}
    again = back(
        {**jobs, "job_id": ["7"], "user": ["a|b"], "status": ["completed"]}, tmp_path / "log.sacct"
    )
    assert again.jobs["template"].to_pylist() == [cell]
    assert again.jobs["user"].to_pylist() == ["a_b"]


@pytest.mark.parametrize("word", sorted(NOTHING - {""}))
def test_users_called_like_nothing_are_noted(word: str) -> None:
    jobs = as_jobs({"submit_time": [0], "duration": [5], "num_gpus": [1], "user": [word]})
    assert any("a word that Slurm has for nothing" in text for text in sacct_losses(jobs))


def test_a_separator_in_a_name_beside_an_unknown_state(tmp_path: Path) -> None:
    jobs = {"job_id": ["7"], "submit_time": [0], "duration": [5], "num_gpus": [1]}
    table = as_jobs({**jobs, "template": ["a|b"]})
    assert back(table, tmp_path / "log.sacct").jobs["template"].to_pylist() == ["a_b"]
    assert any("which becomes _: 1." in text for text in sacct_losses(table))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"gpu_type": ["A100"], "num_gpus": [0.0]}, "GPU type is not written"),
        ({"status": [None]}, "without a status"),
        ({"start_time": [1.0], "status": ["pending"], "duration": [None]}, "that wait and have"),
        ({"start_time": [1.0], "end_time": [6.0], "status": ["running"]}, "that still run or wait"),
        ({"start_time": [1.0]}, "without an end"),
        ({"start_time": [1.0], "end_time": [6.0], "duration": [None]}, "without a run time"),
        ({"priority": [1e13]}, "whose priority"),
    ],
)
def test_what_reads_back_otherwise_is_listed(columns: dict[str, list[Any]], words: str) -> None:
    given = {"submit_time": [0], "duration": [5.0], "num_gpus": [1], "status": ["failed"]}
    losses = sacct_losses(as_jobs({**given, **columns}))
    assert [text for text in losses if words in text and text.endswith(": 1.")]


def test_a_priority_that_slurm_cannot_give_costs_no_other_job_its_own(tmp_path: Path) -> None:
    jobs = as_jobs(
        {"submit_time": [0, 1, 2], "duration": [5] * 3, "num_gpus": [1] * 3, "priority": [7, -2, 5]}
    )
    again = back(jobs, tmp_path / "log.sacct")
    assert again.jobs["priority"].to_pylist() == [7.0, None, 5.0]
    assert any("whose priority is no whole number from 0 on: 1." in t for t in sacct_losses(jobs))


@pytest.mark.parametrize(
    "name", ["num_gpus", "num_cpus", "mem_gib", "duration", "estimate", "num_nodes"]
)
def test_numbers_that_no_reader_of_the_log_would_take_are_refused(
    tmp_path: Path, name: str
) -> None:
    given = {"submit_time": [0.0], "duration": [5.0], "num_gpus": [1.0], name: pa.array([1e30])}
    with pytest.raises(SchemaError, match=f"'{name}': expected"):
        write_sacct(as_jobs(given), tmp_path / "log.sacct")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["num_nodes", "eligible_time"])
def test_a_further_column_of_words_is_refused(tmp_path: Path, name: str) -> None:
    jobs = as_jobs({"submit_time": [0.0], "duration": [5.0], "num_gpus": [1.0]})
    words = jobs.append_column(name, pa.array(["two"]))
    with pytest.raises(SchemaError, match=f"'{name}': expected numbers"):
        write_sacct(words, tmp_path / "log.sacct")


def test_what_slurm_cannot_count_is_refused(tmp_path: Path) -> None:
    jobs = {"submit_time": [0, -5], "duration": [5, 5], "num_gpus": [0.5, 1]}
    with pytest.raises(SchemaError, match=r"whole GPUs(.|\n)*between 1970 and 2200"):
        write_sacct(jobs, tmp_path / "log.sacct")
    assert not list(tmp_path.iterdir())
