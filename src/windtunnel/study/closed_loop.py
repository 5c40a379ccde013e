"""Closed loops: users who wait for their jobs before they submit more.

A log says when jobs came on *that* cluster, on that day. Users whose jobs end later come later,
and one whose job failed submits it again once it has. So each user's submissions are learnt from
the log as dependences, and follow from the events of the flight:

* A job *follows* the last event of its user before it, if that is no longer ago than a break: an
  end, or a submission of a job that was still there. It comes as long after that event as it did
  in the log: after a think time, or within a batch.
* After a break the user comes back at the hour of the log, though not before the job is over that
  ended last before it in the log. So days and weeks stay.
* A user's first job comes as recorded; so do jobs whose user is unknown.
* What a user did after a recorded failure is so part of the log. A job that a failure of the flight
  stops waits to go on; where it is to be over (``on_failure``), its user tries again, as often and
  as soon as users of the log do (`windtunnel.study.resubmission`), and what follows it follows the
  last attempt. The attempts are jobs of the flight, behind those of the log.

Sessions, batches and think times are those of Zakay and Feitelson, *On Identifying User Session
Boundaries in Parallel Workload Logs* (JSSPP 2012) and *Workload Resampling for Performance
Evaluation of Parallel Job Schedulers* (CCPE 26, 2014); feedback, and 20 minutes for a break, those
of Shmueli and Feitelson, *Uncovering the Effect of System Performance on User Behavior from Traces
of Parallel Systems* (MASCOTS 2007). Users are not resampled: `windtunnel.traces` draws blocks.

The next submission is a function of what has happened. So a flight whose submissions are right up
to some instant is right up to the next one: flying again with the submissions that the flight
itself implies ends, after as many flights as a chain has jobs, or twice as many, where both are the
same: who came in the very instant in which what he follows ended is left out of one flight.
There every submission is the event that follows from the flight, to the bit, under any policy,
on any engine.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import submitted_at
from windtunnel.sim.flight import FAILED, FINISHED, REJECTED
from windtunnel.study.resubmission import (
    Habit,
    failed_here,
    failure_notes,
    learn_habit,
    with_attempts,
)
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions

#: Seconds without an event of a user after which a new session begins.
BREAK = 1200.0
#: What a job follows: nothing, an end or a submission within its session, an end before a break.
_FIRST, _AFTER_END, _AFTER_SUBMISSION, _AFTER_BREAK = range(4)
#: Flights in a row that come no further before a policy counts as one that knows the future.
_MOST_VAIN = 50


def is_closed(arrivals: str | None) -> bool:
    """Return whether an option asks for a closed loop: ``closed``, or ``closed:30m``."""
    return arrivals is not None and re.match(r"\s*closed\b", arrivals) is not None


def fly_closed(table: pa.Table, conditions: Conditions, fly: Callable[..., Outcome]) -> Outcome:
    """Fly a jobs table whose users wait for their jobs.

    Args:
        table: a validated jobs table.
        conditions: with ``closed`` arrivals.
        fly: (jobs table, conditions, the log's row of each of its rows) -> outcome.

    Returns:
        The outcome, of the jobs at the times at which they are submitted in it; further attempts
        of jobs that failed in it are its last rows.

    Raises:
        SpecError: no job has a user, the break is no time, or the policy knows the future.
        SchemaError, TraceError, PolicyError: as ``fly``.
    """
    arrivals = conditions.site.arrivals
    loop = learn(table, _break(str(arrivals)), conditions.seed)
    alone = conditions.having(arrivals=None)
    flown, known, vain = Submissions(loop.submit, {}), -math.inf, 0
    while True:
        never = np.isposinf(flown.first)
        asked = alone.having(incomplete="reject") if never.any() else alone
        jobs = with_attempts(_at(table, flown.first), flown.again)
        outcome = fly(jobs, asked, flown.rows)
        implied = loop.follow(outcome, flown, alone)
        reached = implied.differ_from(flown)
        if reached is None:
            break
        vain = vain + 1 if reached == known else 0
        if reached < known or vain > _MOST_VAIN:
            label = quote(conditions.scheduler.policy.label)
            message = f"policy {label} decides by jobs that are still to come; expected one that "
            raise SpecError("arrivals", message + "goes by what has happened, or other arrivals.")
        flown, known = implied, reached
    label, failures = conditions.scheduler.policy.label, int(failed_here(outcome).sum())
    sequel = failure_notes(label, loop.habit, len(flown.again), failures)
    reasons = dict.fromkeys(np.flatnonzero(never).tolist(), "its user waits for a job for ever")
    settings = {"arrivals": arrivals, "incomplete": conditions.scheduler.incomplete}
    return replace(
        outcome,
        settings=outcome.settings | settings,
        reasons=outcome.reasons | reasons,
        notes=(*outcome.notes, *loop.notes, *sequel),
    )


@dataclass(frozen=True)
class Submissions:
    """When jobs are submitted in a flight.

    Attributes:
        first: Float array (n,), the log's jobs, row order, s; NaN = unknown, inf = never.
        again: further attempts, by time, as their rows in the flight are, behind the log's: (row of
            the log, number of the attempt, from 1) -> when, s.
    """

    first: np.ndarray
    again: dict[tuple[int, int], float]

    @property
    def rows(self) -> list[int]:
        """Which row of the log each row of the flight is."""
        return [*range(len(self.first)), *(row for row, _ in self.again)]

    def differ_from(self, others: Submissions) -> float | None:
        """Return the first instant at which there is something else, s; None = there is none."""
        changed = (self.first != others.first) & ~np.isnan(self.first)
        instants = np.minimum(self.first, others.first)[changed].tolist()
        for attempt in self.again.keys() | others.again.keys():
            times = {one.again.get(attempt, math.inf) for one in (self, others)}
            instants += [min(times)] if len(times) > 1 else []
        return min(instants, default=None)


@dataclass(frozen=True)
class Loop:
    """When each of n jobs is submitted, row order.

    Attributes:
        submit: Float array (n,), as recorded, s; NaN = unknown, and not flown.
        order: Int array (n,), rows by submission.
        kind: Int array (n,), what a job follows.
        follows: Int array (n,), row of the job whose event it follows; -1 = none.
        delay: Float array (n,), how long after it, s.
        lasted: Float array (n,), from submission to end as recorded, s.
        habit: what users do about jobs that fail.
        notes: what was assumed.
    """

    submit: np.ndarray
    order: np.ndarray
    kind: np.ndarray
    follows: np.ndarray
    delay: np.ndarray
    lasted: np.ndarray
    habit: Habit
    notes: tuple[str, ...]

    def follow(self, outcome: Outcome, flown: Submissions, asked: Conditions) -> Submissions:
        """Return when jobs are submitted that follow the events of a flight.

        A job that will be submitted at another time than it was is taken to last as long as it did.

        Args:
            outcome: the flight.
            flown: the submissions in it.
            asked: what it was flown under.

        Returns:
            The submissions; inf = it never is. Behind a horizon all come at once.
        """
        until = math.inf if asked.until is None else float(asked.until)
        by_turns = asked.scheduler.events != "batch" or asked.scheduler.compat is not None
        ends = _Ends(outcome, flown, self.lasted, self.habit)
        kind, follows, delay = self.kind.tolist(), self.follows.tolist(), self.delay.tolist()
        length = outcome.jobs["duration"].to_pylist()
        found = self.submit.tolist()
        over = [math.nan] * len(found)
        for row in self.order.tolist():
            other = follows[row]
            if kind[row] == _AFTER_SUBMISSION:
                found[row] = found[other] + delay[row]
            elif other >= 0:
                time = over[other] + delay[row]
                if not delay[row] and (by_turns or not length[other]):
                    time = math.nextafter(time, math.inf)  # nobody comes before what brings him
                if ends.may_have_brought(row, over[other]) and time > over[other]:
                    time = math.inf
                found[row] = max(found[row], time) if kind[row] == _AFTER_BREAK else time
            over[row] = ends.of(row, found[row])
        times = np.array(found, dtype=np.float64)
        times[times == np.inf] = math.nextafter(until, math.inf)
        # By time: what comes later leaves the rows of those before as they are, and so their draws.
        again = sorted(ends.again.items(), key=lambda found: (found[1], found[0]))
        return Submissions(times, {attempt: time for attempt, time in again if time <= until})


class _Ends:
    """When users are done with their jobs, from a flight with partly other submissions.

    Args:
        outcome: the flight.
        flown: the submissions in it.
        lasted: Float array (n,), from submission to end as recorded, s.
        habit: what users do about jobs that fail.

    Attributes:
        again: the further attempts that it implies: (row, number, from 1) -> when, s.
    """

    def __init__(
        self, outcome: Outcome, flown: Submissions, lasted: np.ndarray, habit: Habit
    ) -> None:
        flight = outcome.flight
        submit = np.concatenate([flown.first, [*flown.again.values()]])
        is_over, is_flown = np.isin(flight.status, (FINISHED, FAILED)), flight.status != REJECTED
        end = np.where(is_over, flight.end, np.inf)
        lasts = lasted[flown.rows]
        lasts[is_flown] = end[is_flown] - submit[is_flown]
        self._submit, self._end, self._lasts = submit.tolist(), end.tolist(), lasts.tolist()
        self._is_flown, self._failed = is_flown.tolist(), failed_here(outcome).tolist()
        self._places = {key: len(flown.first) + k for k, key in enumerate(flown.again)}
        self._habit = habit
        self.again: dict[tuple[int, int], float] = {}

    def may_have_brought(self, place: int, end: float) -> bool:
        """Return whether a job ended in the flight as another came that is to follow it.

        Then the coming may have brought the end: a job without length starts, say, in a decision
        that was for whoever came. The one who came is left out of the next flight, which shows the
        end without him. Put an instant later he would bring it again, and so for ever.

        Args:
            place: row in the flight of the one that came.
            end: when the one before it was over, s.
        """
        return bool(self._submit[place] == end)

    def of(self, row: int, submit: float) -> float:
        """Return when a job is over, attempts included, s; inf = never.

        Args:
            row: its row in the log.
            submit: when it is submitted first, s.
        """
        place, attempt = row, 0
        while True:
            is_same = self._is_flown[place] and submit == self._submit[place]
            end: float = self._end[place] if is_same else submit + self._lasts[place]
            pause = self._habit.pause(row, attempt) if self._failed[place] else None
            if pause is None or not math.isfinite(end):
                return end
            attempt += 1
            submit = end + pause if pause else math.nextafter(end, math.inf)  # after what brings it
            place = self._places.get((row, attempt), -1)
            likely: float = submit + self._lasts[row]
            if place >= 0 and self.may_have_brought(place, end):
                return likely
            self.again[row, attempt] = submit
            if place < 0:
                return likely


def learn(table: pa.Table, pause: float = BREAK, seed: int = 0) -> Loop:
    """Learn from a log what each job follows.

    Args:
        table: a validated jobs table.
        pause: seconds without an event of a user after which a session is over.
        seed: of what is drawn of users' attempts.

    Raises:
        SpecError: no job has a user.
    """
    submit, duration = numbers(table, "submit_time"), numbers(table, "duration")
    users = table["user"].to_pylist()
    if all(user is None for user in users):
        message = "a closed loop is its users', and no job has one; expected a column user."
        raise SpecError("arrivals", message)
    start, end = numbers(table, "start_time"), numbers(table, "end_time")
    end = np.where(np.isnan(end), start + duration, end)
    guessed = np.isnan(end)
    end = np.where(guessed, submit + duration, end)
    lasted = np.nan_to_num(np.maximum(end - submit, 0.0))
    order = np.argsort(submit, kind="stable")[: len(submit) - int(np.isnan(submit).sum())]
    by_user = defaultdict(list)
    for row in order.tolist():
        if users[row] is not None:
            by_user[users[row]].append(row)
    kind = np.full(len(submit), _FIRST)
    follows = np.full(len(submit), -1)
    delay = np.zeros(len(submit))
    for rows in by_user.values():
        _learn_user(rows, submit, submit + lasted, pause, (kind, follows, delay))
    followers = int((follows >= 0).sum())
    notes = [f"Closed loop: {followers:,} of {len(submit):,} jobs follow events of their users."]
    if guessed.any():
        endless = f"{int(guessed.sum()):,} jobs have no recorded end"
        notes.append(f"{endless}: what follows them was learnt as though they had not waited.")
    strangers = sum(user is None for user in users)
    if strangers:
        notes.append(f"{strangers:,} jobs have no user and come as recorded.")
    habit = learn_habit(table, submit + lasted, pause, seed)
    return Loop(submit, order, kind, follows, delay, lasted, habit, tuple(notes))


def _learn_user(
    rows: list[int], submit: np.ndarray, end: np.ndarray, pause: float,
    found: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:  # fmt: skip
    """Write down what each of a user's jobs follows, given in order of submission."""
    kind, follows, delay = found
    there: list[tuple[float, int]] = []
    ended = -1
    for place, row in enumerate(rows[1:], 1):
        now, before = submit[row], rows[place - 1]
        heapq.heappush(there, (end[before], place - 1))
        while there and there[0][0] <= now:
            ended = rows[heapq.heappop(there)[1]]
        is_there = end[before] > now and (ended < 0 or submit[before] >= end[ended])
        if is_there and now - submit[before] <= pause:
            kind[row], follows[row], delay[row] = _AFTER_SUBMISSION, before, now - submit[before]
        elif ended >= 0:
            thought = now - end[ended]
            kind[row], follows[row] = _AFTER_END if thought <= pause else _AFTER_BREAK, ended
            delay[row] = thought if thought <= pause else 0.0


def _break(text: str) -> float:
    """Return the break, s, that ``closed`` or ``closed:TIME`` names."""
    word, colon, rest = text.strip().partition(":")
    if word.strip() != "closed" or (colon and not rest.strip()):
        raise SpecError("arrivals", f"found {quote(text)}; expected closed, or closed:20m.")
    return seconds("arrivals: closed", rest) if colon else BREAK


def _at(table: pa.Table, submit: np.ndarray) -> pa.Table:
    """Return the jobs submitted at other times; those that never are have none."""
    return submitted_at(table, np.where(np.isposinf(submit), np.nan, submit))
