"""Measurements of a language model: iterations as CSV, and an engine's request log."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.serving.token_formats import numbered

if TYPE_CHECKING:
    import io

    from windtunnel.serving.llm_costs import Cost

#: Columns that tell measurements of several models and GPUs apart, where they are there.
_WHO = ("model", "gpu_type")
_COLUMNS = ("prefill_tokens", "decode_seqs", "kv_tokens", "iteration_time")
_OPTIONAL = ("prefill_pairs", "prefill_context")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Iterations:
    """Measured iterations of one model, shape (n,) each.

    Attributes:
        prefill: prompt tokens.
        decoding: sequences that got their next token.
        kv: tokens that those attended to.
        seconds: measured, > 0.
        pairs: of a prompt's token and one that it attends to; None where that was not measured.
        context: tokens of those prompts that came in earlier iterations; None as above.
    """

    prefill: np.ndarray
    decoding: np.ndarray
    kv: np.ndarray
    seconds: np.ndarray
    pairs: np.ndarray | None = None
    context: np.ndarray | None = None

    def only(self, rows: np.ndarray) -> Iterations:
        """Return some of the iterations."""
        kept = {
            one.name: values[rows]
            for one in fields(self)
            if (values := getattr(self, one.name)) is not None
        }
        return replace(self, **kept)

    def fitted(self, cost: Cost) -> np.ndarray:
        """Return what a cost says of each iteration, shape (n,), s."""
        zeros = np.zeros(len(self.seconds))
        pairs = zeros if self.pairs is None else self.pairs
        context = zeros if self.context is None else self.context
        columns = (self.prefill, self.decoding, self.kv, pairs, context)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([cost.seconds(*row) for row in rows])


def read_iterations(path: str | Path) -> dict[str, Iterations]:
    """Return measured iterations of a CSV file, plain or gzipped, by ``model/gpu_type``.

    Raises:
        TraceError: a column is missing, a value is wrong, or there are no rows.
        OSError: the file cannot be read.
    """
    file = Path(path)
    found: dict[str, list[list[float]]] = {}
    with _opened(file) as lines:
        rows = csv.DictReader(lines, restval="")
        try:
            columns = list(rows.fieldnames or ())
            for column in _COLUMNS:
                if column not in columns:
                    raise TraceError.missing_column(str(file), column, columns)
            who = [column for column in _WHO if column in columns]
            taken = [*_COLUMNS, *(column for column in _OPTIONAL if column in columns)]
            for row, data in numbered(file, rows):
                name = "/".join(_named(file, row, column, data[column]) for column in who)
                cells = [_measured(file, row, column, data[column]) for column in taken]
                found.setdefault(name, []).append(cells)
        except (csv.Error, EOFError, gzip.BadGzipFile) as error:
            hint = str(error)
            raise TraceError(str(file), "a line of CSV", row=rows.line_num, hint=hint) from error
    if not found:
        raise TraceError(str(file), "at least one iteration")
    return {name: _iterations(np.array(cells), taken) for name, cells in found.items()}


def _opened(file: Path) -> io.TextIOBase:
    with file.open("rb") as raw:
        gzipped = raw.read(2) == _GZIP
    if gzipped:
        return gzip.open(file, "rt", encoding="utf-8-sig", errors="replace", newline="")
    return file.open(encoding="utf-8-sig", errors="replace", newline="")


def _iterations(table: np.ndarray, columns: list[str]) -> Iterations:
    at = {column: table[:, k] for k, column in enumerate(columns)}
    prefill, decoding, kv, seconds = (at[column] for column in _COLUMNS)
    pairs, context = (at.get(column) for column in _OPTIONAL)
    return Iterations(prefill, decoding, kv, seconds, pairs, context)


def _named(file: Path, row: int, column: str, text: str) -> str:
    if not text.strip():
        raise TraceError(str(file), "a name", row=row, column=column, value=text)
    return text.strip()


def _measured(file: Path, row: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    positive = column == "iteration_time"
    if not 0 <= value < math.inf or (positive and value == 0):
        expected = f"a finite number {'>' if positive else '>='} 0"
        raise TraceError(str(file), expected, row=row, column=column, value=text)
    return value
