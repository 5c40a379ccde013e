"""Delimited text: what comes in, where it stands, and how it is cast."""

from __future__ import annotations

import gzip
import io
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.errors import SpecError, TraceError
from windtunnel.schema import JOBS
from windtunnel.traces import records, tabular
from windtunnel.traces.native import read_native
from windtunnel.traces.source import read_head, short_name
from windtunnel.traces.tabular import parse_text, read_text

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.tabular import TextTable


def parsed(text: str) -> TextTable:
    return parse_text(text.encode(), "t.csv")


def test_cells_are_text_and_empty_cells_null() -> None:
    text = parsed('a,b\n1,x\n,""\n')
    assert text.table.to_pydict() == {"a": ["1", None], "b": ["x", ""]}
    assert list(text.lines) == [2, 3]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark(end: str, mark: str) -> None:
    text = parsed(mark + end.join(["a,b", "1,2", "", "3,4", ""]))
    assert text.table.to_pydict() == {"a": ["1", "3"], "b": ["2", "4"]}
    assert list(text.lines) == [2, 4]


def test_blank_lines_count_but_are_no_records() -> None:
    text = parsed("\n\na,b\n\n1,2\n\n\n3,4\n\n")
    assert list(text.lines) == [5, 8]


def test_line_ends_inside_quotes_belong_to_the_record() -> None:
    text = parsed('a,b\n1,"x\ny"\n\n2,"say ""hi"""\n')
    assert text.table["b"].to_pylist() == ["x\ny", 'say "hi"']
    assert list(text.lines) == [2, 5]


def test_header_names_are_trimmed() -> None:
    assert parsed("a , b\n1,2\n").table.column_names == ["a", "b"]


def test_gzip_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(gzip.compress(b"a\n1\n"))
    assert read_text(path).table.to_pydict() == {"a": ["1"]}
    assert read_head(path) == b"a\n1\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, pack: type[bytes]) -> None:
    stream = io.TextIOWrapper(io.BytesIO(pack(b"a\n1\n")))
    monkeypatch.setattr(sys, "stdin", stream)
    assert read_text("-").table.to_pydict() == {"a": ["1"]}
    assert not stream.buffer.closed


def test_casts() -> None:
    text = parsed("f,i,t,w\n 1.5 ,8.0,2017-10-09 07:01:55,Pass\n,,,\n1e3,2,1970-01-01,Failed\n")
    assert text.floats("f").to_pylist() == [1.5, None, 1000.0]
    assert text.integers("i").to_pylist() == [8, None, 2]
    clock = text.clock("t")
    assert clock[0] == 1507532515.0
    assert np.isnan(clock[1])
    assert clock[2] == 0.0
    words = {"Pass": "completed", "Failed": "failed"}
    assert text.mapped("w", words).to_pylist() == ["completed", None, "failed"]


@pytest.mark.parametrize(
    ("method", "cell"),
    [
        *(("floats", "1,5"), ("floats", "ten"), ("floats", "0x10"), ("clock", "9 am")),
        *(("integers", "1.5"), ("integers", "0x10"), ("integers", "0X1F")),
        *(("finite", "inf"), ("finite", "-1e400")),
    ],
)
def test_a_bad_cell_is_named_by_line_and_column(method: str, cell: str) -> None:
    text = parsed(f'a,b\n\n,1\n,3\n"{cell}",4\n7,5\n')
    with pytest.raises(TraceError) as caught:
        getattr(text, method)("a")
    assert (caught.value.row, caught.value.column, caught.value.value) == (5, "a", cell)
    assert str(caught.value).startswith("t.csv, line 5, column 'a': found ")


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(TraceError, match=r"line 3.*'Psas'.*expected one of Pass, Failed"):
        parsed("w\nPass\nPsas\n").mapped("w", {"Pass": "", "Failed": ""})


def test_a_missing_column_suggests_the_nearest() -> None:
    with pytest.raises(TraceError, match=r"Did you mean 'submit_tme'"):
        parsed("submit_tme,b\n1,2\n").floats("submit_time")


@pytest.mark.parametrize(
    ("text", "row", "found"),
    [
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", 3, 2),
        ("a,b,c\n1,2,3\n\n4,5,6,7\n", 4, 4),
        ('a,b,c\n1,"2,\n2",3\n4,"5,5"\n1,2,3\n', 4, 2),
        ("a,b,c\r\n1,2,3\r\n4\r\n1,2,3\r\n", 3, 1),
    ],
)
def test_a_wrong_number_of_fields_is_named(text: str, row: int, found: int) -> None:
    with pytest.raises(TraceError, match=f"line {row}: expected 3 fields, found {found}"):
        parsed(text)


def test_many_bad_rows_are_counted() -> None:
    with pytest.raises(TraceError, match=r"2 rows differ from the header"):
        parsed("a,b\n1\n2\n3,4\n")


def test_a_cut_last_line_says_so() -> None:
    with pytest.raises(TraceError, match=r"line 3: expected 3 fields, found 2.*cut"):
        parsed("a,b,c\n1,2,3\n4,5")


@pytest.mark.parametrize(
    "text", ['a,b\n1,"x\n2,y\n3,z\n', 'a,b\n1,x\n3,"z', 'a,b\n1,x\n3,"z\n', 'a,b\n\n"1,x\n3,z\n']
)
def test_quotes_that_swallow_rows_are_refused(text: str) -> None:
    with pytest.raises(TraceError, match=r"quote"):
        parsed(text)


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_another_delimiter_is_recognised(mark: str, word: str) -> None:
    text = f"a{mark}b\n1{mark}2\n"
    with pytest.raises(TraceError, match=rf"{word}: pass delimiter="):
        parsed(text)
    table = parse_text(text.encode(), "t", delimiter=mark).table
    assert table.to_pydict() == {"a": ["1"], "b": ["2"]}


def test_a_delimiter_is_one_character() -> None:
    with pytest.raises(SpecError, match=r"one ASCII character"):
        parse_text(b"a\n1\n", "t", delimiter=";;")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "column|content|row"),
        (b"\n \r\n", "only blank lines"),
        (b"a,b\n", "a header line and no rows"),
        (b"a,b", "a header line and no rows"),
        (b"a,b\n\n\n", "a header line and no rows"),
        (b"a,a\n1,2\n", "each column name once"),
        (b"a\n1\n\xe9t\xe9\n", "line 3.*UTF-8 text.*Byte 0xe9"),
        (b"\xe9,b\n1,2\n", "line 1.*UTF-8 text"),
        (b"a,b\n1,2\n3,\x00\n", "line 3.*NUL"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
    ],
)
def test_what_is_no_table_says_why(data: bytes, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        parse_text(data, "t.csv")


def test_a_huge_field_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "MAX_LINE", 1000)
    with pytest.raises(TraceError, match=r"line 3: found .* expected a line of at most 1,000"):
        parse_text(b"a,b\n1,2\n" + b"x" * 5000 + b",1\n3,4\n", "t.csv")


@pytest.mark.parametrize("blank", ["", "\n"])
def test_a_quote_inside_a_plain_field_is_text(blank: str) -> None:
    text = parsed(f'a,b\n{blank}1,5"\n2,x\n3,7"\n')
    assert text.table["b"].to_pylist() == ['5"', "x", '7"']
    assert list(text.lines) == [n + len(blank) for n in (2, 3, 4)]


def test_two_stray_quotes_do_not_swallow_the_rows_between() -> None:
    text = b'job_id,num_gpus\n"a,1\nb,2\n"c,3\nd,4\n'
    with pytest.raises(TraceError, match="behind a closing quote") as error:
        parse_text(text, "t.csv")
    assert error.value.row == 2
    # Text over several lines that is quoted as a whole is a field like any other.
    kept = parse_text(b'job_id,num_gpus\n"a\nb",1\nc,2\n', "t.csv").table
    assert kept["job_id"].to_pylist() == ["a\nb", "c"]


def test_thousands_of_columns_take_no_square_of_time(tmp_path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(15_000))
    path = tmp_path / "wide.csv"
    path.write_text(f"job_id,submit_time,duration,num_gpus,{names}\na,0,1,1{',x' * 15_000}\n")
    began = time.process_time()
    assert read_native(path).jobs.num_columns == len(JOBS.names) + 15_000
    assert time.process_time() - began < 5.0
    path.write_text(names + "," + names.replace("c", "d") + "\n")
    with pytest.raises(TraceError, match=r"line 1.*30,000 columns.*at most 20,000"):
        read_native(path)


def test_unquoted_text_keeps_its_quotes() -> None:
    table = parse_text(b'a|b\n5" disk|"x\n', "t", delimiter="|", quoted=False).table
    assert table.to_pydict() == {"a": ['5" disk'], "b": ['"x']}


CELLS = st.text(st.sampled_from('ab1,"\n\r ;é'), max_size=6)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12),
    blanks=st.lists(st.integers(0, 2), min_size=12, max_size=12),
    chunk=st.sampled_from([1, 3, 7, 2**24]),
)
def test_lines_and_counts_are_exact_for_any_quoting(
    rows: list[tuple[str, str]], blanks: list[int], chunk: int
) -> None:
    """Any cells, written by the rules, come back whole and with the lines they were written on."""
    # A lone CR in a cell counts as a line end for an editor as it does for us.
    text, lines, line = "a,b\n", [], 2
    for (first, second), blank in zip(rows, blanks, strict=False):
        record = ",".join('"' + cell.replace('"', '""') + '"' for cell in (first, second))
        text += "\n" * blank + record + "\n"
        lines.append(line + blank)
        line += blank + len(record.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    size = records._CHUNK
    records._CHUNK = chunk
    try:
        table = parsed(text)
        counts = records.field_counts(text.encode(), ",", quoted=True)
    finally:
        records._CHUNK = size
    assert table.table.to_pydict() == {"a": [r[0] for r in rows], "b": [r[1] for r in rows]}
    assert list(table.lines) == lines
    assert set(counts) == {2}


def test_names_of_traces_come_from_paths() -> None:
    assert [short_name(p) for p in ("a/b.csv.gz", "-", "x.swf", "noext")] == [
        "b",
        "stdin",
        "x",
        "noext",
    ]
