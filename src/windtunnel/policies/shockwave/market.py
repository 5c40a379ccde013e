"""`Market`: Shockwave: plan the next rounds as a market in which epochs are bought with rounds.

The plan maximises the sum of the logarithms of the jobs' progress (Nash social welfare) less the
longest time left, so that no job finishes later than it would have on its fair share. Where no
plan can do that, jobs that are late weigh more, and come earlier in the order of the rounds.

Only the *number* of rounds of each job matters to the objective, and the logarithm is concave, so
that the program needs one whole number a job, not one a job and round, and none for the pieces of
the logarithm; the order of the rounds is a second, small program. Zheng et al., NSDI'23, sections
4 to 6; uw-mad-dash/shockwave, ``scheduler/shockwave.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import InfeasibleError
from windtunnel.optimize import LinearProgram
from windtunnel.policies.shockwave.forecast import Forecast
from windtunnel.sim.device_requests import rounded_down

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.policies.shockwave.work import InTraining

#: The exponent of the weight of a late job that could finish within a round.
_NEARLY_DONE = 100.0
#: Weights beyond so many times the least are more than a solver can tell apart; tried in turn.
_HEAVIEST = (1e12, 1e8, 1e4)
#: What stands for the logarithm of 0.
_LOG_ORIGIN = 1e-6


@dataclass(frozen=True)
class MarketRules:
    """The market's parameters, by the names of the paper; defaults are those of the 32 GPUs.

    Attributes:
        window: rounds planned ahead.
        every: rounds after which the plan is made anew, though nobody came or went.
        k: what a second of the longest time left costs.
        lam: exponent of the weight of late jobs.
        rhomax: the finish time, over that of the fair share, that is promised.
        bases: where the pieces of the logarithm meet.
        gap: how far a plan may be from the best, relatively.
        length: seconds a round.
    """

    window: int = 20
    every: int = 8
    k: float = 1e-3
    lam: float = 12.0
    rhomax: float = 1.0
    bases: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    gap: float = 1e-3
    length: float = 120.0


class Market:
    """Plans rounds ahead.

    Args:
        num_gpus: of the one type.
        rules: the market's parameters.
        measured: job -> (round, steps per second, batch size) of each round it ran; read when a
            plan is made.
    """

    def __init__(
        self,
        num_gpus: int,
        rules: MarketRules,
        measured: Mapping[int, list[tuple[int, float, int]]],
    ) -> None:
        self.num_gpus, self.rules, self._measured = num_gpus, rules, measured
        self.jobs: dict[int, Forecast] = {}
        self.round = 0
        self._since = 0
        self._stale = True
        self._moved = True
        self._plan: dict[int, list[int]] = {}

    def admit(self, number: int, progress: InTraining, now: float) -> None:
        """Take a job into the market at a boundary, s."""
        self.jobs[number] = Forecast(progress.job, now, self.rules.length)
        self._stale = self._moved = True

    def close_round(self, ran: Sequence[int], active: Mapping[int, InTraining]) -> None:
        """Note a round that is over: who ran, and who is still here."""
        for number in ran:
            if number in active:
                found = self.jobs[number]
                found.epochs_done = min(active[number].epochs_done, found.num_epochs)
        for number in [number for number in self.jobs if number not in active]:
            del self.jobs[number]
            self._stale = self._moved = True
        self.round += 1
        self._since += 1
        if self._since >= self.rules.every:
            self._since, self._stale = 0, True

    def chosen(self) -> list[int]:
        """Return who runs in the next round, all of whom fit."""
        if self._stale or self.round not in self._plan:
            self._make_plan()
            self._stale = False
        return self._plan[self.round]

    def shares(self) -> dict[int, float]:
        """Return each job's part of the window's rounds in a plan by what was noted last.

        Rounds that the plan leaves over go to the jobs with most to do. In which order rounds come
        is for whoever makes the shares real.
        """
        program, counts, _ = self._counted()
        window, gangs = self.rules.window, program.gangs
        spare = self.num_gpus * window - gangs @ counts
        for at in np.argsort(-program.remaining, kind="stable").tolist():
            more = min(window - int(counts[at]), int(rounded_down(spare / gangs[at])))
            counts[at] += more
            spare -= more * gangs[at]
        return dict(zip(self.jobs, (counts / window).tolist(), strict=True))

    def note_jobs(self) -> None:
        """Note what jobs have shown of their speed, and when each would be done on its share."""
        share = min(1.0, self.num_gpus / len(self.jobs))
        for number, job in self.jobs.items():
            job.measured = self._measured.get(number, ())
            job.calibrate()
            if self._moved:
                job.note_fair_finish(self.round, share)
        self._moved = False

    def _make_plan(self) -> None:
        """Plan the window's rounds."""
        self.note_jobs()
        program, counts, weights = self._counted()
        try:
            rows = _in_order(counts, weights, program.gangs, self.num_gpus, self.rules)
        except InfeasibleError:  # gangs that fill the window together may not fit round by round
            counts = program.packed(weights)
            rows = _in_order(counts, weights, program.gangs, self.num_gpus, self.rules)
        numbers, gangs = list(self.jobs), program.gangs.tolist()
        longest_first = np.argsort(-program.remaining, kind="stable").tolist()
        self._plan = {}
        for ahead in range(self.rules.window):
            planned = rows[:, ahead].nonzero()[0].tolist()
            spare = self.num_gpus - sum(gangs[at] for at in planned)
            for at in longest_first:
                if not rows[at, ahead] and gangs[at] <= spare:
                    planned.append(at)
                    spare -= gangs[at]
            self._plan[self.round + ahead] = [numbers[at] for at in planned]

    def _counted(self) -> tuple[_Program, np.ndarray, np.ndarray]:
        """Return the market's program, how many of the window's rounds each job gets, weights."""
        share = min(1.0, self.num_gpus / len(self.jobs))
        jobs = list(self.jobs.values())
        program = _Program(jobs, self.num_gpus, self.rules)
        now = self.rules.length * self.round
        goals = np.array([max(job.goal(self.round), 1.0) for job in jobs])
        counts = program.promised(now, goals, share)
        weights = np.ones(len(jobs))
        if counts is None:
            late = (now + program.remaining / share) / goals
            power = np.where(program.remaining < self.rules.length, _NEARLY_DONE, self.rules.lam)
            weights = np.where(late > self.rules.rhomax, late**power, 1.0)
            counts = program.weighted(weights)
        return program, counts, weights


class _Program:
    """How many of the window's rounds each job gets.

    Attributes:
        remaining: seconds each job is expected to need, shape (jobs,).
        gangs: shape (jobs,).
    """

    def __init__(self, jobs: Sequence[Forecast], num_gpus: int, rules: MarketRules) -> None:
        self.num_gpus, self.rules = num_gpus, rules
        self.gangs = np.array([job.job.gpus for job in jobs])
        self.remaining = np.array([job.remaining() for job in jobs])
        self._epoch = np.array([job.epoch_seconds for job in jobs])
        self._done = np.array([job.epochs_done for job in jobs], float)
        self._epochs = np.array([job.num_epochs for job in jobs], float)

    def promised(self, now: float, goals: np.ndarray, share: float) -> np.ndarray | None:
        """Return the rounds of each job under which all keep their promised finish; None = none."""
        end = now + self.rules.length * self.rules.window
        longest = (goals * self.rules.rhomax - end) * share
        if (longest < 0).any():  # a promise that ends within the window counts to its end
            return None
        try:
            return self._solved(np.ones(len(goals)), longest)
        except InfeasibleError:
            return None

    def weighted(self, weights: np.ndarray) -> np.ndarray:
        """Return the rounds of each job where late ones weigh more; shape (jobs,), int."""
        return self._solved(weights, None)

    def packed(self, weights: np.ndarray) -> np.ndarray:
        """Return the same where every round's gangs must fit its GPUs, which is slower."""
        return self._solved(weights, None, packed=True)

    def _solved(
        self, weights: np.ndarray, longest: np.ndarray | None, *, packed: bool = False
    ) -> np.ndarray:
        """Return the best plan's rounds; where the solver gives up, that of tamer weights.

        Raises:
            InfeasibleError: there is no plan.
        """
        least = float(weights.min())
        for at, heaviest in enumerate(_HEAVIEST, 1):
            lp, rounds = self._model(np.minimum(weights / least, heaviest), least, longest)
            if packed:
                self._add_packing(lp, rounds)
            try:
                found = lp.solve(gap=self.rules.gap).values[rounds]
            except InfeasibleError:
                if at == len(_HEAVIEST) or longest is not None:
                    raise
                continue
            break
        return np.asarray(np.round(found), dtype=int)

    def _model(
        self, weights: np.ndarray, unit: float, longest: np.ndarray | None
    ) -> tuple[LinearProgram, np.ndarray]:
        """Return the program and its columns of rounds; the objective is divided by a unit."""
        rules, count = self.rules, len(weights)
        names = range(count)
        lp = LinearProgram("market", maximize=True)
        rounds = lp.add_columns("rounds", names, upper=rules.window, integer=True)
        most = np.maximum(self._epochs - self._done, 0.0) * self._epoch
        seconds = lp.add_columns("planned seconds", names, upper=most)
        cost = weights / (count * rules.window)
        utility = lp.add_columns("utility", names, lower=-np.inf, cost=cost)
        worst = lp.add_columns("longest left", ["s"], cost=-rules.k / unit * rules.length)
        gpus = lp.add_rows("GPUs", ["window"], upper=self.num_gpus * rules.window)
        lp.add_coefficients(np.repeat(gpus, count), rounds, self.gangs)
        fits = lp.add_rows("time", names, upper=0.0)
        lp.add_coefficients(fits, seconds, 1 / rules.length)
        lp.add_coefficients(fits, rounds, -1.0)
        left = lp.add_rows("left", names, lower=self.remaining / rules.length)
        lp.add_coefficients(left, seconds, 1 / rules.length)
        lp.add_coefficients(left, np.repeat(worst, count), 1.0)
        self._add_logarithms(lp, seconds, utility)
        if longest is not None:
            least = (self.remaining - longest) / rules.length
            kept = lp.add_rows("promise", names, lower=least)
            lp.add_coefficients(kept, seconds, 1 / rules.length)
        return lp, rounds

    def _add_packing(self, lp: LinearProgram, rounds: np.ndarray) -> None:
        """Add which round each of a job's rounds is, so that gangs fit round by round."""
        count, window = len(rounds), self.rules.window
        cells = lp.add_columns("cell", range(count * window), upper=1.0, integer=True)
        sums = lp.add_rows("rounds of job", range(count), lower=0.0, upper=0.0)
        lp.add_coefficients(sums, rounds, -1.0)
        lp.add_coefficients(np.repeat(sums, window), cells, 1.0)
        full = lp.add_rows("GPUs in round", range(window), upper=self.num_gpus)
        lp.add_coefficients(np.tile(full, count), cells, np.repeat(self.gangs, window))

    def _add_logarithms(self, lp: LinearProgram, seconds: np.ndarray, utility: np.ndarray) -> None:
        """Add utility <= each piece of the logarithm of progress."""
        bases = self.rules.bases
        logs = [math.log(base) if base else math.log(_LOG_ORIGIN) for base in bases]
        for low, high, at, upto in zip(bases, bases[1:], logs, logs[1:], strict=False):
            slope = (upto - at) / (high - low)
            begun = at + slope * (self._done / self._epochs - low)
            rows = lp.add_rows(f"logarithm from {low:g}", range(len(begun)), upper=begun)
            lp.add_coefficients(rows, utility, 1.0)
            lp.add_coefficients(rows, seconds, -slope / self._epochs / self._epoch)


def _in_order(
    counts: np.ndarray, weights: np.ndarray, gangs: np.ndarray, num_gpus: int, rules: MarketRules
) -> np.ndarray:
    """Return in which of the window's rounds each job runs, heavy ones early; (jobs, window)."""
    window = rules.window
    rows = np.zeros((len(counts), window), bool)
    rows[counts >= window] = True
    some = np.flatnonzero((counts > 0) & (counts < window))
    if not len(some):
        return rows
    spare = num_gpus - gangs[counts >= window].sum()
    lp = LinearProgram("order of rounds")
    mean = np.arange(window) * (weights[some] / weights[some].max() / counts[some])[:, None]
    cells = lp.add_columns("cell", range(mean.size), upper=1.0, cost=mean.ravel(), integer=True)
    cells = cells.reshape(mean.shape)
    runs = lp.add_rows("rounds of job", some.tolist(), lower=counts[some], upper=counts[some])
    lp.add_coefficients(np.repeat(runs, window), cells.ravel(), 1.0)
    full = lp.add_rows("GPUs in round", range(window), upper=spare)
    sizes = np.repeat(gangs[some], window)
    lp.add_coefficients(np.tile(full, len(some)), cells.ravel(), sizes)
    rows[some] = lp.solve(gap=rules.gap).values[cells] > 0.5  # noqa: PLR2004 - binary
    return rows
