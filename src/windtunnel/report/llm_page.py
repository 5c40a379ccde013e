"""The HTML page of serving a language model: one file, no script, nothing loaded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.report.chart import marks
from windtunnel.report.chart.arrange import on_page, over
from windtunnel.report.chart.axes import Axis
from windtunnel.report.format import count, plural
from windtunnel.report.llm_charts import (
    HEIGHT,
    LATENCIES,
    WIDTH,
    distribution_chart,
    distribution_rows,
    goodput_chart,
)
from windtunnel.report.names import clean
from windtunnel.report.palette import MUTED, SERIES
from windtunnel.report.result import Part, Result, table_of
from windtunnel.report.result_page import result_page
from windtunnel.report.sections import Cell, Fact, Line, Table
from windtunnel.report.serving_page import section
from windtunnel.serving.llm_limits import AT_MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.serving import Limits, LlmModel, LlmOutcome, RequestTrace
    from windtunnel.serving.llm_capacity import LlmChoice
    from windtunnel.serving.llm_replay import Replay


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


_PRICES = {"gpus": "GPUs", "energy_kwh": "kWh", "carbon_kg": "carbon, kg", "money": "money"}


def llm_capacity_page(
    requests: RequestTrace, choices: Sequence[LlmChoice], limits: Limits, *, command: str
) -> str:
    """Return the page of a search, as one self-contained HTML text.

    Args:
        requests: that were served.
        choices: of `windtunnel.serving.llm_choices`, the cheapest first.
        limits: that each had to keep.
        command: what makes the page again, printed at its end.
    """
    found = [one for one in choices if one.found is not None]
    result = Result(
        title="Capacity for a language model",
        headline=_capacity_headline(found[0]),
        subtitle=[clean(requests.name), plural(len(requests), "request")],
        parts=[
            Part("Set-ups, the cheapest first", tables=[("", _prices(found))]),
            Part("What was tried", tables=[("", _tried(found, limits))]),
        ],
        notes=[
            *(f"limit: {name} {_side(name)} {bound:g}" for name, bound in limits.bounds.items()),
            *(f"{_name(one)}: {one.reason}" for one in choices if one.found is None),
        ],
    )
    return result_page(result, command=command)


def _capacity_headline(best: LlmChoice) -> str:
    found = best.found
    assert found is not None  # noqa: S101 - those that suffice come first
    keep = "keeps" if found.replicas == 1 else "keep"
    words = f"{plural(found.replicas, 'replica')} on {plural(found.gpus, 'GPU')} {keep} every limit"
    fewer = found.met.get(found.replicas - 1)
    return f"{words}; one fewer does not." if fewer is False else f"{words}."


def _side(name: str) -> str:
    return "at most" if name in AT_MOST else "at least"


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
        [_name(one), str(n), *(_text(figures[name]) for name in limits.bounds), _met(one, n)]
        for one in found
        if one.found is not None
        for n, figures in sorted(one.found.tried.items())
    ]
    return table_of(["set-up", "replicas", *limits.bounds, "keeps all limits"], rows)


def _met(choice: LlmChoice, replicas: int) -> str:
    return "yes" if choice.found is not None and choice.found.met[replicas] else "no"


#: Dots of a chart, at most: requests are drawn evenly over the log.
_MOST = 1000
_POINTS = ("mean", "p50", "p90", "p99")


def replay_page(found: Replay, *, command: str) -> str:
    """Return the page of a replay, as one self-contained HTML text.

    Args:
        found: the replay.
        command: what makes the page again, printed at its end.
    """
    drawn = {name: _request_by_request(found, name) for name in LATENCIES}
    shown = {name: one for name, one in drawn.items() if one[2] is not None}
    error = found.mean_absolute_error
    mean = "" if error is None else f"{100 * error:.2f} %"
    result = Result(
        title="An engine's log, replayed",
        subtitle=[clean(found.log.requests.name), plural(found.num_rows, "request")],
        headline=f"The simulated figures are {mean} off the measured ones, on average.",
        facts=[
            Fact("Mean |error| of twelve figures", mean),
            Fact("Evictions, simulated", count(int(found.outcome.restarts.sum()))),
            Fact("Iterations, simulated", count(int(found.outcome.iterations.sum()))),
        ],
        parts=[section("Measured and simulated", [("", _figures(found))], shown, "replay")],
        notes=model_words(found.outcome.model),
    )
    return result_page(result, command=command)


def replay_rows(found: Replay, name: str) -> list[dict[str, Any]]:
    """Return a latency request by request: ``measured`` and ``simulated``, s."""
    measured, simulated = found.log.latencies()[name], getattr(found.outcome, name)
    known = np.flatnonzero(~np.isnan(measured) & ~np.isnan(simulated))
    if len(known) > _MOST:
        known = known[np.linspace(0, len(known) - 1, _MOST).round().astype(int)]
    pairs = zip(measured[known].tolist(), simulated[known].tolist(), strict=True)
    return [{"measured": one, "simulated": other} for one, other in pairs]


def _request_by_request(found: Replay, name: str) -> tuple[str, str, Any]:
    rows = replay_rows(found, name)
    words = f"A dot a request (n = {count(len(rows))}); on the line both are equal."
    if not rows:
        return _TITLES[name], words, None
    most = max(max(row.values()) for row in rows)
    x = Axis("measured", f"Measured: {LATENCIES[name].lower()}", grid=False, count=4)
    y = Axis("simulated", "Simulated, s")
    same = [{"measured": at, "simulated": at} for at in (0.0, most)]
    line = marks.lines(same, x, y, color=MUTED[0], strokeDash=[3, 3])
    tips: marks.Tips = {"measured": ("measured, s", ".4g"), "simulated": ("simulated, s", ".4g")}
    dots = marks.dots(rows, x, y, tips=tips, size=18, opacity=0.6, color=SERIES[1][0])
    return _TITLES[name], words, on_page(over(line, dots, width=WIDTH, height=HEIGHT))


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
