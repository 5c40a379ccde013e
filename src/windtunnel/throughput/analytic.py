"""The analytic model of an iteration, in the published form (MLSys'25, sections 4 and 5).

Times are milliseconds and bandwidths GB/s throughout this module, as published, because some of
the fitted numbers are milliseconds: MB over GB/s are ms. ``TrainingModel`` speaks in seconds.
Symbols: b backward, c all-reduce, gamma = k_sync the degree of overlap (1 = none, infinite =
perfect), o what crosses PCIe for an optimizer on CPUs, theta = parameters / 2^20.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from windtunnel.throughput.plans import Plan

#: Multipliers of forward, backward and communication time.
Factors: TypeAlias = tuple[float, float, float]

#: Bytes that an all-reduce sends per parameter and replica pair, and those of an offloaded step.
_REDUCED, _OFFLOADED = 8.0, 4.0
#: GB/s between nodes in the published formula of 3D plans.
_BETWEEN_NODES = 20.0


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is fitted to a model's measured points, in the published order.

    Attributes:
        k_bwd: backward time over forward time, >= 1.
        k_sync: overlap of backward and communication, >= 1.
        k_opt: ms of an optimizer step per 2^20 parameters.
        k_os_offload: the same on one CPU thread.
        k_const: ms of every iteration.
        k_off: ms of every backward pass whose gradients go to the CPUs.
        k_swap: ms of every update.
    """

    k_bwd: float
    k_sync: float
    k_opt: float
    k_os_offload: float
    k_const: float
    k_off: float
    k_swap: float

    def as_tuple(self) -> tuple[float, ...]:
        """Return the seven numbers in the published order."""
        return msgspec.structs.astuple(self)


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """What the fit is given, GB/s.

    Attributes:
        pcie: between a GPU and its CPUs.
        nvlink: between the GPUs of a node.
    """

    pcie: float
    nvlink: float


@dataclass(frozen=True, slots=True)
class Phases:
    """An iteration's parts, ms.

    Attributes:
        forward: the forward pass, recomputation included.
        sync: backward and communication, overlapped, with what goes to the CPUs.
        update: optimizer, with swapping and what comes from the CPUs.
        constant: the rest.
    """

    forward: float
    sync: float
    update: float
    constant: float

    @property
    def total(self) -> float:
        """The iteration, ms."""
        return self.forward + self.sync + self.update + self.constant


def overlapped(one: float, other: float, k_sync: float) -> float:
    """Return the time of two activities that overlap: their ``k_sync``-norm.

    >>> overlapped(3, 4, 1), overlapped(3, 4, 2)
    (7.0, 5.0)
    """
    longest, shortest = max(one, other), min(one, other)
    if longest == 0:
        return 0.0
    # The larger one is taken out of the power, which would overflow from k_sync = 100 on.
    return float(longest * (1 + (shortest / longest) ** k_sync) ** (1 / k_sync))


def data_parallel(
    parameters: Parameters,
    bandwidths: Bandwidths,
    plan: Plan,
    *,
    forward: float,
    theta: float,
    gpus: int,
    threads: float = 1,
    factors: Factors | None = None,
    network: float | None = None,
) -> Phases:
    """Return the parts of an iteration of a data-parallel plan (``dp``, ``zero-*``).

    Args:
        parameters: the model's.
        bandwidths: the machine's.
        plan: none of the 3D plans.
        forward: ms of the forward pass of one GPU's samples.
        theta: parameters / 2^20.
        gpus: replicas, >= 1.
        threads: CPU threads with each GPU, > 0; an optimizer on CPUs uses them.
        factors: multipliers of forward, backward and communication; by default (1, 1, 1), and 2
            for the forward pass where it is computed again.
        network: GB/s of the all-reduce where not NVLink's.
    """
    p = parameters
    again, times, sent = factors or (2.0 if plan.checkpointing else 1.0, 1.0, 1.0)
    offloads = plan.family == "zero-offload"
    backward = p.k_bwd * forward
    volume = sent * _REDUCED * theta * (gpus - 1) / gpus
    sync = overlapped(volume / (network or bandwidths.nvlink), backward, p.k_sync)
    crossing = _OFFLOADED * (theta / gpus) / bandwidths.pcie if offloads else 0.0
    if offloads:
        sync += p.k_off + crossing
        step = p.k_os_offload * theta / (gpus * threads)
    else:
        step = p.k_opt * theta / (gpus if plan.family == "zero-dp" else 1)
    return Phases(
        forward=again * forward,
        sync=(times - 1) * backward + sync,
        update=step + p.k_swap + crossing,
        constant=p.k_const,
    )


def published_3d(
    parameters: Parameters,
    bandwidths: Bandwidths,
    degrees: tuple[int, int, int],
    *,
    forward: float,
    theta: float,
    nodes: int,
    gpus_per_node: int,
    batch: int,
    layers: int,
    activation: int,
) -> Phases:
    """Return the parts of an iteration of a 3D plan by the published formula.

    It is kept for comparison: see `windtunnel.throughput.three_d` for the form to predict with.

    Args:
        parameters: the model's.
        bandwidths: the machine's.
        degrees: pipeline, tensor, data.
        forward: ms of the forward pass, however obtained.
        theta: parameters / 2^20.
        nodes: nodes.
        gpus_per_node: GPUs on each.
        batch: samples of the global batch.
        layers: layers of the model.
        activation: hidden size times sequence length.
    """
    pipeline, tensor, data = degrees
    micro_batch = batch // data
    mebi = 2.0**20
    layered = 32 * activation * (tensor - 1) * micro_batch * layers / tensor / mebi
    staged = 0.0
    if pipeline > 1:
        handed_on = 16 * micro_batch * activation // tensor
        staged = pipeline * handed_on / _BETWEEN_NODES / mebi
    inside = gpus_per_node > tensor and pipeline == nodes
    reduced = (_REDUCED * (data - 1) / data * theta / tensor) // 1 / pipeline
    reduced /= bandwidths.nvlink if inside else _BETWEEN_NODES
    return Phases(
        forward=forward,
        sync=overlapped(reduced, parameters.k_bwd * forward, parameters.k_sync)
        + staged
        + layered / bandwidths.nvlink,
        update=parameters.k_opt * theta / (tensor * pipeline),
        constant=parameters.k_const,
    )
