"""``windtunnel report LOG|queue|goodput|waste``: what an operator asks of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.checked import checked_choice
from windtunnel.cli.machine import cluster_data, trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import TIME, option, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.recorded_site import as_typed, recorded_cluster, site_options, with_reasons
from windtunnel.cli.report_cost import prices_if_any
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.report.result import Result
    from windtunnel.traces.trace import Trace


@click.command(short_help="One page: the calendar first, then each question of these (report LOG).")
@trace_options
@site_options
@option("--price X", "Price of a GPU hour.", click.FloatRange(min=0))
@option("--prices FILE.toml", "Prices by type, as for `report cost`.")
@presented(PAGES, "Write the page.", metavar="FILE.html")
def log(
    *,
    trace: str,
    cluster: str | None,
    slurm_conf: str | None,
    trust: bool,
    price: float | None,
    prices: str | None,
    **asked: Any,
) -> Result:
    """Tell what the cluster of TRACE did: waits, use and queue over the calendar, and why.

    On the page (--out) partitions, accounts, QOS and GPU types can be picked; it holds sums and no
    jobs, and needs no server. Below stand the answers of `report queue`, `waste` and `goodput`,
    and with a price `cost`. `windtunnel report LOG` is the same.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.characterize.calendar import calendar
    from windtunnel.characterize.cost import bill
    from windtunnel.characterize.goodput import recorded_goodput
    from windtunnel.characterize.waste import waste
    from windtunnel.report.cost_report import cost_answer, cost_data
    from windtunnel.report.goodput_report import goodput_answer, goodput_data
    from windtunnel.report.log_page import calendar_data, log_answer
    from windtunnel.report.queue_report import queue_answer, queue_data
    from windtunnel.report.waste_report import waste_answer, waste_data
    from windtunnel.study.resolving import resolved
    from windtunnel.study.wait_causes import wait_causes

    wanted = prices_if_any(price, prices)
    typed = resolved(as_typed(trace, cluster, slurm_conf, trust=trust))
    opened = open_request(TraceRequest(trace, **asked))
    spec, why = recorded_cluster(opened, typed.site.cluster)
    with progress("Looking at every wait"):
        opened, notes = with_reasons(opened, typed)
        waits = wait_causes(opened.jobs, spec)
    lost, good = waste(opened.jobs, tasks=opened.tasks), recorded_goodput(opened.jobs)
    sections = {
        "Waits": queue_answer(waits, opened),
        "Waste": waste_answer(lost, opened),
        "Goodput": goodput_answer(good, opened, None),
    }
    data = {
        "queue": queue_data(waits, opened),
        "waste": waste_data(lost),
        "goodput": goodput_data(good),
    }
    if wanted is not None:
        paid = bill(opened.jobs, spec, wanted)
        sections["Cost"], data["cost"] = cost_answer(paid, opened), cost_data(paid)
    days = calendar(opened.jobs, opened.metadata.epoch, opened.metadata.zone)
    facts = {"trace": trace_data(opened), "cluster": cluster_data(spec)}
    facts |= {"calendar": calendar_data(days), **data}
    return log_answer(days, opened, spec, sections).with_data(facts, (*why, *notes))


@click.command(short_help="Why did jobs wait, and who was in front?")
@trace_options
@site_options
@option("--quotas FILE.toml", "Quotas of virtual clusters, as for `simulate`.  [default: none]")
@option("--job ID", "Tell first who was in front of this job.")
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def queue(
    *,
    trace: str,
    cluster: str | None,
    slurm_conf: str | None,
    trust: bool,
    quotas: str | None,
    job: str | None,
    **asked: Any,
) -> Result:
    """Tell why the jobs of TRACE waited, by cause, size, hour, and who held the GPUs meanwhile.

    The recorded starts and ends are taken as they are. Where the log names no reasons, and the
    site's Slurm is known, a replay under it does. The causes of a wait (dependency, quota, order,
    busy GPUs, fragmentation, other) add up to it.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.report.queue_report import queue_answer, queue_data
    from windtunnel.study.in_front import in_front
    from windtunnel.study.resolving import resolved
    from windtunnel.study.wait_causes import limits_of, wait_causes

    limits = None if quotas is None else limits_of(quotas)
    typed = resolved(as_typed(trace, cluster, slurm_conf, trust=trust))
    request = TraceRequest(trace, **asked)
    opened = open_request(request)
    spec, why = recorded_cluster(opened, typed.site.cluster)
    with progress("Looking at every wait"):
        opened, notes = with_reasons(opened, typed) if limits is None else (opened, ())
        found = wait_causes(opened.jobs, spec, quotas=limits)
    one = None if job is None else in_front(found, job)
    return queue_answer(found, opened, one).with_data(
        {
            "trace": trace_data(opened),
            "cluster": cluster_data(spec),
            **queue_data(found, opened, one),
        },
        (*why, *notes),
    )


@click.command(short_help="What did failures cost, and which nodes are lemons?")
@trace_options
@option(
    "--checkpoint",
    "Work between checkpoints, such as 1h.  [default: none; an interrupted attempt loses all]",
    TIME,
)
@option("--startup", "What a job's first attempt needs before it works.", TIME, default="0s")
@option("--restart", "What each later attempt needs.", TIME, default="0s")
@presented(PAGES, "Write the answer as one page.", metavar="FILE.html")
def goodput(
    *, trace: str, checkpoint: float | None, startup: float, restart: float, **asked: Any
) -> Result:
    """Tell how much GPU time of TRACE made progress, what interruptions cost, which nodes fail.

    Goodput, the effective training time ratio (ETTR) and the mean time to failure (MTTF) by job
    size with intervals; hours lost by cause; lemon nodes, kept apart from outages, where the log
    names nodes. Records of requeued jobs (sacct's duplicates) are attempts of one job.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.characterize.goodput import recorded_goodput
    from windtunnel.report.goodput_report import goodput_answer, goodput_data

    if checkpoint is not None and not checkpoint > 0:
        raise SpecError("--checkpoint", f"found {checkpoint:g} s; expected it above 0.")
    opened = open_request(TraceRequest(trace, **asked))
    found = recorded_goodput(opened.jobs, checkpoint=checkpoint, startup=startup, restart=restart)
    return goodput_answer(found, opened, checkpoint).with_data(
        {"trace": trace_data(opened), **goodput_data(found), "checkpoint": checkpoint}
    )


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
    request = TraceRequest(trace, **asked)
    opened = open_request(request)
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
        checked_choice("--metric", chosen, names)
        return idle_jobs(samples, trace.holdings, chosen, idle_at=idle_at), chosen
