"""Texts that a spreadsheet would run: what CSV files say instead, and back.

Spreadsheets take a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return for
a formula, quoted or not. Such a text gets an apostrophe in front, which spreadsheets hide; so does
one that has apostrophes before such a character, so that `unguarded` takes off exactly what
`guarded` has put on. Numbers stay as they are. (OWASP, "CSV Injection".)
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_RUNS = r"^'*[\s\v]*[=+\-@\t\r]"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_GUARDED = r"^'+[\s\v]*[=+\-@\t\r]"


def guarded(values: Any) -> Any:
    """Return texts as CSV cells that no spreadsheet runs.

    Args:
        values: an Arrow array or chunked array of texts.
    """
    import pyarrow.compute as pc

    runs = pc.and_not(
        pc.match_substring_regex(values, _RUNS), pc.match_substring_regex(values, _NUMBER)
    )
    if not pc.any(runs).as_py():
        return values
    return pc.if_else(runs, pc.binary_join_element_wise("'", values, ""), values)


def unguarded(values: Any) -> Any:
    """Return the texts that `guarded` was given."""
    import pyarrow.compute as pc

    marked = pc.match_substring_regex(values, _GUARDED)
    if not pc.any(marked).as_py():
        return values
    return pc.if_else(marked, pc.utf8_slice_codeunits(values, 1), values)


def guarded_table(table: pa.Table) -> pa.Table:
    """Return a table whose texts, and the names of whose columns, no spreadsheet runs."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            table = table.set_column(place, field.name, guarded(table.column(place)))
    names = guarded(pa.array(table.column_names, pa.string())).to_pylist()
    return table.rename_columns(names)
