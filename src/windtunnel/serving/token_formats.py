"""The layouts of recorded requests: Azure, Mooncake, BurstGPT, Vidur, GenTD26, vLLM's logs.

Each reader takes numbered rows and returns `Requests`, times in seconds on the source's own clock.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.errors import TraceError

if TYPE_CHECKING:
    import csv
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Rows = Iterator[tuple[int, dict[str, str]]]

#: Columns that tell the layouts apart, the wider before the narrower.
HEADS = {
    "azure_lmm": ("TIMESTAMP", "NumImages", "ContextTokens", "GeneratedTokens"),
    "azure_llm": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "burstgpt": ("Timestamp", "Model", "Request tokens", "Response tokens"),
    "vidur": ("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    "plain": ("arrival", "prompt_tokens", "output_tokens"),
}
#: Columns of a file of lengths without times, such as Vidur's.
LENGTHS = ("num_prefill_tokens", "num_decode_tokens")
#: Keys of vLLM's request logs: tokens, and times in order, s.
VLLM_LOG = ("input_toks", "output_toks", "queued_ts", "first_token_ts", "last_token_ts")
_MOONCAKE = ("timestamp", "input_length", "output_length")


class Requests(NamedTuple):
    """Requests in file order.

    Attributes:
        times: shape (n,), s on the source's clock.
        prompt: tokens, shape (n,); empty where the source has none.
        output: the same.
        function: index of what was called, shape (n,).
        functions: names, in the order of their first request.
        images: shape (n,); empty where the source has none.
        blocks: hashes of each prompt's blocks, in order; empty where the source has none.
    """

    times: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    function: np.ndarray
    functions: tuple[str, ...]
    images: np.ndarray
    blocks: tuple[tuple[int, ...], ...] = ()


#: Of a request: sums over a trace, and pairs of tokens, stay within 64 bits.
MOST_TOKENS = 10**9


def number(file: Path, row: int, column: str, value: Any, least: float = 0.0) -> float:
    """Return a cell as a finite number >= ``least``.

    Raises:
        TraceError: it is none.
    """
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if isinstance(value, bool) or not least <= found < math.inf:
        at_least = "" if math.isinf(least) else f" >= {least:g}"
        raise TraceError(
            str(file), f"a finite number{at_least}", row=row, column=column, value=str(value)
        )
    return found


def numbered(file: Path, reader: csv.DictReader[str], above: int = 0) -> Rows:
    """Return rows with their lines in the file, of which ``above`` were read before.

    Raises:
        TraceError: a row has more cells than the heading.
    """
    for row in reader:
        more: Any = row.pop(None, ())  # what csv has left over
        if any(more):
            expected = f"{len(reader.fieldnames or ())} cells, as in the heading"
            found = ",".join([*row.values(), *more])
            raise TraceError(str(file), expected, row=reader.line_num + above, value=found)
        yield reader.line_num + above, row


def tokens(file: Path, row: int, column: str, value: Any) -> int:
    """Return a cell as a number of tokens.

    Raises:
        TraceError: it is no whole number >= 0, or beyond any prompt.
    """
    found = number(file, row, column, value)
    if found != int(found) or found > MOST_TOKENS:
        expected = f"a whole number from 0 to {MOST_TOKENS}"
        raise TraceError(str(file), expected, row=row, column=column, value=str(value))
    return int(found)


def instant(file: Path, row: int, column: str, text: str) -> tuple[int, float]:
    """Return whole seconds and the fraction of a time stamp; without an offset it is UTC.

    Raises:
        TraceError: it is none.
    """
    before, _, after = text.strip().partition(".")
    fraction = after[: len(after) - len(after.lstrip("0123456789"))]
    try:
        moment = datetime.fromisoformat(before + after[len(fraction) :])
        part = float(f"0.{fraction}") if fraction else 0.0
    except ValueError as error:
        raise TraceError(
            str(file), "a time like 2023-11-16 18:17:03.97", row=row, column=column, value=text
        ) from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()), part


def mooncake(file: Path, lines: Iterable[str]) -> Requests:
    """Read JSON lines with ``timestamp`` (ms), ``input_length`` and ``output_length``.

    ``hash_ids`` are those of the prompt's blocks of 512 tokens, where they are given.
    """
    times, lengths, blocks = [], [], []
    for row, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TraceError(str(file), "a JSON object", row=row, value=text.strip()) from error
        if not isinstance(data, dict):
            raise TraceError(str(file), "a JSON object", row=row, value=text.strip())
        times.append(number(file, row, "timestamp", data.get("timestamp")) / 1000.0)
        lengths.append([tokens(file, row, key, data.get(key)) for key in _MOONCAKE[1:]])
        blocks.append(_hashes(file, row, data.get("hash_ids", [])))
    return _requests(file, times, lengths)._replace(blocks=tuple(blocks))


def _hashes(file: Path, row: int, found: Any) -> tuple[int, ...]:
    if not isinstance(found, list) or not all(type(one) is int for one in found):
        raise TraceError(
            str(file), "a list of whole numbers", row=row, column="hash_ids", value=found
        )
    return tuple(found)


def vllm_rows(file: Path, lines: Iterable[str]) -> np.ndarray:
    """Return ``input_toks, output_toks, queued_ts, first_token_ts, last_token_ts``, shape (n, 5).

    Raises:
        TraceError: a line is no object, a number is wrong, times descend, or there are no requests.
    """
    rows = [_row(file, at, text) for at, text in enumerate(lines, start=1) if text.strip()]
    if not rows:
        raise TraceError(str(file), "at least one request")
    return np.array(rows)


def _row(file: Path, row: int, text: str) -> list[float]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(str(file), "a JSON object", row=row, value=text.strip()) from error
    if not isinstance(data, dict):
        raise TraceError(str(file), "a JSON object", row=row, value=text.strip())
    cells: list[float] = [tokens(file, row, key, data.get(key)) for key in VLLM_LOG[:2]]
    cells += [number(file, row, key, data.get(key), -math.inf) for key in VLLM_LOG[2:]]
    if cells[1] < 1:
        raise TraceError(str(file), "1 or more", row=row, column="output_toks", value=cells[1])
    for before, key, at in zip(cells[2:], VLLM_LOG[3:], cells[3:], strict=False):
        if at < before:
            raise TraceError(str(file), f"{before!r} or later", row=row, column=key, value=at)
    return cells


def vllm_requests(file: Path, lines: Iterable[str]) -> Requests:
    """Read a log as requests that arrive when they were queued."""
    rows = vllm_rows(file, lines)
    counts = rows[:, :2].astype(np.int64)
    return _requests(file, rows[:, 2].tolist(), counts.tolist())


def azure_llm(file: Path, rows: Rows) -> Requests:
    """Read ``TIMESTAMP,ContextTokens,GeneratedTokens`` (2023 and 2024)."""
    return _azure(file, rows, images=False)


def azure_lmm(file: Path, rows: Rows) -> Requests:
    """Read ``TIMESTAMP,NumImages,ContextTokens,GeneratedTokens`` (2025, multimodal)."""
    return _azure(file, rows, images=True)


def _azure(file: Path, rows: Rows, *, images: bool) -> Requests:
    moments, lengths, pictures = [], [], []
    for row, data in rows:
        moments.append(instant(file, row, "TIMESTAMP", data["TIMESTAMP"]))
        names = ("ContextTokens", "GeneratedTokens")
        lengths.append([tokens(file, row, name, data[name]) for name in names])
        if images:
            pictures.append(tokens(file, row, "NumImages", data["NumImages"]))
    first = min((seconds for seconds, _ in moments), default=0)
    # Whole seconds are subtracted before the fraction is added: all seven digits survive.
    times = [(seconds - first) + fraction for seconds, fraction in moments]
    return _requests(file, times, lengths, images=pictures)


def burstgpt(file: Path, rows: Rows) -> Requests:
    """Read ``Timestamp`` (s), ``Model``, ``Request tokens``, ``Response tokens``.

    A function is a model. Failed requests, which have no response tokens, are kept.
    """
    times, lengths, names = [], [], []
    for row, data in rows:
        times.append(number(file, row, "Timestamp", data["Timestamp"]))
        columns = ("Request tokens", "Response tokens")
        lengths.append([tokens(file, row, name, data[name]) for name in columns])
        names.append(data["Model"])
    return _requests(file, times, lengths, names)


def _timed(name: str) -> Callable[[Path, Rows], Requests]:
    """Return a reader of a layout with arrivals in s, prompt and output tokens, in this order."""
    at, *counts = HEADS[name]

    def read(file: Path, rows: Rows) -> Requests:
        times, lengths = [], []
        for row, data in rows:
            times.append(number(file, row, at, data[at]))
            lengths.append([tokens(file, row, column, data[column]) for column in counts])
        return _requests(file, times, lengths)

    return read


def lengths_only(file: Path, rows: Rows) -> Requests:
    """Read ``num_prefill_tokens,num_decode_tokens``; every request is at time 0."""
    lengths = [[tokens(file, row, name, data[name]) for name in LENGTHS] for row, data in rows]
    return _requests(file, [0.0] * len(lengths), lengths)


def genai(file: Path) -> Requests:
    """Read Alibaba GenTD26's table of diffusion requests, a Parquet file.

    A function is a base model (``checkpoint_model_version_id``); there are no tokens.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = ("gmt_create", "checkpoint_model_version_id")
    try:
        known = pq.read_schema(file).names
        for column in columns:
            if column not in known:
                raise TraceError.missing_column(str(file), column, known)
        table = pq.read_table(file, columns=list(columns))
    except pa.ArrowException as error:
        raise TraceError(str(file), "a Parquet file", hint=str(error)) from error
    rows = enumerate(table["gmt_create"].to_pylist(), start=1)
    moments = [instant(file, row, "gmt_create", str(text)) for row, text in rows]
    names = [name or "" for name in table["checkpoint_model_version_id"].to_pylist()]
    return _requests(file, [float(whole) + part for whole, part in moments], [], names)


#: Readers of CSV layouts.
READERS: dict[str, Callable[[Path, Rows], Requests]] = {
    "azure_lmm": azure_lmm,
    "azure_llm": azure_llm,
    "burstgpt": burstgpt,
    "vidur": _timed("vidur"),
    "plain": _timed("plain"),
}


def _requests(
    file: Path,
    times: list[float],
    lengths: list[list[int]],
    names: list[str] | None = None,
    images: list[int] | None = None,
) -> Requests:
    if not times:
        raise TraceError(str(file), "at least one request")
    known: dict[str, int] = {}
    function = [known.setdefault(name, len(known)) for name in names or [""] * len(times)]
    both = np.array(lengths, dtype=np.int64).reshape(-1, 2)
    return Requests(
        np.array(times),
        both[:, 0],
        both[:, 1],
        np.array(function, dtype=np.int64),
        tuple(known),
        np.array(images or [], dtype=np.int64),
    )
