"""Headline numbers for people: short labels, in groups, beside what was published of PAI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.report.format import (
    UNKNOWN,
    count,
    duration,
    exact_seconds,
    gpu_time,
    number,
    percent,
    times,
)
from windtunnel.report.sections import Cell, Line, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from windtunnel.characterize.headlines import Headline

#: What the column of published numbers is called, and what it is.
PUBLISHED = "PAI, published"
PUBLISHED_LEAD = "beside them what was published of the PAI trace"
#: Group of a claim that has no other, and of those that no trace answers.
OTHERS, NOT_IN_TRACES = "Further numbers", "Models and simulations"
#: Claims that `windtunnel.report.description.trace_facts` has shown already.
SHOWN_BEFORE = ("gpu_jobs", "days", "gpu_time", "wait_p50", "wait_p90")
_NAMES = {"cpu": "cores", "gpu": "GPUs", "mem": "memory"}
_MORE = ("cpu", "CPU"), ("gpu", "GPU"), ("mem", "memory")
#: Group -> key of the claim -> short label.
GROUPS: dict[str, dict[str, str]] = {
    "Scale": {
        "jobs": "jobs",
        "gpu_jobs": "GPU jobs",
        "tasks": "tasks",
        "users": "users",
        "nodes": "nodes",
        "gpus": "GPUs",
        "days": "days of submissions",
        "gpu_time": "GPU time",
    },
    "Waiting": {
        "wait_p50": "wait, median",
        "wait_p90": "wait, P90",
        "short_jobs_waiting": "short jobs waiting > half their time",
        "long_jobs_waiting": "long jobs waiting > half their time",
        "wait_p90_sharing": "wait P90, under one GPU a task",
        "wait_p90_whole": "wait P90, one GPU a task or more",
        "wait_p50_v100": "wait median, V100",
        "wait_p90_v100": "wait P90, V100",
        "wait_p50_misc": "wait median, MISC",
        "wait_p90_misc": "wait P90, MISC",
    },
    "Patterns": {
        "top_users_gpu_time": "GPU time of the top 5 % of users",
        "failed_gpu_time": "GPU time in failed jobs",
        "gang_tasks": "tasks in gangs of two or more",
        "recurring_jobs": "jobs of templates with 5+ runs",
    },
    "Requests of a task": {
        **{f"request_p95_{key}": f"{what}, P95" for key, what in _NAMES.items()},
        **{f"request_ratio_{key}": f"{what}, P95 over median" for key, what in _NAMES.items()},
        **{
            f"request_large_{key}": f"tasks > twice the median, {what}"
            for key, what in _NAMES.items()
        },
    },
    "Use": {
        "overuse_tasks_cpu": "tasks using more CPU than asked",
        "overuse_tasks_gpu": "tasks using more GPU than asked",
        **{f"overuse_jobs_{key}": f"jobs using more {what} than asked" for key, what in _MORE},
        **{f"underuse_jobs_{key}": f"jobs using less {what} than asked" for key, what in _MORE},
    },
    "Sharing of GPUs": {
        "sharing_saved": "GPUs saved, of those held without",
        "sharing_peak": "GPUs saved at the peak",
        "busy_shared": "busy GPUs with two tasks or more",
    },
    "Nodes": {
        "cpus_per_gpu_8": "cores a GPU, 8-GPU nodes",
        "cpus_per_gpu_8_asked": "cores a GPU asked for, 8-GPU nodes",
        "cpus_per_gpu_2_ratio": "provided over asked, 2-GPU nodes",
        "allocated_misc_cpu": "cores allocated, 8-GPU MISC nodes",
        "allocated_misc_gpu": "GPUs allocated, 8-GPU MISC nodes",
        "allocated_v100_cpu": "cores allocated, V100 nodes",
        "allocated_v100_gpu": "GPUs allocated, V100 nodes",
        "delayed_on_busy_cpu": "delayed tasks on nodes over 24 % CPU",
        "delayed_gpu_gap": "GPU use, nodes of delayed tasks",
    },
    NOT_IN_TRACES: {
        "prediction": "run times predicted within 25 %",
        "sjf_gain_least": "SJF against FIFO, at least",
        "sjf_gain_most": "SJF against FIFO, at most",
        "colocation_slowdown": "slow-down by co-location",
        "packing_gain": "packing against balancing",
        "packing_gain_v100": "packing against balancing, V100",
        "ctr_cpu_time": "CPU time of click-through models",
        "gnn_cpu_time_least": "CPU time of graph networks, at least",
        "gnn_cpu_time_most": "CPU time of graph networks, at most",
    },
}
_PLACES = {key: (group, label) for group, labels in GROUPS.items() for key, label in labels.items()}
_FORMATS: dict[str, Callable[[float | None], str]] = {
    **dict.fromkeys(("jobs", "tasks", "users", "nodes", "GPUs"), count),
    "share": percent,
    "s": duration,
    "GPU s": gpu_time,
    "ratio": times,
}
#: Words behind a number whose label does not name its unit.
_WORDS = {"GiB": " GiB", "percentage points": " points", "cores": " cores"}
_FRACTIONAL = ("request_p95_gpu",)
#: Claims of which was published that the number is more than so much.
_MORE_THAN = (*(f"request_ratio_{key}" for key in _NAMES), "cpus_per_gpu_2_ratio")


def headlines_table(found: Sequence[Headline], elsewhere: Collection[str] = ()) -> Table:
    """Return the headline numbers that can be had, by group, beside what was published of PAI.

    Args:
        found: the numbers.
        elsewhere: keys of those that stand elsewhere.
    """
    places = {key: place for place, key in enumerate(_PLACES)}
    had = [one for one in found if one.value is not None and one.key not in elsewhere]
    had.sort(key=lambda one: places.get(one.key, len(places)))
    lacks = any(one.left_out for one in had)
    lines = []
    for one in had:
        published = ">\u00a0" * (one.key in _MORE_THAN)
        published += headline_text(one.key, one.published, one.unit)
        cells = [
            Cell(headline_text(one.key, one.value, one.unit), _exact(one)),
            Cell(count(one.n)),
            *([Cell(count(one.left_out) if one.left_out else "")] if lacks else []),
            Cell(published, one.source),
        ]
        lines.append(Line(label_of(one), cells, title=one.claim, group=group_of(one.key)))
    return Table("", ["this trace", "n", *["left out"] * lacks, PUBLISHED], lines)


def headline_text(key: str, value: float | None, unit: str) -> str:
    """Return a headline number with its unit.

    >>> headline_text("users", 1300, "users"), headline_text("wait_p90_whole", 1150, "s")
    ('1,300', '19 m 10 s')
    >>> headline_text("request_p95_mem", 59, "GiB"), headline_text("wait_p50", 0.25, "s")
    ('59.0 GiB', '0.25 s')
    """
    if value is None:
        return UNKNOWN
    if key in _FRACTIONAL:
        return number(value)
    return _FORMATS.get(unit, number)(value) + _WORDS.get(unit, "")


def group_of(key: str) -> str:
    """Return the heading that a claim stands under."""
    return _PLACES[key][0] if key in _PLACES else OTHERS


def label_of(one: Headline) -> str:
    """Return the short label of a headline number."""
    return _PLACES[one.key][1] if one.key in _PLACES else one.claim


def not_had(found: Sequence[Headline]) -> list[tuple[str, str, str]]:
    """Return (reason, group, label) of every headline number that cannot be had."""
    return [
        (one.why_not, group_of(one.key), label_of(one))
        for one in found
        if one.value is None and one.why_not is not None
    ]


def _exact(one: Headline) -> str:
    if one.unit == "s":
        return exact_seconds(one.value)
    unit = "" if one.unit in ("share", "ratio") else f" {one.unit}"
    return f"{one.value:,.15g}{unit}"
