"""Jobs that tune their own batch size: they learn a goodput model while they train.

Qiao et al., OSDI'21, sections 3 and 4.1; petuum/adaptdl, branch ``osdi21-artifact``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from windtunnel.policies.pollux.clock import Trained
from windtunnel.policies.pollux.fitting import Fitting
from windtunnel.throughput.goodput import BatchLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.throughput.goodput import GoodputModel


@dataclass
class Tuned(Trained):
    """A job whose batch size follows its GPUs and its gradient's noise.

    Attributes:
        measured: GPU type -> (nodes, GPUs, micro-batch) that it trained with -> seconds of a step,
            and of sync.
        models: fitted to them, by GPU type; one is missing where it has not trained yet.
        noise: scale of its gradient's noise when that was seen last, examples.
        tolerance: of fits; None = as fine as they go.
        on_one_gpu: applications that train on one GPU only, with the batch size given.
    """

    measured: dict[str, dict[tuple[int, int, int], tuple[float, float]]] = field(
        default_factory=dict
    )
    models: dict[str, GoodputModel] = field(default_factory=dict)
    noise: float = 1.0
    _speedups: tuple[object, np.ndarray] | None = None

    tolerance: ClassVar[float | None] = None
    on_one_gpu: ClassVar[Mapping[str, int]] = MappingProxyType({"ncf": 32_768})

    @property
    def kind(self) -> str:
        """Type of the GPUs that it has: there is one, which has no name."""
        return ""

    @cached_property
    def limits(self) -> BatchLimits:
        """Which batch sizes there are."""
        app = self.job.application
        return BatchLimits(app.first_batch, app.largest_batch, app.least_local, app.most_local)

    @property
    def limits_here(self) -> BatchLimits:
        """Which batch sizes there are on its GPUs."""
        return self.limits

    @property
    def most_gpus(self) -> int:
        """GPUs that it may have next: twice the most that it ever trained on, of any type."""
        if self.job.application.name in self.on_one_gpu:
            return 1
        seen = (gpus for of in self.measured.values() for _, gpus, _ in of)
        return min(max(2 * max(seen, default=0), 1), self.limits.largest // self.limits.least_local)

    @property
    def restarts(self) -> int:
        """Times that it was stopped to go on elsewhere."""
        return max(self.starts - 1, 0)

    def batch_size(self) -> tuple[int, int]:
        """Return the micro-batch and the accumulated steps that the model holds best."""
        app, gpus = self.application, len(self.nodes)
        if app.name in self.on_one_gpu:
            return app.fixed_batch(self.on_one_gpu[app.name], gpus)
        limits, model = self.limits_here, self.models.get(self.kind)
        if model is None:
            batch = max(limits.first, limits.least_local * gpus)
            return app.fixed_batch(batch, gpus, int(np.max(limits.most_local)))
        several = len(self.placement) > 1
        _, local, accumulated = model.best_batch(several, gpus, self.noise, limits)
        steps = int(accumulated[0])
        return min(int(local[0]), limits.largest // (gpus * (steps + 1))), steps

    def observe(self, local: int, accumulated: int) -> None:
        """Measure a step and the gradient's noise; a step of a new kind makes a new model."""
        app, gpus, placement = self.application, len(self.nodes), self.placement
        self.noise = app.noise_scale(gpus * local * (accumulated + 1), self.epoch)
        measured = self.measured.setdefault(self.kind, {})
        step = len(placement), gpus, local
        if step not in measured:
            measured[step] = app.step_time(placement, local)
            self.models[self.kind] = Fitting(measured).fitted(self.tolerance)

    def speedups(self, most: int) -> np.ndarray:
        """Return goodput by whether it is on several nodes, and by GPUs 0 to ``most``.

        Without a model it grows with the number of GPUs.
        """
        model = self.models.get("")
        if model is None:
            return np.tile(np.arange(most + 1.0), (2, 1))
        key = (model, self.noise, most)
        if self._speedups is None or self._speedups[0] != key:
            gpus = np.tile(np.arange(1, most + 1), 2)
            several = np.repeat([False, True], most)
            found, _, _ = model.best_batch(several, gpus, self.noise, self.limits)
            table = np.column_stack([np.zeros(2), found.reshape(2, most)])
            self._speedups = key, table
        return self._speedups[1]
