"""Execution plans: how a training job is spread over its GPUs.

Yuan et al., *Morphling: Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling*
(MLSys'25). The global batch never changes, hence neither does what is learnt; only speed, memory
and the resources needed differ. The published words for plans:

==================  ============================================================================
``ga``              data parallel (``dp``); gradients accumulated where the batch needs it
``gc``              data parallel, activations recomputed (gradient checkpointing)
``zero-dp``         ZeRO stage 2: gradients and optimizer state spread over the replicas
``zero-offload``    ZeRO stage 2 whose optimizer runs on the CPUs; ``+gc`` recomputes, too
``244``             pipeline 2 x tensor 4 x data 4 = 32 GPUs; degrees above 9 as ``2x16x1``
``tp+ga``           tensor parallel over all GPUs, gradients accumulated
==================  ============================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What is spread, and how.
Family: TypeAlias = Literal["dp", "zero-dp", "zero-offload", "3d"]

#: The words of plans that are no degrees.
WORDS: tuple[str, ...] = (
    "ga",
    "gc",
    "zero-dp",
    "zero-dp+gc",
    "zero-offload",
    "zero-offload+gc",
    "tp+ga",
)
#: Other spellings. Data-parallel plans accumulate whenever they must, so they need not say it.
_ALIASES = {
    "dp": "ga",
    "dp+gc": "gc",
    "ga+gc": "gc",
    "zero-dp+ga": "zero-dp",
    "zero-offload+ga": "zero-offload",
}
_DIGITS = re.compile(r"[1-9]{3}", re.ASCII)
_DEGREES = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})x([1-9]\d{0,5})", re.ASCII)
#: CPUs that a GPU asks for where the optimizer runs on CPUs (the published demand table).
OFFLOAD_CPUS = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """How a job's work is divided among its GPUs. Hashable; equal where it means the same.

    Attributes:
        family: ``dp``, ``zero-dp``, ``zero-offload`` or ``3d``.
        pipeline: stages that the layers are cut into; 1 but for ``3d``.
        tensor: GPUs that share each layer; None = all of the job's.
        data: replicas; None = as many as the job has GPUs.
        checkpointing: the forward pass is computed again instead of kept.
        accumulation: a ``3d`` plan that sums gradients over micro-batches (``tp+ga``). The other
            families do so whenever a GPU cannot hold its part of the batch.

    Raises:
        SpecError: degrees below 1, or ones that the family does not have.
    """

    family: Family
    pipeline: int = 1
    tensor: int | None = 1
    data: int | None = None
    checkpointing: bool = False
    accumulation: bool = False

    def __post_init__(self) -> None:
        degrees = [d for d in (self.pipeline, self.tensor, self.data) if d is not None]
        if any(degree < 1 for degree in degrees):
            raise SpecError("plan", f"found degrees {degrees}; expected whole numbers >= 1.")
        if self.family == "3d":
            whole = self.tensor is None and (self.pipeline, self.data) == (1, 1)
            if not (whole or (self.tensor is not None and self.data is not None)):
                raise SpecError("plan", "a 3D plan needs its pipeline, tensor and data degrees.")
            if self.checkpointing or self.accumulation != whole:
                raise SpecError("plan", "a 3D plan has neither checkpointing nor accumulation.")
        elif (self.pipeline, self.tensor, self.data) != (1, 1, None) or self.accumulation:
            raise SpecError("plan", f"{self.family} divides the batch only: it has no degrees.")

    @property
    def name(self) -> str:
        """The published word."""
        if self.family == "3d":
            degrees = (self.pipeline, self.tensor, self.data)
            if self.tensor is None:
                return "tp+ga"
            joint = "" if all(d is not None and d <= 9 for d in degrees) else "x"  # noqa: PLR2004
            return joint.join(map(str, degrees))
        if self.family == "dp":
            return "gc" if self.checkpointing else "ga"
        return self.family + "+gc" * self.checkpointing

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Return the plan that a word names.

        Raises:
            SpecError: there is none; the nearest is suggested.

        >>> Plan.parse("244").degrees(32)
        (2, 4, 4)
        """
        return _parse(str(text))

    @property
    def num_gpus(self) -> int | None:
        """GPUs that it needs; None = runs on any number."""
        if self.tensor is None or self.data is None:
            return None
        return self.pipeline * self.tensor * self.data

    @property
    def cpus_per_gpu(self) -> int:
        """CPUs that it asks for with each GPU (the published demand tables)."""
        return OFFLOAD_CPUS if self.family == "zero-offload" else 1

    def degrees(self, num_gpus: int) -> tuple[int, int, int]:
        """Return its pipeline, tensor and data degrees on so many GPUs.

        Raises:
            SpecError: it needs another number.
        """
        if self.num_gpus not in {None, num_gpus} or num_gpus < 1:
            raise SpecError("plan", f"{self.name} needs {self.num_gpus} GPUs, not {num_gpus}.")
        if self.family != "3d":
            return 1, 1, num_gpus
        return self.pipeline, self.tensor or num_gpus, self.data or 1

    def obstacle(self, shape: Sequence[int], *, batch: int, layers: int | None) -> str | None:
        """Return why it cannot run on GPUs of this shape, memory aside; None = it can.

        Args:
            shape: GPUs on each node.
            batch: samples of the global batch.
            layers: layers of the model; None = unknown.
        """
        total = sum(shape)
        if self.num_gpus not in {None, total}:
            return f"it needs {self.num_gpus} GPUs, not {total}"
        pipeline, tensor, data = self.degrees(total)
        if batch % data:
            return f"{data} replicas cannot share {batch} samples equally"
        if any(gpus % tensor for gpus in shape):
            return f"its tensor groups of {tensor} do not fit inside nodes of {list(shape)} GPUs"
        if layers is not None and pipeline > layers:
            return f"{pipeline} stages cannot share {layers} layers"
        return None

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=1024)
def _parse(text: str) -> Plan:
    word = text.strip().lower()
    word = _ALIASES.get(word, word)
    if word == "tp+ga":
        return Plan("3d", tensor=None, data=1, accumulation=True)
    if word in WORDS:
        family = {"ga": "dp", "gc": "dp"}.get(word, word.removesuffix("+gc"))
        return Plan(family, checkpointing=word.endswith("gc"))  # type: ignore[arg-type] # a word's
    found = _DEGREES.fullmatch(word)
    degrees = found.groups() if found else word if _DIGITS.fullmatch(word) else None
    if degrees is None:
        known = SpecError.unknown("plan", text, WORDS)
        raise SpecError(
            "plan",
            f"{str(known).removeprefix('plan: ')} Or three degrees, pipeline, tensor and data, "
            f"such as {quote('244')}.",
        )
    pipeline, tensor, data = map(int, degrees)
    return Plan("3d", pipeline, tensor, data)
