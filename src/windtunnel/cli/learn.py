"""``windtunnel learn``: a site file from a Slurm log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.opening import TraceRequest, check_out, open_request
from windtunnel.cli.options import option, out_option, trace_options
from windtunnel.cli.presenting import presented
from windtunnel.errors import SpecError
from windtunnel.report.format import plural
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.study.learning import Learnt


@click.command(short_help="Learn a site from its Slurm log: nodes, partitions, limits.")
@trace_options
@option(
    "--slurm-conf DIR",
    "Slurm's own files: the site file names them, and nothing is inferred.  [default: none]",
)
@out_option("site.toml", "Where to write the site file; beside the log it is found.  [required]")
@presented()
def learn(*, trace: str, slurm_conf: str | None, out: Path | None, **asked: Any) -> Result:
    """Write what TRACE, a Slurm log, tells of its site, each value with where it comes from.

    Nodes and partitions by the log's NodeList, GPU types and what nodes have by AllocTRES, limits
    by the waits whose Reason names them. Every command takes the file by --site, and finds it as
    site.toml beside the log.

    TRACE is a file such as an sacct log, or - for standard input.
    """
    from windtunnel.storage import replacing
    from windtunnel.study.learning import given_file, learn_site, site_file
    from windtunnel.study.resolving import resolved
    from windtunnel.study.site_file import read_site

    if out is None:
        raise SpecError("--out", "expected a file to write, such as site.toml.")
    check_out(out, (".toml",), trace)
    opened = open_request(TraceRequest(trace, **asked))
    found = None
    if slurm_conf is not None:
        text = given_file(slurm_conf, out)
    else:
        found = learn_site(opened.jobs)
        text = site_file(found, opened.name)
    with replacing(out) as target:
        target.write_text(text, encoding="utf-8")
        resolved(read_site(target))  # what cannot be read is not left there
    return _result(found, out, trace, opened.name)


def _result(found: Learnt | None, out: Path, trace: str, name: str) -> Result:
    rows = [] if found is None else found.findings
    parts, cautions = [], []
    if found is not None:
        columns = ("what", "value", "source", "evidence")
        cells = [tuple(clean(row[key], 80) for key in columns) for row in rows]
        parts = [
            Part("What the log tells", tables=[("The site", table_of(columns, cells, texts=3))])
        ]
        cautions = [
            f"Jobs waited {hours:,.1f} h for {clean(word)}, a limit that is not learnt from a log."
            for word, hours in sorted(found.unknown.items())
        ]
        if found.nameless:
            jobs = plural(found.nameless, "job")
            cautions.append(
                f"The partitions of {jobs} have names that slurm.conf cannot have; left out."
            )
    content = "Slurm's own files, as given" if found is None else plural(len(rows), "finding")
    return Result(
        title=f"The site of {clean(name, 80)}",
        headline=f"Written to {clean(str(out))}: {content}.",
        parts=parts,
        cautions=cautions,
        wrote=[f"Next: windtunnel validate {clean(trace)} --site {clean(str(out))}"],
        data={"out": str(out), "findings": rows, "unknown": {} if found is None else found.unknown},
    )
