"""Lists of nodes beside a trace: the companion table and the cluster that it describes."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.companions import NODE_COLUMNS, companion
from windtunnel.errors import SpecError, TraceError
from windtunnel.traces.source import STDIN

if TYPE_CHECKING:
    from windtunnel.traces.tabular import TextTable

#: No node has more, and beyond it float64 rounds.
_MAX_GPUS = 2**31 - 1
_TYPE = re.compile(r"\$\.node_types\[(\d+)\]")


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
    _refuse_fractions(text, values["num_gpus"], spelt["num_gpus"])
    table = companion(NODE_COLUMNS, values)
    _refuse_repeated(text, table["node"], spelt["node"])
    columns = ("num_gpus", "gpu_type", "num_cpus", "mem_gib")
    kinds = zip(*(table[column].to_pylist() for column in columns), strict=True)
    node_types = tuple(
        NodeType(sum(1 for _ in alike), int(gpus), gpu_type, cpus, mem)
        for (gpus, gpu_type, cpus, mem), alike in itertools.groupby(kinds)
    )
    try:
        return table, ClusterSpec(node_types, name)
    except SpecError as error:
        raise _in_file(text, node_types, error) from error


def _in_file(text: TextTable, node_types: tuple[NodeType, ...], error: SpecError) -> SpecError:
    """Return what is wrong with a cluster as what is wrong with the file, with the line."""
    where, found = text.file, _TYPE.match(error.path)
    if found is not None:
        before = sum(kind.count for kind in node_types[: int(found[1])])
        where += f", line {int(text.lines[before])}"
    return SpecError(f"{where}: {error.path}", str(error).removeprefix(f"{error.path}: "))


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
    gpus = gpus.cast(pa.float64(), safe=False)
    whole = pc.and_(pc.is_finite(gpus), pc.equal(gpus, pc.floor(gpus)))
    whole = pc.fill_null(pc.and_(whole, pc.less_equal(pc.abs(gpus), _MAX_GPUS)), False)
    if not pc.all(whole).as_py():
        row = pc.index(whole, False).as_py()
        raise TraceError(
            text.file,
            f"a whole number of GPUs in every row, at most {_MAX_GPUS:,}",
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
