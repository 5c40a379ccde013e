"""What the jobs of a run ask Slurm for: the jobs table's columns as `SlurmRequest`.

A job that says on how many nodes it runs (``num_nodes``) has them, and the same on each. One that
does not has as few as its GPUs need on the site's largest nodes, and the same on each where they
can be split so; else they are a total (``--gpus``), however they lie.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.free import EVERY_NODE
from windtunnel.errors import SchemaError, Violation, quote
from windtunnel.schema import source_of
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.slurm.names import partitions_of
from windtunnel.sim.slurm.requests import SlurmRequest
from windtunnel.site.slurm_words import checked, licenses

if TYPE_CHECKING:
    from windtunnel.sim.problem import Problem
    from windtunnel.site.slurm import SlurmSite

#: A task of an array: its job id, and its number in the array.
_TASK = re.compile(r"(\d+)_(\d+)")
_MB = 1024
_MINUTE = 60


def requests_of(problem: Problem, site: SlurmSite, *, has_cores: bool) -> list[SlurmRequest]:
    """Return what the flown jobs ask for, by arrival number.

    Raises:
        SchemaError: a job asks for a part of a GPU, or in tasks that cannot be spread evenly.
    """
    columns = _Columns(problem)
    partitions = {part.name for part in site.partitions}
    holds = {hold.name for hold in site.reservations}
    types = _types(problem, site)
    most = [_most(site, accepted) for accepted in types]
    first: dict[str, int] = {}
    found = []
    for job, row in enumerate(problem.rows.tolist()):
        task = _TASK.fullmatch(str(columns.job_id[row]))
        array = task[1] if task else ""
        identity = first.setdefault(array, job + 1) if array else job + 1
        asked = columns.text("partition", row)
        names = tuple(name for name in partitions_of(asked) if name in partitions)
        hold = columns.text("reservation", row)
        shape = _shape(problem, columns, row, most[problem.demand_of[job]])
        found.append(
            SlurmRequest(
                identity=identity,
                submit=float(problem.submit[job]),
                user=columns.text("user", row),
                account=columns.text("account", row) or columns.text("vc", row),
                qos=columns.text("qos", row),
                partitions=names,
                limit=columns.limit(row),
                array=array,
                array_limit=int(columns.number("array_limit", row)),
                task=int(task[2]) if task else 0,
                reservation=hold if hold in holds else "",
                nice=int(columns.number("nice", row)),
                licenses=columns.licenses(row),
                exclusive=columns.text("exclusive", row).lower() in {"true", "1", "yes"},
                gpu_types=types[problem.demand_of[job]],
                **shape,
                **_cores(columns, row, shape, has_cores=has_cores),
            )
        )
    return found


class _Columns:
    """The columns that may be there, as they are asked for."""

    def __init__(self, problem: Problem) -> None:
        self.jobs = problem.jobs
        self.job_id = self.jobs.job_id
        self.estimate = self.jobs.estimate
        self._names = set(self.jobs.table.column_names)
        self._numbers: dict[str, Any] = {}

    def text(self, name: str, row: int) -> str:
        """Return a job's word, "" where it has none."""
        word = getattr(self.jobs, name)[row] if name in self._names else None
        return "" if word is None else str(word)

    def number(self, name: str, row: int) -> float:
        """Return a job's number, 0 where it has none."""
        if name not in self._names:
            return 0.0
        if name not in self._numbers:
            column = numeric_column(self.jobs.table, name, "slurm")
            self._numbers[name] = np.nan_to_num(column)
        return float(self._numbers[name][row])

    def licenses(self, row: int) -> dict[str, int]:
        """Return the licences that a job needs, by name.

        Raises:
            SchemaError: they are not written as Slurm has them.
        """
        text = self.text("licenses", row)
        try:
            return checked(licenses(text)) if text else {}
        except ValueError:
            rule = f"licences such as matlab:2,ansys; found {quote(text)}"
            wrong = Violation("licenses", rule, 1, row + 1, unit="row")
            raise SchemaError(source_of(self.jobs.table), [wrong]) from None

    def limit(self, row: int) -> int | None:
        """Return a job's time limit in s, whole minutes; None = its partition's."""
        asked = float(self.estimate[row])
        return None if math.isnan(asked) else max(math.ceil(asked / _MINUTE), 1) * _MINUTE


def _types(problem: Problem, site: SlurmSite) -> list[frozenset[str]]:
    """Return the GPU types that each class of demand accepts; empty = any."""
    found: list[frozenset[str]] = []
    for demand in problem.demands:
        if demand.allowed == EVERY_NODE:
            found.append(frozenset())
            continue
        nodes = (node for at, node in enumerate(site.nodes) if demand.allowed >> at & 1)
        found.append(frozenset(kind for node in nodes for kind in node.gpus))
    return found


def _most(site: SlurmSite, types: frozenset[str]) -> int:
    """Return the GPUs of the largest node that has one of some types."""
    nodes = (node for node in site.nodes if not types or types & node.gpus.keys())
    return max((sum(node.gpus.values()) for node in nodes), default=0)


def _shape(problem: Problem, columns: _Columns, row: int, most: int) -> dict[str, Any]:
    """Return a job's nodes and GPUs; ``most``: GPUs of the largest node it may have."""
    gpus = float(problem.jobs.num_gpus[row])
    if gpus != int(gpus):
        rule = f"whole GPUs under policy slurm; job {quote(columns.job_id[row])} has {gpus:g}"
        wrong = Violation("num_gpus", rule, 1, row + 1, unit="row")
        raise SchemaError(source_of(problem.jobs.table), [wrong])
    total, nodes = int(gpus), int(columns.number("num_nodes", row))
    if nodes > 0:
        if total % nodes == 0:
            return {"min_nodes": nodes, "max_nodes": nodes, "node_gpus": total // nodes}
        return {"min_nodes": nodes, "max_nodes": nodes, "gpus": total}
    if total == 0:
        return {}
    tasks = int(columns.number("num_tasks", row)) or 1
    size = total // tasks if tasks > 1 and total % tasks == 0 else 1
    parts = total // size
    nodes = math.ceil(parts / max(most // size, 1))
    if parts % nodes == 0:
        return {"min_nodes": nodes, "max_nodes": nodes, "node_gpus": total // nodes}
    if size == 1:
        return {"min_nodes": nodes, "gpus": total}
    even = next(n for n in range(nodes, parts + 1) if parts % n == 0)
    return {"min_nodes": even, "max_nodes": even, "node_gpus": total // even}


def _cores(
    columns: _Columns, row: int, shape: dict[str, int], *, has_cores: bool
) -> dict[str, Any]:
    """Return a job's cores and memory: of its nodes, or of each of them where they are alike."""
    nodes = shape.get("min_nodes", 1)
    if not has_cores:
        gpus = shape.get("node_gpus", 0) * nodes or shape.get("gpus", 0)
        return {"cpus": max(gpus, nodes)}
    cpus = max(math.ceil(columns.number("num_cpus", row)), nodes)
    memory = math.ceil(columns.number("mem_gib", row) * _MB / nodes)
    found: dict[str, Any] = {"cpus": cpus}
    if "max_nodes" in shape and cpus % nodes == 0:
        found["node_cpus"] = cpus // nodes
    if memory > 0:
        found["memory"] = memory
    return found
