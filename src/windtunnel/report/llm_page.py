"""The HTML page of serving a language model: one file, no script, nothing loaded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windtunnel.report.format import count, plural
from windtunnel.report.llm_charts import (
    LATENCIES,
    distribution_chart,
    distribution_rows,
    goodput_chart,
)
from windtunnel.report.names import clean
from windtunnel.report.result import Result
from windtunnel.report.result_page import result_page
from windtunnel.report.sections import Cell, Fact, Line, Table
from windtunnel.report.serving_page import section

if TYPE_CHECKING:
    from windtunnel.serving import LlmModel, LlmOutcome

_WORDS = {
    "ttft": "time to first token (TTFT)",
    "tpot": "time per output token (TPOT)",
    "e2e": "time to the last token",
}
_ROWS = {**LATENCIES, "itl": "Between tokens, s"}
#: Facts that are told where there is something to tell.
_MORE = (
    ("num_restarts", "Evictions", ""),
    ("prefix_hit_rate", "Prompt tokens found in the cache, 0 to 1", ""),
    ("joules_per_output_token", "Energy an output token", " J"),
    ("energy_kwh", "Energy", " kWh"),
)
_TITLES = {"ttft": "Time to first token", "tpot": "Time per output token", "e2e": "End to end"}


def llm_page(
    outcome: LlmOutcome, by_rate: list[dict[str, Any]], slo: dict[str, float], *, command: str
) -> str:
    """Return the page of a run, as one self-contained HTML text.

    Args:
        outcome: the run.
        by_rate: from `windtunnel.serving.goodput_by_rate`.
        slo: ``ttft`` and ``tpot``, s; infinite = none.
        command: what makes the page again, printed at its end.
    """
    figures = outcome.metrics(**slo)
    replicas = len(outcome.busy)
    drawn = {}
    for name in LATENCIES:
        limit = slo.get(name, math.inf)
        words = f"Higher is better.{_limit_words(outcome, name, limit)}"
        drawn[name] = (_TITLES[name], words, distribution_chart(outcome, name, limit))
    drawn["goodput"] = (
        "Goodput against rate",
        (
            f"The same requests, faster or slower, on {plural(replicas, 'replica')}; "
            f"n = {count(len(outcome.replica))} at each rate."
        ),
        goodput_chart(by_rate),
    )
    shown = {name: one for name, one in drawn.items() if one[2] is not None}
    sections = [section("Latency and goodput", [("Latencies", _latencies(figures))], shown, "llm")]
    if by_rate:
        sections.append(section("At other rates", [("", _rates(by_rate))], {}, "llm"))
    notes = [
        *model_words(outcome.model),
        *(
            f"SLO of the {_WORDS[name]}: {limit:g} s"
            for name, limit in slo.items()
            if math.isfinite(limit)
        ),
    ]
    result = Result(
        title="Serving a language model",
        subtitle=[
            clean(outcome.requests.name),
            plural(len(outcome.replica), "request"),
            plural(replicas, "replica"),
        ],
        headline=_headline(figures, slo),
        facts=_facts(figures),
        parts=sections,
        notes=notes,
    )
    return result_page(result, command=command)


def model_words(model: LlmModel) -> list[str]:
    """Return what a model costs and how it forms batches, a sentence each."""
    from windtunnel.serving.llm_costs import LinearCost

    said = [f"iterations cost what the model's form {model.cost.form} says"]
    if isinstance(model.cost, LinearCost):
        a, b, c, d, q = model.cost.costs
        said = [
            f"iteration time = {a:g} s + {b:g} s x prefill tokens + {c:g} s x decoding sequences "
            f"+ {d:g} s x KV tokens" + (f" + {q:g} s x prefill pairs" if q else "")
        ]
    gpus = plural(model.gpus or 1, "GPU")
    engine = model.engine
    if engine is None:
        said.append(
            f"KV memory of a replica: {count(model.kv_limit or 0)} tokens; batch of at most "
            f"{count(model.max_batch)}; {gpus} a replica"
        )
    else:
        said.append(
            f"scheduler {engine.scheduler}; {count(engine.num_blocks)} blocks of "
            f"{engine.block_size} tokens; at most {count(engine.max_num_seqs)} requests and "
            f"{count(engine.token_budget)} tokens an iteration; {gpus} a replica"
        )
    return said


def _limit_words(outcome: LlmOutcome, name: str, limit: float) -> str:
    """Return where a latency's SLO stands in its picture."""
    rows = distribution_rows(outcome, name)
    if not rows or not math.isfinite(limit):
        return ""
    if limit >= rows[-1]["latency"]:
        return f" All are within the SLO, {limit:g} s."
    if limit <= rows[0]["latency"]:
        return f" None is within the SLO, {limit:g} s."
    return f" The dotted line is the SLO, {limit:g} s."


def _headline(figures: dict[str, Any], slo: dict[str, float]) -> str:
    total = f"{count(figures['num_requests'])} requests"
    if not any(math.isfinite(limit) for limit in slo.values()):
        refused = figures["num_rejected"]
        return f"{total} were served" + (f", {count(refused)} refused." if refused else ".")
    return f"{100 * figures['slo_attainment']:.2f} % of {total} met their SLOs."


def _facts(figures: dict[str, Any]) -> list[Fact]:
    return [
        Fact("P99 time to first token", f"{_text(figures['p99_ttft'])} s"),
        Fact("P99 time per output token", f"{_text(figures['p99_tpot'])} s"),
        Fact("Goodput", f"{_text(figures['goodput'])} /s"),
        Fact("Goodput a GPU", f"{_text(figures['goodput_per_gpu'])} /s"),
        Fact("Time in iterations", f"{100 * figures['utilization']:.1f} %"),
        Fact("Most KV tokens reserved", count(figures["peak_kv"])),
        *(
            Fact(words, f"{_text(figures[name])}{unit}")
            for name, words, unit in _MORE
            if figures[name]
        ),
    ]


def _latencies(figures: dict[str, Any]) -> Table:
    lines = [
        Line(
            _ROWS[name],
            [Cell(_text(figures[f"{point}_{name}"])) for point in ("mean", "p50", "p90", "p99")],
        )
        for name in _ROWS
    ]
    return Table("", ["mean", "P50", "P90", "P99"], lines)


def _rates(by_rate: list[dict[str, Any]]) -> Table:
    keys = ("goodput", "p50_ttft", "p99_ttft", "p50_tpot", "p99_tpot", "utilization")
    lines = [
        Line(
            f"{row['rate']:.4g}",
            [Cell(f"{100 * row['slo_attainment']:.2f}"), *(Cell(_text(row[k])) for k in keys)],
        )
        for row in by_rate
    ]
    columns = ["within all SLOs, %", "goodput, 1/s", "P50 TTFT, s", "P99 TTFT, s"]
    columns += ["P50 TPOT, s", "P99 TPOT, s", "time in iterations, 0 to 1"]
    return Table("Requests/s", columns, lines)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
