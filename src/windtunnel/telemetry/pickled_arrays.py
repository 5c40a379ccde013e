"""Arrays of numbers out of a pickle's symbols: numpy arrays and pandas Series, without running it.

The layouts are those that numpy 1 and 2 and pandas 0.20 to 3 write in protocols 0 to 5. An array
is made here from its bytes, after its type, shape and length have been found to agree.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.telemetry.pickle_symbols import Call, Name, symbols

_CORES = ("numpy.core", "numpy._core")
_RECONSTRUCT = frozenset(f"{core}.multiarray._reconstruct" for core in _CORES)
_FROM_BUFFER = frozenset(f"{core}.numeric._frombuffer" for core in _CORES)
_SERIES = frozenset(("pandas.core.series.Series", "pandas.Series"))
_MANAGERS = frozenset(
    (
        "pandas.core.internals.managers.SingleBlockManager",
        "pandas.core.internals.SingleBlockManager",
    )
)
_BLOCK = frozenset(
    ("pandas._libs.internals._unpickle_block", "pandas.core.internals.blocks.new_block")
)
_OLD_NEW = frozenset(("copy_reg._reconstructor", "copyreg._reconstructor"))
_INDEXES = frozenset(
    f"pandas.{path}"
    for path in (
        "core.indexes.base._new_Index",
        "core.indexes.base.Index",
        "core.indexes.range.RangeIndex",
        "core.indexes.numeric.Int64Index",
        "core.indexes.numeric.UInt64Index",
        "core.indexes.numeric.Float64Index",
        "Index",
        "RangeIndex",
    )
)
#: Every name that a list of arrays or Series has reason to name.
ALLOWED = frozenset(
    _RECONSTRUCT | _FROM_BUFFER | _SERIES | _MANAGERS | _BLOCK | _OLD_NEW | _INDEXES
    | {"numpy.ndarray", "numpy.dtype", "_codecs.encode", "builtins.slice", "__builtin__.slice"}
    | {"builtins.object", "__builtin__.object", "builtins.bytearray", "__builtin__.bytearray"}
    | {f"{core}.multiarray.scalar" for core in _CORES}
)  # fmt: skip
_KIND = re.compile(r"^[<>|=]?[fiu][1248]$")


def pickled_arrays(data: bytes, file: str) -> list[np.ndarray]:
    """Return the arrays of a pickled list of one-dimensional numpy arrays or pandas Series.

    Returns:
        float64 arrays, in the list's order.

    Raises:
        TraceError: it is anything else; nothing in it was run.
    """
    items = symbols(data, file, ALLOWED)
    if not isinstance(items, list | tuple):
        raise _odd(file, "It is no list.")
    found = []
    for place, item in enumerate(items):
        try:
            found.append(_values(item))
        except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
            raise _odd(file, f"Item {place} of the list is no such array.") from error
    return found


def _odd(file: str, hint: str) -> TraceError:
    return TraceError(file, "a pickled list of arrays of numbers or pandas Series", hint=hint)


def _values(item: Any) -> np.ndarray:
    """Return the numbers of an array or Series, float64, shape (n,)."""
    made = _made(item)
    if made.of.path in _SERIES:
        made = _of_series(made)
    return _array(made).astype(np.float64)


def _made(item: Any) -> Call:
    """Return a call; one in the form of protocols 0 and 1 is returned in that of the later ones."""
    if not isinstance(item, Call):
        raise TypeError
    if item.of.path in _OLD_NEW:
        (kind, *_) = item.arguments
        if not isinstance(kind, Name):
            raise TypeError
        return Call(kind, (), item.state)
    return item


def _of_series(series: Call) -> Call:
    """Return the array in a Series' block manager."""
    if not isinstance(series.state, dict):
        raise TypeError
    manager = _made(series.state["_mgr" if "_mgr" in series.state else "_data"])
    if manager.of.path not in _MANAGERS:
        raise TypeError
    if isinstance(manager.state, tuple):  # (axes, [values of each block], [items], {version: ...})
        (values,) = manager.state[1]
        return _made(values)
    (blocks, *_) = manager.arguments  # ((block,), axes)
    block = _made(blocks[0] if isinstance(blocks, list | tuple) else blocks)
    if block.of.path not in _BLOCK:
        raise TypeError
    return _made(block.arguments[0])


def _array(made: Call) -> np.ndarray:
    if made.of.path in _RECONSTRUCT:
        _, shape, kind, _, raw = made.state
        return _from_bytes(_bytes(raw), kind, shape)
    if made.of.path in _FROM_BUFFER:
        buffer, kind, shape, _ = made.arguments
        return _from_bytes(_bytes(buffer), kind, shape)
    raise TypeError


def _bytes(raw: Any) -> bytes:
    """Return bytes, which protocols 0 to 2 tell as text to encode, or to make a bytearray of."""
    if isinstance(raw, bytes | bytearray):
        return bytes(raw)
    if isinstance(raw, str):  # a text of Python 2
        return raw.encode("latin-1")
    if isinstance(raw, Call) and raw.of.path == "_codecs.encode":
        text, coding = raw.arguments
        if isinstance(text, str) and coding == "latin1":
            return text.encode("latin-1")
    if isinstance(raw, Call) and raw.of.path.endswith(".bytearray"):
        return _bytes(raw.arguments[0]) if raw.arguments else b""
    raise TypeError


def _from_bytes(raw: bytes, kind: Any, shape: Any) -> np.ndarray:
    """Return an array, after its type, shape and bytes have been found to agree."""
    dtype = _dtype(kind)
    if not isinstance(shape, tuple) or len(shape) != 1 or type(shape[0]) is not int:
        raise TypeError
    if shape[0] * dtype.itemsize != len(raw):
        raise ValueError
    return np.frombuffer(raw, dtype)


def _dtype(kind: Any) -> np.dtype[Any]:
    """Return a type of real numbers; anything else is refused."""
    made = _made(kind)
    if made.of.path != "numpy.dtype":
        raise TypeError
    name = made.arguments[0]
    order = made.state[1] if isinstance(made.state, tuple) else "="
    if not (isinstance(name, str) and _KIND.match(name)) or order not in ("<", ">", "|", "="):
        raise ValueError
    return np.dtype(order + name.lstrip("<>|="))
