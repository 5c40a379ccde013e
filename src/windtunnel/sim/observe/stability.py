"""Whether the queue of a run settles, grows as long as jobs come, or was not seen long enough.

The *waiting work* is the GPU time that those who wait have asked for. It is looked at at equally
spaced instants from the first counted submission to the last. Its *drift* is its mean growth, as a
part of the cluster's GPUs: 0.1 says that a tenth more work comes than is served.

* *unstable*: the drift is above 0 by a one-sided t test of the growth between instants, at the 2.5
  % level. Under no drift this growth is that of a random walk, so that the test holds its level
  there, and is careful where the queue settles.
* *stable*: in each quarter of the time at least a quarter of the instants find nothing waiting; or
  the augmented Dickey-Fuller test with a constant (Dickey & Fuller, JASA 74, 1979; critical value
  at 5 % by MacKinnon, 2010) refuses that the waiting work is a random walk.
* *too short to say*: neither. So it is with fewer than `LEAST` instants, of which there is one for
  `JOBS_A_POINT` jobs.

A mean wait of a run that is not stable says how long the run was, not how good the policy is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.flight import FAILED, FINISHED
from windtunnel.sim.timeline import queue_parts

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown

STABLE, UNSTABLE, SHORT = "stable", "unstable", "too short to say"
#: Jobs for which there is one instant, and least and most instants.
JOBS_A_POINT, LEAST, MOST = 20, 12, 200
#: Part of the instants that find nothing waiting, in each quarter, where a queue is stable.
_EMPTY = 0.25
#: 97.5 % point of the normal distribution.
_NORMAL = 1.959964
#: By what that of Student's t is larger: the k-th over the k-th power of the degrees of freedom
#: (Abramowitz & Stegun, 26.7.5; from eleven on it is right to 1.2e-4).
_BEYOND: tuple[float, ...] = tuple(
    sum(c * _NORMAL**n for n, c in term.items()) / part
    for part, term in (
        (4, {3: 1, 1: 1}),
        (96, {5: 5, 3: 16, 1: 3}),
        (384, {7: 3, 5: 19, 3: 17, 1: -15}),
    )
)


@dataclass(frozen=True)
class Stability:
    """Whether a queue grows.

    Attributes:
        verdict: `STABLE`, `UNSTABLE` or `SHORT`.
        drift: growth of the waiting work, as a part of the cluster's GPUs.
        error: half the width of its 95 % interval.
        points: instants that were looked at.
    """

    verdict: str
    drift: float
    error: float
    points: int


def stability(outcome: Flown) -> Stability | None:
    """Return the stability of a run's queue; None without GPUs, or jobs that come over time."""
    begin, end = outcome.counted_span
    points = min(MOST, int((outcome.counted & outcome.submitted).sum()) // JOBS_A_POINT)
    if end <= begin or outcome.cluster.num_gpus == 0:
        return None
    if points < LEAST:
        return Stability(SHORT, math.nan, math.nan, points)
    work = waiting_work(outcome, np.linspace(begin, end, points + 1))
    growth = np.diff(work)
    scale = (end - begin) / points * outcome.cluster.num_gpus
    drift = float(growth.mean())
    error = _t(points - 1) * float(growth.std(ddof=1)) / math.sqrt(points)
    if drift > error:
        verdict = UNSTABLE
    elif _is_emptied(work) or dickey_fuller(work) < _critical(points):
        verdict = STABLE
    else:
        verdict = SHORT
    return Stability(verdict, drift / scale, error / scale, points)


def window_notes(outcome: Flown) -> list[str]:
    """Return what a reader must know of which jobs a run is measured by."""
    window = outcome.settings.get("window")
    if window is None:
        return []
    flight, counted = outcome.flight, outcome.counted
    censored = int((counted & ~np.isin(flight.status, (FINISHED, FAILED))).sum())
    inside = f"{int(counted.sum()):,} of {len(counted):,} jobs submitted inside {window}"
    return [f"Measured by the {inside}; {censored:,} of them had not ended when the run was over."]


def waiting_work(outcome: Flown, instants: np.ndarray) -> np.ndarray:
    """Return the GPU time that waiting jobs have asked for.

    Args:
        outcome: the run.
        instants: Float array (k,), s, ascending, equally spaced.

    Returns:
        Float array (k,), GPU s.
    """
    asked = asked_gpu_time(outcome)
    changes = np.zeros(len(instants) + 1)
    for who, when, sign in queue_parts(outcome):
        # A change counts from the first instant on that is not before it: the last submission, too.
        place = np.searchsorted(instants, when)
        changes += np.bincount(place, sign * asked[who], minlength=len(changes))
    work: np.ndarray = np.cumsum(changes)[:-1]
    # Sums of what comes and goes leave dust where nothing waits.
    work[np.abs(work) <= 1e-9 * float(asked.sum())] = 0.0
    return work


def asked_gpu_time(outcome: Flown) -> np.ndarray:
    """Return the GPU time that each job asks for, Float array (n,), GPU s; 0 where unknown."""
    asked: np.ndarray = np.nan_to_num(outcome.num_gpus * outcome.jobs["duration"].to_numpy())
    return asked


def _is_emptied(work: np.ndarray) -> bool:
    return all((part <= 0).mean() >= _EMPTY for part in np.array_split(work, 4))


def dickey_fuller(values: np.ndarray) -> float:
    """Return the augmented Dickey-Fuller statistic with a constant, of cube-root-many lags."""
    changes = np.diff(values)
    lags = int(np.cbrt(len(changes)))
    count = len(changes) - lags
    columns = [np.ones(count), values[lags:-1]]
    columns += [changes[lags - back : len(changes) - back] for back in range(1, lags + 1)]
    known = np.stack(columns, axis=1)
    wanted = changes[lags:]
    weights, *_ = np.linalg.lstsq(known, wanted, rcond=None)
    left = wanted - known @ weights
    spread = left @ left / (count - known.shape[1]) * np.linalg.pinv(known.T @ known)[1, 1]
    return float(weights[1] / math.sqrt(spread)) if spread > 0 else 0.0


def _critical(points: int) -> float:
    """Return the 5 % point of the Dickey-Fuller statistic (MacKinnon 2010, table 2, constant)."""
    return -2.86154 - 2.8903 / points - 4.234 / points**2 - 40.04 / points**3


def _t(freedom: int) -> float:
    return _NORMAL + sum(term / float(freedom) ** k for k, term in enumerate(_BEYOND, start=1))
