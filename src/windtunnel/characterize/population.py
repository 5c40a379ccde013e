"""Which jobs a question is about: GPU jobs, CPU jobs or all, each with the facts asked for.

A job that does not say how many GPUs it has is neither a GPU job nor a CPU job: it is counted as
``unsized`` beside every answer about one of the two. A job of the population that lacks the fact
asked for is ``left_out``. A missing property loses no job: its label is ``"(none)"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from windtunnel.characterize.facts import columns_for, value_of
from windtunnel.characterize.groups import group_columns, group_of
from windtunnel.characterize.relation import relation
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from windtunnel.companions import Relation

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

    if where not in WHERES:
        raise SpecError.unknown("where", where, WHERES)
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


def counted(table: Any, value: Any) -> dict[str, Any]:
    """Return the three counts that stand beside every answer, as Ibis aggregates."""
    return {
        "n": value.count(),
        "left_out": (table.asked & value.isnull()).sum().fill_null(0),
        "unsized": (~table.asked).sum().fill_null(0),
    }
