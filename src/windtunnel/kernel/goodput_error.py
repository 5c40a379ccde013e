"""How badly a goodput model explains measured step times; see `policies.pollux.goodput_model`."""

from __future__ import annotations

import cython
import numpy
from cython.cimports.libc.math import exp, log, sqrt

from windtunnel.kernel.marks import compiled


@cython.final
@cython.cclass
class GoodputError:
    """The error of seven parameters, and its gradient.

    Attributes:
        local: micro-batch of each measurement, examples.
        computing: log of the seconds of computing.
        step: log of the seconds of the whole step.
        beyond: GPUs beyond two.
        alpha: which parameter is the network's part without these; -1 = there is no network.
        least: seconds of what is no network, twice.
        gamma_weight: how dear gamma is.
        slope_weight: how dear are betas beside their alphas.
        values: parameters at which `work_out` is to work.
        gradient: of the error by them.
    """

    local: cython.double[::1]
    computing: cython.double[::1]
    step: cython.double[::1]
    beyond: cython.double[::1]
    alpha: cython.longlong[::1]
    least: cython.double
    gamma_weight: cython.double
    slope_weight: cython.double
    values: cython.double[::1]
    gradient: cython.double[::1]
    residual: cython.double[:, ::1]

    def __init__(
        self,
        local: cython.double[::1],
        computing: cython.double[::1],
        step: cython.double[::1],
        beyond: cython.double[::1],
        alpha: cython.longlong[::1],
        *,
        least: float,
        gamma_weight: float,
        slope_weight: float,
    ) -> None:
        self.local, self.computing, self.step = local, computing, step
        self.beyond, self.alpha, self.least = beyond, alpha, least
        self.gamma_weight, self.slope_weight = gamma_weight, slope_weight
        self.values, self.gradient = numpy.zeros(7), numpy.zeros(7)
        self.residual = numpy.zeros((local.shape[0], 2))

    def at(self, values: cython.double[::1]) -> tuple[float, numpy.ndarray]:
        """Return the error at some parameters, and its gradient."""
        self.values[:] = values
        error: cython.double = self.work_out()
        return error, numpy.array(self.gradient)

    @compiled
    def work_out(self) -> cython.double:
        """Return the error, and set its gradient."""
        count: cython.longlong = self.local.shape[0]
        of_computing: cython.double = 0.0
        of_step: cython.double = 0.0
        gamma: cython.double = self.values[6]
        for i in range(count):
            computing = log(self.values[0] + self.values[1] * self.local[i])
            network = log(self.network(i))
            # log of (computing^gamma + network^gamma)^(1/gamma), without overflow.
            ratio = gamma * (network - computing)
            if ratio > 0:
                added = gamma * network + log(1.0 + exp(-ratio))
            else:
                added = gamma * computing + log(1.0 + exp(ratio))
            self.residual[i, 0] = computing - self.computing[i]
            self.residual[i, 1] = added / gamma - self.step[i]
            of_computing += self.residual[i, 0] * self.residual[i, 0]
            of_step += self.residual[i, 1] * self.residual[i, 1]
        of_computing = sqrt(of_computing / count)
        of_step = sqrt(of_step / count)
        for i in range(7):
            self.gradient[i] = 0.0
        for i in range(count):
            self.add_slopes(i, of_computing * count, of_step * count)
        return of_computing + of_step + self.wanted()

    @compiled
    def network(self, i: cython.longlong) -> cython.double:
        """Return the seconds that the GPUs of a measurement take to agree."""
        a: cython.longlong = self.alpha[i]
        if a < 0:
            return self.least + self.least * self.beyond[i]
        return self.values[a] + self.values[a + 1] * self.beyond[i]

    @compiled
    def add_slopes(
        self, i: cython.longlong, by_computing: cython.double, by_step: cython.double
    ) -> cython.void:
        """Add what a measurement adds to the gradient."""
        a: cython.longlong = self.alpha[i]
        gamma: cython.double = self.values[6]
        first: cython.double = self.residual[i, 0] / by_computing if by_computing > 0 else 0.0
        second: cython.double = self.residual[i, 1] / by_step if by_step > 0 else 0.0
        computing: cython.double = self.values[0] + self.values[1] * self.local[i]
        network: cython.double = self.network(i)
        log_computing: cython.double = log(computing)
        log_network: cython.double = log(network)
        share: cython.double = 1.0 / (1.0 + exp(gamma * (log_network - log_computing)))
        log_step: cython.double = self.residual[i, 1] + self.step[i]
        by_time: cython.double = (first + second * share) / computing
        self.gradient[0] += by_time
        self.gradient[1] += by_time * self.local[i]
        if a >= 0:
            self.gradient[a] += second * (1.0 - share) / network
            self.gradient[a + 1] += second * (1.0 - share) / network * self.beyond[i]
        log_computing = share * log_computing + (1.0 - share) * log_network
        self.gradient[6] += second * (log_computing - log_step) / gamma

    @compiled
    def wanted(self) -> cython.double:
        """Return what is dear about the parameters by themselves, and add to the gradient."""
        a: cython.longlong
        gamma: cython.double = self.values[6] - 1
        error: cython.double = self.gamma_weight * gamma * gamma
        self.gradient[6] += 2 * self.gamma_weight * gamma
        for a in range(2, 6, 2):
            slope = self.values[a + 1] / self.values[a]
            error += self.slope_weight * slope * slope
            self.gradient[a] -= 2 * self.slope_weight * slope * slope / self.values[a]
            self.gradient[a + 1] += 2 * self.slope_weight * slope / self.values[a]
        return error
