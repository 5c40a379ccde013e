"""``windtunnel gavel``: allocations of Gavel's policies, and their headline experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.gavel_sweep import makespan, sweep, timeline
from windtunnel.cli.options import OneOf, output_options, seed_option

if TYPE_CHECKING:
    from windtunnel.gavel import Allocation, Instance


@click.group(short_help="Gavel's policies: time shares of an instance; the headline experiments.")
def gavel() -> None:
    """Heterogeneity-aware allocation: Gavel's policies (OSDI'20), and their experiments again."""


for _command in (sweep, makespan, timeline):
    gavel.add_command(_command)


@gavel.command(short_help="Decide which share of the time each job has each GPU type.")
@click.argument("instance", metavar="INSTANCE")
@click.option(
    "--policy",
    required=True,
    metavar="NAME",
    help="A policy's published name; a wrong one lists all.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Solve in N parts of random jobs and equal GPUs (POP).",
)
@click.option(
    "--gangs",
    type=OneOf("fractional", "whole"),
    default="fractional",
    show_default=True,
    metavar="fractional|whole",
    help="Whether a gang may have a share of a type with fewer GPUs than it needs, as published.",
)
@click.option(
    "--on-infeasible-slo",
    type=OneOf("raise", "drop"),
    default="raise",
    show_default=True,
    metavar="raise|drop",
    help="SLOs that cannot all be met: refuse, or leave all of them out.",
)
@seed_option("For policies that draw, and for --partitions.  [default: 0]")
@output_options
def allocate(*, instance: str, policy: str, seed: int | None, as_json: bool, **asked: Any) -> None:
    """Compute POLICY's time shares for INSTANCE, a JSON file with cluster, jobs and maybe pairs.

    cluster holds GPUs by type; a job its id, throughputs by type, and maybe scale_factor,
    priority_weight, num_steps_remaining, time_since_start, slo_seconds_left, entity.
    """
    from windtunnel.gavel import allocate as decide
    from windtunnel.gavel import as_instance

    problem = as_instance(_read(instance))
    decided = decide(policy, problem, seed=seed or 0, **asked)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(decided.as_data())
        return
    _print(problem, decided)


def _read(path: str) -> dict[str, Any]:
    """Return the instance that a file holds.

    Raises:
        TraceError: the file cannot be read or holds no JSON object.
    """
    import json

    from windtunnel.errors import TraceError
    from windtunnel.traces.source import read_bytes, source_name

    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise TraceError(source_name(path), "an instance as JSON text", hint=f"{error}.") from error
    if not isinstance(found, dict):
        raise TraceError(source_name(path), "a JSON object with 'cluster' and 'jobs'")
    return found


def _print(problem: Instance, decided: Allocation) -> None:
    from windtunnel.cli.screen import bullets, heading, plain_table, screen
    from windtunnel.gavel import POLICIES
    from windtunnel.report.format import count

    console = screen()
    heading(console, f"{decided.policy}: {count(problem.num_jobs)} jobs")
    if decided.objective is not None:
        console.print(f"{decided.objective:.9g}  {POLICIES[decided.policy].meaning}")
    rows = [
        [str(job), *(f"{row[name]:.4f}" for name in problem.gpu_types), f"{speed:.6g}"]
        for (job, row), speed in zip(
            decided.shares.items(), decided.throughputs.values(), strict=True
        )
    ]
    headings = ["job", *problem.gpu_types, "steps/s"]
    console.print(plain_table(headings, rows, numbers=len(headings) - 1))
    together = [
        [" + ".join(map(str, pair)), *(f"{row[name]:.4f}" for name in problem.gpu_types)]
        for pair, row in decided.pair_shares.items()
    ]
    if together:
        headings = ["together", *problem.gpu_types]
        console.print(plain_table(headings, together, numbers=len(headings) - 1))
    bullets(console, "Mind", ["Shares are of wall-clock time.", *decided.notes])
