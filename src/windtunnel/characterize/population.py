"""Which jobs a question is about: GPU jobs, CPU jobs or all, each with the facts asked for.

A job that does not say how many GPUs it has is neither a GPU job nor a CPU job: it is counted as
``unsized`` beside every answer about one of the two. A job of the population that lacks the fact
asked for is ``left_out``. A missing property loses no job: its label is ``"(none)"``.

Jobs grouped by a property: the labels and the order of the groups.

``num_gpus`` means the size classes of `windtunnel.sim.metrics`, ``gpu_count`` the exact number of
GPUs, ``sharing`` the GPUs that one task asks for (the classes of the PAI analysis), ``philly_size``
the buckets of the Philly notebook. Any other property is a column: text as it stands, numbers by
their value. Jobs that lack the property are together under ``"(none)"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from windtunnel.characterize.facts import columns_for, value_of
from windtunnel.characterize.relation import column_names, relation, rows
from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError
from windtunnel.sim.metrics import SIZE_BOUNDS, size_classes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    import pyarrow as pa

    from windtunnel.companions import Relation


#: The label of jobs that lack the property.
NONE = "(none)"
#: Before the label of a text: a text may be empty, or read "(none)".
_TEXT = "="
#: Properties of every jobs table.
GROUPS_BY: tuple[str, ...] = (
    *("num_gpus", "gpu_count", "sharing", "philly_size", "vc", "user", "workload", "template"),
    *("status", "gpu_type"),
)
#: Classes of ``sharing``: GPUs that one task asks for.
SHARING: tuple[str, ...] = ("no GPU", "< 0.25", "[0.25, 0.5)", "[0.5, 1)", "1", "> 1")
#: Classes of ``philly_size``: GPUs of the job (Philly notebook, figure 2).
PHILLY_SIZES: tuple[str, ...] = ("no GPU", "1", "2-4", "5-8", "> 8")
_COLUMNS = {
    "gpu_count": ("num_gpus",),
    "sharing": ("num_gpus", "num_tasks"),
    "philly_size": ("num_gpus",),
}


def group_columns(jobs: Relation, by: str) -> tuple[str, ...]:
    """Return the columns that a property is read from.

    Raises:
        SpecError: ``by`` is none of `GROUPS_BY` and no other column of text or numbers that the
            table has.
    """
    if by in _COLUMNS:
        return _COLUMNS[by]
    has = column_names(jobs)
    if by in GROUPS_BY or by in has:
        return (by,)
    raise SpecError.unknown("by", by, {*GROUPS_BY, *has})


def group_of(table: Any, by: str | None) -> tuple[Any, Any]:
    """Return each job's group as two Ibis columns: its place in order, and its label.

    Args:
        table: an Ibis table with the columns that `group_columns` names.
        by: the property; None = all jobs are one group.

    Returns:
        ``place`` float64 and ``label`` text, neither ever null. `group_label` makes the group's
        name of the two: the label alone is none.
    """
    import ibis

    if by is None:
        return ibis.literal(0.0), ibis.literal("")
    if by == "num_gpus":
        return size_class(table.num_gpus).cast("float64"), ibis.literal("")
    if by == "sharing":
        # A job whose gang size is unknown counts as one task.
        request = table.num_gpus / table.num_tasks.fill_null(1)
        return _sharing(request), ibis.literal("")
    if by == "philly_size":
        return _philly_size(table.num_gpus), ibis.literal("")
    column = table["num_gpus" if by == "gpu_count" else by]
    if column.type().is_numeric():
        number = column.cast("float64")
        return number.fill_null(0.0), number.isnull().ifelse(NONE, "")
    return ibis.literal(0.0), (ibis.literal(_TEXT) + column.cast("string")).fill_null(NONE)


def group_label(by: str | None, place: float, label: str) -> str:
    """Return the name of a group that `group_of` or `text_label` made."""
    if label or by is None:
        return label.removeprefix(_TEXT)
    if by == "num_gpus":
        return size_labels()[int(place)]
    if by in ("sharing", "philly_size"):
        classes = (*(SHARING if by == "sharing" else PHILLY_SIZES), NONE)
        return classes[int(place)]
    return f"{place:.15g}"


def text_label(text: str) -> str:
    """Return the label of a text, as `group_of` makes it."""
    return _TEXT + text


def group_order(row: dict[str, Any]) -> tuple[bool, float, str]:
    """Return what to sort groups by: ``(none)`` last, then by place, then by name."""
    return row["label"] == NONE, row["place"], row["label"]


def grouped_table(found: Sequence[dict[str, Any]], by: str | None, columns: pa.Schema) -> pa.Table:
    """Return rows as a table, groups in their order.

    Args:
        found: rows with ``place`` and ``label`` of `group_of`, and a value for each column.
        by: the property: the name of the first column; None = there is no such column.
        columns: the other columns, in order.
    """
    import pyarrow as pa

    ordered = sorted(found, key=group_order)
    labels = [group_label(by, row["place"], row["label"]) for row in ordered]
    first = {} if by is None else {by: pa.array(labels, pa.string())}
    rest = {one.name: pa.array([row[one.name] for row in ordered], one.type) for one in columns}
    return pa.table({**first, **rest})


def size_labels() -> tuple[str, ...]:
    """Return the names of the size classes in order of size, `NONE` last."""
    return (*size_classes(np.empty(0))[1][:-1], NONE)


def size_class(num_gpus: Any) -> Any:
    """Return the place of each job's size class in the labels of `size_classes`, as Ibis."""
    import ibis

    bounds = [(num_gpus <= bound, place) for place, bound in enumerate(SIZE_BOUNDS, start=2)]
    last = 2 + len(SIZE_BOUNDS)
    return ibis.cases(
        (num_gpus.isnull(), last + 1),
        (num_gpus == 0, 0),
        (num_gpus < 1, 1),
        *bounds,
        else_=last,
    )


def _sharing(request: Any) -> Any:
    """Return the place of GPUs per task in `SHARING`, one more where unknown, as Ibis."""
    import ibis

    return ibis.cases(
        (request.isnull(), 6.0),
        (request == 0, 0.0),
        (request < 0.25, 1.0),  # noqa: PLR2004 (the classes' own bounds)
        (request < 0.5, 2.0),  # noqa: PLR2004
        (request < 1, 3.0),
        (request == 1, 4.0),
        else_=5.0,
    )


def _philly_size(num_gpus: Any) -> Any:
    """Return the place of a number of GPUs in `PHILLY_SIZES`, one more where unknown, as Ibis."""
    import ibis

    return ibis.cases(
        (num_gpus.isnull(), 5.0),
        (num_gpus == 0, 0.0),
        (num_gpus <= 1, 1.0),
        (num_gpus <= 4, 2.0),  # noqa: PLR2004 (the buckets' own bounds)
        (num_gpus <= 8, 3.0),  # noqa: PLR2004
        else_=4.0,
    )


#: ``gpu``: jobs that ask for GPUs; ``cpu``: for none; ``all``: every job.
Where: TypeAlias = Literal["gpu", "cpu", "all"]
WHERES: tuple[str, ...] = get_args(Where)


def population(
    jobs: Relation,
    facts: Sequence[str],
    *,
    where: str,
    by: str | None = None,
    columns: Sequence[str] = (),
) -> Any:
    """Return the jobs that a question is about as an Ibis table.

    Args:
        where: one of `WHERES`.

    Returns:
        ``place``, ``label`` (see `group_of`), ``asked`` (bool: of the population; the other rows
        are those of unknown size), one float column a fact (null where unknown, and outside the
        population), and ``columns`` as they are.

    Raises:
        SpecError: ``where``, a fact or ``by`` is unknown.
        SchemaError: the table lacks a column that these need.
    """
    import ibis

    checked_choice("where", where, WHERES)
    names = (*columns_for(facts, jobs), *columns)
    if by is not None:
        names = (*names, *group_columns(jobs, by))
    if where != "all":
        names = (*names, "num_gpus")
    table = relation(jobs, names or ("job_id",))
    asked = ibis.literal(value=True)
    if where != "all":
        of_kind = table.num_gpus > 0 if where == "gpu" else table.num_gpus == 0
        asked = table.num_gpus.notnull()
        table = table.filter(of_kind | table.num_gpus.isnull())
    place, label = group_of(table, by)
    values: Mapping[str, Any] = {
        f"fact_{i}": ibis.ifelse(asked, value_of(table, fact), ibis.null("float64"))
        for i, fact in enumerate(facts)
    }
    kept = {name: table[name] for name in columns}
    return table.select(place=place, label=label, asked=asked, **values, **kept)


def as_one_group(table: Any) -> Any:
    """Return an Ibis table with ``place``, ``label`` and ``asked``: all its rows are one group."""
    import ibis

    return table.mutate(
        place=ibis.literal(0.0), label=ibis.literal(""), asked=ibis.literal(value=True)
    )


def grouped(table: Any, by: str | None, sums: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return Ibis aggregates of each group, with its ``place`` and ``label``.

    Without ``by`` there is one group, even of no jobs: counts have to be 0 there, not null.
    """
    if by is None:
        (row,) = rows(table.aggregate(**sums))
        return [{"place": 0.0, "label": "", **row}]
    return rows(table.group_by(["place", "label"]).aggregate(**sums))


def counted(table: Any, value: Any) -> dict[str, Any]:
    """Return the three counts that stand beside every answer, as Ibis aggregates."""
    return {
        "n": value.count(),
        "left_out": (table.asked & value.isnull()).sum().fill_null(0),
        "unsized": (~table.asked).sum().fill_null(0),
    }
