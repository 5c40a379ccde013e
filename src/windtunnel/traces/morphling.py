"""Morphling's workloads: training jobs with models, execution plans and numbers of iterations.

Yuan et al., MLSys'25; AlibabaPAI/reconfigurable-dl-scheduler, ``simulator/workloads``. How long a
job runs depends on what it runs on: the file's ``duration`` is that of the plans of one of the
workloads, so durations are worked out anew from iterations and the measured time of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import TraceError
from windtunnel.throughput.morphling_models import training_models
from windtunnel.throughput.requests import requested_option
from windtunnel.traces.fields import Facts, header_has, trace_of
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import TextTable, parse_text

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

LICENCE = "Apache-2.0 (AlibabaPAI/reconfigurable-dl-scheduler; cite MLSys'25)"
_REQUIRED = (
    "name",
    "submission_time",
    "duration",
    "application",
    "num_gpus",
    "num_cpus",
    "exec_plan",
    "steps",
)
#: The machines on which the plans were measured: GPUs and cores of a node, nodes.
_MEASURED_ON = {"node_gpus": 8, "node_cpus": 96, "num_nodes": 8}


def _looks_morphling(head: bytes) -> bool:
    return header_has(head, *_REQUIRED)


@reader("morphling", extensions=(".csv",), sniff=_looks_morphling)
def read_morphling(path: str | Path, *, bad_rows: str = "raise") -> Trace:
    """Read a workload.

    ``application`` becomes ``template`` and ``workload``, ``exec_plan`` the further column
    ``plan``; ``steps`` and ``is_sla`` (1 = guaranteed; without the column 0) are kept, the file's
    own duration as ``recorded_duration``. ``duration`` is steps x the time of an iteration of the
    plan on the GPUs asked for; the file's own where that is not known.

    Args:
        path: plain or gzip CSV; ``-`` = standard input.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a workload; names line and column.
        SchemaError: rules of the schema are broken.
    """
    text = parse_text(read_bytes(path), source_name(path))
    text.require(*_REQUIRED)
    steps = text.integers("steps", what="a whole number of iterations")
    _check_least(text, "steps", steps)
    recorded = text.finite("duration", what="a number of seconds")
    gpus = text.floats("num_gpus", what="a number of GPUs")
    cpus = text.floats("num_cpus", what="a number of CPU cores")
    times = _iteration_times(text, gpus, cpus)
    worked_out = pc.multiply(pc.cast(steps, pa.float64()), times)
    columns: dict[str, Any] = {
        "job_id": text.text("name"),
        "submit_time": text.floats("submission_time", what="a number of seconds"),
        "duration": pc.coalesce(worked_out, recorded),
        "num_gpus": gpus,
        "num_cpus": cpus,
        "template": text.text("application"),
        "workload": text.text("application"),
        "plan": text.text("exec_plan"),
        "steps": steps,
        "is_sla": _promised(text),
        "recorded_duration": recorded,
    }
    used = frozenset((*_REQUIRED, "is_sla"))
    facts = Facts(LICENCE, used=used).noting(
        "Durations are steps x the measured time of an iteration of the job's plan on its GPUs, "
        "launching left out; the file's own, for the plans of one workload, are kept as "
        "recorded_duration."
    )
    if times.null_count:
        facts = facts.noting(
            f"{times.null_count:,} jobs keep the file's duration: nothing is known of their model "
            "with their plan on so many GPUs."
        )
    return trace_of(path, text, columns, facts, bad_rows)


def _iteration_times(text: TextTable, gpus: Any, cpus: Any) -> pa.Array:
    """Return the seconds of an iteration of each job as asked for, null where not known."""
    models = training_models()
    options = {name: model.options(**_MEASURED_ON) for name, model in models.items()}
    rows = zip(
        text.text("application").to_pylist(),
        text.text("exec_plan").to_pylist(),
        np.asarray(gpus.to_numpy(), dtype=np.float64),
        np.asarray(cpus.to_numpy(), dtype=np.float64),
        strict=True,
    )
    found = (requested_option(options.get(m, ()), g, p or "", c) for m, p, g, c in rows)
    return pa.array([None if o is None else o.iteration_time for o in found], pa.float64())


def _promised(text: TextTable) -> Any:
    if "is_sla" not in text.table.column_names:
        return pa.array(np.zeros(text.num_rows))
    words = text.mapped("is_sla", {"0": "0", "1": "1", "0.0": "0", "1.0": "1"})
    return words.cast(pa.float64())


def _check_least(text: TextTable, name: str, numbers: Any) -> None:
    """Check that no number of a column is negative.

    Raises:
        TraceError: one is; names its line.
    """
    low = np.flatnonzero(pc.less(numbers, 0).fill_null(False).to_numpy(zero_copy_only=False))
    if len(low):
        row = int(low[0])
        raise TraceError(
            text.file,
            "a whole number >= 0",
            row=int(text.lines[row]),
            column=name,
            value=numbers[row].as_py(),
        )
