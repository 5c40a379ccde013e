"""Changes to columns, types and bytes of Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from json_samples import packed
from mutants import Mutant, changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from samples import Sample

_WORDS = ("x", "", "NaN", "inf", "1e400", "-1", "2020-02-30", "\x1b[31m", "ü", "x" * 10**6)
#: Columns of other types, by the number of rows.
COLUMNS: dict[str, Callable[[int], pa.Array]] = {
    "text": lambda n: pa.array([f"t{k}" for k in range(n)]),
    "odd text": lambda n: pa.array([_WORDS[k % len(_WORDS)] for k in range(n)]),
    "large text": lambda n: pa.array([str(k) for k in range(n)], pa.large_string()),
    "words": lambda n: pa.array([str(k) for k in range(n)]).dictionary_encode(),
    "coded numbers": lambda n: pa.array(range(n)).dictionary_encode(),
    "whole numbers": lambda n: pa.array(range(n), pa.int64()),
    "negative": lambda n: pa.array([-k for k in range(n)], pa.int32()),
    "unsigned": lambda n: pa.array([2**64 - 1 - k for k in range(n)], pa.uint64()),
    "small floats": lambda n: pa.array([k / 2 for k in range(n)], pa.float32()),
    "half floats": lambda n: pa.array(np.arange(n, dtype=np.float16)),
    "no numbers": lambda n: pa.array([float("nan")] * n),
    "infinite": lambda n: pa.array([float("-inf")] * n),
    "minus zero": lambda n: pa.array([-0.0] * n),
    "nothing": pa.nulls,
    "no text": lambda n: pa.nulls(n, pa.string()),
    "yes or no": lambda n: pa.array([k % 2 == 0 for k in range(n)]),
    "bytes": lambda n: pa.array([b"\xff\0"] * n),
    "short bytes": lambda n: pa.array([b"\xff\0"] * n, pa.binary(2)),
    "instants": lambda n: pa.array(range(n), pa.timestamp("us", "UTC")),
    "nanoseconds": lambda n: pa.array([2**62 + k for k in range(n)], pa.timestamp("ns")),
    "days": lambda n: pa.array(range(n), pa.date32()),
    "times of day": lambda n: pa.array(range(n), pa.time64("us")),
    "lengths of time": lambda n: pa.array(range(n), pa.duration("ms")),
    "decimals": lambda n: pa.array(range(n)).cast(pa.decimal128(38, 2)),
    "lists": lambda n: pa.array([[k] for k in range(n)]),
    "lists of text": lambda n: pa.array([["a|b", None]] * n),
    "structs": lambda n: pa.array([{"a": k} for k in range(n)]),
    "maps": lambda n: pa.array([[("a", k)] for k in range(n)], pa.map_(pa.string(), pa.int64())),
}


def _with_null(table: pa.Table, place: int, row: int) -> pa.Table:
    values = table.column(place).to_pylist()
    values[row % len(values)] = None
    kind = table.schema.field(place).type
    return table.set_column(place, table.column_names[place], pa.array(values, kind))


@st.composite
def of_parquet(draw: st.DrawFn, sample: Sample) -> Mutant:
    """Draw a sample with a column changed, and perhaps a change of bytes behind it."""
    table = sample.table
    assert table is not None
    place = draw(st.integers(0, table.num_columns - 1))
    name = table.column_names[place]
    kinds = ["type"] * 4 + ["null", "drop", "rename", "twice", "no rows", "one row", "reverse"]
    kind = draw(st.sampled_from(kinds))
    change = f"{sample.name}; {kind} {name}"
    if kind == "type":
        made = draw(st.sampled_from(list(COLUMNS)))
        table = table.set_column(place, name, COLUMNS[made](table.num_rows))
        change += f" = {made}"
    elif kind == "null":
        table = _with_null(table, place, draw(st.integers(0, 9)))
    elif kind == "drop":
        table = table.remove_column(place)
    elif kind == "rename":
        new = draw(st.sampled_from([name.upper(), "", "\x1b[31m", "n" * 10**6, f"{name} "]))
        table = table.rename_columns({name: new})
    elif kind == "twice":
        table = table.append_column(name, table.column(place))
    elif kind == "no rows":
        table = table.slice(0, 0)
    elif kind == "one row":
        table = table.slice(draw(st.integers(0, 5)), 1)
    else:
        table = table.take(list(range(table.num_rows))[::-1])
    start = Mutant(packed(table), change)
    return draw(changed(start)) if draw(st.integers(0, 3)) == 0 else start
