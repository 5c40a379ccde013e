"""Alibaba PAI v2020, the job files of the simulator that came with the trace.

Weng et al., "MLaaS in the Wild", NSDI'22; alibaba/clusterdata ``cluster-trace-gpu-v2020/simulator``
One row a job; times are seconds since an unknown instant. In ``pai_job_no_estimate_100K.csv`` and
its kin GPUs and CPUs are those of one instance; in ``pai_job_duration_estimate_100K.csv`` they are
those of the job. The ``*_dur`` columns are run times expected from the history of the user, the
group, or either with the same GPU request.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.layout import Layout, Rows, number, seconds, text, whole

_ESTIMATES = ("user_dur", "user_gpu_dur", "group_dur", "group_gpu_dur")
_COLUMNS = {
    "job_id": text("job_id"),
    "submit_time": seconds("submit_time"),
    "duration": seconds("duration"),
    "num_gpus": number("num_gpu", "GPUs"),
    "num_tasks": whole("num_inst", "instances"),
    "num_cpus": number("num_cpu", "CPUs"),
    "gpu_type": text("gpu_type").optional,
    "user": text("user").optional,
    "template": text("group").optional,
    "source_queue": seconds("wait_time").optional,
    **{name: seconds(name).optional for name in _ESTIMATES},
}
_PAI = Layout(
    "pai-sim",
    licence="CC BY 4.0 (alibaba/clusterdata, cluster-trace-gpu-v2020; cite NSDI'22)",
    columns=_COLUMNS,
    ignored=("job_name",),
)
_PAI_TOTALS = replace(
    _PAI,
    name="pai-sim-totals",
    columns=_COLUMNS | {"num_tasks": whole("num_pod", "pods")},
    without=("num_inst",),
)
#: How the files name the machines without GPUs.
_NO_GPU = "CPU"


@_PAI.reader
def read_pai_simulator(rows: Rows) -> None:
    """Read a job file of the PAI simulator whose requests are those of one instance.

    A job is a gang of ``num_inst`` instances: its GPUs and CPUs are theirs together. As in the
    simulator, ``duration`` is cut to whole seconds and 0 becomes 1; the notes count both.
    ``group`` becomes ``template``; ``gpu_type`` CPU, which asks for a machine without GPUs,
    becomes null. The ``*_dur`` columns are kept under their names, ``wait_time`` (what the job
    waited in the trace) as ``source_queue``.
    """
    instances = rows["num_tasks"].cast(pa.float64(), safe=False)
    for name in ("num_gpus", "num_cpus"):
        rows[name] = pc.multiply(rows[name], instances)
    _read_job(rows)


@_PAI_TOTALS.reader
def read_pai_totals(rows: Rows, *, pods: bool = True) -> None:
    """Read a job file of the PAI simulator whose requests are those of the whole job.

    A job is a gang of ``num_pod`` pods, each of which asks for its part. All else is as in
    `read_pai_simulator`.

    Args:
        rows: the file's.
        pods: False = each job is one task that asks for all, as the published simulator flies it.
    """
    if pods:
        rows.note("GPUs and CPUs are totals of num_pod pods, each of which asks for its part.")
    else:
        rows["num_tasks"] = rows.ones()
        rows.note("Each job is one task with all its GPUs, as the published simulator flies it.")
    _read_job(rows)


def _read_job(rows: Rows) -> None:
    """Take durations and GPU types as the simulator does."""
    given, full = rows["duration"], pc.trunc(rows["duration"])
    # A small negative number is wrong, not zero: it stays, and the schema refuses it.
    zero = pc.and_(pc.equal(full, 0.0), pc.greater_equal(given, 0.0))
    wrong = pc.and_(pc.equal(full, 0.0), pc.less(given, 0.0))
    cut = rows.differing(full, "duration")
    rows["duration"] = pc.if_else(zero, 1.0, pc.if_else(wrong, given, full))
    rows.note(
        f"As in the simulator, {cut:,} durations were cut to whole seconds and {_true(zero):,} of "
        "0 seconds were raised to 1."
    )
    without = pc.equal(rows["gpu_type"], _NO_GPU)
    rows["gpu_type"] = pc.if_else(without, pa.scalar(None, pa.string()), rows["gpu_type"])
    if count := _true(without):
        rows.note(f"{count:,} jobs name the machines without GPUs ({_NO_GPU}): no GPU type.")


def _true(cells: pa.ChunkedArray) -> int:
    return int(pc.sum(cells).as_py() or 0)
