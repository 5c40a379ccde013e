"""Headline numbers that the jobs answer: scale, waits, gangs, users, recurrence, failures."""

from __future__ import annotations

from typing import Any

from windtunnel.characterize.concentration import top_users
from windtunnel.characterize.gangs import gang_sizes, gangs_of_tasks
from windtunnel.characterize.headline_tables import Answer, HeadlineTables, answer
from windtunnel.characterize.overview import overview
from windtunnel.characterize.population import NONE
from windtunnel.characterize.recurrence import recurrence
from windtunnel.characterize.relation import relation, rows
from windtunnel.characterize.spread import spread_by
from windtunnel.characterize.states import state_shares
from windtunnel.characterize.tasks import ASSIGNED
from windtunnel.characterize.waits import waited_shares

#: Runs of a template that make a job recurring (the paper's count).
RECURRING = 5
_V100, _MISC = ("V100", "V100M32"), ("MISC",)
_DAY = 86_400.0


def answers(tables: HeadlineTables) -> dict[str, Answer]:
    """Return claim -> what the jobs of the trace answer."""
    return {
        **_scale(tables),
        **_load(tables),
        **_gangs(tables),
        **_halves(tables),
        **_waits(tables),
        **_recurrence(tables),
    }


def _scale(tables: HeadlineTables) -> dict[str, Answer]:
    trace = tables.trace
    facts = overview(trace.jobs)
    jobs = facts["num_jobs"]
    sized = facts["num_gpu_jobs"] + facts["num_cpu_jobs"]
    missing = facts["missing"]
    span = facts["span_s"]
    users = facts["num_users"] if "user" in tables.known["jobs"] else None
    return {
        "jobs": Answer(float(jobs), jobs),
        "tasks": _num_tasks(tables),
        "users": answer(
            users, jobs - missing["user"], missing["user"], tables.lack("jobs.user") or ""
        ),
        "nodes": _cluster_size(tables, "nodes"),
        "gpus": _cluster_size(tables, "gpus"),
        "days": answer(
            None if span is None else span / _DAY,
            jobs - missing["submit_time"],
            missing["submit_time"],
            tables.lack("jobs.submit_time") or "",
        ),
        "gpu_jobs": answer(
            facts["num_gpu_jobs"] if sized else None,
            sized,
            jobs - sized,
            tables.lack("jobs.num_gpus") or "",
        ),
        "gpu_time": answer(
            facts["gpu_time"] if facts["gpu_time_n"] else None,
            facts["gpu_time_n"],
            jobs - facts["gpu_time_n"],
            _lack_gpu_time(tables),
        ),
    }


def _lack_gpu_time(tables: HeadlineTables) -> str:
    lack = tables.lack("jobs.num_gpus", "jobs.duration")
    return lack or "no job has both a number of GPUs and a duration"


def _num_tasks(tables: HeadlineTables) -> Answer:
    if tables.trace.tasks is not None:
        table = relation(tables.trace.tasks, ("job_id",))
        (found,) = rows(table.aggregate(n=table.count()))
        return Answer(float(found["n"]), found["n"])
    lack = tables.lack("jobs.num_tasks")
    if lack is not None:
        return Answer(None, why_not=f"the trace has no tasks table, and {lack}")
    table = relation(tables.trace.jobs, ("num_tasks",))
    (found,) = rows(
        table.aggregate(tasks=table.num_tasks.sum(), n=table.num_tasks.count(), total=table.count())
    )
    return Answer(float(found["tasks"]), found["n"], found["total"] - found["n"])


def _cluster_size(tables: HeadlineTables, of: str) -> Answer:
    """Answer from the nodes table, else from the cluster that the trace names."""
    nodes, cluster = tables.nodes, tables.trace.cluster
    if nodes is None:
        if cluster is None:
            return Answer(None, why_not="the trace has no nodes table and names no cluster")
        if of == "nodes":
            return Answer(None, why_not="the trace names a pool of GPUs without nodes")
        return Answer(float(cluster.num_gpus), cluster.num_nodes)
    if of == "nodes":
        return Answer(float(nodes.num_rows), nodes.num_rows)
    table = relation(nodes, ("num_gpus",))
    (found,) = rows(table.aggregate(gpus=table.num_gpus.sum(), n=table.num_gpus.count()))
    nothing = "no row of the nodes table has num_gpus: how many GPUs a node has is unknown"
    return answer(found["gpus"], found["n"], nodes.num_rows - found["n"], nothing)


def _load(tables: HeadlineTables) -> dict[str, Answer]:
    jobs = tables.trace.jobs
    (wait,) = spread_by(jobs, "wait", percents=(50, 90)).to_pylist()
    nothing = (
        tables.lack("jobs.submit_time", "jobs.start_time")
        or "no job has both a submit_time and a start_time"
    )
    found = {
        f"wait_{p}": answer(wait[p], wait["n"], wait["left_out"], nothing) for p in ("p50", "p90")
    }
    top = top_users(jobs)
    nothing = tables.lack("jobs.user") or _lack_gpu_time(tables)
    found["top_users_gpu_time"] = answer(
        top["part"] if top["users"] else None,
        top["n"],
        top["left_out"] + top["unnamed"],
        nothing,
    )
    return found | {"failed_gpu_time": _failed(tables)}


def _failed(tables: HeadlineTables) -> Answer:
    """Answer from the GPU jobs whose status and GPU time are known: others may have failed too."""
    states = state_shares(tables.trace.jobs).to_pylist()
    known = [row for row in states if row["state"] != NONE]
    n = sum(row["num_jobs"] - row["left_out"] for row in known)
    of_all = sum(row["gpu_time"] for row in known)
    (failed,) = (row["gpu_time"] for row in known if row["state"] == "failed")
    left_out = sum(row["num_jobs"] for row in states) - n
    nothing = (
        tables.lack("jobs.status", "jobs.num_gpus", "jobs.duration")
        or "no job of a known status took any GPU time"
    )
    return answer(failed / of_all if of_all else None, n, left_out, nothing)


def _gangs(tables: HeadlineTables) -> dict[str, Answer]:
    """Answer from the gang sizes that jobs state, else from the tasks they have."""
    lack = tables.lack("jobs.num_tasks")
    if lack is None:
        (row,) = gang_sizes(tables.trace.jobs, (2,)).to_pylist()
    elif tables.trace.tasks is not None:
        (row,) = gangs_of_tasks(tables.trace.tasks, (2,)).to_pylist()
    else:
        return {"gang_tasks": Answer(None, why_not=f"the trace has no tasks table, and {lack}")}
    nothing = "the trace has no task of a known job"
    return {"gang_tasks": answer(row["task_share"], row["tasks"], row["left_out"], nothing)}


def _halves(tables: HeadlineTables) -> dict[str, Answer]:
    found = {row["half"]: row for row in waited_shares(tables.trace.jobs).to_pylist()}
    nothing = (
        tables.lack("jobs.submit_time", "jobs.start_time", "jobs.end_time", "jobs.duration")
        or "no such job has a submit, a start and an end time and a duration"
    )
    empty = {"over_share": None, "n": 0, "left_out": 0}
    rows_of = {half: found.get(half, empty) for half in ("short", "long")}
    return {
        f"{half}_jobs_waiting": answer(row["over_share"], row["n"], row["left_out"], nothing)
        for half, row in rows_of.items()
    }


def _recurrence(tables: HeadlineTables) -> dict[str, Answer]:
    lack = tables.lack("jobs.template")
    if lack is not None:
        return {"recurring_jobs": Answer(None, why_not=lack)}
    (row,) = recurrence(tables.trace.jobs, (RECURRING,)).to_pylist()
    return {"recurring_jobs": answer(row["job_share"], row["n"], row["left_out"], "")}


def _waits(tables: HeadlineTables) -> dict[str, Answer]:
    """Answer the waits of kinds of GPU jobs: by what a task asks for, and by GPU type."""
    jobs = tables.trace.jobs
    kind = ASSIGNED if ASSIGNED in tables.known["jobs"] else "gpu_type"
    table = relation(jobs, ("submit_time", "start_time", "num_gpus", "num_tasks", kind))
    wait = table.start_time - table.submit_time
    request = table.num_gpus / table.num_tasks.fill_null(1)
    kinds = {
        "sharing": ((request > 0) & (request < 1), "jobs.num_gpus", "asks for less than a GPU"),
        "whole": (request >= 1, "jobs.num_gpus", "asks for a GPU or more"),
        "v100": (table[kind].isin(_V100), f"jobs.{kind}", "is for V100 GPUs"),
        "misc": (table[kind].isin(_MISC), f"jobs.{kind}", "is for MISC GPUs"),
    }
    asked: dict[str, Any] = {}
    for name, (condition, *_) in kinds.items():
        asked[f"{name}_total"] = table.count(where=condition)
        asked[f"{name}_n"] = wait.count(where=condition)
        asked[f"{name}_p50"] = wait.quantile(0.5, where=condition)
        asked[f"{name}_p90"] = wait.quantile(0.9, where=condition)
    (found,) = rows(table.aggregate(**asked))
    out = {}
    for name, (_, column, what) in kinds.items():
        nothing = (
            tables.lack("jobs.submit_time", "jobs.start_time", column)
            or f"no job with a known wait {what}"
        )
        n = found[f"{name}_n"]
        left_out = found[f"{name}_total"] - n
        for p in ("p50", "p90"):
            out[f"wait_{p}_{name}"] = answer(
                found[f"{name}_{p}"] if n else None, n, left_out, nothing
            )
    return out
