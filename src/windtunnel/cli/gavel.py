"""``windtunnel gavel``: allocations of Gavel's policies, and their headline experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.gavel_sweep import makespan, sweep, timeline
from windtunnel.cli.options import COUNT, option, seed_option, word_option
from windtunnel.cli.presenting import presented
from windtunnel.errors import TraceError
from windtunnel.report.format import plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.gavel import Allocation, Instance
    from windtunnel.report.sections import Table


@click.group(short_help="Gavel's policies: time shares of an instance; the headline experiments.")
def gavel() -> None:
    """Heterogeneity-aware allocation: Gavel's policies (OSDI'20), and their experiments again."""


for _command in (sweep, makespan, timeline):
    gavel.add_command(_command)


@gavel.command(short_help="Decide which share of the time each job has each GPU type.")
@click.argument("instance", metavar="INSTANCE")
@option("--policy NAME", "A policy's published name; a wrong one lists all.", required=True)
@option("--partitions N", "Solve in N parts of random jobs and equal GPUs (POP).", COUNT, default=1)
@word_option(
    "--gangs",
    "fractional",
    "whole",
    help_text="Whether a gang may have a share of a type with fewer GPUs than it needs, as "
    "published.",
)
@word_option(
    "--on-infeasible-slo",
    "raise",
    "drop",
    help_text="SLOs that cannot all be met: refuse, or leave all of them out.",
)
@seed_option("For policies that draw, and for --partitions.  [default: 0]")
@presented()
def allocate(*, instance: str, policy: str, seed: int | None, **asked: Any) -> Result:
    """Compute POLICY's time shares for INSTANCE, a JSON file with cluster, jobs and maybe pairs.

    cluster holds GPUs by type; a job its id, throughputs by type, and maybe scale_factor,
    priority_weight, num_steps_remaining, time_since_start, slo_seconds_left, entity.
    """
    from windtunnel.gavel import POLICIES, as_instance
    from windtunnel.gavel import allocate as decide

    problem = as_instance(_read(instance))
    decided = decide(policy, problem, seed=seed or 0, **asked)
    parts = [("", _shares(problem, decided))]
    if decided.pair_shares:
        parts.append(("", _together(problem, decided)))
    headline = ""
    if decided.objective is not None:
        headline = f"{decided.objective:.9g} {POLICIES[decided.policy].meaning}"
    return Result(
        f"{decided.policy}: {plural(problem.num_jobs, 'job')}",
        headline,
        parts=[Part("", tables=parts)],
        cautions=["Shares are of wall-clock time.", *decided.notes],
        data=decided.as_data(),
    )


def _read(path: str) -> dict[str, Any]:
    """Return the instance that a file holds."""
    import json

    from windtunnel.traces.source import read_bytes, source_name

    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise TraceError(source_name(path), "an instance as JSON text", hint=f"{error}.") from error
    if not isinstance(found, dict):
        raise TraceError(source_name(path), "a JSON object with 'cluster' and 'jobs'")
    return found


def _shares(problem: Instance, decided: Allocation) -> Table:
    rows = [
        [str(job), *(f"{row[name]:.4f}" for name in problem.gpu_types), f"{speed:.6g}"]
        for (job, row), speed in zip(
            decided.shares.items(), decided.throughputs.values(), strict=True
        )
    ]
    return table_of(["job", *problem.gpu_types, "steps/s"], rows)


def _together(problem: Instance, decided: Allocation) -> Table:
    rows = [
        [" + ".join(map(str, pair)), *(f"{row[name]:.4f}" for name in problem.gpu_types)]
        for pair, row in decided.pair_shares.items()
    ]
    return table_of(["together", *problem.gpu_types], rows)
