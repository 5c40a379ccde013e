"""A report of how long a request would wait, with how well that has been predicted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.plain import fields_of
from windtunnel.predictors.waits import PERCENTS
from windtunnel.report.answer_charts import wait_spans
from windtunnel.report.columns import rows_table
from windtunnel.report.format import (
    UNKNOWN,
    count,
    duration,
    exact_seconds,
    percent,
    plural,
    size_text,
)
from windtunnel.report.names import clean
from windtunnel.report.result import Drawing, Part, Result, moment, notes_of, subtitle_of
from windtunnel.report.sections import Cell, Fact, Line, Table, time_cell

if TYPE_CHECKING:
    from windtunnel.predictors.wait_backtest import WaitBacktest
    from windtunnel.predictors.waits import Request, WaitPrediction
    from windtunnel.report.columns import Columns
    from windtunnel.traces.trace import Trace

_ALIKE = {
    "size": "number of GPUs",
    "vc": "virtual cluster",
    "user": "user",
    "queue": "length of the queue",
}
_NO_VC = "The user counts beside a virtual cluster alone; name it, too: --vc."
_GROWING = (
    "Only jobs that had started by then are known: while a queue grows, predicted waits are too "
    "short."
)


def wait_answer(
    request: Request, found: WaitPrediction, test: WaitBacktest, trace: Trace
) -> Result:
    """Return the answer to "how long would this wait?"."""
    covered = test.summary()
    who = "".join(
        f", {key} {clean(name)}"
        for key, name in (("vc", request.vc), ("user", request.user))
        if name is not None
    )
    asked = f"{request.gpus:g} GPU{'s' * (request.gpus != 1)}{who}"
    same = " and the same ".join(_ALIKE[key] for key in found.by)
    facts = [
        Fact("Median", duration(found.quantiles[50]), exact_seconds(found.quantiles[50])),
        Fact(f"{percent(test.coverage)} interval", _span(found.low, found.high)),
        Fact("Starts at once", percent(found.at_once), note="within a second"),
        Fact(
            "In line now",
            plural(found.queued_jobs, "job"),
            note=f"for {count(found.queued_gpus)} GPUs; {count(found.held_gpus)} GPUs are held",
        ),
    ]
    lines = [Line(f"P{p}", [time_cell(found.quantiles[p])]) for p in PERCENTS]
    table = Table("Quantile", ["wait"], lines)
    like = f" of the same {same}" if same else ""
    lead = f"Waits of the {plural(found.alike, 'latest request')}{like}."
    return Result(
        title=f"How long would it wait? {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, asked),
        headline=_headline(found, test, asked, covered),
        facts=facts,
        parts=[
            Part("What requests like it waited", lead, [("Quantiles", table)]),
            _tested(test, trace),
        ],
        notes=notes_of(
            trace,
            [_GROWING, f"Time of the request: {moment(trace, request.at)}."],
            _beyond(request, found),
            [_NO_VC] if request.user is not None and request.vc is None else [],
        ),
    )


def wait_data(request: Request, found: WaitPrediction, test: WaitBacktest) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``request`` (``gpus``, ``vc``, ``user``, ``at``), ``quantiles`` (percent -> s),
    ``interval`` (``low``, ``high``; null = unbounded), ``coverage``, ``at_once``, ``alike``,
    ``by``, ``queued_jobs``, ``queued_gpus``, ``held_gpus``, ``backtest`` (its summary and
    ``by_size``).
    """
    return {
        "request": {
            **fields_of(request, "gpus", "vc", "user", "at"),
        },
        "quantiles": found.quantiles,
        "interval": {"low": found.low, "high": found.high},
        "coverage": test.coverage,
        "at_once": found.at_once,
        "alike": found.alike,
        "by": list(found.by),
        **fields_of(found, "queued_jobs", "queued_gpus", "held_gpus"),
        "backtest": {**test.summary(), "by_size": test.by_size()},
    }


def _headline(
    found: WaitPrediction, test: WaitBacktest, asked: str, covered: dict[str, Any]
) -> str:
    if found.high == float("inf"):
        return (
            f"A request for {asked} would wait {duration(found.quantiles[50])} in the median; too "
            "little is known for an interval."
        )
    text = f"A request for {asked} would wait {_span(found.low, found.high)}, with "
    text += f"{percent(test.coverage)} probability"
    if covered["n"]:
        text += f"; such intervals held {percent(covered['covered'])} of {count(covered['n'])} "
        text += "held-back waits"
    return text + "."


def _beyond(request: Request, found: WaitPrediction) -> list[str]:
    """Return that the log knows no request so large, where it knows none."""
    if request.gpus <= found.largest:
        return []
    largest = f"the largest asked for {found.largest:g}"
    known = f"No request for so many GPUs had started by then ({largest})"
    return [f"{known}: these are waits of smaller ones, and it may never start."]


def _span(low: float, high: float) -> str:
    if high == float("inf"):
        return f"{duration(low)} or more"
    if low < 1:
        return f"at most {duration(high)}"
    return f"{duration(low)} to {duration(high)}"


_SIZES: Columns = (
    ("n", "n", count),
    ("in the interval", "covered", percent),
    ("median wait", "p50_wait", time_cell),
    ("P90", "p90_wait", time_cell),
)


def _tested(test: WaitBacktest, trace: Trace) -> Part:
    numbers = test.summary()
    rows = test.by_size()
    sizes = rows_table("GPUs of the job", _SIZES, rows, "size", size_text)
    below = numbers["below"]
    shares = [
        Line(f"P{p}", [Cell(percent(below[str(p)]) if numbers["n"] else UNKNOWN)]) for p in PERCENTS
    ]
    tables = [
        ("Coverage by size of the job", sizes),
        ("Waits at most the quantile", Table("Quantile", ["waits at most it"], shares)),
    ]
    spans = [
        {
            "size": row["size"],
            "low": 1.0,
            "middle": max(1.0, row["p50_wait"]),
            "high": max(1.0, row["p90_wait"]),
        }
        for row in rows
        if row["n"]
    ]
    drawing = Drawing(
        "held-back",
        "What was waited in the held-back part",
        f"Dots are medians, lines end at P90; n = {plural(numbers['n'], 'job')}.",
        partial(wait_spans, spans, of="size", corner="GPUs of the job"),
    )
    lead = (
        f"Back-test on {plural(numbers['n'], 'job')} from {moment(trace, numbers['begin'])} "
        "on: each is predicted at its submission from what had started by then; intervals are "
        f"calibrated on the days before. Median width of an interval: "
        f"{duration(numbers['p50_width'])}. With many waits of the same length, more of them can "
        "be at most a quantile than it says."
    )
    return Part("How well that was predicted", lead, tables, [drawing] if rows else [])
