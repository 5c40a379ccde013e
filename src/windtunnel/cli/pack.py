"""``windtunnel pack``: fill nodes with a trace's jobs; how much of the GPUs is left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import cluster_data, trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import each_once, flag, one_of, option, seed_option
from windtunnel.cli.presenting import CHARTS, TABLES, presented
from windtunnel.cli.screen import progress
from windtunnel.report.format import count
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.report.sections import Table
    from windtunnel.study.pack import PackResult
    from windtunnel.traces.trace import Trace

#: Where the ratio of fragments is reported, percent of arrived demand.
_MARKS = (40, 60, 80, 90)
_MEANING = (
    "Arrived: GPU demand in percent of the GPUs; ± is a standard deviation over seeds. frag@80: "
    "fragments in percent of the free GPUs when 80 % had arrived; a fragment is free capacity that "
    "a job drawn from the trace could not use."
)


@click.command(short_help="Fill nodes with GPU-sharing jobs; allocation and fragmentation.")
@click.argument("nodes", metavar="NODES")
@click.argument("pods", metavar="PODS")
@option(
    "--placement NAMES",
    "fgd, openb_best_fit, dot_prod, gpu_packing, gpu_clustering, random, best_fit, worst_fit, "
    "first_fit, least_idle, most_idle, lowest_utilization, load_rate; several joined by commas.",
    dest="placements",
    default="fgd",
)
@option(
    "--target X", "GPU demand that arrives, as a share of the cluster's GPUs.", float, default=1.3
)
@option(
    "--seeds N",
    "Runs of each placement, a seed each.",
    click.IntRange(min=1, max=10_000),
    default=10,
)
@seed_option("The first seed.  [default: 42]")
@option(
    "--processes --jobs-processes N",
    "Processes that share the runs; the result is the same.",
    click.IntRange(min=1, max=1024),
    dest="processes",
    default=1,
)
@option(
    "--node-order ORDER",
    "Which of several nodes with the best score: the first in a random order drawn for each "
    "seed (shuffled), the smallest name (name) or the first (index).",
    one_of("shuffled", "name", "index"),
    default="shuffled",
)
@option(
    "--scores integer|float",
    "Cut scores to whole numbers, as Kubernetes does, or not.",
    one_of("integer", "float"),
    default="integer",
)
@flag("--all-nodes", "Fill nodes without GPUs, too.")
@option(
    "--incomplete raise|reject",
    "A job whose number of GPUs is unknown: refuse the run, or leave the job out.",
    one_of("raise", "reject"),
    default="raise",
)
@option("--format FORMAT", "The format of PODS.", dest="reader")
@presented(
    (*CHARTS, *TABLES),
    "Write curves (.html, .svg, .png, .pdf) or their numbers by seed (.csv, .parquet).",
    reads="pods",
)
def pack(*, nodes: str, pods: str, placements: str, **asked: Any) -> Result:
    """Fill NODES with the jobs of PODS, in random order, until more has arrived than fits.

    NODES is a list of nodes (openb's CSV), 64x8:A100, FILE.toml or a published cluster's name; PODS
    is any trace, such as openb's list of pods. Every job stays where the placement put it; the
    result is how many GPUs are allocated at last, and which share of the free ones is fragments
    that the trace's jobs can hardly use. The defaults are the experiment of the FGD paper (ATC'23).
    """
    from windtunnel.placements.catalogue import scored_placement
    from windtunnel.report.pack_chart import pack_chart
    from windtunnel.study.pack import FIRST_SEED
    from windtunnel.study.pack import pack as fill

    names = each_once(placements, "--placement", scored_placement)
    cluster, node_names = _nodes(nodes)
    trace = open_request(TraceRequest(pods, reader=asked["reader"]))
    first = FIRST_SEED if asked["seed"] is None else asked["seed"]
    with progress("Filling", len(names) * asked["seeds"]) as done:
        result = fill(
            trace.jobs,
            cluster,
            names,
            seeds=range(first, first + asked["seeds"]),
            names=node_names,
            processes=asked["processes"],
            on_done=done,
            target=asked["target"],
            only_gpu_nodes=not asked["all_nodes"],
            node_order=asked["node_order"],
            scores=asked["scores"],
            incomplete=asked["incomplete"],
        )
    sizes = result.settings
    where = f"{count(sizes['num_gpus'])} GPUs of {count(sizes['num_nodes'])} nodes"
    rejected = [f"{count(jobs)} jobs left out: {why}." for why, jobs in result.rejected.items()]
    return Result(
        f"{trace.name} on {where}, {len(sizes['seeds'])} seeds",
        parts=[Part("", tables=[("", _placements(result))])],
        cautions=[*rejected, *result.notes, _MEANING],
        data=_data(result, trace, cluster),
        table=lambda: result.table,
        chart=lambda: pack_chart(result),
    )


def _nodes(text: str) -> tuple[ClusterSpec, list[str] | None]:
    """Return the cluster that the user typed, and its nodes' names where a file has them.

    Raises:
        TraceError: a list of nodes cannot be read.
        SpecError: it is no cluster, or one without nodes.
    """
    if text.lower().removesuffix(".gz").endswith(".csv"):
        from windtunnel.traces.openb import read_nodes

        table, cluster = read_nodes(text)
        return cluster, table["node"].to_pylist()
    from windtunnel.cluster.parse import parse_cluster

    return parse_cluster(text), None


def _ends(result: PackResult) -> list[dict[str, Any]]:
    """Return each placement's row of the summary at the last percent that every seed reached."""
    rows = result.summary().to_pylist()
    ends: dict[str, dict[str, Any]] = {}
    for row in rows:
        before = ends.get(row["placement"])
        if before is None or row["num_seeds"] >= before["num_seeds"]:
            ends[row["placement"]] = row
    for end in ends.values():
        mine = {r["arrived_percent"]: r for r in rows if r["placement"] == end["placement"]}
        end["frag_ratio_at"] = {
            str(mark): mine[mark]["frag_ratio_percent"] if mark in mine else None for mark in _MARKS
        }
    return list(ends.values())


def _data(result: PackResult, trace: Trace, cluster: ClusterSpec) -> dict[str, Any]:
    """Return an experiment as plain data.

    Keys: ``trace``, ``cluster``, ``settings``, ``placements`` (list: the summary's row at the last
    percent, and ``frag_ratio_at``: percent -> ratio), ``runs``, ``curves`` (the whole summary),
    ``rejected`` (reason -> jobs), ``notes``.
    """
    return {
        "trace": trace_data(trace),
        "cluster": cluster_data(cluster),
        "settings": result.settings,
        "placements": _ends(result),
        "runs": result.runs.to_pylist(),
        "curves": result.summary().to_pylist(),
        "rejected": result.rejected,
        "notes": [*trace.metadata.notes, *result.notes],
    }


def _placements(result: PackResult) -> Table:
    rows = []
    for end in _ends(result):
        marks = end["frag_ratio_at"].values()
        rows.append(
            (
                *(end["placement"], str(end["arrived_percent"])),
                _with_spread(end, "allocation_percent", 2),
                _with_spread(end, "unallocated_gpus", 1),
                *("" if mark is None else f"{mark:.2f}" for mark in marks),
            )
        )
    headings = ("placement", "arrived", "allocated %", "GPUs left")
    return table_of((*headings, *(f"frag@{mark}" for mark in _MARKS)), rows)


def _with_spread(end: dict[str, Any], measure: str, digits: int) -> str:
    spread = end[f"{measure}_sd"]
    return f"{end[measure]:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")
