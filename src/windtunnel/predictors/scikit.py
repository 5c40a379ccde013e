"""scikit-learn, where it is installed: it is an extra, and takes seconds to import."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


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
