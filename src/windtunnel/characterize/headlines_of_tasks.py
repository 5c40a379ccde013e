"""Headline numbers that the tasks and nodes tables answer: requests, use, sharing, allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.allocation import allocation, cpus_per_gpu
from windtunnel.characterize.contention import contention
from windtunnel.characterize.headline_tables import Answer, HeadlineTables, answer
from windtunnel.characterize.overuse import jobs_against_use, requests_against_use
from windtunnel.characterize.relation import known_columns
from windtunnel.characterize.requests import RESOURCES, request_quantiles
from windtunnel.characterize.sharing import sharing_savings
from windtunnel.characterize.slowdown import NODE_CPU, NODE_GPU, slowdown_by_load
from windtunnel.companions import TASK_COLUMNS, companion_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TIMES = ("tasks.start_time", "tasks.end_time")
#: Kinds of nodes (`windtunnel.characterize.allocation.NODES_BY`, class) of the paper's claims.
_MISC, _V100 = ("8 x MISC",), ("8 x V100", "8 x V100M32")


def answers(tables: HeadlineTables) -> dict[str, Answer]:
    """Return claim -> what the tasks and nodes of the trace answer."""
    return {
        **_requests(tables),
        **_overuse(tables),
        **_sharing(tables),
        **_cpus_per_gpu(tables),
        **_allocation(tables),
        **_slowdown(tables),
    }


def _none(keys: Iterable[str], why_not: str) -> dict[str, Answer]:
    return dict.fromkeys(keys, Answer(None, why_not=why_not))


def _requests(tables: HeadlineTables) -> dict[str, Answer]:
    """Answer from the tasks table, else from the jobs: each of its tasks asks for its part."""
    trace = tables.trace
    columns = {resource.asked for resource in RESOURCES}
    by_task = "tasks" in tables.known and bool(columns & tables.known["tasks"])
    table = trace.tasks if by_task and trace.tasks is not None else trace.jobs
    source = "tasks" if by_task else "jobs"
    found = {}
    for row, resource in zip(request_quantiles(table).to_pylist(), RESOURCES, strict=True):
        nothing = (
            tables.lack(f"{source}.{resource.asked}")
            or f"no row of the {source} table asks for any {resource.asked}"
        )
        for key, column in (("p95", "p95"), ("ratio", "p95_over_p50"), ("large", "large_share")):
            found[f"request_{key}_{resource.name}"] = answer(
                row[column], row["n"], row["left_out"], nothing
            )
    return found


def _overuse(tables: HeadlineTables) -> dict[str, Answer]:
    """Answer by tasks, and by jobs with the notebook's rule where the nodes are known."""
    trace = tables.trace
    names = [resource.name for resource in RESOURCES]
    keys = [f"overuse_tasks_{name}" for name in ("cpu", "gpu")]
    keys += [f"{key}_jobs_{name}" for key in ("overuse", "underuse") for name in names]
    if trace.tasks is None:
        return _none(keys, "the trace has no tasks table")
    by_task = requests_against_use(trace.tasks)
    by_job, _ = jobs_against_use(trace.tasks, trace.nodes)
    found = {}
    for resource, task, job in zip(RESOURCES, by_task.to_pylist(), by_job.to_pylist(), strict=True):
        lack = tables.lack(f"tasks.{resource.asked}", f"tasks.{resource.used}")
        nothing = lack or f"no task has both {resource.asked} and {resource.used}"
        for key, row, column in (
            ("overuse_tasks", task, "over_share"),
            ("overuse_jobs", job, "over_share"),
            ("underuse_jobs", job, "under_share"),
        ):
            value = None if lack else row[column]
            found[f"{key}_{resource.name}"] = answer(value, row["n"], row["left_out"], nothing)
    return {key: found[key] for key in keys}


def _sharing(tables: HeadlineTables) -> dict[str, Answer]:
    trace = tables.trace
    keys = ("sharing_saved", "sharing_peak")
    lack = tables.lack("tasks.gpu", "tasks.node", "tasks.num_gpus", *_TIMES)
    if lack is not None or trace.tasks is None:
        found = _none(keys, lack or "")
    else:
        saved = sharing_savings(trace.tasks)
        nothing = f"no task has all that is needed ({_reasons(saved['left_out'])})"
        counts = (saved["n"], sum(saved["left_out"].values()), nothing)
        found = {
            "sharing_saved": answer(saved["saved_share"], *counts),
            "sharing_peak": answer(saved["peak_saved"], *counts),
        }
    lack = tables.lack("tasks.gpu", "tasks.node", "tasks.gpus_used", *_TIMES)
    if lack is not None or trace.tasks is None:
        return found | _none(("busy_shared",), lack or "")
    busy = contention(trace.tasks)
    left_out = sum(busy["left_out"].values())
    return found | {
        "busy_shared": answer(busy["share"], busy["n"], left_out, "no GPU was ever that busy")
    }


def _cpus_per_gpu(tables: HeadlineTables) -> dict[str, Answer]:
    trace = tables.trace
    keys = ("cpus_per_gpu_8", "cpus_per_gpu_8_asked", "cpus_per_gpu_2_ratio")
    nodes = tables.nodes
    if nodes is None:
        return _none(keys, "the trace has no nodes table and names no nodes")
    if not {"num_gpus", "num_cpus"} <= known_columns(nodes, ("num_gpus", "num_cpus")):
        return _none(keys, "no node of the trace has both num_gpus and num_cpus")
    lack = tables.lack("tasks.node", "tasks.num_cpus", "tasks.num_gpus", "nodes.num_gpus")
    tasks = _no_tasks() if lack is not None or trace.tasks is None else trace.tasks
    found = {row["num_gpus"]: row for row in cpus_per_gpu(tasks, nodes, by="num_gpus").to_pylist()}
    empty = {"provided": None, "asked": None, "nodes": 0, "n": 0, "left_out": 0}
    eight, two = found.get("8", empty), found.get("2", empty)
    ratio = two["provided"] / two["asked"] if two["provided"] and two["asked"] else None
    unasked = lack or "no task on them asks for a GPU"
    return {
        keys[0]: answer(eight["provided"], eight["nodes"], 0, _no_node(8)),
        keys[1]: answer(
            eight["asked"],
            eight["n"],
            eight["left_out"],
            unasked if eight["nodes"] else _no_node(8),
        ),
        keys[2]: answer(ratio, two["n"], two["left_out"], unasked if two["nodes"] else _no_node(2)),
    }


def _no_node(gpus: int) -> str:
    return f"no node of the trace has {gpus} GPUs"


def _no_tasks() -> Any:
    """Return a tasks table without rows, for what the nodes alone answer."""
    return companion_schema(TASK_COLUMNS).empty_table()


def _allocation(tables: HeadlineTables) -> dict[str, Answer]:
    trace = tables.trace
    kinds = {"misc": _MISC, "v100": _V100}
    keys = [f"allocated_{kind}_{name}" for kind in kinds for name in ("cpu", "gpu")]
    lack = tables.lack(
        *("nodes.gpu_type", "nodes.num_gpus", "nodes.num_cpus"),
        *("tasks.node", "tasks.num_cpus", "tasks.num_gpus", *_TIMES),
    )
    if lack is not None or trace.tasks is None or trace.nodes is None:
        return _none(keys, lack or "")
    found = allocation(trace.tasks, trace.nodes, by="class").to_pylist()
    return {
        f"allocated_{kind}_{name}": _allocated(found, classes, name)
        for kind, classes in kinds.items()
        for name in ("cpu", "gpu")
    }


def _allocated(found: list[Mapping[str, Any]], classes: tuple[str, ...], name: str) -> Answer:
    mine = [row for row in found if row["class"] in classes]
    capacity = sum(row[f"{name}_capacity"] for row in mine)
    known = bool(capacity) and all(row[name] is not None for row in mine)
    return answer(
        sum(row[name] for row in mine) / capacity if known else None,
        sum(row["n"] for row in mine),
        found[0]["left_out"] if found else 0,
        "no task ran on a known node" if capacity else f"no node is {' or '.join(classes)}",
    )


def _slowdown(tables: HeadlineTables) -> dict[str, Answer]:
    trace = tables.trace
    keys = ("delayed_on_busy_cpu", "delayed_gpu_gap")
    lack = tables.lack("jobs.template", f"tasks.{NODE_CPU}", "tasks.status", *_TIMES)
    if lack is not None or trace.tasks is None:
        return _none(keys, lack or "")
    found = {
        (row["metric"], row["tasks"]): row
        for row in slowdown_by_load(trace.tasks, trace.jobs).to_pylist()
    }
    late = found[NODE_CPU, "delayed"]
    nothing = "no task of a recurring group was delayed on a node of known load"
    out = {
        keys[0]: answer(late["busy_share"], late["n"], late["left_out"] + late["unknown"], nothing)
    }
    lack = tables.lack(f"tasks.{NODE_GPU}")
    if lack is not None:
        return out | _none(keys[1:], lack)
    late, others = (found[NODE_GPU, kind] for kind in ("delayed", "others"))
    known = late["n"] and others["n"]
    return out | {
        keys[1]: answer(
            late["p50"] - others["p50"] if known else None,
            late["n"] + others["n"],
            late["left_out"] + late["unknown"] + others["unknown"],
            nothing,
        )
    }


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(left_out) or "there are none"
