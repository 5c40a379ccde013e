"""What the commands of language models print: latencies, use, energy, and other rates."""

from __future__ import annotations

from typing import Any

from windtunnel.cli.serving_told import cell

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


def tell_run(figures: dict[str, float | None], replicas: int) -> None:
    """Print the figures of a run; what is not known is left out."""
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.report.format import plural

    console = screen()
    total, gpus = int(figures["num_requests"] or 0), int(figures["gpus"] or 0)
    words = (plural(total, "request"), plural(replicas, "replica"), plural(gpus, "GPU"))
    heading(console, ", ".join(words))
    rows = [
        [text, *(cell(figures[f"{point}_{name}"]) for point in ("mean", "p50", "p90", "p99"))]
        for name, text in _LATENCIES.items()
    ]
    console.print(plain_table(["latency", "mean", "P50", "P90", "P99"], rows, numbers=4))
    known = [(text, figures[name]) for text, name in _SUMMARY.items()]
    lines = [[text, cell(value)] for text, value in known if value is not None]
    console.print(plain_table(["measure", "value"], lines, numbers=1))


def tell_rates(by_rate: list[dict[str, Any]]) -> None:
    """Print the figures at other rates."""
    from windtunnel.cli.screen import heading, plain_table, screen

    if not by_rate:
        return
    console = screen()
    heading(console, "At other rates")
    names = ("rate", "slo_attainment", "goodput", "p99_ttft", "p99_tpot")
    rows = [[cell(row[name]) for name in names] for row in by_rate]
    columns = ["requests/s", "within all SLOs", "goodput, 1/s", "P99 TTFT, s", "P99 TPOT, s"]
    console.print(plain_table(columns, rows, numbers=5))
