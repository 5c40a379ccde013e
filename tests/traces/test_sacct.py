"""Slurm's accounting log: the reference records, and the rules one by one."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.sacct import read_sacct
from windtunnel.traces.sacct_words import STATES

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

HEADER = "JobID|JobName|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|AllocTRES"
ROW = {
    "JobID": "7",
    "JobName": "train",
    "User": "ann",
    "Account": "lab",
    "Partition": "gpu",
    "State": "COMPLETED",
    "Submit": "2025-01-01T00:00:00",
    "Start": "2025-01-01T00:01:00",
    "End": "2025-01-01T00:03:00",
    "ElapsedRaw": "120",
    "AllocTRES": "cpu=4,gres/gpu=2,mem=8G,node=1",
}


def log(*rows: dict[str, str], mark: str = "|", trailing: bool = False) -> str:
    """A log of rows that differ from `ROW`; further columns stand behind its own."""
    names = list(dict.fromkeys([*ROW, *(name for row in rows for name in row)]))
    cells = [names, *([{**ROW, **row}.get(name, "") for name in names] for row in rows)]
    return "".join(mark.join(line) + mark * trailing + "\n" for line in cells)


def read(tmp_path: Path, text: str, **options: Any) -> Trace:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    return read_sacct(path, **options)


def one(tmp_path: Path, /, **cells: str) -> dict[str, Any]:
    """The only job of a log."""
    (job,) = read(tmp_path, log(cells), zone="UTC").jobs.to_pylist()
    return dict(job)


def test_columns_and_metadata(tmp_path: Path) -> None:
    row = {"QOS": "high", "Priority": "7", "NodeList": "n1", "Reason": "None"}
    row |= {"Eligible": "2025-01-01T00:00:30", "Timelimit": "01:00:00"}
    trace = read(tmp_path, log(row, {"JobID": "7.batch"}))
    job = {k: v for k, v in trace.jobs.to_pylist()[0].items() if v is not None}
    assert job == {
        "job_id": "7",
        "submit_time": 0.0,
        "start_time": 60.0,
        "end_time": 180.0,
        "duration": 120.0,
        "estimate": 3600.0,
        "num_gpus": 2.0,
        "num_cpus": 4.0,
        "mem_gib": 8.0,
        "user": "ann",
        "vc": "lab",
        "template": "train",
        "status": "completed",
        "priority": 7.0,
        "partition": "gpu",
        "qos": "high",
        "eligible_time": 30.0,
        "nodelist": "n1",
        "num_nodes": 1,
        "state": "COMPLETED",
    }
    about = trace.metadata
    assert (about.epoch, about.zone) == ("2025-01-01T00:00:00+00:00", "UTC")
    assert (about.rows_read, about.dropped) == (2, {"row of a job step": 1})
    assert any("read as UTC" in note for note in about.notes)


@pytest.mark.parametrize("trailing", [False, True])
@pytest.mark.parametrize("mark", ["|", "\t", "^|^", ";"])
def test_separators_are_found_and_stand_in_names(
    tmp_path: Path,
    mark: str,
    trailing: bool,  # noqa: FBT001
) -> None:
    text = log({"JobName": f"a{mark}b{mark}c"}, {"JobID": "8"}, mark=mark, trailing=trailing)
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    trace = open_trace(path)
    assert trace.jobs["template"].to_pylist() == [f"a{mark}b{mark}c", "train"]
    assert any("held separators, joined again: 1." in note for note in trace.metadata.notes)
    assert read(tmp_path, text, delimiter=mark).jobs.equals(trace.jobs)


def test_quoted_csv_is_read_and_bare_commas_are_refused(tmp_path: Path) -> None:
    tres = ROW["AllocTRES"]
    path = tmp_path / "log.csv"
    path.write_text(log({"AllocTRES": f'"{tres}"'}, mark=","), encoding="utf-8")
    assert open_trace(path).jobs["num_gpus"].to_pylist() == [2]
    path.write_text(log({}, mark=","), encoding="utf-8")
    with pytest.raises(TraceError, match=r"line 2: expected 11 fields, found 14.*sacct -a -D -P"):
        open_trace(path)


def test_the_table_for_people_is_refused(tmp_path: Path) -> None:
    human = (
        "JobID           JobName  Partition      State\n"
        "------------ ---------- ---------- ----------\n"
        "7            train-lon+        gpu CANCELLED+\n"
    )
    with pytest.raises(TraceError, match=r"line 1.*table for people.*sacct -a -D -P -S START"):
        read(tmp_path, human)
    path = tmp_path / "log.txt"
    with pytest.raises(TraceError, match="table for people"):
        open_trace(path)
    with pytest.raises(TraceError, match=r"column 'State': found 'CANCELLED\+'.*sacct -a"):
        read(tmp_path, log({"State": "CANCELLED+"}))


@pytest.mark.parametrize(("state", "status"), [*STATES.items(), ("OOM", "out_of_memory")])
def test_states(tmp_path: Path, state: str, status: str) -> None:
    assert one(tmp_path, State=state)["status"] == status


def test_an_unknown_state_is_noted(tmp_path: Path) -> None:
    trace = read(tmp_path, log({"State": "NAPPING"}))
    assert trace.jobs["status"].to_pylist() == ["unknown"]
    assert any("'NAPPING'" in note for note in trace.metadata.notes)


@pytest.mark.parametrize("start", ["None", "Unknown", "2025-01-01T00:03:00"])
@pytest.mark.parametrize("state", ["CANCELLED by 12", "CANCELLED", "DEADLINE"])
def test_cancelled_while_pending(tmp_path: Path, start: str, state: str) -> None:
    job = one(
        tmp_path, State=state, Start=start, ElapsedRaw="0", AllocTRES="", ReqTRES="gres/gpu=8"
    )
    assert (job["start_time"], job["end_time"], job["duration"]) == (None, 180.0, 0.0)
    assert (job["num_gpus"], job["status"]) == (8.0, "cancelled")


@pytest.mark.parametrize(
    ("tres", "gpus", "kind"),
    [
        ("gres/gpu:a100=8,gres/gpu=8", 8, "a100"),
        ("gres/gpu:a100=2,gres/gpu:h100=1", 3, "a100|h100"),
        ("gres/gpu=32", 32, None),
        ("gres/gpumem=548682072064,gres/gpuutil=742", 0, None),
        ("gres/shard:a100=2,gres/shard=2,gres/mps=50", 0, None),
        ("cpu=1,energy=18446744073709551614,fs/disk=3,license/matlab=1", 0, None),
    ],
)
def test_gpus_are_counted_once(tmp_path: Path, tres: str, gpus: int, kind: str | None) -> None:
    job = one(tmp_path, AllocTRES=tres)
    assert (job["num_gpus"], job["gpu_type"]) == (gpus, kind)


@pytest.mark.parametrize(
    ("gres", "gpus", "kind"),
    [
        ("gpu:4", 8, None),
        ("gpu:v100:2(S:0-1)", 4, "v100"),
        ("gres:gpu:1", 2, None),
        ("gpu", 2, None),
    ],
)
def test_gres_is_per_node(tmp_path: Path, gres: str, gpus: int, kind: str | None) -> None:
    job = one(tmp_path, AllocTRES="", AllocGRES=gres, NNodes="2")
    assert (job["num_gpus"], job["gpu_type"]) == (gpus, kind)


@pytest.mark.parametrize(
    ("memory", "gib"),
    [
        ("4096Mc", 32.0),
        ("180Gn", 360.0),
        ("2T", 2048.0),
        ("1048576K", 1.0),
        ("0n", None),
        ("", None),
    ],
)
def test_requested_memory(tmp_path: Path, memory: str, gib: float | None) -> None:
    job = one(tmp_path, AllocTRES="", ReqMem=memory, NNodes="2", NCPUS="8")
    assert job["mem_gib"] == gib


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("30", 1800),
        ("02:03", 123),
        ("01:02:03", 3723),
        ("3-00", 259200),
        ("1-02:03", 93780),
        ("1-02:03:04", 93784),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
    ],
)
def test_time_limits(tmp_path: Path, limit: str, seconds: float | None) -> None:
    assert one(tmp_path, Timelimit=limit)["estimate"] == seconds


@pytest.mark.parametrize(
    ("job", "tasks"),
    [
        ("9_[3-5%2]", ["9_3", "9_4", "9_5"]),
        ("9_[0-8:4,1]", ["9_0", "9_4", "9_8", "9_1"]),
        ("9_[1-2,...]", ["9_1", "9_2"]),
        ("9_4", ["9_4"]),
        ("9+1", ["9+1"]),
    ],
)
def test_arrays_become_their_tasks(tmp_path: Path, job: str, tasks: list[str]) -> None:
    trace = read(tmp_path, log({"JobID": job, "State": "PENDING", "ElapsedRaw": "0"}))
    assert trace.jobs["job_id"].to_pylist() == tasks
    assert trace.jobs["start_time"].null_count == len(tasks)
    assert trace.metadata.rows_read == len(tasks)
    assert any("Slurm has cut" in note for note in trace.metadata.notes) == ("..." in job)


def test_requeued_jobs_get_ids_of_their_own(tmp_path: Path) -> None:
    later = "2025-01-01T00:00:30"
    trace = read(tmp_path, log({"Submit": later}, {"State": "PREEMPTED"}, {"Submit": later}))
    assert trace.jobs["job_id"].to_pylist() == ["7", "7#2", "7#3"]
    assert trace.jobs["status"].to_pylist() == ["preempted", "completed", "completed"]
    assert any("requeued" in note and note.endswith("2.") for note in trace.metadata.notes)


def test_logs_put_behind_each_other(tmp_path: Path) -> None:
    trace = read(tmp_path, log({}) + log({"JobID": "8"}))
    assert trace.jobs.num_rows == 2
    assert trace.metadata.dropped == {"repeated header line": 1}
    assert trace.metadata.rows_read == 3


BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("submit", "start", "end", "elapsed", "waited"),
    [
        # The hour from 02:00 to 03:00 of 26 October 2025 comes twice.
        ("01:50", "02:10", "02:40", 1800, 1200),  # first pass
        ("02:40", "02:10", "02:30", 1200, 1800),  # before its submission: second pass
        ("01:50", "02:50", "03:10", 1200, 7200),  # the run time says second pass
        ("01:50", "02:50", "03:10", 4800, 3600),  # the run time says first pass
        ("01:50", "01:55", "02:10", 4500, 300),  # it ends in the second pass
    ],
)
def test_the_repeated_hour(
    tmp_path: Path, submit: str, start: str, end: str, elapsed: int, waited: float
) -> None:
    times = zip(("Submit", "Start", "End"), (submit, start, end), strict=True)
    row = {name: f"2025-10-26T{clock}:00" for name, clock in times}
    trace = read(tmp_path, log({**row, "ElapsedRaw": str(elapsed)}), zone=BERLIN)
    assert trace.jobs["start_time"].to_pylist() == [waited]
    assert trace.jobs["end_time"].to_pylist() == [waited + elapsed]
    assert trace.metadata.zone == BERLIN
    assert any("repeated hour" in note for note in trace.metadata.notes)
    assert not any("disagree" in note for note in trace.metadata.notes)


def test_seconds_since_1970_need_no_zone(tmp_path: Path) -> None:
    row = {"Submit": "1735689600", "Start": "1735689660", "End": "1735689780"}
    trace = read(tmp_path, log(row))
    assert trace.metadata.epoch == "2025-01-01T00:00:00+00:00"
    assert trace.metadata.zone is None
    assert trace.metadata.notes == ()
    assert trace.jobs["start_time"].to_pylist() == [60]


def test_the_run_time_outranks_the_clock(tmp_path: Path) -> None:
    trace = read(tmp_path, log({"ElapsedRaw": "100"}))
    assert trace.jobs["end_time"].to_pylist() == [160]
    assert any("disagree with the run time" in note for note in trace.metadata.notes)
    assert one(tmp_path, ElapsedRaw="", Elapsed="1-00:00:01")["duration"] == 86401
    assert one(tmp_path, ElapsedRaw="")["duration"] == 120


def test_jobs_that_still_run(tmp_path: Path) -> None:
    job = one(tmp_path, State="RUNNING", End="Unknown")
    assert (job["start_time"], job["end_time"], job["duration"]) == (60.0, None, 120.0)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"Submit": "yesterday"}, "line 2, column 'Submit': found 'yesterday'"),
        ({"Submit": "2025-01-01T00:00:00-0400"}, "column 'Submit'"),
        ({"Submit": "99999999999"}, "between 1970 and 2200"),
        ({"Start": "1969-01-01T00:00:00"}, "between 1970 and 2200"),
        ({"ElapsedRaw": "-5"}, "column 'ElapsedRaw': found '-5'"),
        ({"AllocTRES": "gres/gpu=many"}, "column 'AllocTRES'"),
        ({"AllocTRES": "gres/gpu"}, "column 'AllocTRES'"),
        ({"AllocTRES": "gres/gpu=1.5"}, "column 'AllocTRES'"),
        ({"ReqMem": "lots"}, "column 'ReqMem'"),
        ({"NNodes": "two"}, "column 'NNodes'"),
        ({"AllocGRES": "gpu:a:b:c"}, "column 'AllocGRES'"),
        ({"Timelimit": "1:2:3:4"}, "column 'Timelimit'"),
        ({"JobID": "x"}, "column 'JobID': found 'x'"),
        ({"JobID": "9_[0-99999999]"}, "column 'JobID'"),
        ({"JobID": "9_[5-3]"}, "column 'JobID'"),
        ({"JobID": "9.batch"}, "1 rows of job steps"),
        ({"State": "a|b|c"}, "line 2: expected 11 fields, found 13.*delimiter"),
        ({"Comment": "x", "JobName": "a|b"}, "line 2: expected 12 fields, found 13"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(tmp_path, log(cells))


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    for text, message in (
        ("7|train|COMPLETED\n", "header line with JobID and State"),
        (log(), "It has no rows"),
        (log({})[:-40], "last line: the file seems to be cut"),
        (log({}, trailing=True)[:-10], "11 fields|end of the row"),
        (log({}).replace("|AllocTRES", "|TRES"), "a column AllocTRES or ReqTRES"),
        (log({}).replace("JobName", "User"), "each column name once"),
        (log({}).replace("|State", ";State"), "one separator"),
    ):
        with pytest.raises(TraceError, match=message):
            read(tmp_path, text)
    with pytest.raises(TraceError, match="separated by ';'"):
        read(tmp_path, log({}), delimiter=";")
    with pytest.raises(SpecError, match="unknown time zone"):
        read(tmp_path, log({}), zone="Atlantis/Capital")
    with pytest.raises(SchemaError, match=r"start_time >= submit_time \(1 row, first in line 2"):
        read(tmp_path, log({"Start": "2024-12-31T23:00:00"}))


@pytest.mark.data
def test_reference_records_field_by_field(data_dir: Path) -> None:
    folder = data_dir / "formats"
    wanted = json.loads((folder / "sacct_expected.json").read_text(encoding="utf-8"))
    trace = open_trace(folder / "sacct_parsable2.txt", zone=wanted["timezone"])
    assert trace.metadata.epoch is not None
    zero = datetime.fromisoformat(trace.metadata.epoch).timestamp()
    jobs = {job["job_id"]: job for job in trace.jobs.to_pylist()}
    seen: dict[str, int] = {}
    used = 0.0
    for record in wanted["records"]:
        key = record["job_id"]
        seen[key] = seen.get(key, 0) + 1
        names = [key if seen[key] == 1 else f"{key}#{seen[key]}"]
        if "[" in key:
            names = [f"1010_{task}" for task in range(3, 10)]
        assert len(names) == record["records_represented"]
        for name in names:
            job = jobs.pop(name)
            _same(job, record, zero)
            used += job["num_gpus"] * job["duration"]
    assert jobs == {}
    assert used == 1_436_386
    assert trace.metadata.dropped == {"row of a job step": 3}
    assert trace.metadata.rows_read == 26 + 6


def _same(job: dict[str, Any], record: dict[str, Any], zero: float) -> None:
    """Check one job against one reference record."""
    times = {"submit": "submit_time", "eligible": "eligible_time"}
    times |= {"start": "start_time", "end": "end_time"}
    for theirs, ours in times.items():
        since = None if record[theirs] is None else record[theirs] - zero
        assert job[ours] == since, (job, theirs)
    same = {"name": "template", "user": "user", "account": "vc", "partition": "partition"}
    same |= {"qos": "qos", "elapsed_s": "duration", "timelimit_s": "estimate"}
    same |= {"nodes": "num_nodes", "cpus": "num_cpus", "gpus": "num_gpus"}
    for theirs, ours in same.items():
        assert job[ours] == record[theirs], (job, theirs)
    assert job["gpu_type"] == ("|".join(record["gpu_types"]) or None)
    assert job["nodelist"] == (record["node_list"].replace("None assigned", "") or None)
    word = "cancelled" if record["state"] == "cancelled_pending" else record["state"]
    assert job["state"].partition(" ")[0].lower() == word
    assert job["status"] == STATES[word.upper()]
    by = job["state"].partition(" by ")[2]
    assert (int(by) if by else None) == record["cancelled_by"]
    assert job["num_gpus"] * job["duration"] == record["gpu_seconds"]
    wait = None if job["start_time"] is None else job["start_time"] - job["submit_time"]
    assert wait == record["queue_wait_s"]
    base, _, rest = job["job_id"].partition("#")[0].replace("+", "_+").partition("_")
    assert int(base) == record["base_id"]
    assert (int(rest) if rest.startswith("+") else None) == record["het_offset"]
    if record["array_task"] is not None:
        assert int(rest) == record["array_task"]


@pytest.mark.data
def test_the_other_dialects(data_dir: Path) -> None:
    folder = data_dir / "formats"
    zone = "America/New_York"
    whole = open_trace(folder / "sacct_parsable2.txt", zone=zone).jobs.to_pylist()
    trailing = open_trace(folder / "sacct_parsable_trailing.txt", zone=zone)
    assert trailing.jobs.to_pylist() == whole[:2]
    assert trailing.metadata.dropped == {"row of a job step": 3}
    old = open_trace(folder / "sacct_old_gres.txt", format="sacct")
    jobs = {job["job_id"]: job for job in old.jobs.to_pylist()}
    assert {name: job["num_gpus"] for name, job in jobs.items()} == {"501": 8, "502": 1, "503": 0}
    assert {name: job["mem_gib"] for name, job in jobs.items()} == {
        "501": 80 * 4000 / 1024,
        "502": 180,
        "503": 1,
    }
    pending = jobs["502"]
    assert (pending["start_time"], pending["duration"]) == (None, 0)
    assert pending["gpu_type"] == "v100"
