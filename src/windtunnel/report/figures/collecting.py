"""From traces to the one table of a figure: what is drawn for whom, what is left out, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.population import NONE
from windtunnel.report.format import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from windtunnel.report.figures.sources import Series, Sources

#: Letters of the panels; no figure has more.
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Lacking(Exception):  # noqa: N818 (no error: a trace that a figure is not drawn for)
    """A trace, or all of them, cannot be asked; its text says what is missing."""


@dataclass(frozen=True)
class Answer:
    """What one trace says to one question.

    Attributes:
        table: tidy rows, with ``n`` and ``left_out`` in each; nobody looks at it where n is 0.
        n: what is in them: jobs, tasks, users ... as the figure says.
        left_out: what was asked about and is not in them.
        why: why not, where it is not plain.
        notes: what a reader must know, one sentence each.
    """

    table: pa.Table
    n: int
    left_out: int
    why: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measure:
    """One question that a panel answers.

    Attributes:
        title: what the panel shows.
        ask: trace -> answer; raises `Lacking`.
        unknown: why there is nothing to draw where an answer's n is 0.
    """

    title: str
    ask: Callable[[Series], Answer]
    unknown: str


@dataclass(frozen=True)
class Part:
    """A trace in a panel, for the report.

    Attributes:
        panel: its letter; empty where it is in none.
        title: what the panel shows.
        trace: the trace, or where else the numbers are from.
        n: what is drawn; 0 = nothing; None = the source does not say.
        left_out: what is not.
        why: why it is not drawn, or what was left out.
    """

    panel: str
    title: str
    trace: str
    n: int | None
    left_out: int
    why: str = ""

    @property
    def is_drawn(self) -> bool:
        """Whether there is anything of it in the figure."""
        return bool(self.panel)


@dataclass(frozen=True)
class FigureData:
    """The data of a figure.

    Attributes:
        table: what is drawn, with ``panel`` (a letter), ``title`` (of the panel) and ``trace``;
            None where nothing can be drawn.
        parts: every trace of every panel.
        notes: what a reader must know, one sentence each.
    """

    table: pa.Table | None
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def reason(self) -> str:
        """Why nothing is drawn, in a sentence without its full stop."""
        reasons: dict[str, dict[str, None]] = {}
        for part in self.parts:
            reasons.setdefault(part.why, {})[part.trace] = None
        causes = (f"{', '.join(traces)}: {why}" for why, traces in reasons.items())
        return "; ".join(causes) or "there is no trace"


def across(*measures: Measure) -> Callable[[Sources], FigureData]:
    """Return what collects a figure whose panels are the measures, its series the traces."""
    return lambda sources: _collected((m, s) for m in measures for s in sources.series)


def within(*measures: Measure) -> Callable[[Sources], FigureData]:
    """Return what collects a figure with panels of its own for each trace, one a measure."""
    return lambda sources: _collected(((m, s) for s in sources.series for m in measures), each=True)


def _collected(asked: Iterable[tuple[Measure, Series]], *, each: bool = False) -> FigureData:
    tables: list[Any] = []
    parts: list[Part] = []
    notes: list[str] = []
    panels: list[tuple[str, str]] = []
    for measure, series in asked:
        answer = _answer(measure, series)
        if not answer.n:
            parts.append(Part("", measure.title, series.label, 0, answer.left_out, answer.why))
            continue
        key = (series.label if each else "", measure.title)
        if key not in panels:
            panels.append(key)
        letter = LETTERS[panels.index(key)]
        title = f"{series.label}: {measure.title}" if each else measure.title
        tables.append(labelled(answer.table, panel=letter, title=title, trace=series.label))
        parts.append(
            Part(letter, measure.title, series.label, answer.n, answer.left_out, answer.why)
        )
        notes += [f"{series.label}: {note}" for note in answer.notes]
    return FigureData(stacked(tables), tuple(parts), tuple(dict.fromkeys(notes)))


def _answer(measure: Measure, series: Series) -> Answer:
    """Return the answer; one of n = 0 says what is lacking."""
    try:
        answer = measure.ask(series)
    except Lacking as lacking:
        return Answer(None, 0, 0, str(lacking))
    return answer if answer.n else Answer(None, 0, answer.left_out, measure.unknown)


def joined(data: Sequence[FigureData]) -> FigureData:
    """Return several collections as one figure, panels lettered on."""
    tables: list[Any] = []
    parts: list[Part] = []
    used = 0
    for one in data:
        letters = sorted({part.panel for part in one.parts if part.is_drawn})
        new = {old: LETTERS[used + i] for i, old in enumerate(letters)}
        used += len(letters)
        parts += [
            Part(new.get(p.panel, ""), p.title, p.trace, p.n, p.left_out, p.why) for p in one.parts
        ]
        if one.table is not None:
            tables.append(relettered(one.table, new))
    notes = dict.fromkeys(note for one in data for note in one.notes)
    return FigureData(stacked(tables), tuple(parts), tuple(notes))


def relettered(table: pa.Table, new: Mapping[str, str]) -> pa.Table:
    """Return a figure's table with other letters for its panels."""
    letters = [new[letter] for letter in table["panel"].to_pylist()]
    return with_columns(table, panel=pa.array(letters))


def labelled(table: pa.Table, **constants: str) -> pa.Table:
    """Return a table with columns of one text each in front; a column of the name is replaced."""
    rest = [name for name in table.column_names if name not in constants]
    return with_columns(table, **constants).select([*constants, *rest])


def with_columns(table: pa.Table, **columns: Any) -> pa.Table:
    """Return a table with more columns, or others in their place: arrays, or one value each."""
    for name, value in columns.items():
        is_array = isinstance(value, pa.Array | pa.ChunkedArray)
        column = value if is_array else pa.repeat(value, table.num_rows)
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, column)
        else:
            table = table.append_column(name, column)
    return table


def stacked(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Return tables one below the other, columns that one lacks null; None where there is none."""
    filled = [table for table in tables if table.num_rows]
    return pa.concat_tables(filled, promote_options="default").combine_chunks() if filled else None


def counted(
    table: pa.Table,
    by: str | None = None,
    *,
    keep_none: bool = False,
    lacking: str = "",
    fact: str = "",
) -> Answer:
    """Return a table of `windtunnel.characterize` as an answer.

    Args:
        table: has ``n`` and ``left_out``, the same in all rows, or in all rows of a group.
        by: the column of the groups.
        keep_none: keep the group ``(none)``; else its jobs count as left out.
        lacking: what the jobs of ``(none)`` lack; default: what ``by`` is called.
        fact: what the other jobs lack that are left out, where that is not plain.
    """
    nameless = 0
    if by is not None and not keep_none:
        is_none = pc.equal(table[by], NONE)
        none = table.filter(is_none)
        nameless = _of_groups(none, by, "n") + _of_groups(none, by, "left_out")
        table = table.filter(pc.invert(is_none))
    n, left_out = (_of_groups(table, by, name) for name in ("n", "left_out"))
    reasons = [(nameless, lacking or by), (left_out if fact else 0, fact)]
    why = ", ".join(f"{plural(count, 'job')} without {what}" for count, what in reasons if count)
    return Answer(table, n, left_out + nameless, why)


def _of_groups(table: pa.Table, by: str | None, name: str) -> int:
    """Return the sum over the groups of a count that stands in each of their rows."""
    if not table.num_rows:
        return 0
    if by is None:
        return int(table[name][0].as_py())
    return sum(dict(zip(table[by].to_pylist(), table[name].to_pylist(), strict=True)).values())
