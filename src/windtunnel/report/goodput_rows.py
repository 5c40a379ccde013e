"""Tables of runs with failures: goodput, ETTR and MTTF by job size, what each cause cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.columns import runs_table
from windtunnel.report.curves import named, size_order
from windtunnel.report.format import (
    UNKNOWN,
    count,
    duration,
    exact_seconds,
    gpu_time,
    percent,
    size_text,
)
from windtunnel.report.sections import Cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.report.columns import Columns, Row
    from windtunnel.report.sections import Table
    from windtunnel.sim.outcome import Outcome


def goodput_tables(outcomes: Mapping[str, Outcome]) -> list[tuple[str, Table]]:
    """Return the tables of the runs with failures, titled; none where no run had any."""
    failed = {name: run for name, run in named(outcomes) if run.flight.interruptions is not None}
    causes = {name: run.losses_by_cause().to_pylist() for name, run in failed.items()}
    if not any(causes.values()):
        return []
    sizes = {name: run.goodput_by_size().to_pylist() for name, run in failed.items()}
    by_size = runs_table("GPUs of the job", sizes, "size", SIZES, order=size_order, label=size_text)
    by_cause = runs_table("Cause", causes, "cause", _CAUSES)
    return [("Goodput by job size", by_size), ("What stopped jobs", by_cause)]


def _ettr(row: Row) -> Cell:
    if row["ettr"] is None:
        return Cell(UNKNOWN)
    return Cell(percent(row["ettr"]), note=_between(row["ettr_low"], row["ettr_high"], percent))


def _mttf(row: Row) -> Cell:
    low, high = row["mttf_low"], row["mttf_high"]
    if not low:
        return Cell(UNKNOWN)
    whole = duration(row["mttf"]) if row["num_failures"] else f"over {duration(low)}"
    note = _between(low, high, duration) if row["num_failures"] else ""
    return Cell(whole, exact_seconds(row["mttf"]), note)


def _between(low: float | None, high: float | None, text: Any) -> str:
    return "" if low is None or high is None else f"{text(low)} to {text(high)}"


#: What runs and logs tell of a size.
SIZES: Columns = (
    ("failures", "num_failures", count),
    ("goodput", "goodput", percent),
    ("ETTR", "", _ettr),
    ("MTTF", "", _mttf),
)
_CAUSES: Columns = (
    ("stops", "num_stops", count),
    ("lost work", "lost_work", gpu_time),
    ("waiting for replacement", "waiting_for_replacement", gpu_time),
)
