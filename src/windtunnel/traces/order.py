"""Put rows of a source in the order of submission, keeping their line numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


def by_submission(
    table: pa.Table, lines: Sequence[int] | np.ndarray
) -> tuple[pa.Table, Sequence[int] | np.ndarray, bool]:
    """Sort rows by ``submit_time``, equal times in the source's order, unknown times last.

    Args:
        table: has a float64 column ``submit_time``.
        lines: line of each row in the source, shape (rows,).

    Returns:
        The table, the lines in its new order, and whether anything moved.
    """
    submit = np.asarray(table["submit_time"].to_numpy(), dtype=np.float64)  # null becomes NaN
    if not np.isnan(submit).any() and bool(np.all(submit[1:] >= submit[:-1])):
        return table, lines, False
    order = np.argsort(submit, kind="stable")
    if bool(np.all(order == np.arange(len(order)))):
        return table, lines, False
    return table.take(order), np.asarray(lines)[order], True
