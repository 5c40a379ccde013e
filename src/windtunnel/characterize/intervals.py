"""When did each task run, and where? The tasks as half-open intervals [start, end) of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.left_out import LeftOut, split_off
from windtunnel.characterize.relation import relation, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from windtunnel.companions import Relation

#: The columns that tell when a task ran.
_TIMES = ("start_time", "end_time", "status")
#: GPU names of one task are joined by this.
_JOINED = "|"
#: Stands for it while splitting: a plain text and a pattern alike, on every backend.
_SPLIT = "\n"


def run_intervals(
    tasks: Relation,
    columns: Iterable[str],
    reasons: Callable[[Any], Mapping[str, Any]] | None = None,
) -> tuple[Any, int, LeftOut]:
    """Return the tasks that are known to have run, each as an interval of time.

    A task that is still ``running`` and has no end holds what it has until the last instant that
    any task's times name; any other task without an end is left out.

    Args:
        reasons: from the table, further reasons to leave a row out, as `split_off` takes them;
            they count before those of the times.

    Returns:
        An Ibis table of ``columns``, ``begin`` and ``end`` (float64 s, neither null, begin <=
        end), its number of rows, and the rows left out: reason -> count.

    Raises:
        SchemaError: the table lacks a column.
    """
    table = relation(tasks, [*columns, *_TIMES])
    (known,) = rows(table.aggregate(start=table.start_time.max(), end=table.end_time.max()))
    last = max((t for t in known.values() if t is not None), default=0.0)
    still = table.end_time.isnull() & (table.status == "running").fill_null(False)
    timed = table.mutate(begin=table.start_time, end=still.ifelse(last, table.end_time))
    checks = dict(reasons(timed)) if reasons is not None else {}
    checks |= {
        "no start_time": timed.begin.isnull(),
        "no end_time": timed.end.isnull(),
        "ends before it starts": timed.end < timed.begin,
    }
    kept, n, left_out = split_off(timed, checks)
    return kept.select(*dict.fromkeys(columns), "begin", "end"), n, left_out


def gpu_names(table: Any) -> Any:
    """Return the Ibis array column of the GPUs that each task names, null where it names none."""
    return table.gpu.replace(_JOINED, _SPLIT).split(_SPLIT)


def one_row_a_gpu(table: Any) -> Any:
    """Return a tasks table with one row for each GPU of each task, ``gpu`` a single name."""
    return table.mutate(gpu=gpu_names(table)).unnest("gpu")
