"""``windtunnel report queue``: why jobs waited, and who was in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import trace_options
from windtunnel.cli.presenting import PAGES, presented

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.report.result import Result
    from windtunnel.traces.trace import Trace


@click.command(short_help="Why did jobs wait, and who was in front?")
@trace_options
@click.option(
    "--cluster",
    metavar="SPEC",
    help="Where they ran, as for `simulate`.  [default: the trace's own, else a pool of as many "
    "GPUs as were ever held at once]",
)
@click.option(
    "--quotas",
    metavar="FILE.toml",
    help="Quotas of virtual clusters, as for `simulate`.  [default: none]",
)
@click.option("--job", metavar="ID", help="Tell first who was in front of this job.")
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def queue(
    *,
    trace: str,
    cluster: str | None,
    quotas: str | None,
    job: str | None,
    **asked: Any,
) -> Result:
    """Tell why the jobs of TRACE waited, by cause, size, hour, and who held the GPUs meanwhile.

    The recorded starts and ends are taken as they are; nothing is simulated. The causes of a wait
    (dependency, quota, order, busy GPUs, fragmentation, other) add up to it.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.cli.machine import cluster_data, trace_data
    from windtunnel.cli.opening import TraceWish, open_wish
    from windtunnel.cli.screen import progress
    from windtunnel.cluster.parse import parse_cluster
    from windtunnel.report.queue_report import queue_answer, queue_data
    from windtunnel.study.in_front import in_front
    from windtunnel.study.wait_causes import limits_of, wait_causes

    limits = None if quotas is None else limits_of(quotas)
    chosen = None if cluster is None else parse_cluster(cluster)
    wish = TraceWish(trace, **asked)
    opened = open_wish(wish)
    spec, why = recorded_cluster(opened, chosen)
    with progress("Looking at every wait"):
        found = wait_causes(opened.jobs, spec, quotas=limits)
    one = None if job is None else in_front(found, job)
    return queue_answer(found, opened, one).with_data(
        {
            "trace": trace_data(opened),
            "cluster": cluster_data(spec),
            **queue_data(found, opened, one),
        },
        why,
    )


def recorded_cluster(
    trace: Trace, chosen: ClusterSpec | None
) -> tuple[ClusterSpec, tuple[str, ...]]:
    """Return where a trace's jobs ran, and what to tell about it.

    Args:
        trace: may know its own cluster.
        chosen: the user's; None = not given.

    Raises:
        SpecError: neither says, and no job held a GPU at a known time.
    """
    from windtunnel.errors import SpecError
    from windtunnel.study.recorded_flight import observed_cluster

    if chosen is not None:
        return chosen, ()
    if trace.cluster is not None:
        return trace.cluster, ()
    seen = observed_cluster(trace.jobs)
    if seen is None:
        raise SpecError.no_cluster(trace.name)
    told = (
        f"The trace does not say how many GPUs there are: taken as {seen.num_gpus:,} in a pool, "
        "the most that were ever held at once. --cluster gives the real cluster."
    )
    return seen, (told,)
