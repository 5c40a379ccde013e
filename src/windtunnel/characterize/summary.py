"""One row that sums up a cluster: the columns of AcmeTrace's ``cluster_summary.csv``.

InternLM/AcmeTrace ``data/cluster_summary.csv`` (figure 3 and table 1 of NSDI'24). Times in s, GPU
time in GPU-seconds, rates 0..1. A cell that cannot be had is null, and its reason is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from windtunnel.characterize.facts import source_fact
from windtunnel.characterize.population import population
from windtunnel.characterize.relation import rows
from windtunnel.characterize.states import state_of
from windtunnel.traces.trace import Trace

if TYPE_CHECKING:
    from windtunnel.companions import Relation

_STATES = {"complete": "completed", "cancel": "cancelled", "fail": "failed"}
#: The columns of the file, in its order.
COLUMNS: tuple[str, ...] = (
    *("id", "job_num", "cpu_job_num", "gpu_job_num"),
    *("avg_run_time_gpu", "avg_que_time_gpu", "avg_gpu_num"),
    *("med_run_time_gpu", "med_que_time_gpu", "med_gpu_num", "max_run_time_gpu", "max_gpu"),
    *(f"{state}_rate_gpu" for state in _STATES),
    *(f"{state}_gpu_time" for state in _STATES),
    *(f"{state}_rate_gpu_time" for state in _STATES),
    *("avg_run_time_cpu", "avg_que_time_cpu", "med_run_time_cpu", "med_que_time_cpu"),
    *(f"{state}_rate_cpu" for state in _STATES),
)
#: The file's rates have three digits: a rate is had where jobs of unknown end cannot move them.
_HALF_A_DIGIT = 0.0005


@dataclass(frozen=True)
class ClusterSummary:
    """A cluster in one row.

    Attributes:
        row: `COLUMNS` -> value, None where it cannot be had.
        n: column -> jobs that its value is computed from; numbers of jobs are not among them.
        left_out: column -> jobs that it should be computed from too, but which lack the fact.
        why: column that is None -> the reason, in a sentence.
    """

    row: dict[str, Any]
    n: dict[str, int]
    left_out: dict[str, int]
    why: dict[str, str]


def cluster_summary(
    trace: Trace | Relation, name: str | None = None, *, source: bool = False
) -> ClusterSummary:
    """Return a cluster in one row.

    A job without a number of GPUs counts in ``job_num`` alone. Jobs that timed out or lost their
    node count as failed (`windtunnel.characterize.states`). Values are not rounded.

    Args:
        trace: a trace, or a jobs table (`windtunnel.schema`).
        name: the cell ``id``; default: the trace's name, None for a table.
        source: take the source's own run time, queueing time, GPU time and GPUs where it gives
            them, as AcmeTrace does (`windtunnel.characterize.facts.source_fact`).
    """
    jobs = trace.jobs if isinstance(trace, Trace) else trace
    if name is None and isinstance(trace, Trace):
        name = trace.name
    wanted = ("duration", "wait", "gpu_time", "num_gpus")
    facts = tuple(source_fact(jobs, fact) if source else fact for fact in wanted)
    gpu, cpu = _kind(jobs, facts, "gpu"), _kind(jobs, facts, "cpu")
    found = ClusterSummary({}, {}, {}, {})
    found.row["id"] = name
    if name is None:
        found.why["id"] = "The jobs table has no name."
    found.row["job_num"] = gpu["num_jobs"] + gpu["unsized"] + cpu["num_jobs"]
    found.row["cpu_job_num"] = cpu["num_jobs"]
    found.row["gpu_job_num"] = gpu["num_jobs"]
    _times(found, gpu, "gpu")
    for cell, key in (("avg_gpu_num", "avg"), ("med_gpu_num", "med"), ("max_gpu", "max")):
        _put(found, cell, gpu[f"{key}_gpus"], (gpu["num_jobs"], 0), "There are no GPU jobs.")
    _put(
        found,
        "max_run_time_gpu",
        gpu["max_run"],
        (gpu["n_run"], gpu["num_jobs"] - gpu["n_run"]),
        _no_fact("gpu", gpu, "run time"),
    )
    _rates(found, gpu, "gpu")
    _gpu_time(found, gpu)
    _times(found, cpu, "cpu")
    _rates(found, cpu, "cpu")
    return replace(found, row={column: found.row[column] for column in COLUMNS})


def _put(
    found: ClusterSummary, cell: str, value: Any, counts: tuple[int, int], reason: str
) -> None:
    """Enter a value with its counts (``n``, ``left_out``), or the reason why there is none."""
    found.row[cell] = value
    found.n[cell], found.left_out[cell] = counts
    if value is None:
        found.why[cell] = reason


def _kind(jobs: Relation, facts: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the sums of GPU or CPU jobs."""
    table = population(jobs, facts, where=where, columns=("status",))
    run, wait, held, gpus = (table[f"fact_{i}"] for i in range(4))
    state = state_of(table.status)
    asked: dict[str, Any] = {
        "num_jobs": table.asked.sum().fill_null(0),
        "unsized": (~table.asked).sum().fill_null(0),
        "unknown": (table.asked & table.status.isnull()).sum().fill_null(0),
        "n_held": held.count(),
        "held": held.sum().fill_null(0.0),
        "held_unknown": held.sum(where=table.status.isnull()).fill_null(0.0),
        "avg_gpus": gpus.mean(),
        "med_gpus": gpus.quantile(0.5),
        "max_gpus": gpus.max(),
        "max_run": run.max(),
    }
    for key, values in (("run", run), ("que", wait)):
        asked[f"n_{key}"] = values.count()
        asked[f"avg_{key}"] = values.mean()
        asked[f"med_{key}"] = values.quantile(0.5)
    for key, word in _STATES.items():
        asked[f"num_{key}"] = (table.asked & (state == word)).sum().fill_null(0)
        asked[f"held_{key}"] = held.sum(where=state == word).fill_null(0.0)
    (row,) = rows(table.aggregate(**asked))
    return row


def _times(found: ClusterSummary, sums: dict[str, Any], kind: str) -> None:
    """Enter mean and median of run and queueing time."""
    for how in ("avg", "med"):
        for key, what in (("run", "run time"), ("que", "wait")):
            n = sums[f"n_{key}"]
            reason = _no_fact(kind, sums, what)
            left_out = sums["num_jobs"] - n
            _put(found, f"{how}_{key}_time_{kind}", sums[f"{how}_{key}"], (n, left_out), reason)


def _rates(found: ClusterSummary, sums: dict[str, Any], kind: str) -> None:
    """Enter the shares of jobs by state."""
    n, unknown = sums["num_jobs"], sums["unknown"]
    known = bool(n) and unknown < _HALF_A_DIGIT * n
    for key in _STATES:
        value = sums[f"num_{key}"] / n if known else None
        _put(found, f"{key}_rate_{kind}", value, (n - unknown, unknown), _no_state(kind, sums))


def _gpu_time(found: ClusterSummary, sums: dict[str, Any]) -> None:
    """Enter the GPU time by state, and its shares."""
    total, unknown = sums["held"], sums["held_unknown"]
    known = bool(sums["n_held"]) and unknown <= _HALF_A_DIGIT * total
    reason = _no_state("gpu", sums) if sums["n_held"] else _no_fact("gpu", sums, "run time")
    counts = (sums["n_held"], sums["num_jobs"] - sums["n_held"])
    for key in _STATES:
        held = sums[f"held_{key}"]
        _put(found, f"{key}_gpu_time", held if known else None, counts, reason)
        share = held / total if known and total else None
        no_share = reason if not known else "The jobs took no GPU time."
        _put(found, f"{key}_rate_gpu_time", share, counts, no_share)


def _no_fact(kind: str, sums: dict[str, Any], what: str) -> str:
    if not sums["num_jobs"]:
        return f"There are no {kind.upper()} jobs."
    return f"None of {sums['num_jobs']:,} {kind.upper()} jobs has a {what}."


def _no_state(kind: str, sums: dict[str, Any]) -> str:
    if not sums["num_jobs"]:
        return f"There are no {kind.upper()} jobs."
    return f"How they ended is not known of {sums['unknown']:,} of {sums['num_jobs']:,} jobs."
