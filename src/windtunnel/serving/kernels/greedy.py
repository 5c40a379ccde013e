"""Greedy replication as one compiled loop: simulate, add a replica where it hurts most, repeat."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def score(
    arrival, model, slo, placed, config, stages, stage_time, fixed, received, good,
):  # fmt: skip
    """Simulate a placement and return AlpaServe's score of it.

    Args:
        arrival, model, slo: requests, (n,).
        placed: whether a group holds a model, (groups, models).
        config: configuration of each group, (groups,).
        stages: stages of each configuration, (configurations,).
        stage_time: (configurations, models, most stages), s.
        fixed: added to every finish, s.
        received: out: requests sent to each group, (groups,).
        good: out: requests of each model that were served, (models,).

    Returns:
        attainment - mean latency of served requests / 10^4 + replicas / 10^6, and attainment.
    """
    groups, models = placed.shape
    received[:] = 0
    good[:] = 0
    hosts = np.empty((models, groups), dtype=np.int64)
    num_hosts = np.zeros(models, dtype=np.int64)
    replicas = 0
    for m in range(models):
        for g in range(groups):
            if placed[g, m]:
                hosts[m, num_hosts[m]] = g
                num_hosts[m] += 1
                replicas += 1
    width = stage_time.shape[2]
    clocks = np.zeros((groups, width))
    last = np.zeros(groups)
    total = 0.0
    served = 0
    for i in range(len(arrival)):
        m = model[i]
        best = -1
        least = np.inf
        for k in range(num_hosts[m]):
            g = hosts[m, k]
            if last[g] < least:
                least = last[g]
                best = g
        if best < 0:
            continue
        received[best] += 1
        c = config[best]
        now = arrival[i]
        t = now
        count = stages[c]
        for k in range(count):
            if clocks[best, k] > t:
                t = clocks[best, k]
            t += stage_time[c, m, k]
        latency = t + fixed - now
        if latency > slo[i]:
            continue
        last[best] = t
        t = now
        for k in range(count):
            if clocks[best, k] > t:
                t = clocks[best, k]
            t += stage_time[c, m, k]
            clocks[best, k] = t
        good[m] += 1
        served += 1
        total += latency
    attainment = served / len(arrival) if len(arrival) > 0 else 0.0
    mean = total / served if served > 0 else 0.0
    return attainment - mean / 1e4 + replicas / 1e6, attainment


@njit(cache=True, nogil=True)
def replicate(
    arrival, model, slo, config, stages, stage_time, weight, budget, fixed,
):  # fmt: skip
    """Add replicas until no further one fits; remember the best placement on the way.

    Args:
        weight: bytes a GPU of a model in a configuration, (configurations, models); infinite where
            it does not fit.
        budget: bytes a GPU.

    Returns:
        placed (groups, models), its score, its attainment, and the number of simulations. Others
        as for `score`.
    """
    groups = len(config)
    models = weight.shape[1]
    placed = np.zeros((groups, models), dtype=np.bool_)
    best = placed.copy()
    used = np.zeros(groups)
    received = np.zeros(groups, dtype=np.int64)
    good = np.zeros(models, dtype=np.int64)
    wanted = np.zeros(models, dtype=np.int64)
    for i in range(len(arrival)):
        wanted[model[i]] += 1
    best_score = -np.inf
    best_attainment = 0.0
    runs = 0
    while True:
        now, attainment = score(
            arrival, model, slo, placed, config, stages, stage_time, fixed, received, good
        )
        runs += 1
        if now > best_score:
            best_score = now
            best_attainment = attainment
            best[:] = placed
        group_order = np.argsort(received, kind="mergesort")
        model_order = np.argsort(good - wanted, kind="mergesort")
        found = False
        for g in group_order:
            for m in model_order:
                if not placed[g, m] and used[g] + weight[config[g], m] <= budget:
                    placed[g, m] = True
                    used[g] += weight[config[g], m]
                    found = True
                    break
            if found:
                break
        if not found:
            break
    return best, best_score, best_attainment, runs
