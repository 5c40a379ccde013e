"""Tables and facts for a terminal, as rich renderables. Nothing here prints; all text stays text.

No number is ever cut or folded: a table that is wider than the terminal is given as several, each
with the names of its rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from windtunnel.report.names import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from windtunnel.report.sections import Fact, Table

#: Verdict -> style; arrows and words carry the meaning where there is no colour.
_STYLES = {"better": "green", "worse": "red"}
_LONG = 2000
#: Names of rows, and texts, up to this length are not folded where they fit.
_NAME = 40
#: What a fold leaves of a text at least.
_LEAST = 12
_INDENT = "  "


def facts_table(facts: Iterable[Fact]) -> Any:
    """Return numbers to be read first: name, value, note."""
    from rich.table import Table as RichTable

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim", overflow="fold")
    for fact in facts:
        grid.add_row(_text(fact.label), _text(fact.text), _text(fact.note))
    return grid


def rich_tables(data: Table, width: int) -> Iterator[Any]:
    """Yield a table as one that fits the width, or as several; notes of cells stand under them.

    Args:
        data: the table.
        width: of the terminal, characters.
    """
    part: list[int] = []
    for place in range(len(_headings(data))):
        if part and _least(_rich_table(data, [*part, place])) > width:
            yield _fitted(data, part, width)
            part = []
        part.append(place)
    yield _fitted(data, part, width)


def _fitted(data: Table, places: Sequence[int], width: int) -> Any:
    """Return a table whose numbers keep their width where headings and texts have to be folded."""
    from rich.console import Console
    from rich.measure import Measurement

    table, console = _rich_table(data, places), Console(width=10 * width)
    if Measurement.get(console, console.options, table).maximum > width:
        spare = max(width - _least(table), 0)
        names_width = min(int(table.columns[0].min_width or 0) + spare, _NAME)
        table = _rich_table(data, places, names_width)
        for column in table.columns:
            if column.justify == "right" or width < _least(table) + _LEAST:
                column.width = column.min_width
    return table


def _folded(label: str, width: int) -> list[str]:
    """Return a name in lines of so many characters, folded where its parts end.

    >>> _folded("gavel:fifo:round=3600", 12)
    ['gavel:fifo:', 'round=3600']
    """
    lines = [""]
    for piece in re.findall(r"[^:=,\s]*[:=,\s]?", label):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _least(table: Any) -> int:
    """Return how narrow a table can be without cutting a number, gaps between columns included."""
    widths = [int(column.min_width or 0) for column in table.columns]
    return sum(widths) + 2 * len(widths)


def _headings(data: Table) -> list[tuple[str, str]]:
    """Return (heading, what stands under it) of every column behind the first."""
    under = data.under or [""]
    return [(head, "") for head in data.lead] + [(n, u) for n in data.columns for u in under]


def _rich_table(data: Table, places: Sequence[int], names_width: int = _NAME) -> Any:
    """Return some columns of a table; the names of its rows are folded to ``names_width``."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    labels = [_text(line.label) for line in data.lines]
    corner = _text(data.corner)
    least = max(_width(labels, _LEAST), _words(corner, _LEAST))
    table.add_column(corner, overflow="fold", max_width=_NAME, min_width=least)
    headings = _headings(data)
    for place in places:
        name, under = headings[place]
        heading = _text(name)
        if under:
            heading.append(f"\n{under}", style="dim")
        cells = [line.cells[place] for line in data.lines if place < len(line.cells)]
        texts = [_text(cell.text) for cell in cells]
        if place < data.texts:
            least = max(_width(texts, _LEAST), _words(heading, _LEAST))
            table.add_column(heading, overflow="fold", min_width=least)
        else:  # of headings and notes whole words are folded, of a number nothing
            words = [heading, *(_text(cell.note) for cell in cells)]
            least = max([_width(texts), *(_words(text, _NAME) for text in words)])
            table.add_column(heading, justify="right", overflow="fold", min_width=least)
    group = ""
    for line in data.lines:
        if line.group and line.group != group:
            group = line.group
            table.add_row(_text(group, "bold"))
        front = _INDENT if line.group else ""
        names = _folded(clean(line.label, _LONG) if line.label else "", names_width - len(front))
        label = Text("\n").join(_text(front + name, keep=True) for name in names)
        cells = [line.cells[place] for place in places if place < len(line.cells)]
        table.add_row(label, *map(_cell, cells))
    return table


def _width(texts: Iterable[Any], most: int = 1000) -> int:
    """Return the width of the widest text, at most so much."""
    return min(most, max((text.cell_len for text in texts), default=0))


def _words(text: Any, most: int) -> int:
    """Return the width of a text's longest word, at most so much."""
    return min(most, max(map(len, text.plain.split()), default=0))


def _cell(cell: Any) -> Any:
    text = _text(cell.text)
    if cell.note:
        mark = "! " if cell.marked else ""
        style = "red" if cell.marked else _STYLES.get(cell.verdict, "dim")
        text.append(f"\n{mark}{clean(cell.note, _LONG)}", style=style)
    return text


def _text(text: str, style: str = "", *, keep: bool = False) -> Any:
    """Return untrusted text as a harmless rich text; ``keep`` its spaces in front."""
    from rich.text import Text

    front = text[: len(text) - len(text.lstrip())] if keep else ""
    return Text(front + (clean(text, _LONG) if text else ""), style=style)
