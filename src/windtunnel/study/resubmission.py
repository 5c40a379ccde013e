"""Users who submit a failed job again: how often and how soon, as their log has it.

In a log a user *tries again* where a job fails and the user submits one like it within a break
after its end: as many GPUs of the same type, under the same name where names are known. Each
submission is another try of one failure, the first that ended before it. In a closed
loop a job that fails in the flight, and did not in the log, comes again as often and as soon: the
chance is the log's share of failures that were tried again, the pause one of the log's, both drawn
from the job and the number of its attempt. So they are the same under every policy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.predictors.features import numbers
from windtunnel.sim.disruptions.failures import FAILED_STATUSES
from windtunnel.sim.flight import FAILED

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome

#: What jobs have in common of which one is the other once more.
_LIKENESS = ("num_gpus", "gpu_type", "template")
#: What only a recorded job has.
_RECORDED = ("start_time", "end_time", "status")
#: Keeps these draws apart from all others of the same seed.
_STREAM = 0x5AFE


@dataclass(frozen=True)
class Habit:
    """What users do about failed jobs.

    Attributes:
        failures: failed jobs of known users in the log.
        pauses: Float array (m,), from the failure to the next attempt, s, of those tried again.
        seed: of what is drawn.
        drawn: what was drawn so far: (row, attempt) -> pause.
    """

    failures: int
    pauses: np.ndarray
    seed: int
    drawn: dict[tuple[int, int], float | None] = field(default_factory=dict, repr=False)

    @property
    def share(self) -> float:
        """Return the chance that a failed job is tried again; below 1, so that attempts end.

        It is Laplace's rule of succession; a log without failures says nothing, and 0 is returned.
        """
        return (len(self.pauses) + 1) / (self.failures + 2) if len(self.pauses) else 0.0

    def pause(self, row: int, attempt: int) -> float | None:
        """Return how long after its failure a job is tried again, s; None = it is given up.

        Args:
            row: its row in the log.
            attempt: which attempt failed, from 0.
        """
        if not len(self.pauses):
            return None
        if (row, attempt) not in self.drawn:
            key = np.random.SeedSequence(self.seed, spawn_key=(_STREAM, row, attempt))
            draw = np.random.default_rng(key)
            tries = draw.random() < self.share
            self.drawn[row, attempt] = float(draw.choice(self.pauses)) if tries else None
        return self.drawn[row, attempt]


def learn_habit(table: pa.Table, end: np.ndarray, pause: float, seed: int) -> Habit:
    """Learn from a log what users do about failed jobs.

    Args:
        table: a validated jobs table.
        end: Float array (n,), when jobs were over, s.
        pause: a break, s: who submits later does something else.
        seed: of what will be drawn.
    """
    submit = numbers(table, "submit_time")
    likeness = list(zip(*(table[name].to_pylist() for name in _LIKENESS), strict=True))
    users, status = table["user"].to_pylist(), table["status"].to_pylist()
    submitted: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for row in np.argsort(submit, kind="stable").tolist():
        submitted[users[row], likeness[row]].append(float(submit[row]))
    failed = [
        row
        for row, how in enumerate(status)
        if how in FAILED_STATUSES and users[row] is not None and np.isfinite(end[row])
    ]
    pauses = []
    for row in sorted(failed, key=lambda row: float(end[row])):
        times = submitted[users[row], likeness[row]]
        place = bisect_left(times, end[row])
        if place < len(times) and times[place] - end[row] <= pause:
            pauses.append(times.pop(place) - end[row])  # it is one failure's, not several'
    return Habit(len(failed), np.array(pauses), seed)


def failed_here(outcome: Outcome) -> np.ndarray:
    """Return which jobs failed in a flight, and not in the log, of known users: Bool array (n,)."""
    recorded = np.array(outcome.jobs["status"].to_pylist(), dtype=object).astype(str)
    known = np.array([user is not None for user in outcome.jobs["user"].to_pylist()], dtype=bool)
    failed: np.ndarray = (outcome.flight.status == FAILED) & known
    failed &= ~np.isin(recorded, FAILED_STATUSES)
    return failed


def with_attempts(table: pa.Table, attempts: dict[tuple[int, int], float]) -> pa.Table:
    """Return a jobs table with further attempts behind it: each runs from the beginning.

    Args:
        table: the jobs, as they are submitted first.
        attempts: (row, number of the attempt, from 1) -> when, s.
    """
    if not attempts:
        return table
    again = table.take([row for row, _ in attempts])
    times = np.fromiter(attempts.values(), np.float64, len(attempts))
    later = times - numbers(again, "submit_time")
    taken = set(table["job_id"].to_pylist())
    names = []
    for (_, number), name in zip(attempts, again["job_id"].to_pylist(), strict=True):
        name_again = f"{name} again {number}"
        while name_again in taken:
            name_again += "'"
        taken.add(name_again)
        names.append(name_again)
    columns: dict[str, pa.Array] = {"job_id": pa.array(names), "submit_time": pa.array(times)}
    if "eligible_time" in table.column_names:
        eligible = numbers(again, "eligible_time") + later
        columns["eligible_time"] = pa.array(eligible, from_pandas=True)
    columns |= {name: pa.nulls(len(times), table.schema.field(name).type) for name in _RECORDED}
    for name, values in columns.items():
        place = again.column_names.index(name)
        field = again.schema.field(place)
        again = again.set_column(place, field, values.cast(field.type))
    return pa.concat_tables([table, again])


def failure_notes(label: str, habit: Habit, attempts: int, failed: int) -> list[str]:
    """Return what a reader must know of jobs that failed in a flight.

    Args:
        label: the policy's.
        habit: what users do about them.
        attempts: how many were tried again.
        failed: how often jobs failed, attempts included.
    """
    if not failed:
        return []
    what = f"{label}: {failed:,} job{'s' * (failed != 1)} failed here and not in the log"
    if not len(habit.pauses):
        why = (
            "no failed job of the log was tried again"
            if habit.failures
            else "the log has no failed job"
        )
        return [f"{what}; {why}, so their users go on without them."]
    tried = f"{len(habit.pauses):,} of {habit.failures:,} failed jobs"
    middle = f"{np.median(habit.pauses):,.0f} s"
    what += f": {attempts:,} were tried again from the beginning, as {tried} of the log were, "
    return [what + f"there after {middle} in the median."]
