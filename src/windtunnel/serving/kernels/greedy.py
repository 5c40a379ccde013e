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
    #: Requests served, and their latencies added up, s.
    _served: cython.longlong
    _latency: cython.double

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
        replicas: cython.longlong = self._begin()
        self.runs += 1
        for i in range(self.arrival.shape[0]):
            group = self._group_for(self.model[i])
            if group >= 0:
                self._serve(i, group)
        self.attainment = 0.0
        if self.arrival.shape[0] > 0:
            self.attainment = cython.cast(cython.double, self._served) / self.arrival.shape[0]
        mean: cython.double = self._latency / self._served if self._served > 0 else 0.0
        self.score = self.attainment - mean / 1e4 + replicas / 1e6

    @compiled
    def _begin(self) -> cython.longlong:
        """Let nobody have been served; return the number of replicas."""
        replicas: cython.longlong = 0
        self._served = 0
        self._latency = 0.0
        for group in range(self.groups):
            self.received[group] = 0
            self._last[group] = -self.never
        for clock in range(self._clocks.free.shape[0]):
            self._clocks.free[clock] = -self.never
        for model in range(self.models):
            self.good[model] = 0
            self._num_hosts[model] = 0
            for group in range(self.groups):
                if self.placed[group, model]:
                    self._hosts[model, self._num_hosts[model]] = group
                    self._num_hosts[model] += 1
            replicas += self._num_hosts[model]
        return replicas

    @compiled
    def _group_for(self, model: cython.longlong) -> cython.longlong:
        """Return the group with the least work that has a model, -1 = none."""
        best: cython.longlong = -1
        least: cython.double = self.never
        for host in range(self._num_hosts[model]):
            group = self._hosts[model, host]
            if self._last[group] < least:
                least = self._last[group]
                best = group
        return best

    @compiled
    def _serve(self, i: cython.longlong, group: cython.longlong) -> cython.void:
        """Let a group serve a request, if it can in time."""
        model: cython.longlong = self.model[i]
        clock: cython.longlong = group * self._most
        first: cython.longlong = (self.config[group] * self.models + model) * self._most
        stages: cython.longlong = self.stages[self.config[group]]
        now: cython.double = self.arrival[i]
        self.received[group] += 1
        latency: cython.double = self._clocks.passed(now, clock, first, stages) + self.fixed - now
        if latency > self.slo[i]:
            return
        self._last[group] = self._clocks.pass_on(now, clock, first, stages)
        self.good[model] += 1
        self._served += 1
        self._latency += latency


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


@cython.final
@cython.cclass
class Climb:
    """Goes from a placement to better ones.

    Args:
        trial: of the placement to begin with.
        weight, budget, stopped: as for `replicate`.
        most: simulations at most.

    Attributes:
        score, attainment: of the placement that ``trial`` has now.
    """

    trial: Trial
    weight: cython.const[cython.double][:, ::1]
    budget: cython.double
    stopped: cython.uchar[::1]
    most: cython.longlong
    score: cython.double
    attainment: cython.double
    _used: cython.double[::1]

    def __init__(
        self,
        trial: Trial,
        weight: numpy.ndarray,
        budget: cython.double,
        stopped: numpy.ndarray,
        most: cython.longlong,
    ) -> None:
        self.trial, self.weight, self.budget = trial, weight, budget
        self.stopped, self.most = stopped, most
        self._used = numpy.zeros(trial.groups)
        for group in range(trial.groups):
            for model in range(trial.models):
                if trial.placed[group, model]:
                    self._used[group] += self.weight[trial.config[group], model]
        trial.run()
        self.score, self.attainment = trial.score, trial.attainment

    def improve(self) -> bool:
        """Take the first better placement; return whether there is one.

        Models with the most unserved requests are tried first, in the groups that received the
        least.
        """
        wanted = numpy.bincount(self.trial.model, minlength=self.trial.models)
        unserved = wanted - numpy.asarray(self.trial.good)
        groups = numpy.argsort(self.trial.received, kind="stable")
        models: cython.const[cython.longlong][::1] = numpy.argsort(-unserved, kind="stable")
        for model in models:
            if unserved[model] == 0:
                return False
            for group in groups:
                if not self.trial.placed[group, model] and self.add(group, model, models):
                    return True
                if self.trial.runs >= self.most:
                    return False
        return False

    def add(
        self,
        group: cython.longlong,
        model: cython.longlong,
        models: cython.const[cython.longlong][::1],
    ) -> bool:
        """Put a model into a group if that is better: beside all others, or in the place of one.

        Args:
            group: where.
            model: which.
            models: the better a model's requests are served, the later it stands here, and the
                sooner it gives way.
        """
        if self.try_out(group, model, -1):
            return True
        for back in range(self.trial.models - 1, -1, -1):
            if self.trial.runs >= self.most:
                return False
            other = models[back]
            if self.trial.placed[group, other] and self.try_out(group, model, other):
                return True
        return False

    def try_out(
        self, group: cython.longlong, model: cython.longlong, other: cython.longlong
    ) -> bool:
        """Put a model into a group, in the place of another (-1 = nobody's), if that is better.

        Raises:
            InterruptedError: the search was stopped.
        """
        if self.stopped[0]:
            raise InterruptedError
        config: cython.longlong = self.trial.config[group]
        without: cython.double = self._used[group]
        if other >= 0:
            without = without - self.weight[config, other]
        if not without + self.weight[config, model] <= self.budget:
            return False
        self.put(group, model, other, True)
        with cython.nogil:
            self.trial.run()
        if not self.trial.score > self.score:
            self.put(group, model, other, False)
            return False
        self.score, self.attainment = self.trial.score, self.trial.attainment
        self._used[group] = without + self.weight[config, model]
        return True

    @compiled
    def put(
        self,
        group: cython.longlong,
        model: cython.longlong,
        other: cython.longlong,
        there: cython.bint,
    ) -> cython.void:
        """Let a model be in a group and another not, or the other way round."""
        self.trial.placed[group, model] = there
        if other >= 0:
            self.trial.placed[group, other] = not there


def refine(
    trial: Trial,
    weight: numpy.ndarray,
    budget: float,
    stopped: numpy.ndarray,
    most: int,
) -> tuple[numpy.ndarray, float, float, int]:
    """Climb from a placement by adding a replica, or putting it in another's place, while it helps.

    Args:
        trial, weight, budget, stopped, most: see `Climb`.

    Raises:
        InterruptedError: it was stopped.

    Returns:
        As `replicate`.
    """
    climb: Climb = Climb(trial, weight, budget, stopped, most)
    while trial.runs < most and climb.improve():
        pass
    best = numpy.asarray(trial.placed).astype(numpy.bool_)
    return best, climb.score, climb.attainment, trial.runs
