"""Regressions of scikit-learn on what was known of jobs at their submission."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.predictors.features import Statistics
from windtunnel.predictors.fitted import Fitted
from windtunnel.predictors.scikit import one_thread

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.predictors.features import Encoding, View

#: What is averaged: seconds, or log(1 + seconds), whose error is a factor.
TARGETS: tuple[str, ...] = ("log", "seconds")


class Encoded(Fitted):
    """A fitted predictor that works on the features of `windtunnel.predictors.features`.

    Attributes:
        target: one of `TARGETS`.
    """

    target: str = "log"

    def encoding(self) -> Encoding:
        """Return how names become numbers."""
        return Statistics()

    def prepare(self, jobs: pa.Table) -> View:
        """Return a view of the jobs; what names mean is kept from table to table."""
        if not hasattr(self, "encoding_"):
            self.forget()
        return self.encoding_.view(jobs)

    def forget(self) -> None:
        """Forget what names mean."""
        self.encoding_ = self.encoding()

    def see(self, prepared: View, row: int) -> None:
        """Note the job's features."""
        prepared.see(row)

    def observe(self, prepared: View, row: int, seconds: float) -> None:
        """Count the job among the past runs of its names."""
        prepared.observe(row, math.log1p(seconds) if self.target == "log" else seconds)


class Regression(Encoded):
    """One regression of scikit-learn."""

    def regressor(self) -> Any:
        """Return the regression, unfitted."""
        raise NotImplementedError

    def fit_rows(self, prepared: View, rows: np.ndarray, seconds: np.ndarray) -> None:
        """Train; see `Fitted.fit_rows`."""
        target = np.log1p(seconds) if self.target == "log" else seconds
        features = self.encoding_.learn(prepared, rows, target)
        # A feature that no row knows teaches nothing, and some regressions refuse it.
        self.used_ = ~np.isnan(features).all(axis=0)
        regressor = self.regressor()
        with one_thread():
            self.model_ = regressor.fit(features[:, self.used_], target)

    def predict_rows(self, prepared: View, rows: np.ndarray) -> np.ndarray:
        """Return predictions, seconds."""
        features = self.encoding_.features(prepared, rows)[:, self.used_]
        with one_thread():
            found = self.model_.predict(features)
        return np.asarray(np.expm1(found) if self.target == "log" else found, dtype=np.float64)
