"""Orders whose keys the kernel works out itself: what groups have used, and attained service.

Usage is forgotten by half every half-life, and every operation is that of
`windtunnel.policies.usage.DecayedUsage` in the same order, so that keys have the same bits.
"""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import exp, expm1, pow  # noqa: A004 - the one of C

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.rounding import in_32_bits


@cython.final
@cython.cclass
class UsageBooks:
    """What groups have used, and the keys that follow (`windtunnel.sim.usage_order`).

    Attributes:
        group: of each job.
        used: GPU-millionth-seconds of each group when it was changed last, the last entry all's.
        held: millionths of GPUs that it holds since.
        since: when that was, s.
    """

    group: cython.int[::1]
    parts: cython.double[::1]
    submit: cython.double[::1]
    size: cython.double[::1]
    priority: cython.double[::1]
    share: cython.double[::1]
    used: cython.double[::1]
    held: cython.double[::1]
    since: cython.double[::1]
    ratio: cython.double[::1]
    asked: cython.double[::1]
    all: cython.int
    decay: cython.double
    by_ratio: cython.bint
    age: cython.double
    max_age: cython.double
    fairshare: cython.double
    base: cython.double

    def __init__(
        self, order: object, rows: numpy.ndarray, submit: numpy.ndarray, decay: float
    ) -> None:
        groups = len(order.shares)
        self.group = numpy.asarray(order.group_of[rows], dtype=numpy.int32)
        self.parts = numpy.ascontiguousarray(order.parts[rows], dtype=numpy.float64)
        self.submit = submit
        self.size = numpy.ascontiguousarray(order.sizes[rows], dtype=numpy.float64)
        self.priority = numpy.ascontiguousarray(order.priorities[rows], dtype=numpy.float64)
        self.share = numpy.array(order.shares, dtype=numpy.float64)
        self.used, self.held = numpy.zeros(groups + 1), numpy.zeros(groups + 1)
        self.since, self.ratio = numpy.zeros(groups + 1), numpy.zeros(groups + 1)
        self.asked = numpy.full(groups + 1, numpy.nan)
        self.all = groups
        self.decay = decay
        self.by_ratio = order.by_ratio
        self.age, self.max_age = order.age, order.max_age
        self.fairshare = order.fairshare
        self.base = 2.0  # in a variable: compilers take another function for powers of a known 2

    @compiled
    def usage(self, group: cython.int, now: cython.double) -> cython.double:
        """Return what a group has used at ``now``."""
        used: cython.double = self.used[group]
        held: cython.double = self.held[group]
        passed: cython.double = now - self.since[group]
        if passed == 0 or (used == 0 and held == 0):
            return used
        if self.decay == 0:
            return used + held * passed
        return used * exp(-self.decay * passed) + held * (-expm1(-self.decay * passed) / self.decay)

    @compiled
    def charge(self, job: cython.int, sign: cython.double, now: cython.double) -> cython.void:
        """From ``now`` on a job's group holds its GPUs, or does so no more."""
        self._charge(self.group[job], sign * self.parts[job], now)
        self._charge(self.all, sign * self.parts[job], now)

    @compiled
    def _charge(self, group: cython.int, parts: cython.double, now: cython.double) -> cython.void:
        self.used[group] = self.usage(group, now)
        self.since[group] = now
        self.held[group] += parts

    @compiled
    def _ratio(self, group: cython.int, now: cython.double) -> cython.double:
        """Return U / S of a group."""
        part: cython.double = 0.0
        if self.asked[group] != now:
            total = self.usage(self.all, now)
            if total > 0:
                part = self.usage(group, now) / total
            self.ratio[group] = part / self.share[group]
            self.asked[group] = now
        return self.ratio[group]

    @compiled
    def key(self, job: cython.int, now: cython.double) -> cython.double:
        """Return the key of a job that waits at ``now``, lower first."""
        ratio: cython.double = self._ratio(self.group[job], now)
        if self.by_ratio:
            return in_32_bits(ratio)
        waited: cython.double = (now - self.submit[job]) / self.max_age
        if not waited < 1.0:
            waited = 1.0
        total: cython.double = self.age * waited
        total += self.size[job]
        total += self.fairshare * pow(self.base, -ratio)
        total += self.priority[job]
        return -in_32_bits(total)


@cython.final
@cython.cclass
class ServiceLevels:
    """Keys by attained service (`windtunnel.sim.contract.Levels`).

    Attributes:
        gpus: GPUs of each job.
        bounds: GPU-seconds at which the next level begins, ascending.
        keys: the key of each level, one more; empty = the service itself.
    """

    gpus: cython.double[::1]
    bounds: cython.double[::1]
    keys: cython.double[::1]
    num_bounds: cython.int
    num_keys: cython.int

    def __init__(self, gpus: numpy.ndarray, bounds: tuple, keys: tuple) -> None:
        self.gpus = gpus
        self.bounds = numpy.array([*(in_32_bits(bound) for bound in bounds), numpy.inf])
        self.keys = numpy.array([*keys, numpy.nan])
        self.num_bounds = len(bounds)
        self.num_keys = len(keys)

    @compiled
    def key(self, job: cython.int, run_time: cython.double) -> cython.double:
        """Return the key of a job that has been on its GPUs for so long, s."""
        service: cython.double = in_32_bits(run_time * self.gpus[job])
        if self.num_keys == 0:
            return service
        low: cython.int = 0
        high: cython.int = self.num_bounds
        while low < high:
            middle = (low + high) >> 1
            if service < self.bounds[middle]:
                high = middle
            else:
                low = middle + 1
        return self.keys[low]
