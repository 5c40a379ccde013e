"""Tables in a terminal: the same numbers, and no name that could do anything there."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console

from windtunnel.characterize import overview
from windtunnel.report import terminal

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome


def _shown(table: Any, width: int = 140) -> str:
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(table)
    return file.getvalue()


def test_comparison_shows_differences_in_words(runs: dict[str, Outcome]) -> None:
    text = _shown(terminal.comparison_table(runs, title="Made up"))
    assert "Made up" in text
    assert "Completion time, mean" in text
    assert "better" in text
    assert "worse" in text
    assert "srtf" in text


def test_outcome_and_overview(runs: dict[str, Outcome], single: Outcome) -> None:
    assert "1 m 40 s" in _shown(terminal.outcome_table(single))
    text = _shown(terminal.overview_table(overview(runs["fifo"].jobs), "made-up"))
    assert "n = 400" in text
    assert "not recorded" in text


def test_sizes_mark_starving_gangs_and_shrink_with_many_runs(runs: dict[str, Outcome]) -> None:
    text = _shown(terminal.size_table(runs))
    assert "! 4.0\u00d7 as long" in text
    assert "P90" not in text
    few = {name: runs[name] for name in ("fifo", "srtf")}
    assert "P90" in _shown(terminal.size_table(few))


def test_hostile_names_do_nothing(hostile: dict[str, Outcome]) -> None:
    for make in (terminal.comparison_table, terminal.size_table):
        text = _shown(make(hostile), width=400)
        assert not set(text) & set("\x00\x07\x1b\r\u202e\u2066\u200b")
    title = _shown(terminal.outcome_table(next(iter(hostile.values())), "[red]x[/red]\x1b[2J"))
    assert "[red]x[/red]" in title


def test_degenerate_runs(idle: Outcome, empty: Outcome) -> None:
    for run in (idle, empty):
        both = {"a": run, "b": run}
        _shown(terminal.outcome_table(run))
        _shown(terminal.comparison_table(both))
        _shown(terminal.size_table(both))
        _shown(terminal.overview_table(overview(run.jobs)))


def test_importing_reports_loads_nothing_heavy() -> None:
    code = (
        "import sys; import windtunnel.report, windtunnel.report.terminal; "
        "print([m for m in ('altair', 'vl_convert', 'jinja2', 'ibis', 'duckdb', 'rich') "
        "if m in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.strip() == "[]"
