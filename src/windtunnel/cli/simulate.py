"""``windtunnel simulate|why``: a trace under a policy, and why a job of its recording waited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.cluster_energy import energy_data, energy_facts, with_energy
from windtunnel.cli.flying import FlightRequest, fly, notes_of, settings_of
from windtunnel.cli.machine import cluster_data, run_data, trace_data
from windtunnel.cli.opening import check_out
from windtunnel.cli.options import (
    FILE,
    FLIGHT,
    WINDOW,
    SectionCommand,
    field_option,
    field_options,
    kueue_option,
    option,
    trace_options,
)
from windtunnel.cli.presenting import PAGES, TABLES, command_line, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError
from windtunnel.report.result import Part, Result

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.sim.outcome import Outcome
    from windtunnel.traces.trace import Trace


@click.command(cls=SectionCommand, short_help="Fly a trace under one policy.")
@trace_options
@field_option("policy")
@field_options(*FLIGHT)
@kueue_option
@option(
    "--timeline FILE",
    "Write who ran where when: .json or .json.gz for Perfetto, or .html.",
    FILE,
)
@option(
    "--timeline-window START:END",
    "With --timeline: this span alone, as in 2d:3d.",
    WINDOW,
)
@presented(TABLES, "Write what became of each job (.parquet, .csv).")
def simulate(
    *,
    trace: str,
    policy: str,
    timeline: Path | None,
    timeline_window: tuple[float, float] | None,
    **asked: Any,
) -> Result:
    """Fly TRACE on a cluster under one policy and show who waited how long.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.report import sections
    from windtunnel.report.goodput_rows import goodput_tables
    from windtunnel.report.level_rows import level_tables

    lines = TimelineRequest.of(timeline, timeline_window, trace)
    record = asked.get("record")
    check_out(Path(record) if record else None, (".parquet",), trace, "--record")
    request = FlightRequest.of(trace, [policy], asked)
    flown = with_energy(fly(request), request.asked.site)
    (outcome,) = flown.outcomes.values()
    drawn = lines.write(outcome, flown.trace, title=flown.title)
    flown = replace(flown, notes=(*flown.notes, *drawn))
    book = None if flown.books is None else next(iter(flown.books.values()))
    tables = [
        ("", sections.short_table(flown.outcomes)),
        ("Waits by job size", sections.sizes_table(flown.outcomes)),
        *goodput_tables(flown.outcomes),
        *level_tables(flown.outcomes),
    ]

    def table() -> pa.Table:
        found = outcome.table
        return found if book is None else found.append_column("energy_j", [book.energy_by_job])

    return Result(
        flown.title,
        facts=[] if book is None else energy_facts(book),
        parts=[Part("", tables=tables)],
        notes=notes_of(flown),
        settings=settings_of(flown),
        wrote=[
            *([] if record is None else [f"The recording is in {record}"]),
            *([] if timeline is None else [f"The time-line is in {timeline}"]),
        ],
        data={
            **run_data(outcome),
            **({} if book is None else energy_data(book)),
            "settings": outcome.settings,
            "trace": trace_data(flown.trace),
            "cluster": cluster_data(flown.cluster),
            "notes": flown.notes,
            **({} if record is None else {"record": record}),
            **({} if timeline is None else {"timeline": str(timeline)}),
        },
        table=table,
    )


_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class TimelineRequest:
    """What the user asked for.

    Attributes:
        path: the file; None = no time-line.
        window: from when until when, s; None = all.
    """

    path: Path | None
    window: tuple[float, float] | None

    @classmethod
    def of(
        cls, path: Path | None, window: tuple[float, float] | None, trace: str
    ) -> TimelineRequest:
        """Return the request that a command's options make, checked before anything is computed.

        Raises:
            SpecError: the file cannot be written, or there is a window without one.
        """
        from windtunnel.report.timeline import ENDINGS

        if path is None and window is not None:
            raise SpecError("--timeline-window", "expected --timeline FILE beside it.")
        check_out(path, (*ENDINGS, *_PAGES), trace, "--timeline")
        return cls(path, window)

    def write(self, outcome: Outcome, trace: Trace, *, title: str) -> tuple[str, ...]:
        """Write the file, if one was asked for; return what its reader must know.

        Raises:
            OSError: it cannot be written; nothing is left behind.
        """
        if self.path is None:
            return ()
        with progress("Drawing the time-line"):
            if self.path.suffix.lower() in _PAGES:
                from windtunnel.report.occupancy import occupancy_page
                from windtunnel.report.result_page import write_page

                page, notes = occupancy_page(outcome, title, self.window, command=command_line())
                write_page(self.path, page)
                return notes
            from windtunnel.report.timeline import timeline, write_timeline

            chosen = timeline(outcome, window=self.window, epoch=trace.metadata.epoch or "")
            write_timeline(self.path, chosen)
            return chosen.notes


@click.command(short_help="Why did this job wait?")
@click.argument("recording", metavar="RUN.parquet")
@option("--job ID", "The job, by its job_id.", required=True)
@presented(PAGES, "Write the answer as a page.", metavar="FILE.html", reads="recording")
def why(*, recording: str, job: str) -> Result:
    """Tell why a job of a recorded run waited, and what stopped it.

    `windtunnel simulate TRACE --record RUN.parquet` records a run.
    """
    from windtunnel.report.why_report import why_result
    from windtunnel.sim.observe.recording_file import read

    return why_result(job, *read(recording, job))
