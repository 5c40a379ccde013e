"""``windtunnel describe``: what a trace looks like, before anything is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import output_options, trace_options
from windtunnel.cli.presenting import PAGES, present

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.measured_use import MeasuredUse
    from windtunnel.traces.trace import Trace


@click.command(short_help="Show what a trace looks like.")
@trace_options
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE.html",
    help="Write it all, with charts, as one page.",
)
@click.option(
    "--telemetry",
    multiple=True,
    metavar="PATH",
    help="Telemetry of the cluster, a file or a folder: how busy it was, and which jobs kept it "
    "so; may be repeated.",
)
@click.option(
    "--source-times",
    is_flag=True,
    help="Make the cluster summary of the source's own run, queueing and GPU times, and its number "
    "of GPUs, where it has them, as AcmeTrace's file does.",
)
@click.option("--all", "whole", is_flag=True, help="Leave nothing out of the tables.")
@output_options
def describe(
    *,
    trace: str,
    page: Path | None,
    telemetry: tuple[str, ...],
    source_times: bool,
    whole: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Show what TRACE is: origin, licence, what was left out, sizes, run times, whose jobs.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input. Numbers that the trace
    cannot give are named, with the reason. A folder of Kueue's manifests, or a .yaml file, is shown
    as its tree of quotas.
    """
    from windtunnel.cli.describe_manifests import are_manifests, manifests_result
    from windtunnel.cli.opening import TraceWish, check_out, open_wish
    from windtunnel.cli.screen import progress

    for source in (trace, *telemetry):
        check_out(page, PAGES, source, "--html")
    if are_manifests(trace):
        present(manifests_result(trace), page, as_json=as_json, key="page")
        return
    from windtunnel.cli.machine import cluster_data, trace_data
    from windtunnel.report.describe_result import describe_result
    from windtunnel.report.description import STEPS, describe_trace

    opened = open_wish(TraceWish(trace, **asked))
    measured = _measured(opened, telemetry)
    with progress("Counting", STEPS) as done:
        found = describe_trace(opened, telemetry=measured, source_times=source_times, on_done=done)
    result = describe_result(found, whole=whole)
    cluster = None if opened.cluster is None else cluster_data(opened.cluster)
    data = {"trace": trace_data(opened), "cluster": cluster, **result.data}
    present(result.with_data(data), page, as_json=as_json, key="page")


def _measured(trace: Trace, paths: Sequence[str]) -> list[MeasuredUse]:
    """Return what each source of telemetry says.

    Raises:
        WindtunnelError: one cannot be read.
    """
    from windtunnel.cli.screen import progress
    from windtunnel.report.measured_use import measured_use

    found = []
    for path in paths:
        with progress(f"Reading {path}"):
            found.append(measured_use(trace, path))
    return found
