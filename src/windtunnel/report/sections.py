"""The tables of a page as data: rows of cells with text, tooltip, difference and mark.

Nothing here knows HTML; the template draws whatever these functions return.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.quantiles import quantiles
from windtunnel.report import findings, measures
from windtunnel.report.curves import named, size_order
from windtunnel.report.format import (
    UNKNOWN,
    count,
    duration,
    exact_seconds,
    gpu_time,
    size_text,
    times,
)
from windtunnel.report.names import MAX_TEXT, clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.sim.outcome import Outcome

#: Width of a telephone's page, of a character and of the gap before a column, px.
_TELEPHONE, _CHARACTER, _GAP = 358.0, 7.2, 12.0
#: Characters after which a row's name is folded on a telephone.
_FIRST = 16
#: So many runs at most have differences beside the numbers, so many columns of a run are wide.
_FEW_RUNS, _FEW_COLUMNS = 3, 2
#: Virtual clusters that get a row of their own.
TOP_VCS = 15


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        text: what stands there.
        title: the exact value, for the tooltip; empty for none.
        note: a second, smaller line: the difference to the first run.
        verdict: better, worse, neutral, same or unknown: the class the note is drawn in.
        marked: the cell is highlighted.
    """

    text: str
    title: str = ""
    note: str = ""
    verdict: str = "neutral"
    marked: bool = False


def time_cell(seconds: float | None) -> Cell:
    """Return a time span, exact under the pointer."""
    return Cell(duration(seconds), exact_seconds(seconds))


def hours_cell(gpu_seconds: float | None) -> Cell:
    """Return GPU-seconds as GPU hours without the unit, which the heading says."""
    if gpu_seconds is None:
        return Cell(UNKNOWN)
    return Cell(gpu_time(gpu_seconds).removesuffix(" GPU h"), f"{gpu_seconds:,.0f} GPU s")


@dataclass(frozen=True)
class Line:
    """One row of a table: its heading (untrusted text, cleaned), tooltip and cells."""

    label: str
    cells: list[Cell]
    title: str = ""
    group: str = ""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        corner: heading of the first column.
        columns: headings of the columns, or of groups of ``width`` columns where ``under`` is set.
        lines: the rows.
        lead: headings of columns between the first and ``columns``.
        under: headings repeated under each of ``columns``.
        of_runs: the columns are runs, marked with the runs' colours.
        texts: so many of the columns behind the first hold words, set flush left on a terminal.
    """

    corner: str
    columns: list[str]
    lines: list[Line]
    lead: list[str] = field(default_factory=list)
    under: list[str] = field(default_factory=list)
    texts: int = 0
    of_runs: bool = False

    @property
    def has_marks(self) -> bool:
        """Whether any cell is highlighted."""
        return any(cell.marked for line in self.lines for cell in line.cells)

    @property
    def look(self) -> str:
        """How a page sets it: the class of the HTML table."""
        if self.under:
            return "waits" if len(self.under) <= _FEW_COLUMNS else "waits tight"
        if not self.of_runs:
            return "result"
        return "metrics loose" if len(self.columns) <= _FEW_RUNS else "metrics"

    @property
    def is_wide(self) -> bool:
        """Whether it is, by a rough count of its characters, wider than a telephone."""
        heads = [*self.lead, *(self.under * len(self.columns) or self.columns)]
        widths = [len(head) for head in heads]
        for line in self.lines:
            for place, cell in enumerate(line.cells[: len(widths)]):
                widths[place] = max(widths[place], len(cell.text), len(cell.note))
        first = max([len(self.corner), *(len(line.label) for line in self.lines)])
        pixels = _CHARACTER * (min(first, _FIRST) + sum(widths)) + _GAP * len(widths)
        return pixels > _TELEPHONE


def metrics_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return metrics down, runs across, each with its difference to the first run."""
    runs = [outcome.metrics() for outcome in outcomes.values()]
    return measures_table(outcomes, runs, measures.shown(runs))


def short_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return the metrics that a terminal shows, as `metrics_table` does."""
    runs = [outcome.metrics() for outcome in outcomes.values()]
    return measures_table(outcomes, runs, measures.in_short(outcomes.values()))


def measures_table(
    outcomes: Mapping[str, Outcome],
    runs: Sequence[Mapping[str, Any]],
    shown: Sequence[measures.Measure],
) -> Table:
    """Return numbers of runs, a measure a row, each with its difference to the first run's.

    Args:
        outcomes: run name -> outcome.
        runs: the runs' numbers, in order, by the measures' keys.
        shown: the measures.
    """
    lines = []
    for measure in shown:
        cells = []
        for index, run in enumerate(runs):
            value = run.get(measure.key)
            text, title = measure.text(value), measure.exact(value)
            if index == 0:
                cells.append(Cell(text, title))
                continue
            change = measures.difference(measure, runs[0].get(measure.key), value)
            cells.append(Cell(text, title, change.words, change.verdict))
        lines.append(Line(measure.label, cells, measure.doc, measure.group))
    return Table("", [name for name, _ in named(outcomes)], lines, of_runs=True)


def numbers_table(outcomes: Mapping[str, Outcome]) -> pa.Table:
    """Return the metrics of runs that are numbers: ``metric``, ``label``, a column a run."""
    runs = {name: outcome.metrics() for name, outcome in named(outcomes)}
    known = [*measures.shown(list(runs.values())), *measures.own(outcomes.values())]
    known = [measure for measure in known if measure.kind != "word"]
    columns: dict[str, Any] = {
        "metric": [measure.key for measure in known],
        "label": [measure.label for measure in known],
    }
    for name, run in runs.items():
        values = [run.get(measure.key) for measure in known]
        columns[name] = pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.table(columns)


def sizes_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return waits by job size, runs across; much longer waits than in the first run are marked."""
    tables = [
        {row["size"]: row for row in outcome.by_size().to_pylist()} for outcome in outcomes.values()
    ]
    sizes = size_order({size for table in tables for size in table})
    lines = [_wait_line(size_text(size), [table.get(size) for table in tables]) for size in sizes]
    return _wait_table("GPUs of the job", outcomes, lines)


def vcs_table(outcomes: Mapping[str, Outcome], top: int = TOP_VCS) -> Table | None:
    """Return waits by virtual cluster: the ``top`` by GPU time, and all others in one row.

    GPU time is the largest of any run. Returns None where the jobs name no virtual cluster.
    """
    tables = [
        {row["vc"]: row for row in outcome.by_vc().to_pylist()} for outcome in outcomes.values()
    ]
    held: dict[str, float] = {}
    for table in tables:
        for vc, row in table.items():
            held[vc] = max(held.get(vc, 0.0), row["gpu_time"])
    if all(run.jobs["vc"].null_count == run.jobs.num_rows for run in outcomes.values()):
        return None
    order = sorted(held, key=lambda vc: (-held[vc], vc))
    shown, rest = order[:top], order[top:]
    lines = [_wait_line(clean(vc), [table.get(vc) for table in tables]) for vc in shown]
    if rest:
        rows = [_others(outcome, set(shown)) for outcome in outcomes.values()]
        lines.append(_wait_line(f"{count(len(rest))} others", rows))
    return _wait_table("Virtual cluster", outcomes, lines)


def _others(outcome: Outcome, shown: set[str]) -> dict[str, Any]:
    """Return the row of all virtual clusters that are not shown, from the jobs themselves."""
    names = outcome.jobs["vc"].fill_null("(none)").to_pylist()
    mask = np.array([name not in shown for name in names], dtype=bool)
    waits = outcome.table["wait"].filter(mask)
    known = np.asarray(pc.drop_null(waits).to_numpy(), dtype=np.float64)
    held = outcome.num_gpus[mask] * outcome.flight.run_time[mask]
    return {
        "num_jobs": int(mask.sum()),
        "num_started": len(known),
        "avg_wait": float(known.mean()) if len(known) else None,
        "p90_wait": float(quantiles(known, 0.9)) if len(known) else None,
        "gpu_time": float(held.sum()),
    }


def _wait_table(corner: str, outcomes: Mapping[str, Outcome], lines: list[Line]) -> Table:
    names = [name for name, _ in named(outcomes)]
    return Table(corner, names, lines, lead=["Jobs", "GPU hours"], under=["mean wait", "P90"])


def _wait_line(label: str, rows: Sequence[Mapping[str, Any] | None]) -> Line:
    """Return the row of one group of jobs: lead columns, then mean and P90 of each run."""
    first = rows[0]
    any_row = next(row for row in rows if row is not None)
    cells = [Cell(count(any_row["num_jobs"])), hours_cell(any_row["gpu_time"])]
    for index, row in enumerate(rows):
        for key in ("avg_wait", "p90_wait"):
            value = row[key] if row else None
            base = first[key] if first else None
            if index == 0 or value is None:
                cells.append(time_cell(value))
            else:
                cells.append(_compared(base, value))
    return Line(label, cells)


def _compared(base: float | None, wait: float) -> Cell:
    marked = findings.much_longer(base, wait)
    note = ""
    if marked and base is not None:
        note = f"{times(wait / base)} as long" if base >= 1 else f"from {duration(base)}"
    verdict = "worse" if marked else "neutral"
    return Cell(duration(wait), exact_seconds(wait), note, verdict, marked)


def settings_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return the exact settings of every run: settings down, runs across."""
    keys = dict.fromkeys(key for outcome in outcomes.values() for key in outcome.settings)
    lines = [
        Line(
            clean(key),
            [
                Cell(setting_text(outcome.settings[key]) if key in outcome.settings else UNKNOWN)
                for outcome in outcomes.values()
            ],
        )
        for key in keys
    ]
    columns = [name for name, _ in named(outcomes)]
    return Table("Setting", columns, lines, texts=len(columns), of_runs=True)


def setting_text(value: Any) -> str:
    """Return the value of a setting for people, made harmless."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return parameters_text(value)
    return clean(value, 200)


def parameters_text(given: Mapping[str, Any]) -> str:
    """Return a policy's parameters for people: those that are set, long lists as their lengths."""
    words = [
        f"{name} {len(value)} given" if isinstance(value, list | tuple) else f"{name} {value}"
        for name, value in given.items()
        if value is not None
    ]
    return clean(", ".join(words), MAX_TEXT)


@dataclass(frozen=True)
class Fact:
    """One fact of the trace or the cluster: label, text, tooltip, and what was left out."""

    label: str
    text: str
    title: str = ""
    note: str = ""
