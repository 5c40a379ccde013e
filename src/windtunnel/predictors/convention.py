"""What a predictor of job durations is: scikit-learn's convention, on jobs tables.

``fit(jobs, durations)`` learns from jobs that have ended, ``predict(jobs)`` says what others will
take, from what is known at their submission (`windtunnel.predictors.features`). Parameters are
the constructor's arguments, under the same names as attributes, so that `Predictor.clone` and
scikit-learn's own ``clone`` give the same predictor unfitted.

There are three kinds. A `Given` predictor learns nothing: it reads a column. A `RunningMean` one
(`windtunnel.predictors.running_mean`) learns at each completion. A `Fitted` one
(`windtunnel.predictors.fitted`) is trained anew every so often and falls back on one of those.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import SchemaError, Violation
from windtunnel.schema import as_jobs, source_of

#: What a prediction rests on: a fitted model (or a column), past runs of the template, of the
#: templates with the closest names, of the user, of anybody; or nothing: there is no prediction.
SOURCES: tuple[str, ...] = ("model", "template", "similar", "user", "global", "none")
MODEL, TEMPLATE, SIMILAR, USER, GLOBAL, NONE = range(len(SOURCES))


class Predicted(NamedTuple):
    """Predictions and what each rests on, in row order.

    Attributes:
        seconds: float64, shape (rows,); NaN = no prediction.
        source: int8, shape (rows,), indices into `SOURCES`.
        runs: int64, shape (rows,): past runs behind the prediction; 0 where a model or a column
            gave it.
    """

    seconds: np.ndarray
    source: np.ndarray
    runs: np.ndarray

    @classmethod
    def nothing(cls, count: int) -> Predicted:
        """Return no predictions for ``count`` rows."""
        return cls(
            np.full(count, np.nan),
            np.full(count, NONE, dtype=np.int8),
            np.zeros(count, dtype=np.int64),
        )

    @classmethod
    def by_model(cls, seconds: np.ndarray) -> Predicted:
        """Return a model's predictions; NaN = none."""
        source = np.where(np.isnan(seconds), NONE, MODEL).astype(np.int8)
        return cls(seconds, source, np.zeros(len(seconds), dtype=np.int64))


class Predictor:
    """Predicts how long jobs run. See the module's text.

    Attributes:
        name: what users type.
        peeks: it reads the true durations of the jobs that it predicts: a bound, not a predictor.
    """

    name: ClassVar[str] = ""
    peeks: ClassVar[bool] = False

    def fit(self, jobs: Any, durations: Any) -> Self:
        """Learn from jobs that have ended.

        Args:
            jobs: a jobs table, rows in the order in which they ended.
            durations: seconds, shape (rows,); a job whose duration is NaN teaches nothing.

        Raises:
            SchemaError: the jobs break the schema, or there are not as many durations.
            SpecError: there is nothing to learn from, or a library is missing.
        """
        raise NotImplementedError

    def explain(self, jobs: Any) -> Predicted:
        """Return predictions with what each rests on.

        Args:
            jobs: a jobs table; its durations may be null.

        Raises:
            SchemaError: the jobs break the schema.
            SpecError: the predictor has not been fitted.
        """
        raise NotImplementedError

    def predict(self, jobs: Any) -> np.ndarray:
        """Return predicted durations in seconds, shape (rows,), NaN = none; raises as `explain`."""
        return self.explain(jobs).seconds

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - scikit-learn's signature
        """Return the constructor's arguments."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments and forget what was learnt.

        Raises:
            SpecError: there is no such parameter, or a value is out of range.
        """
        known = self.get_params()
        for name in params:
            checked_choice(f"predictor {self.name}", name, known)
        vars(self).clear()
        self.__init__(**{**known, **params})  # type: ignore[misc] # scikit-learn does the same
        return self

    def clone(self) -> Self:
        """Return the same predictor unfitted."""
        return type(self)(**self.get_params())

    @property
    def label(self) -> str:
        """The name with the parameters that are not the defaults."""
        usual = {
            name: parameter.default
            for name, parameter in inspect.signature(type(self)).parameters.items()
        }
        changed = {n: v for n, v in self.get_params().items() if v != usual[n]}
        return ":".join([self.name, *(f"{name}={value}" for name, value in changed.items())])

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({words})"


class Given(Predictor):
    """A predictor that learns nothing: each job's row says it all."""

    def fit(self, jobs: Any, durations: Any) -> Self:
        """Check the arguments; there is nothing to learn. Raises as `Predictor.fit`."""
        paired(jobs, durations)
        return self

    def explain(self, jobs: Any) -> Predicted:
        """Return what the rows say; raises as `Predictor.explain`."""
        return Predicted.by_model(self.read(as_jobs(jobs)))

    def read(self, jobs: pa.Table) -> np.ndarray:
        """Return what each row of a jobs table says, seconds, NaN = nothing, shape (rows,)."""
        raise NotImplementedError


def paired(jobs: Any, durations: Any) -> tuple[pa.Table, np.ndarray]:
    """Return a jobs table and durations of as many rows, as float64.

    Raises:
        SchemaError: the jobs break the schema, there are not as many durations, or one is negative
            or infinite.
    """
    table = as_jobs(jobs)
    if isinstance(durations, pa.Array | pa.ChunkedArray):
        durations = durations.cast(pa.float64()).to_numpy()
    seconds = np.asarray(durations, dtype=np.float64)
    if seconds.shape != (table.num_rows,):
        rule = f"{table.num_rows:,} values in one dimension; found the shape {seconds.shape}"
        raise SchemaError(source_of(table), [Violation("durations", rule)])
    bad = np.flatnonzero((seconds < 0) | np.isinf(seconds))
    if len(bad):
        where = Violation(
            "durations",
            "seconds >= 0, or NaN",
            len(bad),
            int(bad[0]) + 1,
            float(seconds[bad[0]]),
            "row",
        )
        raise SchemaError(source_of(table), [where])
    return table, seconds


def checked_share(where: str, value: Any, *, closed: bool = False) -> float:
    """Return a number between 0 and 1, the ends allowed where ``closed``.

    Raises:
        SpecError: it is none.
    """
    if closed:
        return checked_number(where, value, "a number from 0 to 1", least=0, most=1)
    return checked_number(where, value, "a number between 0 and 1", above=0, below=1)
