"""`Throttle`: running jobs' power limits, chosen anew at every change, and the speeds they mean.

It stands where the model of slow-downs stands (`windtunnel.sim.rates`): a job's rate is what its
neighbours leave it, times its speed at its limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.power.levels import optimised, uniform

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.power.ledger import PoweredLedger
    from windtunnel.sim.power.levels import Choice
    from windtunnel.sim.rates import Pace


class Throttle:
    """The power limits of running jobs.

    Args:
        ledger: the run.
        inner: what else slows them; None = nothing.
    """

    def __init__(self, ledger: PoweredLedger, inner: Pace | None) -> None:
        self.problem = ledger.problem
        self.inner = inner
        self.ledger = ledger
        self.now = 0.0
        #: Running job -> its options, and the place among them.
        self._options: dict[int, tuple[Choice, ...]] = {}
        self._level: dict[int, int] = {}

    def enter(self, job: int, where: Where) -> None:
        """Note that a job has started."""
        self._options[job] = self.ledger.choices(job, where)
        if self.inner is not None:
            self.inner.enter(job, where)

    def leave(self, job: int) -> None:
        """Note that a job has left its nodes."""
        self._options.pop(job, None)
        self._level.pop(job, None)
        if self.inner is not None:
            self.inner.leave(job)

    def touched(self) -> list[int]:
        """Choose limits anew where something changed; return jobs whose rate may have changed."""
        changed = set(() if self.inner is None else self.inner.touched())
        ledger = self.ledger
        if not ledger.dirty:
            return sorted(changed)
        ledger.dirty = False
        jobs = list(self._options)
        choose = uniform if ledger.cap.limits == "uniform" else optimised
        found = choose([self._options[job] for job in jobs], ledger.budget)
        for job, level in zip(jobs, found, strict=True):
            if self._level.get(job) != level:
                self._level[job] = level
                ledger.note_level(job, self.now, level)
                changed.add(job)
        return sorted(changed)

    def rate(self, job: int) -> float:
        """Return the rate of a running job."""
        pace = 1.0 if self.inner is None else self.inner.rate(job)
        return pace / self._options[job][self._level[job]].slow
