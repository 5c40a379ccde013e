"""Jobs that tune their own batch size: they learn a goodput model while they train.

Qiao et al., OSDI'21, sections 3 and 4.1; petuum/adaptdl, branch ``osdi21-artifact``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.pollux.clock import Trained
from windtunnel.policies.pollux.fitting import Fitting
from windtunnel.throughput.goodput import BatchLimits

if TYPE_CHECKING:
    from windtunnel.throughput.goodput import GoodputModel

#: Applications that train on one GPU only, with the batch size given.
_HELD = {"ncf": 32_768}


@dataclass
class Tuned(Trained):
    """A job whose batch size follows its GPUs and its gradient's noise.

    Attributes:
        measured: (nodes, GPUs, micro-batch) that it trained with -> seconds of a step, and of sync.
        model: fitted to them; None = it has not trained yet.
        noise: scale of its gradient's noise when that was seen last, examples.
    """

    measured: dict[tuple[int, int, int], tuple[float, float]] = field(default_factory=dict)
    model: GoodputModel | None = None
    noise: float = 1.0
    _speedups: tuple[object, np.ndarray] | None = None

    @cached_property
    def limits(self) -> BatchLimits:
        """Which batch sizes there are."""
        app = self.job.application
        return BatchLimits(app.first_batch, app.largest_batch, app.least_local, app.most_local)

    @property
    def most_gpus(self) -> int:
        """GPUs that it may have next: twice the most that it ever trained on."""
        if self.job.application.name in _HELD:
            return 1
        seen = max((gpus for _, gpus, _ in self.measured), default=0)
        return min(max(2 * seen, 1), self.limits.largest // self.limits.least_local)

    @property
    def restarts(self) -> int:
        """Times that it was stopped to go on elsewhere."""
        return max(self.starts - 1, 0)

    def batch_size(self) -> tuple[int, int]:
        """Return the micro-batch and the accumulated steps that the model holds best."""
        app, gpus = self.job.application, len(self.nodes)
        if app.name in _HELD:
            return app.fixed_batch(_HELD[app.name], gpus)
        if self.model is None:
            least = self.limits.least_local * gpus
            return app.fixed_batch(max(self.limits.first, least), gpus)
        several = len(self.placement) > 1
        _, local, accumulated = self.model.best_batch(several, gpus, self.noise, self.limits)
        steps = int(accumulated[0])
        return min(int(local[0]), self.limits.largest // (gpus * (steps + 1))), steps

    def observe(self, local: int, accumulated: int) -> None:
        """Measure a step and the gradient's noise; a step of a new kind makes a new model."""
        app, gpus, placement = self.job.application, len(self.nodes), self.placement
        self.noise = app.noise_scale(gpus * local * (accumulated + 1), self.epoch)
        kind = len(placement), gpus, local
        if kind not in self.measured:
            self.measured[kind] = app.step_time(placement, local)
            self.model = Fitting(self.measured).fitted()

    def speedups(self, most: int) -> np.ndarray:
        """Return goodput by whether it is on several nodes, and by GPUs 0 to ``most``.

        Without a model it grows with the number of GPUs.
        """
        if self.model is None:
            return np.tile(np.arange(most + 1.0), (2, 1))
        key = (self.model, self.noise, most)
        if self._speedups is None or self._speedups[0] != key:
            gpus = np.tile(np.arange(1, most + 1), 2)
            several = np.repeat([False, True], most)
            found, _, _ = self.model.best_batch(several, gpus, self.noise, self.limits)
            table = np.column_stack([np.zeros(2), found.reshape(2, most)])
            self._speedups = key, table
        return self._speedups[1]
