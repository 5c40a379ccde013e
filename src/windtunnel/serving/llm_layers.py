"""What an iteration costs by measured kernels: dense layers, attention, and what a sequence takes.

The layout of the tables is LLMServingSim's (Cho et al., IISWC'24): times in microseconds by
tokens, by sequences, and of attention by what is prefilled and what decodes beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.serving.llm_costs import Cost, all_reduces, check_links

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Microseconds of a second, and what is added to a curve's end to know its slope.
_MICRO = 1e-6
_ATTENTION = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")


@dataclass(frozen=True)
class LayersCost(Cost):
    """The sum of measured kernels of all layers, with all-reduces and overhead.

    Attributes:
        profile: path of the tables, without ``_dense.csv.gz`` and so on.
        layers, hidden: the model's layers, and their width.
        per_layer: how often each dense kernel runs in a layer.
        once: dense kernels that run once an iteration.
        per_sequence: kernels that run once, whose time depends on the number of sequences.
        tensor_parallel: GPUs, as the tables were measured.
        activation_bytes, link_bandwidth, link_latency_s, overhead_s: as of `RooflineCost`.
    """

    form: ClassVar[str] = "layers"
    profile: str
    layers: int
    hidden: int
    per_layer: Mapping[str, float] = field(default_factory=dict)
    once: tuple[str, ...] = ()
    per_sequence: tuple[str, ...] = ()
    tensor_parallel: int = 1
    activation_bytes: float = 2.0
    link_bandwidth: float = 0.0
    link_latency_s: float = 0.0
    overhead_s: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.profile, str):
            raise SpecError("profile", f"found {quote(self.profile)}; expected a path.")
        if not isinstance(self.per_layer, dict):
            raise SpecError("per_layer", f"found {quote(self.per_layer)}; expected a table.")
        for name, times in self.per_layer.items():
            checked_number(f"per_layer.{name}", times, least=0)
        check_links(self)
        self.kernel  # noqa: B018 - the tables are read now, so that what is wrong is raised now

    def at_degree(self, tensor_parallel: int) -> Cost:
        """Return the cost by the tables of another degree: those whose name ends in ``_tpN``.

        Raises:
            SpecError: the tables' name does not say their degree.
            TraceError: there are no such tables.
        """
        own = f"_tp{self.tensor_parallel}"
        if tensor_parallel == self.tensor_parallel or not self.profile.endswith(own):
            return super().at_degree(tensor_parallel)
        profile = f"{self.profile.removesuffix(own)}_tp{tensor_parallel}"
        return replace(self, profile=profile, tensor_parallel=tensor_parallel)

    def _tables(self) -> dict[str, np.ndarray]:
        dense = _curves(f"{self.profile}_dense.csv.gz", "tokens")
        named = {name: self.layers * times for name, times in self.per_layer.items()}
        for name in self.once:
            named[name] = named.get(name, 0) + 1
        each = _curves(f"{self.profile}_per_sequence.csv.gz", "sequences")
        knots, times = _sum("per_layer, once", dense, named)
        counts, count_times = _sum("per_sequence", each, dict.fromkeys(self.per_sequence, 1.0))
        return {
            "numbers": np.array([float(self.layers)]),
            "reduces": all_reduces(self),
            "knots": knots,
            "times": times,
            "counts": counts,
            "count_times": count_times,
            **_attention(f"{self.profile}_attention.csv.gz"),
        }


def _read(file: str, columns: tuple[str, ...], text: tuple[str, ...] = ()) -> Any:
    """Return a table's columns.

    Raises:
        TraceError: it cannot be read, a column is missing or a number wrong.
    """
    import pyarrow as pa
    import pyarrow.csv as pcsv

    kinds = {name: pa.string() if name in text else pa.float64() for name in columns}
    try:
        table = pcsv.read_csv(file, convert_options=pcsv.ConvertOptions(column_types=kinds))
    except (OSError, pa.ArrowException) as error:
        raise TraceError(file, "a readable CSV of kernel times", hint=str(error)) from error
    for name in columns:
        if name not in table.column_names:
            raise TraceError.missing_column(file, name, table.column_names)
    found = {name: np.asarray(table[name].to_numpy(zero_copy_only=False)) for name in columns}
    for name in columns:
        if name in text:
            continue
        wrong = np.flatnonzero(~(found[name] >= 0) | np.isinf(found[name]))
        if len(wrong):
            row, value = int(wrong[0]), found[name][wrong[0]]
            raise TraceError(file, "a finite number >= 0", row=row + 2, column=name, value=value)
    if not table.num_rows:
        raise TraceError(file, "at least one measured kernel")
    return found


def _curves(file: str, by: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the time of each kernel, s, by ascending tokens or sequences."""
    table = _read(file, ("layer", by, "time_us"), ("layer",))
    curves = {}
    for name in dict.fromkeys(table["layer"].tolist()):
        mine = table["layer"] == name
        knots, rows = np.unique(table[by][mine], return_index=True)
        curves[str(name)] = (knots, table["time_us"][mine][rows] * _MICRO)
    return curves


def _sum(
    where: str, curves: dict[str, tuple[np.ndarray, np.ndarray]], times: dict[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted sum of curves as one; beyond its last knot it goes on as they do."""
    for name in times:
        checked_choice(where, name, curves)
    if not times:
        return np.zeros(1), np.zeros(1)
    knots = np.unique(np.concatenate([curves[name][0] for name in times]))
    knots = np.append(knots, knots[-1] + 1.0)
    whole = sum(share * _along(*curves[name], knots) for name, share in times.items())
    return knots, np.asarray(whole)


def _along(knots: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    found = np.interp(at, knots, values)
    if len(knots) > 1:
        beyond = at > knots[-1]
        slope = (values[-1] - values[-2]) / (knots[-1] - knots[-2])
        found[beyond] = values[-1] + slope * (at[beyond] - knots[-1])
    return np.asarray(found)


def _attention(file: str) -> dict[str, np.ndarray]:
    """Return measured attention as slices of one chunk and one number of decodes each."""
    table = _read(file, _ATTENTION)
    chunk, context, decodes, cached, time = (table[name] for name in _ATTENTION)
    order = np.lexsort((cached, context, decodes, chunk))
    chunk, context, decodes, cached = (x[order] for x in (chunk, context, decodes, cached))
    rows = _starts(chunk, decodes, context)
    slices = _starts(chunk[rows[:-1]], decodes[rows[:-1]])
    firsts = rows[slices[:-1]]
    chunks, counts = np.unique(chunk), np.unique(decodes)
    at = np.stack(np.meshgrid(chunks, counts, indexing="ij"), axis=-1)
    has = np.stack([chunk[firsts], decodes[firsts]], axis=-1)
    far = ((at[:, :, None, :] - has[None, None, :, :]) ** 2).sum(axis=-1)
    return {
        "chunks": chunks,
        "decodes": counts,
        "slices": far.argmin(axis=-1).astype(np.int64),
        "slice_start": slices,
        "row_at": context[rows[:-1]].copy(),
        "row_start": rows,
        "cached": cached,
        "attention": time[order] * _MICRO,
    }


def _starts(*columns: np.ndarray) -> np.ndarray:
    """Return where rows that are equal in all columns start, and their number."""
    count = len(columns[0])
    new = np.zeros(count, dtype=bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.append(np.flatnonzero(new), count).astype(np.int64)
