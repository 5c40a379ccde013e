"""``windtunnel report waste``: GPU hours that made nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceWish, open_wish
from windtunnel.cli.options import TIME, option, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.result import Result
    from windtunnel.traces.trace import Trace


@click.command(short_help="Which GPU hours made nothing, and whose were they?")
@trace_options
@option(
    "--telemetry PATH",
    "DCGM or Prometheus exports, a file or a folder: which GPUs were allocated but idle.",
)
@option(
    "--metric NAME",
    "The metric that tells a busy GPU.  [default: GPU utilisation, where it is measured]",
)
@option(
    "--idle-at X", "A sample of at most this value is idle.", click.FloatRange(min=0), default=0.0
)
@option("--early", "A job that failed within this time failed early.", TIME, default="10m")
@option(
    "--tail",
    "So long idle at its end, after it was busy: used once, then idle.",
    TIME,
    default="1h",
)
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def waste(
    *,
    trace: str,
    telemetry: str | None,
    metric: str | None,
    idle_at: float,
    early: float,
    tail: float,
    **asked: Any,
) -> Result:
    """Tell which GPU hours of TRACE made nothing: failed, cancelled, idle, asked for and not used.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.characterize.waste import waste as waste_of
    from windtunnel.report.waste_report import waste_answer, waste_data

    if telemetry is None and metric is not None:
        raise SpecError("--metric", "needs telemetry; add --telemetry PATH.")
    wish = TraceWish(trace, **asked)
    opened = open_wish(wish)
    idle = None
    if telemetry is not None:
        with progress(f"Reading {telemetry}"):
            idle, metric = idle_by(opened, telemetry, metric, idle_at)
    found = waste_of(opened.jobs, early=early, tail=tail, idle=idle, tasks=opened.tasks)
    return waste_answer(found, opened).with_data(
        {"trace": trace_data(opened), **waste_data(found), "metric": metric}
    )


def idle_by(trace: Trace, path: str, metric: str | None, idle_at: float) -> tuple[pa.Table, str]:
    """Return which jobs were idle by telemetry, and by which metric.

    Raises:
        SpecError: the metric is not measured, or none that tells a busy GPU is.
        WindtunnelError: the telemetry cannot be read.
    """
    from windtunnel.characterize.idle import idle_jobs
    from windtunnel.report.measured_use import GPU_USE, stored_samples

    with stored_samples(trace, path) as (samples, names):
        chosen = metric or next((name for name in GPU_USE if name in names), None)
        if chosen is None:
            raise SpecError(
                "--metric",
                f"none of {', '.join(GPU_USE)} is measured; name one of {', '.join(names)}.",
            )
        if chosen not in names:
            raise SpecError.unknown("--metric", chosen, names)
        return idle_jobs(samples, trace.holdings, chosen, idle_at=idle_at), chosen
