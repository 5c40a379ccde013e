"""A described trace on a terminal: short, whole, and never wider than the screen."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from described_traces import trace_of
from rich.console import Console

from windtunnel.characterize.states import shares
from windtunnel.report import summary_rows
from windtunnel.report.describe_result import describe_result
from windtunnel.report.description import describe_trace, in_a_sentence
from windtunnel.report.terminal_table import rich_tables
from windtunnel.traces.open import open_trace

if TYPE_CHECKING:
    from windtunnel.report.description import Description
    from windtunnel.report.sections import Table


def printed(table: Table, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    for piece in rich_tables(table, width):
        console.print(piece)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def tables_of(found: Description, title: str = "", *, whole: bool) -> list[Table]:
    parts = describe_result(found, whole=whole).parts
    return [table for part in parts if part.title.startswith(title) for _, table in part.tables]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("whole", [False, True])
def test_tables_fit_the_screen_without_a_wrapped_number(
    full: Description, width: int, *, whole: bool
) -> None:
    for table in tables_of(full, whole=whole):
        lines = printed(table, width).splitlines()
        assert max(map(len, lines)) <= width
    (headlines,) = tables_of(full, "Headline", whole=whole)
    lines = [line.strip() for line in printed(headlines, width).splitlines()]
    filled = [line for line in lines if line]
    assert len(filled) == len({*filled})  # no line is the rest of another
    assert len(filled) == 2 + len(headlines.lines) + len({line.group for line in headlines.lines})


def test_the_whole_row_names_the_columns_of_the_file(full: Description) -> None:
    (table,) = tables_of(full, "The cluster", whole=True)
    text = printed(table)
    assert all(column in text for column in full.summary.row if column != "id")


def test_published_numbers_stand_under_their_own_heading(full: Description) -> None:
    (table,) = tables_of(full, "Headline", whole=False)
    lines = printed(table).splitlines()
    assert lines[0].split() == ["this", "trace", "n", "PAI,", "published"]
    (line,) = [line for line in lines if "gangs" in line]
    assert line.split()[-4:] == ["%", "11", "85", "%"]


def test_left_out_has_a_column_where_anything_was(bare: Description) -> None:
    (table,) = tables_of(bare, "Headline", whole=True)
    assert "left out" in printed(table).splitlines()[0]


def test_coarse_and_folded_shares_add_up_to_the_same() -> None:
    jobs = open_trace("synthetic:kalos", jobs=2000, cpu_jobs=True).jobs
    for by, shorter in (
        ("num_gpus", summary_rows.coarse),
        ("workload", lambda rows: summary_rows.folded(rows, "workload", 2)),
    ):
        rows = shares(jobs, by).to_pylist()
        fewer = shorter(rows)
        assert len(fewer) < len(rows)
        for key in ("num_jobs", "job_share", "gpu_time", "gpu_time_share"):
            whole = sum(row[key] or 0 for row in rows)
            assert sum(row[key] for row in fewer) == pytest.approx(whole, rel=1e-12)


def test_rows_are_folded_only_where_that_saves_one() -> None:
    rows = [{"vc": str(i), **dict.fromkeys(("num_jobs", "gpu_time"), i)} for i in range(4)]
    filled = [{**row, "job_share": 0.1, "gpu_time_share": 0.1} for row in rows]
    assert summary_rows.folded(filled, "vc", 3) == filled
    (first, rest) = summary_rows.folded(filled, "vc", 1)
    assert (first["vc"], rest["vc"], rest["num_jobs"]) == ("0", "3 others", 6)


def test_a_sentence_tells_what_the_trace_tells(full: Description, bare: Description) -> None:
    assert in_a_sentence(full) == (
        "10 jobs of 4 users in 1 h 30 m held 325\u00a0GPU\u00a0h on 64 GPUs. "
        "Half of them ran for 5 h 30 m or less, half waited for 4 m 30 s or less."
    )
    assert in_a_sentence(bare) == (
        "3 jobs in 2 s held 0.01\u00a0GPU\u00a0h. Half of them ran for 15 s or less."
    )


def test_a_job_of_which_nothing_is_known_is_described() -> None:
    found = describe_trace(trace_of({"submit_time": [0.0], "duration": [None], "num_gpus": [None]}))
    for whole in (False, True):
        for table in tables_of(found, whole=whole):
            assert "nan" not in printed(table)
        (lacking,) = (
            part for part in describe_result(found, whole=whole).parts if "Cannot" in part.title
        )
        assert lacking.points
    assert in_a_sentence(found) == "1 job."
