"""``windtunnel plan``: what to choose, by search over flights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import (
    COUNT,
    TIME,
    field_option,
    lazy_group,
    option,
    reading_options,
    seed_option,
)
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.recorded_site import as_recorded, as_typed, site_options
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError
from windtunnel.report.format import duration, plural

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.traces.trace import Trace


@lazy_group(
    "What to choose: checkpoints, spare nodes, nodes to drain.",
    reliability="plan",
)
def plan() -> None:
    """Choose by search over flights, with what theory says beside it."""


@click.command(short_help="How often to save, how many spare nodes, which nodes to drain?")
@click.argument("trace", required=False)
@reading_options
@option(
    "--gpus N", "Without TRACE: one job of so many GPUs, on nodes of 8 or as --cluster says.", COUNT
)
@option("--work TIME", "With --gpus: how long it works.", TIME)
@field_option("disruptions", "What fails, as for `simulate`: rsc/mttr:1d/cost:60/restart:5m.")
@option(
    "--ettr X",
    "The fewest spares with which jobs make progress in this share of the time since "
    "submission.  [default: the spares with which all nodes do most work]",
    click.FloatRange(0, 1, min_open=True, max_open=True),
)
@option(
    "--deadline TIME",
    "The fewest spares with which 95 % of the flights end so soon after the first submission.",
    TIME,
)
@option(
    "--repeats N",
    "Flights of each choice, with the same failures for every choice.",
    click.IntRange(min=2, max=10_000),
    default=20,
)
@field_option("policy", "Who runs next, of a trace.")
@field_option("queueing")
@field_option("placement")
@field_option("allow_large")
@site_options
@seed_option("Seed of the first flight's failures; each further one adds 1.  [default: 0]")
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def reliability(
    *,
    trace: str | None,
    gpus: int | None,
    work: float | None,
    ettr: float | None,
    deadline: float | None,
    repeats: int,
    **asked: Any,
) -> Result:
    """Choose checkpoint interval, spare nodes and nodes to drain for TRACE, or for one large job.

    What flies best, with intervals, beside Young's, Daly's and the availability-optimal interval
    and the machine repair queue. Nodes to drain are among those that a failure model names.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.report.reliability_report import reliability_answer, reliability_data
    from windtunnel.study.reliability import CHOICES, plan_reliability
    from windtunnel.study.resolving import cluster_of, resolved

    if (trace is None) == (gpus is None) or (gpus is None) != (work is None):
        raise SpecError("plan reliability", "expected TRACE, or --gpus N and --work TIME.")
    if ettr is not None and deadline is not None:
        raise SpecError("--ettr", "expected this or --deadline, not both.")
    if gpus is not None and asked["cluster"] is None and asked["slurm_conf"] is None:
        asked["cluster"] = f"{math.ceil(gpus / 8)}x8"
    names = ("policy", "queueing", "placement", "disruptions", "allow_large", "trust")
    typed = {name: asked.pop(name) for name in names}
    given = as_typed(trace or "", asked.pop("cluster"), asked.pop("slurm_conf"), **typed,
                     seed=asked["seed"] or 0)  # fmt: skip
    base = resolved(given)
    opened = _opened(trace, gpus, work, asked)
    base, why = as_recorded(opened, base)
    goal = ("ettr", ettr) if ettr is not None else None
    goal = ("deadline", deadline) if deadline is not None else goal
    with progress("Flying", CHOICES * repeats) as done:
        found = plan_reliability(
            opened.jobs, base, goal=goal, repeats=repeats, on_done=lambda _: done("a flight")
        )
    per_node = max(node.gpus for node in cluster_of(base).node_types)
    data = {"trace": trace_data(opened), **reliability_data(found), "repeats": repeats}
    return reliability_answer(found, opened, per_node).with_data(data, why)


def _opened(
    trace: str | None, gpus: int | None, work: float | None, asked: dict[str, Any]
) -> Trace:
    """Return the trace, or one job."""
    if trace is not None:
        return open_request(TraceRequest.of(trace, asked, asked["seed"]))
    from windtunnel import schema
    from windtunnel.traces.trace import Trace, TraceMetadata

    assert gpus is not None  # noqa: S101 - the command looked
    jobs = schema.as_jobs({"submit_time": [0.0], "duration": [work], "num_gpus": [float(gpus)]})
    name = f"a job of {plural(gpus, 'GPU')} for {duration(work)}"
    return Trace(jobs, TraceMetadata(name=name, source="--gpus", rows_read=1))
