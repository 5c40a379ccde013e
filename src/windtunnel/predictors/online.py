"""Predictions as they could have been made: each at its job's submission, from the past alone.

A prediction rests on jobs whose durations were known by then (`windtunnel.predictors.knowledge`)
and on nothing else: changing what comes later changes no digit of it.

When a fitted predictor is trained anew, and on which of the jobs that have ended.

At most every ``refresh`` seconds, counted from the first submission: what is predicted between two
of these instants rests on the jobs that had ended before the first of them. Or every
``refresh_jobs`` completions. Either way the jobs learnt from are the last ``train_last`` of a
beginning of the sequence of completions, whose length is all there is to say: `due`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.checked import checked_count, checked_number
from windtunnel.errors import SpecError
from windtunnel.predictors.catalogue import resolve_predictor
from windtunnel.predictors.conformal import around, log_ratios
from windtunnel.predictors.convention import (
    MODEL,
    SOURCES,
    Given,
    Predicted,
    checked_share,
)
from windtunnel.predictors.features import Keys
from windtunnel.predictors.fitted import Fitted
from windtunnel.predictors.knowledge import past_of
from windtunnel.predictors.running_mean import Recall, RunningMean
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windtunnel.predictors.convention import Predictor
    from windtunnel.predictors.knowledge import Past

DAY = 86400.0
#: Ended jobs that a fitted predictor needs before it is asked.
MIN_HISTORY = 100
#: Ended jobs, the last of them, that it is trained on.
TRAIN_LAST = 10_000


@dataclass(frozen=True)
class Refreshing:
    """See the module's text.

    Attributes:
        refresh: seconds between trainings; None where jobs are counted.
        refresh_jobs: completions between trainings; None where time is.
        min_history: completions before the first training.
        train_last: completions that a training uses at most.
    """

    refresh: float | None = DAY
    refresh_jobs: int | None = None
    min_history: int = MIN_HISTORY
    train_last: int = TRAIN_LAST

    @classmethod
    def of(
        cls,
        refresh: float | None = None,
        refresh_jobs: int | None = None,
        min_history: int = MIN_HISTORY,
        train_last: int = TRAIN_LAST,
    ) -> Refreshing:
        """Return checked settings; without ``refresh`` and ``refresh_jobs`` a day.

        Raises:
            SpecError: both are given, or one is out of range.
        """
        if refresh is not None and refresh_jobs is not None:
            raise SpecError("refresh_jobs", "is given beside refresh; give one of them.")
        if refresh_jobs is not None:
            refresh_jobs = checked_count("refresh_jobs", refresh_jobs)
        else:
            refresh = DAY if refresh is None else refresh
            refresh = checked_number("refresh", refresh, "seconds > 0", above=0)
        return cls(
            refresh,
            refresh_jobs,
            checked_count("min_history", min_history),
            checked_count("train_last", train_last),
        )

    def due(
        self, when: np.ndarray, origin: float, before: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Return how many completions count at each instant: those before the last refresh.

        Args:
            when: instants, s, shape (n,).
            origin: the first submission, s.
            before: completions before each of the instants, shape (n,).
            known: when each completion happened, s, rising.

        Returns:
            int64, shape (n,).
        """
        if self.refresh_jobs is not None:
            found: np.ndarray = before // self.refresh_jobs * self.refresh_jobs
            return found
        span = float(self.refresh or DAY)
        last = origin + np.floor((when - origin) / span) * span
        # Strictly before: what ends at the instant of training is for the next one.
        return np.searchsorted(known, last, side="left").astype(np.int64)

    def trained(self, due: np.ndarray) -> np.ndarray:
        """Return on how many completions a model was trained where so many count; 0 = too few."""
        return np.where(due >= self.min_history, due, 0)

    def used(self, trained: int) -> slice:
        """Return which of the completions a training on the first ``trained`` uses."""
        return slice(max(0, trained - self.train_last), trained)


#: Earlier predictions, the last whose jobs have ended, that an interval is measured on.
CALIBRATION = 1000


def predict_online(
    jobs: Any,
    model: str | Predictor | Any,
    *,
    refresh: float | None = None,
    refresh_jobs: int | None = None,
    min_history: int = MIN_HISTORY,
    train_last: int = TRAIN_LAST,
    known_after: str = "recorded",
    coverage: float | None = None,
    seed: int = 0,
    on_refresh: Callable[[int], None] | None = None,
) -> pa.Table:
    """Predict each job's duration at its submission from jobs that had ended by then.

    Args:
        jobs: a jobs table, or anything that becomes one.
        model: a name (`windtunnel.predictors.catalogue`), a `Predictor`, or an object with ``fit``
            and ``predict``; it is not changed.
        refresh: seconds between trainings of a fitted model. [a day]
        refresh_jobs: instead, completions between trainings.
        min_history: completions that a fitted model needs; before them it falls back.
        train_last: completions that a training uses at most, the last ones.
        known_after: when a duration becomes known; see `windtunnel.predictors.knowledge.past_of`.
        coverage: also say in which interval the duration lies with this probability: the model's
            own interval where it has one, else conformal from the model's own earlier errors.
        seed: of a model given by name, where it has one.
        on_refresh: called with the number of jobs predicted so far after each training.

    Returns:
        One row a job, in the order of ``jobs``: ``job_id``; ``predicted`` (s; null = none);
        ``source`` (what it rests on, `windtunnel.predictors.convention.SOURCES`); ``runs`` (past
        runs behind it; 0 for a model); ``history`` (durations known at submission);
        ``template_runs`` (of them, of its template; null without one); ``trained_on`` (jobs that
        the model in force was trained on; null where no trained model spoke); and with
        ``coverage`` ``low`` and ``high`` (s; null without a prediction or enough earlier errors to
        measure on; ``high`` is never infinite).

    Raises:
        SchemaError: the jobs break the schema.
        SpecError: a name or an option is wrong, or scikit-learn is missing.
    """
    table = as_jobs(jobs)
    predictor = resolve_predictor(model, seed=seed)
    often = Refreshing.of(refresh, refresh_jobs, min_history, train_last)
    walk = Walk(table, predictor, past_of(table, known_after), often)
    return walk.go(coverage, on_refresh)


class Walk:
    """One predictor going along one trace.

    Args:
        jobs: a jobs table.
        predictor: the predictor; its copy is trained.
        past: the jobs as they unfold.
        often: when it is trained.
    """

    def __init__(self, jobs: pa.Table, predictor: Predictor, past: Past, often: Refreshing) -> None:
        self._jobs = jobs
        self._predictor = predictor.clone()
        self._past = past
        rows = past.submitted
        self._due = np.zeros(jobs.num_rows, dtype=np.int64)
        if len(rows):
            origin = float(past.submit[rows[0]])
            known = past.known[past.completed]
            self._due[rows] = often.due(past.submit[rows], origin, past.before[rows], known)
        self._trained = often.trained(self._due)
        self._often = often
        self._found = Predicted.nothing(jobs.num_rows)
        self._low = np.full(jobs.num_rows, np.nan)
        self._high = np.full(jobs.num_rows, np.nan)

    def go(self, coverage: float | None, on_refresh: Callable[[int], None] | None) -> pa.Table:
        """Predict every job, with intervals where ``coverage`` is given; see `predict_online`."""
        if coverage is not None:
            checked_share("coverage", coverage)
        predictor = self._predictor
        if isinstance(predictor, Given):
            self._take(Predicted.by_model(predictor.read(self._jobs)))
        elif isinstance(predictor, RunningMean):
            self._take(self._recalled(predictor))
        elif isinstance(predictor, Fitted):
            prepared = predictor.prepare(self._jobs)
            self._take(self._recalled(predictor.fallback(), (predictor, prepared)))
            self._fit_along(predictor, prepared, coverage, on_refresh or (lambda _: None))
        if coverage is not None:
            self._measure(coverage)
        return self._result(coverage)

    def _take(self, found: Predicted) -> None:
        """Keep predictions of the jobs that were submitted at a known time."""
        rows = self._past.submitted
        for ours, theirs in zip(self._found, found, strict=True):
            ours[rows] = theirs[rows]

    def _recalled(
        self, predictor: RunningMean, watching: tuple[Fitted, Any] | None = None
    ) -> Predicted:
        """Return what a predictor that learns at each completion says at each submission.

        Args:
            watching: a fitted one with its prepared table, shown each job as time goes by.
        """
        recall = Recall(predictor.memory(), self._jobs)
        count = self._jobs.num_rows
        seconds, source, runs = [np.nan] * count, [len(SOURCES) - 1] * count, [0] * count
        truth = self._past.truth.tolist()
        for event in self._past.events.tolist():
            row = event >> 1
            if event & 1:
                seconds[row], source[row], runs[row] = recall.predict(row)
                if watching is not None:
                    watching[0].see(watching[1], row)
            else:
                recall.observe(row, truth[row])
                if watching is not None:
                    watching[0].observe(watching[1], row, truth[row])
        return Predicted(
            np.array(seconds), np.array(source, dtype=np.int8), np.array(runs, dtype=np.int64)
        )

    def _groups(self, counts: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (count, rows) of submissions between two refreshes, in order."""
        rows = self._past.submitted
        edges = np.flatnonzero(np.diff(counts[rows])) + 1
        for part in np.split(rows, edges) if len(rows) else ():
            yield int(counts[part[0]]), part

    def _fit_along(
        self,
        predictor: Fitted,
        prepared: Any,
        coverage: float | None,
        on_refresh: Callable[[int], None],
    ) -> None:
        """Train at each refresh and replace the fall-back's predictions from then on.

        All jobs have been shown to the predictor by now, each noted as it was at its submission.
        """
        seconds, source, runs = self._found
        done = 0
        for trained, rows in self._groups(self._trained):
            done += len(rows)
            if trained == 0:
                continue
            learn = self._past.completed[self._often.used(trained)]
            predictor.fit_rows(prepared, learn, self._past.truth[learn])
            own = predictor.predict_rows(prepared, rows)
            mixed = predictor.combine(seconds[rows], own)
            spoke = ~np.isnan(own)
            seconds[rows[spoke]] = mixed[spoke]
            source[rows[spoke]], runs[rows[spoke]] = MODEL, 0
            interval = (
                None if coverage is None else predictor.interval_rows(prepared, rows, coverage)
            )
            if interval is not None:
                self._low[rows], self._high[rows] = interval
            on_refresh(done)

    def _measure(self, coverage: float) -> None:
        """Put intervals around predictions that have none, from the errors of earlier ones."""
        seconds = self._found.seconds
        completed = self._past.completed
        residuals = log_ratios(self._past.truth[completed], seconds[completed])
        # Completions whose jobs had been given a prediction, counted along the sequence.
        usable = np.flatnonzero(~np.isnan(residuals))
        for due, rows in self._groups(self._due):
            last = int(np.searchsorted(usable, due))
            bare = rows[np.isnan(self._low[rows]) & ~np.isnan(seconds[rows])]
            errors = residuals[usable[max(0, last - CALIBRATION) : last]]
            self._low[bare], self._high[bare] = around(seconds[bare], errors, coverage)
        unbounded = ~np.isfinite(self._high)
        self._low[unbounded] = self._high[unbounded] = np.nan

    def _result(self, coverage: float | None) -> pa.Table:
        seconds, source, runs = self._found
        by_model = (source == MODEL) & (self._trained > 0) & isinstance(self._predictor, Fitted)
        trained_on = np.minimum(self._trained, self._often.train_last)
        names = pa.DictionaryArray.from_arrays(pa.array(source), pa.array(SOURCES))
        columns: dict[str, Any] = {
            "job_id": self._jobs["job_id"],
            "predicted": pa.array(seconds, from_pandas=True),
            "source": names.cast(pa.string()),
            "runs": pa.array(runs),
            "history": pa.array(self._past.before),
            "template_runs": self._template_runs(),
            "trained_on": pa.array(trained_on, mask=~by_model),
        }
        if coverage is not None:
            columns["low"] = pa.array(self._low, from_pandas=True)
            columns["high"] = pa.array(self._high, from_pandas=True)
        return pa.table(columns)

    def _template_runs(self) -> pa.Array:
        """Return how many runs of its template were known at each job's submission."""
        (keys,) = Keys([("template",)]).of(self._jobs)
        events = self._past.events
        rows, completion = events >> 1, events & 1 == 0
        order = np.argsort(keys[rows], kind="stable")
        sorted_keys, ended = keys[rows][order], completion[order]
        so_far = np.cumsum(ended) - ended
        first = np.searchsorted(sorted_keys, sorted_keys, side="left")
        runs = np.zeros(len(keys), dtype=np.int64)
        submissions = ~completion[order]
        runs[rows[order][submissions]] = (so_far - so_far[first])[submissions]
        return pa.array(runs, mask=keys < 0)
