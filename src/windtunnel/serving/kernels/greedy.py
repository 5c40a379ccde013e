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
    clocks = np.full((groups, width), -np.inf)
    last = np.full(groups, -np.inf)
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


@njit(cache=True, nogil=True)
def refine(
    arrival, model, slo, config, stages, stage_time, weight, budget, fixed, start, most,
):  # fmt: skip
    """Climb from a placement by adding a replica, or putting it in another's place, while it helps.

    Models with the most unserved requests are tried first, in the groups that received the least;
    what gives way is the model whose requests are served best. The first better one is taken.

    Args:
        start: the placement, (groups, models).
        most: simulations at most.

    Returns:
        As `replicate`.
    """
    groups = len(config)
    models = weight.shape[1]
    best = start.copy()
    used = np.zeros(groups)
    for g in range(groups):
        for m in range(models):
            if best[g, m]:
                used[g] += weight[config[g], m]
    received = np.zeros(groups, dtype=np.int64)
    good = np.zeros(models, dtype=np.int64)
    new_received = received.copy()
    new_good = good.copy()
    wanted = np.zeros(models, dtype=np.int64)
    for i in range(len(arrival)):
        wanted[model[i]] += 1
    best_score, best_attainment = score(
        arrival, model, slo, best, config, stages, stage_time, fixed, received, good
    )
    runs = 1
    improved = True
    while improved and runs < most:
        improved = False
        group_order = np.argsort(received, kind="mergesort")
        model_order = np.argsort(good - wanted, kind="mergesort")
        for m in model_order:
            if good[m] == wanted[m]:
                break
            for g in group_order:
                if best[g, m]:
                    continue
                add = weight[config[g], m]
                for back in range(-1, models):
                    # First nobody gives way, then the models from the best served on.
                    h = -1 if back < 0 else model_order[models - 1 - back]
                    if h >= 0 and (not best[g, h] or h == m):
                        continue
                    without = used[g] - (weight[config[g], h] if h >= 0 else 0.0)
                    if not without + add <= budget:
                        continue
                    best[g, m] = True
                    if h >= 0:
                        best[g, h] = False
                    value, attainment = score(
                        arrival, model, slo, best, config, stages, stage_time, fixed,
                        new_received, new_good,
                    )  # fmt: skip
                    runs += 1
                    if value > best_score:
                        best_score = value
                        best_attainment = attainment
                        used[g] = without + add
                        received[:] = new_received
                        good[:] = new_good
                        improved = True
                    else:
                        best[g, m] = False
                        if h >= 0:
                            best[g, h] = True
                    if improved or runs >= most:
                        break
                if improved or runs >= most:
                    break
            if improved or runs >= most:
                break
    return best, best_score, best_attainment, runs
