"""`Window`: of which jobs a run is measured, though all are flown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError, quote
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    import numpy as np

_EXPECTED = (
    "expected FROM..TO: parts of the submissions (10%..90%), times after the first one "
    "(2d..30d), or numbers of submissions (jobs:1000..9000)"
)
_JOBS = "jobs:"


@dataclass(frozen=True)
class Window:
    """Jobs submitted inside count; those before it (warm-up) and behind it (cool-down) do not.

    Attributes:
        text: as it was asked for.
        kind: ``share`` (of the submissions, in order), ``time`` (s after the first submission), or
            ``jobs`` (numbers of submissions, the first being 0).
        begin: where it begins.
        end: where it ends; what is there is outside, but for the end of all submissions.
    """

    text: str
    kind: str
    begin: float
    end: float

    @classmethod
    def of(cls, text: str) -> Window:
        """Return the window that a text asks for.

        Raises:
            SpecError: it asks for none.

        >>> Window.of("10%..90%").kind, Window.of("2d..30d").begin, Window.of("jobs:5..9").end
        ('share', 172800.0, 9.0)
        """
        words = text.strip().lower()
        parts = words.removeprefix(_JOBS).split("..")
        if len(parts) != 2:  # noqa: PLR2004 - from and to
            raise SpecError("window", f"found {quote(text)}; {_EXPECTED}.")
        if words.startswith(_JOBS):
            kind, values = "jobs", [_number(text, part) for part in parts]
        elif all(part.endswith("%") for part in parts):
            kind, values = "share", [_number(text, part[:-1]) / 100 for part in parts]
        else:
            kind, values = "time", [seconds("window", part, endless=True) for part in parts]
        begin, end = values
        if begin >= end or (kind == "share" and end > 1):
            raise SpecError("window", f"found {quote(text)}, which holds nothing; {_EXPECTED}.")
        return cls(text, kind, begin, end)

    def inside(self, submit: np.ndarray, flown: np.ndarray) -> np.ndarray:
        """Return which jobs count, Bool array (n,).

        Args:
            submit: Float array (n,), submissions, s.
            flown: Bool array (n,), which jobs fly: the others are not counted.
        """
        import numpy as np  # options name windows, and help should not load it

        rows = np.flatnonzero(flown)
        found = np.zeros(len(submit), dtype=bool)
        if self.kind == "time":
            since = submit[rows] - submit[rows].min(initial=np.inf)
            found[rows] = (since >= self.begin) & (since < self.end)
            return found
        order = rows[np.argsort(submit[rows], kind="stable")]
        size = len(order) if self.kind == "share" else 1
        found[order[int(np.ceil(self.begin * size)) : int(np.ceil(min(self.end * size, 1e18)))]] = 1
        return found


def _number(text: str, part: str) -> float:
    try:
        number = float(part)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise SpecError("window", f"found {quote(text)}; {_EXPECTED}.")
    return number
