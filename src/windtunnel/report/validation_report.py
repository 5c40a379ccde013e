"""How far a replay is from the record, told to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.format import count, duration, exact_seconds, number, percent, plural
from windtunnel.report.names import clean, labels
from windtunnel.report.result import Drawing, Part, Result, notes_of, subtitle_of
from windtunnel.report.sections import Cell, Fact, Line, Table
from windtunnel.study.verdict import MOST_OF_MEDIAN, MOST_OFF

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.study.ledger import Entry, Missing
    from windtunnel.study.nodes_in_use import NodesInUse
    from windtunnel.study.validation import Validation
    from windtunnel.study.verdict import Verdict
    from windtunnel.traces.trace import Trace

Row = dict[str, Any]
_NO_STARTS = (
    "The trace does not record when jobs started, so there are no waits, no queue and no use to "
    "compare a replay with: what is told here is simulated only."
)
#: Names told as evidence, and no more.
_SHOWN = 5
#: Points of a curve on a page.
_POINTS = 400


def validation_answer(
    found: Validation,
    trace: Trace,
    nodes: Mapping[str, NodesInUse] | None = None,
    entries: Sequence[Entry] = (),
) -> Result:
    """Return the answer to "how much may a what-if on this trace be believed?".

    Args:
        found: the replays beside the record.
        trace: what was replayed.
        nodes: policy -> nodes in use beside recorded ones; None = none are recorded.
        entries: replays with one mechanism of Slurm after another.
    """
    rows = found.runs()
    best = rows[0]
    cluster = found.recorded.cluster
    parts = [
        *([_ledger_part(entries)] if entries else []),
        _runs_part(rows),
        *([] if nodes is None else [_nodes_part(nodes)]),
    ]
    if found.has_starts and best["n"]:
        parts += [_time_part(found, best), _size_part(found, best), _hour_part(found, best)]
    left_out = [f"Jobs {why}, not flown: {count(n)}." for why, n in found.left_out.items()]
    notes = [note for outcome in found.outcomes.values() for note in outcome.notes]
    return Result(
        title=f"How near a replay comes: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, plural(cluster.num_gpus, "GPU")),
        headline=_headline(found, best, nodes),
        facts=_facts(found, best),
        parts=parts,
        cautions=[
            *([] if found.has_starts or nodes is not None else [_NO_STARTS]),
            *_too_full(found),
        ],
        notes=notes_of(trace, [f"Cluster: {clean(cluster.describe(), 200)}."], left_out, notes),
    )


def _too_full(found: Validation) -> list[str]:
    """Return what to mind where the record holds more GPUs than there are."""
    most, there = found.most_recorded, found.recorded.cluster.num_gpus
    if most <= there:
        return []
    told = (
        f"The record holds up to {count(most)} GPUs at once, of {count(there)}: no replay on this "
        "cluster can follow it there."
    )
    return [told]


def validation_data(
    found: Validation, nodes: Mapping[str, NodesInUse] | None = None
) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``has_starts``, ``num_flown``, ``left_out``, ``runs`` (nearest first), ``best`` (its
    policy), ``exact`` (whether it has every recorded wait to the last digit), ``by_size``,
    ``by_hour`` and ``over_time`` of the best, ``verdict`` (`windtunnel.study.verdict`); the last
    four are null without recorded starts;
    ``nodes_in_use`` (null, or a row a policy).
    """
    rows = found.runs()
    best = rows[0]["policy"]
    told = found.has_starts and rows[0]["n"] > 0
    verdict = found.verdict(best)
    curves = found.over_time(best)
    return {
        "has_starts": found.has_starts,
        "num_flown": found.recorded.jobs.num_rows,
        "left_out": found.left_out,
        "runs": rows,
        "best": best,
        "exact": found.is_exact(best),
        "verdict": verdict.data() if told and verdict is not None else None,
        "by_size": found.by_size(best) if told else None,
        "by_hour": found.by_hour(best) if told else None,
        "over_time": {key: curves[key].tolist() for key in curves} if told else None,
        "nodes_in_use": None
        if nodes is None
        else [{"policy": name, **one.summary()} for name, one in nodes.items()],
    }


def _headline(found: Validation, best: Row, nodes: Mapping[str, NodesInUse] | None = None) -> str:
    name = clean(best["policy"])
    if not found.has_starts and nodes is not None:
        used = nodes[best["policy"]].summary()
        return (
            f"Flown under {name}, {number(used['replayed'])} nodes are in use in the mean where "
            f"{number(used['recorded'])} were recorded, over {count(used['hours'])} hours; starts "
            "are not recorded, so that waits cannot be compared."
        )
    if not found.has_starts:
        wait = duration(best["avg_wait"])
        return f"Nothing to compare with: flown under {name}, jobs would wait {wait} in the mean."
    if found.is_exact(best["policy"]):
        return f"Flown under {name}, all {count(best['n'])} recorded waits are reproduced exactly."
    verdict = found.verdict(best["policy"])
    if best["avg_error"] is None or verdict is None:
        return "No job started both in the record and in the replay."
    return (
        f"Flown under {name}, the mean wait is {duration(best['avg_wait'])} where "
        f"{duration(best['recorded_avg_wait'])} was recorded; a job's wait is off by "
        f"{duration(best['avg_error'])} in the mean: {_belief(verdict)}."
    )


def failure_words(verdict: Verdict) -> str:
    """Return which bars a replay fails, with its numbers and the bars."""
    said = {
        "n": "no job started in both",
        "mean": f"the mean wait is {duration(verdict.mean)} where "
        f"{duration(verdict.recorded_mean)} was recorded (up to {percent(MOST_OFF)} off would do)",
        "p90": f"P90 of the waits is {duration(verdict.p90)} where "
        f"{duration(verdict.recorded_p90)} was recorded (up to {percent(MOST_OFF)} off would do)",
        "jobs": f"a job's wait is off by {duration(verdict.error)}, by more than "
        f"{percent(MOST_OF_MEDIAN)} of the {duration(verdict.median_error)} that always saying the "
        "median is off by",
    }
    return "; ".join(said[name] for name in verdict.failures)


def _belief(verdict: Verdict) -> str:
    """Return how much of a what-if to believe after a replay with such errors."""
    if verdict.stands:
        return (
            "the replay stands for the record: mean and P90 within "
            f"{percent(MOST_OFF)}, a job's wait better told than by the median"
        )
    return f"do not believe a what-if on it: {failure_words(verdict)}"


def _facts(found: Validation, best: Row) -> list[Fact]:
    if not found.has_starts:
        return [Fact("Jobs flown", count(found.recorded.jobs.num_rows))]
    facts = [
        Fact("Jobs compared", count(best["n"]), note=f"under {clean(best['policy'])}, the nearest")
    ]
    if found.has_starts:
        facts += [
            Fact("Same wait", percent(best["same_share"]), note="within a second"),
            Fact(
                "Mean wait",
                duration(best["avg_wait"]),
                note=f"recorded {duration(best['recorded_avg_wait'])}",
            ),
            Fact(
                "GPUs in use",
                percent(best["utilization"]),
                note=f"recorded {percent(best['recorded_utilization'])}",
            ),
        ]
    return facts


def _time(seconds: float | None) -> Cell:
    return Cell(duration(seconds), exact_seconds(seconds))


def missing_words(lacks: Sequence[Missing]) -> tuple[str, ...]:
    """Return which mechanisms the site lacks, one sentence each."""
    return tuple(
        f"The site lacks {one.mechanism} ({', '.join(labels(one.evidence[:_SHOWN], 40))}"
        f"{', ...' * (len(one.evidence) > _SHOWN)}): by the log {percent(one.recorded)} of all "
        f"waiting was for them, by the replay {percent(one.replayed)}."
        for one in lacks
    )


def _ledger_part(entries: Sequence[Entry]) -> Part:
    """Return what each mechanism explains."""
    lines = []
    for entry in entries:
        one = entry.verdict
        off = (one.mean - one.recorded_mean, one.p90 - one.recorded_p90)
        cells = [Cell(duration(value), exact_seconds(value)) for value in (*off, one.error)]
        same = None if entry.decisions is None else entry.decisions.share
        told = (Cell(percent(same)), Cell("yes" if one.stands else "no"))
        name = entry.mechanism if entry is entries[0] else f"+ {entry.mechanism}"
        lines.append(Line(name, [*cells, Cell(percent(one.explained)), *told]))
    columns = ["mean off by", "P90 off by", "a job's wait", "explained", "decisions", "stands"]
    lead = (
        f"The first {plural(entries[0].verdict.n, 'job')}, flown with one mechanism after another; "
        "explained: of what somebody is off by who always says the median wait; decisions: of the "
        "starts, recorded or the scheduler's from the recorded state, those that both make."
    )
    return Part("What explains the waits", lead, [("Mechanisms", Table("With", columns, lines))])


def _runs_part(rows: list[Row]) -> Part:
    lines = [
        Line(
            clean(row["policy"]),
            [
                Cell(row["queueing"]),
                Cell(percent(row["same_share"])),
                *(_time(row[key]) for key in ("avg_error", "p50_error", "bias")),
                *(_time(row[key]) for key in ("avg_wait", "recorded_avg_wait")),
                *(_time(row[key]) for key in ("p90_wait", "recorded_p90_wait")),
                Cell(percent(row["utilization_error"])),
                Cell(number(row["queue_error"])),
            ],
        )
        for row in rows
    ]
    columns = ["queueing", "same wait", "mean error", "median error", "bias", "mean wait"]
    columns += ["recorded", "P90", "recorded", "use off by", "queue off by"]
    lead = (
        "Error: |simulated - recorded wait| of a job; bias: mean of the difference. Use and queue: "
        "mean difference over hours, in shares of all GPUs and in waiting jobs."
    )
    return Part("Policies, the nearest first", lead, [("Replays", Table("Policy", columns, lines))])


def _nodes_part(nodes: Mapping[str, NodesInUse]) -> Part:
    lines = []
    for name, one in nodes.items():
        told = one.summary()
        cells = [Cell(count(told["hours"]))]
        cells += [Cell(number(told[key])) for key in ("replayed", "recorded", "error")]
        lines.append(Line(clean(name), [*cells, Cell(number(told["correlation"]))]))
    first = next(iter(nodes.values()))

    def draw() -> Any:
        from windtunnel.report import answer_charts

        step = max(1, len(first.time) // _POINTS)
        rows = [
            {"name": name, "day": time / 86400, "value": value}
            for name, values in (("recorded", first.recorded), ("replayed", first.replayed))
            for time, value in zip(
                first.time[::step].tolist(), values[::step].tolist(), strict=True
            )
        ]
        return answer_charts.curves(
            rows,
            x="day",
            y="value",
            x_title="Days after time 0",
            y_title="Nodes in use",
            names=["recorded", "replayed"],
        )

    caption = f"Under {clean(next(iter(nodes)))}, means of an hour; n = {count(len(first.time))}."
    table = Table("Policy", ["hours", "replayed", "recorded", "mean error", "correlation"], lines)
    return Part(
        "Nodes in use",
        "A node is in use while a job runs on it; means over the hours that both know.",
        [("Nodes in use", table)],
        [Drawing("nodes", "Nodes in use", caption, draw)],
    )


def _time_part(found: Validation, best: Row) -> Part:
    curves = found.over_time(best["policy"])

    def rows(key: str, times: float) -> list[Row]:
        step = max(1, len(curves["time"]) // _POINTS)
        return [
            {"name": name, "day": day / 86400, "value": times * value}
            for name, values in (("recorded", curves[f"recorded_{key}"]), ("replayed", curves[key]))
            for day, value in zip(
                curves["time"][::step].tolist(), values[::step].tolist(), strict=True
            )
        ]

    def draw(key: str, title: str, times: float = 1) -> Any:
        from windtunnel.report import answer_charts

        return answer_charts.curves(
            rows(key, times),
            x="day",
            y="value",
            x_title="Days after time 0",
            y_title=title,
            names=["recorded", "replayed"],
        )

    caption = f"Means of an hour; n = {plural(best['n'], 'job')}."
    drawings = [
        Drawing(
            "use", "GPUs in use", caption, lambda: draw("utilization", "Share of all GPUs, %", 100)
        ),
        Drawing("queue", "Jobs waiting", caption, lambda: draw("queue", "Jobs waiting")),
    ]
    return Part("Over time", "", [], drawings)


def _compared(row: Row) -> list[Cell]:
    return [
        Cell(count(row["n"])),
        *(_time(row[key]) for key in ("avg_wait", "recorded_avg_wait")),
        *(_time(row[key]) for key in ("p90_wait", "recorded_p90_wait", "avg_error")),
        Cell(percent(row["same_share"])),
    ]


_COLUMNS = ["n", "mean wait", "recorded", "P90", "recorded", "mean error", "same wait"]


def _size_part(found: Validation, best: Row) -> Part:
    lines = [
        Line(row["size"].replace("-", "\u2013"), _compared(row))
        for row in found.by_size(best["policy"])
    ]
    table = Table("GPUs of the job", _COLUMNS, lines)
    return Part("By size of the job", "", [("Waits by size", table)])


def _hour_part(found: Validation, best: Row) -> Part:
    lines = [Line(f"{row['hour']}:00", _compared(row)) for row in found.by_hour(best["policy"])]
    clock = f"{clean(found.zone or 'UTC')} time" if found.epoch else "hours after time 0, modulo 24"
    table = Table("Submitted at", _COLUMNS, lines)
    return Part(
        "By hour of submission", f"{clock[0].upper()}{clock[1:]}.", [("Waits by hour", table)]
    )
