"""Lists of nodes beside a trace: the companion table and the cluster that it describes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.companions import NODE_COLUMNS, companion
from windtunnel.errors import TraceError
from windtunnel.traces.source import STDIN

if TYPE_CHECKING:
    from windtunnel.traces.tabular import TextTable


def node_table(
    text: TextTable, values: dict[str, Any], name: str, *, spelt: dict[str, str]
) -> tuple[pa.Table, ClusterSpec]:
    """Return a list of nodes as table and as cluster.

    Args:
        text: the file's rows, one a node.
        values: column of `windtunnel.companions.NODE_COLUMNS` -> array; further columns stay
            behind those. ``node``, ``num_gpus`` and ``num_cpus`` at least.
        name: what to call the cluster.
        spelt: how the file calls ``node`` and ``num_gpus``, for messages.

    Returns:
        The table, one row a node in the file's order; and the cluster, nodes numbered in that
        order, neighbours that are alike as one node type.

    Raises:
        TraceError: a node without a name, named twice, or without a whole number of GPUs.
        SpecError: a number of GPUs, cores or memory is impossible.
    """
    table = companion(NODE_COLUMNS, values)
    _refuse_repeated(text, table["node"], spelt["node"])
    _refuse_fractions(text, table["num_gpus"], spelt["num_gpus"])
    columns = ("num_gpus", "gpu_type", "num_cpus", "mem_gib")
    kinds = zip(*(table[column].to_pylist() for column in columns), strict=True)
    node_types = tuple(
        NodeType(sum(1 for _ in alike), int(gpus), gpu_type, cpus, mem)
        for (gpus, gpu_type, cpus, mem), alike in itertools.groupby(kinds)
    )
    return table, ClusterSpec(node_types, name)


def _refuse_repeated(text: TextTable, names: pa.ChunkedArray, column: str) -> None:
    seen: set[str] = set()
    for row, name in enumerate(names.to_pylist()):
        if name is None or name in seen:
            raise TraceError(
                text.file,
                "a name in every row, each once",
                row=int(text.lines[row]),
                column=column,
                value=name,
            )
        seen.add(name)


def _refuse_fractions(text: TextTable, gpus: pa.ChunkedArray, column: str) -> None:
    whole = pc.fill_null(pc.and_(pc.is_finite(gpus), pc.equal(gpus, pc.floor(gpus))), False)
    if not pc.all(whole).as_py():
        row = pc.index(whole, False).as_py()
        raise TraceError(
            text.file,
            "a whole number of GPUs in every row",
            row=int(text.lines[row]),
            column=column,
            value=gpus[row].as_py(),
        )


def beside(path: str | Path, *names: str) -> Path | None:
    """Return the first of ``names`` that is a file in the same folder as ``path``, else None."""
    if str(path) == STDIN:
        return None
    candidates = (Path(path).with_name(name) for name in names)
    return next((found for found in candidates if found.is_file()), None)
