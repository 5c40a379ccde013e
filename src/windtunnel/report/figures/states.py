"""How do jobs end? AcmeTrace figure 3, from the trace itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.population import NONE
from windtunnel.characterize.states import STATES, state_shares
from windtunnel.report.chart.axes import numbers
from windtunnel.report.figures.collecting import (
    Answer,
    Lacking,
    Measure,
    across,
    labelled,
    with_columns,
)
from windtunnel.report.figures.panels import Plan, bars, framed

if TYPE_CHECKING:
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series

#: A job of such a status has no final state yet, or none that is known.
_UNKNOWN = (NONE, "unknown")


def _shares(series: Series, of: str) -> Answer:
    """Return the shares of one kind, in percent, with the share's own column."""
    jobs = series.trace.jobs
    table = state_shares(jobs, gpu_time=source_fact(jobs, "gpu_time"))
    n = sum(table["num_jobs"].to_pylist())
    unknown = pc.is_in(table["state"], value_set=pa.array(_UNKNOWN))
    known = table.filter(pc.invert(unknown))
    if n and not sum(known["num_jobs"].to_pylist()):
        raise Lacking("the trace tells no status")
    share = pc.multiply(table[f"{of}_share"], 100.0)
    if of == "gpu_time" and share.null_count == len(share):
        raise Lacking("no GPU job has a run time")
    table = labelled(table, of="jobs" if of == "job" else "GPU time")
    left_out = sum(table["left_out"].to_pylist()) if of == "gpu_time" else 0
    counted = n - left_out
    # The legend's n: what these shares are of. The table's own counts all jobs.
    table = with_columns(table, n=counted)
    return Answer(table.append_column("percent", share), counted, left_out)


def _draw(table: pa.Table, look: Look) -> Any:
    places = {state: place for place, state in enumerate(STATES)}
    states = [_named(state) for state in table["state"].to_pylist()]

    def panel(rows: list[Row], **how: Any) -> Any:
        noun = rows[0]["of"]
        ordered = sorted(
            rows, key=lambda row: (places.get(row["state"], len(places)), row["state"])
        )
        shown = [{**row, "state": _named(row["state"])} for row in ordered]
        series = [name for name in look.traces if any(row["trace"] == name for row in shown)]
        texts = {
            name: f"{name} (n = {next(row['n'] for row in shown if row['trace'] == name):,})"
            for name in series
        }
        value = numbers("percent", f"% of {noun}")
        return bars(
            shown,
            look,
            value=value,
            line="state",
            series="trace",
            text=lambda v: f"{v:.1f}",
            entries=texts,
            all_names=states,
            **how,
        )

    return framed(table, look, panel)


def _named(state: str) -> str:
    return "no status" if state == NONE else state.replace("_", " ")


#: The shares of GPU jobs, and of their GPU time, by final state.
FINAL_STATES = Plan(
    across(
        Measure("Jobs by final state", partial(_shares, of="job"), "there is no GPU job"),
        Measure("GPU time by final state", partial(_shares, of="gpu_time"), "there is no GPU time"),
    ),
    _draw,
)
