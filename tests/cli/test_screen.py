"""Tables on narrow screens."""

from __future__ import annotations

import io

from rich.console import Console

from windtunnel.report.result import table_of
from windtunnel.report.terminal_table import rich_tables


def shown(width: int) -> str:
    out = io.StringIO()
    headings = ["Model of the job", "Why it waited so long", "Seconds of waiting, mean", "Jobs"]
    rows = [["llama/A100", "resources, then quota, then its turn", "1,234,567.89", "12,345"]]
    rows += [["", "", "", "7"]]
    table = table_of(headings, [tuple(row) for row in rows], texts=1)
    Console(file=out, width=width).print(*rich_tables(table, width))
    return out.getvalue()


def test_numbers_and_names_stay_whole_where_headings_are_folded() -> None:
    for width in (60, 80, 120):
        printed = shown(width)
        assert max(map(len, printed.splitlines())) <= width
        assert all(text in printed for text in ("llama/A100", "1,234,567.89", "12,345"))
        assert "\u2026" not in printed


def test_an_empty_cell_is_empty() -> None:
    assert "unnamed" not in shown(80)
