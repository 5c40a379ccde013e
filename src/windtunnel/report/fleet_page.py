"""The HTML page of a cluster that language models and groups of other models share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.report.format import plural
from windtunnel.report.names import clean
from windtunnel.report.result import Part, Result, table_of
from windtunnel.report.result_page import result_page
from windtunnel.serving.sweep import groups_text

if TYPE_CHECKING:
    from windtunnel.report.sections import Table
    from windtunnel.serving import Fleet

_FIGURES = {
    "p50_ttft": "P50 TTFT, s",
    "p99_ttft": "P99 TTFT, s",
    "p50_tpot": "P50 TPOT, s",
    "p99_tpot": "P99 TPOT, s",
    "p99_e2e": "P99 end to end, s",
    "utilization": "time in iterations, 0 to 1",
}
#: Heading and cells of `fleet_table`.
SHARES = ("model", "placed as", "tensor parallel", "GPUs", "within SLO")


def fleet_page(found: Fleet, *, command: str) -> str:
    """Return the page of a fleet, as one self-contained HTML text.

    Args:
        found: by `windtunnel.serving.search_fleet`.
        command: what makes the page again, printed at its end.
    """
    without = [clean(one.service.name) for one in found.llms if not one.replicas]
    result = Result(
        title="One cluster for all models",
        headline=f"{100 * found.attainment:.2f} % of all requests in time.",
        subtitle=[plural(found.gpus, "GPU"), plural(len(found.llms), "language model")],
        parts=[
            Part("Who gets which GPUs", tables=[("", table_of(list(SHARES), shares(found)))]),
            Part("Language models", tables=[("", _latencies(found))]),
        ],
        notes=[f"models without a replica: {', '.join(without)}"] if without else [],
    )
    return result_page(result, command=command)


def shares(found: Fleet) -> list[list[str]]:
    """Return a row a language model, and one of all others, in the order of `SHARES`."""
    rows = [
        [
            clean(one.service.name),
            plural(one.replicas, "replica"),
            str(one.model.cost.tensor_parallel),
            str(one.gpus),
            f"{one.attainment:.4g}",
        ]
        for one in found.llms
    ]
    if found.placed is not None:
        words = groups_text(found.placed.placement)
        worth = f"{found.placed.attainment:.4g}"
        rows.append(["other models", words, "", str(found.placed_gpus), worth])
    return rows


def _latencies(found: Fleet) -> Table:
    rows = []
    for one in found.llms:
        told = {} if one.outcome is None else one.outcome.metrics()
        values = [told.get(name) for name in _FIGURES]
        cells = ["" if value is None else f"{value:.4g}" for value in values]
        rows.append([clean(one.service.name), *cells])
    return table_of(["model", *_FIGURES.values()], rows)
