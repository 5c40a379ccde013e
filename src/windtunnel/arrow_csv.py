"""Arrow's CSV parser on bytes of ours, which it gives back before anybody goes on.

Its threads hold the bytes until they come to dropping their last task, which may be after the table
is there. One that drops them while the interpreter ends is ended in the middle of C++, and the
process with it (before Python 3.13): "terminate called without an active exception".
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

#: Seconds that are waited at most: a table that kept the bytes would keep them for ever.
PATIENCE = 2.0


def parsed_csv(data: bytes | memoryview, **options: Any) -> pa.Table:
    """Return what `pyarrow.csv.read_csv` makes of bytes, which no thread of it holds any more.

    Args:
        data: bytes, or a view of some.
        options: as for `pyarrow.csv.read_csv`.

    Raises:
        pa.ArrowInvalid: it is no such table.
    """
    view = memoryview(data)
    try:
        return pcsv.read_csv(pa.BufferReader(pa.py_buffer(view)), **options)
    finally:
        _wait_for(view)


def _wait_for(view: memoryview) -> None:
    """Wait until nobody holds a view."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            view.release()
        except BufferError:
            time.sleep(0.0002)
        else:
            return
