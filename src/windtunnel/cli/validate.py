"""``windtunnel validate``: how near a replay comes to what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.flying import check_policies
from windtunnel.cli.machine import cluster_data, trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import listed, option, seed_option, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.recorded_site import as_recorded, as_typed, knows_cores, site_options
from windtunnel.cli.screen import progress

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.traces.trace import Trace

#: Policies by the names of published clusters: what their papers say that they ran. Every other
#: trace is tried under fifo, and what its columns allow.
FAMILIES: dict[str, tuple[str, ...]] = {
    "philly": ("fifo",),
    "kalos": ("priority", "fifo"),
    "seren": ("priority", "fifo"),
    "helios": ("fifo",),
    "pai": ("fifo",),
    "openb": ("fifo",),
}


@click.command(short_help="How near does a replay come to what was recorded?")
@trace_options
@option(
    "--policies NAMES",
    "What the cluster ran, or may have: names as for `compare`, by commas.  [default: what "
    "the site file says, or the trace's paper; else fifo, easy and priority, where jobs have what "
    "these need]",
)
@site_options
@option("--queueing NAME", "As for `simulate`.  [default: each policy's own]")
@option("--placement NAME", "As for `simulate`.  [default: best_fit; on a pool, pool]")
@option(
    "--nodes-in-use FILE.csv",
    "Recorded numbers of nodes in use (columns time and active), where one has them.",
)
@seed_option("Seed of placement and of a synthetic trace.  [default: 0]")
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def validate(
    *,
    trace: str,
    policies: str | None,
    cluster: str | None,
    slurm_conf: str | None,
    trust: bool,
    queueing: str | None,
    placement: str | None,
    nodes_in_use: str | None,
    **asked: Any,
) -> Result:
    """Replay TRACE and tell how far waits, use and queue are from the recorded ones.

    By job, size and hour: so that one knows how much of a what-if to believe. Run times are as
    recorded; jobs that never started are left out and counted.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from dataclasses import asdict

    from windtunnel.report.validation_report import (
        missing_words,
        validation_answer,
        validation_data,
    )
    from windtunnel.site.scheduler import Scheduler
    from windtunnel.study.ledger import Missing, ledger, missing
    from windtunnel.study.nodes_in_use import nodes_in_use as beside
    from windtunnel.study.recording import Recording
    from windtunnel.study.resolving import resolved
    from windtunnel.study.validation import replay

    seed = asked["seed"] or 0
    settings = {"queueing": queueing, "placement": placement}
    given = None if policies is None else listed(policies)
    if given is not None:
        check_policies(given, **settings)
    typed = as_typed(trace, cluster, slurm_conf, trust=trust, seed=seed, **settings)
    is_known = typed.scheduler.policy != Scheduler().policy
    typed = resolved(typed)
    request = TraceRequest(trace, **asked)
    opened = open_request(request)
    base, why = as_recorded(opened, typed)
    several = given or ([] if is_known else family_of(opened))
    runs = [resolved(base.having(policy=name), several=True) for name in several] or [base]
    recording = Recording.of(opened.jobs, with_cpu_jobs=all(knows_cores(run) for run in runs))
    about = opened.metadata
    with progress("Flying", len(runs)) as done:
        found = replay(recording, runs, epoch=about.epoch, zone=about.zone, on_done=done)
    entries, lacks = [], list[Missing]()
    if len(runs) == 1 and knows_cores(runs[0]):
        with progress("Adding mechanisms"):
            entries = ledger(recording, runs[0])
        decisions = entries[-1].decisions if entries else None
        lacks = missing(recording, runs[0], next(iter(found.outcomes.values())), decisions)
        why += missing_words(lacks)
    series = None if nodes_in_use is None else _series(opened, nodes_in_use)
    nodes = None
    if series is not None:
        nodes = {name: beside(run, *series) for name, run in found.outcomes.items()}
    return validation_answer(found, opened, nodes, entries).with_data(
        {
            "trace": trace_data(opened),
            "cluster": cluster_data(found.recorded.cluster),
            **validation_data(found, nodes),
            "ledger": [entry.data() for entry in entries],
            "missing": [asdict(one) for one in lacks],
        },
        why,
    )


def _series(trace: Trace, path: str) -> Any:
    """Return recorded nodes in use in the trace's time.

    Raises:
        SpecError: the trace has no date.
        TraceError: the file is no such table.
    """
    from datetime import datetime

    from windtunnel.study.nodes_in_use import read_nodes_in_use

    about = trace.metadata
    epoch = None if about.epoch is None else datetime.fromisoformat(about.epoch).timestamp()
    return read_nodes_in_use(path, epoch=epoch, zone=about.zone)


def family_of(trace: Trace) -> list[str]:
    """Return the policies that a trace is tried under."""
    name = trace.name.lower().removeprefix("synthetic:")
    for cluster, policies in FAMILIES.items():
        if name.split("-")[0].split(":")[0] == cluster:
            return list(policies)
    jobs = trace.jobs
    ranked = jobs["priority"].null_count < jobs.num_rows
    limited = not jobs["estimate"].null_count  # backfilling goes by time limits
    return ["fifo", *(["easy"] if limited else []), *(["priority"] if ranked else [])]
