"""Tables in a terminal: the same numbers, whole at any width, and names that can do nothing."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from windtunnel.report import sections
from windtunnel.report.latex import escaped, latex
from windtunnel.report.result import table_of
from windtunnel.report.terminal_table import facts_table, rich_tables

if TYPE_CHECKING:
    from windtunnel.report.sections import Table
    from windtunnel.sim.outcome import Outcome


def _shown(table: Table, width: int = 140) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None)
    for piece in rich_tables(table, width):
        console.print(piece)
    return file.getvalue()


def test_comparison_shows_differences_in_words(runs: dict[str, Outcome]) -> None:
    text = _shown(sections.short_table(runs))
    for word in ("Completion time, mean", "better", "worse", "srtf"):
        assert word in text


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_no_number_is_cut_at_any_width(runs: dict[str, Outcome], width: int) -> None:
    for table in (sections.short_table(runs), sections.sizes_table(runs)):
        text = _shown(table, width)
        assert max(map(len, text.splitlines())) <= width
        assert "\u2026" not in text
        lines = [line for line in text.splitlines() if line.strip()]
        cells = {cell for line in lines for cell in re.split(r"\s{2,}", line.strip())}
        words = " ".join(text.split())
        for line in table.lines:
            for cell in line.cells:
                assert cell.text in cells or cell.text in words


def test_a_table_too_wide_comes_as_several_with_its_names() -> None:
    columns = ["job", *(f"column {k}" for k in range(12))]
    table = table_of(columns, [["name", *(f"{10**6 + k:,}" for k in range(12))]])
    pieces = list(rich_tables(table, 60))
    assert len(pieces) > 1
    text = _shown(table, 60)
    assert all(f"{10**6 + k:,}" in text for k in range(12))
    assert text.count("name") == len(pieces)
    assert len(list(rich_tables(table, 400))) == 1


def test_texts_are_folded_before_numbers_are_parted() -> None:
    about = "a long story about why a job waited, which may well be folded"
    table = table_of(["job", "why", "s"], [["llama", about, "1,234,567.89"]], texts=1)
    assert len(list(rich_tables(table, 60))) == 1
    assert "1,234,567.89" in _shown(table, 60)


def test_sizes_mark_starving_gangs(runs: dict[str, Outcome]) -> None:
    text = _shown(sections.sizes_table(runs))
    assert "! 4.0\u00d7 as long" in text
    assert "P90" in text


def test_hostile_names_do_nothing(hostile: dict[str, Outcome]) -> None:
    for make in (sections.short_table, sections.sizes_table):
        text = _shown(make(hostile), width=400)
        assert not set(text) & set("\x00\x07\x1b\r\u202e\u2066\u200b")
    assert "[red]x[/red]" in _shown(table_of(["[red]x[/red]\x1b[2J"], []))


def test_degenerate_runs(idle: Outcome, empty: Outcome) -> None:
    for run in (idle, empty):
        both = {"a": run, "b": run}
        _shown(sections.short_table({"a": run}))
        _shown(sections.short_table(both))
        _shown(sections.sizes_table(both))
    facts_table([])


def test_latex_has_a_row_a_metric_and_escapes(runs: dict[str, Outcome]) -> None:
    table = sections.short_table({"fifo": runs["fifo"], "a_b & 50 %": runs["srtf"]})
    text = latex(table, "x_y")
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 1
    assert r"a\_b \& 50 \%" in text
    assert r"\caption{x\_y}" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) >= len(table.lines) + 1
    for row in rows:
        if not row.startswith(r"\multicolumn"):
            assert len(re.findall(r"(?<!\\)&", row)) == 2
    assert not re.search(r"(?<!\\)%", text)
    # What LaTeX's usual fonts have other characters for; compiled by hand with pdfTeX.
    assert escaped('< 1 s | "x" 5 m\u00b2') == r"$<$ 1 s $\vert$ ''x'' 5 m$^2$"


def test_importing_reports_loads_nothing_heavy() -> None:
    code = (
        "import sys; import windtunnel.report, windtunnel.report.terminal_table; "
        "print([m for m in ('altair', 'vl_convert', 'jinja2', 'ibis', 'duckdb', 'rich') "
        "if m in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.strip() == "[]"
