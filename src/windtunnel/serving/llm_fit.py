"""The costs of a language model's iterations, fitted to measured ones.

That an iteration's time is linear in prompt tokens, sequences and cached tokens is an assumption,
which the error on measurements that were not fitted holds to account.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving.llm_costs import LINEAR, Cost, LinearCost, PiecewiseCost
from windtunnel.serving.llm_measured import Iterations, read_iterations
from windtunnel.serving.llm_model import LlmModel

if TYPE_CHECKING:
    from pathlib import Path

#: Forms that can be fitted, and what a fit's squares are of.
FIT_FORMS = ("linear", "piecewise")
FIT_WEIGHTS = ("relative", "absolute")
_FEWEST_KNOTS = 2

Fitted = TypeVar("Fitted", LinearCost, PiecewiseCost)


@dataclass(frozen=True)
class HeldBack:
    """Errors on iterations that were not fitted: means of |fitted - measured| / measured.

    Attributes:
        num_rows: how many they are.
        mean_relative_error: of them all.
        prefill: of those with a prefill; None where there is none.
        decode: of the others.
    """

    num_rows: int
    mean_relative_error: float
    prefill: float | None
    decode: float | None


@dataclass(frozen=True)
class LlmFit:
    """Costs fitted to measured iterations.

    Attributes:
        cost: None where the iterations do not tell it; ``error`` says why.
        num_rows: measurements.
        rmse: root of the mean squared error, s.
        mean_relative_error: mean of |fitted - measured| / measured.
        held_back: of a fit to the others; None where nothing was held back.
        error: why nothing was fitted.
    """

    cost: Cost | None
    num_rows: int
    rmse: float = math.nan
    mean_relative_error: float = math.nan
    held_back: HeldBack | None = None
    error: TraceError | None = None

    @property
    def costs(self) -> np.ndarray:
        """The numbers a, b, c, d of linear costs, and q where pairs were measured, s."""
        if not isinstance(self.cost, LinearCost):
            raise SpecError("costs", "expected a linear fit.")
        numbers = self.cost.costs
        return np.array(numbers if numbers[4] else numbers[:4], dtype=np.float64)

    def model(self, kv_limit: int, max_batch: int = 256, gpus: int = 1) -> LlmModel:
        """Return a model of these costs, which reserves memory exactly."""
        if self.cost is None:
            raise SpecError("cost", str(self.error))
        if isinstance(self.cost, LinearCost) and not self.cost.prefill_attention_s:
            four = dict(zip(LINEAR, self.cost.costs[:4], strict=False))
            return LlmModel(**four, kv_limit=kv_limit, max_batch=max_batch, gpus=gpus)
        return LlmModel(cost=self.cost, kv_limit=kv_limit, max_batch=max_batch, gpus=gpus)


def fit_llm(path: str | Path, form: str = "linear", weights: str = "relative") -> LlmFit:
    """Fit the costs of one model on one GPU; see `fit_llms`.

    Raises:
        TraceError: as `fit_llms`, there are several, or the iterations do not tell the costs.
        OSError: the file cannot be read.
    """
    found = fit_llms(path, form, weights)
    if len(found) > 1:
        names = ", ".join(found)
        raise TraceError(str(path), "one model on one GPU type", hint=f"The file has: {names}.")
    fit = next(iter(found.values()))
    if fit.error is not None:
        raise fit.error
    return fit


def fit_llms(
    path: str | Path,
    form: str = "linear",
    weights: str = "relative",
    held_back: float | None = None,
) -> dict[str, LlmFit]:
    """Fit the costs to a CSV of iterations by nonnegative least squares.

    Columns: prefill_tokens, decode_seqs, kv_tokens, iteration_time (s) and, where they were
    measured, prefill_pairs, prefill_context, and model and gpu_type where there are several.

    Args:
        path: of the file.
        form: ``linear``, or ``piecewise``: the median at each number of prefill tokens, and a line
            of decodes.
        weights: ``relative`` takes squares of fitted / measured - 1, ``absolute`` of seconds.
        held_back: also fit without this part of each model's rows, spread evenly, and tell the
            error on them.

    Returns:
        Fits by ``model/gpu_type``, or what there is of the two, in file order; one that cannot be
        has an error in place of costs.

    Raises:
        TraceError: a column is missing, a value is wrong, or there are no rows.
        SpecError: an unknown form or weights, or a part outside 0 .. 1.
        OSError: the file cannot be read.
    """
    checked_choice("form", form, FIT_FORMS)
    checked_choice("weights", weights, FIT_WEIGHTS)
    if held_back is not None:
        checked_number("held_back", held_back, "a part, 0 < F < 1", above=0, below=1)
    fits = {}
    for name, rows in read_iterations(path).items():
        try:
            fits[name] = _whole_fit(str(path), name, rows, form, weights, part=held_back)
        except TraceError as error:
            fits[name] = LlmFit(None, len(rows.seconds), error=error)
    return fits


def _whole_fit(
    file: str, name: str, rows: Iterations, form: str, weights: str, *, part: float | None
) -> LlmFit:
    make = _linear if form == "linear" else _piecewise
    relative = weights == "relative"
    cost = make(file, name, rows, relative=relative)
    held = None
    if part is not None:
        steps = np.floor(np.arange(len(rows.seconds) + 1) * part)
        out = np.diff(steps) > 0
        held = _held_back(make(file, name, rows.only(~out), relative=relative), rows.only(out))
    error = rows.fitted(cost) - rows.seconds
    return LlmFit(
        cost,
        len(rows.seconds),
        float(np.sqrt(np.mean(error**2))),
        float(np.mean(np.abs(error) / rows.seconds)),
        held,
    )


def _held_back(cost: Cost, rows: Iterations) -> HeldBack | None:
    if not len(rows.seconds):
        return None
    errors = np.abs(rows.fitted(cost) / rows.seconds - 1)
    prefills = rows.prefill > 0

    def mean(of: np.ndarray) -> float | None:
        return float(of.mean()) if len(of) else None

    whole, of_decode = float(errors.mean()), mean(errors[~prefills])
    return HeldBack(len(errors), whole, mean(errors[prefills]), of_decode)


def _linear(file: str, name: str, rows: Iterations, *, relative: bool) -> LinearCost:
    columns = [np.ones(len(rows.seconds)), rows.prefill, rows.decoding, rows.kv]
    if rows.pairs is not None:
        columns.append(rows.pairs)
    numbers = _solved(file, name, np.column_stack(columns), rows.seconds, relative=relative)
    return _made(file, name, LinearCost, *numbers.tolist())


def _piecewise(file: str, name: str, rows: Iterations, *, relative: bool) -> PiecewiseCost:
    alone = (rows.decoding == 0) & (rows.prefill > 0)
    tokens = np.unique(rows.prefill[alone])
    if len(tokens) < _FEWEST_KNOTS:
        raise _unfit(file, name, f"prefills alone of {_FEWEST_KNOTS} lengths or more")
    knots = [(t, np.median(rows.seconds[alone & (rows.prefill == t)])) for t in tokens]
    decodes = rows.only(rows.prefill == 0)
    columns = (np.ones(len(decodes.seconds)), decodes.decoding, decodes.kv)
    line = _solved(file, name, np.column_stack(columns), decodes.seconds, relative=relative)
    plain = tuple((float(t), float(s)) for t, s in knots)
    return _made(file, name, PiecewiseCost, plain, *line.tolist())


def _made(file: str, name: str, form: type[Fitted], *numbers: Any) -> Fitted:
    try:
        return form(*numbers)
    except SpecError as error:  # by these iterations, prefills or decodes are free
        raise _unfit(file, name, "iterations that cost time by what they hold") from error


def _solved(
    file: str, name: str, design: np.ndarray, measured: np.ndarray, *, relative: bool
) -> np.ndarray:
    # Columns differ by six orders of magnitude; scaled, each peaks at 1.
    scale = np.maximum(design.max(axis=0, initial=0.0), 1e-300)
    if len(design) == 0 or np.linalg.matrix_rank(design / scale) < design.shape[1]:
        raise _unfit(file, name, "iterations that vary in all counts independently")
    weights = 1 / measured if relative else np.ones(len(measured))
    found = _nonnegative(design / scale * weights[:, None], measured * weights)
    return np.asarray(found / scale)


def _unfit(file: str, name: str, expected: str) -> TraceError:
    return TraceError(file, f"{name}: {expected}" if name else expected)


def _nonnegative(design: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return the nonnegative least squares solution, by trying every set of positive costs.

    The optimum is the unconstrained optimum on its own support, so that the best of the
    nonnegative ones among these is exact; five columns have 32 supports.
    """
    best, least = np.zeros(design.shape[1]), math.inf
    for chosen in product((False, True), repeat=design.shape[1]):
        support = np.array(chosen)
        costs = np.zeros(design.shape[1])
        costs[support] = np.linalg.lstsq(design[:, support], measured, rcond=None)[0]
        error = float(np.sum((design @ costs - measured) ** 2))
        if costs.min() >= 0 and error < least:
            best, least = costs, error
    return best


def linear_fit(counts: np.ndarray, seconds: np.ndarray) -> LinearCost:
    """Return linear costs near known iterations, by relative errors.

    Args:
        counts: prefill tokens, decoding sequences, KV tokens and prefill pairs, shape (n, 4).
        seconds: shape (n,).
    """
    design = np.column_stack([np.ones(len(counts)), counts])
    return LinearCost(*_solved("", "", design, seconds, relative=True).tolist())


def fit_figures(fit: LlmFit) -> dict[str, Any]:
    """Return what `llm-fit` tells of a fit."""
    from dataclasses import asdict

    costs: dict[str, Any] = {} if fit.cost is None else fit.cost.data()
    if isinstance(fit.cost, LinearCost):
        costs["prefill_attention_s"] = fit.cost.prefill_attention_s
    return {
        **costs,
        "num_rows": fit.num_rows,
        "rmse": None if fit.cost is None else fit.rmse,
        "mean_relative_error": None if fit.cost is None else fit.mean_relative_error,
        "held_back": None if fit.held_back is None else asdict(fit.held_back),
        "error": None if fit.error is None else str(fit.error),
    }
