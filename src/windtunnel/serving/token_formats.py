"""The layouts of recorded requests: Azure, Mooncake, BurstGPT, Vidur, GenTD26, vLLM's logs.

Each reader takes numbered rows and returns `Requests`, times in seconds on the source's own clock.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.serving.text_files import instant, json_lines, number, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from windtunnel.serving.text_files import Rows


class Layout(NamedTuple):
    """The columns of a CSV file of requests.

    Attributes:
        time: when a request came; empty = the file has lengths alone.
        prompt, output: its tokens.
        images: in its prompt; empty = not given.
        name: of what was called; empty = one service.
        is_stamp: whether the time is a date, and not seconds.
    """

    time: str
    prompt: str
    output: str
    images: str = ""
    name: str = ""
    is_stamp: bool = False

    @property
    def counts(self) -> tuple[str, ...]:
        """The columns of whole numbers."""
        return (self.prompt, self.output, *([self.images] if self.images else []))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of the files."""
        every = (self.time, self.name, self.images, self.prompt, self.output)
        return tuple(column for column in every if column)


_AZURE = Layout("TIMESTAMP", "ContextTokens", "GeneratedTokens", is_stamp=True)
#: By name, the wider before the narrower: of Azure 2025 (multimodal), 2023 and 2024, BurstGPT (a
#: function is a model; failed requests, which have no response tokens, are kept), Vidur, plain.
LAYOUTS = {
    "azure_lmm": _AZURE._replace(images="NumImages"),
    "azure_llm": _AZURE,
    "burstgpt": Layout("Timestamp", "Request tokens", "Response tokens", name="Model"),
    "vidur": Layout("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    "plain": Layout("arrival", "prompt_tokens", "output_tokens"),
    "lengths": Layout("", "num_prefill_tokens", "num_decode_tokens"),
}
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


def mooncake(file: Path, lines: Iterable[str]) -> Requests:
    """Read JSON lines with ``timestamp`` (ms), ``input_length`` and ``output_length``.

    ``hash_ids`` are those of the prompt's blocks of 512 tokens, where they are given.
    """
    times, lengths, blocks = [], [], []
    for row, data in json_lines(file, lines):
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
    rows = [_row(file, row, data) for row, data in json_lines(file, lines)]
    if not rows:
        raise TraceError(str(file), "at least one request")
    return np.array(rows)


def _row(file: Path, row: int, data: dict[str, Any]) -> list[float]:
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


def from_rows(file: Path, rows: Rows, layout: Layout) -> Requests:
    """Read the rows of a CSV file; where it has no times, every request is at time 0."""
    moments, lengths, names, images = [], [], [], []
    for row, data in rows:
        moments.append(_moment(file, row, layout, data))
        lengths.append([tokens(file, row, n, data[n]) for n in (layout.prompt, layout.output)])
        if layout.images:
            images.append(tokens(file, row, layout.images, data[layout.images]))
        if layout.name:
            names.append(data[layout.name])
    first = min((seconds for seconds, _ in moments), default=0)
    # Whole seconds are subtracted before the fraction is added: all seven digits survive.
    times = [(seconds - first) + fraction for seconds, fraction in moments]
    return _requests(file, times, lengths, names, images)


def _moment(file: Path, row: int, layout: Layout, data: dict[str, str]) -> tuple[int, float]:
    """Return whole seconds of a date and what comes to them, s; 0 whole ones without a date."""
    name = layout.time
    if layout.is_stamp:
        return instant(file, row, name, data[name])
    return 0, number(file, row, name, data[name]) if name else 0.0


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
