"""Other arrivals for the same jobs: so many every so many seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY = re.compile(r"(?P<count>\d+)/(?P<seconds>\d+(?:\.\d+)?)")


def with_arrivals(
    table: pa.Table, text: str, ties: Callable[[np.ndarray], np.ndarray] | None = None
) -> pa.Table:
    """Return the jobs with other submit times: the k-th job comes at seconds x floor(k / count).

    Jobs count in order of their own submit times, which are forgotten; unknown ones come last.

    Args:
        table: jobs table.
        text: ``count/seconds``, as ``300/60``.
        ties: job ids -> place of each, for jobs submitted at one time; None = input order.

    Raises:
        SpecError: the text is not so.

    >>> import pyarrow as pa
    >>> jobs = pa.table({"submit_time": [9.0, 1.0, 5.0]})
    >>> with_arrivals(jobs, "2/60")["submit_time"].to_pylist()
    [60.0, 0.0, 0.0]
    """
    match = _EVERY.fullmatch(text.strip())
    count = int(match["count"]) if match else 0
    if match is None or count < 1 or float(match["seconds"]) <= 0:
        raise SpecError("arrivals", f"found {text!r}; expected COUNT/SECONDS, as 300/60.")
    submit = np.asarray(table["submit_time"].to_numpy(), dtype=np.float64)
    second = np.arange(len(submit))
    if ties is not None:
        second = ties(np.array(table["job_id"].to_pylist(), dtype=object))
    order = np.lexsort((second, submit))
    times = np.empty(len(submit))
    times[order] = float(match["seconds"]) * (np.arange(len(submit)) // count)
    at = table.column_names.index("submit_time")
    return table.set_column(at, table.schema.field(at), pa.array(times))
