"""Tasks on two nodes, what they asked for and what they used: worked by hand, and drawn."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from windtunnel.characterize.requests import RESOURCES
from windtunnel.companions import NODE_COLUMNS, TASK_COLUMNS, companion


def _floats(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float64())


@pytest.fixture
def tasks() -> pa.Table:
    return companion(
        TASK_COLUMNS,
        {
            "task_id": pa.array(list("abcd")),
            "job_id": pa.array(["j", "j", "k", "l"]),
            "node": pa.array(["n", "n", "m", None]),
            "num_gpus": _floats(0.5, 0.5, 2, None),
            "gpus_used": _floats(0.75, 0.25, 0.125, 1),
            "num_cpus": _floats(6, 6, 12, 4),
            "cpus_used": _floats(7, 5.5, 13, None),
            "mem_gib": _floats(10, 10, 20, 0),
            "mem_used_gib": _floats(1, 1, 1, 2),
        },
    )


@pytest.fixture
def nodes() -> pa.Table:
    return companion(
        NODE_COLUMNS,
        {
            "node": pa.array(["n", "m"]),
            "num_gpus": _floats(2, 8),
            "num_cpus": _floats(10, 20),
            "mem_gib": _floats(100, 100),
        },
    )


DRAWN_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "job_id": st.sampled_from("jkl"),
            "node": st.sampled_from(["n", "m", "elsewhere", None]),
            **{
                name: st.sampled_from([None, 0.0, 1.0, 2.0, 3.5])
                for r in RESOURCES
                for name in (r.asked, r.used)
            },
        }
    ),
    min_size=1,
    max_size=10,
)
CAPS = {"n": (10.0, 2.0, 100.0), "m": (20.0, 0.0, 100.0)}


def drawn_tables(rows: list[dict[str, Any]]) -> tuple[pa.Table, pa.Table]:
    """Return drawn rows as a tasks table, and the nodes that they may be on."""
    kinds = {c.name: c.type for c in TASK_COLUMNS}
    columns = {name: pa.array([row[name] for row in rows], kinds[name]) for name in rows[0]}
    columns["task_id"] = pa.array([str(i) for i in range(len(rows))])
    nodes = {"node": pa.array(list(CAPS))}
    for i, name in enumerate(("num_cpus", "num_gpus", "mem_gib")):
        nodes[name] = _floats(*(caps[i] for caps in CAPS.values()))
    return companion(TASK_COLUMNS, columns), companion(NODE_COLUMNS, nodes)


def drawn_cap(row: dict[str, Any], i: int) -> float | None:
    """Return what a row's node has of the i-th resource; None where it is not known."""
    return CAPS[row["node"]][i] if row["node"] in CAPS else None
