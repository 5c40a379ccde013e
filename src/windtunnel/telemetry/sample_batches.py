"""Record batches of samples: how measurements become rows of the canonical table.

Every format ends here: `windtunnel.companions.SAMPLE_COLUMNS`, in that order, of those types. A
value that is NaN or infinite is no measurement; it is counted in the `Tally`, never passed on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.companions import SAMPLE_COLUMNS, companion_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA: pa.Schema = companion_schema(SAMPLE_COLUMNS)
#: Rows of one batch: bounds what is in memory at once (about 60 bytes a row).
BATCH_ROWS = 2**19
BLANK = "no value (blank, NaN or offline)"
INFINITE = "an infinite value"
OTHER_METRIC = "of a metric that was not asked for"


@dataclass
class Tally:
    """What one reading found.

    Attributes:
        rows_read: measurements found, of any kind: cells of a wide table, lines of an exposition.
        samples: those that became samples.
        dropped: those that did not: reason -> count. ``rows_read == samples + sum(dropped)``.
        notes: what a reader of results must know, one sentence each.
    """

    rows_read: int = 0
    samples: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def drop(self, reason: str, count: int) -> None:
        """Count measurements that become no samples."""
        if count:
            self.dropped[reason] += int(count)


def texts(values: Sequence[str | None]) -> pa.Array:
    """Return names as an Arrow string column, None = null."""
    return pa.array(values, pa.string())


def repeated(value: str | None, count: int) -> pa.Array:
    """Return one name, or null, for every row."""
    if value is None:
        return pa.nulls(count, pa.string())
    return pa.repeat(pa.scalar(value, pa.string()), count)


def batch(
    tally: Tally,
    *,
    time: np.ndarray,
    value: np.ndarray,
    metric: Any,
    node: Any = None,
    gpu: Any = None,
    job_id: Any = None,
    wanted: np.ndarray | None = None,
) -> pa.RecordBatch:
    """Return the samples among some measurements as one batch, counting the others.

    Args:
        time: float64, shape (rows,), s; NaN = the source does not tell.
        value: float64, shape (rows,); NaN = blank.
        metric: Arrow strings, shape (rows,); so are ``node``, ``gpu`` and ``job_id``, None = nulls.
        gpu: GPU of the node, null = the node as a whole.
        job_id: the job that the source names, null = none.
        wanted: which are of a metric that was asked for, bool, shape (rows,); None = all.
    """
    moments = pa.array(time, pa.float64(), from_pandas=True)
    names = (repeated(None, len(value)) if of is None else of for of in (node, gpu, job_id))
    columns = [moments, *names, metric, pa.array(value, pa.float64())]
    rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    tally.rows_read += len(value)
    if wanted is not None:
        tally.drop(OTHER_METRIC, len(value) - int(np.count_nonzero(wanted)))
        rows, value = rows.filter(pa.array(wanted)), value[wanted]
    finite = np.isfinite(value)
    kept = int(np.count_nonzero(finite))
    if kept < len(value):
        blank = int(np.count_nonzero(np.isnan(value)))
        tally.drop(BLANK, blank)
        tally.drop(INFINITE, len(value) - kept - blank)
        rows = rows.filter(pa.array(finite))
    tally.samples += kept
    return rows


class Tiles:
    """The name columns of a table with one column a device, built once and sliced for each block.

    A block of R rows is R x C samples in the order of time, so its names are the C devices' over
    and over: repeating them anew for every block would cost more than parsing the numbers.
    """

    def __init__(self, metric: str, nodes: list[str], gpus: list[str | None]) -> None:
        self.width = len(nodes)
        #: Rows of the source that make at most `BATCH_ROWS` samples.
        self.height = max(1, BATCH_ROWS // max(1, self.width))
        cycle = np.tile(np.arange(self.width, dtype=np.int32), self.height)
        self._columns = {
            "node": _decoded(cycle, texts(nodes)),
            "gpu": _decoded(cycle, texts(gpus)),
            "job_id": repeated(None, len(cycle)),
            "metric": repeated(metric, len(cycle)),
        }

    def batch(self, tally: Tally, time: np.ndarray, values: np.ndarray) -> pa.RecordBatch:
        """Return the samples of up to ``height`` rows.

        Args:
            time: float64, shape (rows,), s.
            values: float64, shape (rows, devices), NaN = blank.
        """
        count = values.size
        names = {name: column.slice(0, count) for name, column in self._columns.items()}
        return batch(tally, time=np.repeat(time, self.width), value=values.ravel(), **names)


def _decoded(codes: np.ndarray, names: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), names).cast(pa.string())
