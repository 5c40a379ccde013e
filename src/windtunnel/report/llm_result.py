"""What serving a language model, a search of its capacity and a replay of its log tell."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import on_page, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.columns import rows_table
from windtunnel.report.format import count, plural
from windtunnel.report.llm_charts import (
    HEIGHT,
    LATENCIES,
    WIDTH,
    distribution_chart,
    distribution_rows,
    goodput_chart,
    llm_chart,
)
from windtunnel.report.names import clean
from windtunnel.report.palette import MUTED, SERIES
from windtunnel.report.result import Part, Result, table_of
from windtunnel.report.sections import Cell, Fact, Line, Table
from windtunnel.report.serving_page import section
from windtunnel.serving.llm_costs import LinearCost
from windtunnel.serving.llm_limits import AT_MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.columns import Columns
    from windtunnel.serving import Limits, LlmModel, LlmOutcome, RequestTrace
    from windtunnel.serving.llm_capacity import LlmChoice
    from windtunnel.serving.llm_replay import Replay


_WORDS = {
    "ttft": "time to first token (TTFT)",
    "tpot": "time per output token (TPOT)",
    "e2e": "time to the last token",
}
_POINTS = ("mean", "p50", "p90", "p99")
_ROWS = {**LATENCIES, "itl": "Between tokens, s"}
#: Facts that are shown where they are known.
_FACTS = (
    ("p99_ttft", "P99 time to first token", " s"),
    ("p99_tpot", "P99 time per output token", " s"),
    ("goodput", "Goodput", " /s"),
    ("goodput_per_gpu", "Goodput a GPU", " /s"),
    ("output_tokens_per_s", "Output tokens", " /s"),
    ("utilization", "Time in iterations, 0 to 1", ""),
    ("peak_kv", "Most KV tokens reserved", ""),
    ("num_rejected", "Requests refused", ""),
    ("num_restarts", "Evictions", ""),
    ("prefix_hit_rate", "Prompt tokens found in the cache, 0 to 1", ""),
    ("joules_per_output_token", "Energy an output token", " J"),
    ("energy_kwh", "Energy", " kWh"),
    ("carbon_kg", "Carbon", " kg"),
    ("money", "Money", ""),
)
_TITLES = {"ttft": "Time to first token", "tpot": "Time per output token", "e2e": "End to end"}


def llm_result(
    outcome: LlmOutcome,
    by_rate: list[dict[str, Any]],
    slo: dict[str, float],
    figures: dict[str, Any] | None = None,
) -> Result:
    """Return what a run tells.

    Args:
        outcome: the run.
        by_rate: from `windtunnel.serving.goodput_by_rate`.
        slo: ``ttft`` and ``tpot``, s; infinite = none.
        figures: of the run, with prices; None = without.
    """
    figures = outcome.metrics(**slo) if figures is None else figures
    replicas = len(outcome.busy)
    drawn = {}
    for name in LATENCIES:
        limit = slo.get(name, math.inf)
        words = f"Higher is better.{_limit_words(outcome, name, limit)}"
        drawn[name] = (_TITLES[name], words, partial(distribution_chart, outcome, name, limit))
    drawn["goodput"] = (
        "Goodput against rate",
        (
            f"The same requests, faster or slower, on {plural(replicas, 'replica')}; "
            f"n = {count(len(outcome.replica))} at each rate."
        ),
        partial(goodput_chart, by_rate),
    )
    parts = [section("Latency and goodput", [("", _latencies(figures))], drawn, "llm")]
    if by_rate:
        parts.append(Part("At other rates", tables=[("At other rates", _rates(by_rate))]))
    notes = [
        *model_words(outcome.model),
        *(
            f"SLO of the {_WORDS[name]}: {limit:g} s"
            for name, limit in slo.items()
            if math.isfinite(limit)
        ),
    ]
    return Result(
        title="Serving a language model",
        subtitle=[
            clean(outcome.requests.name),
            plural(len(outcome.replica), "request"),
            plural(replicas, "replica"),
        ],
        headline=_headline(figures, slo),
        facts=_facts(figures),
        parts=parts,
        notes=notes,
        chart=lambda: llm_chart(outcome, by_rate, slo),
    )


def model_words(model: LlmModel) -> list[str]:
    """Return what a model costs and how it forms batches, a sentence each."""
    sentences = [f"iterations cost what the model's form {model.cost.form} says"]
    if isinstance(model.cost, LinearCost):
        a, b, c, d, q = model.cost.costs
        sentences = [
            f"iteration time = {a:g} s + {b:g} s x prefill tokens + {c:g} s x decoding sequences "
            f"+ {d:g} s x KV tokens" + (f" + {q:g} s x prefill pairs" if q else "")
        ]
    gpus = plural(model.gpus or 1, "GPU")
    engine = model.engine
    if engine is None:
        sentences.append(
            f"KV memory of a replica: {count(model.kv_limit or 0)} tokens; batch of at most "
            f"{count(model.max_batch)}; {gpus} a replica"
        )
    else:
        sentences.append(
            f"scheduler {engine.scheduler}; {count(engine.num_blocks)} blocks of "
            f"{engine.block_size} tokens; at most {count(engine.max_num_seqs)} requests and "
            f"{count(engine.token_budget)} tokens an iteration; {gpus} a replica"
        )
    return sentences


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
    known = ((words, figures.get(name), unit) for name, words, unit in _FACTS)
    return [Fact(words, f"{_text(value)}{unit}") for words, value, unit in known if value]


def _latencies(figures: dict[str, Any]) -> Table:
    rows = [
        [words, *(_text(figures[f"{point}_{name}"]) for point in _POINTS)]
        for name, words in _ROWS.items()
    ]
    return table_of(["", "mean", "P50", "P90", "P99"], rows)


def _rates(by_rate: list[dict[str, Any]]) -> Table:
    rows = [{**row, "within": f"{100 * row['slo_attainment']:.2f}"} for row in by_rate]
    return rows_table("Requests/s", _RATES, rows, "rate", "{:.4g}".format)


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


_RATES: Columns = (
    ("within all SLOs, %", "within", str),
    ("goodput, 1/s", "goodput", _text),
    ("P50 TTFT, s", "p50_ttft", _text),
    ("P99 TTFT, s", "p99_ttft", _text),
    ("P50 TPOT, s", "p50_tpot", _text),
    ("P99 TPOT, s", "p99_tpot", _text),
    ("time in iterations, 0 to 1", "utilization", _text),
)


_PRICES = {"gpus": "GPUs", "energy_kwh": "kWh", "carbon_kg": "carbon, kg", "money": "money"}


def llm_capacity_result(
    requests: RequestTrace, choices: Sequence[LlmChoice], limits: Limits
) -> Result:
    """Return what a search tells.

    Args:
        requests: that were served.
        choices: of `windtunnel.serving.llm_choices`, the cheapest first.
        limits: that each had to keep.
    """
    found = [one for one in choices if one.found is not None]
    best = dict(found[0].figures)
    return Result(
        title="Capacity for a language model",
        headline=_capacity_headline(found[0]),
        facts=_facts(best),
        subtitle=[clean(requests.name), plural(len(requests), "request")],
        parts=[
            Part("Set-ups, the cheapest first", tables=[("", _prices(found))]),
            Part("Latencies of the cheapest", tables=[("", _latencies(best))]),
            Part("What was tried", tables=[("", _tried(found, limits))], page_only=True),
        ],
        notes=[
            *(
                f"limit: {name} at {'most' if name in AT_MOST else 'least'} {bound:g}"
                for name, bound in limits.bounds.items()
            ),
            *(f"{_name(one)}: {one.reason}" for one in choices if one.found is None),
        ],
    )


def _capacity_headline(best: LlmChoice) -> str:
    found = best.found
    assert found is not None  # noqa: S101 - those that suffice come first
    keep = "keeps" if found.replicas == 1 else "keep"
    words = f"{plural(found.replicas, 'replica')} on {plural(found.gpus, 'GPU')} {keep} every limit"
    fewer = found.met.get(found.replicas - 1)
    return f"{words}; one fewer does not." if fewer is False else f"{words}."


def _name(choice: LlmChoice) -> str:
    return clean(choice.setup.title)


def _prices(found: Sequence[LlmChoice]) -> Table:
    rows = [
        [
            _name(one),
            str(one.found.replicas),
            *(_text(one.figures.get(price)) for price in _PRICES),
            *(_text(one.figures.get(name)) for name in ("p99_ttft", "p99_tpot")),
        ]
        for one in found
        if one.found is not None
    ]
    columns = ["set-up", "replicas", *_PRICES.values(), "P99 TTFT, s", "P99 TPOT, s"]
    return table_of(columns, rows)


def _tried(found: Sequence[LlmChoice], limits: Limits) -> Table:
    rows = [
        [
            _name(one),
            str(n),
            *(_text(figures[name]) for name in limits.bounds),
            "yes" if one.found.met[n] else "no",
        ]
        for one in found
        if one.found is not None
        for n, figures in sorted(one.found.tried.items())
    ]
    return table_of(["set-up", "replicas", *limits.bounds, "keeps all limits"], rows)


#: Dots of a chart, at most: requests are drawn evenly over the log.
_MOST = 1000


def replay_result(found: Replay) -> Result:
    """Return what a replay tells."""
    drawn = {}
    for name in LATENCIES:
        n = count(len(replay_rows(found, name)))
        words = f"A dot a request (n = {n}); on the line both are equal."
        drawn[name] = (_TITLES[name], words, partial(_request_by_request, found, name))
    error = found.mean_absolute_error
    mean = "" if error is None else f"{100 * error:.2f} %"
    return Result(
        title="An engine's log, replayed",
        subtitle=[clean(found.log.requests.name), plural(found.num_rows, "request")],
        headline=f"The simulated figures are {mean} off the measured ones, on average.",
        facts=[
            Fact("Mean |error| of twelve figures", mean),
            Fact("Evictions, simulated", count(int(found.outcome.restarts.sum()))),
            Fact("Iterations, simulated", count(int(found.outcome.iterations.sum()))),
        ],
        parts=[section("Measured and simulated", [("", _figures(found))], drawn, "replay")],
        notes=model_words(found.outcome.model),
        data=found.data(),
    )


def replay_rows(found: Replay, name: str) -> list[dict[str, Any]]:
    """Return a latency request by request: ``measured`` and ``simulated``, s."""
    measured, simulated = found.log.latencies()[name], getattr(found.outcome, name)
    known = np.flatnonzero(~np.isnan(measured) & ~np.isnan(simulated))
    if len(known) > _MOST:
        known = known[np.linspace(0, len(known) - 1, _MOST).round().astype(int)]
    pairs = zip(measured[known].tolist(), simulated[known].tolist(), strict=True)
    return [{"measured": one, "simulated": other} for one, other in pairs]


def _request_by_request(found: Replay, name: str) -> Any:
    rows = replay_rows(found, name)
    if not rows:
        return None
    most = max(max(row.values()) for row in rows)
    x = Axis("measured", f"Measured: {LATENCIES[name].lower()}", grid=False, count=4)
    y = Axis("simulated", "Simulated, s")
    same = [{"measured": at, "simulated": at} for at in (0.0, most)]
    line = marks.lines(same, x, y, color=MUTED[0], strokeDash=[3, 3])
    tips: marks.Tips = {"measured": ("measured, s", ".4g"), "simulated": ("simulated, s", ".4g")}
    dots = marks.dots(rows, x, y, tips=tips, size=18, opacity=0.6, color=SERIES[1][0])
    return on_page(over(line, dots, width=WIDTH, height=HEIGHT))


def _figures(found: Replay) -> Table:
    lines = []
    for name in LATENCIES:
        cells = []
        for point in _POINTS:
            at = f"{point}_{name}"
            measured, simulated, error = found.measured[at], found.simulated[at], found.error[at]
            if measured is None or simulated is None:
                cells.append(Cell(""))
                continue
            note = "" if error is None else f"{100 * error:+.2f} %"
            cells.append(Cell(f"{measured:.4g} / {simulated:.4g}", note=note))
        lines.append(Line(LATENCIES[name], cells))
    return Table("measured / simulated", ["mean", "P50", "P90", "P99"], lines)
