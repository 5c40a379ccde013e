"""Allocation by kind of node: the published machines, hand-worked tables, and plain sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.characterize.allocation import (
    NODES_BY,
    allocation,
    allocation_over_time,
    cpus_per_gpu,
)
from windtunnel.companions import NODE_COLUMNS, TASK_COLUMNS, companion
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from backends import Backend


def _floats(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float64())


NODES = {
    "n": ("P100", 2.0, 10.0, 100.0),
    "m": ("V100", 8.0, 20.0, 100.0),
    "c": (None, 0.0, 96.0, 500.0),
    "w": ("V100", 16.0, 20.0, 100.0),
}


@pytest.fixture
def nodes() -> pa.Table:
    return _nodes()


def _nodes() -> pa.Table:
    kinds, gpus, cpus, mem = zip(*NODES.values(), strict=True)
    return companion(
        NODE_COLUMNS,
        {
            "node": pa.array(list(NODES)),
            "gpu_type": pa.array(kinds, pa.string()),
            "num_gpus": _floats(*gpus),
            "num_cpus": _floats(*cpus),
            "mem_gib": _floats(*mem),
        },
    )


def _tasks(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return tasks of rows (node, start, end, GPUs, cores, GiB)."""
    nodes, start, end, gpus, cpus, mem = zip(*rows, strict=True)
    return companion(
        TASK_COLUMNS,
        {
            "task_id": pa.array([str(i) for i in range(len(rows))]),
            "job_id": pa.array(["j"] * len(rows)),
            "node": pa.array(nodes, pa.string()),
            "start_time": _floats(*start),
            "end_time": _floats(*end),
            "num_gpus": _floats(*gpus),
            "num_cpus": _floats(*cpus),
            "mem_gib": _floats(*mem),
        },
    )


@pytest.fixture
def tasks() -> pa.Table:
    return _tasks(
        [
            ("n", 0.0, 3600.0, 0.5, 6.0, 10.0),
            ("n", 1800.0, 5400.0, 0.5, 6.0, 10.0),
            ("m", 3600.0, 7200.0, 2.0, 12.0, None),
            ("elsewhere", 0.0, 9.0, 1.0, 4.0, 0.0),
            (None, 0.0, 9.0, 1.0, 4.0, 0.0),
        ]
    )


def test_allocation_by_hand(tasks: pa.Table, nodes: pa.Table, backend: Backend) -> None:
    none, p100, v100 = allocation(backend(tasks), backend(nodes)).to_pylist()
    assert [row["gpu_type"] for row in (none, p100, v100)] == ["(none)", "P100", "V100"]
    assert (p100["nodes"], p100["cpu_capacity"], p100["gpu_capacity"]) == (1, 10.0, 2.0)
    assert (p100["cpu"], p100["cpu_share"], p100["gpu"]) == (6.0, 0.6, 0.5)
    assert (p100["gpu_share"], p100["mem_share"], p100["n"]) == (0.25, 0.1, 2)
    assert (v100["nodes"], v100["gpu"], v100["n"]) == (2, 1.0, 1)
    assert v100["gpu_share"] == pytest.approx(1 / 24)
    assert v100["mem"] == 0.0  # an unknown request adds nothing
    assert (none["cpu_share"], none["gpu_share"], none["n"]) == (0.0, None, 0)
    assert p100["left_out"] == 2
    assert p100["why"] == "no node: 1; node not in the table: 1"


def test_allocation_within_a_span(tasks: pa.Table, nodes: pa.Table) -> None:
    _, p100, v100 = allocation(tasks, nodes, span=(1800.0, 3600.0)).to_pylist()
    assert (p100["cpu"], p100["cpu_share"]) == (12.0, 1.2)
    assert v100["gpu"] == 0.0
    with pytest.raises(SpecError, match="span"):
        allocation(tasks, nodes, span=(5.0, 5.0))


def test_allocation_over_time_by_hand(tasks: pa.Table, nodes: pa.Table, backend: Backend) -> None:
    found = allocation_over_time(backend(tasks), backend(nodes)).to_pydict()
    assert found["gpu_type"] == ["P100", "P100", "V100", "V100"]
    assert found["time"] == [0.0, 3600.0, 0.0, 3600.0]
    assert found["cpu"] == [9.0, 3.0, 0.0, 12.0]
    assert found["cpu_share"] == pytest.approx([0.9, 0.3, 0.0, 0.3])
    assert found["gpu"] == [0.75, 0.25, 0.0, 2.0]
    assert found["n"] == [3] * 4
    assert found["left_out"] == [2] * 4


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("by", "kinds"),
    [
        ("all", ["all"]),
        ("gpu_type", ["(none)", "P100", "V100"]),
        ("num_gpus", ["0", "2", "8", "16"]),
        ("class", ["0 x (none)", "2 x P100", "8 x V100", "16 x V100"]),
        ("node", ["c", "m", "n", "w"]),
    ],
)
def test_kinds_of_nodes_come_in_order_and_share_what_is_given(
    by: str, kinds: list[str], tasks: pa.Table, nodes: pa.Table
) -> None:
    found = allocation(tasks, nodes, by=by)
    assert found[by].to_pylist() == kinds
    assert sum(found["cpu"].to_pylist()) == pytest.approx(12.0)
    assert sum(found["n"].to_pylist()) == 3
    busy = list(dict.fromkeys(allocation_over_time(tasks, nodes, by=by)[by].to_pylist()))
    assert busy == [kind for kind, n in zip(kinds, found["n"].to_pylist(), strict=True) if n]


def test_an_unknown_kind_is_refused(tasks: pa.Table, nodes: pa.Table) -> None:
    with pytest.raises(SpecError, match="gpu_type"):
        allocation(tasks, nodes, by="gpu_types")
    assert "gpu_type" in NODES_BY


def test_no_task_allocates_nothing(tasks: pa.Table, nodes: pa.Table) -> None:
    found = allocation(tasks.slice(0, 0), nodes)
    assert found["cpu_share"].to_pylist() == [None] * 3
    assert allocation_over_time(tasks.slice(0, 0), nodes).num_rows == 0


@pytest.mark.slow
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([*NODES, "elsewhere", None]),
            st.integers(0, 20).map(float),
            st.integers(0, 20).map(float),
            *(st.sampled_from([None, 0.0, 0.5, 2.0]) for _ in range(3)),
        ),
        min_size=1,
        max_size=10,
    ),
)
@settings(max_examples=20, deadline=None)
def test_allocation_equals_plain_sums(rows: list[tuple[Any, ...]]) -> None:
    found = allocation(_tasks(rows), _nodes(), by="node").to_pylist()
    kept = [row for row in rows if row[2] >= row[1] and row[0] in NODES]
    over = allocation_over_time(_tasks(rows), _nodes(), by="node", step=4.0).to_pylist()
    span = max((r[2] for r in kept), default=0.0) - min((r[1] for r in kept), default=0.0)
    for row in found:
        mine = [r for r in kept if r[0] == row["node"]]
        assert row["n"] == len(mine)
        assert row["left_out"] == len(rows) - len(kept)
        capacity = NODES[row["node"]][1:]
        for i, name in enumerate(("gpu", "cpu", "mem")):
            held = sum((r[3 + i] or 0) * (r[2] - r[1]) for r in mine)
            assert sum(4 * o[name] for o in over if o["node"] == row["node"]) == pytest.approx(held)
            if span:
                assert row[name] == pytest.approx(held / span)
                if capacity[i]:
                    assert row[f"{name}_share"] == pytest.approx(held / span / capacity[i])


def test_cpus_per_gpu_by_hand(tasks: pa.Table, nodes: pa.Table, backend: Backend) -> None:
    found = cpus_per_gpu(backend(tasks), backend(nodes)).to_pydict()
    assert found["class"] == ["0 x (none)", "2 x P100", "8 x V100", "16 x V100"]
    assert found["provided"] == [None, 5.0, 2.5, 1.25]
    assert found["asked"] == [None, 12.0, 6.0, None]
    assert found["n"] == [0, 2, 1, 0]
    assert found["left_out"] == [2] * 4


def test_the_published_machines_provide_what_the_paper_says(data_dir: Path) -> None:
    raw = pyarrow.csv.read_csv(data_dir / "pai" / "pai_machine_spec.csv")
    nodes = companion(
        NODE_COLUMNS,
        {
            "node": raw["machine"],
            "gpu_type": raw["gpu_type"],
            "num_gpus": raw["cap_gpu"],
            "num_cpus": raw["cap_cpu"],
            "mem_gib": raw["cap_mem"],
        },
    )
    none = _tasks([(None, 0.0, 1.0, 1.0, 1.0, 1.0)])
    provided = {r["class"]: r["provided"] for r in cpus_per_gpu(none, nodes).to_pylist()}
    assert provided == {
        "0 x CPU": None,
        "2 x P100": 32.0,
        "2 x T4": 48.0,
        "8 x MISC": 12.0,
        "8 x V100": 12.0,
        "8 x V100M32": 12.0,
    }
    (whole,) = allocation(none, nodes, by="all").to_pylist()
    assert (whole["nodes"], whole["gpu_capacity"]) == (1897, 6742)
    assert (whole["cpu_capacity"], whole["mem_capacity"]) == (156_576, 948_224)
    by_type = {r["gpu_type"]: r["nodes"] for r in allocation(none, nodes).to_pylist()}
    assert by_type == {
        "CPU": 83,
        "MISC": 280,
        "P100": 798,
        "T4": 497,
        "V100": 104,
        "V100M32": 135,
    }
