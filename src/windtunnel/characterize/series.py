"""How full is the cluster? Running and waiting jobs and GPUs over time.

Two ways to count. Exactly: each bin holds the average over its length. ``compat="helios"``: the
derived series of HeliosArtifact (``trace_parser.py``, Hu et al., SC'21): times are cut to the step
(there a minute), a job runs in every step from that of its start to that of its end, both included,
running GPUs are no more than there are, and utilisation is rounded to three digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.characterize.clock import epoch_seconds
from windtunnel.characterize.instants import MAX_CELLS
from windtunnel.characterize.population import group_label, group_order, population
from windtunnel.characterize.relation import rows
from windtunnel.checked import checked_number
from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.companions import Relation

#: Ways to count beside the exact one.
COMPATS: tuple[str, ...] = ("helios",)
_TIMES = ("submit_time", "start_time", "end_time")
_LEVELS = ("running_jobs", "running_gpus", "waiting_jobs", "waiting_gpus")
_KEYS = ("place", "label", "cell", "last")
#: Sums smaller than this, of numbers of jobs and GPUs, are the rounding of their parts.
_ROUNDING = 1e-9


def usage_series(
    jobs: Relation,
    total_gpus: float | Mapping[str, float] | None = None,
    *,
    step: float = 60,
    by: str | None = None,
    compat: str | None = None,
    epoch: str | None = None,
    where: str = "all",
) -> pa.Table:
    """Return the jobs and GPUs that run and wait in each step of time.

    A job waits from submission to start (to its end where it never started) and runs from start
    to end.

    Args:
        total_gpus: GPUs there are: a number, or with ``by`` a number for each group's name; None =
            not known.
        step: length of a step, s. Steps begin at multiples of it since 1970-01-01 UTC.
        compat: None = averages over each step, exact; ``helios`` = as HeliosArtifact counts.
        epoch: UTC instant of time 0 (`TraceMetadata.epoch`), where the steps are counted from.

    Returns:
        One row a group and step, from the first to the last instant of all groups: the column
        named as ``by`` (absent without ``by``), ``time`` (where the step begins, s since the
        epoch), ``running_jobs``, ``running_gpus``, ``waiting_jobs``, ``waiting_gpus``,
        ``idle_gpus`` and ``utilization`` (0..1; both null where the total is not known; the latter
        where it is 0), ``n`` (jobs that run in the series), ``left_out`` (jobs whose start or end
        is not known), ``unsized`` (jobs of unknown GPU count, which are in no number of GPUs).
        No row where no instant is known.

    Raises:
        SpecError: an argument names nothing known, ``step`` is no length, there would be too many
            steps, or ``total_gpus`` is not of the form that ``by`` needs.
    """
    if compat is not None and compat not in COMPATS:
        raise SpecError.unknown("compat", compat, COMPATS)
    _check_totals(total_gpus, by)
    grid = _Grid(step, epoch)
    table = population(jobs, ("num_gpus",), where=where, by=by, columns=_TIMES)
    events = _usage_events(table, grid, compat)
    groups, first, size = _summed(events, table, by)
    parts = []
    for group in groups:
        group["unsized"] += group["no_size"]
        levels = _levels(group)
        parts.append(_with_total(levels, _total_of(total_gpus, group["name"]), compat))
    return _table(by, groups, grid.times(first, size), parts)


class _Grid:
    """Steps of time, numbered from 1970-01-01 UTC.

    Attributes:
        step: length of a step, s.
        zero: the epoch's place in its step, s.
    """

    def __init__(self, step: float, epoch: str | None) -> None:
        number = isinstance(step, int | float) and not isinstance(step, bool)
        if not number or not math.isfinite(step) or step <= 0:
            raise SpecError("step", f"expected a number of seconds above 0, not {quote(step)}.")
        self.step = float(step)
        self.zero = math.fmod(epoch_seconds(epoch), self.step)

    def of(self, time: Any) -> Any:
        """Return the step of a time (s since the epoch), counted from the epoch's, as Ibis."""
        return ((time + self.zero) / self.step).floor().cast("int64")

    def left(self, time: Any) -> Any:
        """Return what part of its step is left at a time, as Ibis: above 0, at most 1."""
        place = (time + self.zero) / self.step
        return place.floor() + 1.0 - place

    def times(self, first: int, size: int) -> np.ndarray:
        """Return where steps begin, s since the epoch, shape (size,)."""
        begins: np.ndarray = np.arange(first, first + size) * self.step - self.zero
        return begins


def _usage_events(table: Any, grid: _Grid, compat: str | None) -> Any:
    """Return the changes of the levels: rows of a group, a step, and amounts.

    The columns of a level are ``L`` (its change from the step ``cell`` on) and ``L_in`` (how much
    of the change is felt within the step); ``last`` is the last step that an instant lies in.
    """
    import ibis

    gpus = table.fact_0.fill_null(0.0)
    gone = table.start_time.fill_null(table.end_time)
    runs = table.start_time.notnull() & table.end_time.notnull()
    waits = table.submit_time.notnull() & gone.notnull()
    none = ibis.null("float64")
    # The step of its end is the last that a job runs in: it is gone from the next one on.
    last = 1 if compat == "helios" else 0
    changes = [
        ("running", ibis.ifelse(runs, table.start_time, none), 1.0, 0),
        ("running", ibis.ifelse(runs, table.end_time, none), -1.0, last),
        ("waiting", ibis.ifelse(waits, table.submit_time, none), 1.0, 0),
        ("waiting", ibis.ifelse(waits, gone, none), -1.0, 0),
    ]
    names = tuple(name for level in _LEVELS for name in (level, f"{level}_in"))
    tables = []
    for level, time, sign, after in changes:
        inside = ibis.literal(1.0) if compat == "helios" else grid.left(time)
        amounts = {
            f"{level}_jobs": ibis.literal(sign),
            f"{level}_jobs_in": inside * sign,
            f"{level}_gpus": gpus * sign,
            f"{level}_gpus_in": gpus * inside * sign,
        }
        happened = table.filter(table.asked & time.notnull())
        at = grid.of(time)
        keys = {"place": table.place, "label": table.label, "at": at, "cell": at + after}
        columns = {name: amounts.get(name, ibis.literal(0.0)) for name in names}
        tables.append(happened.select(**keys, **columns))
    events = ibis.union(*tables)
    return events.group_by(["place", "label", "cell"]).aggregate(
        last=events["at"].max(), **{name: events[name].sum() for name in names}
    )


def _summed(events: Any, table: Any, by: str | None) -> tuple[list[dict[str, Any]], int, int]:
    """Return the groups in order, each with its sums as arrays, the first step and their number."""
    runs = table.start_time.notnull() & table.end_time.notnull()
    counts = table.group_by(["place", "label"]).aggregate(
        n=(table.asked & runs).sum(),
        left_out=(table.asked & ~runs).sum(),
        unsized=(~table.asked).sum(),
        no_size=(table.asked & table.fact_0.isnull()).sum(),
    )
    groups = {(row["place"], row["label"]): row for row in sorted(rows(counts), key=group_order)}
    found = events.to_pyarrow()
    if found.num_rows == 0:
        return [], 0, 0
    cells = found["cell"].to_numpy()
    first, size = int(cells.min()), int(cells.max() - cells.min()) + 1
    shown = int(found["last"].to_numpy().max()) - first + 1
    if size * len(groups) > MAX_CELLS:
        raise SpecError("step", f"{size:,} steps for each of {len(groups):,} groups are too many.")
    names = [name for name in found.column_names if name not in _KEYS]
    for (place, label), group in groups.items():
        group["name"] = group_label(by, place, label)
        group |= {name: np.zeros(size) for name in names}
    keys = list(zip(found["place"].to_pylist(), found["label"].to_pylist(), strict=True))
    sums = {name: found[name].to_numpy() for name in names}
    members: dict[tuple[float, str], list[int]] = {}
    for i, key in enumerate(keys):
        members.setdefault(key, []).append(i)
    for key, of_group in members.items():
        for name in names:
            groups[key][name][cells[of_group] - first] = sums[name][of_group]
    for group in groups.values():
        group |= {name: group[name][:shown] for name in names}
    return list(groups.values()), first, shown


def _levels(group: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the average of each level in each step, from its changes."""
    found = {}
    for level in _LEVELS:
        before = np.concatenate([[0.0], np.cumsum(group[level])[:-1]])
        average = before + group[f"{level}_in"]
        found[level] = np.where(np.abs(average) < _ROUNDING, 0.0, average)
    return found


def _with_total(
    levels: dict[str, np.ndarray], total: float | None, compat: str | None
) -> dict[str, np.ndarray]:
    """Add idle GPUs and utilisation, NaN where they are not known."""
    running = levels["running_gpus"]
    unknown = np.full(len(running), np.nan)
    if total is None:
        return {**levels, "idle_gpus": unknown, "utilization": unknown}
    if compat == "helios":
        running = np.minimum(running, total)
    used = running / total if total else unknown
    if compat == "helios":
        used = np.round(used, 3)
    return {**levels, "running_gpus": running, "idle_gpus": total - running, "utilization": used}


def _check_totals(total_gpus: float | Mapping[str, float] | None, by: str | None) -> None:
    if total_gpus is None:
        return
    if isinstance(total_gpus, Mapping) != (by is not None):
        form = "a number for each group's name" if by else "one number"
        raise SpecError("total_gpus", f"expected {form}, not {quote(total_gpus)}.")
    for total in total_gpus.values() if isinstance(total_gpus, Mapping) else (total_gpus,):
        checked_number("total_gpus", total, "GPUs, 0 or more", least=0)


def _total_of(total_gpus: float | Mapping[str, float] | None, name: str) -> float | None:
    if isinstance(total_gpus, Mapping):
        return total_gpus.get(name)
    return total_gpus


def _table(
    by: str | None,
    groups: list[dict[str, Any]],
    times: np.ndarray,
    parts: list[dict[str, np.ndarray]],
) -> pa.Table:
    """Return the series of the groups below each other."""
    import pyarrow as pa

    size = len(times)
    nothing = np.zeros(0)
    labels = [group["name"] for group in groups for _ in range(size)]
    first = {} if by is None else {by: pa.array(labels, pa.string())}
    columns: dict[str, Any] = {"time": pa.array(np.tile(times, len(groups)), pa.float64())}
    for name in (*_LEVELS, "idle_gpus", "utilization"):
        values = np.concatenate([nothing, *(part[name] for part in parts)])
        columns[name] = pa.array(values, pa.float64(), from_pandas=True)
    for name in ("n", "left_out", "unsized"):
        values = np.repeat(np.array([group[name] for group in groups], dtype=np.int64), size)
        columns[name] = pa.array(values, pa.int64())
    return pa.table({**first, **columns})
