"""AcmeTrace's published utilisation curves: the values at a thousand percents, for 13 sources.

InternLM/AcmeTrace ``data/utilization/util_pkl``: each file is a pickled list x1, y1, x2, y2, ... of
arrays; x is the value at the percentage y of all samples, pooled over devices and time. The same
curves re-saved as one ``.npz`` are read too (keys ``SOURCE__METRIC__x`` and ``...__y``).
"""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import TraceError, quote
from windtunnel.telemetry.pickled_arrays import pickled_arrays
from windtunnel.traces.source import packed_bytes, plain_message, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: A larger file is no such curve: the published ones have at most 80 kB.
MAX_BYTES = 64 * 2**20
#: What the parts of an ``.npz`` raise where it is damaged, beside errors of values and types.
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, tokenize.TokenError)
_ZIP = b"PK\x03\x04"
_GPU_FULL = (
    *("gpu_util_pct", "gpu_mem_pct", "sm_activity_pct", "tc_or_occupancy_pct"),
    "tc_or_occupancy_dup_pct",
)
#: What the curves of each pickle are, in order: the files do not say. Curves 4 and 5 of the long
#: ones are equal byte for byte; the authors plot them as tensor core activity.
CURVES: dict[str, tuple[str, ...]] = {
    "gpu_power_kalos": ("power_w",),
    "gpu_power_seren": ("power_w",),
    "gpu_temp_kalos": ("gpu_temp_c", "mem_temp_c"),
    "gpu_temp_seren": ("gpu_temp_c", "mem_temp_c"),
    "ib_seren": ("ib_send", "ib_receive"),
    "server_power": ("gpu_server_w", "cpu_server_w"),
    "util_cpu_mem_kalos": ("cpu_util_pct", "cpu_mem_pct"),
    "util_cpu_mem_seren": ("cpu_util_pct", "cpu_mem_pct"),
    "util_gpu_kalos": ("gpu_util_pct", "gpu_mem_pct"),
    "util_gpu_kalos_full": _GPU_FULL,
    "util_gpu_pai": ("gpu_util_pct",),
    "util_gpu_philly": ("gpu_util_pct",),
    "util_gpu_seren": _GPU_FULL,
}


def percentiles(path: str | Path) -> pa.Table:
    """Return the curves of a published file.

    A pickle is read without running anything in it; pandas is not needed.

    Args:
        path: one of the pickles (known by its name; another's curves are ``curve 1`` ...), or the
            ``.npz`` with all of them.

    Returns:
        Columns ``source`` (the pickle's name), ``metric``, ``value`` and ``percent`` (0..100, share
        of the samples that are at most the value), in the file's order.

    Raises:
        TraceError: it is no such file, is cut, or is a pickle of anything but arrays of numbers.
    """
    file = str(path)
    data = packed_bytes(path)
    if len(data) > MAX_BYTES:
        raise TraceError(
            file, f"at most {MAX_BYTES:,} bytes", value=len(data), hint="It is no file of curves."
        )
    curves = _saved(data, file) if data.startswith(_ZIP) else _pickled(data, file, path)
    parts = []
    for source, metric, value, percent in curves:
        if value.shape != percent.shape:
            raise TraceError(
                file,
                "as many values as percents",
                hint=f"Curve {quote(metric)} of {quote(source)} has {len(value):,} values "
                f"and {len(percent):,} percents.",
            )
        names = {"source": [source] * len(value), "metric": [metric] * len(value)}
        parts.append(pa.table({**names, "value": value, "percent": percent}))
    if not parts:
        raise TraceError(file, "at least one curve", hint="It holds none.")
    return pa.concat_tables(parts)


_Curve = tuple[str, str, np.ndarray, np.ndarray]


def _pickled(data: bytes, file: str, path: str | Path) -> Iterator[_Curve]:
    arrays = pickled_arrays(data, file)
    if len(arrays) % 2:
        raise TraceError(file, "pairs of values and percents", value=f"{len(arrays)} arrays")
    source = short_name(path).removesuffix(".pkl")
    known = CURVES.get(source, ())
    for place, (value, percent) in enumerate(zip(arrays[::2], arrays[1::2], strict=True)):
        yield source, known[place] if place < len(known) else f"curve {place + 1}", value, percent


def _saved(data: bytes, file: str) -> Iterator[_Curve]:
    try:
        arrays = _members(data, file)
    except (*_DAMAGED, ValueError, TypeError, SyntaxError, RuntimeError, EOFError) as error:
        raise TraceError(
            file,
            "a whole .npz file of numbers",
            hint=f"It cannot be read ({plain_message(error)}).",
        ) from error
    for name, value in arrays.items():
        stem, is_value, _ = name.rpartition("__x")
        if not is_value:
            continue
        source, parted, metric = stem.partition("__")
        if not parted or f"{stem}__y" not in arrays:
            raise TraceError(file, "keys SOURCE__METRIC__x and SOURCE__METRIC__y", value=name)
        yield source, metric, value, arrays[f"{stem}__y"]


def _members(data: bytes, file: str) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` by name, float64, each of shape (n,)."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        size = sum(entry.file_size for entry in packed.infolist())
        if size > MAX_BYTES:
            raise TraceError(file, f"at most {MAX_BYTES:,} bytes unpacked", value=size)
        names = [entry.filename for entry in packed.infolist()]
        return {name.removesuffix(".npy"): _array(packed.read(name)) for name in names}


def _array(raw: bytes) -> np.ndarray:
    """Return the array of an ``.npy`` file; not by numpy, which makes room for any shape first."""
    stream = io.BytesIO(raw)
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError("an unknown version of .npy")
    shape, _, kind = read(stream)
    if kind.kind not in "fiu" or len(shape) != 1:
        raise ValueError(f"{kind} of shape {shape} is no row of numbers")
    if shape[0] * kind.itemsize != len(raw) - stream.tell():
        raise ValueError("an array of another length than its shape")
    return np.frombuffer(raw, kind, offset=stream.tell()).astype(np.float64)
