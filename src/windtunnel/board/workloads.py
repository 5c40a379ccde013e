"""What a scenario is with a seed: a jobs table, a site, and the digest that freezes both.

Times are whole seconds, so that a last bit of a logarithm, which differs among machines, is not in
them. Estimates, types, deadlines and failures are drawn by integers alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel import schema
from windtunnel.board.elastic_jobs import PENALTY, elastic_jobs
from windtunnel.board.scenarios import RESTORE, SAVE, Scenario
from windtunnel.cluster.parse import parse_cluster
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.errors import WindtunnelError
from windtunnel.sim.demands import DeviceRules
from windtunnel.sim.disruptions import Disruptions
from windtunnel.sim.problem import build
from windtunnel.traces.open import open_trace

#: Columns that a scheduler may know of a job once it is submitted.
VISIBLE: tuple[str, ...] = (
    *("job_id", "submit_time", "num_gpus", "num_tasks", "num_cpus", "mem_gib", "gpu_type"),
    *("user", "vc", "workload", "template", "priority", "estimate", "deadline", "plan"),
)
#: What only the run knows: true lengths.
HIDDEN: tuple[str, ...] = ("duration", "steps")
#: Wall times that users ask for, s: one, four, twelve hours, one, two, seven, thirty days.
_ASKED = np.array([1, 4, 12, 24, 48, 168, 720]) * 3_600
#: The longest job of a scenario, s: one longer would decide every mean alone.
_LONGEST = 86_400
#: What jobs save where nodes fail, and what it costs, s.
_CHECKPOINTS = {"interval": 3_600.0, "cost": 10.0, "restart_cost": 60.0}
#: Nodes of the scenario whose jobs share GPUs: a part of PAI's own.
_PAI = ClusterSpec(
    (
        NodeType(count=6, gpus=2, gpu_type="P100", cpus=64, mem_gib=512),
        NodeType(count=6, gpus=2, gpu_type="T4", cpus=96, mem_gib=512),
        NodeType(count=2, gpus=8, gpu_type="V100", cpus=96, mem_gib=384),
        NodeType(count=2, gpus=8, gpu_type="V100M32", cpus=96, mem_gib=384),
    ),
    name="pai-small",
)


class ChangedScenarioError(WindtunnelError):
    """A scenario's jobs or site are not those that were frozen."""


@dataclass(frozen=True)
class Drawn:
    """A scenario with a seed.

    Attributes:
        scenario: which.
        seed: which.
        jobs: validated jobs table, ordered by submission.
        cluster: where.
        disruptions: node failures; None = none.
    """

    scenario: Scenario
    seed: int
    jobs: pa.Table
    cluster: ClusterSpec
    disruptions: Disruptions | None

    def fields(self, *, elastic: bool) -> dict[str, Any]:
        """Return the fields of site and scheduler that a run has beside its policy.

        Args:
            elastic: the policy resizes jobs, which has a price of its own.
        """
        found: dict[str, Any] = {"seed": self.seed}
        if self.disruptions is not None:
            found["disruptions"] = self.disruptions
        if elastic:
            return {**found, "penalty": PENALTY}
        return {**found, "save_time": SAVE, "restore_time": RESTORE}

    @property
    def digest(self) -> str:
        """SHA-256 of the jobs, column by column, and of the site."""
        found = hashlib.sha256()
        columns = {name: self.jobs[name].to_pylist() for name in sorted(self.jobs.column_names)}
        nodes = [(n.count, n.gpus, n.gpu_type, n.cpus, n.mem_gib) for n in self.cluster.node_types]
        failures = () if self.disruptions is None else self.disruptions.node_failures
        site = {
            "nodes": nodes,
            "failures": [(f.time, f.node, f.until) for f in failures],
            "checkpoints": dict(_CHECKPOINTS) if failures else None,
            "costs": [SAVE, RESTORE, PENALTY],
        }
        for part in (columns, site):
            found.update(json.dumps(part, sort_keys=True, default=str).encode())
        return found.hexdigest()


@cache
def draw(scenario: Scenario, seed: int) -> Drawn:
    """Return a scenario with a seed."""
    cluster = _PAI if scenario.cluster == "pai" else parse_cluster(scenario.cluster)
    rng = np.random.default_rng([seed, len(scenario.name), *scenario.name.encode()])
    if scenario.twin == "elastic":
        jobs = elastic_jobs(scenario.num_jobs, rng)
    else:
        # A quarter more are made: jobs that cannot be flown here are left out.
        made = scenario.num_jobs * 5 // 4 if scenario.twin != "pai" else scenario.num_jobs * 2
        jobs = open_trace(f"synthetic:{scenario.twin}", jobs=made, seed=seed).jobs
        if cluster is _PAI:
            jobs = _held(jobs, cluster)
    columns = _columns(jobs, scenario, cluster, rng)
    table = schema.as_jobs(pa.table(columns))
    return Drawn(scenario, seed, table, cluster, _failures(scenario, cluster, table, rng))


def _held(jobs: pa.Table, cluster: ClusterSpec) -> pa.Table:
    """Return the jobs whose GPUs, cores and memory the cluster has, on nodes of their types."""
    ways: dict[str, Any] = {"oversize": "reject", "incomplete": "reject"}
    rows = build(jobs, cluster, as_pool=False, devices=DeviceRules(), **ways).rows
    return jobs.take(np.sort(rows))


def _columns(
    jobs: pa.Table, scenario: Scenario, cluster: ClusterSpec, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the columns of the jobs that are flown: what is visible, and the true lengths."""
    duration = np.nan_to_num(jobs["duration"].to_numpy().astype(float))
    gpus = np.asarray(jobs["num_gpus"].to_numpy(), float)
    keep = np.flatnonzero(
        (duration >= 1) & (gpus > 0) & (gpus <= min(_largest(cluster), scenario.largest))
    )
    keep = keep[: scenario.num_jobs]
    jobs = jobs.take(keep)
    duration = np.minimum(np.ceil(duration[keep]), _LONGEST)
    submit = np.asarray(jobs["submit_time"].to_numpy(), float)
    known = set(jobs.column_names)
    columns: dict[str, Any] = {
        name: jobs[name]
        for name in (*VISIBLE, *HIDDEN)
        if name in known and jobs[name].null_count < len(jobs)
    }
    area = float((gpus[keep] * duration).sum())
    span = area / (cluster.num_gpus * scenario.load)
    order = np.argsort(submit, kind="stable")
    submit = np.floor((submit - submit.min()) / max(float(np.ptp(submit)), 1.0) * span)
    columns |= {
        "job_id": [f"{scenario.name}-{place:04d}" for place in range(len(keep))],
        "submit_time": submit[order],
        "duration": duration,
        "estimate": _estimates(duration, rng),
    }
    if "priority" in columns:  # some policies take it as a weight: above 0
        columns["priority"] = np.asarray(columns["priority"].to_numpy(), float) + 1
    users = jobs["user"].to_pylist() if "user" in known else []
    if scenario.types:
        kinds = {user: int(rng.integers(len(scenario.types))) for user in sorted(set(users))}
        wanted = [scenario.types[kinds[user]] for user in users]
        most = {t: n.count * n.gpus for n in cluster.node_types if (t := n.gpu_type)}
        columns["gpu_type"] = [
            kind if kind and asked <= most[kind] else None
            for kind, asked in zip(wanted, gpus[keep].tolist(), strict=True)
        ]
    if scenario.allowed:
        times = np.array(scenario.allowed)[rng.integers(len(scenario.allowed), size=len(keep))]
        columns["deadline"] = submit[order] + times * duration + 600
    return columns


def _largest(cluster: ClusterSpec) -> float:
    """Return how many GPUs a job of a scenario may ask for; with types those of any one type."""
    kinds: dict[str | None, int] = {}
    for nodes in cluster.node_types:
        kinds[nodes.gpu_type] = kinds.get(nodes.gpu_type, 0) + nodes.count * nodes.gpus
    return min(kinds.values())


def _estimates(duration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return wall times that users ask for: the next on the menu above 1 to 5 times the length."""
    asked = duration * rng.integers(1, 6, size=len(duration))
    return _ASKED[np.minimum(np.searchsorted(_ASKED, asked), len(_ASKED) - 1)].astype(float)


def _failures(
    scenario: Scenario, cluster: ClusterSpec, jobs: pa.Table, rng: np.random.Generator
) -> Disruptions | None:
    """Return a scenario's node failures, known by their times to the run alone."""
    if scenario.failures is None:
        return None
    between, repair = scenario.failures
    last = float(jobs["submit_time"].to_numpy().max()) * 2 + 86_400
    found = []
    for node in range(sum(nodes.count for nodes in cluster.node_types)):
        at = 0
        while True:
            at += int(rng.integers(1, int(2 * between)))
            if at > last:
                break
            found.append({"time": float(at), "node": node, "until": at + repair})
            at += int(repair)
    return failing(found)


def failing(failures: list[dict[str, Any]]) -> Disruptions:
    """Return disruptions of these failures, with checkpoints every hour."""
    given = {
        "node_failures": failures,
        "checkpoint": dict(_CHECKPOINTS),
    }
    return Disruptions.from_mapping(given, source="bench")
