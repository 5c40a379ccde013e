"""``windtunnel lab``: a local page on which a trace is flown whenever a control is moved."""

from __future__ import annotations

from typing import Any

import click

from windtunnel.cli.options import output_options, reading_options, seed_option

#: What is flown where no trace is named: so many jobs like Seren's.
TRACE, JOBS = "synthetic:seren", 20_000


@click.command(short_help="Play with a trace on a local page.")
@reading_options
@seed_option("Seed of everything random, the synthetic trace included.  [default: 0]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8910,
    show_default=True,
    metavar="N",
    help="Where the page is served, to this machine alone; 0 = any free port.",
)
@click.option("--no-browser", is_flag=True, help="Do not open the page in a browser.")
@click.argument("trace", metavar="[TRACE]", default="")
@output_options
def lab(
    *,
    trace: str,
    seed: int | None,
    port: int,
    no_browser: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Open a page with controls for nodes, load, policies, placement and sharing.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input; without one the page
    shows 20,000 jobs like those of AcmeTrace's Seren. The page is served by this machine to this
    machine and loads nothing from elsewhere. Ctrl-C ends it.
    """
    from windtunnel.cli.opening import TraceWish, open_wish
    from windtunnel.cli.screen import shows_progress
    from windtunnel.lab import server
    from windtunnel.lab.bench import Bench, Source

    server.check_installed()
    if not trace:
        trace, reading["jobs"] = TRACE, reading["jobs"] or JOBS
    wish = TraceWish(trace, seed=seed, **reading)
    words = {key: value for key, value in wish.options().items() if key != "seed"}
    if wish.reader is not None:
        words["format"] = wish.reader
    with server.listen(port) as listening:
        opened = open_wish(wish, show=shows_progress(as_json=as_json))
        bench = Bench(opened, Source(trace, words, seed or 0))
        _tell(server.address(listening), bench, as_json=as_json)
        if not (no_browser or as_json):
            click.launch(server.address(listening))
        server.serve(bench, listening)


def _tell(address: str, bench: Any, *, as_json: bool) -> None:
    """Tell where the page is, before it is served."""
    import sys

    if as_json:
        from windtunnel.cli.machine import print_json, trace_data

        print_json({"url": address, "trace": trace_data(bench.trace)})
    else:
        from windtunnel.cli.screen import heading, line, screen

        console = screen()
        heading(console, f"The lab with {bench.trace.name} is at {address}")
        console.print(line("Ctrl-C ends it."))
    sys.stdout.flush()
