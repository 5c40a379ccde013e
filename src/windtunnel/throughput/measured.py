"""Measured training speeds: Gavel's throughput tables, and the part of them that comes with us.

Narayanan et al., OSDI'20; files ``simulation_throughputs.json`` and
``physical_cluster_throughputs.json`` of stanford-futuredata/gavel. A job type is a model with its
batch size and a number of GPUs; speeds are steps per second of the whole gang.
"""

from __future__ import annotations

import ast
import json
import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from windtunnel.errors import TraceError, quote

#: Model with its batch size, and GPUs of the gang.
JobType: TypeAlias = tuple[str, int]

#: The type whose speeds turn steps into ideal durations.
REFERENCE_TYPE = "v100"


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that Gavel's generator draws, with all its batch sizes.

    Attributes:
        name: the model.
        batch_sizes: in the order of the published templates; empty = it has only one.
        command: how it is started, with ``{batch}`` for the batch size.
        working_directory: where.
        steps_argument: name of the argument that holds the number of steps.
        needs_data: whether it reads a data set.
        distributed: whether it can have more than one GPU.
        speeds: batch size (0 = none) -> GPUs -> steps per second on k80, p100, v100.
    """

    name: str
    batch_sizes: list[int]
    command: str
    working_directory: str
    steps_argument: str
    needs_data: bool
    distributed: bool
    speeds: dict[int, dict[int, list[float]]]

    def models(self) -> list[tuple[str, str, int]]:
        """Return model with batch size, command and batch size (0 = none) of each template."""
        if not self.batch_sizes:
            return [(self.name, self.command, 0)]
        return [
            (f"{self.name} (batch size {size})", self.command.replace("{batch}", str(size)), size)
            for size in self.batch_sizes
        ]


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu_types: list[str]
    families: list[Family]


@dataclass(frozen=True)
class ThroughputTable:
    """Measured speeds.

    Attributes:
        gpu_types: the types of the table, sorted; a name with ``_unconsolidated`` stands for GPUs
            spread over nodes.
        alone: GPU type -> job type -> steps per second; 0 = does not fit in memory.
        together: GPU type -> two job types -> steps per second of each on the same GPUs; 0 = they
            cannot share. Empty where nothing is known of sharing.
    """

    gpu_types: tuple[str, ...]
    alone: dict[str, dict[JobType, float]]
    together: dict[str, dict[tuple[JobType, JobType], tuple[float, float]]] = field(
        default_factory=dict
    )

    @property
    def job_types(self) -> tuple[JobType, ...]:
        """The job types known on at least one GPU type, sorted."""
        return tuple(sorted(self.job_types_known))

    @cached_property
    def job_types_known(self) -> frozenset[JobType]:
        """The job types known on at least one GPU type."""
        return frozenset(job for speeds in self.alone.values() for job in speeds)

    def speed(self, model: str, num_gpus: float, gpu_type: str) -> float | None:
        """Return steps per second of a job alone; None where it was not measured."""
        gang = int(num_gpus)
        if gang != num_gpus:
            return None
        return self.alone.get(gpu_type, {}).get((model, gang))

    def pair_speeds(self, one: JobType, other: JobType, gpu_type: str) -> tuple[float, float]:
        """Return steps per second of two jobs on the same GPUs; (0, 0) where they cannot share."""
        return self.together.get(gpu_type, {}).get((one, other), (0.0, 0.0))


@lru_cache(maxsize=1)
def gavel_families() -> tuple[Family, ...]:
    """Return the models of Gavel's generator, in its order."""
    return tuple(_facts().families)


@lru_cache(maxsize=1)
def gavel_speeds() -> ThroughputTable:
    """Return Gavel's simulation speeds of jobs alone on k80, p100 and v100.

    >>> round(gavel_speeds().speed("ResNet-50 (batch size 64)", 1, "v100"), 4)
    4.3948
    """
    facts = _facts()
    alone: dict[str, dict[JobType, float]] = {name: {} for name in facts.gpu_types}
    for family in facts.families:
        for model, _, size in family.models():
            for gang, speeds in family.speeds[size].items():
                for name, speed in zip(facts.gpu_types, speeds, strict=True):
                    alone[name][model, gang] = speed
    return ThroughputTable(tuple(facts.gpu_types), alone)


def _facts() -> _Facts:
    raw = resources.files("windtunnel.throughput").joinpath("gavel.toml").read_bytes()
    return msgspec.toml.decode(raw, type=_Facts, strict=False)


def read_throughputs(path: str | Path) -> ThroughputTable:
    """Read a throughput table in Gavel's JSON layout.

    ``GPU type -> "('<model>', <GPUs>)" -> "null" | "('<model>', <GPUs>)" -> number | pair``.

    Args:
        path: the file.

    Raises:
        TraceError: it cannot be read or is not such a table; names the place.
    """
    file = str(path)
    try:
        data = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON text"
        raise TraceError(file, "a readable throughput table", hint=f"{reason}.") from error
    if not isinstance(data, dict) or not data:
        raise TraceError(file, "an object of speeds by GPU type", value=data)
    alone: dict[str, dict[JobType, float]] = {}
    together: dict[str, dict[tuple[JobType, JobType], tuple[float, float]]] = {}
    for gpu_type, jobs in data.items():
        alone[gpu_type], together[gpu_type] = {}, {}
        for name, others in _entries(file, jobs, gpu_type):
            one = _job_type(file, name)
            for other, value in _entries(file, others, f"{gpu_type}.{name}"):
                if other == "null":
                    alone[gpu_type][one] = _speed(file, value, f"{gpu_type}.{name}")
                    continue
                both = value if isinstance(value, list) and len(value) == 2 else (None, None)  # noqa: PLR2004
                first, second = (_speed(file, v, f"{gpu_type}.{name}.{other}") for v in both)
                together[gpu_type][one, _job_type(file, other)] = (first, second)
    return ThroughputTable(tuple(sorted(alone)), alone, together)


def _entries(file: str, value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise TraceError(file, "an object", column=where, value=value)
    return list(value.items())


def _job_type(file: str, text: str) -> JobType:
    """Return the job type that the text of a Python tuple names."""
    try:
        model, gang = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise TraceError(file, "a key like ('LM (batch size 5)', 1)", value=text) from error
    if not isinstance(model, str) or not isinstance(gang, int) or gang < 1:
        raise TraceError(file, "a key like ('LM (batch size 5)', 1)", value=text)
    return model, gang


def _speed(file: str, value: Any, where: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        expected = "steps per second, a finite number >= 0, or two for a pair"
        raise TraceError(file, expected, column=quote(where).strip("'"), value=value)
    return float(value)
