"""The closest of known names, as QSSF looks them up, fast enough for a trace.

Hu et al., SC'21 (Helios), QSSF: a job whose name is new is compared with all names of the history;
the two closest with a similarity ratio of at least 0.6 stand in for it. The ratio is that of
`difflib.SequenceMatcher` (Ratcliff and Obershelp), and the answer that of
`difflib.get_close_matches`; an upper bound of the ratio from counts of characters, for all names
at once, leaves few to be compared.
"""

from __future__ import annotations

import heapq
from difflib import SequenceMatcher

import numpy as np

CUTOFF = 0.6
CLOSEST = 2
#: Names are compared up to here: comparing takes time with the square of the length.
MAX_NAME = 256
_BUCKETS = 64


class Names:
    """Names in the order in which they became known.

    Args:
        cutoff: least similarity ratio, 0..1.
        closest: how many names to find at most.
    """

    def __init__(self, cutoff: float = CUTOFF, closest: int = CLOSEST) -> None:
        self._cutoff = cutoff
        self._closest = closest
        self._names: list[str] = []
        self._known: set[str] = set()
        self._counts = np.zeros((64, _BUCKETS), dtype=np.int16)
        self._lengths = np.zeros(64, dtype=np.int64)
        #: Name -> how many of the known names it was compared with, and its closest of them.
        self._found: dict[str, tuple[int, list[tuple[float, str]]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, name: str) -> None:
        """Make a name known."""
        if name in self._known:
            return
        place = len(self._names)
        if place == len(self._lengths):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        self._known.add(name)
        self._names.append(name)
        self._counts[place] = _characters(name)
        self._lengths[place] = min(len(name), MAX_NAME)

    def close_to(self, name: str) -> tuple[str, ...]:
        """Return the closest known names, closest first; of equally close ones the last by name."""
        start, best = self._found.get(name, (0, []))
        if start < len(self._names):
            best = self._compared(name, start, best)
            self._found[name] = (len(self._names), best)
        return tuple(other for _, other in best)

    def _compared(
        self, name: str, start: int, best: list[tuple[float, str]]
    ) -> list[tuple[float, str]]:
        """Return the closest of ``best`` and the names known since ``start``."""
        stop = len(self._names)
        own, length = _characters(name), min(len(name), MAX_NAME)
        common = np.minimum(self._counts[start:stop], own).sum(axis=1, dtype=np.int16)
        total = self._lengths[start:stop] + length
        # Two empty names are equal.
        bound = np.where(total == 0, 1.0, 2.0 * common / np.maximum(total, 1))
        matcher = SequenceMatcher()
        matcher.set_seq2(name[:MAX_NAME])
        near = np.flatnonzero(bound >= self._cutoff)
        for place in near[np.argsort(-bound[near], kind="stable")].tolist():
            full = len(best) == self._closest
            if full and bound[place] < best[-1][0]:
                break
            other = self._names[start + place]
            matcher.set_seq1(other[:MAX_NAME])
            found = (matcher.ratio(), other)
            if found[0] >= self._cutoff and not (full and found < best[-1]):
                best = heapq.nlargest(self._closest, [*best, found])
        return best


def _characters(name: str) -> np.ndarray:
    """Return how often each character is in a name, characters sharing buckets, shape (64,)."""
    letters = np.frombuffer(name[:MAX_NAME].encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.bincount(letters % _BUCKETS, minlength=_BUCKETS).astype(np.int16)
