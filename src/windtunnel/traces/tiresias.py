"""Tiresias' job lists: ``60_job.csv`` and its kin, training jobs with a model and iterations.

Gu et al., NSDI'19; SymbioticLab/Tiresias, ``simulator``. Times are seconds since the first
submission or before it.
"""

from __future__ import annotations

from windtunnel.traces.layout import Layout, Rows, number, seconds, text, whole

_TIRESIAS = Layout(
    "tiresias",
    licence="Apache-2.0 (SymbioticLab/Tiresias; cite NSDI'19)",
    columns={
        "job_id": text("job_id"),
        "submit_time": seconds("submit_time"),
        "duration": seconds("duration"),
        "num_gpus": number("num_gpu", "GPUs"),
        "template": text("model_name"),
        "iterations": whole("iterations", "iterations"),
    },
    ignored=("interval",),
    extensions=(".csv",),
)


@_TIRESIAS.reader
def read_tiresias(rows: Rows) -> None:
    """Read a list of jobs.

    ``num_gpu`` is the whole job's. ``model_name`` becomes ``template``, ``iterations`` is kept;
    ``interval``, how often the published simulator logs, is not read. Nothing says when the jobs
    started.
    """
    rows.note("The list does not say when jobs started, nor how they ended.")
