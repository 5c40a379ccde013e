"""``windtunnel predict wait``: how long a request would wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.checked import checked_number
from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import TIME, option, span, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.names import clean

if TYPE_CHECKING:
    from windtunnel.report.result import Result
    from windtunnel.traces.trace import Trace


@click.command(short_help="How long would a request wait now?")
@trace_options
@option("--gpus N", "GPUs of the request.", click.FloatRange(min=0, min_open=True), required=True)
@option("--vc NAME", "Its virtual cluster (account).  [default: any]")
@option("--user NAME", "Its user, beside --vc.  [default: any]")
@option("--partition NAME", "Among jobs of this partition.  [default: any]")
@option("--gpu-type TYPE", "Among jobs of this GPU type.  [default: any]")
@option("--qos NAME", "Among jobs of this QOS.  [default: any]")
@option(
    "--time-limit",
    "Among jobs whose time limit is between half and twice of this.  [default: any]",
    TIME,
)
@option(
    "--at TIME",
    "When: seconds after time 0, 12d, or 2025-07-01T12:00:00.  [default: the last submission]",
)
@option(
    "--coverage P", "Probability with which the interval is to hold the wait.", float, default=0.8
)
@option(
    "--held-back",
    "The end of the log on which predictions are judged; at most its younger half.",
    TIME,
    default="30d",
)
@presented(PAGES, "Write the answer as one page with charts.", metavar="FILE.html")
def wait(
    *,
    trace: str,
    gpus: float,
    vc: str | None,
    user: str | None,
    partition: str | None,
    gpu_type: str | None,
    qos: str | None,
    time_limit: float | None,
    at: str | None,
    coverage: float,
    held_back: float,
    **asked: Any,
) -> Result:
    """Tell how long a request would wait on TRACE's cluster, and how well that was predicted.

    Quantiles and an interval from the latest requests like it that had started by then; a back-test
    on the end of the log tells how many waits such intervals really held.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from windtunnel.predictors.wait_backtest import wait_backtest
    from windtunnel.predictors.waits import Request, WaitHistory, jobs_alike
    from windtunnel.report.wait_report import wait_answer, wait_data

    checked_number("--coverage", coverage, "a share between 0 and 1", above=0, below=1)
    if not gpus < float("inf"):
        raise SpecError("--gpus", f"found {gpus:g}; expected a number of GPUs.")
    opened = open_request(TraceRequest(trace, **asked))
    if opened.cluster is not None and gpus > opened.cluster.num_gpus:
        has = f"the trace's cluster has {opened.cluster.num_gpus:,} GPUs"
        raise SpecError("--gpus", f"found {gpus:g}; {has}: such a request would never start.")
    among = {"partition": partition, "gpu_type": gpu_type, "qos": qos}
    history = WaitHistory(jobs_alike(opened.jobs, among, time_limit))
    when = history.last if at is None else _instant(at, opened)
    request = Request(gpus, when, vc, user)
    with progress("Back-testing"):
        test = wait_backtest(history, coverage=coverage, held_back=held_back, until=when)
    forecast = history.predict(request, test.level_at(when))
    among |= {} if time_limit is None else {"time_limit": f"{time_limit:g} s"}
    chosen = {name.replace("_", " "): word for name, word in among.items() if word is not None}
    answer = wait_answer(request, forecast, test, opened)
    answer.notes[:0] = [f"Among jobs of {name} {clean(word)}." for name, word in chosen.items()]
    return answer.with_data(
        {"trace": trace_data(opened), "among": among, **wait_data(request, forecast, test)}
    )


def _instant(text: str, trace: Trace) -> float:
    """Return an instant in the trace's time, s."""
    from datetime import UTC, datetime

    from windtunnel.traces.wallclock import zone_info

    try:
        return span(text)
    except SpecError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise SpecError(
            "--at", f"found {quote(text)}; expected seconds, 12d or 2025-07-01T12:00:00."
        ) from error
    about = trace.metadata
    if about.epoch is None:
        raise SpecError("--at", "the trace has no date of its own; expected seconds or 12d.")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC if about.zone is None else zone_info(about.zone))
    return moment.timestamp() - datetime.fromisoformat(about.epoch).timestamp()
