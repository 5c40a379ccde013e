"""What levels cost a run, worked by hand; and that nothing is lost where nothing is asked."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.report.level_rows import level_tables
from windtunnel.report.page import comparison_page


def flown(placement: str = "tree", **columns: Any) -> Any:
    count = len(columns["duration"])
    jobs = {"submit_time": [0.0] * count, **columns}
    return wt.simulate(jobs, "4x4", "fifo", queueing="skip", topology="rack=2", placement=placement)


def test_waits_for_gpus_are_no_refusals() -> None:
    """Two jobs share a rack, and the third has the other one; the fourth waits for GPUs."""
    out = flown(
        duration=[100.0, 50.0, 10.0, 10.0],
        num_gpus=[4.0, 4.0, 8.0, 8.0],
        topology=["required:rack"] * 4,
    )
    (row,) = out.topology_losses().to_pylist()
    assert (row["level"], row["kind"], row["slice"], row["jobs"]) == ("rack", "required", 1, 4)
    assert (row["refused"], row["refused_gpu_time"]) == (0, 0)


def test_scattered_jobs_cost_the_next_its_wait() -> None:
    """Three hold nodes 0 to 2 at first; 0 and 2 stay: one node of each rack is free."""
    out = flown(
        duration=[100.0, 10.0, 60.0, 10.0],
        num_gpus=[4.0, 4.0, 4.0, 8.0],
        submit_time=[0.0, 0.0, 0.0, 20.0],
        topology=["unconstrained", "unconstrained", "unconstrained", "required:rack"],
    )
    assert out.table["nodes"].to_pylist()[:3] == [[0], [1], [2]]
    assert out.table["start_time"].to_pylist()[3] == 60, "as node 2 is free"
    (row,) = out.topology_losses().to_pylist()
    assert (row["jobs"], row["refused"]) == (1, 1)
    assert row["refused_gpu_time"] == 8 * 40, "8 GPUs for 40 s, from 20 to 60"
    assert row["unusable"] == 0


def test_gpus_in_no_whole_slice() -> None:
    """Slices of 2 nodes a rack: one node held spoils its rack, 4 GPUs, for as long as it is."""
    out = flown(
        duration=[100.0, 100.0],
        num_gpus=[4.0, 8.0],
        num_tasks=[1, 2],
        topology=["unconstrained", "slice=rack/2"],
    )
    (row,) = out.topology_losses().to_pylist()
    assert (row["level"], row["slice"], row["jobs"], row["refused"]) == ("rack", 2, 1, 0)
    assert row["unusable"] == 4


@pytest.mark.slow
def test_pages_tell_what_levels_cost() -> None:
    """The run worked by hand above, and one that knows no levels: its page has no such part."""
    out = flown(
        duration=[100.0, 10.0, 60.0, 10.0],
        num_gpus=[4.0, 4.0, 4.0, 8.0],
        submit_time=[0.0, 0.0, 0.0, 20.0],
        topology=["unconstrained", "unconstrained", "unconstrained", "required:rack"],
    )
    (_, domains), (_, asked) = level_tables({"fifo": out})
    assert [(line.label, [cell.text for cell in line.cells]) for line in domains.lines] == [
        ("rack", ["1.00", "1.00", "1.0\u00d7", "100 %"]),
        ("host", ["1.25", "1.25", "1.0\u00d7", "100 %"]),
    ]
    (line,) = asked.lines
    assert line.label == "required:rack"
    assert [cell.text for cell in line.cells] == ["1", "1", "0.09 GPU h", "\u2013"]
    assert "Where in the topology" in comparison_page(
        {"fifo": out}, command="windtunnel", title="Levels"
    )
    jobs = {"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]}
    bare = wt.simulate(jobs, "4x4", "fifo")
    assert "Where in the topology" not in comparison_page(
        {"fifo": bare}, command="windtunnel", title="Levels"
    )


def test_refused_where_nothing_is_known() -> None:
    out = flown("best_fit", duration=[1.0], num_gpus=[1.0])
    with pytest.raises(SpecError, match="--placement tree"):
        out.topology_losses()
    assert flown(duration=[1.0], num_gpus=[1.0]).topology_losses().num_rows == 0
    out = flown("tree:balanced", duration=[1.0], num_gpus=[1.0], topology=["preferred:rack"])
    assert out.topology_losses()["refused"].to_pylist() == [0]
