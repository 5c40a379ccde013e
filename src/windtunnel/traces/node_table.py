"""Lists of nodes beside a trace: the companion table and the cluster that it describes."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

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
    """

    columns: Mapping[str, Field]
    files: tuple[str, ...]

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
            as one node type.

        Raises:
            TraceError: the file is not such a table, or has a node without a name, named twice, or
                without a whole number of GPUs; names line and column.
            SpecError: a number of GPUs, cores or memory is impossible.
        """
        rows = Layout("nodes", self.columns).rows(path, None)
        text = rows.text
        _refuse_fractions(text, rows["num_gpus"], self.columns["num_gpus"].source)
        table = companion(NODE_COLUMNS, dict(rows))
        _refuse_repeated(text, table["node"], self.columns["node"].source)
        columns = ("num_gpus", "gpu_type", "num_cpus", "mem_gib")
        kinds = zip(*(table[column].to_pylist() for column in columns), strict=True)
        node_types = tuple(
            NodeType(sum(1 for _ in alike), int(gpus), gpu_type, cpus, mem)
            for (gpus, gpu_type, cpus, mem), alike in itertools.groupby(kinds)
        )
        try:
            return table, ClusterSpec(node_types, short_name(path))
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
    cells = names.to_pylist()
    first = {name: row for row, name in reversed(list(enumerate(cells)))}
    wrong = [name is None or first[name] < row for row, name in enumerate(cells)]
    text.refuse(column, pa.array(wrong), "a name in every row, each once")


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
