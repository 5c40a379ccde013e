"""JSON of a trace file, decoded whole or refused in one message that names line and column.

A file may hold one value, or several one behind the other: JSON lines, and what
``kubectl get -w -o json`` prints.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

from windtunnel.errors import TraceError
from windtunnel.traces.header import BOM, not_utf8
from windtunnel.traces.source import plain_message

_BLANK = b" \t\r\n"


def json_bytes(data: bytes, file: str) -> bytes:
    """Return the text without its byte order mark.

    Raises:
        TraceError: it is not UTF-8. The parser would not notice in fields that it skips.
    """
    data = data.removeprefix(BOM)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(data, file, 0, error) from error
    return data


def json_value(data: bytes, file: str) -> Any:
    """Return the one JSON value of a file as plain Python data.

    Raises:
        TraceError: it is not UTF-8, or not JSON; names line and column.
    """
    data = json_bytes(data, file)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise broken_json(data, file, error) from error


def json_values(data: bytes, file: str) -> list[tuple[int, Any]]:
    """Return every JSON value of a file, in order, with the line on which it begins.

    Raises:
        TraceError: it is not UTF-8, or not JSON; names line and column.
    """
    data = json_bytes(data, file)
    try:
        return [(_first_line(data), msgspec.json.decode(data))]
    except (msgspec.DecodeError, RecursionError):
        return _one_by_one(data, file)


def _first_line(data: bytes) -> int:
    blank = len(data) - len(data.lstrip(_BLANK))
    return data.count(b"\n", 0, blank) + 1


def _one_by_one(data: bytes, file: str) -> list[tuple[int, Any]]:
    text = data.decode()
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    values: list[tuple[int, Any]] = []
    at, line, counted = _skip(text, 0), 1, 0
    while at < len(text):
        line += text.count("\n", counted, at)
        counted = at
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise broken_json(data, file, error) from error
        try:  # stricter, as for a file of one value: half a surrogate pair is no text
            values.append((line, msgspec.json.decode(text[at:end])))
        except (msgspec.DecodeError, RecursionError) as error:
            raise TraceError(
                file, "valid JSON", row=line, hint=f"{plain_message(error)}."
            ) from error
        at = _skip(text, end)
    if not values:
        raise TraceError(file, "valid JSON", hint="It holds only blank lines.")
    return values


def _skip(text: str, at: int) -> int:
    """Return where the next value begins."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def broken_json(data: bytes, file: str, error: Exception) -> TraceError:
    """Return the error that says where JSON breaks off; the standard parser knows.

    Args:
        data: the text, UTF-8.
    """
    bad = error if isinstance(error, json.JSONDecodeError) else None
    if isinstance(error, msgspec.DecodeError):
        try:
            json.loads(data.decode())  # as text: from bytes it would guess another encoding
        except json.JSONDecodeError as found:
            bad = found
        except (ValueError, RecursionError):  # digits without end, brackets without end
            pass
    if bad is None:
        return TraceError(file, "valid JSON", hint=f"{plain_message(error)}.")
    end = bad.pos >= len(bad.doc.rstrip()) or "Unterminated" in bad.msg
    cut = " The file seems to be cut." if end else ""
    return TraceError(
        file, "valid JSON", row=bad.lineno, hint=f"{bad.msg} at column {bad.colno}.{cut}"
    )
