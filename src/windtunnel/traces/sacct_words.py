"""The words of sacct: states, job ids, time limits and run times, one cell at a time."""

from __future__ import annotations

import re

from windtunnel.site.slurm_words import duration

#: Cells that say nothing.
NOTHING = frozenset(
    {"", "unknown", "none", "n/a", "(null)", "none assigned", "invalid", "unlimited"}
    | {"partition_limit"}
)
#: Slurm's state -> the schema's status.
STATES: dict[str, str] = {
    "BOOT_FAIL": "node_fail",
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "COMPLETING": "running",
    "CONFIGURING": "running",
    "DEADLINE": "cancelled",
    "FAILED": "failed",
    "LAUNCH_FAILED": "failed",
    "NODE_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "PENDING": "pending",
    "POWER_UP_NODE": "running",
    "PREEMPTED": "preempted",
    "RECONFIG_FAIL": "failed",
    "REQUEUED": "preempted",
    "REQUEUE_FED": "pending",
    "REQUEUE_HOLD": "pending",
    "RESIZING": "running",
    "RESV_DEL_HOLD": "pending",
    "REVOKED": "cancelled",
    "RUNNING": "running",
    "SIGNALING": "running",
    "SPECIAL_EXIT": "pending",
    "STAGE_OUT": "running",
    "STOPPED": "running",
    "SUSPENDED": "running",
    "TIMEOUT": "timeout",
}
_SHORT = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RD": "RESV_DEL_HOLD",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
}
_JOB_ID = re.compile(r"([0-9]{1,18})(_[0-9]{1,18}|_\[[^\[\]]+\])?(\+[0-9]{1,9})?", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?", re.ASCII)
_SPAN = re.compile(r"(?:[0-9]{1,6}-)?[0-9]{1,7}(?::[0-9]{1,2}){0,2}(?:\.[0-9]+)?", re.ASCII)
#: The largest array that Slurm allows (MaxArraySize).
MAX_TASKS = 4_000_001


def state_word(text: str) -> str:
    """Return the long name of a state, without who cancelled the job.

    >>> state_word("CANCELLED by 1007"), state_word("OOM")
    ('CANCELLED', 'OUT_OF_MEMORY')
    """
    word = text.partition(" ")[0]
    return _SHORT.get(word, word)


def seconds(text: str) -> float | None:
    """Return a count of seconds (ElapsedRaw); None where it is unknown.

    Raises:
        ValueError: it is no such number.
    """
    if text.lower() in NOTHING:
        return None
    if not re.fullmatch("[0-9]{1,12}", text, re.ASCII):
        raise ValueError(text)
    return float(text)


def minutes(text: str) -> float | None:
    """Return a count of minutes (TimelimitRaw) in seconds; None where there is no limit.

    Raises:
        ValueError: it is no such number.
    """
    number = seconds(text)
    return None if number is None else number * 60


def time_limit(text: str) -> float | None:
    """Return a time limit in seconds; None where there is none or the partition's own holds.

    ``30`` is minutes, ``3-00`` days and hours, the rest as in ``D-HH:MM:SS`` from the right.

    Raises:
        ValueError: it is no such limit.

    >>> time_limit("30"), time_limit("3-00"), time_limit("1-02:03"), time_limit("02:03")
    (1800.0, 259200.0, 93780.0, 123.0)
    """
    if text.lower() in NOTHING:
        return None
    if _SPAN.fullmatch(text) is None:
        raise ValueError(text)
    return float(duration(text.partition(".")[0]) or 0)


def elapsed(text: str) -> float | None:
    """Return a run time ``[D-]HH:MM:SS`` or ``MM:SS`` in seconds; None where it is unknown.

    Raises:
        ValueError: it is no such time.
    """
    if text.lower() not in NOTHING and ":" not in text:
        raise ValueError(text)
    return time_limit(text)


def job_ids(text: str) -> tuple[list[str], bool]:
    """Return the jobs for which a JobID stands, and whether Slurm cut their list.

    Raises:
        ValueError: it is no JobID, or one of more tasks than an array can have.

    >>> job_ids("1010_[3-5,9%2]")
    (['1010_3', '1010_4', '1010_5', '1010_9'], False)
    """
    found = _JOB_ID.fullmatch(text)
    if found is None:
        raise ValueError(text)
    base, task, component = found[1], found[2] or "", found[3] or ""
    if not task.startswith("_["):
        return [text], False
    ranges, percent, limit = task[2:-1].partition("%")
    if percent and not limit.isdecimal():
        raise ValueError(text)
    cut = ranges.endswith(",...")
    tasks: dict[int, None] = {}
    for part in ranges.removesuffix(",...").split(","):
        span = _RANGE.fullmatch(part)
        if span is None:
            raise ValueError(text)
        first, last, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
        if last < first or step < 1 or (last - first) // step + len(tasks) >= MAX_TASKS:
            raise ValueError(text)
        tasks.update(dict.fromkeys(range(first, last + 1, step)))
    return [f"{base}_{number}{component}" for number in tasks], cut
