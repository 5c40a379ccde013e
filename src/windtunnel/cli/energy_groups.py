"""``windtunnel energy groups``: recurring groups of a trace, their jobs overlapping as recorded."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.energy import TABLES, data_options, joules, out_data, tuning_options
from windtunnel.cli.options import OneOf, out_option, output_options, seed_option, trace_options

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.energy.group_study import GroupStudy
    from windtunnel.energy.group_tables import GroupTable
    from windtunnel.energy.workload import Workload

#: The word that stands for groups made here.
SYNTHETIC = "synthetic"
#: The options that only traces take.
_OF_TRACES = ("reader", "cpu_jobs", "tasks", "zone", "bad_rows", "jobs", "load")


@click.command(short_help="Recurring groups of a trace, with jobs that overlap.")
@trace_options
@data_options
@click.option(
    "--workload",
    metavar="NAME",
    help="Let every group train this, or synthetic.  [default: the paper's six, by run time]",
)
@click.option(
    "--optimizer",
    default="zeus",
    show_default=True,
    metavar="NAME",
    help="Who chooses batch sizes: zeus (zeus:window=10), grid, oracle, default, or pkg.mod:name.",
)
@tuning_options
@click.option(
    "--compat",
    type=OneOf("zeus"),
    metavar="zeus",
    help="Do as the published simulator does: explore only when nothing is running, and the rest.",
)
@click.option(
    "--min-jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Traces of jobs: leave out groups with fewer.",
)
@seed_option("Seed of synthetic groups, or of a synthetic trace.  [default: 0]")
@out_option("FILE", "Write every run (.csv, .parquet).")
@output_options
def groups(*, trace: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Simulate the recurring groups of TRACE, jobs in flight as the trace has them.

    TRACE is a file with columns group, start_time, end_time, dataset, runtime_ratio (the Zeus
    artifact's), any trace whose jobs have a template, start and run time (such as synthetic:pai;
    groups are matched to workloads by mean run time), or synthetic.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.energy.catalogue import resolve_optimizer
    from windtunnel.energy.group_study import study_groups

    check_out(out, TABLES, trace)
    resolve_optimizer(asked["optimizer"])
    show = shows_progress(as_json=as_json)
    command = _command(trace, asked, out)
    workloads = _workloads(asked)
    table = _table(trace, workloads, asked, show=show)
    with progress("Simulating", len(table.groups()), show=show) as done:
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
    if out is not None:
        from windtunnel.cli.saving import save_table

        save_table(result.table(), out)
    notes = [*table.notes, *result.notes]
    data = {
        "trace": trace,
        "gpu": asked["gpu"],
        "settings": result.settings,
        **result.summary(),
        "groups": result.by_group(),
        "notes": notes,
        "command": command,
        "out": out_data(out),
    }
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(data)
        return
    _print(result, data)


def _workloads(asked: dict[str, Any]) -> dict[str, Workload]:
    """Return what the groups may train: dataset -> workload."""
    from windtunnel.energy.open import open_published, open_workload

    if asked["workload"] is None:
        return open_published(asked["gpu"], data=asked["data"])
    workload = open_workload(asked["workload"], asked["gpu"], data=asked["data"])
    return {workload.job.dataset: workload}


def _table(
    trace: str, workloads: dict[str, Workload], asked: dict[str, Any], *, show: bool
) -> GroupTable:
    """Return the groups that the user named.

    Raises:
        WindtunnelError: they cannot be read.
    """
    from windtunnel.cli.opening import TraceWish, open_wish
    from windtunnel.energy.group_tables import (
        COLUMNS,
        groups_of_jobs,
        read_groups,
        synthetic_groups,
    )
    from windtunnel.errors import SpecError
    from windtunnel.traces.header import header_has
    from windtunnel.traces.source import read_head

    head = read_head(trace)
    is_file = header_has(head, *COLUMNS) or trace.endswith(".xz")
    if trace == SYNTHETIC or is_file:
        given = [name for name in _OF_TRACES if asked[name]]
        if given:
            option = {"reader": "format"}.get(given[0], given[0]).replace("_", "-")
            raise SpecError(f"--{option}", "only traces of jobs take it; these are groups.")
        if is_file and asked["seed"] is not None:
            raise SpecError("--seed", "groups of a file have seeds of their own, from their names.")
        if is_file:
            return read_groups(trace)
        return synthetic_groups(workloads, seed=asked["seed"] or 0)
    wish = TraceWish(trace, seed=asked["seed"], **{name: asked[name] for name in _OF_TRACES})
    opened = open_wish(wish, show=show, seed_is_for_trace=True)
    return groups_of_jobs(opened.jobs, workloads, min_jobs=asked["min_jobs"])


def _command(trace: str, asked: dict[str, Any], out: Path | None) -> str:
    """Return the command line that gives the result again."""
    from windtunnel.cli.energy import option_words
    from windtunnel.cli.opening import TraceWish

    wish = TraceWish(trace, **{name: asked[name] for name in _OF_TRACES})
    quiet = {
        "gpu": None,
        "data": None,
        "workload": None,
        "optimizer": None,
        "eta": 0.5,
        "beta": 2.0,
        "power_limits": "jit",
        "compat": None,
        "min_jobs": 2,
        "seed": None,
    }
    words = ["windtunnel", "energy", "groups", *wish.command_words(), *option_words(asked, quiet)]
    return shlex.join(words + ([] if out is None else ["--out", str(out)]))


def _print(result: GroupStudy, data: dict[str, Any]) -> None:
    from windtunnel.cli.screen import bullets, heading, line, plain_table, screen
    from windtunnel.report.format import count, duration, percent

    console = screen()
    total = data["total"]
    heading(
        console,
        f"{count(total['num_jobs'])} jobs of {count(total['num_groups'])} groups on {data['gpu']}, "
        f"{result.optimizer} against the default",
    )
    columns = [
        "dataset",
        "groups",
        "jobs",
        "runs",
        "failed",
        "energy",
        "saved",
        "GPU time",
        "saved",
    ]
    rows = [
        [
            row["dataset"],
            count(row["num_groups"]),
            count(row["num_jobs"]),
            count(row["num_runs"]),
            count(row["num_failed"]),
            joules(row["energy_j"]),
            percent(row["energy_saved"]),
            duration(row["time_s"]),
            percent(row["time_saved"]),
        ]
        for row in (*data["datasets"], {**total, "dataset": "all"})
    ]
    console.print(plain_table(columns, rows, numbers=len(columns) - 1))
    bullets(console, "Mind", data["notes"])
    bullets(console, "The same again", [data["command"]])
    if data["out"] is not None:
        console.print()
        console.print(line(f"The result is in {data['out']}"), soft_wrap=True)
