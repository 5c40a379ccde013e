"""Further columns that writers take over: whatever is called so, there is no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from windtunnel.errors import SchemaError
from windtunnel.schema import as_jobs
from windtunnel.traces.batsim_writer import write_batsim
from windtunnel.traces.sacct_writer import write_sacct
from windtunnel.traces.swf_writer import write_swf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ODD = {
    "list": pa.array([["a"]]),
    "struct": pa.array([{"a": 1}]),
    "bytes": pa.array([b"\xff"]),
    "time": pa.array([5], pa.timestamp("us", "Mars/Phobos")),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    ("write", "names"),
    [
        (write_swf, ("partition", "group", "preceding_job", "think_time")),
        (write_sacct, ("partition", "state", "num_nodes", "eligible_time")),
        (write_batsim, ("profile", "workload_name", "allocated_resources", "consumed_energy")),
    ],
)
def test_what_is_no_text_and_no_number_is_refused_by_name(
    tmp_path: Path, write: Callable[..., Any], names: tuple[str, ...], kind: str
) -> None:
    jobs = as_jobs({"submit_time": [0.0], "duration": [5.0], "num_gpus": [1.0]})
    for name in names:
        with pytest.raises(SchemaError, match=f"'{name}': expected texts or numbers"):
            write(jobs.append_column(name, ODD[kind]), tmp_path / "log")
    assert not list(tmp_path.iterdir())
    write(jobs.append_column("note", ODD[kind]), tmp_path / "log")  # is not written at all


def test_resources_that_are_no_interval_set_are_refused(tmp_path: Path) -> None:
    jobs = as_jobs({"submit_time": [0.0], "duration": [5.0], "num_gpus": [1.0]})
    odd = jobs.append_column("allocated_resources", pa.array(["GPU 7"]))
    with pytest.raises(SchemaError, match="interval sets such as"):
        write_batsim(odd, tmp_path / "jobs.csv")
    assert not list(tmp_path.iterdir())
