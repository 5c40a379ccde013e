"""How like a log is its twin, judged on rows that it has not seen, beside simple rivals?

The last quarter of the submissions is held back. From the jobs before it are made: a twin; each
column *resampled* by itself, one job independent of the next; and a *Gaussian copula* of a job's
columns (ranks as the log's, normal scores correlated as the log's; Nelsen, *An Introduction to
Copulas*, 2006). Beside them stand those jobs themselves: nothing learnt from them can be expected
to be nearer to what came later. Each is set against the rows held back:

* every column, the gaps between submissions, and jobs an hour, by the largest distance of the two
  distribution functions (Kolmogorov-Smirnov);
* pairs of columns, and of a job and the next one, by the largest difference of what the two have in
  any quadrant (Peacock, MNRAS 202, 1983), at the `GRID` quantiles of the rows held back;
* waits, after both are flown first come first served, past who does not fit, on a pool on which the
  rows held back are a load of `LOAD`.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.predictors.features import numbers
from windtunnel.study.simulate import simulate
from windtunnel.traces.twin.fidelity import distance

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

#: Who is set against the rows held back: `windtunnel.traces.twin`'s, two rivals, and the log.
JUDGED: tuple[str, ...] = ("twin", "resampled", "copula", "log")
#: Jobs that are judged at most, the last ones, and at least.
MOST, LEAST = 100_000, 200
LOAD, GRID = 0.6, 32
#: Columns of a job, in words.
_WORDS = {"gap": "gap", "duration": "run time", "num_gpus": "GPUs", "estimate": "time asked for"}
_HOUR = 3600.0

_Columns = dict[str, np.ndarray]


def likeness(
    jobs: pa.Table, twin_of: Callable[[pa.Table], pa.Table], seed: int = 0
) -> list[dict[str, Any]]:
    """Return how far a twin, its rivals and the log itself are from rows held back.

    Args:
        jobs: the log's jobs table; jobs without submission, run time or GPUs do not count.
        twin_of: (jobs table) -> jobs of a twin that has learnt from it.
        seed: of the rivals.

    Returns:
        A row a measure: ``measure``, ``kind`` (``column``, ``pair``, ``flown``), and a distance,
        0 to 1, for each of `JUDGED`; None = it cannot be known.

    Raises:
        SpecError: the log has too few jobs.
    """
    known = np.isfinite(numbers(jobs, "submit_time") + numbers(jobs, "duration"))
    known &= numbers(jobs, "num_gpus") > 0
    jobs = jobs.filter(known).sort_by("submit_time").slice(max(0, int(known.sum()) - MOST))
    if len(jobs) < LEAST:
        raise SpecError(
            "trace", f"found {len(jobs):,} jobs; expected {LEAST} at least to judge by."
        )
    split = len(jobs) - len(jobs) // 4
    learnt, held = jobs.slice(0, split), columns_of(jobs.slice(split))
    names = tuple(held)
    random = np.random.default_rng(seed)
    log = {name: values for name, values in columns_of(learnt).items() if name in names}
    against = {
        "twin": columns_of(twin_of(learnt), names),
        "resampled": {name: random.permutation(values) for name, values in log.items()},
        "copula": gaussian_copula(log, random),
        "log": log,
    }
    rows = []
    for name, measured in _measures(held).items():
        others = {who: _measures(of).get(name) for who, of in against.items()}
        kind, apart = ("pair", pair_distance) if measured.ndim > 1 else ("column", distance)
        apart_from = {
            who: None if other is None else apart(measured, other) for who, other in others.items()
        }
        rows.append({"measure": name, "kind": kind, **apart_from})
    return [*rows, _flown(held, against)]


def columns_of(jobs: pa.Table, names: tuple[str, ...] = ()) -> _Columns:
    """Return a job's columns, by submission: gap to the one before, run time, GPUs, time asked for.

    Args:
        jobs: jobs table.
        names: the columns wanted; none = those known of nine jobs in ten.

    Returns:
        Float arrays (n - 1,): the first job has no gap.
    """
    order = np.argsort(numbers(jobs, "submit_time"), kind="stable")
    found = {name: numbers(jobs, name)[order][1:] for name in list(_WORDS)[1:]}
    found = {"gap": np.diff(numbers(jobs, "submit_time")[order]), **found}
    return {
        name: values
        for name, values in found.items()
        if (name in names if names else np.isfinite(values).mean() >= 0.9)  # noqa: PLR2004
    }


def gaussian_copula(columns: _Columns, random: np.random.Generator) -> _Columns:
    """Return as many jobs with the same values in each column, tied by a Gaussian copula alone."""
    names = list(columns)
    count = len(columns[names[0]])
    scores = np.array([NormalDist().inv_cdf((at + 0.5) / count) for at in range(count)])
    ranked = np.empty((len(names), count))
    for line, name in zip(ranked, names, strict=True):
        values = np.nan_to_num(columns[name], nan=-1.0)
        line[np.lexsort((random.random(count), values))] = scores  # ties fall as chance has it
    tied = np.corrcoef(ranked) if len(names) > 1 else np.ones((1, 1))
    drawn = random.multivariate_normal(np.zeros(len(names)), tied, count, method="svd").T
    ranks = drawn.argsort(axis=1).argsort(axis=1)
    return {name: np.sort(columns[name])[rank] for name, rank in zip(names, ranks, strict=True)}


def pair_distance(a: np.ndarray, b: np.ndarray) -> float | None:
    """Return the largest difference of what two samples of pairs have in any quadrant.

    Args:
        a: Float array (2, n); the corners of quadrants are its quantiles.
        b: Float array (2, m).

    Returns:
        0 to 1; None where one of them has no pair.
    """
    a, b = (pairs[:, np.isfinite(pairs).all(axis=0)] for pairs in (a, b))
    if not a.shape[1] or not b.shape[1]:
        return None
    at = [np.unique(np.quantile(axis, np.linspace(0, 1, GRID + 1))) for axis in a]
    below = []
    for pairs in (a, b):
        cells = [
            np.searchsorted(edges, axis, "left") for edges, axis in zip(at, pairs, strict=True)
        ]
        counts = np.zeros([len(edges) + 1 for edges in at])
        np.add.at(counts, tuple(cells), 1.0 / pairs.shape[1])
        below.append(counts.cumsum(axis=0).cumsum(axis=1))
    less = below[0] - below[1]  # in the lower left quadrant of each corner
    left, under = less[:, -1:], less[-1:, :]
    quadrants = (less, left - less, under - less, less - left - under)
    return float(max(np.abs(one).max() for one in quadrants))


def _measures(columns: _Columns) -> _Columns:
    """Return what is compared: name -> Float array (n,), or (2, n) of pairs."""
    found = {_WORDS[name]: values for name, values in columns.items()}
    times = np.cumsum(columns["gap"])
    hours = np.bincount((times / _HOUR).astype(np.int64)) if times[-1] < 1e6 * _HOUR else None
    if hours is not None:
        found["jobs an hour"] = hours.astype(np.float64)
    names = list(columns)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            found[f"{_WORDS[one]} and {_WORDS[other]}"] = np.stack((columns[one], columns[other]))
    for name, values in columns.items():
        found[f"{_WORDS[name]} and the next job's"] = np.stack((values[:-1], values[1:]))
    return found


def _flown(held: _Columns, against: dict[str, _Columns]) -> dict[str, Any]:
    """Return how far waits are apart once all have been flown."""
    gpu_time = float((held["num_gpus"] * held["duration"]).sum())
    most = max(float(of["num_gpus"].max()) for of in (held, *against.values()))
    size = max(math.ceil(gpu_time / max(float(held["gap"].sum()), 1.0) / LOAD), math.ceil(most))
    waits = {}
    for who, of in {"held": held, **against}.items():
        jobs = {name: of[name] for name in ("duration", "num_gpus")}
        jobs["submit_time"] = np.cumsum(of["gap"])
        waits[who] = (
            simulate(jobs, f"pool:{size}", "fifo", queueing="skip").table["wait"].to_numpy()
        )
    apart = {who: distance(waits["held"], waits[who]) for who in against}
    return {"measure": "wait, both flown", "kind": "flown", **apart}
