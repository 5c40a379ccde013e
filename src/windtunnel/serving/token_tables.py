"""Recorded requests of a week in one go: what `windtunnel.serving.token_formats` reads row by row.

Azure publishes 44 million requests of a week, for which rows as Python objects are too slow and too
large. Files that are not quite as documented are left to the reader of rows, which says what is
wrong with them, and where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.serving.token_formats import HEADS, LENGTHS, MOST_TOKENS, Requests

if TYPE_CHECKING:
    from pathlib import Path

#: Columns of arrivals in s.
_SECONDS = ("Timestamp", "arrived_at", "arrival")
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

    columns = list(HEADS.get(form, LENGTHS))
    kinds = {name: pa.int64() for name in columns}
    kinds |= {name: pa.float64() for name in _SECONDS} | {"Model": pa.string()}
    for zone in ("UTC", None) if "TIMESTAMP" in columns else (None,):
        kinds["TIMESTAMP"] = pa.timestamp("ns", tz=zone)
        options = pcsv.ConvertOptions(
            include_columns=columns,
            column_types={name: kinds[name] for name in columns},
            strings_can_be_null=False,
        )
        try:
            with pa.input_stream(str(file), compression="gzip" if gzipped else None) as raw:
                table = pcsv.read_csv(raw, convert_options=options)
        except (pa.ArrowException, OSError):
            continue
        if table.num_rows and not any(column.null_count for column in table.columns):
            return _requests(table, form)
    return None


def _requests(table: Any, form: str) -> Requests | None:
    """Return a table's requests; None where a number is negative or not finite."""
    counts = [name for name in table.column_names if str(table[name].type) == "int64"]
    numbers = {name: table[name].to_numpy() for name in counts}
    if any((values < 0).any() or (values > MOST_TOKENS).any() for values in numbers.values()):
        return None
    times = _times(table)
    if not np.isfinite(times).all() or (times < 0).any():
        return None
    prompt, output = (numbers[name] for name in counts[-2:])
    function, functions = np.zeros(len(times), dtype=np.int64), ("",)
    if form == "burstgpt":
        models = table["Model"].combine_chunks().dictionary_encode()
        function = models.indices.to_numpy().astype(np.int64)
        functions = tuple(models.dictionary.to_pylist())
    images = numbers.get("NumImages", np.empty(0, dtype=np.int64))
    return Requests(times, prompt, output, function, functions, images)


def _times(table: Any) -> np.ndarray:
    """Return when requests came, s; of time stamps from the first one's whole second."""
    for name in _SECONDS:
        if name in table.column_names:
            return np.asarray(table[name].to_numpy())
    if "TIMESTAMP" not in table.column_names:
        return np.zeros(table.num_rows)
    nano = table["TIMESTAMP"].cast("int64").to_numpy()
    whole = nano // _NANO
    # Whole seconds are subtracted before the fraction is added: all seven digits survive.
    return np.asarray((whole - whole.min()) + (nano - whole * _NANO) / _NANO)
