"""Slurm's ways to write times, sizes, counts by TRES, and yes or no."""

from __future__ import annotations

import math
import re
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from windtunnel.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

#: Larger numbers are typing errors.
MOST = 2**31 - 1
_MOST_BYTES = 64 * 2**20
_UNLIMITED = ("", "-1", "UNLIMITED", "INFINITE", "N/A", "NONE", "NOT_SET")
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)B?", re.ASCII | re.IGNORECASE)
_MB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}


def duration(text: str, *, unit: int = 60) -> int | None:
    """Return a time in seconds; None = unlimited.

    Args:
        text: ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours[:...]``.
        unit: seconds that a bare number counts.

    Raises:
        ValueError: it is no such time.
    """
    if text.upper() in _UNLIMITED:
        return None
    days, dash, rest = text.strip().rpartition("-")
    numbers = [*([days] if dash else []), *rest.split(":")]
    if not all(word.isascii() and word.isdigit() for word in numbers):
        raise ValueError("a time such as 90, 1:30:00, 2-12 or UNLIMITED")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        hours, minutes, seconds = [*parts, 0, 0][:3]
        return int(days) * 86400 + hours * 3600 + minutes * 60 + seconds
    if len(parts) == 1:
        return parts[0] * unit
    hours, minutes, seconds = [0, *parts][-3:]
    return hours * 3600 + minutes * 60 + seconds


def megabytes(text: str) -> int:
    """Return a size in MB.

    Raises:
        ValueError: it is no size.
    """
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise ValueError("a size such as 64000 or 64G")
    return int(float(found[1]) * _MB[found[2].upper()])


def number(text: str) -> int | None:
    """Return a whole number, None = unlimited.

    Raises:
        ValueError: it is neither.
    """
    return None if text.upper() in _UNLIMITED else whole(text)


def tres(text: str) -> dict[str, int]:
    """Return counts by TRES: ``cpu``, ``mem`` (MB), ``node``, ``gpu``, ``gpu:TYPE`` and others.

    Raises:
        ValueError: a count is no number.

    >>> tres("cpu=64,gres/gpu=8,mem=1G")
    {'cpu': 64, 'gpu': 8, 'mem': 1024}
    """
    found: dict[str, int] = {}
    for item in text.split(","):
        name, equals, count = item.partition("=")
        if not equals or count.upper() in _UNLIMITED:
            continue
        name = name.strip().lower().removeprefix("gres/")
        found[name] = megabytes(count) if name == "mem" else size(count)
    return found


def licenses(text: str) -> dict[str, int]:
    """Return counts by licence, as ``Licenses`` and ``--licenses`` say them; 1 where none is given.

    Raises:
        ValueError: a count is no number, or one of several would do.

    >>> licenses("matlab:2,ansys@flex")
    {'matlab': 2, 'ansys@flex': 1}
    """
    found: dict[str, int] = {}
    if text.upper() in _UNLIMITED or text == "(null)":
        return found
    for item in text.split(","):
        name, _, count = item.strip().replace("=", ":").partition(":")
        if not name or "|" in item:
            raise ValueError("licences such as matlab:2,ansys")
        found[name] = found.get(name, 0) + (size(count) if count else 1)
    return found


def whole(text: str) -> int:
    """Return a whole number.

    Raises:
        ValueError: it is none, or larger than any that Slurm knows.
    """
    try:
        found = int(text)
    except ValueError:
        raise ValueError("a whole number") from None
    checked(found)
    return found


def size(text: str) -> int:
    """Return a whole number of things.

    Raises:
        ValueError: it is none, negative, or larger than any that Slurm knows.
    """
    if (found := whole(text)) < 0:
        raise ValueError("a whole number of 0 or more")
    return found


def factor(text: str) -> float:
    """Return a number to multiply by.

    Raises:
        ValueError: it is none, negative or not finite.
    """
    expected = "a number of 0 or more"
    try:
        found = float(text)
    except ValueError:
        raise ValueError(expected) from None
    if not 0 <= found < math.inf:
        raise ValueError(expected)
    return found


def checked(found: Any) -> Any:
    """Return a number, or counts by name, that Slurm could hold.

    Raises:
        ValueError: one is too large.
    """
    several = found.values() if isinstance(found, dict) else (found,)
    if any(isinstance(one, int) and abs(one) > MOST for one in several):
        raise ValueError(f"a number of at most {MOST:,}")
    return found


def words(text: str) -> frozenset[str]:
    """Return the words of a comma-separated list; ``(null)`` and ``ALL`` are none."""
    return frozenset(w for w in text.split(",") if w and w.upper() not in ("(NULL)", "ALL"))


def text_of(file: Path) -> str:
    """Return what a file of Slurm's says.

    Raises:
        TraceError: it is no plain file, cannot be read, or is larger than any such file.
    """
    hint = "Give Slurm's configuration folder."
    try:
        found = file.stat()
        if not S_ISREG(found.st_mode):  # a pipe or a device might never end
            raise TraceError(str(file), "a readable file", hint=hint)
        if found.st_size > _MOST_BYTES:
            raise TraceError(str(file), f"a configuration of at most {_MOST_BYTES // 2**20} MiB")
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise TraceError(str(file), "a readable file", hint=hint) from error


def is_yes(text: str) -> bool:
    """Return whether an option is switched on."""
    return text.upper() in ("YES", "TRUE", "1", "FORCE")
