"""How much of each kind of node is allocated, and does what is given fit what is there?

"MLaaS in the Wild" (Weng et al., NSDI'22, sections 5 and 6): allocation by machine type, its
imbalance, and CPU cores a GPU as the machines provide them against what tasks ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.levels import levels, run_intervals
from windtunnel.characterize.population import NONE
from windtunnel.characterize.relation import LeftOut, relation, rows, split_off, typed, why
from windtunnel.characterize.requests import RESOURCES
from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.companions import Relation

__all__ = [
    "NODES_BY",
    "NONE",
    "allocation",
    "allocation_over_time",
    "cpus_per_gpu",
]

#: Kinds of nodes: all together, by GPU type, by number of GPUs, by both, or each node alone.
NODES_BY: tuple[str, ...] = ("all", "gpu_type", "num_gpus", "class", "node")
#: Resource -> column of requests and of capacities.
_RESOURCES = {resource.name: resource.asked for resource in RESOURCES}


def allocation_over_time(
    tasks: Relation, nodes: Relation, *, by: str = "gpu_type", step: float = 3600.0
) -> pa.Table:
    """Return what the running tasks have been given, by kind of node and step of time.

    An unknown request adds nothing.

    Args:
        by: one of `NODES_BY`.
        step: s between two rows of a kind; an hour gives the heat map of type by hour.

    Returns:
        A row per kind and step, kinds in order: ``by`` (text), ``time`` (s, the step's first
        instant), then for ``cpu``, ``gpu`` and ``mem`` the amount given (``cpu`` cores, ``gpu``
        GPUs, ``mem`` GiB: mean over the step) and ``<name>_share`` of the capacity (0..1, above 1
        where more is given than is there; null without capacity), ``n`` (tasks in the answer),
        ``left_out`` and ``why``. A kind on which no task ever ran has no row.

    Raises:
        SchemaError: a table lacks a column.
        SpecError: ``by`` is none of `NODES_BY`, or an unusable ``step``.
    """
    import pyarrow as pa

    placed, n, left_out = _placed(tasks, nodes, by)
    found = levels(placed, tuple(_RESOURCES), by=("label",), step=step)
    steps = len(found.times)
    capacity = {row["label"]: row for row in _capacities(nodes, by)}
    order = sorted(range(len(found.groups)), key=lambda i: _in_order(found.groups[i][0], by))
    labels = [found.groups[i][0] for i in order]
    columns: dict[str, Any] = {
        by: pa.array([label for label in labels for _ in range(steps)], pa.string()),
        "time": np.tile(found.times, len(labels)),
    }
    for name, level in found.values.items():
        given = level[order]
        whole = np.array([capacity[label][name] or 0.0 for label in labels]).reshape(-1, 1)
        share = np.divide(given, whole, out=np.full(given.shape, np.nan), where=whole > 0)
        columns[name] = given.reshape(-1)
        columns[f"{name}_share"] = pa.array(share.reshape(-1), pa.float64(), from_pandas=True)
    count = steps * len(labels)
    columns["n"] = np.full(count, n)
    columns["left_out"] = np.full(count, sum(left_out.values()))
    columns["why"] = pa.array([why(left_out)] * count, pa.string())
    return pa.table(columns)


def allocation(
    tasks: Relation,
    nodes: Relation,
    *,
    by: str = "gpu_type",
    span: tuple[float, float] | None = None,
) -> pa.Table:
    """Return what share of each kind of node was allocated: integral of requests / capacity.

    An unknown request adds nothing.

    Args:
        by: one of `NODES_BY`.
        span: from and to, s; by default from the first beginning to the last end of a task.

    Returns:
        A row per kind of node, in order: ``by`` (text), ``nodes``, then for ``cpu``, ``gpu`` and
        ``mem`` the capacity ``<name>_capacity``, the mean given ``<name>`` and ``<name>_share``
        (null without capacity), ``n`` (tasks that ran on this kind in the span), ``left_out``
        (tasks in no kind) and ``why``.

    Raises:
        SchemaError: a table lacks a column.
        SpecError: ``by`` is none of `NODES_BY`, or ``span`` is no span.
    """
    import pyarrow as pa

    placed, _, left_out = _placed(tasks, nodes, by)
    if span is None:
        (ends,) = rows(placed.aggregate(first=placed.begin.min(), last=placed.end.max()))
        first, last = ends["first"] or 0.0, ends["last"] or 0.0
    else:
        first, last = span
        if not first < last:
            raise SpecError("span", f"a span ends after it begins, not {first:g} to {last:g}.")
    begin = (placed.begin < first).ifelse(first, placed.begin)
    end = (placed.end > last).ifelse(last, placed.end)
    cut = placed.mutate(held=(end > begin).ifelse(end - begin, 0.0))
    inside = (cut.begin <= last) & (cut.end >= first)
    amounts = {name: (cut[name] * cut.held).sum() for name in _RESOURCES}
    sums = {
        row["label"]: row
        for row in rows(cut.group_by("label").aggregate(n=cut.count(where=inside), **amounts))
    }
    out = []
    for whole in _capacities(nodes, by):
        given = sums.get(whole["label"], {})
        row: dict[str, Any] = {by: whole["label"], "nodes": whole["nodes"]}
        for name in _RESOURCES:
            capacity = whole[name] or 0.0
            mean = (given.get(name) or 0.0) / (last - first) if last > first else None
            row |= {f"{name}_capacity": capacity, name: mean}
            row[f"{name}_share"] = mean / capacity if capacity and mean is not None else None
        row |= {"n": given.get("n", 0), "left_out": sum(left_out.values()), "why": why(left_out)}
        out.append(row)
    amounts_of = " ".join(f"{name}_capacity {name} {name}_share" for name in _RESOURCES)
    schema = typed(f"{by} nodes {amounts_of} n left_out why", f"ti{'fff' * len(_RESOURCES)}iit")
    return pa.Table.from_pylist(out, schema=schema)


def cpus_per_gpu(tasks: Relation, nodes: Relation, *, by: str = "class") -> pa.Table:
    """Return CPU cores a GPU as the nodes provide them, and as the tasks on them ask for.

    Args:
        by: one of `NODES_BY`.

    Returns:
        A row per kind of node, in order: ``by``, ``nodes``, ``provided`` (sum of cores / sum of
        GPUs; null without GPUs), ``asked`` (the same of all requests of the tasks that ran
        there, tasks asking for no GPU included; null where nobody asked for one), ``n`` (tasks),
        ``left_out`` (tasks on no known node) and ``why``. Unknown requests add nothing.

    Raises:
        SchemaError: a table lacks a column.
        SpecError: ``by`` is none of `NODES_BY`.
    """
    import pyarrow as pa

    wanted = relation(tasks, ("node", "num_cpus", "num_gpus"))
    placed, _, left_out = _on_nodes(wanted, nodes, by)
    sums = {
        row["label"]: row
        for row in rows(
            placed.group_by("label").aggregate(
                n=placed.count(), cpu=placed.num_cpus.sum(), gpu=placed.num_gpus.sum()
            )
        )
    }
    out = []
    for whole in _capacities(nodes, by):
        asked = sums.get(whole["label"], {"n": 0, "cpu": None, "gpu": None})
        out.append(
            {
                by: whole["label"],
                "nodes": whole["nodes"],
                "provided": _ratio(whole["cpu"], whole["gpu"]),
                "asked": _ratio(asked["cpu"], asked["gpu"]),
                "n": asked["n"],
                "left_out": sum(left_out.values()),
                "why": why(left_out),
            }
        )
    names = f"{by} nodes provided asked n left_out why"
    return pa.Table.from_pylist(out, schema=typed(names, "tiffiit"))


def _placed(tasks: Relation, nodes: Relation, by: str) -> tuple[Any, int, LeftOut]:
    """Return the runs of the tasks on known nodes: begin, end, label, and a column a resource."""
    ran, _, left_out = run_intervals(tasks, ("node", *_RESOURCES.values()))
    placed, n, unplaced = _on_nodes(ran, nodes, by)
    amounts = {name: placed[column] for name, column in _RESOURCES.items()}
    return placed.select("begin", "end", "label", **amounts), n, left_out | unplaced


def _on_nodes(tasks: Any, nodes: Relation, by: str) -> tuple[Any, int, LeftOut]:
    """Return the tasks on nodes of the table with the label of their node's kind."""
    kinds = _labelled(nodes, by)
    kinds = kinds.select(label=kinds.label, node_known=kinds.node)
    joined = tasks.left_join(kinds, tasks.node == kinds.node_known)
    return split_off(
        joined,
        {"no node": joined.node.isnull(), "node not in the table": joined.node_known.isnull()},
    )


def _labelled(nodes: Relation, by: str) -> Any:
    """Return the nodes table with ``label``, the kind that each node is of."""
    import ibis

    checked_choice("by", by, NODES_BY)
    table = relation(nodes, ("node", "gpu_type", *_RESOURCES.values()))
    gpus = table.num_gpus.fill_null(0.0).cast("int64").cast("string")
    kind = table.gpu_type.fill_null(NONE)
    labels = {
        "all": ibis.literal("all"),
        "gpu_type": kind,
        "num_gpus": gpus,
        "class": gpus + " x " + kind,
        "node": table.node,
    }
    return table.mutate(label=labels[by])


def _capacities(nodes: Relation, by: str) -> list[dict[str, Any]]:
    """Return per kind of node, in order: label, nodes, and the sum of each resource."""
    table = _labelled(nodes, by)
    sums = {name: table[column].sum() for name, column in _RESOURCES.items()}
    found = rows(table.group_by("label").aggregate(nodes=table.count(), **sums))
    return sorted(found, key=lambda row: _in_order(row["label"], by))


def _in_order(label: str, by: str) -> tuple[int, str]:
    """Return what to sort kinds of nodes by: numbers of GPUs as numbers, names as text."""
    leading = label.split(" ", 1)[0]
    return int(leading) if by in ("num_gpus", "class") else 0, label


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
