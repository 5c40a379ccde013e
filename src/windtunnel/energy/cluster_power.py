"""`PowerModel`: what a cluster draws, by GPU type, kind of work, host and building."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.checked import checked_number
from windtunnel.cluster.gpu_types import named_as, spelling, spelt
from windtunnel.energy.limit_tables import Level, LimitTable, with_measured
from windtunnel.errors import SpecError, quote
from windtunnel.toml_file import read_toml, struct_of

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.cluster.spec import ClusterSpec

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
        asleep_w: W of a node that is powered off.
        pue: power usage effectiveness: what the building draws for each watt of the machines.
        limits: measured draw and speed at power limits, by kind of work and GPU type; work with a
            table draws what it says, in place of ``active_w`` and its factor.
    """

    gpus: dict[str, GpuPower]
    workloads: dict[str, float] = {}
    host_w: float = 0.0
    asleep_w: float = 0.0
    pue: float = 1.0
    limits: tuple[LimitTable, ...] = ()

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
            checked_number(f"power.workloads.{name}", factor, "a factor of at least 0", least=0)
        for name in ("host_w", "asleep_w"):
            checked_number(f"power.{name}", getattr(self, name), "W of at least 0", least=0)
        checked_number("power.pue", self.pue, "at least 1", least=1)
        self._check_tables()

    def _check_tables(self) -> None:
        keys = [(table.workload, _small(table.gpu_type)) for table in self.limits]
        for workload, gpu_type in keys:
            if keys.count((workload, gpu_type)) > 1:
                what = f"{quote(workload or 'all work')} on {quote(gpu_type or 'all types')}"
                raise SpecError("power.limits", f"found two tables of {what}; expected one")

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
        data = dict(raw)
        if isinstance(raw.get("limits"), list):
            data["limits"] = with_measured(raw["limits"], source)
        return struct_of(cls, data, source)

    def to_mapping(self) -> dict[str, Any]:
        """Return the model as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def of_cluster(self, cluster: ClusterSpec) -> PowerModel:
        """Return the model under the cluster's spelling of its GPU types.

        Raises:
            SpecError: a type that the model describes is none of the cluster's, where that tells
                types apart, or is described twice.
        """
        types, aliases = cluster.gpu_types, cluster.aliases
        typed = {name: gpu for name, gpu in self.gpus.items() if name != DEFAULT}
        other = {name: gpu for name, gpu in self.gpus.items() if name == DEFAULT}
        gpus = {**named_as("power.gpus", typed, types, aliases), **other}
        limits = []
        for table in self.limits:
            gpu_type = table.gpu_type
            if gpu_type is not None:
                (gpu_type,) = named_as("power.limits", {gpu_type: table}, types, aliases)
            limits.append(msgspec.structs.replace(table, gpu_type=gpu_type))
        return msgspec.structs.replace(self, gpus=gpus, limits=tuple(limits))

    @property
    def named_work(self) -> tuple[str, ...]:
        """Kinds of work that have a factor or a table of limits, in that order."""
        tables = (table.workload for table in self.limits if table.workload is not None)
        return tuple(dict.fromkeys([*self.workloads, *tables]))

    def levels(self, gpu_type: str | None, workload: str | None) -> tuple[Level, ...]:
        """Return what one GPU draws for a kind of work, a row a power limit, highest first.

        Work without a table has one row: its draw, at full speed.

        Raises:
            SpecError: as `gpu`.
        """
        tables = {(table.workload, _small(table.gpu_type)): table for table in self.limits}
        small = _small(gpu_type)
        for key in ((workload, small), (workload, None), (None, small), (None, None)):
            if key in tables:
                return tables[key].levels()
        draw = self.gpu(gpu_type)
        factor = 1.0 if workload is None else self.workloads.get(workload, 1.0)
        watts = draw.idle_w + factor * (draw.active_w - draw.idle_w)
        return (Level(watts, watts, 1.0),)

    def gpu(self, gpu_type: str | None) -> GpuPower:
        """Return what a GPU of the type draws.

        Raises:
            SpecError: the model describes neither the type nor ``default``.
        """
        named = spelt(gpu_type or DEFAULT, spelling(self.gpus))
        found = self.gpus.get(named) or self.gpus.get(DEFAULT)
        if found is None:
            if gpu_type is None:
                message = "the cluster's GPUs have no type; expected an entry 'default'"
                raise SpecError("power.gpus", message)
            raise SpecError.unknown("power.gpus", gpu_type, (*self.gpus, DEFAULT))
        return found


def _small(gpu_type: str | None) -> str | None:
    return None if gpu_type is None else gpu_type.lower()
