"""Tables of runs with failures: goodput, ETTR and MTTF by job size, what each cause cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.curves import named, size_order
from windtunnel.report.format import count, duration, exact_seconds, gpu_time, percent
from windtunnel.report.names import clean
from windtunnel.report.sections import Cell, Line, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.sim.outcome import Outcome

#: Columns that `size_cells` fills.
SIZE_COLUMNS: tuple[str, ...] = ("failures", "goodput", "ETTR", "MTTF")
_NONE = Cell("\u2013")


def goodput_tables(outcomes: Mapping[str, Outcome]) -> list[tuple[str, Table]]:
    """Return the tables of the runs with failures, titled; none where no run had any."""
    failed = {
        name: outcome
        for name, outcome in zip(
            (name for name, _ in named(outcomes)), outcomes.values(), strict=True
        )
        if outcome.flight.interruptions is not None
    }
    if not any(outcome.losses_by_cause().num_rows for outcome in failed.values()):
        return []
    return [
        ("Goodput by job size", _by_size(failed)),
        ("What stopped jobs", _by_cause(failed)),
    ]


def _by_size(outcomes: Mapping[str, Outcome]) -> Table:
    """Return one row a size, and for several runs three columns each."""
    tables = [{row["size"]: row for row in o.goodput_by_size().to_pylist()} for o in
              outcomes.values()]  # fmt: skip
    lines = [
        Line(size.replace("-", "\u2013"), [c for t in tables for c in size_cells(t.get(size))])
        for size in size_order({size for table in tables for size in table})
    ]
    return Table("GPUs of the job", list(outcomes), lines, under=list(SIZE_COLUMNS))


def size_cells(row: Mapping[str, Any] | None) -> list[Cell]:
    """Return failures, goodput, ETTR and MTTF of a size; dashes where there is none."""
    if row is None:
        return [_NONE] * 4
    ettr, mttf = _NONE, _NONE
    if row["ettr"] is not None:
        ettr = Cell(percent(row["ettr"]), note=_between(row["ettr_low"], row["ettr_high"], percent))
    if row["mttf_low"]:
        low, high = row["mttf_low"], row["mttf_high"]
        whole = duration(row["mttf"]) if row["num_failures"] else f"over {duration(low)}"
        note = _between(low, high, duration) if row["num_failures"] else ""
        mttf = Cell(whole, exact_seconds(row["mttf"]), note)
    return [Cell(count(row["num_failures"])), Cell(percent(row["goodput"])), ettr, mttf]


def _between(low: float | None, high: float | None, text: Any) -> str:
    return "" if low is None or high is None else f"{text(low)} to {text(high)}"


def _by_cause(outcomes: Mapping[str, Outcome]) -> Table:
    """Return one row a cause, and for several runs three columns each; most lost work first."""
    tables = [{row["cause"]: row for row in o.losses_by_cause().to_pylist()} for o in
              outcomes.values()]  # fmt: skip
    causes = dict.fromkeys(cause for table in tables for cause in table)
    lines = []
    for cause in causes:
        cells = []
        for table in tables:
            row = table.get(cause)
            cells += [_NONE] * 3 if row is None else [
                Cell(count(row["num_stops"])),
                Cell(gpu_time(row["lost_work"])),
                Cell(gpu_time(row["waiting_for_replacement"])),
            ]  # fmt: skip
        lines.append(Line(clean(cause), cells))
    under = ["stops", "lost work", "waiting for replacement"]
    return Table("Cause", list(outcomes), lines, under=under)
