"""Pollux's published simulator on a workload: from a jobs table and profiles to an `Outcome`."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.policies.pollux.clock import ElasticJob
from windtunnel.policies.pollux.in_ticks import PROGRAM, run_in_ticks
from windtunnel.policies.pollux.roaming import Machines
from windtunnel.predictors.features import numbers
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.flight import FINISHED, Flight
from windtunnel.sim.outcome import Outcome
from windtunnel.study.gavel_rounds import refuse_options
from windtunnel.study.resolving import settings_of_loop
from windtunnel.throughput.training_profiles import read_profiles, read_profiles_by_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.policies.pollux.clock import Trained
    from windtunnel.policies.pollux.in_ticks import PolluxPolicy
    from windtunnel.site.conditions import Conditions
    from windtunnel.throughput.training_profiles import Application


def fly_pollux(
    table: pa.Table, cluster: ClusterSpec, policy: PolluxPolicy, conditions: Conditions
) -> Outcome:
    """Fly a validated jobs table in the ticks of Pollux's published simulator.

    Args:
        table: jobs table; ``template`` names the application, ``batch_size`` the batch asked for.
        cluster: nodes with as many GPUs each; for Sia, as many by GPU type.
        policy: the policy.
        conditions: see `windtunnel.site`; ``throughputs`` is the folder of profiles.

    Raises:
        SpecError: an option that the published clock does not have, or no profiles.
        SchemaError: a job that the profiles do not know, or larger than the cluster.
        TraceError: the profiles cannot be read.
    """
    if conditions.scheduler.compat != "pollux":
        raise SpecError("compat", f"policy {policy.label!r} flies with compat='pollux' only.")
    refuse_options(conditions, "published", policy.filling)
    if conditions.until is not None or conditions.site.arrivals is not None:
        raise SpecError("until, arrivals", "the published clock knows neither; expected none.")
    given = conditions.scheduler.throughputs
    if not isinstance(given, str | Path):
        raise SpecError("throughputs", f"found {quote(given)}; expected the folder of profiles.")
    machines, applications = _machines(cluster, policy, given)
    jobs, rows = _jobs(table, applications, sum(machines.sizes))
    trained = run_in_ticks(jobs, machines, policy)
    settings = {
        **settings_of_loop(conditions, "policy", "ticks"),
        "policy": policy.label,
        "parameters": policy.given,
    }
    note = (
        f"As the published simulator: decisions every {policy.interval:g} s, epochs that end at "
        "whole seconds, GPUs of a job that is done free at the end of its tick."
    )
    return Outcome(table, cluster, _flight(trained, rows), settings, {}, (note,))


def _machines(
    cluster: ClusterSpec, policy: PolluxPolicy, folder: str | Path
) -> tuple[Machines, Mapping[str, Application]]:
    """Return the nodes with what is known of applications on them, and the applications."""
    nodes = cluster.node_types
    sizes = tuple(int(node.gpus) for node in nodes for _ in range(node.count))
    kinds = tuple(node.gpu_type or "" for node in nodes for _ in range(node.count))
    if cluster.is_pool or (policy.decider != PROGRAM and len(set(sizes)) != 1):
        raise SpecError("cluster", "the published clock needs nodes of one size, as in 16x4.")
    if policy.decider != PROGRAM:
        return Machines(kinds, sizes), read_profiles(folder)
    by_type = read_profiles_by_type(folder)
    for kind in dict.fromkeys(kinds):
        own = {size for size, other in zip(sizes, kinds, strict=True) if other == kind}
        checked_choice("GPU type", kind, by_type)
        if len(own) != 1 or own.pop().bit_count() != 1:
            message = f"the nodes of {quote(kind)} need one size each, 1, 2, 4, 8 ... GPUs."
            raise SpecError("cluster", message)
    if len(set(kinds)) != len([None for kind, _ in groupby(kinds)]):
        raise SpecError("cluster", "expected the nodes of a GPU type one after the other.")
    everywhere = set.intersection(*(set(by_type[kind]) for kind in kinds))
    known = {name: app for name, app in by_type[kinds[0]].items() if name in everywhere}
    return Machines(kinds, sizes, by_type), known


def _jobs(
    table: pa.Table, applications: Mapping[str, Application], num_gpus: int
) -> tuple[list[ElasticJob], np.ndarray]:
    """Return the jobs and their rows, in the workload's order."""
    gangs, submit = numbers(table, "num_gpus"), numbers(table, "submit_time")
    batches = numeric_column(table, "batch_size", "Pollux's simulator")
    names, kinds = table["job_id"].to_pylist(), table["template"].to_pylist()
    jobs = []
    for row, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        app = applications.get(kind)
        if app is None:
            raise _violation("template", "an application of the profiles", row, kind)
        if not 1 <= gangs[row] <= num_gpus or gangs[row] % 1:
            raise _violation("num_gpus", "GPUs that the cluster has", row, gangs[row])
        if not batches[row] >= 1 or math.isnan(submit[row]):
            raise _violation("batch_size", "a batch size, and a time", row, batches[row])
        jobs.append(ElasticJob(name, app, submit[row], int(gangs[row]), int(batches[row])))
    return jobs, np.arange(len(jobs))


def _violation(column: str, rule: str, row: int, value: object) -> SchemaError:
    return SchemaError("jobs", [Violation(column, rule, 1, row + 1, value, "row")])


def _flight(trained: Sequence[Trained], rows: np.ndarray) -> Flight:
    """Return the run as arrays; a stay on some GPUs is a segment."""
    stays = sorted(
        ((stay.begin, row, stay) for row, job in enumerate(trained) for stay in job.stays),
        key=lambda found: found[:2],
    )
    counts = [np.unique(stay.nodes, return_counts=True) for _, _, stay in stays]
    sizes = [len(nodes) for nodes, _ in counts]
    run_time = [sum(stay.end - stay.begin for stay in job.stays) for job in trained]
    none: list[np.ndarray] = [np.empty(0, int)]
    return Flight(
        start=np.array([job.first_start for job in trained], float),
        end=np.array([job.end for job in trained], float),
        run_time=np.array(run_time),
        preemptions=np.array([max(len(job.stays) - 1, 0) for job in trained], np.int64),
        status=np.full(len(rows), FINISHED, np.int8),
        segment_job=np.array([row for _, row, _ in stays], np.int64),
        segment_start=np.array([stay.begin for _, _, stay in stays], float),
        segment_end=np.array([stay.end for _, _, stay in stays], float),
        node_offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        nodes=np.concatenate([nodes for nodes, _ in counts] or none).astype(np.int32),
        node_gpus=np.concatenate([gpus for _, gpus in counts] or none).astype(np.int32),
        scheduling_points=0,
        gpu_time=np.array([job.held for job in trained]),
    )
