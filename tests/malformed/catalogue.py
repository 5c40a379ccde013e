"""Every sample, by name: at least one for each reader of traces and each format of telemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from json_samples import json_samples, parquet_samples, twin_samples
from telemetry_samples import curve_samples, pai_samples, telemetry_samples
from trace_samples import trace_samples

if TYPE_CHECKING:
    from samples import Sample

SAMPLES: dict[str, Sample] = {
    sample.name: sample
    for sample in (
        *trace_samples(),
        *json_samples(),
        *parquet_samples(),
        *twin_samples(),
        *telemetry_samples(),
        *curve_samples(),
        *pai_samples(),
    )
}
