"""Which task does an instance name? Rows of a table found by two names, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.pai import hashing
from windtunnel.traces.pai.joins import Hashes, among

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = ("job_name", "task_name")
#: Stands in no name, as the tables hold no such byte.
_BETWEEN = "\0"


class Pairs:
    """Rows that two names lead to.

    Args:
        keys: ``job_name``, ``task_name`` and ``row``, int32; each two names once.
    """

    def __init__(self, keys: pa.Table) -> None:
        names = [keys[name].combine_chunks() for name in _NAMES]
        hashes = hashing.of_pairs(*(hashing.hashes(column) for column in names))
        order = np.argsort(hashes)
        self._hashes = Hashes(hashes[order])
        self._order = order.astype(np.int32)
        self._names = names
        self._rows = keys["row"].to_numpy()

    def rows(self, names: Sequence[pa.Array]) -> np.ndarray:
        """Return the row of each two names, int32, shape (pairs,); -1 = none.

        Neighbours of the same names, as the instances of a task are, are looked up once.

        Args:
            names: the first and the second names; a pair with a null has no row.
        """
        count = len(names[0])
        if not count or not len(self._rows):
            return np.full(count, -1, np.int32)
        first = np.ones(count, bool)
        same = pc.and_(*(pc.equal(column.slice(1), column.slice(0, count - 1)) for column in names))
        first[1:] = ~pc.fill_null(same, False).to_numpy(zero_copy_only=False)
        heads = np.flatnonzero(first)
        if len(heads) < count:
            names = [column.take(pa.array(heads)) for column in names]
        found = self._found(names)
        rows = np.where(found < 0, np.int32(-1), self._rows[found])
        lengths = np.diff(np.append(heads, count))
        return np.repeat(rows, lengths)

    def _found(self, names: Sequence[pa.Array]) -> np.ndarray:
        """Return the place of each two names among the keys, int32; -1 = nowhere."""
        hashes = hashing.of_pairs(*(hashing.hashes(column) for column in names))
        near = self._hashes.near(hashes)
        found = np.where(self._hashes.ordered[near] == hashes, self._order[near], np.int32(-1))
        some = np.flatnonzero(found >= 0)
        theirs, ours = (
            [column.take(pa.array(places)) for column in columns]
            for columns, places in ((names, some), (self._names, found[some]))
        )
        equal = pc.and_(*map(pc.equal, theirs, ours)).fill_null(False)
        wrong = some[~equal.to_numpy(zero_copy_only=False)]
        if len(wrong):  # other names have the same hash
            found[wrong] = self._by_name([column.take(pa.array(wrong)) for column in names], hashes)
        return found

    def _by_name(self, names: Sequence[pa.Array], hashes: np.ndarray) -> np.ndarray:
        """Return the places of some pairs, looked up by name among the keys of their hashes."""
        near = self._order[among(self._hashes.ordered, np.sort(hashes))]
        known = [column.take(pa.array(near)) for column in self._names]
        joined = (pc.binary_join_element_wise(*pair, _BETWEEN) for pair in (names, known))
        texts, of = joined
        place = pc.index_in(texts, value_set=of, skip_nulls=True).fill_null(-1).to_numpy()
        found: np.ndarray = np.append(near, np.int32(-1))[place]
        return found
