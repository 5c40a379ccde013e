"""``windtunnel demo``: the first flight, with nothing to choose."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.compare import comparison
from windtunnel.cli.flying import FlightRequest, fly, with_notes
from windtunnel.cli.opening import check_out
from windtunnel.cli.options import FILE, one_of, option, output_options, seed_option
from windtunnel.cli.presenting import present
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace

POLICIES: tuple[str, ...] = ("fifo", "sjf", "srtf", "priority")
PHILLY = "philly"
KALOS = "synthetic:kalos"
#: Where Philly is flown. Its jobs keep 374 GPUs busy on average, in bursts: on
#: the preset's 2,816 nobody waits, on 512 FIFO's mean wait is ten days, on 704 it is 4.5 hours.
PHILLY_CLUSTER = "88x8"
#: Load of the synthetic trace on its own cluster. Gangs of up to 2,048 GPUs need the cluster to
#: drain, so that half of its GPU time is enough to make the others queue for hours.
KALOS_LOAD = 0.5
KALOS_CLUSTER = "kalos"
#: What a preempted job pays to go on, s by its GPUs, as in Helios' simulator (Hu et al., SC'21).
PREEMPTION_COST = "1=7/2=30/9=60"
#: Gangs of this many GPUs or more are favoured where a trace records no priorities.
BIG_GANG = 8


@click.command(short_help="Fly a real trace under four policies and write the page.")
@option(
    "--out FOLDER",
    "Where report.html goes; made where it is missing.",
    FILE,
    default=Path("build/demo"),
)
@option(
    "--trace NAME",
    f"{PHILLY} or {KALOS}.  [default: {PHILLY} where it is on this machine]",
    one_of(PHILLY, KALOS),
)
@seed_option("Seed of the synthetic trace.  [default: 0]")
@output_options
def demo(*, out: Path, trace: str | None, seed: int | None, as_json: bool) -> None:
    """Fly a real trace under FIFO, SJF, SRTF and priority, and write the page.

    Takes Microsoft's Philly trace where it is on this machine (`windtunnel fetch philly` brings
    it), else a synthetic one with Kalos' published statistics; says which. Nothing is downloaded
    unless --trace asks for it.
    """
    chosen, why = (trace, f"{trace} was asked for.") if trace else _choose()
    _make_folder(out)
    flown = fly(_request(chosen, seed), prepare=lambda opened: prepare(opened, why))
    again = ["windtunnel", "demo", "--trace", chosen, "--seed", str(seed or 0), "--out", str(out)]
    page = out / "report.html"
    present(comparison(flown), page, as_json=as_json, key="page", command=shlex.join(again))


def _choose() -> tuple[str, str]:
    """Return the trace to fly, and why it is that one."""
    from windtunnel.traces.registry import locate

    if locate(PHILLY) is not None:
        return PHILLY, "The trace is Microsoft's Philly, which is on this machine."
    return KALOS, (
        f"The trace is {KALOS}: Microsoft's Philly is not on this machine "
        "(`windtunnel fetch philly` brings it)."
    )


def _request(trace: str, seed: int | None) -> Any:
    is_philly = trace == PHILLY
    name = trace if is_philly else f"{trace}:load={KALOS_LOAD}"
    cluster = PHILLY_CLUSTER if is_philly else KALOS_CLUSTER
    asked = {"cluster": cluster, "seed": seed or 0, "restore_time": PREEMPTION_COST}
    return FlightRequest.of(name, POLICIES, asked)


def _make_folder(out: Path) -> None:
    """Make the folder of the page."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(f"--out {out}", f"the folder cannot be made: {error.strerror}.") from error
    check_out(out / "report.html", (".html",), "")


def prepare(trace: Trace, why: str) -> tuple[Trace, tuple[str, ...]]:
    """Return the trace as the demo flies it, and what was chosen or made up for it.

    The page shows these notes among the trace's own, all but ``why``, which is about this machine
    and not about the numbers.

    Args:
        trace: as it was read.
        why: why it is this trace.
    """
    trace, rules = _with_priorities(trace)
    cost = (
        "A preempted job (srtf) pays 7 s to go on, 30 s from 2 GPUs on and 60 s from 9 on, as in "
        "Helios' simulator."
    )
    notes = (_why_cluster(trace), cost, *rules)
    return with_notes(trace, notes), (why, *notes)


def _with_priorities(trace: Trace) -> tuple[Trace, tuple[str, ...]]:
    """Favour big gangs where a trace records no priority at all."""
    import numpy as np
    import pyarrow as pa

    jobs = trace.jobs
    if jobs["priority"].null_count < jobs.num_rows:
        return trace, ()
    gpus = np.asarray(jobs["num_gpus"].to_numpy(), dtype=np.float64)
    column = pa.array(np.where(gpus >= BIG_GANG, 1.0, 0.0))
    filled = jobs.set_column(jobs.column_names.index("priority"), "priority", column)
    rule = (
        f"The trace records no priorities, so the demo makes them up: gangs of {BIG_GANG} or more "
        "GPUs get priority 1, all others 0, to show what favouring big gangs costs."
    )
    return trace.with_jobs(filled), (rule,)


def _why_cluster(trace: Trace) -> str:
    """Return how busy the jobs keep the cluster on average, and why it is this one."""
    import numpy as np

    from windtunnel.cluster.parse import parse_cluster

    jobs = trace.jobs
    submit, duration, gpus = (
        np.asarray(jobs[name].to_numpy(), dtype=np.float64)
        for name in ("submit_time", "duration", "num_gpus")
    )
    held = float(np.nansum(duration * gpus))
    span = max(float(np.nanmax(submit) - np.nanmin(submit)), 1.0)
    facts = (
        f"The jobs ask for {held / 3600:,.0f} GPU hours in {span / 86400:.0f} days, which keeps "
        f"{held / span:,.0f} GPUs busy on average"
    )
    if trace.name == PHILLY:
        cluster, full = parse_cluster(PHILLY_CLUSTER), parse_cluster(PHILLY)
        return (
            f"{facts}; they come in bursts, so that on {cluster.num_gpus} GPUs a queue forms and "
            f"drains again (on the {full.num_gpus:,} of the published cluster no job would wait)."
        )
    return (
        f"{facts} (the demo sets this load, {KALOS_LOAD:.0%} of the cluster); gangs of up to "
        f"{np.nanmax(gpus):,.0f} GPUs have to wait until that many are free, and the others with "
        "them."
    )
