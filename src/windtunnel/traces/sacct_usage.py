"""What each job of an sacct log was given or asked for: GPUs, CPUs, memory, nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import TraceError
from windtunnel.traces.sacct_table import COMMAND, SacctTable
from windtunnel.traces.tres import Resources, parse_gres, parse_memory, parse_tres

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_GPU_COLUMNS = ("alloctres", "reqtres", "allocgres", "reqgres")


@dataclass(frozen=True)
class Usage:
    """The resources of the jobs, one entry a row; None = unknown.

    Attributes:
        gpus: whole GPUs of the job.
        gpu_types: their types joined by ``|``.
        cpus: CPUs of the job.
        mem_gib: host memory of the job, GiB.
        nodes: its nodes.
        licenses: what it holds that is on no node, as ``matlab:2``.
        parts: jobs that hold parts of GPUs (shard, mps).
        mixed: jobs with GPUs of more than one type.
        per_node: jobs whose GPUs are given per node (before Slurm 20.11).
    """

    gpus: list[int]
    gpu_types: list[str | None]
    cpus: list[float | None]
    mem_gib: list[float | None]
    nodes: list[int | None]
    licenses: list[str | None]
    parts: int
    mixed: int
    per_node: int


def usage(table: SacctTable) -> Usage:
    """Return what each row says about resources.

    AllocTRES counts, ReqTRES where it is empty; where neither tells GPUs, AllocGRES and ReqGRES
    in the same order, times the nodes. GPUs that nobody mentions are 0.

    Raises:
        TraceError: a cell is malformed, or no column could tell GPUs.
    """
    if not any(table.has(name) for name in _GPU_COLUMNS):
        raise TraceError(
            table.file,
            "a column AllocTRES or ReqTRES",
            hint=f"Without it the GPUs are unknown. Write it with: {COMMAND}",
        )
    tres = _first_known(table, ("alloctres", "reqtres"), parse_tres, "TRES as cpu=8,gres/gpu=2")
    gres = _first_known(table, ("allocgres", "reqgres"), parse_gres, "GRES as gpu:v100:2")
    nodes = _counts(table, ("nnodes", "allocnodes", "reqnodes"))
    cpus = _counts(table, ("ncpus", "alloccpus", "reqcpus"))
    memory = table.parsed("reqmem", parse_memory, "memory as 4000M, 4000Mc or 180Gn")
    rows: list[tuple[Any, ...]] = []
    parts = mixed = per_node = 0
    for row, (whole, one_node) in enumerate(zip(tres, gres, strict=True)):
        spread = nodes[row] if whole.nodes is None else whole.nodes
        cores = whole.cpus if whole.cpus is not None else cpus[row]
        gpus, types = whole.gpus, whole.gpu_types
        if gpus is None and one_node.gpus is not None:
            gpus, types = one_node.gpus * max(spread or 1, 1), one_node.gpu_types
            per_node += 1
        amount, of = memory[row]
        if amount is not None and of:
            each = spread if of == "n" else cores
            amount = None if each is None else amount * each
        parts += whole.parts or one_node.parts
        mixed += len(types) > 1
        kinds = "|".join(name for name, _ in types) or None
        mem = amount if whole.mem_gib is None else whole.mem_gib
        rows.append((gpus or 0, kinds, cores, mem, spread, whole.licenses or None))
    all_gpus, kinds_of, all_cpus, mem_gib, spreads, held = map(list, zip(*rows, strict=True))
    return Usage(all_gpus, kinds_of, all_cpus, mem_gib, spreads, held, parts, mixed, per_node)


def _first_known(
    table: SacctTable,
    names: Sequence[str],
    parse: Callable[[str], Resources | None],
    what: str,
) -> list[Resources]:
    """Return each row's first column that says anything."""
    columns = [table.parsed(name, parse, what) for name in names]
    return [
        next((one for one in row if one is not None), Resources())
        for row in zip(*columns, strict=True)
    ]


def _counts(table: SacctTable, names: Sequence[str]) -> list[int | None]:
    """Return each row's first number above 0, else 0 or None."""
    columns = [table.parsed(name, _count, "a whole number") for name in names]
    counts: list[int | None] = []
    for row in zip(*columns, strict=True):
        known = [number for number in row if number is not None]
        counts.append(next((n for n in known if n), known[0] if known else None))
    return counts


def _count(text: str) -> int | None:
    if text.lower() in {"", "unknown", "none"}:
        return None
    factor = {"K": 1000, "M": 10**6}.get(text[-1], 1)  # sacct shortens: 1.50K
    digits = text[:-1] if factor > 1 else text
    if not digits.replace(".", "", 1).isdecimal() or not digits.isascii() or len(text) > 12:  # noqa: PLR2004
        raise ValueError(text)
    return round(float(digits) * factor)
