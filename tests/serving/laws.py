"""Queueing theory that the simulators must meet; formulas in docs/guides/serving.md."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def md1(rate: float, service: float) -> float:
    """Return the mean sojourn of M/D/1, s."""
    load = rate * service
    return service + load * service / (2 * (1 - load))


def pipeline(rate: float, stages: np.ndarray) -> float:
    """Return the mean sojourn of Poisson arrivals through deterministic stages, s."""
    return float(stages.sum()) + md1(rate, float(stages.max())) - float(stages.max())


def md_c(rate: float, service: float, servers: int) -> float:
    """Return the mean sojourn of M/D/c, s: Crommelin's embedded chain, then Little's law."""
    size = 400
    mean = rate * service
    arrive = np.exp(
        np.arange(size) * math.log(mean) - mean - [math.lgamma(k + 1) for k in range(size)]
    )
    law = np.zeros(size)
    law[0] = 1.0
    for _ in range(5000):
        left = np.concatenate([[law[: servers + 1].sum()], law[servers + 1 :]])
        fresh = np.convolve(left, arrive)[:size]
        done = np.abs(fresh - law).max() < 1e-14
        law = fresh
        if done:
            break
    return float(law @ np.arange(size)) / law.sum() / rate


def attainment(rate: float, service: float, slo: float) -> float:
    """Return the share of M/D/1 that is served within its SLO, if the others are refused."""
    slack = slo - service
    if slack < 0:
        return 0.0
    lam, d, tau = Fraction(rate), Fraction(service), Fraction(slack)
    # Terms alternate in sign: polynomials exactly, and the exponential out of the sum.
    total = 0.0
    steps = int(tau // d)
    for j in range(steps + 1):
        x = lam * (j * d - tau)
        total += float(x**j / math.factorial(j)) * math.exp(-float(x))
    load = rate * service
    return total / (1 + load * total)
