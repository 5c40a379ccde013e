"""What the serving commands show: a run's figures, groups and models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.report.format import plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.serving import Placement


#: Models shown one by one on a terminal.
MODELS_SHOWN = 12
#: What `--out` of a run or a sweep may end in.
CHARTS_AND_TABLES = (".html", ".svg", ".csv", ".parquet")
_FIGURES = {
    "slo_attainment": "within SLO",
    "mean_latency": "mean latency, s",
    "p50_latency": "P50 latency, s",
    "p90_latency": "P90 latency, s",
    "p99_latency": "P99 latency, s",
    "throughput": "good requests/s",
    "utilization": "GPU time in use",
}


def run_result(figures: dict[str, Any], placed: Placement, title: str, **more: Any) -> Result:
    """Return a run's figures, groups and first models; ``more``: of the result."""
    from windtunnel.report.sections import Fact
    from windtunnel.report.serving_page import models_table

    requests, gpus = plural(figures["num_counted"], "request"), plural(placed.num_gpus, "GPU")
    groups: dict[str, list[int]] = {}
    for group in placed.groups:
        groups.setdefault(group.parallel.name, []).append(len(group.models))
    held = [[name, str(len(sizes)), _range(sizes)] for name, sizes in groups.items()]
    tables = [
        ("Groups", table_of(["(dp,op,pp)", "groups", "models in each"], held)),
        ("Models", models_table(figures["by_model"], MODELS_SHOWN)),
    ]
    return Result(
        f"{requests}, {gpus}, {title}",
        facts=[
            Fact(text, value) for key, text in _FIGURES.items() if (value := cell(figures[key]))
        ],
        parts=[Part("", tables=tables), *more.pop("parts", ())],
        notes=left_out(len(figures["by_model"])),
        **more,
    )


def _range(held: list[int]) -> str:
    low, high = min(held), max(held)
    return f"{low} to {high}" if low < high else str(low)


def left_out(models: int) -> list[str]:
    """Return how many models are left out of a table."""
    left = models - MODELS_SHOWN
    return [f"{left} more models: see --json."] if left > 0 else []


def cell(value: float | None) -> str:
    """Return a number as a table shows it; nothing where it is unknown."""
    return "" if value is None or math.isnan(value) else f"{value:.4g}"
