"""Measurements of a language model: iterations as CSV, and request logs of vLLM."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.serving.llm_outcome import latencies
from windtunnel.serving.request_traces import RequestTrace
from windtunnel.serving.text_files import csv_rows, number, open_text
from windtunnel.serving.token_formats import vllm_rows

if TYPE_CHECKING:
    from windtunnel.serving.llm_costs import Cost


#: Columns that tell measurements of several models and GPUs apart, where they are there.
_WHO = ("model", "gpu_type")
_COLUMNS = ("prefill_tokens", "decode_seqs", "kv_tokens", "iteration_time")
_OPTIONAL = ("prefill_pairs", "prefill_context")


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
    taken: list[str] = []
    for row, data in csv_rows(file, _COLUMNS):
        taken = [*_COLUMNS, *(column for column in _OPTIONAL if column in data)]
        who = (column for column in _WHO if column in data)
        name = "/".join(_named(file, row, column, data[column]) for column in who)
        cells = [_measured(file, row, column, data[column]) for column in taken]
        found.setdefault(name, []).append(cells)
    if not found:
        raise TraceError(str(file), "at least one iteration")
    return {name: _iterations(np.array(cells), taken) for name, cells in found.items()}


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
    value = number(file, row, column, text)
    if column == "iteration_time" and value == 0:
        raise TraceError(str(file), "a finite number > 0", row=row, column=column, value=text)
    return value


@dataclass(frozen=True)
class RequestLog:
    """Requests with measured times, in order of arrival.

    Attributes:
        requests: as they were queued, s from the first.
        first, last: when their first and last tokens came, shape (n,), s on the same clock.
    """

    requests: RequestTrace
    first: np.ndarray
    last: np.ndarray

    def latencies(self) -> dict[str, np.ndarray]:
        """Return measured ttft, tpot (NaN for one token) and e2e, shape (n,) each, s."""
        return latencies(self.requests, self.first, self.last)


def read_request_log(path: str | Path) -> RequestLog:
    """Read JSON lines, plain or gzipped, of ``input_toks`` and so on; see `vllm_rows`.

    Raises:
        TraceError: it cannot be read, or a value is wrong.
    """
    file = Path(path)
    try:
        with open_text(file, "utf-8-sig") as lines:
            rows = vllm_rows(file, lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TraceError(str(file), "a readable request log", hint=str(error)) from error
    rows = rows[np.argsort(rows[:, 2], kind="stable")]
    start = rows[0, 2]
    requests = RequestTrace(
        file.name,
        "vllm_log",
        rows[:, 2] - start,
        prompt_tokens=rows[:, 0].astype(np.int64),
        output_tokens=rows[:, 1].astype(np.int64),
    )
    return RequestLog(requests, rows[:, 3] - start, rows[:, 4] - start)
