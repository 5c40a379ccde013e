"""Predictors that are trained anew every so often, and what they fall back on before.

A `Fitted` predictor works on a table that it has prepared once (`Fitted.prepare`), so that being
trained a hundred times along a trace costs a hundred trainings and no more. As time goes by it is
shown each job at its submission (`Fitted.see`) and at its end (`Fitted.observe`); only jobs that it
has been shown are trained on or predicted. `Adapted` makes one of any object with scikit-learn's
``fit`` and ``predict``.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.predictors.convention import Predicted, Predictor, paired
from windtunnel.predictors.features import SUBMISSION
from windtunnel.predictors.rolling import Rolling
from windtunnel.predictors.running_mean import Recall, recalled
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.predictors.running_mean import Memory, RunningMean


class Fitted(Predictor):
    """A predictor that is trained on ended jobs and then stays as it is until trained again."""

    def prepare(self, jobs: pa.Table) -> Any:
        """Return what the methods below need of a jobs table; durations are not read."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget what earlier tables taught."""

    def see(self, prepared: Any, row: int) -> None:
        """Note what is known of a job when it is submitted; only the first time counts."""

    def observe(self, prepared: Any, row: int, seconds: float) -> None:
        """Note that a job has ended."""

    def fit_rows(self, prepared: Any, rows: np.ndarray, seconds: np.ndarray) -> None:
        """Train on rows of a prepared table that have been seen.

        Args:
            rows: int64, at least one, in the order in which the jobs ended.
            seconds: their durations.

        Raises:
            SpecError: a library is missing.
        """
        raise NotImplementedError

    def predict_rows(self, prepared: Any, rows: np.ndarray) -> np.ndarray:
        """Return predictions for rows of a prepared table, seconds, NaN = none."""
        raise NotImplementedError

    def interval_rows(
        self,
        prepared: Any,  # noqa: ARG002 - for those that have intervals
        rows: np.ndarray,  # noqa: ARG002 - as above
        coverage: float,  # noqa: ARG002 - as above
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the lower and upper ends for rows, or None where the model has no intervals."""
        return None

    def fallback(self) -> RunningMean:
        """Return what predicts while there is too little to train on."""
        return Rolling()

    def combine(self, recalled: np.ndarray, fitted: np.ndarray) -> np.ndarray:  # noqa: ARG002 - for mixes
        """Return predictions from the fall-back's and the trained model's, shape (rows,) each."""
        return fitted

    def fit(self, jobs: Any, durations: Any) -> Self:
        """Train, and teach the fall-back; see `Predictor.fit`."""
        table, seconds = paired(jobs, durations)
        rows = np.flatnonzero(~np.isnan(seconds))
        if len(rows) == 0:
            raise SpecError(f"predictor {self.name}", "no job with a known duration to learn from.")
        self.forget()
        prepared = self.prepare(table)
        self.memory_: Memory = self.fallback().memory()
        recall = Recall(self.memory_, table)
        for row in rows.tolist():
            self.see(prepared, row)
            self.observe(prepared, row, float(seconds[row]))
            recall.observe(row, float(seconds[row]))
        self.fit_rows(prepared, rows, seconds[rows])
        return self

    def explain(self, jobs: Any) -> Predicted:
        """Return the trained model's predictions; see `Predictor.explain`."""
        table = as_jobs(jobs)
        own = self.predict_rows(self._ready(table), np.arange(table.num_rows))
        before = recalled(Recall(self.memory_, table), range(table.num_rows))
        return Predicted.by_model(self.combine(before.seconds, own))

    def predict_interval(self, jobs: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return intervals that hold a job's duration with probability ``coverage``.

        Returns:
            Lower and upper ends, seconds, shape (rows,) each.

        Raises:
            SchemaError: the jobs break the schema.
            SpecError: the predictor has not been fitted, or has no intervals.
        """
        table = as_jobs(jobs)
        found = self.interval_rows(self._ready(table), np.arange(table.num_rows), coverage)
        if found is None:
            raise SpecError(f"predictor {self.name}", "has no intervals of its own.")
        return found

    def _ready(self, table: pa.Table) -> Any:
        """Return the prepared table, all of it seen."""
        if not hasattr(self, "memory_"):
            raise SpecError(f"predictor {self.name}", "has learnt nothing yet; call fit first.")
        prepared = self.prepare(table)
        for row in range(table.num_rows):
            self.see(prepared, row)
        return prepared


class Adapted(Fitted):
    """Any object with ``fit(table, durations)`` and ``predict(table)``, such as a pipeline.

    The tables that it gets have the columns known at submission and no others.

    Args:
        estimator: the object, unfitted; it is copied before it is trained.
    """

    name: ClassVar[str] = "estimator"

    def __init__(self, estimator: Any) -> None:
        for method in ("fit", "predict"):
            if not callable(getattr(estimator, method, None)):
                raise SpecError(
                    "predictor",
                    f"found {quote(type(estimator).__name__)}, which has no method {method}; "
                    "expected a name or an object with fit and predict.",
                )
        self.estimator = estimator

    @property
    def label(self) -> str:
        """The estimator's class."""
        return type(self.estimator).__name__

    def prepare(self, jobs: pa.Table) -> pa.Table:
        """Return the columns known at submission."""
        return jobs.select(SUBMISSION)

    def fit_rows(self, prepared: pa.Table, rows: np.ndarray, seconds: np.ndarray) -> None:
        """Train a copy of the estimator; see `Fitted.fit_rows`."""
        self.estimator_ = copy.deepcopy(self.estimator)
        self.estimator_.fit(prepared.take(rows), seconds)

    def predict_rows(self, prepared: pa.Table, rows: np.ndarray) -> np.ndarray:
        """Return the copy's predictions.

        Raises:
            SpecError: they are not one number a row.
        """
        found = np.asarray(self.estimator_.predict(prepared.take(rows)), dtype=np.float64)
        if found.shape != rows.shape:
            raise SpecError(
                f"predictor {self.label}",
                f"predicted the shape {found.shape} for {len(rows):,} jobs; expected one number "
                "a job.",
            )
        return found
