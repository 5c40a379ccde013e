"""Traces: readers, registry, downloads and generators."""

from windtunnel.traces.native import write_csv, write_parquet
from windtunnel.traces.open import open_trace
from windtunnel.traces.readers import reader
from windtunnel.traces.registry import fetch, list_traces
from windtunnel.traces.swf_writer import write_swf
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.writers import writer

__all__ = [
    "Trace",
    "TraceMetadata",
    "fetch",
    "list_traces",
    "open_trace",
    "reader",
    "write_csv",
    "write_parquet",
    "write_swf",
    "writer",
]
