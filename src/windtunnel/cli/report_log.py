"""``windtunnel report LOG``: one page of a log, an operator's questions its sections."""

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
from windtunnel.cli.report_cost import prices_of
from windtunnel.cli.screen import progress

if TYPE_CHECKING:
    from windtunnel.report.result import Result


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

    asks_cost = (price, prices) != (None, None)
    wanted = prices_of(price, prices) if asks_cost else None
    typed = resolved(as_typed(trace, cluster, slurm_conf))
    opened = open_wish(TraceWish(trace, **asked))
    spec, why = recorded_cluster(opened, typed.site.cluster)
    with progress("Looking at every wait"):
        opened, told_of = with_reasons(opened, typed)
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
    told = {"trace": trace_data(opened), "cluster": cluster_data(spec)}
    told |= {"calendar": calendar_data(days), **data}
    return log_answer(days, opened, spec, sections).with_data(told, (*why, *told_of))
