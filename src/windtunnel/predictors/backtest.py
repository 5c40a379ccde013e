"""Back-tests: what a predictor would have answered at each submission, against what happened.

`backtest` goes along the trace (`windtunnel.predictors.online`) and keeps the predictions; every
number of a `Backtest` is a function of that table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SchemaError, SpecError, Violation
from windtunnel.plain import fields_of
from windtunnel.predictors.accuracy import ERROR_GRID, accuracy, coverage, error_cdf
from windtunnel.predictors.catalogue import resolve_predictor
from windtunnel.predictors.convention import SOURCES
from windtunnel.predictors.features import numbers
from windtunnel.predictors.knowledge import past_of
from windtunnel.predictors.online import MIN_HISTORY, TRAIN_LAST, Refreshing, Walk
from windtunnel.predictors.running_mean import RunningMean
from windtunnel.schema import as_jobs, source_of
from windtunnel.sim.metrics import size_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.predictors.convention import Predictor

#: Whether a job's template had ended before at its submission.
RECURRENCE: tuple[str, ...] = ("recurring", "first seen", "no template")


@dataclass(frozen=True)
class Backtest:
    """Predictions beside the truth.

    Attributes:
        model: the predictor's name with its parameters.
        peeks: it reads true durations: a bound, not a predictor.
        table: the table of `predict_online`, and behind it ``submit_time``, ``num_gpus``,
            ``duration`` (s; null = not known, or not ended) and ``judged`` (whether the job counts
            below).
        settings: everything that decides the result.
        notes: what a reader of the numbers must know, one sentence each.
        own: the source of predictions that are no fall-back.
    """

    model: str
    peeks: bool
    table: pa.Table
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()
    own: str = "model"

    @cached_property
    def _judged(self) -> pa.Table:
        return self.table.filter(self.table["judged"])

    def summary(self) -> dict[str, Any]:
        """Return the judged jobs in numbers.

        Keys: ``model``, ``peeks``, ``num_jobs`` (all), ``n`` (judged), those of
        `windtunnel.predictors.accuracy.accuracy`, ``num_fallback`` (predicted from something else
        than ``own``), and with intervals ``nominal_coverage`` and those of
        `windtunnel.predictors.accuracy.coverage`.
        """
        found: dict[str, Any] = {
            "model": self.model,
            "peeks": self.peeks,
            "num_jobs": self.table.num_rows,
            **_measured(self._judged),
        }
        sources = self._judged["source"].to_pylist()
        found["num_fallback"] = sum(source not in (self.own, "none") for source in sources)
        if "low" in self.table.column_names:
            found["nominal_coverage"] = self.settings["coverage"]
        return found

    def error_cdf(self, at: Sequence[float] = ERROR_GRID) -> pa.Table:
        """Return the distribution of the relative error.

        Returns:
            One row each of ``at``: ``error``; ``share`` of the predicted jobs with at most this
            error (null where nothing is predicted); ``n`` (predicted jobs).
        """
        predicted = numbers(self._judged, "predicted")
        share = error_cdf(predicted, numbers(self._judged, "duration"), at)
        n = int((~np.isnan(predicted)).sum())
        return pa.table(
            {
                "error": pa.array(at, pa.float64()),
                "share": pa.array(share, from_pandas=True),
                "n": pa.array([n] * len(at), pa.int64()),
            }
        )

    def by_size(self) -> pa.Table:
        """Return one row a class of GPU counts that has judged jobs, smallest first.

        Columns: ``size``, then those of `windtunnel.predictors.accuracy.accuracy` (and
        ``coverage``).
        """
        classes, labels = size_classes(numbers(self._judged, "num_gpus"))
        return self._grouped("size", classes, labels)

    def by_recurrence(self) -> pa.Table:
        """Return the same by whether the template had ended before: see `RECURRENCE`."""
        runs = numbers(self._judged, "template_runs")
        codes = np.where(np.isnan(runs), 2, np.where(runs > 0, 0, 1))
        return self._grouped("recurrence", codes, RECURRENCE)

    def by_source(self) -> pa.Table:
        """Return the same by what a prediction rests on; ``none`` are those without one."""
        codes = np.array([SOURCES.index(s) for s in self._judged["source"].to_pylist()], dtype=int)
        return self._grouped("source", codes, SOURCES)

    def _grouped(self, name: str, codes: np.ndarray, labels: Sequence[str]) -> pa.Table:
        rows = []
        for code, label in enumerate(labels):
            members = np.flatnonzero(codes == code)
            if len(members):
                rows.append({name: label, **_measured(self._judged.take(members))})
        columns = _measured(self._judged.slice(0, 0))
        kinds = {key: pa.int64() if key in _COUNTS else pa.float64() for key in columns}
        return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()), *kinds.items()]))


_COUNTS = frozenset(("n", "num_predicted", "num_unpredicted", "num_log_ratios", "num_intervals"))


def _measured(table: pa.Table) -> dict[str, float | int | None]:
    """Return the measures of a part of a back-test's table."""
    truth = numbers(table, "duration")
    found = accuracy(numbers(table, "predicted"), truth)
    if "low" in table.column_names:
        found |= coverage(numbers(table, "low"), numbers(table, "high"), truth)
    return found


def backtest(
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
    warm_up: float | None = None,
    horizon: float | None = None,
    on_refresh: Callable[[int], None] | None = None,
) -> Backtest:
    """Predict along a trace and compare with what happened.

    Args:
        jobs: a jobs table, or anything that becomes one.
        model: see `windtunnel.predictors.online.predict_online`, as for what follows.
        refresh: seconds between trainings. [a day]
        refresh_jobs: instead, completions between trainings.
        min_history: completions before the first training.
        train_last: completions that a training uses at most.
        known_after: when a duration becomes known.
        coverage: also intervals, and how many durations lie in them.
        seed: of a model given by name.
        warm_up: jobs submitted before this time (s) are learnt from and not judged.
        horizon: jobs submitted from this time (s) on are not judged.
        on_refresh: called with the number of jobs predicted so far after each training.

    Raises:
        SchemaError: the jobs break the schema, or none can be judged.
        SpecError: a name or an option is wrong, or scikit-learn is missing.

    >>> jobs = {"submit_time": [0, 50, 100], "duration": [40, 40, 50], "num_gpus": [1, 1, 1]}
    >>> backtest(jobs, "rolling").summary()["within_25"]
    1.0
    """
    table = as_jobs(jobs)
    predictor = resolve_predictor(model, seed=seed)
    often = Refreshing.of(refresh, refresh_jobs, min_history, train_last)
    past = past_of(table, known_after)
    judged = ~np.isnan(past.submit) & ~np.isnan(past.truth)
    if not judged.any():
        rule = "a known time and duration of at least one job that has ended"
        raise SchemaError(source_of(table), [Violation("submit_time", rule, table.num_rows)])
    judged &= past.submit >= _bound("warm_up", warm_up, -np.inf)
    judged &= past.submit < _bound("horizon", horizon, np.inf)
    if not judged.any():
        raise SpecError("horizon", "no job was submitted between warm_up and horizon.")
    found = Walk(table, predictor, past, often).go(coverage, on_refresh)
    for name in ("submit_time", "num_gpus"):
        found = found.append_column(name, table[name])
    found = found.append_column("duration", pa.array(past.truth, from_pandas=True))
    found = found.append_column("judged", pa.array(judged))
    settings = {
        "model": predictor.label,
        "parameters": predictor.get_params(),
        **fields_of(often, "refresh", "refresh_jobs", "min_history", "train_last"),
        "known_after": known_after,
        "coverage": coverage,
        "warm_up": warm_up,
        "horizon": horizon,
        "seed": seed,
    }
    return Backtest(
        predictor.label, predictor.peeks, found, settings, past.notes, _own_source(predictor)
    )


def _bound(name: str, value: float | None, without: float) -> float:
    """Return an instant."""
    if value is None:
        return without
    if isinstance(value, bool) or not isinstance(value, int | float) or np.isnan(value):
        raise SpecError(name, f"found {value!r}; expected a time in seconds.")
    return float(value)


def _own_source(predictor: Predictor) -> str:
    """Return the source of predictions that are no fall-back."""
    if isinstance(predictor, RunningMean):
        return SOURCES[predictor.memory().levels[0].source]
    return "model"
