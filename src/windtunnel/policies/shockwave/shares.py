"""Shares of the time on one GPU type: the policies that Shockwave is compared with.

Each gives the active jobs shares x in [0, 1] with sum s x <= N (s the gang, N the GPUs), except
where the published rule does not keep to that. Where the optimum leaves GPUs over, the published
programs were solved by interior-point methods: these are then shared as their centre does.

Zheng et al., NSDI'23, section 8; Narayanan et al., OSDI'20; AlloX: Le et al., EuroSys'20; Themis:
Mahajan et al., NSDI'20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windtunnel.policies.shockwave.work import InTraining

#: The least and the most seconds in which all may be done, where the bisection begins.
_SPAN = (100.0, 1e6)
#: Ratio of the bounds at which it ends.
_CLOSE = 1.05
#: What a job without a share has of it in the published interior solutions, over its price.
_DUST = 1e-9
#: Share of the jobs, the oldest, that AlloX looks at.
_ALPHA = 0.2
_STEPS = 200


class Shares:
    """A policy that gives shares; asked again and again during a run.

    Args:
        rule: from the active jobs' gangs, speeds and steps left, and the GPUs, to their shares.
    """

    def __init__(
        self, rule: Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]
    ) -> None:
        self._rule = rule

    def __call__(
        self, now: float, active: Mapping[int, InTraining], num_gpus: int
    ) -> dict[int, float]:
        """Return the share of each active job."""
        del now
        jobs = list(active.values())
        gangs = np.array([job.job.gpus for job in jobs], float)
        speeds = np.array([job.speed for job in jobs])
        left = np.array([job.left for job in jobs], float)
        found = self._rule(gangs, speeds, left, num_gpus)
        return dict(zip(active, found.tolist(), strict=True))


def gandiva_fair(
    gangs: np.ndarray, speeds: np.ndarray, left: np.ndarray, num_gpus: int
) -> np.ndarray:
    """Give all jobs the same share min(1, N / m), whatever their gangs, as published."""
    del speeds, left
    return np.full(len(gangs), min(1.0, num_gpus / len(gangs)))


def isolated(gangs: np.ndarray, speeds: np.ndarray, left: np.ndarray, num_gpus: int) -> np.ndarray:
    """Give each job an equal part of the GPUs: min(1, N / (m s))."""
    del speeds, left
    shares = num_gpus / (len(gangs) * gangs)
    return np.asarray(np.minimum(shares, 1.0))


def max_min(gangs: np.ndarray, speeds: np.ndarray, left: np.ndarray, num_gpus: int) -> np.ndarray:
    """Maximise the smallest s x: fill a level z, x = min(1, z / s)."""
    del speeds, left
    if gangs.sum() <= num_gpus:
        return np.ones(len(gangs))
    spare, level, waiting = float(num_gpus), 0.0, len(gangs)
    for gang in np.sort(gangs).tolist():
        if gang * waiting >= spare:
            level = spare / waiting
            break
        spare, waiting = spare - gang, waiting - 1
    return np.asarray(np.minimum(1.0, level / gangs))


def most_throughput(
    gangs: np.ndarray, speeds: np.ndarray, left: np.ndarray, num_gpus: int
) -> np.ndarray:
    """Maximise the sum of T x: whole jobs by T / s, the last one in part.

    Jobs with nothing go by what an interior-point solver leaves them: dust over their price.
    """
    del left
    shares, spare, price = np.zeros(len(gangs)), float(num_gpus), 0.0
    for job in np.argsort(-speeds / gangs, kind="stable").tolist():
        if spare <= 0:
            break
        shares[job] = min(1.0, spare / gangs[job])
        price = speeds[job] / gangs[job]
        spare -= gangs[job] * shares[job]
    if spare > 0:
        return shares
    waiting = shares == 0
    cost = price * gangs[waiting] - speeds[waiting]
    shares[waiting] = _DUST / np.maximum(cost, _DUST)
    return shares


def least_span(
    gangs: np.ndarray, speeds: np.ndarray, left: np.ndarray, num_gpus: int
) -> np.ndarray:
    """Let all be done in the least time T, bisected to 5 %; what is left over is shared.

    A job needs x >= R / (T x speed).
    """
    alone = left / speeds
    low, high, last = *_SPAN, _SPAN[1]
    best = None
    while best is None:
        while _CLOSE * low < high:
            span = (low + high) / 2
            need = alone / span
            if (need <= 1).all() and gangs @ need <= num_gpus:
                high, best = span, need
            else:
                low = span
        low, high, last = last, last * 10, last * 10
    return central_shares(best, gangs, num_gpus)


def central_shares(
    need: np.ndarray, gangs: np.ndarray, num_gpus: float, *, cones: bool = False
) -> np.ndarray:
    """Return the analytic centre of need <= x <= 1, sum s x <= N.

    The x with the largest sum of ln(x - need) + ln x + ln(1 - x), plus ln(N - sum s x), by Newton's
    method; shape (jobs,).

    Args:
        need: the least shares, shape (jobs,).
        gangs: shape (jobs,).
        num_gpus: N.
        cones: the limits are on 1 / x, as second-order cones: 2 ln(x - need) takes the place of
            ln(x - need) + ln x.
    """
    free = need < 1 - 1e-9
    spare = num_gpus - gangs @ need
    result: np.ndarray = np.minimum(need, 1.0)
    if not free.any() or spare <= 1e-9 * num_gpus:
        return result
    low, size = need[free], gangs[free]
    first, second = (2.0, 0.0) if cones else (1.0, 1.0)
    x = low + np.minimum(0.5 * (1 - low), 0.5 * spare / size.sum())
    for _ in range(_STEPS):
        rest = spare - size @ (x - low)
        gradient = first / (x - low) + second / x - 1 / (1 - x) - size / rest
        bend = first / (x - low) ** 2 + second / x**2 + 1 / (1 - x) ** 2
        solved, pull = gradient / bend, size / bend / rest
        step = solved - pull * ((size @ solved) / rest) / (1 + (size @ pull) / rest)
        if gradient @ step < 1e-12:  # noqa: PLR2004 - Newton's decrement
            break
        scale = np.sqrt(gradient @ step)
        x = x + step / (1 + scale)
    result[free] = x
    return result


class FinishTimeFairness:
    """Themis: minimise the largest rho = (t + R / (T x)) / (I + R / iso).

    I adds up (steps done since the last decision) / (isolated speed then), with steps counted at
    whatever batch size a job had (published). The isolated share is min(1, N / (m s)).
    """

    def __init__(self) -> None:
        self._isolated: dict[int, float] = {}
        self._before: dict[int, tuple[float, float]] = {}

    def __call__(
        self, now: float, active: Mapping[int, InTraining], num_gpus: int
    ) -> dict[int, float]:
        """Return the share of each active job."""
        jobs = list(active.items())
        gangs = np.array([job.job.gpus for _, job in jobs], float)
        speeds = np.array([job.speed for _, job in jobs])
        left = np.array([job.left for _, job in jobs], float)
        alone = speeds * np.minimum(1.0, num_gpus / (len(jobs) * gangs))
        for number, job in jobs:
            steps, speed = self._before.get(number, (job.left, 1.0))
            self._isolated[number] = self._isolated.get(number, 0.0) + (steps - job.left) / speed
        self._before = {
            number: (job.left, speed)
            for (number, job), speed in zip(jobs, alone.tolist(), strict=True)
        }
        since = np.array([now - job.job.submit for _, job in jobs])
        due = np.array([self._isolated[number] for number, _ in jobs]) + left / alone
        shares = _fairest(left / speeds, since, due, gangs, num_gpus)
        return dict(zip(active, shares.tolist(), strict=True))


def _fairest(
    alone: np.ndarray, since: np.ndarray, due: np.ndarray, gangs: np.ndarray, num_gpus: int
) -> np.ndarray:
    """Return the shares of the least rho, by bisection: x >= alone / (rho due - since)."""
    going = (alone > 0) & (due > 0)

    def need(rho: float) -> np.ndarray:
        rest = rho * due - since
        return np.where(going, np.divide(alone, np.where(rest > 0, rest, np.nan)), 0.0)

    def serves(rho: float) -> bool:
        needs = need(rho)
        return bool(not np.isnan(needs).any() and (needs <= 1).all() and gangs @ needs <= num_gpus)

    low = float(((since + alone)[going] / due[going]).max(initial=0.0))
    if serves(low):
        return central_shares(need(low), gangs, num_gpus, cones=True)
    high = 2 * low
    while not serves(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if serves(middle) else (middle, high)
    return central_shares(need(high), gangs, num_gpus, cones=True)


class AlloX:
    """AlloX: assign jobs to places in GPUs' queues for the least sum of completion times.

    As published, with gangs: the front of each GPU's queue has the share 1 / s; only a share of
    exactly 1 is kept, with one GPU reserved; others are assigned anew, keeping theirs meanwhile.
    """

    def __init__(self) -> None:
        self._before: dict[int, float] = {}

    def __call__(
        self, now: float, active: Mapping[int, InTraining], num_gpus: int
    ) -> dict[int, float]:
        """Return the share of each active job."""
        from scipy.optimize import linear_sum_assignment

        kept = [number for number in active if self._before.get(number) == 1.0]
        gpus = num_gpus - len(kept)
        waiting = [number for number in active if self._before.get(number) != 1.0]
        waiting.sort(key=lambda number: -(now - active[number].job.submit))
        waiting = waiting[: max(int(_ALPHA * len(waiting)), gpus)]
        shares = {number: self._before.get(number, 0.0) for number in active}
        if waiting and gpus > 0:
            alone = np.array([active[number].left / active[number].speed for number in waiting])
            since = np.array([now - active[number].job.submit for number in waiting])
            depth = np.repeat(np.arange(1, len(waiting) + 1), gpus)
            costs = alone[:, None] * depth[None, :] + since[:, None]
            rows, columns = linear_sum_assignment(costs)
            fronts: dict[int, tuple[int, int]] = {}
            for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
                gpu, place = column % gpus, column // gpus
                if place >= fronts.get(gpu, (-1, 0))[0]:
                    fronts[gpu] = (place, waiting[row])
            for _, number in fronts.values():
                shares[number] = 1.0 / active[number].job.gpus
        self._before = dict(shares)
        return shares
