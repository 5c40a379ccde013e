"""``windtunnel energy groups``: recurring groups of a trace, their jobs overlapping as recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.energy import data_options, joules, tuning_options
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import COUNT, READING, one_of, option, seed_option, trace_options
from windtunnel.cli.presenting import TABLES, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError
from windtunnel.report.format import count, duration, percent, plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.energy.group_study import GroupStudy
    from windtunnel.energy.group_tables import GroupTable
    from windtunnel.energy.workload import Workload
    from windtunnel.report.sections import Table

#: The word that stands for groups made here.
SYNTHETIC = "synthetic"


@click.command(short_help="Recurring groups of a trace, with jobs that overlap.")
@trace_options
@data_options
@option(
    "--workload NAME",
    "Let every group train this, or synthetic.  [default: the paper's six, by run time]",
)
@option(
    "--optimizer NAME",
    "Who chooses batch sizes: zeus (zeus:window=10), grid, oracle, default, or pkg.mod:name.",
    default="zeus",
)
@tuning_options
@option(
    "--compat zeus",
    "Do as the published simulator does: explore only when nothing is running, and the rest.",
    one_of("zeus"),
)
@option("--min-jobs N", "Traces of jobs: leave out groups with fewer.", COUNT, default=2)
@seed_option("Seed of synthetic groups, or of a synthetic trace.  [default: 0]")
@presented((".html", *TABLES), "Write the page (.html) or every run (.csv, .parquet).")
def groups(*, trace: str, **asked: Any) -> Result:
    """Simulate the recurring groups of TRACE, jobs in flight as the trace has them.

    TRACE is a file with columns group, start_time, end_time, dataset, runtime_ratio (the Zeus
    artifact's), any trace whose jobs have a template, start and run time (such as synthetic:pai;
    groups are matched to workloads by mean run time), or synthetic.
    """
    from windtunnel.energy.catalogue import resolve_optimizer
    from windtunnel.energy.group_study import study_groups

    resolve_optimizer(asked["optimizer"])
    workloads = _workloads(asked)
    table = _table(trace, workloads, asked)
    with progress("Simulating", len(table.groups())) as done:
        result = study_groups(
            table,
            workloads,
            optimizer=asked["optimizer"],
            power_limits=asked["power_limits"],
            eta=asked["eta"],
            beta=asked["beta"],
            compat=asked["compat"],
            on_done=done,
        )
    return Result(
        _title(result, asked["gpu"]),
        _verdict(result),
        parts=[Part("", tables=[("", _datasets(result))])],
        cautions=list(table.notes),
        notes=list(result.notes),
        data={
            "trace": trace,
            "gpu": asked["gpu"],
            "settings": result.settings,
            **result.summary(),
            "groups": result.by_group(),
        },
        table=result.table,
    )


def _workloads(asked: dict[str, Any]) -> dict[str, Workload]:
    """Return what the groups may train: dataset -> workload."""
    from windtunnel.energy.open import open_published, open_workload

    if asked["workload"] is None:
        return open_published(asked["gpu"], data=asked["data"])
    workload = open_workload(asked["workload"], asked["gpu"], data=asked["data"])
    return {workload.job.dataset: workload}


def _table(trace: str, workloads: dict[str, Workload], asked: dict[str, Any]) -> GroupTable:
    """Return the groups that the user named."""
    from windtunnel.energy.group_tables import (
        COLUMNS,
        groups_of_jobs,
        read_groups,
        synthetic_groups,
    )
    from windtunnel.traces.header import header_has
    from windtunnel.traces.source import read_head

    is_file = header_has(read_head(trace), *COLUMNS)
    if trace == SYNTHETIC or is_file:
        given = [name for name in READING if asked[name]]
        if given:
            option = {"reader": "format"}.get(given[0], given[0]).replace("_", "-")
            raise SpecError(f"--{option}", "only traces of jobs take it; these are groups.")
        if is_file and asked["seed"] is not None:
            raise SpecError("--seed", "groups of a file have seeds of their own, from their names.")
        if is_file:
            return read_groups(trace)
        return synthetic_groups(workloads, seed=asked["seed"] or 0)
    request = TraceRequest.of(trace, dict(asked), asked["seed"])
    opened = open_request(request)
    return groups_of_jobs(opened.jobs, workloads, min_jobs=asked["min_jobs"])


def _title(result: GroupStudy, gpu: str) -> str:
    total = result.summary()["total"]
    jobs, groups = plural(total["num_jobs"], "job"), plural(total["num_groups"], "group")
    return f"{jobs} of {groups} on {gpu}, {result.optimizer} against the default"


def _verdict(result: GroupStudy) -> str:
    total = result.summary()["total"]
    energy, time = percent(total["energy_saved"]), percent(-total["time_saved"])
    return f"{result.optimizer} saves {energy} of the default's energy; time changes by {time}."


def _datasets(result: GroupStudy) -> Table:
    found = result.summary()
    rows = [
        (
            row["dataset"],
            *(count(row[f"num_{what}"]) for what in ("groups", "jobs", "runs", "failed")),
            *(joules(row["energy_j"]), percent(row["energy_saved"])),
            *(duration(row["time_s"]), percent(row["time_saved"])),
        )
        for row in (*found["datasets"], {**found["total"], "dataset": "all"})
    ]
    counts = ("groups", "jobs", "runs", "failed")
    return table_of(("dataset", *counts, "energy", "saved", "GPU time", "saved"), rows)
