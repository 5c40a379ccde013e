"""How the PAI tables come together: keys, rows that repeat one, and what belongs to what.

The joins are those of the trace's own notebook (``analysis.ipynb``, "dfa" and "dfw"), with two
differences: a task that has no job or no instance stays, and a key that stands in several rows
never makes several rows of one: its first row counts, and the others are counted.

Names are compared by a hash of theirs first, which is cheap; rows whose hashes are equal are then
compared by the names themselves. A row is its place in its file, from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: The source's word for how something ended -> ours.
STATUS = {
    "Terminated": "completed",
    "Failed": "failed",
    "Running": "running",
    "Waiting": "pending",
}

#: Hashes of one beginning that are tried one after another; good hashes have few.
_STEPS = 8


@dataclass(frozen=True)
class Alike:
    """The rows whose key another row has too, in the file's order.

    Attributes:
        rows: int64, shape (alike,), ascending.
        first: for each, the first row of its key, int64.
        nth: which of the rows of its key it is, from 1, int64.
    """

    rows: np.ndarray
    first: np.ndarray
    nth: np.ndarray

    def repeats(self) -> Alike:
        """Return only the rows whose key an earlier row has."""
        later = self.nth > 1
        return Alike(self.rows[later], self.first[later], self.nth[later])

    def __len__(self) -> int:
        """Return how many rows."""
        return len(self.rows)


def alike(
    rows: np.ndarray | None, hashes: np.ndarray, names: Callable[[np.ndarray], pa.Array]
) -> Alike:
    """Find the rows that have the same key.

    Args:
        rows: integers, shape (rows,), ascending: those to look at; None = all, from 0.
        hashes: of their keys, uint64, shape (rows,).
        names: gives the keys of some of the rows (ascending), any type, none null.
    """
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    suspects = np.flatnonzero(among(hashes, twice))
    if rows is not None:
        suspects = rows[suspects]
    if not len(suspects):
        return Alike(suspects, suspects, suspects)
    codes = names(suspects).dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    begins = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    sizes = np.diff(np.append(begins, len(ranked)))
    begin = np.repeat(begins, sizes)
    several = np.repeat(sizes, sizes) > 1
    found, first = suspects[order], suspects[order][begin]
    nth = np.arange(len(ranked)) - begin + 1
    back = np.argsort(found[several])
    return Alike(found[several][back], first[several][back], nth[several][back])


def among(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return which values stand in ``wanted``, bool, shape (values,).

    Args:
        values: any numbers, shape (values,).
        wanted: numbers of the same type, ascending, shape (wanted,).
    """
    if not len(wanted):
        return np.zeros(len(values), bool)
    places = np.searchsorted(wanted, values)
    found: np.ndarray = wanted[np.minimum(places, len(wanted) - 1)] == values
    return found


class Hashes:
    """Hashes in ascending order, and where in it the search for one begins.

    Args:
        ordered: uint64, ascending, shape (hashes,).
    """

    def __init__(self, ordered: np.ndarray) -> None:
        self.ordered = ordered
        bits = max(1, len(ordered).bit_length())
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((ordered >> self._shift).astype(np.int64), minlength=2**bits)
        #: For each value of the highest bits, the first hash that has it.
        self._begins = np.concatenate([[0], np.cumsum(counts[:-1])]).astype(np.int32)

    def near(self, wanted: np.ndarray) -> np.ndarray:
        """Return the place of each hash, int64, shape (wanted,); of another if it is not there.

        Args:
            wanted: uint64; there must be hashes.
        """
        last = len(self.ordered) - 1
        begins: np.ndarray = self._begins[wanted >> self._shift]
        near: np.ndarray = np.minimum(begins, last).astype(np.int64)
        for _ in range(_STEPS):
            short = (self.ordered[near] < wanted) & (near < last)
            if not short.any():
                return near
            near += short
        late = np.flatnonzero(short)
        near[late] = np.minimum(np.searchsorted(self.ordered, wanted[late]), last)
        return near


def place_in(keys: pa.Array, of: pa.Array) -> np.ndarray:
    """Return the first place of each key in another column, int32, shape (keys,); -1 = nowhere.

    Args:
        keys: text; null is nowhere.
        of: text, whose nulls are nobody's key.
    """
    found = pc.index_in(keys, value_set=of, skip_nulls=True)
    places: np.ndarray = found.fill_null(-1).to_numpy()
    return places


def numbered(names: pa.Array, nth: np.ndarray, meets: Callable[[pa.Array], bool]) -> pa.Array:
    """Number names that repeat earlier ones: ``#2`` behind the second row of a name, and so on.

    Where such a name would meet one of the file's own, the mark is ``##``, and so on.

    Args:
        names: text, shape (repeats,).
        nth: which of the rows of its name each is.
        meets: whether any of some new names is one of the file's own.
    """
    numbers = pa.array(nth).cast(pa.string())
    mark = "#"
    while meets(found := pc.binary_join_element_wise(names, numbers, mark)):
        mark += "#"
    return found


def status_words(words: list[str]) -> list[str]:
    """Return the schema's words for those of the source; another word is ``unknown``."""
    return [STATUS.get(word, "unknown") for word in words]


#: Stands in no name, as the tables hold no such byte.
_BETWEEN = "\0"
#: Keys that are compared at once.
_AT_ONCE = 2**18
#: Gives the keys of some rows: text, a column for each part of a key.
Keys = Callable[[np.ndarray], list[pa.Array]]


class ByHash:
    """Rows that keys lead to, by the hash of the key first.

    Args:
        hashes: of their keys, uint64, shape (rows,).
        rows: int32, shape (rows,); each has a key of its own.
        keys: gives the keys of some of them.
    """

    def __init__(self, hashes: np.ndarray, rows: np.ndarray, keys: Keys) -> None:
        order = np.argsort(hashes)
        self._hashes = Hashes(hashes[order])
        self._rows = rows[order]
        self._keys = keys

    def found(self, hashes: np.ndarray, keys: Keys) -> np.ndarray:
        """Return the row of each of some keys, int32, shape (keys,); -1 = none.

        Args:
            hashes: of the keys, shape (keys,).
            keys: gives those at some places; one with a null has no row.
        """
        if not len(self._rows):
            return np.full(len(hashes), -1, np.int32)
        near = self._hashes.near(hashes)
        found = np.where(self._hashes.ordered[near] == hashes, self._rows[near], np.int32(-1))
        wrong = self._others(found, keys)
        if len(wrong):  # other keys have the same hash
            found[wrong] = self._by_key(hashes[wrong], keys(wrong))
        return found

    def _others(self, found: np.ndarray, keys: Keys) -> np.ndarray:
        """Return the places whose key is not that of the row found."""
        wrong = [np.empty(0, np.int64)]
        some = np.flatnonzero(found >= 0)
        for begin in range(0, len(some), _AT_ONCE):
            part = some[begin : begin + _AT_ONCE]
            equal = reduce(pc.and_, map(pc.equal, keys(part), self._keys(found[part])))
            wrong.append(part[~equal.fill_null(False).to_numpy(zero_copy_only=False)])
        return np.concatenate(wrong)

    def _by_key(self, hashes: np.ndarray, keys: list[pa.Array]) -> np.ndarray:
        """Return the rows of some keys, looked up among those of their hashes."""
        near = np.sort(self._rows[among(self._hashes.ordered, np.sort(hashes))])
        texts, of = (
            pc.binary_join_element_wise(*parts, _BETWEEN) for parts in (keys, self._keys(near))
        )
        place = pc.index_in(texts, value_set=of, skip_nulls=True).fill_null(-1).to_numpy()
        found: np.ndarray = np.append(near, np.int32(-1))[place]
        return found
