"""Alibaba GenTD26: requests of a diffusion-model serving system.

Lin et al., "Understanding Diffusion Model Serving in Production", SoCC'25; alibaba/clusterdata
``cluster-trace-v2026-GenAI/lora_request_trace.csv``. One row a request. Its times are shifted by
an unknown offset: differences are true, dates and hours of the day are not.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windtunnel.checked import checked_number
from windtunnel.traces.layout import Layout, Rows, clock, number, seconds, text, words

_STATUS = {
    "SUCCEED": "completed",
    "FAILED": "failed",
    "PENDING": "pending",
    "PROCESSING": "running",
}
_KEPT = (
    *("prompt_length", "negative_prompt_length", "num_images_per_prompt"),
    *("num_inference_steps", "num_lora"),
)


_REQUESTS = Layout(
    "genai",
    licence="none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-v2026-GenAI; cite SoCC'25)",
    columns={
        "submit_time": clock("gmt_create"),
        "duration": seconds("exec_time_seconds"),
        "user": text("groupId").optional,
        "workload": text("predict_type"),
        "template": text("checkpoint_model_version_id").optional,
        "status": words("predict_status", _STATUS),
        **{name: number(name).optional for name in _KEPT},
    },
)


@_REQUESTS.reader
def read_genai(rows: Rows, *, gpus: float = 1.0) -> None:
    """Read the requests.

    ``job_id`` is ``genai-N`` with N the row in the file, from 1; ``user`` is the group's id,
    ``template`` the base model, ``workload`` the type of task. ``duration`` is the execution time
    of the source, also for requests that were pending or running. Rows of Parquet count as lines.

    Args:
        rows: the file's.
        gpus: GPUs that a request takes: the file does not say.
    """
    checked_number("gpus", gpus, "a number above 0", above=0)
    rows["job_id"] = rows.numbered("genai")
    rows["num_gpus"] = pa.array(np.full(rows.count, float(gpus)))
    rows["num_tasks"] = rows.ones()
    rows.note(
        f"A request is taken to need {gpus:g} GPUs: the file does not say.",
        "Times are shifted by an unknown offset: hours of the day are not the true ones.",
    )
