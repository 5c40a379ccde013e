"""Morphling's workloads: training jobs with models, execution plans and numbers of iterations.

Yuan et al., MLSys'25; AlibabaPAI/reconfigurable-dl-scheduler, ``simulator/workloads``. How long a
job runs depends on what it runs on: the file's ``duration`` is that of the plans of one of the
workloads, so durations are worked out anew from iterations and the measured time of the plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.throughput.morphling_models import training_models
from windtunnel.throughput.requests import requested_option
from windtunnel.traces.layout import Layout, Rows, number, seconds, text, whole, words
from windtunnel.traces.resuming import MORPHLING

_PROMISED = {"0": "0", "1": "1", "0.0": "0", "1.0": "1"}
_MORPHLING = Layout(
    "morphling",
    licence="Apache-2.0 (AlibabaPAI/reconfigurable-dl-scheduler; cite MLSys'25)",
    columns={
        "job_id": text("name"),
        "submit_time": seconds("submission_time"),
        "num_gpus": number("num_gpus", "GPUs"),
        "num_cpus": number("num_cpus", "a number of CPU cores"),
        "template": text("application"),
        "workload": text("application"),
        "plan": text("exec_plan"),
        "steps": whole("steps", "iterations"),
        "is_sla": words("is_sla", _PROMISED, "").optional,
        "recorded_duration": seconds("duration"),
    },
)
#: The machines on which the plans were measured: GPUs and cores of a node, nodes.
_MEASURED_ON = {"node_gpus": 8, "node_cpus": 96, "num_nodes": 8}


@_MORPHLING.reader
def read_morphling(rows: Rows) -> None:
    """Read a workload.

    ``application`` becomes ``template`` and ``workload``, ``exec_plan`` the further column
    ``plan``; ``steps`` and ``is_sla`` (1 = guaranteed; without the column 0) are kept, the file's
    own duration as ``recorded_duration``. ``duration`` is steps x the time of an iteration of the
    plan on the GPUs asked for; the file's own where that is not known. ``restore_time`` is what
    the published simulator counts for every launch, 260 s.
    """
    rows.text.refuse("steps", pc.less(rows["steps"], 0), "a whole number >= 0")
    rows["is_sla"] = pc.cast(rows.get("is_sla", pa.array(np.zeros(rows.count))), pa.float64())
    rows["restore_time"] = pa.repeat(pa.scalar(MORPHLING), rows.count)
    times = _iteration_times(rows)
    worked_out = pc.multiply(pc.cast(rows["steps"], pa.float64()), times)
    rows["duration"] = pc.coalesce(worked_out, rows["recorded_duration"])
    rows.note(
        "Durations are steps x the measured time of an iteration of the job's plan on its GPUs, "
        "launching left out; the file's own, for the plans of one workload, are kept as "
        "recorded_duration."
    )
    if times.null_count:
        rows.note(
            f"{times.null_count:,} jobs keep the file's duration: nothing is known of their model "
            "with their plan on so many GPUs."
        )


def _iteration_times(rows: Rows) -> pa.Array:
    """Return the seconds of an iteration of each job as asked for, null where not known."""
    models = training_models()
    options = {name: model.options(**_MEASURED_ON) for name, model in models.items()}
    gpus, cpus = (np.asarray(rows[name].to_numpy(), float) for name in ("num_gpus", "num_cpus"))
    asked: Any = zip(
        rows["template"].to_pylist(), rows["plan"].to_pylist(), gpus, cpus, strict=True
    )
    found = (requested_option(options.get(m, ()), g, p or "", c) for m, p, g, c in asked)
    return pa.array([None if o is None else o.iteration_time for o in found], pa.float64())
