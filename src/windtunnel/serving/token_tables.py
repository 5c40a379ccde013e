"""Recorded requests of a week in one go: what `windtunnel.serving.token_formats` reads row by row.

Azure publishes 44 million requests of a week, for which rows as Python objects are too slow and too
large. Files that are not quite as documented are left to the reader of rows, which says what is
wrong with them, and where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.serving.text_files import MOST_TOKENS
from windtunnel.serving.token_formats import LAYOUTS, Layout, Requests

if TYPE_CHECKING:
    from pathlib import Path

#: Nanoseconds of a second.
_NANO = 1_000_000_000


def read_table(file: Path, form: str, *, gzipped: bool) -> Requests | None:
    """Return a CSV file's requests; None where a cell is not plainly what it should be.

    Args:
        file: whose columns are those of ``form``.
        form: azure_llm, azure_lmm, burstgpt, vidur, plain or lengths.
        gzipped: whether the file is.
    """
    import pyarrow as pa
    import pyarrow.csv as pcsv

    layout = LAYOUTS[form]
    kinds = {name: pa.int64() for name in layout.counts}
    kinds |= {layout.time: pa.float64(), layout.name: pa.string()}
    for zone in ("UTC", None) if layout.is_stamp else (None,):
        if layout.is_stamp:
            kinds[layout.time] = pa.timestamp("ns", tz=zone)
        options = pcsv.ConvertOptions(
            include_columns=list(layout.columns),
            column_types={name: kinds[name] for name in layout.columns},
            strings_can_be_null=False,
        )
        try:
            with pa.input_stream(str(file), compression="gzip" if gzipped else None) as raw:
                table = pcsv.read_csv(raw, convert_options=options)
        except (pa.ArrowException, OSError):
            continue
        if table.num_rows and not any(column.null_count for column in table.columns):
            return _requests(table, layout)
    return None


def _requests(table: Any, layout: Layout) -> Requests | None:
    """Return a table's requests; None where a number is negative or not finite."""
    numbers = [table[name].to_numpy() for name in layout.counts]
    if any((values < 0).any() or (values > MOST_TOKENS).any() for values in numbers):
        return None
    times = _times(table, layout)
    if not np.isfinite(times).all() or (times < 0).any():
        return None
    prompt, output, *more = numbers
    images = more[0] if more else np.empty(0, dtype=np.int64)
    function, functions = np.zeros(len(times), dtype=np.int64), ("",)
    if layout.name:
        models = table[layout.name].combine_chunks().dictionary_encode()
        function = models.indices.to_numpy().astype(np.int64)
        functions = tuple(models.dictionary.to_pylist())
    return Requests(times, prompt, output, function, functions, images)


def _times(table: Any, layout: Layout) -> np.ndarray:
    """Return when requests came, s; of time stamps from the first one's whole second."""
    if not layout.time:
        return np.zeros(table.num_rows)
    if not layout.is_stamp:
        return np.asarray(table[layout.time].to_numpy())
    nano = table[layout.time].cast("int64").to_numpy()
    whole = nano // _NANO
    # Whole seconds are subtracted before the fraction is added: all seven digits survive.
    return np.asarray((whole - whole.min()) + (nano - whole * _NANO) / _NANO)
