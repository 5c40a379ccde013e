"""How like its source is a twin? Headline numbers of both, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.quantiles import quantiles
from windtunnel.schema import STATUSES
from windtunnel.traces.twin.strata import Columns, class_name, columns_of, size_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOP_USERS = 0.05
_DAY = 86_400
#: Measure -> its unit and its value; None = cannot be known.
_Measures = dict[str, tuple[str, float | None]]


def fidelity(source: pa.Table, twin: pa.Table) -> pa.Table:
    """Return headline numbers of a source and its twin.

    Returns:
        Columns ``measure``, ``unit`` (``jobs``, ``s``, ``GPUs``, ``GPU s``, ``days``, ``share`` or
        ``distance``), ``source`` and ``twin`` (float64, null = cannot be known). A distance is the
        largest between the two cumulative distributions, 0 to 1, in the column ``twin``.
    """
    a, b = columns_of(source), columns_of(twin)
    left, right = _measures(a), _measures(b)
    rows: list[tuple[str, str, float | None, float | None]] = [
        (name, unit, left.get(name, absent)[1], right.get(name, absent)[1])
        for name, (unit, _) in (left | right).items()
        # What only one of them has, the other has none of.
        for absent in [(unit, 0.0 if unit == "share" else None)]
    ]
    for name, ours, theirs in (
        ("run time", a.duration, b.duration),
        ("wait", a.wait, b.wait),
        ("GPUs of a job", a.num_gpus, b.num_gpus),
    ):
        apart = distance(ours[np.isfinite(ours)], theirs[np.isfinite(theirs)])
        if apart is not None:
            rows.append((f"{name}: distance of distributions", "distance", None, apart))
    names = ("measure", "unit", "source", "twin")
    types = (pa.string(), pa.string(), pa.float64(), pa.float64())
    return pa.table(
        [
            pa.array(values, kind)
            for values, kind in zip(zip(*rows, strict=True), types, strict=True)
        ],
        names=names,
    )


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    """Return the largest distance of two empirical distribution functions (Kolmogorov-Smirnov).

    Args:
        a: values, shape (n,).
        b: values, shape (m,).

    Returns:
        0 to 1; None where one of them has no value.
    """
    if not len(a) or not len(b):
        return None
    a, b = np.sort(a), np.sort(b)
    at = np.concatenate([a, b])
    below = np.searchsorted(a, at, "right") / len(a) - np.searchsorted(b, at, "right") / len(b)
    return float(np.abs(below).max())


def _measures(table: Columns) -> _Measures:
    gpu_time = table.gpu_time
    total = float(gpu_time.sum())
    found: _Measures = {"jobs": ("jobs", float(len(table)))}
    for name, values in (("run time", table.duration), ("wait", table.wait)):
        known = values[np.isfinite(values)]
        if len(known):
            found[f"{name}, mean"] = ("s", float(known.mean()))
            found[f"{name}, median"] = ("s", float(quantiles(known, 0.5)))
            found[f"{name}, P90"] = ("s", float(quantiles(known, 0.9)))
    gpus = table.num_gpus[np.isfinite(table.num_gpus)]
    if len(gpus):
        found["GPUs of a job, mean"] = ("GPUs", float(gpus.mean()))
    found["GPU time"] = ("GPU s", total)
    codes = size_class(table.num_gpus)
    if total > 0:
        for code in np.unique(codes[gpu_time > 0]).tolist():
            share = float(gpu_time[codes == code].sum()) / total
            found[f"GPU time in jobs of {class_name(code)} GPUs"] = ("share", share)
    found |= _states(table)
    user = table.codes["user"]
    if total > 0 and (user >= 0).any():
        found["GPU time of the top 5 % of users"] = ("share", _top_users(user, gpu_time))
    return found | _calendar(table.submit)


def _states(table: Columns) -> _Measures:
    status, words = table.codes["status"], table.values["status"]
    shares = {word: float((status == code).mean()) for code, word in enumerate(words)}
    return {f"jobs {word}": ("share", shares[word]) for word in STATUSES if word in shares}


def _top_users(user: NDArray[np.int64], gpu_time: NDArray[np.float64]) -> float:
    """Return the share of known users' GPU time that the top 5 % of them have, one at least."""
    known = user >= 0
    by_user = np.sort(np.bincount(user[known], gpu_time[known]))[::-1]
    top = max(round(_TOP_USERS * len(by_user)), 1)
    return float(by_user[:top].sum() / max(by_user.sum(), 1e-300))


def _calendar(submit: NDArray[np.float64]) -> _Measures:
    """Return length and burstiness; days are counted from the first submission."""
    known = submit[np.isfinite(submit)]
    if not len(known):
        return {}
    day = np.floor((known - known.min()) / _DAY).astype(np.int64)
    return {
        "length, days": ("days", float(known.max() - known.min()) / _DAY),
        "jobs on the busiest day": ("share", float(np.bincount(day).max()) / len(known)),
    }
