"""Rows that break a rule: refused together, or left out and counted, by every table reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel import open_trace
from windtunnel.cli.options import BAD_ROWS as CLI_BAD_ROWS
from windtunnel.errors import SchemaError, SpecError
from windtunnel.schema import BAD_ROWS, conform_rows, validate

if TYPE_CHECKING:
    from pathlib import Path

_HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u,v,1,4,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:00:15,10,5\n"
    "1,u,v,1,4,1,COMPLETED,2020-04-01 00:00:01,2020-04-01 00:00:05,2020-04-01 00:00:15,10,4\n"
    "3,u,v,1,4,1,COMPLETED,2020-04-01 00:00:09,2020-04-01 00:00:05,2020-04-01 00:00:15,10,4\n"
    "4,u,v,1,4,1,COMPLETED,2020-04-01 00:00:09,2020-04-01 00:00:10,2020-04-01 00:00:15,-1,4\n"
    "5,u,v,1,4,1,COMPLETED,2020-04-01 00:00:09,2020-04-01 00:00:10,2020-04-01 00:00:15,5,1\n"
)


def test_a_file_with_bad_rows_is_refused_whole_with_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "cluster_log.csv"
    path.write_text(_HELIOS)
    with pytest.raises(SchemaError, match="--bad-rows drop") as caught:
        open_trace(path)
    assert len(caught.value.violations) == 3


def test_dropped_rows_are_counted_by_the_rule_they_break(tmp_path: Path) -> None:
    path = tmp_path / "cluster_log.csv"
    path.write_text(_HELIOS)
    trace = open_trace(path, bad_rows="drop")
    assert trace.jobs["job_id"].to_pylist() == ["1", "5"]
    assert trace.metadata.rows_read == 5
    assert trace.metadata.dropped == {
        "job_id: expected each id once": 1,
        "duration: expected a finite number >= 0": 1,
        "start_time: expected start_time >= submit_time": 1,
    }


def test_a_missing_column_is_an_error_even_when_bad_rows_are_dropped() -> None:
    with pytest.raises(SchemaError) as caught:
        conform_rows(pa.table({"job_id": ["1"]}), bad_rows="drop")
    assert "--bad-rows" not in str(caught.value)


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(SpecError, match="drop"):
        conform_rows(pa.table({"job_id": ["1"]}), bad_rows="dropp")


def test_the_command_line_knows_the_same_words() -> None:
    assert CLI_BAD_ROWS == BAD_ROWS


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "d", None]),
            st.sampled_from([0.0, 1.0, 5.0, np.nan, np.inf]),
            st.sampled_from([0.0, 3.0, None]),
            st.sampled_from([1.0, -1.0, -0.0, np.nan]),
        ),
        max_size=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_what_is_left_is_valid_and_no_row_is_lost_uncounted(rows: list[tuple[Any, ...]]) -> None:
    ids, submits, starts, gpus = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = pa.table(
        {
            "job_id": pa.array(ids, pa.string()),
            "submit_time": pa.array(submits, pa.float64()),
            "start_time": pa.array(starts, pa.float64()),
            "duration": pa.array([1.0] * len(rows), pa.float64()),
            "num_gpus": pa.array(gpus, pa.float64()),
        }
    )
    jobs, dropped = conform_rows(table, bad_rows="drop")
    validate(jobs)
    assert jobs.num_rows + sum(dropped.values()) == len(rows)
    try:
        whole, none = conform_rows(table, bad_rows="raise")
    except SchemaError:
        assert dropped
    else:
        assert whole == jobs
        assert none == {}
        assert not dropped
