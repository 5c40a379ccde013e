"""Slurm's trackable resources (TRES) and generic resources (GRES), as sacct prints them.

TRES: ``cpu=96,gres/gpu:a100=8,gres/gpu=8,mem=960G,node=1``: totals of the whole job. GRES, before
Slurm 20.11: ``gpu:v100:4``: of one node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

#: MiB in a unit of memory; Slurm's own unit is MiB.
_MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_COUNTS = {"": 1, "K": 1024, "M": 1024**2}
_MIB_PER_GIB = 1024.0
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGTP]?)", re.ASCII)
_MEMORY = re.compile(r"([0-9.]+[KMGTP]?)B?([cn]?)", re.ASCII)
_TYPED = "gres/gpu:"
_LICENSE = "license/"
_PARTS_OF_GPUS = ("shard", "mps")
_NOTHING = ("", "0", "(null)", "none", "n/a")
_MAX_COUNT = 10**9


@dataclass(frozen=True)
class Resources:
    """What a job was given or asked for; None = not stated.

    Attributes:
        gpus: whole GPUs.
        gpu_types: their types and counts, in the order of the text; empty where no type is stated.
        cpus: CPUs.
        mem_gib: host memory in GiB.
        nodes: nodes.
        parts: whether it holds parts of GPUs (shard, mps), which are no whole GPUs.
        licenses: how many of each, as ``matlab:2,ansys:1``.
    """

    gpus: int | None = None
    gpu_types: tuple[tuple[str, int], ...] = ()
    cpus: float | None = None
    mem_gib: float | None = None
    nodes: int | None = None
    parts: bool = False
    licenses: str = ""


def parse_tres(text: str) -> Resources | None:
    """Return what a TRES text says; None where it is empty.

    ``gres/gpu`` counts all GPUs; typed entries are summed only where it is absent. Memory used
    (``gres/gpumem``) and utilisation (``gres/gpuutil``) are no counts.

    Raises:
        ValueError: it is no such text.

    >>> parse_tres("cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=1.5G,node=1").mem_gib
    1.5
    """
    if not text:
        return None
    entries = dict(_pair(item) for item in text.split(","))
    typed = {
        key.removeprefix(_TYPED): _count(value)
        for key, value in entries.items()
        if key.startswith(_TYPED)
    }
    total, cpus, nodes = (
        _count(entries[key]) if key in entries else None for key in ("gres/gpu", "cpu", "node")
    )
    mem = _memory(entries["mem"]) if "mem" in entries else None
    parts = any(key.removeprefix("gres/").partition(":")[0] in _PARTS_OF_GPUS for key in entries)
    held = ",".join(
        f"{key.removeprefix(_LICENSE)}:{_count(value)}"
        for key, value in entries.items()
        if key.startswith(_LICENSE)
    )
    whole = _resources(total, typed, cpus=cpus, mem=mem, nodes=nodes, parts=parts)
    return replace(whole, licenses=held)


def parse_gres(text: str) -> Resources | None:
    """Return what a GRES text says about one node; None where it is empty.

    Raises:
        ValueError: it is no such text.

    >>> parse_gres("gpu:v100:2").gpu_types
    (('v100', 2),)
    """
    if not text:
        return None
    total: int | None = None
    typed: dict[str, int] = {}
    parts = False
    for item in text.split(","):
        plain = re.sub(r"\(.*\)$", "", item.strip()).removeprefix("gres:").removeprefix("gres/")
        if item.strip().lower() in _NOTHING:
            continue
        name, *rest = re.split("[:=]", plain)
        if not name or len(rest) > 2:  # noqa: PLR2004 - a type and a count
            raise ValueError(item)
        parts = parts or name in _PARTS_OF_GPUS
        if name != "gpu":
            continue
        # "gpu" and "gpu:v100" without a count mean one.
        has_count = bool(rest) and rest[-1][:1].isdigit()
        count = _count(rest.pop()) if has_count else 1
        if rest:
            typed[rest[0]] = typed.get(rest[0], 0) + count
        else:
            total = (total or 0) + count
    return _resources(total, typed, parts=parts)


def parse_memory(text: str) -> tuple[float | None, str]:
    """Return the GiB of ReqMem and what they are of: ``c`` a CPU, ``n`` a node, empty the job.

    0 stands for "all of the node", and is unknown, as is an empty text.

    Raises:
        ValueError: it is no amount of memory.

    >>> parse_memory("2048Mc")
    (2.0, 'c')
    """
    found = _MEMORY.fullmatch(text)
    if text.lower() in _NOTHING:
        return None, ""
    if found is None:
        raise ValueError(text)
    return _memory(found[1]) or None, found[2]


def _resources(
    total: int | None,
    typed: dict[str, int],
    *,
    cpus: float | None = None,
    mem: float | None = None,
    nodes: int | None = None,
    parts: bool = False,
) -> Resources:
    typed = {kind: count for kind, count in typed.items() if count}
    if total is None and typed:
        total = sum(typed.values())
    return Resources(total, tuple(typed.items()), cpus, mem, nodes, parts)


def _pair(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals or not key or key == _TYPED:
        raise ValueError(item)
    return key, value


def _count(text: str) -> int:
    found = _AMOUNT.fullmatch(text)
    if found is None or found[2] not in _COUNTS:
        raise ValueError(text)
    number = float(found[1]) * _COUNTS[found[2]]
    if not number.is_integer() or number > _MAX_COUNT:
        raise ValueError(text)
    return int(number)


def _memory(text: str) -> float:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * _MIB[found[2]] / _MIB_PER_GIB
