"""`TrainingFacts`: what was measured, fitted and stated of one kind of training job."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from windtunnel.throughput.options import as_shape
from windtunnel.throughput.three_d import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.throughput.analytic import Bandwidths, Parameters
    from windtunnel.throughput.options import Shape
    from windtunnel.throughput.plans import Plan
    from windtunnel.throughput.tables import MeasuredTable, Measurement, ProfiledPoint
    from windtunnel.throughput.three_d import Costs


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """What the published scheduler reads of a model, where it differs from ours or not.

    Attributes:
        parameters: number of parameters.
        hidden: hidden size.
        layers: layers.
        sequence: tokens of a sample.
        bandwidths: GB/s.
        fitted: the seven parameters.
        sizes: GPUs -> placements that it tries, in its order; only models of 3D plans have them.
        plans: placement -> the one plan that it gives it.
    """

    parameters: int
    hidden: int
    layers: int
    sequence: int
    bandwidths: Bandwidths
    fitted: Parameters
    sizes: Mapping[int, tuple[str, ...]]
    plans: Mapping[str, Plan]


@dataclass(frozen=True, eq=False)
class TrainingFacts:
    """What is known of a model.

    Attributes:
        name: the model.
        title: what it is, for readers.
        global_batch_size: samples of an iteration, whatever the plan.
        parameters: number of parameters; None = unknown.
        hidden: hidden size; None = unknown.
        layers: layers; None = unknown.
        sequence: tokens of a sample; None = unknown.
        table: measured points.
        limits: data-parallel family -> largest samples on a GPU without and with checkpointing; 0
            = not at all. They rule over any estimate of memory, with ``placements``. Empty =
            unknown: memory is estimated.
        placements: 3D plan -> shapes it may run on beside the measured ones, where limits are.
        forward_time: seconds of the forward pass of the global batch on one GPU; None = unknown.
        forward_divisors: GPUs -> what the forward time is divided by, where not by the GPUs.
        bandwidths: GB/s inside a node; None = unknown.
        network: GB/s of one of a node's network cards; None = unknown.
        gpus_per_card: GPUs that share a network card.
        gpu_memory_gib: memory of a GPU, GiB; None = unknown.
        fitted: parameters of the analytic model; None = not fitted.
        three_d: costs of `windtunnel.throughput.three_d`; None = not fitted.
        profile: the points that ``fitted`` was fitted to.
        offload_threads: CPU threads a GPU of measured offload points that do not tell theirs.
        reference_iteration_time: seconds that speeds are normalised by; None = none published.
        stored: what the published scheduler reads; None = it does not know the model.
        gpu_type: GPUs that it was measured on; None = any.
        provenance: where the numbers come from.
        notes: what to mind about them.
    """

    name: str
    title: str
    global_batch_size: int
    table: MeasuredTable
    parameters: int | None = None
    hidden: int | None = None
    layers: int | None = None
    sequence: int | None = None
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    placements: Mapping[Plan, tuple[Shape, ...]] = field(default_factory=dict)
    forward_time: float | None = None
    forward_divisors: Mapping[int, float] = field(default_factory=dict)
    bandwidths: Bandwidths | None = None
    network: float | None = None
    gpus_per_card: int = 1
    gpu_memory_gib: float | None = None
    fitted: Parameters | None = None
    three_d: Costs | None = None
    profile: tuple[ProfiledPoint, ...] = ()
    offload_threads: int | None = None
    reference_iteration_time: float | None = None
    stored: StoredRecord | None = None
    gpu_type: str | None = None
    provenance: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> Sizes | None:
        """What costs of 3D plans depend on; None = not all of it is known."""
        known = self.parameters, self.hidden, self.layers, self.sequence
        parameters, hidden, layers, sequence = known
        if parameters is None or hidden is None or layers is None or sequence is None:
            return None
        batch, per_card = self.global_batch_size, self.gpus_per_card
        return Sizes(batch, parameters, hidden, layers, sequence, per_card)

    def is_measured(self, plan: Plan, shape: Sequence[int]) -> bool:
        """Return whether this plan was measured on this very shape, and ran."""
        return any(row.iteration_time is not None for row in self.table.at(plan, as_shape(shape)))

    def sizes_of(self, plan: Plan) -> frozenset[int]:
        """Return the GPU counts that a plan was measured or profiled at."""
        return self._sizes_by_plan.get(plan, frozenset())

    @cached_property
    def _sizes_by_plan(self) -> dict[Plan, frozenset[int]]:
        sizes: dict[Plan, set[int]] = {}
        for plan, shape in self.table.keys:
            if self.is_measured(plan, shape):
                sizes.setdefault(plan, set()).add(sum(shape))
        for point in self.profile:
            sizes.setdefault(point.plan, set()).add(point.gpus)
        return {plan: frozenset(found) for plan, found in sizes.items()}

    def threads_of(self, row: Measurement) -> int | None:
        """Return the CPU threads a GPU that a measurement of an offload plan had."""
        return self.offload_threads if row.threads is None else row.threads
