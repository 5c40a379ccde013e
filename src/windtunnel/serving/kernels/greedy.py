"""Greedy replication as one compiled loop: simulate, add a replica where it hurts most, repeat."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.serving.kernels.stage_clocks import Clocks


@cython.final
@cython.cclass
class Trial:
    """Scores placements of models in groups on one workload.

    Args:
        requests: their arrival, model and slo, (n,) each.
        config: configuration of each group, (groups,).
        stages: stages of each configuration, (configurations,).
        stage_time: (configurations, models, most stages), s.
        fixed: added to every finish, s.
        placed: whether a group holds a model, (groups, models); what `run` scores.

    Attributes:
        received: requests sent to each group by the last `run`, (groups,).
        good: requests of each model that were served in it, (models,).
        score: attainment - mean latency of served requests / 10^4 + replicas / 10^6.
        attainment: share of the requests that were served.
        runs: how often `run` ran.
    """

    arrival: cython.const[cython.double][::1]
    model: cython.const[cython.longlong][::1]
    slo: cython.const[cython.double][::1]
    config: cython.const[cython.longlong][::1]
    stages: cython.const[cython.longlong][::1]
    fixed: cython.double
    never: cython.double
    placed: cython.uchar[:, ::1]
    received: cython.longlong[::1]
    good: cython.longlong[::1]
    score: cython.double
    attainment: cython.double
    runs: cython.longlong
    groups: cython.longlong
    models: cython.longlong
    _hosts: cython.longlong[:, ::1]
    _num_hosts: cython.longlong[::1]
    _most: cython.longlong
    _clocks: Clocks
    _last: cython.double[::1]

    def __init__(
        self,
        requests: tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray],
        config: numpy.ndarray,
        stages: numpy.ndarray,
        stage_time: numpy.ndarray,
        fixed: float,
        placed: numpy.ndarray,
    ) -> None:
        self.arrival, self.model, self.slo = requests
        self.config = config
        self.stages = stages
        self.fixed = fixed
        self.never = numpy.inf
        self.placed = placed.astype(numpy.uint8, order="C")
        self.runs = 0
        self.groups, self.models = placed.shape
        self.received = numpy.zeros(self.groups, dtype=numpy.int64)
        self.good = numpy.zeros(self.models, dtype=numpy.int64)
        self._hosts = numpy.empty((self.models, self.groups), dtype=numpy.int64)
        self._num_hosts = numpy.empty(self.models, dtype=numpy.int64)
        self._most = stage_time.shape[2]
        free = numpy.empty(self.groups * self._most)
        self._clocks = Clocks(free, stage_time.reshape(-1))
        self._last = numpy.empty(self.groups)

    @compiled
    def run(self) -> cython.void:
        """Simulate the placement; all groups are free from ever on."""
        i: cython.longlong
        g: cython.longlong
        k: cython.longlong
        m: cython.longlong
        best: cython.longlong
        clock: cython.longlong
        first: cython.longlong
        stages: cython.longlong
        now: cython.double
        t: cython.double
        least: cython.double
        latency: cython.double
        replicas: cython.longlong = 0
        served: cython.longlong = 0
        total: cython.double = 0.0
        self.runs += 1
        for g in range(self.groups):
            self.received[g] = 0
            self._last[g] = -self.never
        for k in range(self._clocks.free.shape[0]):
            self._clocks.free[k] = -self.never
        for m in range(self.models):
            self.good[m] = 0
            self._num_hosts[m] = 0
            for g in range(self.groups):
                if self.placed[g, m]:
                    self._hosts[m, self._num_hosts[m]] = g
                    self._num_hosts[m] += 1
                    replicas += 1
        for i in range(self.arrival.shape[0]):
            m = self.model[i]
            best = -1
            least = self.never
            for k in range(self._num_hosts[m]):
                g = self._hosts[m, k]
                if self._last[g] < least:
                    least = self._last[g]
                    best = g
            if best < 0:
                continue
            self.received[best] += 1
            clock = best * self._most
            first = (self.config[best] * self.models + m) * self._most
            stages = self.stages[self.config[best]]
            now = self.arrival[i]
            t = self._clocks.passed(now, clock, first, stages)
            latency = t + self.fixed - now
            if latency > self.slo[i]:
                continue
            self._last[best] = self._clocks.pass_on(now, clock, first, stages)
            self.good[m] += 1
            served += 1
            total += latency
        self.attainment = 0.0
        if self.arrival.shape[0] > 0:
            self.attainment = cython.cast(cython.double, served) / self.arrival.shape[0]
        mean: cython.double = 0.0
        if served > 0:
            mean = total / served
        self.score = self.attainment - mean / 1e4 + replicas / 1e6


def score(trial: Trial) -> tuple[float, float]:
    """Simulate a placement and return AlpaServe's score of it, and its attainment."""
    with cython.nogil:
        trial.run()
    return trial.score, trial.attainment


def replicate(
    trial: Trial,
    weight: cython.const[cython.double][:, ::1],
    budget: cython.double,
    stopped: cython.uchar[::1],
) -> tuple[numpy.ndarray, float, float, int]:
    """Add replicas until no further one fits; remember the best placement on the way.

    Args:
        trial: with nothing placed.
        weight: bytes a GPU of a model in a configuration, (configurations, models); infinite where
            it does not fit.
        budget: bytes a GPU.
        stopped: whether to end before the next simulation, (1,).

    Raises:
        InterruptedError: it was stopped.

    Returns:
        placed (groups, models), its score, its attainment, and the number of simulations.
    """
    groups: cython.longlong = trial.groups
    models: cython.longlong = trial.models
    best = numpy.array(trial.placed)
    used: cython.double[::1] = numpy.zeros(groups)
    wanted = numpy.bincount(trial.model, minlength=models)
    best_score: cython.double = -trial.never
    best_attainment: cython.double = 0.0
    group_order: cython.const[cython.longlong][::1]
    model_order: cython.const[cython.longlong][::1]
    at: cython.longlong
    by: cython.longlong
    g: cython.longlong
    m: cython.longlong
    found: cython.bint = True
    # What does not fit a group now never will: it only fills.
    is_full: cython.uchar[::1] = numpy.zeros(groups, dtype=numpy.uint8)
    while found:
        if stopped[0]:
            raise InterruptedError
        with cython.nogil:
            trial.run()
        if trial.score > best_score:
            best_score = trial.score
            best_attainment = trial.attainment
            best = numpy.array(trial.placed)
        group_order = numpy.argsort(trial.received, kind="stable")
        model_order = numpy.argsort(numpy.asarray(trial.good) - wanted, kind="stable")
        found = False
        for at in range(groups):
            g = group_order[at]
            if is_full[g]:
                continue
            for by in range(models):
                m = model_order[by]
                if not trial.placed[g, m] and used[g] + weight[trial.config[g], m] <= budget:
                    trial.placed[g, m] = True
                    used[g] += weight[trial.config[g], m]
                    found = True
                    break
            if found:
                break
            is_full[g] = True
    return best.astype(numpy.bool_), best_score, best_attainment, trial.runs


def refine(
    trial: Trial,
    weight: cython.const[cython.double][:, ::1],
    budget: cython.double,
    stopped: cython.uchar[::1],
    most: cython.longlong,
) -> tuple[numpy.ndarray, float, float, int]:
    """Climb from a placement by adding a replica, or putting it in another's place, while it helps.

    Models with the most unserved requests are tried first, in the groups that received the least;
    what gives way is the model whose requests are served best. The first better one is taken.

    Args:
        trial: of the placement to begin with.
        weight, budget, stopped: as for `replicate`.
        most: simulations at most.

    Returns:
        As `replicate`.
    """
    groups: cython.longlong = trial.groups
    models: cython.longlong = trial.models
    used: cython.double[::1] = numpy.zeros(groups)
    g: cython.longlong
    m: cython.longlong
    h: cython.longlong
    at: cython.longlong
    by: cython.longlong
    back: cython.longlong
    without: cython.double
    add: cython.double
    for g in range(groups):
        for m in range(models):
            if trial.placed[g, m]:
                used[g] += weight[trial.config[g], m]
    wanted = numpy.bincount(trial.model, minlength=models)
    unserved: cython.longlong[::1]
    group_order: cython.const[cython.longlong][::1]
    model_order: cython.const[cython.longlong][::1]
    with cython.nogil:
        trial.run()
    best_score: cython.double = trial.score
    best_attainment: cython.double = trial.attainment
    improved: cython.bint = True
    while improved and trial.runs < most:
        improved = False
        group_order = numpy.argsort(trial.received, kind="stable")
        unserved = wanted - numpy.asarray(trial.good)
        model_order = numpy.argsort(numpy.negative(unserved), kind="stable")
        for by in range(models):
            m = model_order[by]
            if unserved[m] == 0:
                break
            for at in range(groups):
                g = group_order[at]
                if trial.placed[g, m]:
                    continue
                for back in range(-1, models):
                    # First nobody gives way, then the models from the best served on.
                    h = -1 if back < 0 else model_order[models - 1 - back]
                    if h >= 0 and (not trial.placed[g, h] or h == m):
                        continue
                    without = used[g] - (weight[trial.config[g], h] if h >= 0 else 0.0)
                    add = weight[trial.config[g], m]
                    if stopped[0]:
                        raise InterruptedError
                    if not without + add <= budget:
                        continue
                    trial.placed[g, m] = True
                    if h >= 0:
                        trial.placed[g, h] = False
                    with cython.nogil:
                        trial.run()
                    if trial.score > best_score:
                        best_score = trial.score
                        best_attainment = trial.attainment
                        used[g] = without + add
                        improved = True
                    else:
                        trial.placed[g, m] = False
                        if h >= 0:
                            trial.placed[g, h] = True
                    if improved or trial.runs >= most:
                        break
                if improved or trial.runs >= most:
                    break
            if improved or trial.runs >= most:
                break
    best = numpy.asarray(trial.placed).astype(numpy.bool_)
    return best, best_score, best_attainment, trial.runs
