"""Acme, the job tables of the clusters Seren and Kalos.

Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI'24;
InternLM/AcmeTrace ``data/job_trace/trace_seren.csv`` and ``trace_kalos.csv``. Times carry their
offset from UTC: +08:00 in Seren's table, +00:00 in Kalos'. The tables of other clusters that
AcmeTrace brings along are read by `acme_previous`.

The tables of earlier traces that AcmeTrace brings along for comparison.

InternLM/AcmeTrace ``data/job_trace/trace_previous_work/{philly,helios,pai}_trace.csv`` (only in
the full set, on Hugging Face). What is documented of them is what the notebook of AcmeTrace reads:
GPUs, run time and state, for Philly and PAI no time of submission. They serve for distributions of
run time, not for a replay in time. Helios' is read by `windtunnel.traces.helios`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.layout import (
    SLURM_STATES,
    Layout,
    Rows,
    instant,
    number,
    seconds,
    text,
    whole,
    words,
)

_ZONES = {"+08:00": "Asia/Shanghai", "+00:00": "UTC"}
_ACME = Layout(
    "acme",
    licence="CC BY 4.0 (InternLM/AcmeTrace; cite NSDI'24)",
    columns={
        "job_id": text("job_id"),
        "submit_time": instant("submit_time"),
        "start_time": instant("start_time"),
        "end_time": instant("end_time"),
        "num_gpus": number("gpu_num", "GPUs"),
        "num_tasks": whole("node_num", "nodes"),
        "num_cpus": number("cpu_num", "CPUs"),
        "mem_gib": number("mem_per_pod_GB", "GB").optional,
        "user": text("user"),
        "workload": text("type"),
        "status": words("state", SLURM_STATES),
        "source_duration": seconds("duration").optional,
        "source_queue": seconds("queue").optional,
        "fail_time": instant("fail_time").optional,
        "stop_time": instant("stop_time").optional,
        "shared_mem_per_pod": number("shared_mem_per_pod").optional,
    },
    ignored=("gpu_time",),  # the source's duration times GPUs
    recognised_by=("job_id", "node_num", "gpu_num", "type", "submit_time"),
    without=("vc",),
)


@_ACME.reader
def read_acme(rows: Rows) -> None:
    """Read the job table of Seren or Kalos.

    ``duration`` is end minus start. The source's own is kept as ``source_duration``: in Kalos'
    published rows it is end minus submission, against its README, and the notes count the rows
    that differ. ``source_queue`` is the source's queueing time. ``mem_gib`` is the memory of a
    pod times the nodes; ``type`` becomes ``workload``.
    """
    rows["duration"] = rows.minus("end_time", "start_time")
    memory = pc.multiply(rows["mem_gib"], rows["num_tasks"].cast(pa.float64(), safe=False))
    rows["mem_gib"] = pc.multiply(memory, 1e9 / 2**30)
    rows.note(
        "Duration is end minus start; the source's own differs in "
        f"{rows.differing(rows['duration'], 'source_duration'):,} of {rows.count:,} rows and is "
        "kept as source_duration.",
        "The source's queueing time differs from start minus submission in "
        f"{rows.differing(rows.minus('start_time', 'submit_time'), 'source_queue'):,} rows and is "
        "kept as source_queue.",
    )
    cells = pc.utf8_trim_whitespace(rows.text.text("submit_time"))
    found = sorted(end for end in pc.utf8_slice_codeunits(cells, -6).unique().to_pylist() if end)
    rows.zone = _ZONES.get(found[0]) if len(found) == 1 else None
    if rows.zone is None:
        rows.note(f"Submission times have {len(found):,} different ends, no one zone is known.")


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
