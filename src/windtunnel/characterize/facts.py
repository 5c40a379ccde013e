"""What can be asked about a job: columns of the jobs table, and what follows from them.

Names of facts. A column keeps its name. A source's own figure, where a reader keeps one beside the
recomputed one, has ``source_`` before it (``source_duration``, ``source_queue``), so that both can
be asked: AcmeTrace's figures are drawn from the source's columns. `source_fact` says which of the
two a published figure was drawn from.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.relation import column_names, relation, rows
from windtunnel.errors import SpecError
from windtunnel.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.companions import Relation


def _ratio(part: Any, whole: Any) -> Any:
    """Return part / whole as Ibis float64 on every backend: of 0 infinite, 0 / 0 unknown."""
    import ibis

    part, whole = part.cast("float64"), whole.cast("float64")
    of_nothing = ibis.cases((part > 0, math.inf), (part < 0, -math.inf))
    return ibis.ifelse(whole == 0, of_nothing, part / whole.nullif(0.0))


#: Facts that are columns of the jobs table.
_RECORDED: tuple[str, ...] = (
    *("duration", "num_gpus", "estimate", "num_cpus", "mem_gib", "num_tasks", "priority"),
)
#: Facts that follow from others: the columns they need, and how.
_DERIVED: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "wait": (("submit_time", "start_time"), lambda t: t.start_time - t.submit_time),
    "jct": (("submit_time", "end_time"), lambda t: t.end_time - t.submit_time),
    "slowdown": (
        ("submit_time", "end_time", "duration"),
        lambda t: (t.end_time - t.submit_time) / t.duration.nullif(0.0),
    ),
    "wait_share": (
        ("submit_time", "start_time", "end_time"),
        lambda t: (t.start_time - t.submit_time) / (t.end_time - t.submit_time).nullif(0.0),
    ),
    "gpu_time": (("num_gpus", "duration"), lambda t: t.num_gpus * t.duration),
    "cpu_time": (("num_cpus", "duration"), lambda t: t.num_cpus * t.duration),
    "source_gpu_time": (
        ("num_gpus", "source_duration"),
        lambda t: t.num_gpus * t.source_duration,
    ),
    "source_num_gpus": (("plan_gpu",), lambda t: t.plan_gpu.cast("float64") / 100),
    "source_wait_share": (
        ("submit_time", "instance_start", "task_end"),
        lambda t: _ratio(t.instance_start - t.submit_time, t.task_end - t.submit_time),
    ),
}
#: Facts of every jobs table: its numbers; ``wait`` (start - submit as recorded), ``jct`` (end -
#: submit), ``slowdown`` (jct / duration), ``wait_share`` (wait / jct), all s or ratios;
#: ``gpu_time`` and ``cpu_time`` (GPU- and core-seconds: number x duration). A number that the
#: source gives beyond the schema is a fact under its column's name; ``source_gpu_time`` is
#: ``source_duration`` x GPUs; ``source_num_gpus`` the GPUs of one task of a PAI job, its
#: ``plan_gpu`` / 100; ``source_wait_share`` the wait of a PAI job over its completion time by the
#: source's own times, which may contradict each other (a task that ends before its first instance
#: starts waited for more than its completion time, infinitely more where that is 0).
FACTS: tuple[str, ...] = (
    *_RECORDED,
    *(name for name in _DERIVED if not name.startswith("source_")),
)
#: The source's own figure of a fact.
_SOURCES = {
    "duration": "source_duration",
    "wait": "source_queue",
    "gpu_time": "source_gpu_time",
    "num_gpus": "source_num_gpus",
    "wait_share": "source_wait_share",
}
#: The column that tells whether the source's own figure is there, where it has another name.
_PRESENT_BY = {
    "source_gpu_time": "source_duration",
    "source_num_gpus": "plan_gpu",
    "source_wait_share": "task_end",
}


def columns_of(fact: str, jobs: Relation) -> tuple[str, ...]:
    """Return the columns of a jobs table that a fact is computed from.

    Raises:
        SpecError: ``fact`` is none of `FACTS` and no other number that the table has.
    """
    has = column_names(jobs)
    if fact in _RECORDED or (fact in has and fact not in BY_NAME and _is_number(jobs, fact)):
        return (fact,)
    if fact in _DERIVED and (fact in FACTS or set(_DERIVED[fact][0]) <= set(has)):
        return _DERIVED[fact][0]
    known = [name for name in has if name not in BY_NAME and _is_number(jobs, name)]
    known += [name for name in _PRESENT_BY if set(_DERIVED[name][0]) <= set(has)]
    raise SpecError.unknown("fact", fact, {*FACTS, *known})


def value_of(table: Any, fact: str) -> Any:
    """Return a fact of a jobs table as an Ibis float column, null where it is unknown.

    Args:
        table: an Ibis table with the columns that `columns_of` names.
    """
    import ibis

    if fact in _DERIVED and fact not in table.columns:
        number = _DERIVED[fact][1](table)
    else:
        number = table[fact].cast("float64")
    if fact in FACTS or fact == "source_wait_share":  # which may be infinite
        return number
    # No rule of the schema has looked at a source's own column: what is no number is unknown.
    # NaN is above every number, on DuckDB as on Spark, where isinf() knows no infinity.
    return ibis.ifelse(number.abs() < math.inf, number, ibis.null("float64"))


def source_fact(jobs: Relation, fact: str) -> str:
    """Return the name of the source's own figure of a fact, where the source gives one.

    AcmeTrace's notebook reads the columns duration, queue and gpu_time of the source, which are
    not always end - start, start - submit and the product (traces of Kalos). Of PAI it reads
    plan_gpu / 100, the GPUs of one task, for the GPUs of a job, which is a gang of such tasks; and
    the share of a job's time that it waited is of times as the tables of PAI have them.

    Args:
        fact: ``duration``, ``wait``, ``gpu_time``, ``num_gpus`` or ``wait_share``; any other is its
            own source.

    Returns:
        ``source_duration``, ``source_queue``, ``source_gpu_time``, ``source_num_gpus`` or
        ``source_wait_share`` where a job of the table has it, else ``fact``. A further column of
        that name that holds no numbers is somebody else's.
    """
    wanted = _SOURCES.get(fact, fact)
    column = _PRESENT_BY.get(wanted, wanted)
    needed = {column, *(_DERIVED[wanted][0] if wanted in _DERIVED else ())} - set(BY_NAME)
    if wanted == fact or not needed <= set(column_names(jobs)):
        return fact
    if not all(_is_number(jobs, name) for name in needed):
        return fact
    table = relation(jobs, (column,))
    (row,) = rows(table.aggregate(known=table[column].count()))
    return wanted if row["known"] else fact


def columns_for(facts: Sequence[str], jobs: Relation) -> tuple[str, ...]:
    """Return the columns that several facts are computed from, each once; see `columns_of`."""
    return tuple(dict.fromkeys(name for fact in facts for name in columns_of(fact, jobs)))


def _is_number(jobs: Relation, column: str) -> bool:
    """Return whether a column holds numbers; one without any value may do."""
    import pyarrow as pa

    if not isinstance(jobs, pa.Table):
        return bool(jobs.schema()[column].is_numeric())
    kind = jobs.schema.field(column).type
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
