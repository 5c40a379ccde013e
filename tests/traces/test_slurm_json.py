# ruff: noqa: E501 - rows as sacct prints them
"""Slurm's JSON of jobs, in the shapes of its versions, beside the text of the same jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

HEAD = (
    "JobID|JobIDRaw|JobName|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|"
    "Timelimit|Priority|NNodes|NCPUS|ReqTRES|AllocTRES|NodeList|Reason"
)
ASKED = "billing=64,cpu=64,gres/gpu:a100=8,gres/gpu=8,mem=512G,node=2"
NONE = "None assigned"
#: Rows of the text; `CLOCK` is when the controller was asked.
ROWS = f"""
17|17|train|ann|nlp|gpu|normal|COMPLETED|1700000000|1700000000|1700000100|1700003700|3600|60|4000|2|64|{ASKED}|{ASKED}|n[1-2]|None
18_3|21|sweep, 1|bob|cv|gpu|high|TIMEOUT|1700000010|1700000600|1700000700|1700004300|3600|01:00:00|3999|2|64|{ASKED}|{ASKED}|n[3-4]|QOSMaxGRESPerUser
18_[4-6%2]|18|sweep, 1|bob|cv|gpu|high|PENDING|1700000010|Unknown|Unknown|Unknown|0|1-00:00:00|3998|2|64|{ASKED}||{NONE}|JobArrayTaskLimit
30+1|31|het|ann|nlp|gpu|normal|RUNNING|1700000020|1700000020|1700004000|Unknown|1000|UNLIMITED|3997|2|64|{ASKED}|{ASKED}|n[1-2]|None
40|40|gone|ann|nlp|gpu|normal|CANCELLED by 1007|1700000030|1700000030|1700000040|1700000040|0|30|3996|2|64|{ASKED}||{NONE}|Priority
"""  # fmt: skip
CLOCK = 1_700_005_000


def rows_of_the_log() -> list[dict[str, str]]:
    names = HEAD.split("|")
    return [dict(zip(names, row.split("|"), strict=True)) for row in ROWS.strip().splitlines()]


def number(text: str, *, wrapped: bool) -> Any:
    known = text.isdigit()
    if not wrapped:
        return int(text) if known else 0
    return {"set": known, "infinite": text == "UNLIMITED", "number": int(text) if known else 0}


def resources(text: str) -> list[dict[str, Any]]:
    found = []
    for item in filter(None, text.split(",")):
        name, _, count = item.rpartition("=")
        kind, _, rest = name.partition("/")
        amount = int(count[:-1]) * 1024 if count.endswith("G") else int(count)
        found.append({"type": kind, "name": rest, "id": 1, "count": amount})
    return [*found, {"type": "energy", "name": "", "id": 3, "count": 2**64 - 2}]


def limit(text: str, *, wrapped: bool) -> Any:
    minutes = {"60": "60", "01:00:00": "60", "1-00:00:00": "1440", "30": "30"}.get(text, text)
    if text == "UNLIMITED" and not wrapped:
        return 0xFFFFFFFF
    return number(minutes, wrapped=wrapped)


def ids(text: str) -> tuple[int, str, str, int, str]:
    """Return array, task, waiting tasks, heterogeneous job and component of a JobID."""
    array, _, task = text.partition("_")
    first, _, part = text.partition("+")
    waits = task[1:-1] if task.startswith("[") else ""
    return (
        int(array) if task else 0,
        "" if waits else task,
        waits,
        int(first) if part else 0,
        part,
    )


def accounted(row: dict[str, str], *, wrapped: bool, listed: bool) -> dict[str, Any]:
    array, task, waits, het, part = ids(row["JobID"])
    state = row["State"].split()[0]

    def time(name: str) -> int:
        return int(row[name]) if row[name].isdigit() else 0

    return {
        "account": row["Account"],
        "allocation_nodes": int(row["NNodes"]),
        "array": {
            "job_id": array,
            "limits": {"max": {"running": {"tasks": 2}}},
            "task": waits or None,
            "task_id": number(task, wrapped=True) if wrapped else (int(task) if task else None),
        },
        "association": {"account": row["Account"], "user": row["User"]},
        "het": {"job_id": het, "job_offset": number(part, wrapped=wrapped)},
        "job_id": int(row["JobIDRaw"]),
        "name": row["JobName"],
        "nodes": row["NodeList"],
        "partition": row["Partition"],
        "priority": number(row["Priority"], wrapped=wrapped),
        "qos": row["QOS"],
        "required": {"CPUs": int(row["NCPUS"])},
        "state": {"current": [state] if listed else state, "reason": row["Reason"]},
        "steps": [{"step": {"id": f"{row['JobIDRaw']}.0"}}],
        "time": {
            "elapsed": int(row["ElapsedRaw"]),
            "eligible": time("Eligible"),
            "end": time("End"),
            "start": time("Start"),
            "submission": time("Submit"),
            "limit": limit(row["Timelimit"], wrapped=wrapped),
        },
        "tres": {
            "allocated": resources(row["AllocTRES"]),
            "requested": resources(row["ReqTRES"]),
        },
        "user": row["User"],
    }


def controlled(row: dict[str, str], *, wrapped: bool, listed: bool) -> dict[str, Any]:
    """As the controller tells it: it also expects starts and ends."""
    array, task, waits, het, part = ids(row["JobID"])
    state = row["State"].split()[0]
    start, end = row["Start"], row["End"]
    if state == "PENDING":
        start, end = str(CLOCK + 500), str(CLOCK + 5000)
    if state == "RUNNING":
        end = str(CLOCK + 7000)

    def time(text: str) -> Any:
        return number(text if text.isdigit() else "0", wrapped=wrapped)

    return {
        "account": row["Account"],
        "accrue_time": time("0"),
        "array_job_id": number(str(array), wrapped=wrapped),
        "array_task_id": number(task, wrapped=True) if wrapped else (int(task) if task else None),
        "array_task_string": waits,
        "cpus": number(row["NCPUS"], wrapped=wrapped),
        "eligible_time": time(row["Eligible"]),
        "end_time": time(end),
        "het_job_id": number(str(het), wrapped=wrapped),
        "het_job_offset": number(part, wrapped=wrapped),
        "job_id": int(row["JobIDRaw"]),
        "job_state": [state] if listed else state,
        "name": row["JobName"],
        "node_count": number(row["NNodes"], wrapped=wrapped),
        "nodes": row["NodeList"].replace(NONE, ""),
        "partition": row["Partition"],
        "priority": number(row["Priority"], wrapped=wrapped),
        "qos": row["QOS"],
        "start_time": time(start),
        "state_reason": row["Reason"],
        "submit_time": time(row["Submit"]),
        "time_limit": limit(row["Timelimit"], wrapped=wrapped),
        "tres_alloc_str": row["AllocTRES"],
        "tres_req_str": row["ReqTRES"],
        "user_name": row["User"],
    }


SHAPES = {
    "sacct 21.08": (accounted, False, False),
    "sacct 23.02": (accounted, True, False),
    "sacct 23.11 to 25.x": (accounted, True, True),
    "scontrol 21.08": (controlled, False, False),
    "scontrol 23.02": (controlled, True, False),
    "scontrol 23.11 to 25.x": (controlled, True, True),
}


def written(folder: Path, shape: str) -> Path:
    make, wrapped, listed = SHAPES[shape]
    jobs = [make(row, wrapped=wrapped, listed=listed) for row in rows_of_the_log()]
    meta = {"plugin": {"data_parser": "x"}, "Slurm" if not wrapped else "slurm": {"release": "x"}}
    whole: dict[str, Any] = {"jobs": jobs, "meta": meta, "errors": []}
    if not listed:  # older versions put it first
        whole = {"meta": meta, "errors": [], "jobs": jobs}
    if make is controlled:
        whole["last_update"] = number(str(CLOCK), wrapped=wrapped)
    file = folder / "log.json"
    file.write_text(json.dumps(whole, indent=1), "utf-8")
    return file


@pytest.mark.parametrize("shape", SHAPES)
def test_text_and_json_of_the_same_jobs_are_equal(tmp_path: Path, shape: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text(HEAD + ROWS, "utf-8")
    text = wt.open_trace(str(log))
    found = wt.open_trace(str(written(tmp_path, shape)))
    # JSON does not say by whose number a job was cancelled.
    same = [row | {"state": row["state"].split()[0]} for row in text.jobs.to_pylist()]
    assert found.jobs.to_pylist() == same
    assert found.jobs.schema == text.jobs.schema
    assert found.metadata.epoch == text.metadata.epoch
    assert found.jobs.num_rows == len(rows_of_the_log()) + 2  # three tasks wait in one row


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"jobs": [], "meta": {"slurm": 1}}', "at least one job"),
        ('{"jobs": [{"job_id": 1, "steps": 5}], "meta": {"slurm": 1}}', "a list of steps"),
        ('{"meta": {"slurm": 1}}', 'an object with a list "jobs"'),
        ('{"jobs": [3], "meta": {"slurm": 1}}', "an object for each job"),
        ('{"jobs": [{"job_state": "RUNNING"}], "meta": {"slurm": 1}}', "a job's number"),
        ('{"jobs": [{"job_id": "x"}], "meta": {"slurm": 1}}', "$.jobs[0].job_id"),
        ('{"jobs": [{"job_id": 1, "name": 7}], "meta": {"slurm": 1}}', "$.jobs[0].name"),
        ('{"jobs": [{"job_id": 1, "tres": {"allocated": 3}}]}', "a list of resources"),
        ('{"jobs": [{"job_id": 1, "priority": {"set": true, "number": -4}}]}', "a whole number"),
        ('{"jobs": [{"job_id": 1', "valid JSON"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "log.json"
    file.write_text(text, "utf-8")
    with pytest.raises(TraceError) as error:
        wt.open_trace(str(file), format="sacct")
    assert message in str(error.value)
