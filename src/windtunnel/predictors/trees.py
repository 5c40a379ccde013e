"""A regression tree, and gradient boosting mixed with rolling means as in QSSF.

``cart``: Weng et al. (NSDI'22) predict the run times of recurring PAI tasks with CART; neither code
nor parameters are published. ``gbdt``: QSSF of Hu et al. (SC'21; S-Lab-System-Group/HeliosArtifact)
expects D = alpha * D_rolling + (1 - alpha) * D_gbdt, alpha = 0.1, and D_rolling alone where the
boosted value is not positive. Its LightGBM is scikit-learn's histogram gradient boosting here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.predictors.convention import checked_choice, checked_count, checked_share
from windtunnel.predictors.features import Ranks, Statistics
from windtunnel.predictors.regression import TARGETS, Regression
from windtunnel.predictors.rolling import QssfRolling
from windtunnel.predictors.scikit import boosting, need_scikit_learn, scikit_learn
from windtunnel.predictors.submission import identity_columns

if TYPE_CHECKING:
    from windtunnel.predictors.features import Encoding
    from windtunnel.predictors.recalling import Recalling


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

    def encoding(self) -> Encoding:
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
        self.learning_rate = _positive(f"{where}learning_rate", learning_rate)
        self.target = checked_choice(f"{where}target", target, TARGETS)
        self.similar = bool(similar)
        self.seed = checked_count(f"{where}seed", seed, least=0, most=2**32 - 1)

    def fallback(self) -> Recalling:
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


def _positive(where: str, value: Any) -> float:
    """Return a number above 0.

    Raises:
        SpecError: it is none.
    """
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else np.nan
    if not 0 < number < np.inf:
        raise SpecError(where, f"found {quote(value)}; expected a number > 0.")
    return float(number)
