"""When a job's duration becomes known, and the order in which a trace's past unfolds.

At one instant completions come before submissions (DESIGN, "An instant"), except that jobs which
are submitted at an instant know nothing of each other: one that ends the moment it is submitted is
known after them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.checked import checked_choice
from windtunnel.predictors.features import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

#: When a duration is known: at the recorded end, as far as that follows from what is recorded,
#: and else at submit + duration; at the recorded end only; or always at submit + duration.
KNOWN_AFTER: tuple[str, ...] = ("recorded", "end", "submit+duration")
#: Jobs that had not ended when the trace was taken: their durations are not known.
_NOT_ENDED = ("running", "pending")
#: Readers keep the wait that a source tells under this name.
_WAIT = "source_queue"


@dataclass(frozen=True)
class Past:
    """A trace as it unfolds.

    Attributes:
        submit: float64 s, shape (rows,), NaN = unknown: such a job is never predicted.
        truth: durations, float64 s, shape (rows,), NaN = unknown: nothing is learnt from it.
        known: when the truth becomes known, float64 s, shape (rows,), NaN = never.
        events: int64, in order: 2 * row for a completion, 2 * row + 1 for a submission.
        completed: int64: rows in the order in which their durations become known.
        before: int64, shape (rows,): completions before the job's submission; 0 without one.
        notes: what was assumed, one sentence each.
    """

    submit: np.ndarray
    truth: np.ndarray
    known: np.ndarray
    events: np.ndarray
    completed: np.ndarray
    before: np.ndarray
    notes: tuple[str, ...]

    @property
    def submitted(self) -> np.ndarray:
        """Rows in order of submission."""
        rows: np.ndarray = self.events[self.events & 1 == 1] >> 1
        return rows


def past_of(jobs: pa.Table, known_after: str = "recorded") -> Past:
    """Return a jobs table as it unfolds.

    Args:
        known_after: one of `KNOWN_AFTER`. ``recorded`` takes the end; where it is null, start +
            duration, or submit + recorded wait + duration (``source_queue``); and where none of
            these is recorded submit + duration, which is earlier than the truth by the wait.

    Raises:
        SpecError: ``known_after`` is none of these.
    """
    checked_choice("known_after", known_after, KNOWN_AFTER)
    submit = numbers(jobs, "submit_time")
    truth = numbers(jobs, "duration").copy()
    going = pc.fill_null(pc.is_in(jobs["status"], value_set=pa.array(_NOT_ENDED)), False)
    truth[np.asarray(going.to_numpy(zero_copy_only=False), dtype=bool)] = np.nan
    known, assumed = _known(jobs, submit, truth, known_after)
    learnable = ~np.isnan(submit) & ~np.isnan(truth) & ~np.isnan(known)
    known = np.where(learnable, np.maximum(known, submit), np.nan)
    events = _in_order(submit, known)
    is_submission = events & 1 == 1
    completions = np.cumsum(~is_submission)
    before = np.zeros(len(submit), dtype=np.int64)
    before[events[is_submission] >> 1] = completions[is_submission]
    return Past(
        submit,
        truth,
        known,
        events,
        events[~is_submission] >> 1,
        before,
        tuple(_notes(submit, truth, known, assumed)),
    )


def _known(
    jobs: pa.Table, submit: np.ndarray, truth: np.ndarray, known_after: str
) -> tuple[np.ndarray, int]:
    """Return when durations become known, and how many of these instants are assumed."""
    at_once = submit + truth
    if known_after == "submit+duration":
        return at_once, 0
    recorded = numbers(jobs, "end_time")
    if known_after == "end":
        return recorded, 0
    recorded = _first_known(recorded, numbers(jobs, "start_time") + truth)
    if _WAIT in jobs.column_names and pa.types.is_floating(jobs.schema.field(_WAIT).type):
        recorded = _first_known(recorded, submit + numbers(jobs, _WAIT) + truth)
    assumed = int((np.isnan(recorded) & ~np.isnan(at_once)).sum())
    return _first_known(recorded, at_once), assumed


def _first_known(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(first), second, first)


def _notes(submit: np.ndarray, truth: np.ndarray, known: np.ndarray, assumed: int) -> Sequence[str]:
    """Return what was assumed and what is left out, one sentence each."""
    notes = []
    if assumed:
        notes.append(
            f"{assumed:,} jobs have no recorded start or end: their durations count as known from "
            "submission + duration on, earlier than they were by the wait."
        )
    nowhere = int(np.isnan(submit).sum())
    if nowhere:
        notes.append(f"{nowhere:,} jobs have no submit time: they are not predicted.")
    open_ended = int(np.isnan(truth).sum())
    if open_ended:
        notes.append(
            f"{open_ended:,} jobs have no known duration, or had not ended when the trace was "
            "taken: nothing is learnt from them, and their predictions are not judged."
        )
    never = int((np.isnan(known) & ~np.isnan(truth) & ~np.isnan(submit)).sum())
    if never:
        notes.append(f"{never:,} jobs have no recorded end: nothing is learnt from them.")
    return notes


def _in_order(submit: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the events in order of time, kind and row."""
    arriving = np.flatnonzero(~np.isnan(submit))
    ending = np.flatnonzero(~np.isnan(known))
    time = np.concatenate([submit[arriving], known[ending]])
    # Completions before submissions, but one at its own submission's instant after them.
    kind = np.concatenate(
        [np.ones(len(arriving), dtype=np.int8), np.where(known[ending] > submit[ending], 0, 2)]
    )
    event = np.concatenate([2 * arriving + 1, 2 * ending]).astype(np.int64)
    # A job that ends at once must still come after the others of its instant.
    return event[np.lexsort((event, kind, time))]
