"""What an iteration of a language model costs: four numbers a model and GPU, and their fit.

Iterations are scheduled as in Orca (Yu et al., OSDI'22). That an iteration's time is linear in
prompt tokens, sequences and cached tokens is an assumption, which `fit_llm` holds against
measurements.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.serving.llm_model import LlmModel

#: Columns that tell measurements of several models and GPUs apart, where they are there.
_WHO = ("model", "gpu_type")
_COLUMNS = ("prefill_tokens", "decode_seqs", "kv_tokens", "iteration_time")
_COSTS = ("iteration_s", "prefill_token_s", "decode_seq_s", "kv_token_s")


@dataclass(frozen=True)
class LlmFit:
    """Costs fitted to measured iterations.

    Attributes:
        costs: a, b, c, d, shape (4,), s.
        num_rows: measurements.
        rmse: root of the mean squared error, s.
        mean_relative_error: mean of |fitted - measured| / measured.
    """

    costs: np.ndarray
    num_rows: int
    rmse: float
    mean_relative_error: float

    def model(self, kv_limit: int, max_batch: int = 256, gpus: int = 1) -> LlmModel:
        """Return a model of these costs."""
        a, b, c, d = self.costs.tolist()
        return LlmModel(a, b, c, d, kv_limit, max_batch, gpus)


def fit_llm(path: str | Path) -> LlmFit:
    """Fit the costs of one model on one GPU; see `fit_llms`.

    Raises:
        TraceError: as `fit_llms`, or there are several.
        OSError: the file cannot be read.
    """
    found = fit_llms(path)
    if len(found) > 1:
        names = ", ".join(found)
        raise TraceError(str(path), "one model on one GPU type", hint=f"The file has: {names}.")
    return next(iter(found.values()))


def fit_llms(path: str | Path) -> dict[str, LlmFit]:
    """Fit the costs to a CSV of iterations by nonnegative least squares.

    Columns: prefill_tokens, decode_seqs, kv_tokens, iteration_time (s) and, where there are
    several, model and gpu_type.

    Returns:
        Fits by ``model/gpu_type``, or what there is of the two, in file order.

    Raises:
        TraceError: a column is missing, a value is wrong, or there are too few or too similar rows.
        OSError: the file cannot be read.
    """
    file = Path(path)
    found: dict[str, list[list[float]]] = {}
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        rows = csv.DictReader(lines)
        columns = list(rows.fieldnames or ())
        for column in _COLUMNS:
            if column not in columns:
                raise TraceError.missing_column(str(file), column, columns)
        who = [column for column in _WHO if column in columns]
        try:
            for data in rows:
                row = rows.line_num
                name = "/".join(_named(file, row, column, data[column]) for column in who)
                cells = [_measured(file, row, column, data[column]) for column in _COLUMNS]
                found.setdefault(name, []).append(cells)
        except csv.Error as error:
            raise TraceError(
                str(file), "a line of CSV", row=rows.line_num, hint=str(error)
            ) from error
    if not found:
        raise TraceError(str(file), "at least one iteration")
    return {name: _fitted(file, name, np.array(cells)) for name, cells in found.items()}


def _fitted(file: Path, name: str, table: np.ndarray) -> LlmFit:
    measured = table[:, 3]
    design = np.column_stack([np.ones(len(table)), table[:, :3]])
    # Columns differ by six orders of magnitude; scaled, each peaks at 1.
    scale = np.maximum(design.max(axis=0, initial=0.0), 1e-300)
    if np.linalg.matrix_rank(design / scale) < len(_COSTS):
        of = f"{name}: " if name else ""
        raise TraceError(str(file), f"{of}iterations that vary in all three counts independently")
    costs = _nonnegative(design / scale, measured) / scale
    error = design @ costs - measured
    return LlmFit(
        costs,
        len(table),
        float(np.sqrt(np.mean(error**2))),
        float(np.mean(np.abs(error) / measured)),
    )


def _named(file: Path, row: int, column: str, text: str | None) -> str:
    if not (text or "").strip():
        raise TraceError(str(file), "a name", row=row, column=column, value=text or "")
    return str(text).strip()


def _nonnegative(design: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return the nonnegative least squares solution, by trying every set of positive costs.

    The optimum is the unconstrained optimum on its own support, so that the best of the
    nonnegative ones among these is exact; four columns have 16 supports.
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


def _measured(file: Path, row: int, column: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    positive = column == "iteration_time"
    if not 0 <= value < math.inf or (positive and value == 0):
        expected = f"a finite number {'>' if positive else '>='} 0"
        raise TraceError(str(file), expected, row=row, column=column, value=text or "")
    return value
