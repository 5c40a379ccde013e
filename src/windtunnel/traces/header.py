"""Before the rows: is it text at all, where does it begin, and what does its header line say."""

from __future__ import annotations

import csv

from windtunnel.errors import TraceError, quote

#: A line longer than this is refused: it is no job record, or a quote was never closed.
MAX_LINE = 8 * 2**20
#: Delimiters that a file may have been written with, and their names.
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")


def checked_text(data: bytes, file: str) -> bytes:
    """Return the text without its byte order mark; refuse what is not UTF-8 text at all."""
    if data.startswith(_WIDE_BOMS):
        raise TraceError(file, "UTF-8 text", hint="It is UTF-16: save it as UTF-8.")
    where = data.find(b"\0")
    if where >= 0:
        raise TraceError(
            file,
            "text without NUL bytes",
            row=data.count(b"\n", 0, where) + 1,
            value=data[max(0, where - 10) : where + 10],
            hint="The file is binary, UTF-16, or was damaged when it was written.",
        )
    return data.removeprefix(BOM)


def begun(data: bytes) -> bytes:
    """Return a file's first bytes from its first text on, without a byte order mark."""
    return data.removeprefix(BOM).lstrip()


def first_text(data: bytes, file: str) -> tuple[int, int]:
    """Return offset and 1-based line of the first line that is not blank."""
    stripped = data.lstrip(b"\r\n \t")
    blank = data[: len(data) - len(stripped)]
    if not stripped:
        raise TraceError(file, "a file with content", hint="It holds only blank lines.")
    start = max(blank.rfind(b"\n"), blank.rfind(b"\r")) + 1
    return start, len(blank[:start].splitlines()) + 1


def read_header(
    data: bytes, start: int, line: int, file: str, delimiter: str, *, quoted: bool
) -> tuple[list[str], int, int]:
    """Return column names, and offset and line of what follows the header line."""
    ends = [e for e in (data.find(b"\n", start), data.find(b"\r", start)) if e >= 0]
    end = min(ends, default=len(data))
    if end - start > MAX_LINE:
        raise TraceError(file, f"a header line of at most {MAX_LINE:,} bytes", row=line)
    try:
        text = data[start:end].decode()
    except UnicodeDecodeError as error:
        raise not_utf8(data[: end + 1], file, 0, error) from error
    _check_dialect(text, file, line, delimiter)
    try:
        names = (
            next(csv.reader([text], delimiter=delimiter, strict=True))
            if quoted
            else text.split(delimiter)
        )
    except csv.Error as error:
        raise TraceError(
            file, "a header line with balanced quotes", row=line, value=text, hint=f"({error})"
        ) from error
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TraceError(file, "each column name once", row=line, column=twice, value=twice)
    after = end + 2 if data[end : end + 2] == b"\r\n" else end + 1
    return names, min(after, len(data)), line + 1


def _check_dialect(header: str, file: str, line: int, delimiter: str) -> None:
    """Refuse a header that was written with another delimiter."""
    if delimiter in header:
        return
    counts = {other: header.count(other) for other in DELIMITERS if other != delimiter}
    seen = max(counts, key=lambda other: counts[other])
    if counts[seen] == 0:
        return
    wanted = DELIMITERS.get(delimiter, "delimiter")
    raise TraceError(
        file,
        f"fields separated by a {wanted} ({quote(delimiter)})",
        row=line,
        value=header,
        hint=f"The header uses a {DELIMITERS[seen]}: pass delimiter={quote(seen)}, or convert "
        "the file.",
    )


def not_utf8(data: bytes, file: str, before: int, error: UnicodeDecodeError) -> TraceError:
    """Return the error for a byte that is not UTF-8; ``before`` lines precede ``data``."""
    line_start = data.rfind(b"\n", 0, error.start) + 1
    return TraceError(
        file,
        "UTF-8 text",
        row=before + data.count(b"\n", 0, error.start) + 1,
        value=data[max(line_start, error.start - 20) : error.start + 20],
        hint=f"Byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8.",
    )


def header_has(head: bytes, *names: str, without: tuple[str, ...] = ()) -> bool:
    r"""Return whether a file's first line, as CSV, names all of ``names``, none of ``without``.

    >>> header_has(b"job_id,user\n1,u", "user"), header_has(b"a,b\n", "a", without=("b",))
    (True, False)
    """
    line = begun(head).partition(b"\n")[0]
    try:
        row = next(csv.reader([line.decode().strip()]), [])
    except (UnicodeDecodeError, csv.Error):
        return False
    found = {name.strip() for name in row}
    return found.issuperset(names) and not found.intersection(without)
