"""How results look in a notebook: a title, a table, sentences; all texts escaped."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def as_html(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    notes: Iterable[str] = (),
) -> str:
    """Return a small table as HTML without styles of its own.

    Args:
        title: above the table.
        header: of the columns; empty = none.
        rows: numbers are shown to four significant digits, None as an empty cell.
        notes: sentences below it.
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(_text(cell))}</td>' for cell in row)}</tr>"
        for row in rows
    )
    below = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return (
        f"<div><p><strong>{html.escape(title)}</strong></p><table>"
        f"{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
        f"{f'<ul>{below}</ul>' if below else ''}</div>"
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"  # noqa: PLR2004 - a wide number
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
