"""The times of an sacct log: local wall time without a zone, or seconds since 1970 (``%s``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.sacct_words import NOTHING
from windtunnel.traces.wallclock import OddTimeError, read_times, second_pass, to_utc

if TYPE_CHECKING:
    from windtunnel.traces.sacct_table import SacctTable

_WHAT = "a local time as YYYY-MM-DDTHH:MM:SS, seconds since 1970, or Unknown"
#: Times of a log lie between 1970 and 2200.
_LATEST = 7_258_118_400.0
#: Clock and run time are whole seconds, rounded each on its own.
_SLACK_S = 1.0


@dataclass(frozen=True)
class Moments:
    """A column of times, both readings of the repeated hour of autumn.

    Attributes:
        first: UTC seconds since 1970, an ambiguous time read as its first pass, NaN = unknown.
        second: as its second pass.
        ambiguous: where the two readings differ.
        walls: how many times are wall-clock times.
    """

    first: np.ndarray
    second: np.ndarray
    ambiguous: np.ndarray
    walls: int


@dataclass(frozen=True)
class Times:
    """The times of the jobs, UTC seconds since 1970, float64, NaN = unknown, shape (rows,).

    Attributes:
        submit: submission.
        eligible: since when nothing but the queue held the job.
        start: start; NaN where it never started.
        end: end; NaN where it still runs.
        elapsed: run time in seconds.
        walls: how many times are wall-clock times.
        ambiguous: how many of them stand in a repeated hour.
        corrected: how many ends were taken from the run time because the clock disagreed.
    """

    submit: np.ndarray
    eligible: np.ndarray
    start: np.ndarray
    end: np.ndarray
    elapsed: np.ndarray
    walls: int
    ambiguous: int
    corrected: int


def job_times(
    table: SacctTable,
    elapsed: np.ndarray,
    *,
    zone: str,
    never_ran: np.ndarray,
    still_runs: np.ndarray,
) -> Times:
    """Return the times of all rows.

    An ambiguous time is its first pass, or its second where the first would lie before the
    preceding time of the job or would contradict its run time.

    Args:
        elapsed: run time by ElapsedRaw or Elapsed, s, NaN = not recorded.
        never_ran: rows of jobs that left or wait without a run, whatever their Start says.
        still_runs: rows of jobs that have not ended.

    Raises:
        TraceError: a cell is no time.
        SpecError: there is no such zone.
    """
    submit, eligible, start, end = (
        moments(table, name, zone) for name in ("submit", "eligible", "start", "end")
    )
    began = _not_before(start, submit.first)
    contradicted = ~_agrees(start.first, end, elapsed) & _agrees(start.second, end, elapsed)
    began = np.where(start.ambiguous & contradicted, start.second, began)
    began[never_ran] = np.nan
    ended = _not_before(end, np.fmax(began, submit.first))
    run = np.where(np.isnan(elapsed), np.where(ended >= began, ended - began, np.nan), elapsed)
    expected = began + run
    contradict = (np.abs(expected - ended) > 0) & (np.abs(expected - end.second) > 0)
    corrected = contradict & ~still_runs
    ended = np.where(np.isnan(expected), ended, expected)
    ended[still_runs] = np.nan
    all_of = (submit, eligible, start, end)
    return Times(
        submit.first,
        _not_before(eligible, submit.first),
        began,
        ended,
        run,
        sum(column.walls for column in all_of),
        sum(int(column.ambiguous.sum()) for column in all_of),
        int(corrected.sum()),
    )


def moments(table: SacctTable, name: str, zone: str) -> Moments:
    """Return a column of times.

    Raises:
        TraceError: a cell is no time; names its line.
    """
    cells = pa.array(
        [None if cell.lower() in NOTHING else cell for cell in table.cells(name)], pa.string()
    )
    counted = pc.match_substring_regex(cells, "^[0-9]{1,11}$")
    plain = pc.if_else(counted, cells, pa.scalar(None, pa.string())).cast(pa.float64())
    seconds = plain.to_numpy(zero_copy_only=False)
    walls = pc.if_else(counted, pa.scalar(None, pa.string()), cells)
    try:
        local = read_times(walls)
    except OddTimeError as error:
        raise table.bad(name, error.row, _WHAT) from error
    wrong = ~((np.fmax(seconds, 0) <= _LATEST) & (np.fmax(local, 0) <= _LATEST))
    wrong |= np.fmin(local, 0) < 0
    if wrong.any():
        raise table.bad(name, int(wrong.argmax()), "a time between 1970 and 2200")
    first, ambiguous = to_utc(local, zone)
    is_wall = ~np.isnan(local)
    return Moments(
        np.where(is_wall, first, seconds),
        np.where(is_wall, second_pass(local, zone), seconds),
        ambiguous & is_wall,
        int(is_wall.sum()),
    )


def _not_before(column: Moments, earlier: np.ndarray) -> np.ndarray:
    """Return the first pass, or the second where the first precedes ``earlier``."""
    late = column.ambiguous & (column.first < earlier)
    return np.where(late, column.second, column.first)


def _agrees(start: np.ndarray, end: Moments, elapsed: np.ndarray) -> np.ndarray:
    """Return where a start and the run time give one reading of the end."""
    expected = start + elapsed
    agrees: np.ndarray = (np.abs(expected - end.first) <= _SLACK_S) | (
        np.abs(expected - end.second) <= _SLACK_S
    )
    return agrees
