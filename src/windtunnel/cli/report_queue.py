"""``windtunnel report queue``: why jobs waited, and who was in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import cluster_data, trace_data
from windtunnel.cli.opening import TraceWish, open_wish
from windtunnel.cli.options import option, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.recorded_site import (
    as_typed,
    recorded_cluster,
    site_options,
    with_reasons,
)
from windtunnel.cli.screen import progress

if TYPE_CHECKING:
    from windtunnel.report.result import Result


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
    typed = resolved(as_typed(trace, cluster, slurm_conf))
    wish = TraceWish(trace, **asked)
    opened = open_wish(wish)
    spec, why = recorded_cluster(opened, typed.site.cluster)
    with progress("Looking at every wait"):
        opened, told = with_reasons(opened, typed) if limits is None else (opened, ())
        found = wait_causes(opened.jobs, spec, quotas=limits)
    one = None if job is None else in_front(found, job)
    return queue_answer(found, opened, one).with_data(
        {
            "trace": trace_data(opened),
            "cluster": cluster_data(spec),
            **queue_data(found, opened, one),
        },
        (*why, *told),
    )
