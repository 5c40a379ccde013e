"""Every figure by its name: what it asks, what it needs, how it is made and drawn."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, nearest, quote
from windtunnel.plain import fields_of
from windtunnel.report.figures.sources import WIDTHS, Look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.figures.collecting import FigureData
    from windtunnel.report.figures.panels import Plan
    from windtunnel.report.figures.sources import Sources


_HOME = "windtunnel.report.figures"
#: Sets of figures.
SETS: tuple[str, ...] = ("acme", "pai", "all")


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: of its files.
        set: ``acme`` or ``pai``: whose analysis it is of.
        title: what it shows.
        question: what it answers; its caption.
        needs: what a trace must tell.
        home: module and name of its `Plan`.
        also: another name that it is asked for by.
    """

    name: str
    set: str
    title: str
    question: str
    needs: str
    home: str
    also: str = ""

    @property
    def plan(self) -> Plan:
        """How it is made."""
        module, name = self.home.split(":")
        plan: Plan = getattr(importlib.import_module(f"{_HOME}.{module}"), name)
        return plan


_USE = "curves of utilisation (--utilization or --telemetry)"
_PLACED = "tasks with node, GPU, request and times"
_ALL: tuple[Figure, ...] = (
    Figure(
        "cdf_job_duration_util", "acme", "Run times and GPU utilisation",
        "How long do GPU jobs run, and how busy are the GPUs? CDFs; the dot is the median.",
        f"run times; for panel (b) {_USE}",
        "durations:RUN_TIMES_AND_USE",
    ),
    Figure(
        "cdf_job_gpunum", "acme", "GPUs of a job",
        "How large are jobs, and which sizes hold the GPU time? CDFs over 1 to 1,024 GPUs.",
        "GPUs; for panel (b) run times",
        "sizes:GPUS_OF_JOBS",
    ),
    Figure(
        "bar_job_state", "acme", "Final states",
        "How do GPU jobs end, by number and by GPU time? Failed: failed, timed out, node failed.",
        "statuses", "states:FINAL_STATES",
    ),
    Figure(
        "treemap_job_dist", "acme", "Jobs and GPU time by workload",
        "What is the cluster used for? Areas are shares of GPU jobs and of their GPU time.",
        "workloads", "treemap:TREEMAPS",
    ),
    Figure(
        "cdf_job_duration_queue", "acme", "Run time and wait by workload",
        "How long does each kind of GPU job run and wait? CDFs; lines at an hour and a day.",
        "workloads and times", "durations:RUN_TIMES_AND_WAITS",
    ),
    Figure(
        "box_gpu_num", "acme", "GPUs by workload",
        "How many GPUs does each kind of job ask for? Box: quartiles; whiskers: last job within "
        "1.5 interquartile ranges.",
        "workloads and GPUs", "boxes:GPUS_BY_WORKLOAD",
    ),
    Figure(
        "cdf_resource_util", "acme", "Resource utilisation",
        "How busy are GPUs, memory, CPUs and network? CDFs over all devices and instants.",
        _USE, "use:RESOURCE_USE",
    ),
    Figure(
        "cdf_temperature", "acme", "Temperature",
        "How warm are GPUs and their memory? CDFs over all GPUs and instants.",
        _USE, "use:TEMPERATURE",
    ),
    Figure(
        "cdf_power", "acme", "Power",
        "How much power do GPUs and servers draw? CDFs over all devices and instants.",
        _USE, "use:POWER",
    ),
    Figure(
        "cdf_job_jobtime", "acme", "Run times of GPU and CPU jobs",
        "How long do GPU jobs and CPU jobs run? CDFs.",
        "run times; for panel (b) CPU jobs",
        "durations:RUN_TIMES",
    ),
    Figure(
        "jobs_over_week", "pai", "Arrivals over the week",
        "When are jobs submitted, and tasks started, in the week? Mean rate of each hour.",
        "submission times; for panel (b) tasks",
        "weeks:ARRIVALS", "pai_tasks_over_week",
    ),
    Figure(
        "jobs_by_hour", "pai", "Arrivals over the day",
        "How do the submissions of an hour of the day differ from day to day? Box: quartiles; "
        "whiskers: last day within 1.5 interquartile ranges.",
        "submission times", "boxes:JOBS_BY_HOUR", "pai_tasks_by_hour",
    ),
    Figure(
        "jobs_per_user", "pai", "Jobs a user",
        "How many jobs does a user submit? CDF over users.",
        "users", "people:USERS", "pai_tasks_per_user",
    ),
    Figure(
        "gang_size", "pai", "Gangs",
        "What share of tasks is in gangs of at least so many tasks?",
        "gang sizes", "sizes:GANGS", "pai_gang_size",
    ),
    Figure(
        "requests_over_week", "pai", "Requests over the week",
        "When in the week are GPUs, cores and memory asked for? Mean of each hour.",
        "submission times and requests",
        "weeks:REQUESTS", "pai_requests_over_week",
    ),
    Figure(
        "runtime", "pai", "Run times",
        "How long do jobs of all kinds run? The value at each percent of the jobs.",
        "run times", "classes:RUN_TIMES", "pai_runtime",
    ),
    Figure(
        "wait_by_half", "pai", "Waits of short and long jobs",
        "How much of its completion time does a job wait? Short: run time up to the median.",
        "waits and ends", "classes:WAITS_BY_HALF", "pai_wait_by_half",
    ),
    Figure(
        "wait_by_request", "pai", "Waits by GPUs asked",
        "Do jobs that share a GPU wait less? CDFs of waits by the GPUs that a task asks for.",
        "waits", "classes:WAITS_BY_REQUEST", "pai_wait_by_request",
    ),
    Figure(
        "wait_by_gpu_type", "pai", "Waits by GPU type",
        "Which GPUs are waited for? CDFs of waits by the type assigned, else asked for.",
        "waits and GPU types",
        "classes:WAITS_BY_GPU_TYPE", "pai_wait_by_gpu_type",
    ),
    Figure(
        "job_share", "pai", "Classes of jobs",
        "How many GPU jobs ask for a part of a GPU, and for which type?",
        "GPUs; for panel (b) GPU types",
        "classes:SHARES", "pai_task_share",
    ),
    Figure(
        "runtime_by_gpu_type", "pai", "Run times by GPU type",
        "How long do completed GPU jobs run on each type of GPU? CDFs.",
        "run times, statuses and GPU types",
        "classes:RUN_TIMES_BY_GPU_TYPE", "pai_runtime_by_gpu_type",
    ),
    Figure(
        "request_usage", "pai", "Requests and use",
        "How much do tasks ask for, and how much do they use? CDFs over tasks.",
        "tasks with requests and use",
        "requests:ASKED_AND_USED", "pai_request_usage",
    ),
    Figure(
        "overuse", "pai", "More used than asked",
        "How many tasks and jobs use more than they asked for?",
        "tasks with requests and use", "requests:OVERUSE", "pai_overuse",
    ),
    Figure(
        "network_cpu", "pai", "Network and load of the nodes",
        "How much do tasks read, and how busy are their nodes? CDFs over tasks, means over each "
        "one's life.",
        "tasks with measurements of the node",
        "requests:NODE_LOAD", "pai_network_cpu",
    ),
    Figure(
        "recurrence", "pai", "Recurrence",
        "How much of the work comes back? Share of jobs whose template has at least so many runs.",
        "templates", "people:TEMPLATES", "pai_recurrence",
    ),
    Figure(
        "sharing_savings", "pai", "Saved by sharing GPUs",
        "How many GPUs do the running tasks hold, and how many would they without sharing?",
        _PLACED, "gpus:SAVINGS", "pai_sharing_savings",
    ),
    Figure(
        "colocation", "pai", "Workers on a GPU",
        "How many workers does a GPU have, over all its time and while it is busy?",
        "tasks with node, GPU, GPU use and times",
        "gpus:WORKERS", "pai_colocation",
    ),
    Figure(
        "allocation_by_node", "pai", "GPUs allocated",
        "How full is each kind of node, and each node, over time?",
        "tasks with node and times, and the nodes",
        "allocation:ALLOCATION", "pai_allocation_by_node",
    ),
)  # fmt: skip
#: The figures by name, in order.
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _ALL}


def chosen_figures(set_: str | None, only: Sequence[str]) -> list[Figure]:
    """Return the figures that are asked for, in the catalogue's order.

    Args:
        set_: one of `SETS`; None = all.
        only: names; empty = all of the set.

    Raises:
        SpecError: an unknown name or set, one named twice, or one that is not in the set.
    """
    if set_ is not None and set_ not in SETS:
        raise SpecError.unknown("--set", set_, SETS)
    wanted = {name for name, f in FIGURES.items() if set_ in (None, "all", f.set)}
    if only:
        asked = [_name(word) for word in only]
        for name in asked:
            if asked.count(name) > 1:
                raise SpecError("--only", f"found {quote(name)} twice; name each once.")
            if name not in wanted:
                raise SpecError("--only", f"{quote(name)} is not in the set {quote(set_)}.")
        wanted = set(asked)
    return [figure for name, figure in FIGURES.items() if name in wanted]


def _name(word: str) -> str:
    """Return the name of the figure that a word asks for."""
    also = {figure.also: figure.name for figure in _ALL if figure.also}
    name = also.get(word, word)
    if name not in FIGURES:
        raise SpecError(
            "--only",
            f"unknown figure {quote(word)}.{nearest(word, [*FIGURES, *also])} "
            f"Known: {', '.join(FIGURES)}.",
        )
    return name


@dataclass(frozen=True)
class Collected:
    """A figure with its data.

    Attributes:
        figure: which.
        data: its table, or why there is none.
    """

    figure: Figure
    data: FigureData


def collect(
    sources: Sources, figures: Sequence[Figure], on_done: Callable[[str], None] = lambda _: None
) -> list[Collected]:
    """Return the figures with their data, in order.

    Args:
        sources: the traces and curves.
        figures: which.
        on_done: called with a figure's name when its data is there.

    Raises:
        WindtunnelError: a table breaks a rule that a reader should have checked.
    """
    found = []
    for figure in figures:
        found.append(Collected(figure, figure.plan.collect(sources)))
        on_done(figure.name)
    return found


def look_of(sources: Sources, paper: str = "column") -> Look:
    """Return how the figures of some sources look.

    Args:
        sources: the traces, whose order gives the colours.
        paper: one of `WIDTHS`.
    """
    return Look(WIDTHS[paper], sources.traces, sources.workloads)


def report(found: Sequence[Collected]) -> list[dict[str, Any]]:
    """Return what was drawn for whom, as plain data.

    Returns:
        One dict a figure: ``name``, ``title``, ``set``, ``drawn`` (bool), ``reason`` (why not;
        empty where drawn), ``parts`` (list of ``trace``, ``panel`` (None = not drawn), ``title``,
        ``n`` (None = not reported), ``left_out``, ``why``), ``notes``.
    """
    return [
        {
            **fields_of(one.figure, "name", "title", "set"),
            "drawn": one.data.table is not None,
            "reason": "" if one.data.table is not None else one.data.reason,
            "parts": [
                {
                    "trace": part.trace,
                    "panel": part.panel or None,
                    **fields_of(part, "title", "n", "left_out", "why"),
                }
                for part in one.data.parts
            ],
            "notes": list(one.data.notes),
        }
        for one in found
    ]
