"""What a command found, as data: what its page, its terminal, its JSON and its files share.

Whoever finds it fills in tables (`windtunnel.report.sections.Table`) and drawings; the page is
`windtunnel.report.result_page`, the terminal `windtunnel.report.terminal_table`, and
`windtunnel.cli.presenting` chooses. All names in a result are cleaned of what a terminal or a page
would obey.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from windtunnel.report.format import count, duration, plural
from windtunnel.report.names import MAX_TEXT, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from windtunnel.characterize.recorded import Recorded
    from windtunnel.report.sections import Fact, Table
    from windtunnel.traces.trace import Trace


@dataclass(frozen=True)
class Drawing:
    """A picture that is drawn only where it is shown.

    Attributes:
        name: letters, digits and hyphens, unique in the answer.
        title: heading.
        caption: what it shows; says its n.
        draw: returns an Altair chart, one as plain data, or the markup of one that a script of the
            page draws; None = there is nothing to draw.
        label: what screen readers hear; empty = the title.
        optional: where there is nothing to draw, the page says nothing of it.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[], Any]
    label: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Part:
    """One part of an answer.

    Attributes:
        title: heading.
        lead: a sentence that says what the numbers are; empty for none.
        tables: (caption, table) in order.
        drawings: pictures, before the tables.
        tells: lead and terms are answers of their own: a terminal shows them, too.
        facts: numbers to be read first; on the page alone.
        terms: (word, what it means) of words that the tables use.
        points: sentences, one below the other.
        key: what marks in the tables mean, under them; on the page alone.
        is_wide: one picture a row.
        on_paper: the pictures are made for paper; they keep its colours in the dark.
        page_only: a terminal leaves the tables out.
    """

    title: str
    lead: str = ""
    tables: Sequence[tuple[str, Table]] = ()
    drawings: Sequence[Drawing] = ()
    tells: bool = False
    facts: Sequence[Fact] = ()
    terms: Sequence[tuple[str, str]] = ()
    points: Sequence[str] = ()
    key: str = ""
    is_wide: bool = False
    on_paper: bool = False
    page_only: bool = False


@dataclass(frozen=True)
class Result:
    """What a command found.

    Attributes:
        title: what was asked, of what.
        headline: the answer in a sentence or two; empty where the numbers speak for themselves.
        facts: numbers to be read first.
        parts: the rest, in order.
        cautions: what could mislead, one sentence each; they stand under the headline.
        notes: what else a reader must know, one sentence each.
        subtitle: short facts over the title of a page.
        settings: (name, value) of how it was found, beside the command that finds it again.
        wrote: sentences that name further files.
        data: for ``--json``, with stable keys.
        table: makes the table that a file may hold; None = none may.
        chart: makes the Altair chart that a file may hold; None = none may.
        page: command -> the page, where it is not made of the parts.
        text: makes the text that a file of another kind holds.
        error: why what was found is nothing; raised once it is reported.
    """

    title: str
    headline: str = ""
    facts: list[Fact] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    subtitle: list[str] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    wrote: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    table: Callable[[], pa.Table] | None = None
    chart: Callable[[], Any] | None = None
    page: Callable[[str], str] | None = None
    text: Callable[[], str] | None = None
    error: Exception | None = None

    def with_data(self, data: dict[str, Any], cautions: Iterable[str] = ()) -> Result:
        """Return the result with its data for ``--json``, and perhaps more cautions."""
        return replace(self, data=data, cautions=[*self.cautions, *cautions])


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 0) -> Table:
    """Return rows of texts as a table.

    Args:
        columns: headings.
        rows: cells, as many as headings each; the first names the row.
        texts: so many of the columns behind the first hold words, not numbers.
    """
    from windtunnel.report.sections import Cell, Line, Table

    lines = [Line(first, [Cell(cell) for cell in cells]) for first, *cells in rows]
    return Table(columns[0], list(columns[1:]), lines, texts=texts)


def subtitle_of(trace: Trace, *more: str) -> list[str]:
    """Return the short facts over a title: the trace's name, its jobs, and what else matters."""
    return [clean(trace.name), plural(trace.jobs.num_rows, "job"), *more]


def notes_of(trace: Trace, *more: Iterable[str]) -> list[str]:
    """Return notes, those of the trace and what was left out of it behind them, each once."""
    about = trace.metadata
    dropped = [
        f"Of {count(about.rows_read)} records {count(number)} are left out: {reason}."
        for reason, number in about.dropped.items()
        if number
    ]
    sentences = [*(note for notes in more for note in notes), *about.notes, *dropped]
    return [clean(note, MAX_TEXT) for note in dict.fromkeys(sentences)]


def moment(trace: Trace, seconds: float) -> str:
    """Return an instant as people read it: the source's wall clock, or the time since time 0.

    What no calendar has (beyond the year 9999) is given as the time since time 0, too.

    Args:
        trace: whose epoch and zone count.
        seconds: since time 0.
    """
    about = trace.metadata
    since = f"{duration(seconds)} after time 0"
    if about.epoch is None:
        return since
    zone = ZoneInfo(about.zone or "UTC")
    try:
        instant = datetime.fromisoformat(about.epoch) + timedelta(seconds=seconds)
        return f"{instant.astimezone(zone):%Y-%m-%d %H:%M} {clean(about.zone or 'UTC')} time"
    except OverflowError:
        return since


def left_out_notes(recorded: Recorded) -> list[str]:
    """Return which jobs are in no sum of GPU hours, one sentence a reason."""
    found = recorded.left_out.items()
    return [f"In no sum of GPU hours: {plural(jobs, 'job')} {reason}." for reason, jobs in found]
