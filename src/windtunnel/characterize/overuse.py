"""How many tasks, or jobs, use more than they asked for, and by how much?

"MLaaS in the Wild" (Weng et al., NSDI'22, section 4) counts instances (our tasks); the PAI trace's
analysis notebook adds up the instances of each task (our job) first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from windtunnel.characterize.relation import (
    LeftOut,
    known_columns,
    relation,
    rows,
    split_off,
    typed,
    why,
)
from windtunnel.characterize.requests import RESOURCES, Resource
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from typing import TypeAlias

    import pyarrow as pa

    from windtunnel.companions import Relation

    #: What is compared: each task, or the sums of each job's tasks.
    Unit: TypeAlias = Literal["task", "job"]
    #: ``pai``: the sums are taken as the notebook takes them.
    Compat: TypeAlias = Literal["pai"] | None


def requests_against_use(
    tasks: Relation,
    nodes: Relation | None = None,
    *,
    unit: Unit = "task",
    compat: Compat = None,
) -> pa.Table:
    """Return how many tasks, or jobs, use more than they asked for.

    A job's request and use are the sums over its tasks; a task counts where both are known.

    Args:
        nodes: a nodes table, for the excess as a share of the node's capacity.
        unit: what is compared: each task, or each job. ``job`` is the notebook's printed line.
        compat: ``pai`` takes the sums as the notebook does: over the tasks of which any use is
            known, an unknown request, use or capacity counting as 0; a job without excess or
            capacity is then left out of the shares. It needs ``unit="job"`` and ``nodes``.

    Returns:
        A row for each of `RESOURCES`: ``resource``, ``n`` (tasks or jobs compared), ``over`` and
        ``over_share`` (use > request), ``under`` and ``under_share`` (use < request),
        ``mean_excess`` ((use - request) / capacity of the nodes it ran on, mean over the
        ``excess_n`` units whose capacity is known and positive), ``left_out`` (tasks not in it)
        and ``why``. Shares (0..1) and means are null where their n is 0.

    Raises:
        SchemaError: a table lacks a column.
        SpecError: ``compat`` without what it needs.
    """
    import pyarrow as pa

    table = _with_capacity(tasks, nodes, unit, compat)
    out = [_against_use(table, resource, unit, compat) for resource in RESOURCES]
    names = "resource n over over_share under under_share mean_excess excess_n left_out why"
    return pa.Table.from_pylist(out, schema=typed(names, "tiififfiit"))


def jobs_against_use(tasks: Relation, nodes: Relation | None) -> tuple[pa.Table, bool]:
    """Return how many jobs use more than they asked for: as the notebook, where that can be.

    The headlines and the figure both ask here, so that they tell one number.

    Args:
        nodes: a nodes table; None = there is none.

    Returns:
        `requests_against_use` of jobs, but ``left_out`` counts jobs of the table, as ``n`` (``why``
        tells the tasks); and whether it is the notebook's rule (``compat="pai"``): that needs the
        nodes that the tasks ran on, and their capacity.

    Raises:
        SchemaError: a table lacks a column.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cores = RESOURCES[0].asked
    placed = nodes is not None and known_columns(nodes, (cores,))
    as_published = bool(placed and known_columns(tasks, ("node",)))
    if as_published:
        found = requests_against_use(tasks, nodes, unit="job", compat="pai")
    else:
        found = requests_against_use(tasks, unit="job")
    (jobs,) = rows(relation(tasks, ("job_id",)).distinct().aggregate(n=lambda t: t.count()))
    left_out = pc.subtract(pa.scalar(jobs["n"], pa.int64()), found["n"])
    return found.set_column(
        found.column_names.index("left_out"), "left_out", left_out
    ), as_published


def _with_capacity(tasks: Relation, nodes: Relation | None, unit: str, compat: str | None) -> Any:
    """Return requests, use and the capacity of each task's node (``cap_<resource>``)."""
    import ibis

    if compat is not None and (unit != "job" or nodes is None):
        raise SpecError("compat", "the notebook's rule compares jobs and needs the nodes table.")
    wanted = [column for r in RESOURCES for column in (r.asked, r.used)]
    if nodes is None:
        none = {f"cap_{r.name}": ibis.null("float64") for r in RESOURCES}
        return relation(tasks, ["job_id", *wanted]).mutate(**none)
    table = relation(tasks, ["job_id", "node", *wanted])
    held = relation(nodes, ["node", *(r.asked for r in RESOURCES)])
    caps = held.select(cap_node=held.node, **{f"cap_{r.name}": held[r.asked] for r in RESOURCES})
    joined = table.left_join(caps, table.node == caps.cap_node)
    return joined.select("job_id", *wanted, *(f"cap_{r.name}" for r in RESOURCES))


def _units(table: Any, resource: Resource, unit: str, compat: str | None) -> tuple[Any, LeftOut]:
    """Return what is compared (asked, used, cap; one row a unit), and the tasks left out."""
    if compat == "pai":
        unused = table[RESOURCES[0].used].isnull()
        for other in RESOURCES[1:]:
            unused &= table[other.used].isnull()
        reasons = {"no use at all": unused}
    else:
        reasons = {
            f"no {column}": table[column].isnull() for column in (resource.asked, resource.used)
        }
    kept, _, left_out = split_off(table, reasons)
    units = kept.select(
        job_id=kept.job_id,
        asked=kept[resource.asked],
        used=kept[resource.used],
        cap=kept[f"cap_{resource.name}"],
    )
    if unit == "job":
        cap = units.cap.sum()
        if compat is None:
            cap = (units.count() == units.cap.count()).ifelse(cap, None)
        units = units.group_by("job_id").aggregate(
            asked=units.asked.sum(), used=units.used.sum(), cap=cap
        )
    if compat == "pai":
        units = units.fill_null({"asked": 0.0, "used": 0.0, "cap": 0.0})
        units = units.filter((units.cap != 0) | (units.asked != units.used))
    return units, left_out


def _against_use(table: Any, resource: Resource, unit: str, compat: str | None) -> dict[str, Any]:
    units, left_out = _units(table, resource, unit, compat)
    excess = (units.used - units.asked) / units.cap.nullif(0.0)
    (found,) = rows(
        units.aggregate(
            n=units.count(),
            over=units.count(where=units.used > units.asked),
            under=units.count(where=units.used < units.asked),
            mean_excess=excess.mean(),
            excess_n=excess.count(),
        )
    )
    n = found["n"]
    return {
        "resource": resource.name,
        **found,
        "over_share": found["over"] / n if n else None,
        "under_share": found["under"] / n if n else None,
        "left_out": sum(left_out.values()),
        "why": why(left_out),
    }
