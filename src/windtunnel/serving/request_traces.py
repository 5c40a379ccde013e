"""Recorded requests: traces of language models and of Azure Functions, plain or gzipped.

Times are seconds from the file's first arrival (Functions 2019: from midnight).
"""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving import token_formats
from windtunnel.serving.text_files import GZIP, MOST_TOKENS, begins, number, numbered, open_text
from windtunnel.serving.token_formats import Requests
from windtunnel.serving.token_tables import read_table

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator, Sequence

    from windtunnel.serving.arrivals import ArrivalProcess
    from windtunnel.serving.text_files import Rows

_MINUTES = [str(minute) for minute in range(1, 1441)]
#: Formats, with the columns that tell them apart.
_HEADS = {
    **{name: layout.columns for name, layout in token_formats.LAYOUTS.items()},
    "azure_functions_2021": ("app", "func", "end_timestamp", "duration"),
    "azure_functions_2019": ("HashOwner", "HashApp", "HashFunction", "Trigger"),
}


def _no_numbers() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class RequestTrace:
    """Recorded requests in order of arrival; `RequestTrace(arrival=..., prompt_tokens=..., ...)`.

    Attributes:
        name: of the file.
        format: azure_llm, azure_lmm, mooncake, burstgpt, vidur, plain, vllm_log, genai,
            azure_functions_2021, arrays, or lengths: token lengths without times (`drawn` gives
            them some).
        arrival: ascending, shape (n,), s from the first.
        function: index of what was called, shape (n,): 0 in traces of one service.
        functions: names, in the order in which the file has them.
        prompt_tokens: shape (n,); empty where the source has none.
        output_tokens: the same.
        images: pictures in the prompt, shape (n,); empty where the source has none.
        blocks: hashes of each prompt's blocks of 512 tokens, in order: equal where the prompts are
            equal up to and including the block; empty where the source has none.

    Raises:
        SpecError: arrivals descend or are not finite, or numbers are negative or too few.
    """

    name: str = "requests"
    format: str = "arrays"
    arrival: np.ndarray = field(default_factory=lambda: np.empty(0))
    function: np.ndarray = None  # type: ignore[assignment] # zeros stand in
    functions: tuple[str, ...] = ("",)
    prompt_tokens: np.ndarray = field(default_factory=_no_numbers)
    output_tokens: np.ndarray = field(default_factory=_no_numbers)
    images: np.ndarray = field(default_factory=_no_numbers)
    blocks: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        given = {"arrival": self._numbers("arrival").astype(np.float64)}
        count = len(given["arrival"])
        if not np.isfinite(given["arrival"]).all() or (np.diff(given["arrival"]) < 0).any():
            raise SpecError(f"{self.name}: arrival", "expected finite times in ascending order.")
        for name in ("prompt_tokens", "output_tokens", "images"):
            values = given[name] = self._numbers(name)
            whole = np.issubdtype(values.dtype, np.integer) or (values == np.floor(values)).all()
            fits = whole and ((values >= 0) & (values <= MOST_TOKENS)).all()
            if len(values) not in (0, count) or not fits:
                expected = f"expected one whole number from 0 to {MOST_TOKENS} a request."
                raise SpecError(f"{self.name}: {name}", expected)
        zeros = np.zeros(count, dtype=np.int64)
        given["function"] = zeros if self.function is None else np.asarray(self.function)
        if len(given["function"]) != count:
            raise SpecError(f"{self.name}: function", "expected one index a request.")
        for name, values in given.items():
            object.__setattr__(self, name, values)
        object.__setattr__(self, "blocks", self._lists(count))

    def _lists(self, count: int) -> tuple[tuple[int, ...], ...]:
        try:
            blocks = tuple(tuple(one) for one in self.blocks)
            hash(blocks)
        except TypeError:
            blocks = ((),) * (count + 1)
        if len(blocks) not in (0, count):
            raise SpecError(f"{self.name}: blocks", "expected one list of ids a request.")
        return blocks

    def _numbers(self, name: str) -> np.ndarray:
        values = np.asarray(getattr(self, name))
        if values.ndim != 1 or (len(values) and values.dtype.kind not in "iuf"):
            raise SpecError(f"{self.name}: {name}", "expected one number a request.")
        return values

    @cached_property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Blocks of 512 tokens as numbers from 0, one request behind the other, and their starts.

        Shapes (k,) and (n + 1,). A block is the same only at the same place of a prompt.
        """
        start = np.zeros(len(self) + 1, dtype=np.int64)
        known: dict[tuple[int, int], int] = {}
        found: list[int] = []
        for row, blocks in enumerate(self.blocks):
            found += [known.setdefault(one, len(known)) for one in enumerate(blocks)]
            start[row + 1] = len(found)
        return np.array(found, dtype=np.int64), start

    @cached_property
    def shared_units(self) -> np.ndarray:
        """Units of each request up to the last one that another has, too, shape (n,)."""
        units, start = self.units
        known = np.flatnonzero(np.bincount(units)[units] > 1) if len(units) else units
        ends = np.searchsorted(known, start)
        last = np.append(known, 0)[np.maximum(ends[1:] - 1, 0)]
        return np.where(ends[1:] > ends[:-1], last + 1 - start[:-1], 0)

    def __len__(self) -> int:
        return len(self.arrival)

    def compress(self, factor: float) -> RequestTrace:
        """Return the requests ``factor`` times as fast.

        Raises:
            SpecError: the factor is not a finite number > 0.
        """
        checked_number("factor", factor, above=0)
        with np.errstate(over="ignore"):  # what is too late is refused as any such time
            return replace(self, arrival=self.arrival / factor)

    def prefix_hits(self) -> float | None:
        """Return the share of blocks that a cache without bounds has; None without blocks.

        A block is a hit if it and every earlier block of its prompt were in an earlier request.
        """
        seen: set[int] = set()
        hits = total = 0
        for blocks in self.blocks:
            total += len(blocks)
            for block in blocks:
                if block not in seen:
                    break
                hits += 1
            seen.update(blocks)
        return hits / total if total else None

    def at_rate(self, rate: float) -> RequestTrace:
        """Return the requests at ``rate`` per second, on average from time 0 to the last.

        Raises:
            SpecError: the rate is not a finite number > 0, or all come at time 0.
        """
        checked_number("rate", rate, above=0)
        span = float(self.arrival[-1]) if len(self) else 0.0
        if span == 0:
            raise SpecError(self.name, "has no two requests at different times.")
        return self.compress(rate * span / len(self))

    def drawn(self, process: ArrivalProcess, duration: float, seed: int = 0) -> RequestTrace:
        """Return requests that arrive by a process, with lengths drawn from these, independently.

        Args:
            process: when they come; it takes the seed itself.
            duration: s.
            seed: of the process; the lengths have their own stream of it.

        Raises:
            SpecError: there is nothing to draw from, or a number makes no sense.
        """
        if not len(self):
            raise SpecError(self.name, "has no requests to draw from.")
        arrival = process.arrivals(duration, seed)
        rows = np.random.default_rng([seed, 1]).integers(len(self), size=len(arrival))
        cut = {
            name: values[rows] if len(values) else values
            for name in ("prompt_tokens", "output_tokens", "images")
            for values in (getattr(self, name),)
        }
        blocks = tuple(self.blocks[row] for row in rows.tolist()) if self.blocks else ()
        function = self.function[rows]
        return replace(self, arrival=arrival, function=function, blocks=blocks, **cut)

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
            self.images[rows],
            self.blocks[rows],
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
    """Read recorded requests; the format is known by the first line.

    Azure LLM 2023 and 2024 (``TIMESTAMP,ContextTokens,GeneratedTokens``), Azure LMM 2025 (the same
    with ``NumImages``), Mooncake (JSON lines with ``timestamp`` in ms, ``input_length``,
    ``output_length``), BurstGPT (``Timestamp,Model,Request tokens,Response tokens``), Vidur
    (``arrived_at,num_prefill_tokens,num_decode_tokens``, or the lengths alone), plain names
    (``arrival,prompt_tokens,output_tokens``), vLLM's request logs (JSON lines with ``input_toks``,
    ``output_toks``, ``queued_ts``, ``first_token_ts``, ``last_token_ts``), GenTD26's table of
    diffusion requests (Parquet), Azure Functions 2021 (``app,func,end_timestamp,duration``;
    arrival = end - duration) and 2019 (calls by minute).

    Raises:
        TraceError: no known format, no requests, or a value is wrong.
        OSError: the file cannot be read.
    """
    file = Path(path)
    if begins(file, b"PAR1"):
        return _trace(file, "genai", token_formats.genai(file))
    with open_text(file) as lines:
        try:
            head = lines.readline().lstrip("\ufeff")
            if head.lstrip().startswith("{"):
                is_log = any(f'"{key}"' in head for key in token_formats.VLLM_LOG)
                form = "vllm_log" if is_log else "mooncake"
                reader = token_formats.vllm_requests if is_log else token_formats.mooncake
                return _trace(file, form, reader(file, _again(head, lines)))
            return _table(file, head, lines)
        except (EOFError, gzip.BadGzipFile, UnicodeDecodeError, csv.Error) as error:
            raise TraceError(str(file), "a readable text file", hint=str(error)) from error


def read_token_requests(path: str | Path) -> RequestTrace:
    """Read recorded requests of a language model; see `read_requests`.

    Raises:
        TraceError: the file cannot be read, or tells no tokens.
    """
    try:
        requests = read_requests(path)
    except OSError as error:
        raise TraceError(str(path), "a readable file", hint=str(error)) from error
    if isinstance(requests, MinuteCounts) or not len(requests.prompt_tokens):
        raise TraceError(str(path), "requests with prompt and output tokens")
    return requests


def _again(head: str, lines: io.TextIOBase) -> Iterator[str]:
    yield head
    yield from lines


def _table(file: Path, head: str, lines: io.TextIOBase) -> RequestTrace | MinuteCounts:
    """Read a CSV file whose first line is known."""
    columns = [name.strip() for name in next(csv.reader([head.strip()]), [])]
    form = next((f for f, names in _HEADS.items() if set(names) <= set(columns)), None)
    if form is None:
        expected = "; ".join(",".join(names) for names in _HEADS.values())
        raise TraceError(str(file), f"columns {expected}, or JSON lines", row=1, value=head)
    rows = numbered(file, csv.DictReader(lines, fieldnames=columns, restval=""), above=1)
    if form == "azure_functions_2019":
        return _minutes(file, columns, rows)
    if form == "azure_functions_2021":
        return _trace(file, form, _functions_2021(file, rows), rebase=False)
    whole = read_table(file, form, gzipped=begins(file, GZIP))
    if whole is None:
        whole = token_formats.from_rows(file, rows, token_formats.LAYOUTS[form])
    return _trace(file, form, whole)


def _functions_2021(file: Path, rows: Rows) -> Requests:
    times, function, names = [], [], dict[str, int]()
    for row, data in rows:
        end = number(file, row, "end_timestamp", data["end_timestamp"], -math.inf)
        times.append(end - number(file, row, "duration", data["duration"]))
        name = f"{data['app']}/{data['func']}"
        function.append(names.setdefault(name, len(names)))
    if not times:
        raise TraceError(str(file), "at least one request")
    none = np.empty(0, dtype=np.int64)
    return Requests(np.array(times), none, none, np.array(function), tuple(names), none)


def _minutes(file: Path, columns: list[str], rows: Rows) -> MinuteCounts:
    minutes = [minute for minute in _MINUTES if minute in columns]
    if len(minutes) < len(_MINUTES):
        missing = next(minute for minute in _MINUTES if minute not in columns)
        raise TraceError.missing_column(str(file), missing, columns)
    counts, names = [], []
    for row, data in rows:
        counts.append([number(file, row, minute, data[minute]) for minute in minutes])
        names.append("/".join(data[column] for column in _HEADS["azure_functions_2019"][:3]))
    if not counts:
        raise TraceError(str(file), "at least one function")
    return MinuteCounts(file.name, np.array(counts), tuple(names))


def _trace(file: Path, form: str, found: Requests, *, rebase: bool = True) -> RequestTrace:
    """Return requests in order of arrival, at time 0 from the first on demand."""
    order = np.argsort(found.times, kind="stable")
    start = found.times[order[0]] if rebase else 0.0
    prompt, output, images = (
        values[order] if len(values) else values
        for values in (found.prompt, found.output, found.images)
    )
    blocks = tuple(found.blocks[row] for row in order.tolist()) if found.blocks else ()
    return RequestTrace(
        file.name,
        form,
        found.times[order] - start,
        found.function[order],
        found.functions,
        prompt,
        output,
        images,
        blocks,
    )
