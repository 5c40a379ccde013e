"""What the serving commands show: a run's figures, groups and models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.report.format import count, plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.serving import Placement


#: Models told one by one on a terminal.
TOLD = 12
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

    requests, gpus = plural(figures["num_counted"], "request"), plural(placed.num_gpus, "GPU")
    groups: dict[str, list[int]] = {}
    for group in placed.groups:
        groups.setdefault(group.parallel.name, []).append(len(group.models))
    held = [[name, str(len(sizes)), _range(sizes)] for name, sizes in groups.items()]
    models = [
        [
            *(str(one["model"]), one["name"], count(one["num_counted"])),
            *(cell(one[key]) for key in ("slo_attainment", "mean_latency", "p99_latency")),
        ]
        for one in figures["by_model"][:TOLD]
    ]
    columns = ["index", "model", "requests", "within SLO", "mean, s", "P99, s"]
    tables = [
        ("Groups", table_of(["(dp,op,pp)", "groups", "models in each"], held)),
        ("Models", table_of(columns, models, texts=1)),
    ]
    return Result(
        f"{requests}, {gpus}, {title}",
        facts=[Fact(text, told) for key, text in _FIGURES.items() if (told := cell(figures[key]))],
        parts=[Part("", tables=tables), *more.pop("parts", ())],
        notes=left_out(len(figures["by_model"])),
        **more,
    )


def _range(held: list[int]) -> str:
    low, high = min(held), max(held)
    return f"{low} to {high}" if low < high else str(low)


def left_out(models: int) -> list[str]:
    """Return how many models are left out of a table."""
    return [f"{models - TOLD} more models: see --json."] if models > TOLD else []


def cell(value: float | None) -> str:
    """Return a number as a table shows it; nothing where it is unknown."""
    return "" if value is None or math.isnan(value) else f"{value:.4g}"


_LATENCIES = {
    "ttft": "TTFT, s",
    "tpot": "TPOT, s",
    "itl": "between tokens, s",
    "e2e": "end to end, s",
}
_SUMMARY = {
    "within all SLOs": "slo_attainment",
    "goodput, 1/s": "goodput",
    "goodput a GPU, 1/s": "goodput_per_gpu",
    "output tokens, 1/s": "output_tokens_per_s",
    "utilisation": "utilization",
    "refused": "num_rejected",
    "evictions": "num_restarts",
    "prompt tokens found in the cache": "prefix_hit_rate",
    "most KV tokens reserved": "peak_kv",
    "energy, kWh": "energy_kwh",
    "energy a token, J": "joules_per_output_token",
    "carbon, kg": "carbon_kg",
    "money": "money",
}


def run_part(figures: dict[str, float | None]) -> Part:
    """Return the figures of a run; what is not known is left out."""
    rows = [
        [text, *(cell(figures[f"{point}_{name}"]) for point in ("mean", "p50", "p90", "p99"))]
        for name, text in _LATENCIES.items()
    ]
    known = [(text, figures[name]) for text, name in _SUMMARY.items()]
    lines = [[text, cell(value)] for text, value in known if value is not None]
    tables = [
        ("", table_of(["latency", "mean", "P50", "P90", "P99"], rows)),
        ("", table_of(["measure", "value"], lines)),
    ]
    return Part("", tables=tables)


def title_of(figures: dict[str, float | None], replicas: int) -> str:
    """Return how many requests, replicas and GPUs a run has."""
    total, gpus = int(figures["num_requests"] or 0), int(figures["gpus"] or 0)
    words = (plural(total, "request"), plural(replicas, "replica"), plural(gpus, "GPU"))
    return ", ".join(words)


def rates_part(by_rate: list[dict[str, Any]]) -> Part:
    """Return the figures at other rates."""
    names = ("rate", "slo_attainment", "goodput", "p99_ttft", "p99_tpot")
    rows = [[cell(row[name]) for name in names] for row in by_rate]
    columns = ["requests/s", "within all SLOs", "goodput, 1/s", "P99 TTFT, s", "P99 TPOT, s"]
    return Part("", tables=[("At other rates", table_of(columns, rows))] if rows else [])
