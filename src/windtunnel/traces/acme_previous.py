"""The tables of earlier traces that AcmeTrace brings along for comparison.

InternLM/AcmeTrace ``data/job_trace/trace_previous_work/{philly,helios,pai}_trace.csv`` (only in
the full set, on Hugging Face). What is documented of them is what the notebook of AcmeTrace reads:
GPUs, run time and state, for Philly and PAI no time of submission. They serve for distributions of
run time, not for a replay in time. Helios' is read by `windtunnel.traces.helios`.
"""

from __future__ import annotations

from windtunnel.traces.layout import SLURM_STATES, Layout, Rows, number, seconds, words

_PHILLY_STATES = {
    "Pass": "completed",
    "Failed": "failed",
    "Killed": "cancelled",
    **{word: SLURM_STATES[word] for word in ("COMPLETED", "FAILED", "CANCELLED")},
}
_PHILLY = Layout(
    "acme-philly",
    licence="CC BY 4.0 (msr-fiddle/philly-traces, InternLM/AcmeTrace)",
    columns={
        "duration": seconds("duration"),
        "num_gpus": number("gpu_num", "GPUs"),
        "status": words("state", _PHILLY_STATES),
        "source_queue": seconds("queue").optional,
    },
    extensions=("philly_trace.csv",),
    by_name=True,
)
_PAI = Layout(
    "acme-pai",
    licence="CC BY 4.0 (alibaba/clusterdata, cluster-trace-gpu-v2020; InternLM/AcmeTrace)",
    columns={
        "duration": seconds("duration"),
        "num_gpus": number("plan_gpu", "percent of a GPU", per=100),
        "num_cpus": number("plan_cpu", "percent of a core", per=100),
        "status": words("status", {"Failed": "failed"}, None),
        "source_queue": seconds("wait_time"),
    },
)


@_PHILLY.reader
def read_acme_philly(rows: Rows) -> None:
    """Read AcmeTrace's ``philly_trace.csv``; ``job_id`` is ``philly-N``, N the row, from 1."""
    rows["job_id"] = rows.numbered("philly")


@_PAI.reader
def read_acme_pai(rows: Rows) -> None:
    """Read AcmeTrace's ``pai_trace.csv``.

    A row is a task, ``job_id`` is ``pai-N`` with N the row in the file, from 1. Plans are in
    percent of a core and of a GPU, of one instance; the number of instances is not documented.
    ``wait_time`` is kept as ``source_queue``. Of the states only Failed is kept, as in the
    notebook; the others are null. ``duration`` is the mean run time of a task's instances; about
    four in ten tasks have none.
    """
    rows["job_id"] = rows.numbered("pai")
    rows.note(
        "A row is a task and its GPUs and CPUs are those of one instance.",
        f"{rows['duration'].null_count:,} of {rows.count:,} rows have no duration.",
        f"{rows['num_gpus'].null_count:,} rows have no number of GPUs.",
    )
