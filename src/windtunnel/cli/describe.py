"""``windtunnel describe``: what a trace looks like, before anything is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import cluster_data, trace_data
from windtunnel.cli.opening import TraceRequest, check_out, open_request
from windtunnel.cli.options import FILE, flag, option, output_options, trace_options
from windtunnel.cli.presenting import PAGES, present
from windtunnel.cli.screen import progress
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.report.measured_use import MeasuredUse
    from windtunnel.traces.trace import Trace


@click.command(short_help="Show what a trace looks like.")
@trace_options
@option("--html FILE.html", "Write it all, with charts, as one page.", FILE, dest="page")
@option(
    "--telemetry PATH",
    "Telemetry of the cluster, a file or a folder: how busy it was, and which jobs kept it "
    "so; may be repeated.",
    multiple=True,
)
@flag(
    "--source-times",
    "Make the cluster summary of the source's own run, queueing and GPU times, and its number "
    "of GPUs, where it has them, as AcmeTrace's file does.",
)
@flag("--all", "Leave nothing out of the tables.", dest="whole")
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
    for source in (trace, *telemetry):
        check_out(page, PAGES, source, "--html")
    if are_manifests(trace):
        present(manifests_result(trace), page, as_json=as_json, key="page")
        return
    from windtunnel.report.describe_result import describe_result
    from windtunnel.report.description import STEPS, describe_trace

    opened = open_request(TraceRequest(trace, **asked))
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
    from windtunnel.report.measured_use import measured_use

    found = []
    for path in paths:
        with progress(f"Reading {path}"):
            found.append(measured_use(trace, path))
    return found


_ENDINGS = (".yaml", ".yml")
_BEGINNING = 2**20


def are_manifests(given: str) -> bool:
    """Return whether what is to be described is a YAML file, or a folder with some of Kueue's.

    A folder of nothing but YAML files is taken for manifests, whatever they name: they may be
    broken, and that is to be reported.
    """
    path = Path(given)
    if path.suffix in _ENDINGS:
        return True
    files = list(path.iterdir()) if path.is_dir() else []
    written = [file for file in files if file.suffix in _ENDINGS and not file.is_fifo()]
    return bool(written) and (len(written) == len(files) or any(map(_names_kueue, written)))


def _names_kueue(file: Path) -> bool:
    """Return whether a file speaks of Kueue's API near its beginning; traces have YAML, too."""
    try:
        with file.open("rb") as opened:
            return b"kueue.x-k8s.io" in opened.read(_BEGINNING)
    except OSError:
        return False


def manifests_result(given: str) -> Result:
    """Return what manifests say.

    Raises:
        SpecError: one is wrong.
    """
    from windtunnel.policies.kueue.description import described
    from windtunnel.policies.kueue.manifests import read_manifests

    found = described(read_manifests(given))
    columns = ("queue or cohort", "flavor", "resource", "owns", "may use", "may borrow", "lends")
    others = _counted(found["not_read"])
    return Result(
        title=clean(given),
        headline=_counted({kind: count for kind, count in found["counts"].items() if count}),
        cautions=[clean(warning, 400) for warning in found["warnings"]],
        parts=[Part("Quotas", tables=[("", table_of(columns, _rows(found["nodes"]), texts=2))])],
        notes=[f"Not read: {others}"] if others else [],
        data=found,
    )


def _counted(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {clean(kind)}" for kind, count in kinds.items())


def _rows(nodes: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the tree, each name once, behind a dot for each cohort above it."""
    from windtunnel.policies.kueue.quantities import shown

    last: tuple[str, str] | None = None
    for row in nodes:
        this = row["kind"], row["name"]
        name = "" if this == last else "· " * row["depth"] + clean(row["name"])
        last = this
        what = row["resource"]
        amounts = (shown(what, row[key]) for key in ("owns", "may_use", "may_borrow", "lends"))
        yield (name, clean(row["flavor"]), clean(what), *amounts)
