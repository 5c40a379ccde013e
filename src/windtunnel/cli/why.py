"""``windtunnel why``: why a job waited, from the recording of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windtunnel.cli.options import option
from windtunnel.cli.presenting import PAGES, presented

if TYPE_CHECKING:
    from windtunnel.report.result import Result


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
