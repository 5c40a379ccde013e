"""Which GPU count runs how long: durations are tied to sizes so that GPU time comes out right.

Within one workload type the jobs of each duration bin and of each GPU count are given. `joint`
finds the table between them: each size's durations are tilted by a power of the duration until its
mean is the wanted one (iterative proportional fitting), the table is rounded to whole jobs with
both margins kept, and single jobs are exchanged while that brings GPU time nearer. `durations` then
draws seconds inside the bins and moves them, still inside, onto the wanted sums.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.knots import draw, settle, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.synthetic.knots import Bins

_FITTING_ROUNDS = 300
_MAX_TILT = 6.0
_MAX_EXCHANGES = 400
_OUT_OF_REACH = 10.0


def joint(
    bins: Bins,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    gpus: NDArray[np.int64],
    seconds: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return jobs by duration bin and GPU count.

    Args:
        rows: jobs in each bin, shape (bins,).
        columns: jobs of each size, shape (sizes,); the same sum.
        gpus: GPUs of each size, shape (sizes,).
        seconds: wanted run time of each size's jobs together, shape (sizes,).

    Returns:
        Whole numbers with these margins, shape (bins, sizes).
    """
    table = np.zeros((len(rows), len(columns)), dtype=np.int64)
    r, c = np.flatnonzero(rows), np.flatnonzero(columns)
    if len(r) == 0:
        return table
    means = _bin_means(bins, rows, float(seconds[c].sum()))[r]
    fitted = _fit(means, rows[r], columns[c], seconds[c] / columns[c])
    whole = whole_table(fitted, rows[r], columns[c])
    bounds = (bins.low[r].astype(np.float64), means, bins.high[r].astype(np.float64))
    _exchange(whole, bounds, gpus[c].astype(np.float64), seconds[c])
    table[np.ix_(r, c)] = whole
    return table


def _bin_means(bins: Bins, rows: NDArray[np.int64], total: float) -> NDArray[np.float64]:
    """Return a mean for each bin so that all jobs together run ``total`` s, if possible."""
    mean = bins.mean
    lacking = total - float(rows @ mean)
    bound = (bins.high if lacking > 0 else bins.low).astype(np.float64)
    possible = float(rows @ (bound - mean))
    fraction = 0.0 if possible == 0.0 else min(lacking / possible, 0.9)
    return mean + fraction * (bound - mean)


def _fit(
    means: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    wanted: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return real job numbers with the margins ``rows`` and ``columns`` and the column means."""
    logs = np.log(means)[:, None]
    logs -= logs.mean()
    weight = rows.astype(np.float64)[:, None]
    tilt = np.zeros(len(columns))
    table = weight * columns / columns.sum()
    for _ in range(_FITTING_ROUNDS):
        shape = weight * np.exp(tilt * logs)
        share = shape / shape.sum(axis=0)
        mean = means @ share
        # d log(mean) / d tilt is the covariance of duration and its logarithm over the mean.
        slope = (means[:, None] * logs * share).sum(axis=0) / mean - (logs * share).sum(axis=0)
        step = np.clip(np.log(wanted / mean) / np.maximum(slope, 0.05), -0.5, 0.5)
        tilt = np.clip(tilt + step, -_MAX_TILT, _MAX_TILT)
        shape = weight * np.exp(tilt * logs)
        table = shape / shape.sum(axis=0) * columns
        correction = rows / table.sum(axis=1)
        weight *= correction[:, None]
        weight /= weight.max()
        weight = np.maximum(weight, 1e-200)
    return np.asarray(table * correction[:, None])


def whole_table(
    table: NDArray[np.float64], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return whole numbers near a table with exactly these margins.

    Args:
        table: numbers >= 0 whose margins are nearly these, shape (rows, columns).
        rows: sums of the rows, shape (rows,).
        columns: sums of the columns, shape (columns,); the same sum.
    """
    scaled = table * np.minimum(1.0, columns / np.maximum(table.sum(axis=0), 1e-300))
    whole: NDArray[np.int64] = np.floor(scaled).astype(np.int64)
    row_left, column_left = rows - whole.sum(axis=1), columns - whole.sum(axis=0)
    fraction = scaled - whole
    for flat in np.argsort(-fraction, axis=None, kind="stable"):
        i, j = divmod(int(flat), len(columns))
        if row_left[i] > 0 and column_left[j] > 0:
            whole[i, j] += 1
            row_left[i] -= 1
            column_left[j] -= 1
    # What greed left over: rows and columns still owe the same number of jobs.
    while row_left.any():
        i, j = int(row_left.argmax()), int(column_left.argmax())
        jobs = min(row_left[i], column_left[j])
        whole[i, j] += jobs
        row_left[i] -= jobs
        column_left[j] -= jobs
    return whole


def _exchange(
    table: NDArray[np.int64],
    bounds: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    gpus: NDArray[np.float64],
    seconds: NDArray[np.float64],
) -> None:
    """Exchange the bins of pairs of jobs, in place, while GPU time gets nearer to the wanted.

    The cost of a size is its GPUs times the seconds by which its expected run time misses the
    wanted one, and ten times that for what no choice inside the bins can make up.
    """
    low, mean, high = bounds
    steps = [bound[None, :] - bound[:, None] for bound in (mean, low, high)]
    least_gain = -1e-9 * float(gpus @ seconds)
    for _ in range(_MAX_EXCHANGES):
        sums = [bound @ table for bound in (mean, low, high)]
        now = _miss(sums, gpus, seconds)
        best, move = least_gain, None
        for j in np.argsort(-now, kind="stable")[:2].tolist():
            # A job of size j goes from bin a to bin b; one of size k goes the other way.
            there = [s[j] + step for s, step in zip(sums, steps, strict=True)]
            back = [s - step[:, :, None] for s, step in zip(sums, steps, strict=True)]
            mine = _miss(there, gpus[j], seconds[j]) - now[j]
            gain = mine[:, :, None] + (_miss(back, gpus, seconds) - now)
            possible = (table[:, j] > 0)[:, None, None] & (table > 0)[None, :, :]
            possible[:, :, j] = False
            gain = np.where(possible, gain, np.inf)
            at = int(gain.argmin())
            if gain.flat[at] < best:
                best, move = float(gain.flat[at]), (*np.unravel_index(at, gain.shape), j)
        if move is None:
            return
        a, b, k, j = (int(x) for x in move)
        table[a, j] -= 1
        table[b, j] += 1
        table[b, k] -= 1
        table[a, k] += 1


def _miss(
    sums: list[NDArray[np.float64]],
    gpus: NDArray[np.float64],
    wanted: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the cost of run times: GPU seconds missed, what is out of reach ten times over.

    Args:
        sums: expected, least and most possible run time, one shape (..., sizes).
        gpus: GPUs of each size.
        wanted: wanted run time of each size.
    """
    expected, least, most = sums
    short = np.maximum(wanted - most, 0.0) + np.maximum(least - wanted, 0.0)
    return np.asarray(gpus * (np.abs(expected - wanted) + _OUT_OF_REACH * short))


def durations(
    bins: Bins,
    table: NDArray[np.int64],
    gpus: NDArray[np.int64],
    *,
    seconds: NDArray[np.float64],
    gpu_time: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the jobs of a type.

    Args:
        table: jobs by bin and size, shape (bins, sizes).
        gpus: GPUs of each size, ascending, shape (sizes,).
        seconds: wanted run time of each size's jobs together, shape (sizes,).
        gpu_time: wanted GPU seconds of the type.

    Returns:
        Duration (s) and GPU count of each job, shape (jobs,) each, ordered by size.
    """
    sizes, jobs = table.shape[1], table.sum(axis=0)
    index = np.repeat(np.tile(np.arange(len(table)), sizes), table.T.ravel())
    # In a random order within the size: the last seconds go to the first jobs in it.
    edges = np.concatenate([[0], np.cumsum(jobs)])
    groups = [slice(a, b) for a, b in pairwise(edges.tolist())]
    for group in groups:
        rng.shuffle(index[group])
    values = draw(bins, index, rng)
    low, high = bins.low[index], bins.high[index]
    for group, wanted in zip(groups, seconds, strict=True):
        values[group] = settle(values[group], low[group], high[group], float(wanted))
    number = np.repeat(gpus, jobs)
    for group, size in zip(reversed(groups), gpus[::-1].tolist(), strict=True):
        lacking = gpu_time - int(values @ number)
        amount = abs(lacking) // size * (1 if lacking > 0 else -1)
        values[group] = spread(values[group], low[group], high[group], amount)
    return values, number
