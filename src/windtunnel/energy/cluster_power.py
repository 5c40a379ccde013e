"""`PowerModel`: what a cluster draws, by GPU type, kind of work, host and building."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError
from windtunnel.toml_file import read_toml

if TYPE_CHECKING:
    from pathlib import Path

#: The entry of ``gpus`` for types that have none of their own, and for GPUs without a type.
DEFAULT = "default"


class GpuPower(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one GPU draws.

    Attributes:
        idle_w: W while no job holds it.
        active_w: W while a job of factor 1 holds it; at least ``idle_w``.
    """

    idle_w: float
    active_w: float


class PowerModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a cluster draws.

    A GPU held by a job of factor f draws ``idle_w + f * (active_w - idle_w)``; a held fraction of
    a GPU draws that fraction, and what is left of it idles.

    Attributes:
        gpus: GPU type -> watts; ``default`` for types not named and for GPUs without a type.
        workloads: kind of work (the jobs' ``workload``) -> factor f, at least 0; 1 if not named.
        host_w: W of a node besides its GPUs, drawn at all times.
        pue: power usage effectiveness: what the building draws for each watt of the machines.
    """

    gpus: dict[str, GpuPower]
    workloads: dict[str, float] = {}
    host_w: float = 0.0
    pue: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            SpecError: a number is out of range, or no GPU is described.
        """
        if not self.gpus:
            raise SpecError("power.gpus", "no GPU type; expected at least one, or 'default'")
        for name, gpu in self.gpus.items():
            if not 0 <= gpu.idle_w <= gpu.active_w < math.inf:
                found = f"idle_w = {gpu.idle_w:g}, active_w = {gpu.active_w:g}"
                message = f"found {found}; expected 0 <= idle_w <= active_w"
                raise SpecError(f"power.gpus.{name}", message)
        for name, factor in self.workloads.items():
            if not 0 <= factor < math.inf:
                message = f"found {factor:g}; expected a factor of at least 0"
                raise SpecError(f"power.workloads.{name}", message)
        if not 0 <= self.host_w < math.inf:
            raise SpecError("power.host_w", f"found {self.host_w:g}; expected W of at least 0")
        if not 1 <= self.pue < math.inf:
            raise SpecError("power.pue", f"found {self.pue:g}; expected at least 1")

    @classmethod
    def from_toml(cls, path: str | Path) -> PowerModel:
        """Read a model from a TOML file with the fields of the model.

        Raises:
            SpecError: the file is missing, not TOML, or breaks the rules; names the key.
        """
        return cls.from_mapping(read_toml(path), source=str(path))

    @classmethod
    def from_mapping(cls, raw: dict[str, Any], *, source: str = "power") -> PowerModel:
        """Build a model from plain data (parsed TOML or JSON).

        Raises:
            SpecError: an unknown key (the nearest is suggested), a wrong type or value.
        """
        for key in raw:
            if key not in cls.__struct_fields__:
                raise SpecError.unknown(f"{source}: $.{key}", key, cls.__struct_fields__)
        try:
            return msgspec.convert(raw, cls)
        except msgspec.ValidationError as error:
            raise SpecError(source, str(error)) from error

    def to_mapping(self) -> dict[str, Any]:
        """Return the model as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def gpu(self, gpu_type: str | None) -> GpuPower:
        """Return what a GPU of the type draws.

        Raises:
            SpecError: the model describes neither the type nor ``default``.
        """
        found = self.gpus.get(DEFAULT) if gpu_type is None else self.gpus.get(gpu_type)
        found = found or self.gpus.get(DEFAULT)
        if found is None:
            if gpu_type is None:
                message = "the cluster's GPUs have no type; expected an entry 'default'"
                raise SpecError("power.gpus", message)
            raise SpecError.unknown("power.gpus", gpu_type, (*self.gpus, DEFAULT))
        return found
