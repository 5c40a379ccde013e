"""Sharing a power cap among training jobs: which limit for which, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.energy.quirks import Sweep


#: What a job may get of its share.
UNIFORM: tuple[str, ...] = ("highest", "fastest")


@dataclass(frozen=True)
class Capped:
    """Jobs under a cap.

    Attributes:
        limits: each job's power limit, W.
        mean_slowdown: mean over jobs of epoch time at its limit / at its largest limit.
    """

    limits: tuple[int, ...]
    mean_slowdown: float


def best_limits(sweeps: Sequence[Sweep], cap_w: float) -> Capped:
    """Return the limits of least mean slowdown whose sum is at most the cap.

    Exact: for each sum of limits the best choice so far is kept, job by job; among equals, the
    lowest sum.

    Args:
        sweeps: each job's measurements at its limits.
        cap_w: the cap, W.

    Raises:
        SpecError: no job, or the lowest limits together are above the cap.
    """
    _check(sweeps)
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for sweep in sweeps:
        grown: dict[int, tuple[float, tuple[int, ...]]] = {}
        for used, (slowdown, limits) in best.items():
            for limit, time in zip(sweep.power_limits, sweep.epoch_time, strict=True):
                total = used + limit
                found = slowdown + time / sweep.epoch_time[0]
                if total <= cap_w and (total not in grown or found < grown[total][0]):
                    grown[total] = (found, (*limits, limit))
        best = grown
    if not best:
        least = sum(sweep.power_limits[-1] for sweep in sweeps)
        raise SpecError("cap", f"found {cap_w:g} W; the jobs' lowest limits are {least} W together")
    _, (slowdown, limits) = min(best.items(), key=lambda item: (item[1][0], item[0]))
    return Capped(limits, slowdown / len(sweeps))


def uniform_limits(sweeps: Sequence[Sweep], cap_w: float, *, by: str = "highest") -> Capped:
    """Return the limits where every job may use the same share of the cap.

    Args:
        sweeps: each job's measurements at its limits.
        cap_w: the cap, W.
        by: which of its measured limits within ``cap_w / len(sweeps)`` each job gets: the
            ``highest``, as published, or the ``fastest``; measured jobs may be slower at more.

    Raises:
        SpecError: no job, a job has no limit within its share, or ``by`` is neither word.
    """
    _check(sweeps)
    checked_choice("by", by, UNIFORM)
    share = cap_w / len(sweeps)
    limits, slowdown = [], 0.0
    for sweep in sweeps:
        within = [index for index, limit in enumerate(sweep.power_limits) if limit <= share]
        if not within:
            lowest = sweep.power_limits[-1]
            raise SpecError("cap", f"{share:g} W a job; a job's lowest limit is {lowest} W")
        fastest = by == "fastest"
        chosen = min(within, key=lambda at: sweep.epoch_time[at]) if fastest else within[0]
        limits.append(sweep.power_limits[chosen])
        slowdown += sweep.epoch_time[chosen] / sweep.epoch_time[0]
    return Capped(tuple(limits), slowdown / len(sweeps))


def _check(sweeps: Sequence[Sweep]) -> None:
    if not sweeps:
        raise SpecError("cap", "no jobs; expected at least one")
