"""How the raw PAI trace keeps and finds long columns."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.traces import open_trace
from windtunnel.traces.pai import spool
from windtunnel.traces.pai.joins import Hashes
from windtunnel.traces.pai.spool import Codes, Growing

sys.path.insert(0, str(Path(__file__).parent))  # tests are not a package

from pai_tables import GOOD, pack, write

TABLE = "pai_instance_table"
ROWS = 5_000
#: More than a thing or two comes from the second pass in pieces; every seventh text is unknown.
LINES = [
    f"j1,worker,{f'i{n}' if n % 7 else ''},w{n},id{n % 11},Terminated,110.0,390.0,m1"
    for n in range(ROWS)
]
IDS = {f"w{n}": (f"i{n}" if n % 7 else None, f"id{n % 11}") for n in range(ROWS)}


@pytest.mark.parametrize("ending", ["", ".csv.gz", ".tar.gz"])
def test_columns_that_few_ask_for_come_from_a_second_pass(tmp_path: Path, ending: str) -> None:
    folder = write(tmp_path / "pai", {**GOOD, TABLE: LINES})
    if ending:
        pack(folder, ending)
    tasks = open_trace(folder).tasks
    wanted = tasks.select("task_id", "inst_name", "inst_id").to_pyarrow().to_pylist()
    assert {r["task_id"]: (r["inst_name"], r["inst_id"]) for r in wanted} == IDS
    (row,) = tasks.filter(tasks.inst_name == "i4321").to_pyarrow().to_pylist()
    assert (row["task_id"], row["inst_id"]) == ("w4321", "id9")
    assert tasks.inst_name.count().to_pyarrow().as_py() == sum(1 for n in range(ROWS) if n % 7)


def test_a_table_that_changed_is_not_read_a_second_time(tmp_path: Path) -> None:
    folder = write(tmp_path / "pai", {**GOOD, TABLE: LINES})
    tasks = open_trace(folder).tasks
    write(folder, {TABLE: LINES[::-1]})
    os.utime(folder / f"{TABLE}.csv", ns=(1, 1))
    assert tasks.count().to_pyarrow().as_py() == ROWS
    with pytest.raises(Exception, match=r"pai_instance_table.csv: expected the file that was open"):
        tasks.select("inst_name").to_pyarrow()
    (folder / f"{TABLE}.csv").unlink()
    with pytest.raises(Exception, match=r"pai_instance_table.csv: expected a file that exists"):
        tasks.select("inst_id").to_pyarrow()
    assert tasks.node.nunique().to_pyarrow().as_py() == 1


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 20) | st.just(2**64 - 1), min_size=1),
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40)),
)
def test_a_hash_is_found_where_it_stands(there: list[int], others: list[int]) -> None:
    ordered = np.sort(np.array(there, np.uint64))
    wanted = np.array([*there, *others], np.uint64)
    near = Hashes(ordered).near(wanted)
    first = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    found = ordered[near] == wanted
    assert found.tolist() == np.isin(wanted, ordered).tolist()
    assert near[found].tolist() == first[found].tolist()


@given(st.lists(st.lists(st.none() | st.text(max_size=2), max_size=12), max_size=8))
def test_codes_are_places_in_order_of_appearance(pieces: list[list[str | None]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "_CODED_AT_ONCE", 3)
        codes = Codes()
        for piece in pieces:
            codes.append(pa.array(piece, pa.string()))
        found = codes.coded()
    texts = [text for piece in pieces for text in piece]
    assert found.words == list(dict.fromkeys(text for text in texts if text is not None))
    assert [None if c < 0 else found.words[c] for c in found.codes] == texts


def test_growing_numbers_are_in_one_piece() -> None:
    grown = Growing(np.int32)
    for piece in (range(3), (), range(10, 20, 2)):
        grown.append(np.array(piece, np.int64))
    assert grown.array().tolist() == [0, 1, 2, 10, 12, 14, 16, 18]
    assert grown.array().dtype == np.int32
    assert len(Growing(np.bool_).array()) == 0
