"""Gradient boosting of quantiles, its band widened until it covers what it says.

Conformalized quantile regression (Romano, Patterson, Candes, NeurIPS 2019) on log(1 + seconds):
three boosted regressions of the lower, the middle and the upper quantile, trained on the older
part of the ended jobs; the newer part says by how much the band must grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from windtunnel.checked import checked_count
from windtunnel.predictors.conformal import conformal_quantile
from windtunnel.predictors.convention import checked_share
from windtunnel.predictors.trees import Encoded, boosting, need_scikit_learn, one_thread

if TYPE_CHECKING:
    from windtunnel.predictors.features import View


#: Leaves of each tree: quantiles need more rows a leaf than means.
LEAVES = 15


class QuantileTrees(Encoded):
    """Predicts the median, and intervals that cover as many jobs as they say.

    Args:
        band: coverage that the lower and the upper quantile are trained for, between 0 and 1;
            intervals of another coverage come from the same band, made wider or narrower.
        calibration: share of the ended jobs, the last of them, that the band is measured on.
        max_iter: trees of each regression.
        seed: of the boosting.

    Raises:
        SpecError: a parameter is out of range, or scikit-learn is not installed.
    """

    name: ClassVar[str] = "quantile"

    def __init__(
        self, band: float = 0.9, calibration: float = 0.2, max_iter: int = 50, seed: int = 0
    ) -> None:
        need_scikit_learn(self.name)
        where = f"predictor {self.name}, "
        self.band = checked_share(f"{where}band", band)
        self.calibration = checked_share(f"{where}calibration", calibration)
        self.max_iter = checked_count(f"{where}max_iter", max_iter)
        self.seed = checked_count(f"{where}seed", seed, least=0, most=2**32 - 1)

    def fit_rows(self, prepared: View, rows: np.ndarray, seconds: np.ndarray) -> None:
        """Train on the older rows, measure on the newer ones; see `Fitted.fit_rows`."""
        target = np.log1p(seconds)
        # With a single row there is nothing to measure on: intervals are then unbounded.
        older = max(1, len(rows) - int(len(rows) * self.calibration))
        features = self.encoding_.learn(prepared, rows[:older], target[:older])
        self.used_ = ~np.isnan(features).all(axis=0)
        quantiles = ((1 - self.band) / 2, 0.5, (1 + self.band) / 2)
        regressors = [
            boosting(
                *(self.name, self.max_iter, 0.1, self.seed),
                loss="quantile",
                quantile=quantile,
                max_leaf_nodes=LEAVES,
            )
            for quantile in quantiles
        ]
        with one_thread():
            self.models_ = [
                regressor.fit(features[:, self.used_], target[:older]) for regressor in regressors
            ]
        low, _, high = self._quantiles(prepared, rows[older:])
        self.scores_ = np.maximum(low - target[older:], target[older:] - high)

    def predict_rows(self, prepared: View, rows: np.ndarray) -> np.ndarray:
        """Return medians, seconds."""
        seconds: np.ndarray = np.maximum(np.expm1(self._quantiles(prepared, rows)[1]), 0.0)
        return seconds

    def interval_rows(
        self, prepared: View, rows: np.ndarray, coverage: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the band, widened or narrowed to ``coverage``; (0, infinity) with too few jobs."""
        low, middle, high = self._quantiles(prepared, rows)
        grow = conformal_quantile(self.scores_, checked_share("coverage", coverage))
        # A band that shrinks past itself is a point.
        low, high = low - grow, high + grow
        crossed = low > high
        low, high = np.where(crossed, middle, low), np.where(crossed, middle, high)
        return np.maximum(np.expm1(low), 0.0), np.maximum(np.expm1(high), 0.0)

    def _quantiles(self, prepared: View, rows: np.ndarray) -> np.ndarray:
        """Return the three quantiles of log(1 + seconds), in order, shape (3, rows)."""
        if len(rows) == 0:
            return np.empty((3, 0))
        features = self.encoding_.features(prepared, rows)[:, self.used_]
        with one_thread():
            found = [model.predict(features) for model in self.models_]
        return np.sort(found, axis=0)
