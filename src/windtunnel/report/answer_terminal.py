"""An answer for a terminal, as rich renderables. Nothing here prints; every text stays text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.names import clean

if TYPE_CHECKING:
    from windtunnel.report.answer import Answer
    from windtunnel.report.sections import Table

_STYLES = {"better": "green", "worse": "red"}
_LONG = 2000


def facts_table(answer: Answer) -> Any:
    """Return the numbers to be read first: name, value, note."""
    from rich.table import Table as RichTable

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim", overflow="fold")
    for fact in answer.facts:
        grid.add_row(_text(fact.label), _text(fact.text), _text(fact.note))
    return grid


def rich_table(data: Table) -> Any:
    """Return a table of an answer; notes of cells stand under them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column(_text(data.corner), overflow="fold", max_width=36)
    for name in (*data.lead, *data.columns):
        table.add_column(_text(name), justify="right")
    group = ""
    for line in data.lines:
        if line.group and line.group != group:
            group = line.group
            heading = _text(group)
            heading.stylize("bold")
            table.add_row(heading)
        cells = [_text(line.label)]
        for cell in line.cells:
            text = _text(cell.text)
            if cell.note:
                note = clean(cell.note, _LONG)
                text.append(f"\n{note}", style=_STYLES.get(cell.verdict, "dim"))
            cells.append(text)
        table.add_row(*cells)
    return table


def _text(text: str) -> Any:
    from rich.text import Text

    return Text(clean(text, _LONG) if text else "")
