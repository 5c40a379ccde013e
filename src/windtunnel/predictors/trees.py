"""A regression tree, and gradient boosting mixed with rolling means as in QSSF.

``cart``: Weng et al. (NSDI'22) predict the run times of recurring PAI tasks with CART; neither code
nor parameters are published. ``gbdt``: QSSF of Hu et al. (SC'21; S-Lab-System-Group/HeliosArtifact)
expects D = alpha * D_rolling + (1 - alpha) * D_gbdt, alpha = 0.1, and D_rolling alone where the
boosted value is not positive. Its LightGBM is scikit-learn's histogram gradient boosting here.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from windtunnel.checked import checked_choice, checked_count, checked_number
from windtunnel.errors import SpecError
from windtunnel.predictors.convention import (
    checked_share,
)
from windtunnel.predictors.features import Ranks, Statistics, identity_columns
from windtunnel.predictors.fitted import Fitted
from windtunnel.predictors.rolling import QssfRolling

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from windtunnel.predictors.features import View
    from windtunnel.predictors.running_mean import RunningMean

#: What is averaged: seconds, or log(1 + seconds), whose error is a factor.
TARGETS: tuple[str, ...] = ("log", "seconds")


class Encoded(Fitted):
    """A fitted predictor that works on the features of `windtunnel.predictors.features`.

    Attributes:
        target: one of `TARGETS`.
    """

    target: str = "log"

    def encoding(self) -> Any:
        """Return how names become numbers, such as `Statistics`."""
        return Statistics()

    def prepare(self, jobs: pa.Table) -> View:
        """Return a view of the jobs; what names mean is kept from table to table."""
        if not hasattr(self, "encoding_"):
            self.forget()
        found: View = self.encoding_.view(jobs)
        return found

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


@functools.cache
def _threads() -> Any:
    """Return the control of the thread pools that scikit-learn has loaded."""
    return importlib.import_module("threadpoolctl").ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a block in which scikit-learn, already imported, computes in one thread.

    The sums of several threads may be rounded otherwise, and for trainings of some thousand rows
    threads cost more than they bring: ten times the time where the machine has other work.
    """
    found: AbstractContextManager[Any] = _threads().limit(limits=1)
    return found


def scikit_learn(module: str, who: str) -> Any:
    """Return a module of scikit-learn.

    Args:
        module: such as ``sklearn.tree``.

    Raises:
        SpecError: scikit-learn cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _without_scikit_learn(who, f"cannot be imported ({error})") from error


def need_scikit_learn(who: str) -> None:
    """Check that scikit-learn is there, without the seconds that importing it takes.

    Raises:
        SpecError: it is not installed.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise _without_scikit_learn(who, "is not installed")


def _without_scikit_learn(who: str, what: str) -> SpecError:
    return SpecError(
        f"predictor {who}",
        f'needs scikit-learn, which {what}; install it with: pip install "windtunnel[ml]".',
    )


def boosting(who: str, max_iter: int, learning_rate: float, seed: int, **more: Any) -> Any:
    """Return histogram gradient boosting that uses every row and stops at ``max_iter`` trees.

    Raises:
        SpecError: scikit-learn is not installed.
    """
    return scikit_learn("sklearn.ensemble", who).HistGradientBoostingRegressor(
        max_iter=max_iter,
        learning_rate=learning_rate,
        early_stopping=False,
        random_state=seed,
        **more,
    )


class Cart(Regression):
    """A regression tree (CART).

    Args:
        by: identity columns joined by +, such as ``user+template``: the tree sees these alone, as
            identities; fully grown (``min_samples_leaf=1``, ``target="seconds"``) it is the mean of
            each cell. None = every feature that is known at submission.
        min_samples_leaf: fewest runs in a leaf.
        max_depth: deepest leaf; None = no limit.
        target: ``log`` (leaves average log(1 + seconds)) or ``seconds``.
        seed: breaks ties between equally good splits.

    Raises:
        SpecError: a parameter is out of range, or scikit-learn is not installed.
    """

    name: ClassVar[str] = "cart"

    def __init__(
        self,
        by: str | None = None,
        min_samples_leaf: int = 20,
        max_depth: int | None = None,
        target: str = "log",
        seed: int = 0,
    ) -> None:
        need_scikit_learn(self.name)
        where = f"predictor {self.name}, "
        self.by = None if by is None else "+".join(identity_columns(f"{where}by", by))
        self.min_samples_leaf = checked_count(f"{where}min_samples_leaf", min_samples_leaf)
        self.max_depth = (
            None if max_depth is None else checked_count(f"{where}max_depth", max_depth)
        )
        self.target = checked_choice(f"{where}target", target, TARGETS)
        self.seed = checked_count(f"{where}seed", seed, least=0, most=2**32 - 1)

    def encoding(self) -> Ranks | Statistics:
        """Return statistics of past runs, or the identities that were asked for."""
        return Statistics() if self.by is None else Ranks(tuple(self.by.split("+")))

    def regressor(self) -> Any:
        """Return scikit-learn's tree."""
        return scikit_learn("sklearn.tree", self.name).DecisionTreeRegressor(
            min_samples_leaf=self.min_samples_leaf,
            max_depth=self.max_depth,
            random_state=self.seed,
        )


class Gbdt(Regression):
    """Gradient boosting mixed with rolling means, as in QSSF.

    Args:
        alpha: weight of the rolling mean, 0..1.
        max_iter: trees.
        learning_rate: weight of each tree.
        target: ``log`` (the trees add up to log(1 + seconds)) or ``seconds``.
        similar: the rolling means look for close names.
        seed: of the boosting.

    Raises:
        SpecError: a parameter is out of range, or scikit-learn is not installed.
    """

    name: ClassVar[str] = "gbdt"

    def __init__(  # noqa: PLR0917 - parameters of an estimator
        self,
        alpha: float = 0.1,
        max_iter: int = 100,
        learning_rate: float = 0.1,
        target: str = "log",
        similar: bool = False,  # noqa: FBT001, FBT002 - a parameter like the others
        seed: int = 0,
    ) -> None:
        need_scikit_learn(self.name)
        where = f"predictor {self.name}, "
        self.alpha = checked_share(f"{where}alpha", alpha, closed=True)
        self.max_iter = checked_count(f"{where}max_iter", max_iter)
        self.learning_rate = checked_number(f"{where}learning_rate", learning_rate, above=0)
        self.target = checked_choice(f"{where}target", target, TARGETS)
        self.similar = bool(similar)
        self.seed = checked_count(f"{where}seed", seed, least=0, most=2**32 - 1)

    def fallback(self) -> RunningMean:
        """Return QSSF's rolling means."""
        return QssfRolling(similar=self.similar)

    def combine(self, recalled: np.ndarray, fitted: np.ndarray) -> np.ndarray:
        """Return the mix; the rolling mean alone where the boosted value is not positive."""
        mixed = self.alpha * recalled + (1 - self.alpha) * fitted
        mixed = np.where(np.isnan(recalled), fitted, mixed)
        return np.where((fitted <= 0) & ~np.isnan(recalled), recalled, mixed)

    def regressor(self) -> Any:
        """Return scikit-learn's histogram gradient boosting."""
        return boosting(self.name, self.max_iter, self.learning_rate, self.seed)
