"""Compare what runs produced, exactly.

`assert_outcomes_equal` compares meaning, bit for bit, and says where two runs part: the first job
and the first field that differ. Which engine flew is the one thing that may differ.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import quote
from windtunnel.sim.flight import STATUS_NAMES

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome

#: Fields of `Flight` with one value a job, in the order in which they are compared.
PER_JOB: tuple[str, ...] = ("status", "start", "end", "run_time", "preemptions")
#: Fields of `Flight` with one value a segment.
PER_SEGMENT: tuple[str, ...] = ("segment_job", "segment_start", "segment_end")
#: Where a segment's nodes begin, and fields with one value a node of a segment.
PER_NODE: tuple[str, ...] = ("node_offset", "nodes", "node_gpus", "node_tasks", "devices")

#: Fields with one value a job that are None in most runs.
_RARE_PER_JOB: tuple[str, ...] = ("slowdown_time", "gpu_time")
#: What is recorded of a flight besides, where there was anything to record.
RECORDS: tuple[str, ...] = ("interruptions", "stretches", "power", "verdicts")


def assert_outcomes_equal(a: Outcome, b: Outcome) -> None:
    """Assert that two outcomes mean exactly the same.

    Compared are the jobs flown, the cluster, the settings (all but ``engine``), every array of the
    flight (dtype, shape and bits; NaN equals NaN, and -0.0 differs from 0.0), what disruptions,
    elastic jobs and policies of power did, why jobs waited, the rejections with their reasons, and
    the notes.

    Args:
        a: one outcome.
        b: the other.

    Raises:
        AssertionError: they differ; the message names the first job (in the jobs table's order) and
            the first field that differ, with both values.

    >>> import windtunnel as wt
    >>> jobs = {"submit_time": [0, 1], "duration": [5, 5], "num_gpus": [1, 1]}
    >>> assert_outcomes_equal(
    ...     wt.simulate(jobs, "pool:1", engine="reference"),
    ...     wt.simulate(jobs, "pool:1", engine="compiled"),
    ... )
    """
    _same_inputs(a, b)
    _same_settings(a.settings, b.settings)
    for name in (*_RARE_PER_JOB, "portions"):
        _same_kind(name, getattr(a.flight, name), getattr(b.flight, name))
    for name in (*_per_job(a), *PER_SEGMENT, *PER_NODE):
        _same_type(name, getattr(a.flight, name), getattr(b.flight, name))
    _same_jobs(a, b)
    for row in sorted({*a.reasons, *b.reasons}):
        _same(f"{_job(a, row)}: reason", a.reasons.get(row), b.reasons.get(row))
    _same_segments(a, b)
    _same("scheduling_points", a.flight.scheduling_points, b.flight.scheduling_points)
    left, right = a.flight.portions, b.flight.portions
    if left is not None and right is not None:
        _same_array("portions", left, right)
    for name in RECORDS:
        _same_record(name, getattr(a.flight, name), getattr(b.flight, name))
    _same("notes", a.notes, b.notes)


def _per_job(outcome: Outcome) -> tuple[str, ...]:
    rare = (name for name in _RARE_PER_JOB if getattr(outcome.flight, name) is not None)
    return (*PER_JOB, *rare)


def _same(what: str, left: object, right: object) -> None:
    if left != right:
        raise AssertionError(f"{what} differs: {left!r} != {right!r}")


def _same_inputs(a: Outcome, b: Outcome) -> None:
    _same("number of jobs", len(a.jobs), len(b.jobs))
    _same("columns of the jobs table", a.jobs.column_names, b.jobs.column_names)
    for name in a.jobs.column_names:
        left, right = a.jobs[name], b.jobs[name]
        _same(f"type of jobs column {name!r}", left.type, right.type)
        if left.equals(right):
            continue
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        for row, (one, other) in enumerate(pairs):
            both_nan = one != one and other != other  # noqa: PLR0124 - only NaN differs from itself
            if one != other and not both_nan:
                _same(f"{_job(a, row)}: jobs column {name!r}", one, other)
    _same("cluster", a.cluster, b.cluster)


def _same_settings(left: dict[str, Any], right: dict[str, Any]) -> None:
    for name in sorted({*left, *right} - {"engine"}):
        if name not in left or name not in right:
            side = "second" if name in left else "first"
            raise AssertionError(f"settings[{name!r}] is missing in the {side} outcome")
        _same(f"settings[{name!r}]", left[name], right[name])


def _same_type(name: str, left: np.ndarray, right: np.ndarray) -> None:
    _same(f"dtype of flight.{name}", str(left.dtype), str(right.dtype))


def _same_jobs(a: Outcome, b: Outcome) -> None:
    """Compare the arrays with one value a job; report the first job in table order."""
    found: tuple[int, str] | None = None
    counts = []
    for name in _per_job(a):
        left, right = getattr(a.flight, name), getattr(b.flight, name)
        _same(f"shape of flight.{name}", left.shape, right.shape)
        rows = np.flatnonzero(_differ(left, right))
        if len(rows):
            counts.append(f"{name} of {len(rows):,}")
            if found is None or rows[0] < found[0]:
                found = int(rows[0]), name
    if found is None:
        return
    row, name = found
    left, right = (_shown(name, getattr(o.flight, name)[row]) for o in (a, b))
    raise AssertionError(
        f"{_job(a, row)}: {name} differs: {left} != {right} "
        f"(of {len(a.jobs):,} jobs differ: {', '.join(counts)})"
    )


def _same_segments(a: Outcome, b: Outcome) -> None:
    """Compare the segments; report the first in order of start."""
    one, other = a.flight, b.flight
    both = min(len(one.segment_job), len(other.segment_job))
    found: tuple[int, str] | None = None
    for name in PER_SEGMENT:
        at = np.flatnonzero(_differ(getattr(one, name)[:both], getattr(other, name)[:both]))
        if len(at) and (found is None or at[0] < found[0]):
            found = int(at[0]), name
    if found is not None:
        segment, name = found
        row = int(one.segment_job[segment])
        what = f"segment {segment}, {_job(a, row)}: {name}"
        _same(what, getattr(one, name)[segment].item(), getattr(other, name)[segment].item())
    _same("number of segments", len(one.segment_job), len(other.segment_job))
    for name in PER_NODE:
        left, right = getattr(one, name), getattr(other, name)
        if left.shape == right.shape and not _differ(left, right).any():
            continue
        for segment, row in enumerate(one.segment_job.tolist()):
            more = ", tasks, devices" if len(one.node_tasks) else ""
            what = f"segment {segment}, {_job(a, row)}: (node, GPUs{more})"
            _same(what, _where(one, segment), _where(other, segment))
        raise AssertionError(f"flight.{name} differs: {left!r} != {right!r}")


def _same_record(name: str, left: Any, right: Any) -> None:
    """Compare what was recorded of a run besides, field by field."""
    _same_kind(name, left, right)
    for field in () if left is None else fields(left):
        one, other = (np.asarray(getattr(record, field.name)) for record in (left, right))
        _same_array(f"{name}.{field.name}", one, other)


def _same_kind(name: str, left: object, right: object) -> None:
    _same(f"flight.{name} is None", left is None, right is None)


def _same_array(name: str, left: np.ndarray, right: np.ndarray) -> None:
    what = f"flight.{name}"
    _same(f"type of {what}", (left.dtype.kind, left.shape), (right.dtype.kind, right.shape))
    if _differ(left, right).any():
        _same(what, left.tolist(), right.tolist())


def _where(flight: Any, segment: int) -> list[tuple[Any, ...]]:
    part = slice(flight.node_offset[segment], flight.node_offset[segment + 1])
    arrays = [getattr(flight, name) for name in PER_NODE[1:]]
    return list(zip(*(array[part].tolist() for array in arrays if len(array)), strict=True))


def _differ(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return where two arrays of one dtype and shape differ in value or sign of zero."""
    differ: np.ndarray = left != right
    if left.dtype.kind == "f":
        differ = differ & ~(np.isnan(left) & np.isnan(right))
        differ = differ | ((left == 0) & (np.signbit(left) != np.signbit(right)))
    return differ


def _job(outcome: Outcome, row: int) -> str:
    return f"job {quote(outcome.jobs['job_id'][row].as_py())} (row {row})"


def _shown(name: str, value: Any) -> str:
    return STATUS_NAMES[int(value)] if name == "status" else repr(value.item())
