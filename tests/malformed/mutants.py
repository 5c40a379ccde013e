"""What a mutated file is, and the changes to bytes that any file may suffer."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from samples import Sample

_FOREIGN: tuple[bytes, ...] = (
    b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    b"PK\x03\x04" + bytes(100),
    b"PAR1" + bytes(100) + b"PAR1",
    b"SQLite format 3\0" + bytes(100),
    b"\x80\x04cos\nsystem\n.",
    b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n",
    b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    b"{}",
    b"[]",
    b"null",
    b"0",
    b'""',
    b"[[]]",
    b'{"a": [1, 2',
    b"NaN",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b"a,b,c\n1,2,3\n",
    b"x" * 1_000_000,
    b",\n" * 1000,
    b'"' * 1001,
    b"\n" * 1000,
    b"\0" * 1000,
    b"\xff" * 1000,
    b" ",
    b"-",
)
_ENCODINGS = ("latin-1", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "cp037", "cp1252")
_PIECES = (
    *(b"\0", b"\xff", b"\xe9", b"\xed\xa0\x80", b'"', b",", b"|", b" ", b"\n", b"\r", b"\r\n"),
    *(b"\xc3", b"\xef\xbb\xbf", b"\x1a", b"\x1b[2J", b"#", b";", b"{", b"]", b"-", b"9", b"\\"),
)


@dataclass(frozen=True)
class Mutant:
    """A mutated file.

    Attributes:
        data: its bytes.
        changes: what was done to the sample, in words.
        cell: record (from 0) and column of the only cell that was changed, where it still is one
            cell of one record; None = something else was changed.
        suffix: what stands behind the sample's name.
    """

    data: bytes
    changes: str
    cell: tuple[int, str] | None = None
    suffix: str = ""

    def __repr__(self) -> str:
        return f"Mutant({self.changes!r}, {len(self.data):,} bytes)"

    def then(self, data: bytes, change: str) -> Mutant:
        """Return the file after a further change."""
        return replace(self, data=data, changes=f"{self.changes}; {change}", cell=None)


@dataclass(frozen=True)
class Foreign:
    """Files of other formats."""

    files: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Foreign({len(self.files)} files)"


def _gz(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def _spliced(data: bytes, at: int, size: int, piece: bytes) -> bytes:
    """Return bytes of which ``size`` at a place are replaced by a piece."""
    place = at % (len(data) + 1)
    return data[:place] + piece + data[place + size :]


def _flipped(data: bytes, at: int, other: int) -> bytes:
    place = at % (len(data) + 1)
    return _spliced(data, at, 1, bytes(b ^ (1 << other % 8) for b in data[place : place + 1]))


def _mixed(data: bytes, at: int) -> bytes:
    ends = (b"\n", b"\r\n", b"\r")
    lines = _lines(data)
    return b"".join(
        line + ends[(at + number) % 3] for number, line in enumerate(lines[:-1])
    ) + lines[-1]  # fmt: skip


def _moved(data: bytes, at: int, other: int) -> bytes:
    lines = _lines(data)
    i, k = at % len(lines), other % len(lines)
    lines[i], lines[k] = lines[k], lines[i]
    return b"\n".join(lines)


def _without_line(data: bytes, at: int, _: int) -> bytes:
    lines = _lines(data)
    del lines[at % len(lines)]
    return b"\n".join(lines)


def _line_twice(data: bytes, at: int, _: int) -> bytes:
    lines = _lines(data)
    lines.insert(at % len(lines), lines[at % len(lines)])
    return b"\n".join(lines)


def _cut_line(data: bytes, at: int, other: int) -> bytes:
    lines = _lines(data)
    line = lines[at % len(lines)]
    lines[at % len(lines)] = line[: other % (len(line) + 1)]
    return b"\n".join(lines)


def _encoded(data: bytes, at: int, _: int) -> bytes:
    text = data.decode(errors="replace")
    return text.encode(_ENCODINGS[at % len(_ENCODINGS)], errors="replace")


#: Changes to any file: (its bytes, two numbers) -> other bytes.
CHANGES: dict[str, Callable[[bytes, int, int], bytes]] = {
    "cut": lambda data, at, _: data[: at % (len(data) + 1)],
    "cut the front": lambda data, at, _: data[at % (len(data) + 1) :],
    "insert": lambda data, at, other: _spliced(data, at, 0, _PIECES[other % len(_PIECES)]),
    "overwrite": lambda data, at, other: _spliced(data, at, 1, _PIECES[other % len(_PIECES)]),
    "delete": lambda data, at, other: _spliced(data, at, 1 + other % 40, b""),
    "flip a bit": _flipped,
    "cut a line": _cut_line,
    "drop a line": _without_line,
    "a line twice": _line_twice,
    "swap lines": _moved,
    "empty": lambda *_: b"",
    "the first line alone": lambda data, *_: _lines(data)[0] + b"\n",
    "without the first line": lambda data, *_: data.partition(b"\n")[2],
    "the file twice": lambda data, *_: data + data,
    "rubbish behind": lambda data, at, _: data + _FOREIGN[at % len(_FOREIGN)],
    "something else": lambda _, at, __: _FOREIGN[at % len(_FOREIGN)],
    "encoding": _encoded,
    "mark": lambda data, *_: b"\xef\xbb\xbf" + data,
    "mark twice": lambda data, *_: b"\xef\xbb\xbf" * 2 + data,
    "utf-16 mark": lambda data, *_: b"\xff\xfe" + data,
    "crlf": lambda data, *_: data.replace(b"\n", b"\r\n"),
    "cr": lambda data, *_: data.replace(b"\n", b"\r"),
    "mixed ends": lambda data, at, _: _mixed(data, at),
    "blank lines": lambda data, at, _: data.replace(b"\n", b"\n" * (2 + at % 3)),
    "lines of blanks": lambda data, *_: data.replace(b"\n", b"\n  \n"),
    "separator behind": lambda data, *_: data.replace(b"\n", b",\n"),
    "no last line end": lambda data, *_: data.rstrip(b"\n"),
    "another separator": lambda data, at, _: data.replace(b",", (b";", b"\t", b"|")[at % 3]),
    "upper case": lambda data, *_: data.upper(),
    "gzip": lambda data, *_: _gz(data),
    "gzip twice": lambda data, *_: _gz(_gz(data)),
    "gzip cut": lambda data, at, _: _gz(data)[: 1 + at % len(_gz(data))],
    "gzip damaged": lambda data, at, other: _flipped(_gz(data), at, other),
    "gzip and rubbish": lambda data, *_: _gz(data) + b"rubbish",
    "gzip in two parts": lambda data, at, _: _gz(data[: at % (len(data) + 1)])
    + _gz(data[at % (len(data) + 1) :]),
}  # fmt: skip
_PLACE = st.integers(0, 10_000)


@st.composite
def changed(draw: st.DrawFn, start: Mutant) -> Mutant:
    """Draw one change of bytes."""
    kind, at, other = draw(st.sampled_from(list(CHANGES))), draw(_PLACE), draw(_PLACE)
    return start.then(CHANGES[kind](start.data, at, other), f"{kind} ({at}, {other})")


@st.composite
def of_bytes(draw: st.DrawFn, sample: Sample, others: Foreign) -> Mutant:
    """Draw a sample with one to three changes of bytes, or another format in its place."""
    start = Mutant(sample.data, sample.name)
    if draw(st.integers(0, 9)) == 0:
        number = draw(st.integers(0, len(others.files) - 1))
        return start.then(others.files[number], f"sample {number} instead")
    if draw(st.integers(0, 19)) == 0:  # the name says gzip, the content does not
        return replace(start.then(sample.data, "called .gz"), suffix=".gz")
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        start = draw(changed(start))
    return start


def shown(text: str) -> str:
    """Return a text as a label, short."""
    return json.dumps(text[:40]) + (f" and {len(text) - 40:,} more" if len(text) > 40 else "")
