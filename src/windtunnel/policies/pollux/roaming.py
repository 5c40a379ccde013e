"""Jobs that tune their batch size and may run on GPUs of several types.

Jayaram Subramanya et al., *Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling*,
SOSP'23; siasosp23/artifacts, ``sia-simulator/``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.policies.pollux.tuned import Tuned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.throughput.goodput import BatchLimits
    from windtunnel.throughput.training_profiles import Application

#: Published: s of a restart, and what speeds are divided by, by application.
_DELAYS = {"cifar10": 50, "deepspeech2": 25, "bert": 120, "yolov3": 80, "imagenet": 250, "ncf": 15}
_OTHER_DELAY = 30.0
_SLOWED = {"cifar10": 1.8, "ncf": 1.5}
_SLOWED |= dict.fromkeys(("imagenet", "yolov3", "bert", "deepspeech2"), 1.2)
#: Published: how finely a model is fitted.
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Machines:
    """The nodes of a cluster.

    Attributes:
        kinds: GPU type of each node; those of one type stand together.
        sizes: GPUs of each node.
        applications: by GPU type, then by name; who flies on one type needs none.
    """

    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    applications: Mapping[str, Mapping[str, Application]] = field(default_factory=dict)

    @cached_property
    def types(self) -> list[str]:
        """GPU types, in the order of the nodes."""
        return list(self._by_type)

    def nodes_of(self, kind: str) -> list[int]:
        """Return the nodes with GPUs of a type."""
        return self._by_type[kind]

    @cached_property
    def _by_type(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for node, kind in enumerate(self.kinds):
            found.setdefault(kind, []).append(node)
        return found


@dataclass
class Roaming(Tuned):
    """A job with a goodput model of each GPU type that it ran on.

    Attributes:
        machines: where it may run.
    """

    machines: Machines = field(kw_only=True)

    tolerance = _TOLERANCE
    on_one_gpu = MappingProxyType({})

    @property
    def kind(self) -> str:
        """Type of the GPUs that it has."""
        return self.machines.kinds[self.nodes[0]]

    @property
    def kept(self) -> tuple[str, tuple[int, ...]] | None:
        """What must change to cost a restart: the type, or the number on a node."""
        return (self.kind, self.placement) if self.nodes else None

    @property
    def application(self) -> Application:
        """What it trains, on GPUs of its type."""
        return self.on(self.kind) if self.nodes else self.job.application

    @property
    def speed(self) -> float:
        """Part of the measured speed that it trains with."""
        return 1 / _SLOWED.get(self.job.application.name, 1.0)

    @property
    def restart_time(self) -> float:
        """Seconds that a restart costs."""
        return _DELAYS.get(self.job.application.name, _OTHER_DELAY)

    def on(self, kind: str) -> Application:
        """Return what it trains, on GPUs of a type."""
        return self.machines.applications[kind][self.job.application.name]

    @property
    def limits_here(self) -> BatchLimits:
        """Which batch sizes there are on its GPUs."""
        return self.limits_on(self.kind, [self.placement])

    def limits_on(self, kind: str, placements: Sequence[tuple[int, ...]]) -> BatchLimits:
        """Return which batch sizes there are on each of some placements of a GPU type."""
        most = [self.on(kind).largest_local(placement) for placement in placements]
        return replace(self.limits, most_local=np.array(most))
