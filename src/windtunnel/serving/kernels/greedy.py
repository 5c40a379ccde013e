"""Greedy replication as one compiled loop: simulate, add a replica where it hurts most, repeat."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class Trial:
    """Scores placements of models in groups on one workload.

    Attributes:
        arrival, model, slo: requests, (n,).
        config: configuration of each group, (groups,).
        stages: stages of each configuration, (configurations,).
        stage_time: (configurations, models, most stages), s.
        fixed: added to every finish, s.
        placed: whether a group holds a model, (groups, models); what `run` scores.
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
    stage_time: cython.const[cython.double][:, :, ::1]
    fixed: cython.double
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
    _clocks: cython.double[:, ::1]
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
        self.stage_time = stage_time
        self.fixed = fixed
        self.placed = placed.astype(numpy.uint8, order="C")
        self.runs = 0
        self.groups, self.models = placed.shape
        self.received = numpy.zeros(self.groups, dtype=numpy.int64)
        self.good = numpy.zeros(self.models, dtype=numpy.int64)
        self._hosts = numpy.empty((self.models, self.groups), dtype=numpy.int64)
        self._num_hosts = numpy.empty(self.models, dtype=numpy.int64)
        self._clocks = numpy.empty((self.groups, stage_time.shape[2]))
        self._last = numpy.empty(self.groups)

    @compiled
    def run(self, never: cython.double) -> cython.void:
        """Simulate the placement; each group is free from -``never``, which is infinite, on."""
        i: cython.longlong
        g: cython.longlong
        k: cython.longlong
        m: cython.longlong
        best: cython.longlong
        c: cython.longlong
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
            self._last[g] = -never
            for k in range(self._clocks.shape[1]):
                self._clocks[g, k] = -never
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
            least = never
            for k in range(self._num_hosts[m]):
                g = self._hosts[m, k]
                if self._last[g] < least:
                    least = self._last[g]
                    best = g
            if best < 0:
                continue
            self.received[best] += 1
            c = self.config[best]
            now = self.arrival[i]
            t = now
            for k in range(self.stages[c]):
                if self._clocks[best, k] > t:
                    t = self._clocks[best, k]
                t += self.stage_time[c, m, k]
            latency = t + self.fixed - now
            if latency > self.slo[i]:
                continue
            self._last[best] = t
            t = now
            for k in range(self.stages[c]):
                if self._clocks[best, k] > t:
                    t = self._clocks[best, k]
                t += self.stage_time[c, m, k]
                self._clocks[best, k] = t
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


def score(
    requests: tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray],
    config: numpy.ndarray,
    stages: numpy.ndarray,
    stage_time: numpy.ndarray,
    fixed: float,
    placed: numpy.ndarray,
) -> tuple[float, float]:
    """Simulate a placement and return AlpaServe's score of it, and its attainment.

    The arguments are those of `Trial`.
    """
    trial: Trial = Trial(requests, config, stages, stage_time, fixed, placed)
    never: cython.double = numpy.inf
    with cython.nogil:
        trial.run(never)
    return trial.score, trial.attainment


def replicate(
    requests: tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray],
    config: numpy.ndarray,
    stages: numpy.ndarray,
    stage_time: numpy.ndarray,
    fixed: float,
    weight: cython.const[cython.double][:, ::1],
    budget: cython.double,
    stopped: cython.uchar[::1],
) -> tuple[numpy.ndarray, float, float, int]:
    """Add replicas until no further one fits; remember the best placement on the way.

    Args:
        requests, config, stages, stage_time, fixed: as for `Trial`.
        weight: bytes a GPU of a model in a configuration, (configurations, models); infinite where
            it does not fit.
        budget: bytes a GPU.
        stopped: whether to end before the next simulation, (1,).

    Raises:
        InterruptedError: it was stopped.

    Returns:
        placed (groups, models), its score, its attainment, and the number of simulations.
    """
    groups: cython.longlong = len(config)
    models: cython.longlong = weight.shape[1]
    nothing = numpy.zeros((groups, models), dtype=numpy.bool_)
    trial: Trial = Trial(requests, config, stages, stage_time, fixed, nothing)
    best = numpy.array(trial.placed)
    used: cython.double[::1] = numpy.zeros(groups)
    wanted = numpy.bincount(requests[1], minlength=models)
    never: cython.double = numpy.inf
    best_score: cython.double = -never
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
            trial.run(never)
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
    requests: tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray],
    config: numpy.ndarray,
    stages: numpy.ndarray,
    stage_time: numpy.ndarray,
    fixed: float,
    weight: cython.const[cython.double][:, ::1],
    budget: cython.double,
    stopped: cython.uchar[::1],
    start: numpy.ndarray,
    most: cython.longlong,
) -> tuple[numpy.ndarray, float, float, int]:
    """Climb from a placement by adding a replica, or putting it in another's place, while it helps.

    Models with the most unserved requests are tried first, in the groups that received the least;
    what gives way is the model whose requests are served best. The first better one is taken.

    Args:
        requests, config, stages, stage_time, fixed, weight, budget, stopped: as for `replicate`.
        start: the placement, (groups, models).
        most: simulations at most.

    Returns:
        As `replicate`.
    """
    trial: Trial = Trial(requests, config, stages, stage_time, fixed, start)
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
    wanted = numpy.bincount(requests[1], minlength=models)
    unserved: cython.longlong[::1]
    group_order: cython.const[cython.longlong][::1]
    model_order: cython.const[cython.longlong][::1]
    never: cython.double = numpy.inf
    with cython.nogil:
        trial.run(never)
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
                        trial.run(never)
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
