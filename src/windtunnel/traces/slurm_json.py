"""Slurm's jobs as JSON, as the cells of sacct's text: one reader for both.

``sacct --json`` and slurmrestd's ``/slurmdb`` tell of jobs in one way, ``scontrol show job --json``
and ``/slurm`` in another. From 21.08 to 25.x names stayed and shapes changed: a number is a number,
or ``{"set": true, "infinite": false, "number": 60}``; a state a word, or a list of words.
"""

from __future__ import annotations

from typing import Any

import msgspec

from windtunnel.errors import TraceError
from windtunnel.traces.header import begun
from windtunnel.traces.json_text import broken_json, json_bytes
from windtunnel.traces.sacct_table import SacctTable

Job = dict[str, Any]
#: Numbers from here on are Slurm's words for "none" and "without end" (32 and 64 bits).
_NO_VALUES = (0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF)
#: Words of the first bytes of such files, and of no others.
_MARKS = (b'"allocation_nodes"', b'"accrue_time"', b'"array_job_id"', b'"Slurm"', b'"slurm"')
#: Our column -> where it stands in a job of the accounting, and in one of the controller.
_TEXTS = {
    "jobname": ("name", "name"),
    "user": ("user", "user_name"),
    "account": ("account", "account"),
    "partition": ("partition", "partition"),
    "qos": ("qos", "qos"),
    "state": ("state.current", "job_state"),
    "reason": ("state.reason", "state_reason"),
    "nodelist": ("nodes", "nodes"),
}
_NUMBERS = {
    "jobidraw": ("job_id", "job_id"),
    "priority": ("priority", "priority"),
    "elapsedraw": ("time.elapsed", ""),
    "timelimitraw": ("time.limit", "time_limit"),
    "nnodes": ("allocation_nodes", "node_count"),
    "ncpus": ("required.CPUs", "cpus"),
}
_TIMES = {
    "submit": ("time.submission", "submit_time"),
    "eligible": ("time.eligible", "eligible_time"),
    "start": ("time.start", "start_time"),
    "end": ("time.end", "end_time"),
}
#: Array and its task, what stands for tasks that wait, heterogeneous job and component.
_IDS = (
    ("array.job_id", "array.task_id", "array.task", "het.job_id", "het.job_offset"),
    ("array_job_id", "array_task_id", "array_task_string", "het_job_id", "het_job_offset"),
)
_TRES = {
    "alloctres": ("tres.allocated", "tres_alloc_str"),
    "reqtres": ("tres.requested", "tres_req_str"),
}
#: Resources that say how large a job is.
_COUNTED = ("cpu", "mem", "node", "gres", "license")
_WAITS, _RUNS = ("PENDING",), ("PENDING", "RUNNING", "SUSPENDED")


class _File(msgspec.Struct):
    jobs: list[msgspec.Raw]
    last_update: Any = None


def looks_like_slurm_json(head: bytes) -> bool:
    """Return whether a file begins as Slurm's JSON of jobs does."""
    text = begun(head)
    has_key = b'"jobs"' in text or b'"meta"' in text
    return text.startswith(b"{") and has_key and any(mark in text for mark in _MARKS)


def read_json(data: bytes, file: str) -> SacctTable:
    """Return the jobs of a file as sacct would print them.

    Args:
        data: the whole text.
        file: what to call it in messages.

    Raises:
        TraceError: it is not JSON, has no jobs, or one has something else where a number or a word
            is expected.
    """
    data = json_bytes(data, file)
    try:
        found = msgspec.json.decode(data, type=_File)
    except msgspec.ValidationError as error:
        raise TraceError(file, 'an object with a list "jobs"', hint=f"{error}.") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise broken_json(data, file, error) from error
    if not found.jobs:
        raise TraceError(file, "at least one job", hint="Its list of jobs is empty.")
    columns: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    steps = 0
    for place, raw in enumerate(found.jobs):
        job = msgspec.json.decode(raw)
        if not isinstance(job, dict):
            raise TraceError(file, "an object for each job", row=place + 1, column="jobs")
        one = _Job(file, place + 1, job)
        for column, cell in one.cells(found.last_update).items():
            columns.setdefault(column, []).append(cell)
        names |= one.names
        steps += one.num_steps
    lines = list(range(1, len(found.jobs) + 1))
    return SacctTable(file, columns, names, lines, len(lines) + steps, steps, 0, 0)


class _Job:
    """A job of the file, asked for cell by cell.

    Args:
        file: what to call it in messages.
        line: its 1-based number.
        job: as it stands there.

    Attributes:
        names: column -> where it stands.
    """

    def __init__(self, file: str, line: int, job: Job) -> None:
        self.file, self.line, self.job = file, line, job
        self.kind = 1 if "job_state" in job else 0
        self.names = {name: paths[self.kind] for table in (_TEXTS, _NUMBERS, _TIMES, _TRES)
                      for name, paths in table.items()}  # fmt: skip
        self.names["jobid"] = "job_id"

    def cells(self, last_update: Any) -> dict[str, str]:
        """Return the job's row; ``last_update``: the controller's clock, where it is known."""
        found = {name: self._text(paths[self.kind]) for name, paths in _TEXTS.items()}
        found |= {name: self._number(paths[self.kind]) for name, paths in _NUMBERS.items()}
        for name, paths in _TIMES.items():
            at = self._number(paths[self.kind])
            found[name] = "" if at in {"0", "UNLIMITED"} else at
        found |= {name: self._tres(paths[self.kind]) for name, paths in _TRES.items()}
        found["jobid"] = self._job_id(found["jobidraw"])
        if self.kind:
            self._as_accounted(found, self._plain(last_update, "last_update"))
        return found

    @property
    def num_steps(self) -> int:
        """How many steps the job has."""
        steps = self.job.get("steps") or []
        if not isinstance(steps, list):
            raise self._bad("steps", steps, "a list of steps")
        return len(steps)

    def _as_accounted(self, found: dict[str, str], clock: str) -> None:
        """Take out what the controller expects, and say how long a running job has run."""
        state = found["state"]
        if state in _RUNS:
            found["end"] = ""
        if state in _WAITS:
            found["start"], found["elapsedraw"] = "", "0"
        elif found["start"] and (found["end"] or clock):
            found["elapsedraw"] = str(max(0, int(found["end"] or clock) - int(found["start"])))

    def _job_id(self, raw: str) -> str:
        """Return a job's id as sacct prints it: ``17``, ``17_3``, ``17_[4-9%2]``, ``17+1``."""
        array, task, tasks, het, offset = _IDS[self.kind]
        if not raw:
            raise self._bad("job_id", self.job.get("job_id"), "a job's number")
        found = raw
        if (of := self._number(array)) not in {"", "0"}:
            number, waiting = self._number(task), self._text(tasks)
            found = f"{of}_{number}" if number or not waiting else f"{of}_[{waiting}]"
        if (of := self._number(het)) not in {"", "0"}:
            found = f"{of}+{self._number(offset) or 0}"
        return found

    def _at(self, path: str) -> Any:
        value: Any = self.job
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def _text(self, path: str) -> str:
        value = self._at(path)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            value = value[0] if value else ""  # a state, and what is going on besides
        if value is None or isinstance(value, str):
            return (value or "").strip()
        raise self._bad(path, value, "a word")

    def _number(self, path: str) -> str:
        return self._plain(self._at(path), path) if path else ""

    def _plain(self, value: Any, path: str) -> str:
        """Return a whole number, "UNLIMITED", or "" where none is set."""
        if isinstance(value, dict) and "number" in value:
            if value.get("infinite"):
                return "UNLIMITED"
            value = value["number"] if value.get("set", True) else None
        if value is None or value in _NO_VALUES:
            return ""
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._bad(path, value, "a whole number")
        return str(value)

    def _tres(self, path: str) -> str:
        """Return resources in words: ``cpu=8,gres/gpu:a100=2,mem=4096M``."""
        value = self._at(path)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        if not isinstance(value, list):
            raise self._bad(path, value, "a list of resources")
        found = []
        for one in value:
            if not isinstance(one, dict):
                raise self._bad(path, one, "a resource with type, name and count")
            count = self._plain(one.get("count"), path)
            if one.get("type") in _COUNTED and count:
                name = f"{one['type']}/{one['name']}" if one.get("name") else one["type"]
                found.append(f"{name}={count}" + "M" * (one["type"] == "mem"))
        return ",".join(found)

    def _bad(self, path: str, value: Any, what: str) -> TraceError:
        shown = msgspec.json.encode(value).decode()[:80]
        where = f"$.jobs[{self.line - 1}].{path}"
        return TraceError(self.file, what, row=self.line, column=where, value=shown)
