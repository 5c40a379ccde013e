"""`Limits`: running jobs' power limits, chosen anew at every change, and the speeds they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.power.levels import optimised, uniform

if TYPE_CHECKING:
    from windtunnel.sim.power.contract import PoweredRun
    from windtunnel.sim.power.watts import Watts


class Limits:
    """The power limits of running jobs. Jobs that share a place have one limit.

    Args:
        run: the run.
        watts: what jobs draw.

    Attributes:
        slow: running job -> by how much its limit slows it.
        told: stay -> [(time, level)], the places in its job's table.
    """

    def __init__(self, run: PoweredRun, watts: Watts) -> None:
        self.run, self.watts = run, watts
        self.slow: dict[int, float] = {}
        self.told: dict[int, list[tuple[float, int]]] = {}
        self._level: dict[int, int] = {}
        self._seen: tuple[int, list[int]] | None = None

    def choose(self, now: float, budget: int) -> list[int]:
        """Choose limits anew if who runs or the budget has changed; return whose limit did."""
        run, watts = self.run, self.watts
        jobs = list(run.running_jobs())
        seen = budget, [run.stay_of(job) for job in jobs]
        if seen == self._seen:
            return []
        self._seen = seen
        leads = []
        for job in jobs:
            there = run.sharing(job)
            if there[0] == job:
                leads.append(max(there, key=lambda one: watts.floor(one, run.where(one))))
        options = [watts.choices(job, run.where(job)) for job in leads]
        solve = uniform if watts.cap.limits == "uniform" else optimised
        changed, level_of, slow = [], dict[int, int](), dict[int, float]()
        for lead, level in zip(leads, solve(options, budget), strict=True):
            for job in run.sharing(lead):
                own = watts.choices(job, run.where(job))
                level_of[job] = min(level, len(own) - 1)
                slow[job] = own[level_of[job]].slow
                is_new = self._level.get(job) != level_of[job]
                if is_new or self.slow.get(job) != slow[job] or run.stay_of(job) not in self.told:
                    changed.append(job)
                    self._note(run.stay_of(job), now, level_of[job])
        self._level, self.slow = level_of, slow
        return changed

    def _note(self, stay: int, now: float, level: int) -> None:
        told = self.told.setdefault(stay, [])
        if told and told[-1][0] == now:
            told.pop()
        if not told or told[-1][1] != level:
            told.append((now, level))
