"""`Limits`: running jobs' power limits, chosen anew at every instant, and the speeds they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.power.levels import optimised, uniform

if TYPE_CHECKING:
    from windtunnel.sim.power.watts import Watts
    from windtunnel.sim.reference.state import State


class Limits:
    """The power limits of running jobs of the reference. Jobs that share a place have one limit.

    Args:
        state: the run.
        watts: what jobs draw.

    Attributes:
        slow: running job -> by how much its limit slows it.
        notes: (stay, when, level) of each choice: places in its job's table.
    """

    def __init__(self, state: State, watts: Watts) -> None:
        self.state, self.watts = state, watts
        self.slow: dict[int, float] = {}
        self.notes: list[tuple[int, float, int]] = []

    def choose(self, budget: int) -> None:
        """Choose limits for all that run."""
        running, watts, now = self.state.running, self.watts, self.state.now
        leads = []
        for job, stay in running.items():
            there = stay.place.jobs
            if there[0] == job:
                leads.append(max(there, key=lambda one: watts.floor(one, running[one].where)))
        options = [watts.choices(job, running[job].where) for job in leads]
        solve = uniform if watts.cap.limits == "uniform" else optimised
        self.slow = {}
        for lead, level in zip(leads, solve(options, budget), strict=True):
            for job in running[lead].place.jobs:
                own = watts.choices(job, running[job].where)
                self.slow[job] = own[min(level, len(own) - 1)].slow
                self.notes.append((running[job].number, now, min(level, len(own) - 1)))


def levels_of(
    starts: np.ndarray, stay: np.ndarray, time: np.ndarray, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the power limits of each stay: where they begin, when each began to hold, which.

    Of those noted at one instant the last counts, and none that is the same as before.

    Args:
        starts: when each stay began, s.
        stay: of each note, in order of time.
        time: s.
        level: place in the job's table of limits.
    """
    stay = stay.astype(np.int64)
    order = np.argsort(stay, kind="stable")
    stay, time, level = stay[order], time[order], level[order]
    last = np.ones(len(stay), dtype=bool)
    last[:-1] = (stay[1:] != stay[:-1]) | (time[1:] != time[:-1])
    stay, time, level = stay[last], time[last], level[last]
    new = np.ones(len(stay), dtype=bool)
    new[1:] = (stay[1:] != stay[:-1]) | (level[1:] != level[:-1])
    stay, time, level = stay[new], time[new], level[new]
    counts = np.bincount(stay, minlength=len(starts))
    without = counts == 0
    stay = np.concatenate([stay, np.flatnonzero(without)])
    time = np.concatenate([time, starts[without]])
    level = np.concatenate([level, np.zeros(int(without.sum()), dtype=np.int64)])
    order = np.argsort(stay, kind="stable")
    offset = np.concatenate([[0], np.cumsum(np.maximum(counts, 1))]).astype(np.int64)
    return offset, time[order].astype(np.float64), level[order].astype(np.int64)
