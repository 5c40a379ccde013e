"""What a trace has to answer its headline questions with, and what it lacks.

The claims that headlines answer, with the published number of each, stand in ``claims.toml``.

Weng et al., "MLaaS in the Wild: Workload Analysis and Scheduling in Large-Scale Heterogeneous GPU
Clusters", NSDI'22: the talk, and the notebook published with the PAI trace (v2020). Their task is
our job, their instance our task. Claims without a published number are asked of every trace.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import pyarrow as pa

from windtunnel.characterize.relation import known_columns
from windtunnel.companions import NODE_COLUMNS, companion
from windtunnel.plain import fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.companions import Relation
    from windtunnel.traces.trace import Trace

_DATA = tomllib.loads(files("windtunnel.characterize").joinpath("claims.toml").read_text("utf-8"))
#: What a column tells: those that claims need.
_MEANINGS: dict[str, str] = _DATA["meanings"]


@dataclass(frozen=True)
class Answer:
    """What a trace answers to one claim.

    Attributes:
        value: the number; None where it cannot be had.
        n: rows that it is computed from.
        left_out: rows that lack what it needs.
        why_not: why there is no value.
    """

    value: float | None
    n: int = 0
    left_out: int = 0
    why_not: str | None = None


def answer(value: float | None, n: int, left_out: int, nothing: str) -> Answer:
    """Return an answer; without a value, ``nothing`` says why."""
    if value is None:
        return Answer(None, 0, left_out, nothing)
    return Answer(float(value), n, left_out)


@dataclass(frozen=True)
class HeadlineTables:
    """The tables of a trace, and which of their columns hold anything.

    Attributes:
        trace: the trace.
        known: table name -> columns with at least one known value; no entry = no such table.
    """

    trace: Trace
    known: Mapping[str, set[str]]

    @classmethod
    def of(cls, trace: Trace) -> HeadlineTables:
        """Look through the tables of a trace, once."""
        named: dict[str, Relation | None] = {
            **fields_of(trace, "jobs", "tasks", "nodes"),
        }
        known = {
            name: known_columns(table, _columns_of(name))
            for name, table in named.items()
            if table is not None
        }
        return cls(trace, known)

    def lack(self, *columns: str) -> str | None:
        """Return what is missing of ``table.column`` names in one sentence; None = nothing."""
        for name in columns:
            table, column = name.split(".")
            if table not in self.known:
                return f"the trace has no {table} table"
            if column not in self.known[table]:
                return f"no row of the {table} table has {column}: {_MEANINGS[name]} is unknown"
        return None

    @property
    def nodes(self) -> pa.Table | None:
        """The nodes table, or one made of the cluster that the trace names; None = neither."""
        cluster = self.trace.cluster
        if self.trace.nodes is not None or cluster is None or cluster.is_pool:
            return self.trace.nodes
        each = [node for node in cluster.node_types for _ in range(node.count)]
        return companion(
            NODE_COLUMNS,
            {
                "node": pa.array([f"node {place}" for place in range(len(each))]),
                "gpu_type": pa.array([node.gpu_type for node in each], pa.string()),
                "num_gpus": pa.array([node.gpus for node in each], pa.float64()),
                "num_cpus": pa.array([node.cpus for node in each], pa.float64()),
                "mem_gib": pa.array([node.mem_gib for node in each], pa.float64()),
            },
        )


def _columns_of(table: str) -> list[str]:
    names = (name.split(".") for name in _MEANINGS)
    return [column for of, column in names if of == table]


@dataclass(frozen=True)
class Claim:
    """One number that a trace is asked for.

    Attributes:
        key: its name.
        text: what it says, in words.
        unit: of the number; ``share`` = 0..1.
        published: the number of the PAI trace; None where none was published.
        source: where it was published.
        not_in_tables: why no trace's tables can answer it; None = some can.
    """

    key: str
    text: str
    unit: str
    published: float | None
    source: str
    not_in_tables: str | None

    @classmethod
    def read(
        cls,
        key: str,
        *,
        text: str,
        unit: str,
        published: float | None = None,
        source: str = "every",
        why_not: str | None = None,
    ) -> Claim:
        """Return a claim as `claims.toml` has it; ``source`` and ``why_not`` are words there."""
        why = None if why_not is None else _DATA["not_in_tables"][why_not]
        return cls(key, text, unit, published, _DATA["sources"][source], why)


CLAIMS: tuple[Claim, ...] = tuple(Claim.read(key, **row) for key, row in _DATA["claims"].items())
#: Claims that no trace's tables can answer, and why.
NOT_IN_TABLES: dict[str, str] = {
    claim.key: claim.not_in_tables for claim in CLAIMS if claim.not_in_tables is not None
}
