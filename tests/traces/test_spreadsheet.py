"""Texts that a spreadsheet would run: none in a CSV file, and all of them back when it is read."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windtunnel.schema import as_jobs
from windtunnel.traces import open_trace, write_csv
from windtunnel.traces.spreadsheet import guarded, guarded_table, unguarded

if TYPE_CHECKING:
    from pathlib import Path

#: What OWASP tells to look for at the beginning of a cell.
STARTS = ("=", "+", "-", "@", "\t", "\r")
texts = st.text(st.sampled_from("'=+-@\t\r a1.e\u202e"), max_size=6)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@given(st.lists(st.none() | texts | st.text(max_size=5), min_size=1, max_size=30))
@example([" \r", "\v=1", "\n@a", "' \r"])
@settings(max_examples=200)
def test_no_cell_runs_and_every_text_comes_back(given_texts: list[str | None]) -> None:
    values = pa.array(given_texts, pa.string())
    cells = guarded(values)
    assert unguarded(cells).to_pylist() == given_texts
    for text, cell in zip(given_texts, cells.to_pylist(), strict=True):
        if text is None:
            assert cell is None
            continue
        rest = text.lstrip(" \t\n\r\f\v")
        blanks = text.removesuffix(rest)
        if rest.startswith(STARTS) or "\t" in blanks or "\r" in blanks:
            assert cell == f"'{text}" or (cell == text and is_number(text))
        elif not text.startswith("'"):
            assert cell == text


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("  @SUM(A1)", "'  @SUM(A1)"),
        ("-1.5e3", "-1.5e3"),
        ("-u7", "'-u7"),
        ("'=x", "''=x"),
        ("'tis", "'tis"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_cells_by_hand(text: str, cell: str) -> None:
    assert guarded(pa.array([text])).to_pylist() == [cell]


def test_tables_keep_their_numbers_and_change_the_names_of_columns() -> None:
    table = pa.table({"=x": ["+y", None], "n": [-1.0, 2.0]})
    found = guarded_table(table)
    assert found.to_pydict() == {"'=x": ["'+y", None], "n": [-1.0, 2.0]}


def test_a_jobs_table_of_formulas_reads_back(tmp_path: Path) -> None:
    names = ["=1+1", "@x", "'=y", "-3", "plain", "\tz"]
    n = len(names)
    jobs = as_jobs(
        {
            "job_id": names,
            "submit_time": [0.0] * n,
            "duration": [1.0] * n,
            "num_gpus": [1.0] * n,
            "user": names,
        }
    )
    write_csv(jobs, tmp_path / "log.csv")
    with (tmp_path / "log.csv").open(encoding="utf-8", newline="") as file:
        cells = [row["user"] for row in csv.DictReader(file)]
    assert cells == ["'=1+1", "'@x", "''=y", "-3", "plain", "'\tz"]
    back = open_trace(tmp_path / "log.csv").jobs
    assert back["user"].to_pylist() == back["job_id"].to_pylist() == names
