"""Whether a plan fits into memory: bytes of states and activations, by plan.

States are those of mixed-precision Adam, 16 bytes a parameter (Rajbhandari et al., *ZeRO*, SC'20):
weights 2, gradients 2, optimizer 12. Activations of a transformer layer are 34 bytes per token and
hidden unit (Korthikanti et al., MLSys'23, equation 2 without the attention matrix). It is an
estimate: measured limits of a model rule over it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windtunnel.throughput.plans import Plan

_WEIGHTS, _GRADIENTS, _OPTIMIZER = 2.0, 2.0, 12.0
_ACTIVATIONS = 34.0


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a plan needs for each GPU.

    Attributes:
        states: weights, gradients and optimizer on the GPU.
        activations: what the forward pass of a micro-batch keeps on the GPU.
        host: what stands in the node's memory instead.
    """

    states: float
    activations: float
    host: float

    @property
    def gpu(self) -> float:
        """All that stands on the GPU."""
        return self.states + self.activations


def estimate(
    plan: Plan,
    num_gpus: int,
    *,
    parameters: int,
    hidden: int | None = None,
    layers: int | None = None,
    sequence: int | None = None,
    micro_batch: float = 1,
) -> Memory:
    """Return what a plan needs for each of its GPUs.

    Args:
        plan: the plan.
        num_gpus: GPUs that it runs on.
        parameters: number of parameters.
        hidden: hidden size; None, as the next two, leaves activations out.
        layers: layers.
        sequence: tokens of a sample.
        micro_batch: samples that go through a GPU together; where gradients are accumulated, one
            suffices.

    Raises:
        SpecError: the plan needs another number of GPUs.

    >>> from windtunnel.throughput.plans import Plan
    >>> estimate(Plan.parse("zero-dp"), 7, parameters=10**9).states  # 2 + 14 / 7 bytes each
    4000000000.0
    """
    pipeline, tensor, data = plan.degrees(num_gpus)
    host = 0.0
    if plan.family == "zero-offload":
        states = _WEIGHTS + _GRADIENTS
        host = _OPTIMIZER / data
    elif plan.family == "zero-dp":
        states = _WEIGHTS + (_GRADIENTS + _OPTIMIZER) / data
    else:
        states = (_WEIGHTS + _GRADIENTS + _OPTIMIZER) / (pipeline * tensor)
    kept = 0.0
    if hidden is not None and layers is not None and sequence is not None:
        kept = _ACTIVATIONS * hidden * sequence * layers * micro_batch / (pipeline * tensor)
        if plan.checkpointing:
            kept /= math.sqrt(layers)  # a checkpoint every sqrt(layers) layers (Chen et al., 2016)
    return Memory(states * parameters, kept, host * parameters)
