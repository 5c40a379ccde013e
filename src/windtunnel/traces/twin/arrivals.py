"""When jobs are submitted: days, the hours of a week, and batches; no instant of the source.

Days and hours of the week that have fewer than ``min_count`` jobs are put together with the next
ones; an empty day or hour is published as empty. The calendar date is not published: a twin
begins in the
week of Monday 2001-01-01, on the source's weekday.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError
from windtunnel.traces.synthetic.knots import largest_remainder
from windtunnel.traces.twin.bins import rounded
from windtunnel.traces.twin.groups import Groups, fit_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.twin.split import Rules

#: UTC instant of time 0 of every twin, a Monday.
EPOCH = "2001-01-01T00:00:00+00:00"

HOUR = 3600
DAY = 86_400
_WEEK_HOURS = 168
_MAX_DAYS = 100_000
#: 1970-01-01 was a Thursday: from the Monday before it to it.
_MONDAY_TO_1970 = 3 * DAY
#: Submissions of one user for one kind of job that follow each other faster are one batch, s.
_BATCH_GAP = 60.0


class Runs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of jobs over time, in runs of neighbouring slots.

    Attributes:
        slots: length of each run, shape (runs,).
        jobs: jobs in it: 0 or at least ``min_count``, shape (runs,).
    """

    slots: list[int]
    jobs: list[int]

    def fault(self, slots: int) -> str:
        """Return what is wrong with the numbers of so many slots, or an empty text."""
        if not self.slots or len(self.slots) != len(self.jobs):
            return "one number of jobs for each run, and at least one"
        if min(self.slots) < 1 or min(self.jobs) < 0 or sum(self.jobs) < 1:
            return "runs of at least one slot, and jobs in one of them"
        return f"{slots} slots together" if sum(self.slots) != slots else ""

    def spread(self) -> NDArray[np.float64]:
        """Return the jobs of each slot, those of a run in equal parts, shape (slots,)."""
        slots = np.array(self.slots)
        return np.repeat(np.array(self.jobs) / slots, slots)


class Load(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """GPU time by the day of submission, in runs of days.

    Attributes:
        slots: length of each run in days, shape (runs,).
        gpu_time: GPU seconds of the jobs submitted in it: of none or of at least ``min_count``
            jobs, shape (runs,).
    """

    slots: list[int]
    gpu_time: list[float]

    def fault(self, slots: int) -> str:
        """Return what is wrong with the numbers, or an empty text."""
        if len(self.slots) != len(self.gpu_time) or any(n < 1 for n in self.slots):
            return "one GPU time for each run of at least one day"
        if sum(self.slots) != slots:
            return f"{slots} days together"
        return "" if all(0 <= g < np.inf for g in self.gpu_time) else "GPU times >= 0"


class Arrivals(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a trace's submissions lie in time.

    Attributes:
        first_weekday: weekday of the first day, 0 = Monday.
        num_days: days from that of the first submission to that of the last.
        week: jobs by hour of the week, Monday 0 h first.
        days: jobs by day of those strata that are too small to tell theirs.
        batches: sizes of batches: jobs of one user and kind within a minute of each other.
        gap: mean time between two submissions of a batch, s.
        load: GPU time by days of submission.
        whole: submissions fall on whole seconds.
    """

    first_weekday: int
    num_days: int
    week: Runs
    days: Runs | None = None
    batches: Groups | None = None
    gap: float = 0.0
    load: Load | None = None
    whole: bool = False

    def fault(self) -> str:
        """Return what is wrong with the numbers, or an empty text."""
        if not 0 <= self.first_weekday <= 6:  # noqa: PLR2004 - days of a week
            return "a weekday from 0, Monday, to 6"
        if not 0 <= self.gap <= _BATCH_GAP:
            return f"a gap from 0 to {_BATCH_GAP:g} s"
        if not 1 <= self.num_days <= _MAX_DAYS:
            return f"1 to {_MAX_DAYS} days"
        faults = [self.week.fault(_WEEK_HOURS)]
        faults += [] if self.days is None else [self.days.fault(self.num_days)]
        faults += [] if self.batches is None else [self.batches.fault()]
        faults += [] if self.load is None else [self.load.fault(self.num_days)]
        return next((fault for fault in faults if fault), "")


def clock_seconds(
    submit: NDArray[np.float64], epoch: str | None, zone: str | None
) -> NDArray[np.float64]:
    """Return submit times on the local wall clock, in seconds since some Monday 0 h.

    Args:
        submit: s since the epoch, NaN = unknown.
        epoch: UTC instant of time 0; None = a Monday, 0 h.
        zone: IANA zone of the local clock; None = UTC.
    """
    if epoch is None:
        return submit
    start = datetime.fromisoformat(epoch)
    if start.tzinfo is None:
        start = start.replace(tzinfo=UTC)
    utc = submit + start.timestamp()
    known = np.nan_to_num(np.floor(utc), nan=0.0)
    whole = pa.array(known.astype(np.int64)).cast(pa.timestamp("s", zone or "UTC"))
    local = pc.local_timestamp(whole).cast(pa.int64()).to_numpy()
    return np.asarray(local + (utc - np.floor(utc)) + _MONDAY_TO_1970)


def fit_arrivals(
    clock: NDArray[np.float64],
    key: NDArray[np.int64],
    gpu_time: NDArray[np.float64],
    strata: tuple[NDArray[np.int64], int],
    rules: Rules,
) -> tuple[Arrivals, list[Runs | None]]:
    """Return how submissions lie in time.

    Args:
        clock: submit times from `clock_seconds`, NaN = unknown, at least ``min_count`` of them
            known, shape (jobs,).
        key: who submitted what: jobs of one key may form a batch, shape (jobs,).
        gpu_time: GPU seconds of each job, shape (jobs,).
        strata: stratum of each job, shape (jobs,), and how many there are.
        rules: how small a group may be.

    Returns:
        The model, and each stratum's jobs by day; None where it has too few to tell.

    Raises:
        SpecError: the first and the last submission lie too far apart to be of one log.
    """
    known = np.isfinite(clock)
    days = _day_numbers(clock)
    hour = np.floor(clock[known] / HOUR).astype(np.int64) % _WEEK_HOURS
    batches, gap = _batches(clock[known], key[known], int((~known).sum()), rules)
    count = int(days.max()) + 1
    published = rules.published(known, *strata)
    by_stratum = [
        _by_day(days[strata[0] == number], count, rules) if is_published else None
        for number, is_published in enumerate(published)
    ]
    others = ~np.array(published)[strata[0]]
    arrivals = Arrivals(
        first_weekday=int(np.nanmin(clock) // DAY % 7),
        num_days=count,
        week=_padded(
            _runs(np.bincount(hour, minlength=_WEEK_HOURS), rules.min_count),
            int((~known).sum()),
            rules,
        ),
        days=_by_day(days[others], count, rules),
        batches=batches,
        gap=gap,
        load=_load(days[known], gpu_time[known], rules),
        whole=bool(np.all(clock[known] == np.rint(clock[known]))),
    )
    return arrivals, by_stratum


def _day_numbers(clock: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the day of each job, counted from the first, -1 = unknown."""
    day = np.floor(clock / DAY)
    day -= np.nanmin(day)
    if np.nanmax(day) >= _MAX_DAYS:
        raise SpecError(
            "submit_time",
            f"found submissions {np.nanmax(day):,.0f} days apart; expected less than "
            f"{_MAX_DAYS:,} days. Is a time given in another unit than seconds?",
        )
    return np.asarray(np.nan_to_num(day, nan=-1.0).astype(np.int64))


def _by_day(day: NDArray[np.int64], days: int, rules: Rules) -> Runs | None:
    """Return jobs by day, day -1 = unknown; None where there are too few."""
    known = day[day >= 0]
    if len(known) < rules.min_count:
        return None
    runs = _runs(np.bincount(known, minlength=days), rules.min_count)
    return _padded(runs, len(day) - len(known), rules)


def _padded(runs: Runs, unknown: int, rules: Rules) -> Runs:
    """Count jobs of unknown time with the others where their number must not be published."""
    if not rules.hides(unknown):
        return runs
    jobs = largest_remainder(runs.jobs, sum(runs.jobs) + unknown)
    return Runs(runs.slots, jobs.tolist())


def _batches(
    clock: NDArray[np.float64], key: NDArray[np.int64], unknown: int, rules: Rules
) -> tuple[Groups | None, float]:
    """Return sizes of batches, and the mean time between two jobs of one, s."""
    order = np.lexsort((clock, key))
    gap = np.diff(clock[order], prepend=-np.inf)
    apart = (np.diff(key[order], prepend=-1) != 0) | (gap > _BATCH_GAP)
    sizes = np.diff(np.flatnonzero(apart), append=len(clock))
    if rules.hides(unknown):
        sizes = np.append(sizes, np.ones(unknown, dtype=np.int64))
    together = gap[~apart]
    mean = float(together.mean()) if len(together) >= rules.min_count else 0.0
    return fit_groups(sizes, min_count=rules.min_count, bins=rules.bins), rounded(mean)


def _load(day: NDArray[np.int64], gpu_time: NDArray[np.float64], rules: Rules) -> Load | None:
    """Return GPU time by days; None where too few jobs have any."""
    heavy = gpu_time > 0
    if int(heavy.sum()) < rules.min_count:
        return None
    days = int(day.max()) + 1
    length = -(-days // rules.bins)
    period = day // length
    runs = _runs(np.bincount(period[heavy], minlength=int(period.max()) + 1), rules.min_count)
    of_period = np.repeat(np.arange(len(runs.slots)), runs.slots)
    sums = np.bincount(of_period[period], gpu_time, minlength=len(runs.slots))
    slots = np.array(runs.slots) * length
    slots[-1] -= int(slots.sum()) - days
    return Load(slots.tolist(), [rounded(value) for value in sums.tolist()])


def _runs(counts: NDArray[np.int64], min_count: int) -> Runs:
    """Return counts in runs of at least ``min_count``, empty ones by themselves."""
    runs: list[list[int]] = []  # [slots, jobs]
    open_run = False
    for number in counts.tolist():
        if open_run:
            runs[-1][0] += 1
            runs[-1][1] += number
        elif number == 0 and runs and runs[-1][1] == 0:
            runs[-1][0] += 1
        else:
            runs.append([1, number])
        open_run = 0 < runs[-1][1] < min_count
    if open_run:
        slots, jobs = runs.pop()
        while runs and runs[-1][1] == 0:
            slots += runs.pop()[0]
        if runs:
            runs[-1][0] += slots
            runs[-1][1] += jobs
        else:
            runs.append([slots, jobs])
    return Runs([slots for slots, _ in runs], [jobs for _, jobs in runs])
