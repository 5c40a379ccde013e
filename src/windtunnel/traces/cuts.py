"""Cuts: a part of a trace's jobs, by time, by a column's words, by number or at random.

Cuts are made in the order in which they are written, each of what the one before it left. Times
stay as they are: a cut trace has the epoch of the whole one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError, quote
from windtunnel.schema import COLUMNS
from windtunnel.time_span import seconds
from windtunnel.traces.block_draws import drawn_blocks
from windtunnel.traces.wallclock import FIRST_SECOND, to_utc, zone_info

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.companions import Relation
    from windtunnel.traces.trace import Trace

    #: Which jobs of a trace stay, bool, shape (jobs,).
    Keep = Callable[[Trace], np.ndarray]

_FIRST, _LAST = "first-", "last-"
_MOST_WINDOWS = 10_000
#: Columns whose words a cut may name.
_WORDS = tuple(c.name for c in COLUMNS if c.type == pa.string() and c.name != "job_id")
#: Words that cut any trace.
CUTS: tuple[str, ...] = ("from", "to", "jobs", "sample", "windows", "blocks", *_WORDS)
#: Those that the seed decides.
SEEDED = ("sample", "windows", "blocks")


@dataclass(frozen=True)
class Cut:
    """One cut of a trace.

    Attributes:
        text: as it stands in the trace's name.
        keep: which jobs stay.
        redraw: what is made of those; None = nothing.
    """

    text: str
    keep: Keep
    redraw: Callable[[pa.Table], pa.Table] | None = None


def is_cut(word: str, value: str) -> bool:
    """Whether a setting is a cut whatever else its word may mean: ``jobs=first-5000``."""
    return word == "jobs" and value.startswith((_FIRST, _LAST))


def parse_cut(where: str, word: str, value: str, seed: int) -> Cut:
    """Return the cut that a setting of a trace's name asks for.

    Args:
        where: the setting, for messages.
        word: one of `CUTS`.
        seed: what a sample is drawn with, or which of the windows is meant.

    Raises:
        SpecError: the value is none for this word.
    """
    if word in {"from", "to"}:
        keep = _by_time(where, value, until=word == "to")
    elif word == "jobs":
        keep = _by_number(where, value)
    elif word == "sample":
        keep = _at_random(where, value, seed)
    elif word == "windows":
        keep = _by_window(where, value, seed)
    elif word == "blocks":
        if seed < 0:
            raise SpecError(where, f"found seed={seed}; expected a seed >= 0.")
        redraw = partial(drawn_blocks, number=_number_of(where, value, "blocks"), seed=seed)
        return Cut(f"{word}={value}:seed={seed}", _with_submission, redraw)
    else:
        keep = _by_word(where, word, value)
    return Cut(f"{word}={value}" + f":seed={seed}" * (word in SEEDED and seed > 0), keep)


def cut_trace(trace: Trace, cuts: list[Cut]) -> Trace:
    """Return the part of a trace that all cuts leave, named by them; what they took is counted.

    Raises:
        SpecError: a cut leaves nothing, or names what the trace has not.
    """
    if not cuts:
        return trace
    whole, dropped = trace.jobs.num_rows, dict(trace.metadata.dropped)
    for cut in cuts:
        kept = cut.keep(trace)
        if not kept.any():
            raise SpecError(
                f"{trace.name}:{cut.text}", f"no job is left of {len(kept):,}. {_range(trace)}"
            )
        left = int(len(kept) - kept.sum())
        reason = f"cut off by {cut.text}"
        dropped[reason] = dropped.get(reason, 0) + left
        jobs = trace.jobs.filter(pa.array(kept))
        if cut.redraw is not None:  # what belongs to a job does not know of its copies
            trace, jobs = replace(trace, tasks=None, holdings=None), cut.redraw(jobs)
            if not jobs.num_rows:
                message = "these blocks have no jobs; expected fewer blocks, or another seed."
                raise SpecError(f"{trace.name}:{cut.text}", message)
        trace = trace.with_jobs(jobs)
    about, name = trace.metadata, ":".join(cut.text for cut in cuts)
    note = f"This is a part of the trace ({name}): {trace.jobs.num_rows:,} of {whole:,} jobs."
    return replace(
        trace,
        metadata=replace(
            about,
            name=f"{about.name}:{name}",
            dropped=dropped,
            notes=(*about.notes, note),
            settings=about.settings | {"cut": name},
        ),
        tasks=None if trace.tasks is None else _of_jobs(trace.tasks, trace.jobs),
        holdings=None if trace.holdings is None else _of_jobs(trace.holdings, trace.jobs),
    )


def _of_jobs(rows: Relation, jobs: pa.Table) -> Relation:
    """Return the rows of a companion table that belong to these jobs."""
    if isinstance(rows, pa.Table):
        return rows.filter(pc.is_in(rows["job_id"], jobs["job_id"].combine_chunks()))
    import ibis

    return rows.semi_join(ibis.memtable(jobs.select(["job_id"])), "job_id")


def _submitted(trace: Trace) -> np.ndarray:
    """Return the times of submission, s since the epoch, NaN = unknown."""
    return np.asarray(trace.jobs["submit_time"].to_numpy(), np.float64)


def _by_time(where: str, value: str, *, until: bool) -> Keep:
    """Keep what was submitted at or after a time, or before it."""
    try:
        date = datetime.fromisoformat(value) if not value.isdecimal() else None
    except ValueError:
        date = None
    try:
        span = None if date else seconds(where, value)
    except SpecError as error:
        expected = "a date (2017-10-09, 2017-10-09T08:00), or a time since the trace's begin (2d)"
        raise SpecError(where, f"found {quote(value)}; expected {expected}.") from error

    def keep(trace: Trace) -> np.ndarray:
        limit = _since_epoch(where, date, trace) if date is not None else span
        submitted = _submitted(trace)
        kept: np.ndarray = submitted < limit if until else submitted >= limit
        return kept

    return keep


def _since_epoch(where: str, date: datetime, trace: Trace) -> float:
    """Return a date on the trace's wall clock as seconds since its epoch."""
    about = trace.metadata
    epoch = about.zero
    if epoch is None:
        raise SpecError(
            where,
            f"the times of {quote(about.name)} have no date; give a time since its begin, "
            "such as 2d or 36h.",
        )
    if date.tzinfo is not None:
        return date.timestamp() - epoch
    wall = date.replace(tzinfo=UTC).timestamp()
    return float(to_utc(np.array([max(wall, FIRST_SECOND)]), about.zone or "UTC")[0][0]) - epoch


def _by_number(where: str, value: str) -> Keep:
    """Keep the first or the last jobs in the order of submission."""
    side, _, number = value.partition("-")
    if not is_cut("jobs", value) or not number.isdecimal() or int(number) < 1:
        raise SpecError(
            where,
            f"found {quote(value)}; expected first-5000 or last-5000. (Only traces that are made "
            "have as many jobs as is asked for; sample=0.1 keeps a share of any.)",
        )

    def keep(trace: Trace) -> np.ndarray:
        order = np.argsort(_submitted(trace), kind="stable")
        chosen = order[: int(number)] if f"{side}-" == _FIRST else order[-int(number) :]
        kept = np.zeros(len(order), dtype=bool)
        kept[chosen] = True
        return kept

    return keep


def _at_random(where: str, value: str, seed: int) -> Keep:
    """Keep a share of the jobs, drawn with a seed; at least one."""
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise SpecError(where, f"found {quote(value)}; expected a share > 0 and <= 1, such as 0.1.")
    if seed < 0:
        raise SpecError(where, f"found seed={seed}; expected a seed >= 0.")

    def keep(trace: Trace) -> np.ndarray:
        count = trace.jobs.num_rows
        drawn = np.random.Generator(np.random.PCG64(seed)).random(count)
        kept = np.zeros(count, dtype=bool)
        kept[np.argsort(drawn, kind="stable")[: max(1, round(share * count))]] = True
        return kept

    return keep


def _by_window(where: str, value: str, seed: int) -> Keep:
    """Keep one of several windows of equal length from the first submission to the last."""
    number = _number_of(where, value, "windows")
    if not 0 <= seed < number:
        expected = f"expected seeds from 0 to {number - 1}"
        raise SpecError(where, f"seed {seed} is none of the {number:,} windows; {expected}.")

    def keep(trace: Trace) -> np.ndarray:
        submitted = _submitted(trace)
        if np.isnan(submitted).all():
            return np.zeros(len(submitted), dtype=bool)
        edges = np.linspace(np.nanmin(submitted), np.nanmax(submitted), number + 1)
        kept: np.ndarray = (submitted >= edges[seed]) & (submitted < edges[seed + 1])
        return kept | (submitted == edges[-1]) if seed == number - 1 else kept

    return keep


def _number_of(where: str, value: str, what: str) -> int:
    number = int(value) if value.isdecimal() else 0
    if not 1 <= number <= _MOST_WINDOWS:
        message = f"found {quote(value)}; expected a number of {what} from 1 to {_MOST_WINDOWS:,}."
        raise SpecError(where, message)
    return number


def _with_submission(trace: Trace) -> np.ndarray:
    kept: np.ndarray = ~np.isnan(_submitted(trace))
    return kept


def _by_word(where: str, column: str, value: str) -> Keep:
    """Keep jobs with one of some words in a column, joined by commas."""

    def means(cell: str) -> set[str]:
        # A job may name several GPU types, in any case.
        return set(cell.lower().split("|")) if column == "gpu_type" else {cell}

    def keep(trace: Trace) -> np.ndarray:
        cells = trace.jobs[column]
        known = [cell for cell in cells.unique().to_pylist() if cell is not None]
        if not known:
            raise SpecError(where, f"the jobs of {quote(trace.name)} tell no {column}.")
        words = [value] if value in known else value.split(",")
        chosen = []
        for word in words:
            found = [cell for cell in known if means(word) & means(cell)]
            if not found:
                named = f"trace {quote(trace.name)}"
                raise SpecError.unused(where, column, word, known, where=named)
            chosen += found
        kept = pc.is_in(cells, pa.array(chosen, pa.string()))
        return np.asarray(kept.to_numpy(), dtype=bool)

    return keep


def _range(trace: Trace) -> str:
    """Return when the trace's jobs were submitted, in a sentence."""
    about, submitted = trace.metadata, _submitted(trace)
    if np.isnan(submitted).all():
        return "It tells no times of submission."
    ends = float(np.nanmin(submitted)), float(np.nanmax(submitted))
    epoch = about.zero
    if epoch is None:
        return f"Its jobs were submitted from {ends[0]:g} s to {ends[1]:g} s."
    zone = zone_info(about.zone or "UTC")
    first, last = (datetime.fromtimestamp(epoch + end, zone) for end in ends)
    return f"Its jobs were submitted from {first:%Y-%m-%dT%H:%M:%S} to {last:%Y-%m-%dT%H:%M:%S}."
