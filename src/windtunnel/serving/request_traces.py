"""Recorded requests: Azure LLM, Mooncake and Azure Functions files, plain or gzipped.

Times are seconds from the file's first arrival (Functions 2019: from midnight).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MINUTE = 60.0
_MINUTES = [str(minute) for minute in range(1, 1441)]
#: Formats, with the columns that tell them apart.
_HEADS = {
    "azure_llm": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "azure_functions_2021": ("app", "func", "end_timestamp", "duration"),
    "azure_functions_2019": ("HashOwner", "HashApp", "HashFunction", "Trigger"),
}


@dataclass(frozen=True)
class RequestTrace:
    """Recorded requests in order of arrival.

    Attributes:
        name: of the file.
        format: azure_llm, mooncake or azure_functions_2021.
        arrival: ascending, shape (n,), s from the first.
        function: index of what was called, shape (n,): 0 in traces of one service.
        functions: names, in the order in which the file has them.
        prompt_tokens: shape (n,); empty where the source has none.
        output_tokens: the same.
    """

    name: str
    format: str
    arrival: np.ndarray
    function: np.ndarray
    functions: tuple[str, ...]
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray

    def window(self, start: float, stop: float) -> RequestTrace:
        """Return the requests with start <= arrival < stop, at time 0 from ``start`` on.

        Functions without a request in the window are left out, the others stay in file order.
        """
        rows = slice(*np.searchsorted(self.arrival, [start, stop]).tolist())
        kept, function = np.unique(self.function[rows], return_inverse=True)
        return RequestTrace(
            self.name,
            self.format,
            self.arrival[rows] - start,
            function,
            tuple(self.functions[index] for index in kept.tolist()),
            self.prompt_tokens[rows],
            self.output_tokens[rows],
        )


@dataclass(frozen=True)
class MinuteCounts:
    """Calls by minute, as Azure Functions 2019 publishes them.

    Attributes:
        name: of the file.
        counts: calls of each function in each minute, shape (functions, 1440).
        functions: names, in file order.
    """

    name: str
    counts: np.ndarray
    functions: tuple[str, ...]

    def window(self, first: int, last: int) -> MinuteCounts:
        """Return minutes first .. last - 1 of the functions that were called then."""
        cut = self.counts[:, first:last]
        kept = np.flatnonzero(cut.sum(axis=1))
        names = tuple(self.functions[index] for index in kept.tolist())
        return MinuteCounts(self.name, cut[kept], names)


def read_requests(path: str | Path) -> RequestTrace | MinuteCounts:
    """Read recorded requests; the format is told from the first line.

    Azure LLM (``TIMESTAMP,ContextTokens,GeneratedTokens``), Mooncake (JSON lines with
    ``timestamp`` in ms, ``input_length``, ``output_length``), Azure Functions 2021
    (``app,func,end_timestamp,duration``; arrival = end - duration) and 2019 (calls by minute).

    Raises:
        TraceError: no known format, no requests, or a value is wrong.
        OSError: the file cannot be read.
    """
    file = Path(path)
    with _lines(file) as lines:
        try:
            head = lines.readline()
            if head.lstrip().startswith("{"):
                return _mooncake(file, head, lines)
            columns = next(csv.reader([head.lstrip("\ufeff").strip()]), [])
            form = next((f for f, names in _HEADS.items() if set(names) <= set(columns)), None)
            if form is None:
                expected = "; ".join(",".join(names) for names in _HEADS.values())
                raise TraceError(str(file), f"columns {expected}, or JSON lines", row=1, value=head)
            rows = enumerate(csv.DictReader(lines, fieldnames=columns, restval=""), start=2)
            if form == "azure_functions_2019":
                return _minutes(file, columns, rows)
            return _azure_llm(file, rows) if form == "azure_llm" else _functions_2021(file, rows)
        except (EOFError, gzip.BadGzipFile, UnicodeDecodeError, csv.Error) as error:
            raise TraceError(str(file), "a readable text file", hint=str(error)) from error


def _lines(file: Path) -> io.TextIOBase:
    with file.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    if packed:
        return io.TextIOWrapper(gzip.open(file), encoding="utf-8", newline="")
    return file.open(encoding="utf-8", newline="")


def _number(file: Path, row: int, column: str, value: Any, least: float = 0.0) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not least <= number < math.inf:
        at_least = "" if math.isinf(least) else f" >= {least:g}"
        raise TraceError(
            str(file), f"a finite number{at_least}", row=row, column=column, value=str(value)
        )
    return number


def _mooncake(file: Path, head: str, lines: io.TextIOBase) -> RequestTrace:
    wanted = ("timestamp", "input_length", "output_length")
    found = []
    for row, text in enumerate((head, *lines), start=1):
        if not text.strip():
            continue
        try:
            data = json.loads(text)
        except ValueError as error:
            raise TraceError(str(file), "a JSON object", row=row, value=text.strip()) from error
        if not isinstance(data, dict):
            raise TraceError(str(file), "a JSON object", row=row, value=text.strip())
        found.append([_number(file, row, key, data.get(key)) for key in wanted])
    times, prompt, output = np.array(found).T
    return _trace(file, "mooncake", times / 1000.0, tokens=(prompt, output))


def _azure_llm(file: Path, rows: Iterator[tuple[int, dict[str, str]]]) -> RequestTrace:
    found = []
    for row, data in rows:
        text = data["TIMESTAMP"]
        found.append(
            (
                _instant(file, row, text),
                _number(file, row, "ContextTokens", data["ContextTokens"]),
                _number(file, row, "GeneratedTokens", data["GeneratedTokens"]),
            )
        )
    if not found:
        raise TraceError(str(file), "at least one request")
    first = min(seconds for (seconds, _), _, _ in found)
    # Whole seconds are subtracted before the fraction is added: all seven digits survive.
    times = np.array([(seconds - first) + fraction for (seconds, fraction), _, _ in found])
    prompt, output = np.array([(prompt, output) for _, prompt, output in found]).T
    return _trace(file, "azure_llm", times, tokens=(prompt, output))


def _instant(file: Path, row: int, text: str) -> tuple[int, float]:
    """Return whole seconds and the fraction of a time stamp, taken as UTC."""
    whole, _, digits = text.strip().removesuffix("+00:00").partition(".")
    try:
        moment = datetime.fromisoformat(whole)
        fraction = float(f"0.{digits}") if digits else 0.0
    except ValueError as error:
        raise TraceError(
            str(file), "a time like 2023-11-16 18:17:03.97", row=row, column="TIMESTAMP", value=text
        ) from error
    return int(moment.replace(tzinfo=UTC).timestamp()), fraction


def _functions_2021(file: Path, rows: Iterator[tuple[int, dict[str, str]]]) -> RequestTrace:
    times, function, names = [], [], dict[str, int]()
    for row, data in rows:
        end = _number(file, row, "end_timestamp", data["end_timestamp"], -math.inf)
        times.append(end - _number(file, row, "duration", data["duration"]))
        name = f"{data['app']}/{data['func']}"
        function.append(names.setdefault(name, len(names)))
    if not times:
        raise TraceError(str(file), "at least one request")
    return _trace(
        file, "azure_functions_2021", np.array(times), function=function, names=tuple(names),
        rebase=False,
    )  # fmt: skip


def _minutes(
    file: Path, columns: list[str], rows: Iterator[tuple[int, dict[str, str]]]
) -> MinuteCounts:
    minutes = [minute for minute in _MINUTES if minute in columns]
    if len(minutes) < len(_MINUTES):
        missing = next(minute for minute in _MINUTES if minute not in columns)
        raise TraceError.missing_column(str(file), missing, columns)
    counts, names = [], []
    for row, data in rows:
        counts.append([_number(file, row, minute, data[minute]) for minute in minutes])
        names.append("/".join(data[column] for column in _HEADS["azure_functions_2019"][:3]))
    if not counts:
        raise TraceError(str(file), "at least one function")
    return MinuteCounts(file.name, np.array(counts), tuple(names))


def _trace(
    file: Path,
    form: str,
    times: np.ndarray,
    *,
    tokens: tuple[np.ndarray, np.ndarray] | None = None,
    function: list[int] | None = None,
    names: tuple[str, ...] = ("",),
    rebase: bool = True,
) -> RequestTrace:
    order = np.argsort(times, kind="stable")
    prompt, output = tokens or (np.empty(0), np.empty(0))
    which = np.zeros(len(times), dtype=np.int64) if function is None else np.array(function)
    start = times[order[0]] if rebase else 0.0
    return RequestTrace(
        file.name,
        form,
        times[order] - start,
        which[order],
        names,
        prompt[order].astype(np.int64) if len(prompt) else prompt,
        output[order].astype(np.int64) if len(output) else output,
    )
