"""How much was held, over time? Weighted intervals become one level a step, in one pass of sums.

A level is a running sum of +weight at each beginning and -weight at each end; the events of one
step are added up where the data is, so that only groups x steps numbers come here. Steps are
counted from time 0 and cover [k * step, (k + 1) * step): with an hour they are the clock's hours
wherever the epoch is a full hour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from windtunnel.characterize.relation import LeftOut, relation, rows, split_off
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    #: A level as the mean over its step, or as it stands at the step's first instant.
    Sample: TypeAlias = Literal["mean", "instant"]
    from collections.abc import Callable, Iterable, Mapping

    from windtunnel.companions import Relation

#: More levels than this are refused: they would not fit into memory.
MAX_LEVELS = 50_000_000
#: Sums and differences of fractions leave dust; levels are rounded to this many decimals.
_DECIMALS = 9


@dataclass(frozen=True)
class Levels:
    """What was held, by group and step.

    Attributes:
        groups: one tuple a group (values of the ``by`` columns), sorted, None last.
        times: Float array of shape (steps,), s: first instant of each step.
        values: weight -> Float array of shape (groups, steps), in the weight's unit.
    """

    groups: list[tuple[Any, ...]]
    times: np.ndarray
    values: dict[str, np.ndarray]


def levels(
    intervals: Any,
    weights: Sequence[str],
    by: Sequence[str] = (),
    *,
    step: float,
    sample: Sample = "mean",
) -> Levels:
    """Return how much was held in each step from the first beginning to the last end.

    Args:
        intervals: an Ibis table with ``begin`` and ``end`` (s, begin <= end, not null), ``by``
            and ``weights`` (a null weight holds nothing).
        weights: numeric columns to add up over what is held at a time.
        by: columns whose values make the groups; none = one group.
        step: length of a step, s.
        sample: ``mean`` = integral over the step / step (exact, whatever the step's length);
            ``instant`` = the level at the step's first instant, of intervals [begin, end).

    Raises:
        SpecError: ``step`` is not positive, or so small that there were more than `MAX_LEVELS`
            levels.
    """
    if not (math.isfinite(step) and step > 0):
        raise SpecError("step", f"a step is a positive number of seconds, not {step!r}.")
    (span,) = rows(
        intervals.aggregate(
            n=intervals.count(), first=intervals.begin.min(), last=intervals.end.max()
        )
    )
    if span["n"] == 0:
        return Levels([], np.empty(0), {name: np.empty((0, 0)) for name in weights})
    first = math.floor(span["first"] / step)
    steps = max(math.ceil(span["last"] / step) - first, 1)
    _check_size(steps, step)
    found = _events(intervals, weights, by, step, sample).to_pyarrow()
    keys = list(zip(*(found[name].to_pylist() for name in by), strict=True))
    keys = keys or [()] * found.num_rows
    groups = sorted(set(keys), key=lambda key: tuple((v is None, v) for v in key))
    _check_size(steps * len(groups), step)
    place = {key: i for i, key in enumerate(groups)}
    at_group = np.array([place[key] for key in keys])
    at_step = np.clip(np.asarray(found["bin"]) - first, 0, steps)
    values = {}
    for name in weights:
        whole, part = (np.asarray(found[f"{kind}_{name}"]) for kind in ("whole", "part"))
        grid = np.zeros((len(groups), steps + 1))
        np.add.at(grid, (at_group, at_step), whole)
        level = np.cumsum(grid, axis=1)
        if sample == "mean":
            level = np.concatenate([np.zeros((len(groups), 1)), level[:, :-1]], axis=1)
            np.add.at(level, (at_group, at_step), part)
        values[name] = np.round(level[:, :steps], _DECIMALS) + 0.0  # no negative zero
    return Levels(groups, (first + np.arange(steps)) * step, values)


def _check_size(count: int, step: float) -> None:
    if count > MAX_LEVELS:
        raise SpecError(
            "step",
            f"{step:g} s makes {count:,} levels, more than {MAX_LEVELS:,}: take a longer one.",
        )


def _events(
    intervals: Any, weights: Sequence[str], by: Sequence[str], step: float, sample: Sample
) -> Any:
    """Return per group and step the sum of what begins minus ends, whole and for the step's rest.

    ``part_<weight>`` is the share of the step in which each event counts: the mean over its own
    step; in all later steps it counts in whole.
    """
    import ibis

    def at(time: str, sign: int) -> Any:
        position = intervals[time] / step
        place = position.floor() if sample == "mean" else position.ceil()
        named = {name: intervals[name].cast("float64").fill_null(0.0) * sign for name in weights}
        keys = {name: intervals[name] for name in by}
        bins = place.cast("int64")
        return intervals.select(**keys, **named, bin=bins, rest=bins + 1 - position)

    events = ibis.union(at("begin", 1), at("end", -1))
    sums = {f"whole_{name}": events[name].sum() for name in weights}
    sums |= {f"part_{name}": (events[name] * events.rest).sum() for name in weights}
    return events.group_by([*by, "bin"]).aggregate(**sums)


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
