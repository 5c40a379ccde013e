"""Aging: waiting makes a job's claim grow, so that nobody is overtaken for ever.

Silberschatz, Galvin, Gagne, *Operating System Concepts*, ch. 5 ("Aging"), for priorities. Here it
is linear: ``aging`` seconds of waiting make up for one unit of the order (a second of run time, a
level of priority). At an instant t a waiting job then counts ``value - (t - submit) / aging``. The
difference of two such claims never changes, because both grow at one rate; so ordering by them at
every instant is ordering once by

    submit + aging * value,

a static rank that runs on every engine. What it promises: a job is overtaken only by jobs that are
submitted less than ``aging * (its value - theirs)`` seconds after it; so with values >= 0 by none
that is submitted ``aging * value`` seconds after it, or later. ``aging`` near 0 is first come first
served; the larger, the nearer to the order without aging.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.time_span import seconds

if TYPE_CHECKING:
    import numpy as np


def checked_aging(where: str, aging: float | str | None) -> float | None:
    """Return the seconds of waiting that make up for one unit of the order; None = none do.

    Raises:
        SpecError: no time span above 0.
    """
    return None if aging is None else seconds(f"policy {where}, aging", aging, positive=True)


def aged(values: np.ndarray, submit_time: np.ndarray, aging: float | None) -> np.ndarray:
    """Return the order with aging: ``submit_time + aging * values``, lower first.

    Args:
        values: Float array of shape (n,), the order without aging, lower first.
        submit_time: Float array of shape (n,), s.
        aging: seconds of waiting that make up for one unit of ``values``; None = no aging.
    """
    if aging is None:
        return values
    result: np.ndarray = submit_time + aging * values
    return result
