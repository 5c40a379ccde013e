"""``windtunnel lab``: a local page on which a trace is flown whenever a control is moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from windtunnel.cli.machine import print_json, trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import (
    field_option,
    flag,
    option,
    output_options,
    reading_options,
    seed_option,
)
from windtunnel.cli.screen import heading, line, screen

#: What is flown where no trace is named: so many jobs like Seren's.
TRACE = "synthetic:seren:jobs=20000"


@click.command(short_help="Play with a trace on a local page.")
@reading_options
@seed_option("Seed of everything random, the synthetic trace included.  [default: 0]")
@option(
    "--port N",
    "Where the page is served, to this machine alone; 0 = any free port.",
    click.IntRange(0, 65535),
    default=8910,
)
@option(
    "--cluster --site SPEC",
    "Where the controls stand at first: 64x8:A100, FILE.toml or a published cluster's name; of a "
    "site file the rest holds, too.  "
    "[default: the trace's own; where it tells none, equal nodes that it fills]",
    dest="cluster",
)
@field_option("trust")
@flag("--no-browser", "Do not open the page in a browser.")
@click.argument("trace", metavar="[TRACE]", default="")
@output_options
def lab(
    *,
    trace: str,
    seed: int | None,
    cluster: str | None,
    trust: bool,
    port: int,
    no_browser: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Open a page with controls for nodes, load, policies, placement and sharing.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input; without one the page
    shows 20,000 jobs like those of AcmeTrace's Seren. The page is served by this machine to this
    machine and loads nothing from elsewhere. The address that is printed opens it in one browser,
    once; nobody else is let in. Ctrl-C ends it.
    """
    from windtunnel.lab import server
    from windtunnel.lab.bench import Bench, Source
    from windtunnel.study.resolving import conditions_of, resolved

    server.check_installed()
    if not trace:
        trace = TRACE
    request = TraceRequest(trace, seed=seed, **reading)
    words = {key: value for key, value in request.options().items() if key != "seed"}
    if request.reader is not None:
        words["format"] = request.reader
    site = conditions_of(cluster, trust=trust)
    chosen = resolved(site).site.cluster
    with server.listen(port) as listening:
        opened = open_request(request)
        opened = opened if chosen is None else replace(opened, cluster=chosen)
        bench = Bench(opened, Source(trace, words, seed or 0, cluster), site)
        lab_server = server.Server(bench, listening)
        _tell(lab_server.address, bench, as_json=as_json)
        if not (no_browser or as_json):
            click.launch(lab_server.address)
        lab_server.serve()


def _tell(address: str, bench: Any, *, as_json: bool) -> None:
    """Tell where the page is, before it is served."""
    import sys

    if as_json:
        print_json({"url": address, "trace": trace_data(bench.trace)})
    else:
        console = screen()
        heading(console, f"The lab with {bench.trace.name} is at {address}")
        console.print(line("Ctrl-C ends it."))
    sys.stdout.flush()
