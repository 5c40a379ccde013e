"""Shockwave's rounds as 32 real GPUs ran them: an ensemble of flights, not one.

Who runs next is decided in the middle of a round, from what was known when it began; a job that
keeps its GPUs goes on without a stop; others save their state at the round's end, while all wait;
a process that starts spends run time without steps; a job ends when its run time reaches the cut;
and the first round begins late. Zheng et al., NSDI'23, section 8; uw-mad-dash/shockwave,
``scheduler/scheduler.py``, and the six runs recorded there.

Small differences grow: 20 s at the start move means by 3 %. So conditions are drawn within what
was measured, and the median of many flights stands for the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.shockwave.published import PublishedRounds, RoundBooks, Rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.policies.shockwave.work import TrainingJob


@dataclass(frozen=True)
class RealRun:
    """What one recorded run showed of its cluster.

    Attributes:
        cut: a job ended when it ran longer than that times its ideal duration.
        delay: s before its first round.
        speeds: median speed over the one profiled, by model.
    """

    cut: float
    delay: float
    speeds: Mapping[str, float]


_MODELS = ("LM", "ResNet-18", "ResNet-50", "Transformer", "Recommendation")
#: Models whose speed differed from run to run, whatever the cut.
_UNSTEADY = frozenset({"ResNet-50"})


def _run(cut: float, delay: float, *speeds: float) -> RealRun:
    return RealRun(cut, delay, dict(zip(_MODELS, speeds, strict=True)))


#: The runs on 32 V100s of November 2021, by policy.
REAL_RUNS: dict[str, RealRun] = {
    "allox": _run(1.0, 177, 0.92, 1.00, 0.88, 0.95, 0.93),
    "finish_time_fairness": _run(1.0, 183, 0.92, 0.99, 0.69, 0.93, 0.92),
    "max_min_fairness": _run(1.5, 493, 1.08, 0.86, 0.67, 1.00, 1.05),
    "max_sum_throughput_perf": _run(1.5, 408, 1.10, 0.88, 0.93, 1.02, 1.07),
    "min_total_duration": _run(1.0, 215, 0.91, 0.98, 0.90, 0.92, 0.91),
    "market": _run(1.0, 747, 0.92, 1.00, 0.97, 0.95, 0.93),
}
#: Measured over all runs, s, least and most: for each stopped job, where any is, of a start.
_EACH_STOP, _ANY_STOP, _START = (0.8, 1.2), (0.0, 2.0), (1.0, 3.0)


@dataclass(frozen=True)
class Conditions:
    """What a testbed does to a flight.

    Attributes:
        delay: s before the first round.
        each_stop: s that a round lasts longer for each job that is stopped.
        any_stop: s that it does where anybody is, besides.
        start: s of run time without steps of a job that is started.
        speeds: speed over the one profiled, by model; 1 where a model is not in it.
    """

    delay: float
    each_stop: float
    any_stop: float
    start: float
    speeds: Mapping[str, float]


def drawn(cut: float, seed: int, without: str = "") -> Conditions:
    """Return the conditions of one flight of an ensemble.

    Delay and the speed of each model are those of one of the recorded runs with the same cut, as
    the cluster was in another state when it was another; an unsteady model's of any run.

    Args:
        cut: of the flight; the nearest that was recorded counts.
        seed: which flight.
        without: a recorded run that may not be drawn from, as it is what is predicted.
    """
    rng = np.random.default_rng(seed)
    nearest = min((run.cut for run in REAL_RUNS.values()), key=lambda of: abs(of - cut))
    others = [run for name, run in REAL_RUNS.items() if name != without]
    alike = [run for run in others if run.cut == nearest]
    speeds = {
        model: runs[int(rng.integers(len(runs)))].speeds[model]
        for model in _MODELS
        for runs in [others if model in _UNSTEADY else alike]
    }
    delay = alike[int(rng.integers(len(alike)))].delay
    each, any_stop, start = (rng.uniform(*of) for of in (_EACH_STOP, _ANY_STOP, _START))
    return Conditions(delay, float(each), float(any_stop), float(start), speeds)


class LeasedRounds(PublishedRounds):
    """One flight.

    Args:
        jobs: by submission.
        num_gpus: of the one type.
        rules: of the rounds; the overhead does not count, starts cost what the conditions say.
        conditions: of the testbed.
    """

    def __init__(
        self, jobs: Sequence[TrainingJob], num_gpus: int, rules: Rules, conditions: Conditions
    ) -> None:
        super().__init__(jobs, num_gpus, rules)
        self.conditions = conditions
        self._ran: list[int] = []

    def run(self) -> RoundBooks:
        """Return the run to its end."""
        self.now = self.conditions.delay
        following: dict[int, tuple[int, ...]] | None = None
        while self.active or self.arrived < len(self.jobs):
            if not self.active:
                self.now = max(self.now, self.jobs[self.arrived].submit)
                following = None
            if following is None:
                self._admit()
                following = self._decided()
            following = self._fly_round(following)
        return self.books

    def _decided(self) -> dict[int, tuple[int, ...]]:
        """Return who runs next, and on which GPUs."""
        if self.planner is not None:
            if self.books.schedule:
                self.planner.close_round(self._ran, self.active)
            return self._placed(self.planner.chosen() if self.active else [])
        assert self.accounts is not None  # noqa: S101 - one of the two decides
        return self._placed(self.accounts.choose(self.now, self.active))

    def _fly_round(self, chosen: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """Fly one round; return the next, which is decided in its middle."""
        begin, length = self.now, self.rules.length
        placed = {number: gpus for number, gpus in chosen.items() if number in self.active}
        before = self.books.schedule[-1] if self.books.schedule else {}
        self.books.schedule.append(placed)
        self.books.starts.append(begin)
        ran = {n: self._lease(n, kept=before.get(n) == gpus) for n, gpus in placed.items()}
        half = begin + length / 2
        early = [n for n, (_, _, end) in ran.items() if end is not None and end <= half]
        for number in early:
            self._hand_in_lease(number, *ran[number], charged=0.0)
        self.now = half
        if self.accounts is not None:
            for number in placed:  # of the round under way they know what has passed of it
                if number not in early:
                    self.accounts.charge(number, length / 2)
        self._admit()
        following = self._decided()
        for number in placed:
            if number not in early:
                self._hand_in_lease(number, *ran[number], charged=length / 2)
        self._request_batch_sizes()
        self._ran = [number for number in placed if number in self.active]
        stops = sum(following.get(number) != placed[number] for number in self._ran)
        waited = self.conditions.each_stop * stops + self.conditions.any_stop * (stops > 0)
        self.now = begin + length + waited
        self.books.ends.append(self.now)
        return following

    def _lease(self, number: int, *, kept: bool) -> tuple[float, int, float | None]:
        """Return a job's run time in a round, its steps, and when it is done; None = it is not."""
        progress, length = self.active[number], self.rules.length
        start = 0.0 if kept else self.conditions.start
        speed = progress.speed * self.conditions.speeds.get(progress.kind.model, 1.0)
        spent = self.books.run_time.get(number)
        counted = self._counted(number) if spent else 0.0
        until_cut = max(self._limit(number) - counted, 0.0)
        until_done = start + progress.left / speed
        seconds = min(length, until_cut, until_done)
        steps = min(int(max(seconds - start, 0.0) * speed), progress.left)
        if until_done <= seconds:
            steps = progress.left
        done = min(until_cut, until_done) <= length
        return seconds, steps, self.now + seconds if done else None

    def _hand_in_lease(
        self, number: int, seconds: float, steps: int, end: float | None, *, charged: float
    ) -> None:
        """Book a job's round, of which some seconds were charged before."""
        progress = self.active[number]
        self._credit(number, steps, seconds, charged)
        speed = (len(self.books.schedule), steps / max(seconds, 1e-9), progress.batch_size)
        self.books.speeds.setdefault(number, []).append(speed)
        if end is not None:
            self._remove(number, end)
        else:
            progress.rescale()
