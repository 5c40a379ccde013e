"""Alibaba GenTD26: requests of a diffusion-model serving system.

Lin et al., "Understanding Diffusion Model Serving in Production", SoCC'25; alibaba/clusterdata
``cluster-trace-v2026-GenAI/lora_request_trace.csv``. One row a request. Its times are shifted by
an unknown offset: differences are true, dates and hours of the day are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.traces.fields import (
    Facts,
    first_of,
    header_has,
    numbered,
    numbers_if_there,
    seconds_since,
    states,
    trace_of,
    words_if_there,
)
from windtunnel.traces.parquet import MAGIC, read_parquet
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import TextTable, parse_text

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

LICENCE = (
    "none in the folder itself; the repository's v2020 folder carries CC BY 4.0 "
    "(alibaba/clusterdata, cluster-trace-v2026-GenAI; cite SoCC'25)"
)
_WHOLE = "a whole Parquet file of requests"
_STATUS = {
    "SUCCEED": "completed",
    "FAILED": "failed",
    "PENDING": "pending",
    "PROCESSING": "running",
}
_REQUIRED = ("gmt_create", "predict_type", "predict_status", "exec_time_seconds")
#: Kept under their own names where they are there.
_KEPT = (
    "prompt_length",
    "negative_prompt_length",
    "num_images_per_prompt",
    "num_inference_steps",
    "num_lora",
)
_USED = frozenset((*_REQUIRED, *_KEPT, "groupId", "checkpoint_model_version_id"))


def _looks_genai(head: bytes) -> bool:
    return header_has(head, *_REQUIRED)


@reader("genai", extensions=(".csv", ".parquet"), sniff=_looks_genai)
def read_genai(path: str | Path, *, gpus: float = 1.0, bad_rows: str = "raise") -> Trace:
    """Read the requests.

    ``job_id`` is ``genai-N`` with N the row in the file, from 1; ``user`` is the group's id,
    ``template`` the base model, ``workload`` the type of task. ``duration`` is the execution time
    of the source, also for requests that were pending or running. Lengths of prompts, images,
    steps and LoRAs are kept as further columns. Time 0 is the first request; rows are sorted by
    submission.

    Args:
        path: plain or gzip CSV, or Parquet with the same columns; ``-`` = standard input.
        gpus: GPUs that a request takes: the file does not say.
        bad_rows: ``raise``, or ``drop``: leave out, counted, rows that break a rule.

    Raises:
        TraceError: the file is not such a table; names line and column (rows of Parquet count
            as lines, from 1).
        SchemaError: rules of the schema are broken.
        SpecError: ``gpus`` is no number above 0.
    """
    if not 0 < gpus < np.inf:
        raise SpecError("gpus", f"found {quote(gpus)}; expected a number above 0")
    file = source_name(path)
    data = read_bytes(path)
    text = _from_parquet(data, file) if data.startswith(MAGIC) else parse_text(data, file)
    text.require(*_REQUIRED)
    created = text.clock("gmt_create")
    status, notes = states(text, "predict_status", _STATUS)
    columns: dict[str, Any] = {
        "job_id": numbered(text, "genai"),
        "submit_time": seconds_since(created, first_of(created)),
        "duration": text.floats("exec_time_seconds", what="a number of seconds"),
        "num_gpus": pa.array(np.full(text.num_rows, float(gpus))),
        "num_tasks": pa.array(np.ones(text.num_rows, np.int32)),
        "user": words_if_there(text, "groupId"),
        "workload": text.text("predict_type"),
        "template": words_if_there(text, "checkpoint_model_version_id"),
        "status": status,
    }
    columns |= {name: numbers_if_there(text, name) for name in _KEPT}
    facts = Facts(LICENCE, notes=notes, used=_USED).noting(
        f"A request is taken to need {gpus:g} GPUs: the file does not say.",
        "Times are shifted by an unknown offset: hours of the day are not the true ones.",
    )
    return trace_of(path, text, columns, facts, bad_rows)


def _from_parquet(data: bytes, file: str) -> TextTable:
    """Return a Parquet file's columns as text; numbers come back exactly.

    Raises:
        TraceError: it is cut, empty, or holds columns that are no text or numbers.
    """
    table = read_parquet(pa.BufferReader(data), file, _WHOLE)
    texts: dict[str, Any] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        try:
            texts[field.name] = column.cast(pa.string())
        except pa.ArrowException as error:
            raise TraceError(
                file,
                _WHOLE,
                column=field.name,
                value=str(field.type),
                hint="The column holds neither text nor numbers.",
            ) from error
    return TextTable(file, pa.table(texts), range(1, table.num_rows + 1))
