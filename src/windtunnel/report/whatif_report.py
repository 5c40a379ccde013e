"""A report of what would change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.plain import fields_of
from windtunnel.report.answer_charts import difference_spans
from windtunnel.report.columns import rows_table
from windtunnel.report.format import (
    MINUS,
    UNKNOWN,
    count,
    duration,
    is_known,
    number,
    percent,
    plural,
    size_text,
)
from windtunnel.report.names import clean
from windtunnel.report.result import Drawing, Part, Result, notes_of, subtitle_of
from windtunnel.report.sections import Cell, Fact, Line, Table, time_cell
from windtunnel.study.grid.paired import LEAST_DRAWS
from windtunnel.study.whatif import COVERAGE, DRAWS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.columns import Columns
    from windtunnel.study.fewest_nodes import FewestNodes
    from windtunnel.study.whatif import WhatIf
    from windtunnel.traces.trace import Trace

Row = dict[str, Any]
WORDS = {
    "avg_wait": "mean wait",
    "p50_wait": "median wait",
    "p90_wait": "P90 of the waits",
    "avg_jct": "mean completion time",
    "utilization": "GPUs in use",
    "cost": "cost of the cluster",
    "cost_per_gpu_hour": "cost of a GPU hour held",
}
_WEEK = 7 * 86400.0
_TIMES = ("avg_wait", "p50_wait", "p90_wait", "avg_jct")
_SIMULATED = (
    "All of this is simulated; windtunnel validate tells how near such a replay comes to the "
    "record."
)
_WITH_ERROR = (
    "As it is and as it might be are simulated; the record stands beside them, and the intervals "
    "contain what the replay is off by (windtunnel validate tells more)."
)
_VARIED = "Only nodes of the kind of which there are most are varied; the others stay."


def whatif_answer(found: WhatIf, trace: Trace, notes: Sequence[str] = ()) -> Result:
    """Return the answer to "what would change?"."""
    rows = found.table()
    by = {row["measure"]: row for row in rows}
    cautions = []
    rejected = [len(outcome.reasons) for outcome in (found.before, found.after)]
    if rejected[1] > rejected[0]:
        cautions.append(
            f"{plural(rejected[1] - rejected[0], 'job')} would no longer fit the cluster; they are "
            "in no number here."
        )
    lost, won = found.num_unpaired
    lost -= max(0, rejected[1] - rejected[0])
    for jobs, when in ((lost, "as it is"), (won, "as it might be")):
        if jobs > 0:
            cautions.append(
                f"{plural(jobs, 'job')} would end only {when}; they are in no number here."
            )
    if found.num_blocks < 2:  # noqa: PLR2004 - one block has no spread
        cautions.append(f"All jobs are of one of the {found.blocks}: there are no intervals.")
    elif found.num_blocks < LEAST_DRAWS:
        cautions.append(
            f"The intervals rest on {found.num_blocks} {_blocks(found)} alone: too few to trust "
            f"them ({LEAST_DRAWS} would do; --blocks users draws users instead)."
        )
    method = [
        _drawn_words(found),
        _SIMULATED if found.recorded is None else _WITH_ERROR,
        f"As it is: {_flown(found.before)}.",
        f"As it might be: {_flown(found.after)}.",
    ]
    runs = [note for outcome in (found.before, found.after) for note in outcome.notes]
    return Result(
        title=f"What if: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, *(clean(change, 120) for change in found.changes)),
        headline=_headline(found, by),
        facts=_facts(by),
        parts=[_table_part(found, rows), _size_part(found)],
        cautions=cautions,
        notes=notes_of(trace, method, notes, runs),
    )


def whatif_data(found: WhatIf) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``changes``, ``measures`` (rows of `WhatIf.table`), ``by_size``, ``num_jobs`` (that
    finished in both runs), ``num_blocks``, ``blocks``, ``coverage``, ``before`` and ``after``
    (``cluster``, ``settings``, ``num_rejected``, ``metrics``), ``verdict`` (on ``before``,
    `windtunnel.study.verdict`; null where nothing is recorded).
    """
    verdict = found.verdict()
    return {
        "changes": list(found.changes),
        "measures": found.table(),
        "by_size": found.by_size(),
        "num_jobs": found.num_pairs,
        "num_blocks": found.num_blocks,
        "blocks": found.blocks,
        "coverage": COVERAGE,
        "verdict": None if verdict is None else verdict.data(),
        **{
            name: {
                "cluster": outcome.cluster.describe(),
                "settings": outcome.settings,
                "num_rejected": len(outcome.reasons),
                "metrics": outcome.metrics(),
            }
            for name, outcome in (("before", found.before), ("after", found.after))
        },
    }


def nodes_answer(found: FewestNodes, limit: float, trace: Trace, notes: Sequence[str]) -> Result:
    """Return the answer to "how few nodes keep waits short?"."""
    what = "GPU" if found.cluster.is_pool else "node"
    lines = [
        Line(
            count(nodes),
            [
                Cell("jobs do not fit") if wait == float("inf") else time_cell(wait),
                Cell("yes" if wait <= limit else "no"),
            ],
        )
        for nodes, wait in found.tried.items()
    ]
    table = Table(f"{what}s".capitalize(), ["P90 of the waits", "short enough"], lines)
    return Result(
        title=f"How few {what}s would do? {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, f"P90 of the waits at most {duration(limit)}"),
        headline=_fewest(found, what, limit) + _span(found, what),
        facts=[
            Fact("Cluster", plural(found.cluster.num_gpus, "GPU"), note=_cluster_note(found, what))
        ],
        parts=[Part("What was tried", "", [(f"Tried numbers of {what}s", table)])],
        notes=notes_of(
            trace,
            [_SIMULATED, clean(found.cluster.describe(), 200)],
            [_VARIED] if len(found.cluster.node_types) > 1 else [],
            notes,
        ),
    )


def _cluster_note(found: FewestNodes, what: str) -> str:
    more = found.num_nodes - found.num_now
    change = "as many as now" if more == 0 else f"{abs(more):,} {'more' if more > 0 else 'fewer'}"
    now = "" if more == 0 else f" than the {count(found.num_now)} now"
    return f"{plural(found.num_nodes, what)}, {change}{now}"


def _fewest(found: FewestNodes, what: str, limit: float) -> str:
    verb = "keeps" if found.num_nodes == 1 else "keep"
    text = f"{plural(found.num_nodes, what)} {verb} P90 of the waits at {duration(found.p90_wait)}"
    if found.num_nodes == 1:
        return text + "; fewer there cannot be."
    return text + f"; one fewer does not keep it to {duration(limit)}."


def _span(found: FewestNodes, what: str) -> str:
    if found.interval is None or found.recorded is None:
        return ""
    low, high = found.interval
    if high == float("inf"):
        span = f"{plural(int(low), what)} or more" if low < high else f"no number of {what}s"
    else:
        span = (
            f"{count(low)} to {plural(int(high), what)}" if low < high else plural(int(low), what)
        )
    return (
        f" With what the replay is off by: {span} ({percent(COVERAGE)} interval). Recorded with "
        f"the {count(found.num_now)} there are: {duration(found.recorded)}."
    )


def nodes_data(found: FewestNodes, limit: float) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``num_nodes``, ``num_now`` (before the search), ``p90_wait``, ``limit`` (s), ``cluster``,
    ``tried``, ``interval`` (fewest, most nodes; null = no number would do) and
    ``recorded_p90_wait`` (s), both null where nothing is recorded.
    """
    return {
        **fields_of(found, "num_nodes", "num_now", "p90_wait"),
        "limit": limit,
        "interval": None
        if found.interval is None
        else [None if end == float("inf") else end for end in found.interval],
        "recorded_p90_wait": found.recorded,
        "cluster": found.cluster.describe(),
        "tried": [{"num_nodes": n, "p90_wait": wait} for n, wait in found.tried.items()],
    }


def _blocks(found: WhatIf) -> str:
    return "days" if found.blocks == "weeks" and found.block_length < _WEEK else found.blocks


def _drawn_words(found: WhatIf) -> str:
    return (
        f"{percent(COVERAGE)} intervals of the change: bootstrap over {count(found.num_blocks)} "
        f"{_blocks(found)}, {DRAWS} draws, the same for both runs."
    )


def _flown(outcome: Any) -> str:
    settings = outcome.settings
    return (
        f"{clean(outcome.cluster.describe(), 200)}, policy {clean(settings['policy'])}, queueing "
        f"{settings['queueing']}, placement {settings['placement']}"
    )


def _headline(found: WhatIf, by: dict[str, Row]) -> str:
    row = by["avg_wait"]
    changes = " and ".join(clean(change, 120) for change in found.changes)
    if not is_known(row["change"]):
        return f"With {changes}: no job finishes in both runs."
    if row["change"] == 0:
        return f"With {changes}, the mean wait would stay {duration(row['before'])}."
    text = f"With {changes}, the mean wait would be {duration(row['after'])} instead of "
    text += f"{duration(row['before'])}"
    if row["recorded"] is not None:
        text += f" (recorded: {duration(row['recorded'])})"
    if row["low"] is not None:
        sure = row["low"] > 0 or row["high"] < 0
        span = f"{_signed(row['low'])} to {_signed(row['high'])}"
        text += f", change {span}" if sure else f"; the change is not sure ({span})"
    return text + "."


def _facts(by: dict[str, Row]) -> list[Fact]:
    facts = []
    for name in ("avg_wait", "p90_wait", "utilization", "cost"):
        if name in by:
            row, words = by[name], WORDS[name]
            note = f"now {_value(name, row['before'])}"
            if row["recorded"] is not None:
                note += f", recorded {_value(name, row['recorded'])}"
            label = words[0].upper() + words[1:]
            facts.append(Fact(label, _value(name, row["after"]), note=note))
    return facts


def _value(name: str, value: float | None) -> str:
    if name in _TIMES:
        return duration(value)
    return percent(value) if name == "utilization" else number(value)


def _signed(value: float, text: Callable[[float], str] = duration) -> str:
    return text(value) if value <= 0 else f"+{text(value)}"


def _change(name: str, value: float | None) -> str:
    if value is None or name in _TIMES:
        return UNKNOWN if value is None or not is_known(value) else _signed(value)
    text = f"{value * 100:+.1f} points" if name == "utilization" else _signed(value, number)
    return text.replace("-", MINUS)


def _table_part(found: WhatIf, rows: Sequence[Row]) -> Part:
    lines = []
    keys = ("before", "after") if found.recorded is None else ("recorded", "before", "after")
    for row in rows:
        name = row["measure"]
        ends = [_change(name, row[key]) for key in ("low", "high")]
        span = "" if row["low"] is None else " to ".join(ends)
        cells = [Cell(UNKNOWN if row[key] is None else _value(name, row[key])) for key in keys]
        lines.append(Line(WORDS[name], [*cells, Cell(_change(name, row["change"])), Cell(span)]))
    heads = {"recorded": "recorded", "before": "as it is", "after": "as it might be"}
    columns = [*(heads[key] for key in keys), "change", f"{percent(COVERAGE)} interval"]
    table = Table("", columns, lines)
    spans = [
        {
            "what": WORDS[row["measure"]],
            "low": row["low"] / 60,
            "middle": row["change"] / 60,
            "high": row["high"] / 60,
        }
        for row in rows
        if row["measure"] in _TIMES and row["low"] is not None
    ]
    drawing = Drawing(
        "changes",
        "The changes with their intervals",
        f"Left of the line is shorter; n = {plural(found.num_pairs, 'job')}.",
        partial(difference_spans, spans, of="what", title="Change, minutes"),
    )
    lead = f"Over the {plural(found.num_pairs, 'job')} that finish in both runs."
    return Part("In numbers", lead, [("Before and after", table)], [drawing] if spans else [])


_SIZES: Columns = (
    ("n", "n", count),
    ("mean wait now", "before_avg_wait", time_cell),
    ("then", "after_avg_wait", time_cell),
    ("P90 now", "before_p90_wait", time_cell),
    ("then", "after_p90_wait", time_cell),
)


def _size_part(found: WhatIf) -> Part:
    table = rows_table("GPUs of the job", _SIZES, found.by_size(), "size", size_text)
    return Part("By size of the job", "", [("Waits by size", table)])
