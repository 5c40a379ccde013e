"""What was measured of PAI's workers, and to which instance each measurement belongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.traces.pai import hashing
from windtunnel.traces.pai.joins import ByHash, alike
from windtunnel.traces.pai.spool import Codes, Growing, Numbers, Texts, known

if TYPE_CHECKING:
    from windtunnel.traces.pai.instances import Instances
    from windtunnel.traces.pai.parse import Parsed
    from windtunnel.traces.pai.spool import Coded, TextFile
    from windtunnel.traces.pai.store import Store

_WORKER = "worker_name"


@dataclass(frozen=True)
class Usage:
    """A table of measurements and the instances that they belong to.

    Attributes:
        of: the row of each instance in the table, integers, shape (instances,); -1 = none.
        numbers: column -> its values, shape (rows,).
        texts: column -> its values, shape (rows,).
        repeats: rows left out because an earlier one has the same worker.
        strays: rows whose worker is no instance's.
    """

    of: np.ndarray
    numbers: dict[str, pa.Array]
    texts: dict[str, Coded]
    repeats: int
    strays: int


@dataclass(frozen=True)
class ByWorker:
    """The instances that usage is counted for, by their workers.

    Attributes:
        instances: how many instances there are, those that do not count too.
        rows: the rows of those that do.
    """

    instances: int
    rows: ByHash

    @classmethod
    def of(cls, instances: Instances, hashes: np.ndarray, counted: np.ndarray) -> ByWorker:
        """Sort the instances that count.

        Args:
            hashes: of all their ids.
            counted: which of them count, bool, shape (instances,); one a worker.
        """
        rows = np.flatnonzero(counted).astype(np.int32)
        return cls(len(instances), ByHash(hashes[rows], rows, lambda some: [instances.ids(some)]))


def load_usage(store: Store, parsed: Parsed, short: str, by_worker: ByWorker) -> Usage:
    """Read the sensor or the metric table and give each row to the instance of its worker.

    Args:
        store: where the columns go.

    Raises:
        TraceError: the table is not as it should be, or memory or disk space ran out.
    """
    with store.errors_explained():
        names = Texts(store.path(f"{short}.names"), (_WORKER,))
        numbers = {
            field.name: Numbers(store.path(f"{short}.{field.name}"))
            for field in parsed.schema
            if field.type == pa.float64()
        }
    texts: dict[str, Codes] = {
        name: Codes() for name in parsed.schema.names if name not in {_WORKER, *numbers}
    }

    rows, hashes = Growing(np.int32), Growing(np.uint64)
    with parsed.explained(), store.errors_explained():
        for batch in parsed.batches():
            names.append(batch)
            for name, number in numbers.items():
                number.append(batch[name])
            for name, text in texts.items():
                text.append(batch[name])
            named = known(batch[_WORKER])
            first = parsed.rows - batch.num_rows
            rows.append(np.arange(first, parsed.rows, dtype=np.int32)[named])
            hashes.append(hashing.hashes(batch[_WORKER])[named])
    with store.errors_explained():
        workers = names.close()
        mapped = {name: column.mapped() for name, column in numbers.items()}
    pa.default_memory_pool().release_unused()
    of, repeats = _given(by_worker, workers, rows.array(), hashes.array())
    strays = parsed.rows - repeats - int((of >= 0).sum())
    coded = {name: column.coded() for name, column in texts.items()}
    return Usage(of, mapped, coded, repeats, strays)


def _given(
    by_worker: ByWorker, workers: TextFile, rows: np.ndarray, hashes: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return the row of each instance, -1 = none; and how many rows repeat a worker."""
    repeats = alike(rows, hashes, lambda some: workers.rows(_WORKER, some)).repeats()
    if len(repeats):
        first = ~np.isin(rows, repeats.rows)
        rows, hashes = rows[first], hashes[first]
    places = by_worker.rows.found(hashes, lambda some: [workers.rows(_WORKER, rows[some])])
    given = places >= 0
    of = np.full(by_worker.instances, -1, np.int32 if len(rows) else np.int8)
    of[places[given]] = rows[given]
    return of, len(repeats)
