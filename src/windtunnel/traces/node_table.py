"""Lists of nodes beside a trace: the companion table and the cluster that it describes."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.cluster.levels import Levels
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.companions import NODE_COLUMNS, companion
from windtunnel.errors import SpecError
from windtunnel.traces.layout import Field, Layout, Rows
from windtunnel.traces.source import STDIN, short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.traces.tabular import TextTable

#: No node has more, and beyond it float64 rounds.
_MAX_GPUS = 2**31 - 1
_TYPE = re.compile(r"\$\.node_types\[(\d+)\]")


@dataclass(frozen=True)
class NodeLayout:
    """A format of lists of nodes, a node a row.

    Attributes:
        columns: column of `windtunnel.companions.NODE_COLUMNS` -> where it comes from; ``node``,
            ``num_gpus`` and ``num_cpus`` at least.
        files: what such a list is called beside a list of jobs.
        once: whether a node stands once; False = once an hour, and its first row counts.
        rack: the column behind `columns` that names a node's rack; empty = none does.
    """

    columns: Mapping[str, Field]
    files: tuple[str, ...]
    once: bool = True
    rack: str = ""

    def add(self, rows: Rows, path: str | Path | None) -> None:
        """Give jobs their nodes and cluster: those of a file, else of one beside them."""
        found = path if path is not None else beside(rows.path, *self.files)
        if found is not None:
            rows.beside["nodes"], rows.beside["cluster"] = self.read(found)
            rows.note(f"Nodes are from {Path(found).name}.")

    def read(self, path: str | Path) -> tuple[pa.Table, ClusterSpec]:
        """Read a list of nodes.

        Args:
            path: plain or gzip CSV.

        Returns:
            A table with the columns of `windtunnel.companions.NODE_COLUMNS`, one row a node in the
            file's order; and the cluster, nodes numbered in that order, neighbours that are alike
            as one node type, with its racks where they are known.

        Raises:
            TraceError: the file is not such a table, or has a node without a name, named twice, or
                without a whole number of GPUs; names line and column.
            SpecError: a number of GPUs, cores or memory is impossible.
        """
        rows = Layout("nodes", self.columns).rows(path, None)
        text, source = rows.text, {ours: field.source for ours, field in self.columns.items()}
        _refuse_fractions(text, rows["num_gpus"], source["num_gpus"])
        first = _first_rows(rows["node"])
        _refuse_unnamed(text, rows["node"], first, source["node"], once=self.once)
        if not self.once:
            rows.keep(np.unique(first), "further rows of a node")
        table = companion(NODE_COLUMNS, dict(rows))
        node_types = node_types_of(table)
        try:
            return table, ClusterSpec(node_types, short_name(path), topology=self._racks(rows))
        except SpecError as error:
            raise _in_file(rows, node_types, error) from error

    def _racks(self, rows: Rows) -> Levels | None:
        """Return the nodes' racks; a node whose rack is not known has one of its own."""
        if not self.rack or rows[self.rack].null_count == rows.count:
            return None
        named = zip(rows[self.rack].to_pylist(), rows["node"].to_pylist(), strict=True)
        return Levels(("rack",), paths=tuple((rack or f"of {node}",) for rack, node in named))


def node_types_of(nodes: pa.Table) -> tuple[NodeType, ...]:
    """Return the node types of a table of nodes in its order, neighbours that are alike as one."""
    columns = ("num_gpus", "gpu_type", "num_cpus", "mem_gib")
    kinds = zip(*(nodes[column].to_pylist() for column in columns), strict=True)
    return tuple(
        NodeType(sum(1 for _ in alike), int(gpus), gpu_type, cpus, mem)
        for (gpus, gpu_type, cpus, mem), alike in itertools.groupby(kinds)
    )


def _in_file(rows: Rows, node_types: tuple[NodeType, ...], error: SpecError) -> SpecError:
    """Return what is wrong with a cluster as what is wrong with the file, with the line."""
    where, found = rows.text.file, _TYPE.match(error.path)
    if found is not None:
        before = sum(kind.count for kind in node_types[: int(found[1])])
        where += f", line {int(rows.lines[before])}"
    return SpecError(f"{where}: {error.path}", str(error).removeprefix(f"{error.path}: "))


def _first_rows(names: pa.ChunkedArray) -> np.ndarray:
    """Return for each row the first one of the same name, int64."""
    codes = names.combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return first[inverse]


def _refuse_unnamed(
    text: TextTable, names: pa.ChunkedArray, first: np.ndarray, column: str, *, once: bool
) -> None:
    """Refuse a row without a name, and where a name stands ``once``, one that repeats another."""
    wrong = names.is_null().to_numpy()
    if once:
        wrong = wrong | (first < np.arange(len(first)))
    expected = "a name in every row" + (", each once" if once else "")
    text.refuse(column, pa.array(wrong), expected)


def _refuse_fractions(text: TextTable, gpus: pa.ChunkedArray, column: str) -> None:
    gpus = gpus.cast(pa.float64(), safe=False)
    whole = pc.and_(pc.is_finite(gpus), pc.equal(gpus, pc.floor(gpus)))
    whole = pc.fill_null(pc.and_(whole, pc.less_equal(pc.abs(gpus), _MAX_GPUS)), False)
    expected = f"a whole number of GPUs in every row, at most {_MAX_GPUS:,}"
    text.refuse(column, pc.invert(whole), expected)


def beside(path: str | Path, *names: str) -> Path | None:
    """Return the first of ``names`` that is a file in the same folder as ``path``, else None."""
    if str(path) == STDIN:
        return None
    candidates = (Path(path).with_name(name) for name in names)
    return next((found for found in candidates if found.is_file()), None)
