"""A report of how far a replay is from the record."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report.answer_charts import curves
from windtunnel.report.columns import rows_table
from windtunnel.report.format import count, duration, number, percent, plural, size_text
from windtunnel.report.names import clean, labels
from windtunnel.report.result import Drawing, Part, Result, notes_of, subtitle_of
from windtunnel.report.sections import Fact, time_cell
from windtunnel.study.verdict import MOST_OF_MEDIAN, MOST_OFF

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.report.columns import Columns
    from windtunnel.study.ledger import Entry, Missing
    from windtunnel.study.nodes_in_use import NodesInUse
    from windtunnel.study.validation import Validation
    from windtunnel.study.verdict import Verdict
    from windtunnel.traces.trace import Trace

Row = dict[str, Any]
_NO_STARTS = (
    "The trace does not record when jobs started, so there are no waits, no queue and no use to "
    "compare a replay with: all numbers here are simulated."
)
#: Names given as evidence, and no more.
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
    caution = (
        f"The record holds up to {count(most)} GPUs at once, of {count(there)}: no replay on this "
        "cluster can follow it there."
    )
    return [caution]


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
    can_compare = found.has_starts and rows[0]["n"] > 0
    verdict = found.verdict(best)
    curves = found.over_time(best)
    return {
        "has_starts": found.has_starts,
        "num_flown": found.recorded.jobs.num_rows,
        "left_out": found.left_out,
        "runs": rows,
        "best": best,
        "exact": found.is_exact(best),
        "verdict": verdict.data() if can_compare and verdict is not None else None,
        "by_size": found.by_size(best) if can_compare else None,
        "by_hour": found.by_hour(best) if can_compare else None,
        "over_time": {key: curves[key].tolist() for key in curves} if can_compare else None,
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
    texts = {
        "n": "no job started in both",
        "mean": f"the mean wait is {duration(verdict.mean)} where "
        f"{duration(verdict.recorded_mean)} was recorded (up to {percent(MOST_OFF)} off would do)",
        "p90": f"P90 of the waits is {duration(verdict.p90)} where "
        f"{duration(verdict.recorded_p90)} was recorded (up to {percent(MOST_OFF)} off would do)",
        "jobs": f"a job's wait is off by {duration(verdict.error)}, by more than "
        f"{percent(MOST_OF_MEDIAN)} of the {duration(verdict.median_error)} that always saying the "
        "median is off by",
    }
    return "; ".join(texts[name] for name in verdict.failures)


def _belief(verdict: Verdict) -> str:
    """Return how much of a what-if to believe after a replay with such errors."""
    if verdict.stands:
        return (
            "the replay stands for the record: mean and P90 within "
            f"{percent(MOST_OFF)}, a job's wait predicted better than by the median"
        )
    return f"do not believe a what-if on it: {failure_words(verdict)}"


def _facts(found: Validation, best: Row) -> list[Fact]:
    if not found.has_starts:
        return [Fact("Jobs flown", count(found.recorded.jobs.num_rows))]
    facts = [
        Fact("Jobs compared", count(best["n"]), note=f"under {clean(best['policy'])}, the nearest")
    ]
    facts.append(Fact("Same wait", percent(best["same_share"]), note="within a second"))
    for label, key, text in (
        ("Mean wait", "avg_wait", duration),
        ("GPUs in use", "utilization", percent),
    ):
        facts.append(Fact(label, text(best[key]), note=f"recorded {text(best[f'recorded_{key}'])}"))
    return facts


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
    rows = [
        {
            "mechanism": entry.mechanism if entry is entries[0] else f"+ {entry.mechanism}",
            "mean": entry.verdict.mean - entry.verdict.recorded_mean,
            "p90": entry.verdict.p90 - entry.verdict.recorded_p90,
            "error": entry.verdict.error,
            "explained": entry.verdict.explained,
            "decisions": None if entry.decisions is None else entry.decisions.share,
            "stands": "yes" if entry.verdict.stands else "no",
        }
        for entry in entries
    ]
    lead = (
        f"The first {plural(entries[0].verdict.n, 'job')}, flown with one mechanism after another; "
        "explained: of what somebody is off by who always says the median wait; decisions: of the "
        "starts, recorded or the scheduler's from the recorded state, those that both make."
    )
    table = rows_table("With", _LEDGER, rows, "mechanism", str)
    return Part("What explains the waits", lead, [("Mechanisms", table)])


_LEDGER: Columns = (
    ("mean off by", "mean", time_cell),
    ("P90 off by", "p90", time_cell),
    ("a job's wait", "error", time_cell),
    ("explained", "explained", percent),
    ("decisions", "decisions", percent),
    ("stands", "stands", str),
)
_RUNS: Columns = (
    ("queueing", "queueing", str),
    ("same wait", "same_share", percent),
    ("mean error", "avg_error", time_cell),
    ("median error", "p50_error", time_cell),
    ("bias", "bias", time_cell),
    ("mean wait", "avg_wait", time_cell),
    ("recorded", "recorded_avg_wait", time_cell),
    ("P90", "p90_wait", time_cell),
    ("recorded", "recorded_p90_wait", time_cell),
    ("use off by", "utilization_error", percent),
    ("queue off by", "queue_error", number),
)
_NODES: Columns = (
    ("hours", "hours", count),
    ("replayed", "replayed", number),
    ("recorded", "recorded", number),
    ("mean error", "error", number),
    ("correlation", "correlation", number),
)
#: What is shown of the jobs of a size, and of those of an hour.
_GROUPS: Columns = (
    ("n", "n", count),
    ("mean wait", "avg_wait", time_cell),
    ("recorded", "recorded_avg_wait", time_cell),
    ("P90", "p90_wait", time_cell),
    ("recorded", "recorded_p90_wait", time_cell),
    ("mean error", "avg_error", time_cell),
    ("same wait", "same_share", percent),
)


def _runs_part(rows: list[Row]) -> Part:
    lead = (
        "Error: |simulated - recorded wait| of a job; bias: mean of the difference. Use and queue: "
        "mean difference over hours, in shares of all GPUs and in waiting jobs."
    )
    table = rows_table("Policy", _RUNS, rows, "policy")
    return Part("Policies, the nearest first", lead, [("Replays", table)])


def _nodes_part(nodes: Mapping[str, NodesInUse]) -> Part:
    rows = [{"policy": name, **one.summary()} for name, one in nodes.items()]
    first = next(iter(nodes.values()))
    both = {"recorded": first.recorded, "replayed": first.replayed}
    caption = f"Under {clean(next(iter(nodes)))}, means of an hour; n = {count(len(first.time))}."
    draw = partial(_over_time, first.time, both, "Nodes in use")
    return Part(
        "Nodes in use",
        "A node is in use while a job runs on it; means over the hours that both know.",
        [("Nodes in use", rows_table("Policy", _NODES, rows, "policy"))],
        [Drawing("nodes", "Nodes in use", caption, draw)],
    )


def _over_time(time: Any, series: Mapping[str, Any], title: str, times: float = 1) -> Any:
    """Return curves over days, at most so many points of each."""
    step = max(1, len(time) // _POINTS)
    rows = [
        {"name": name, "day": at / 86400, "value": times * value}
        for name, values in series.items()
        for at, value in zip(time[::step].tolist(), values[::step].tolist(), strict=True)
    ]
    titles = {"x_title": "Days after time 0", "y_title": title}
    return curves(rows, x="day", y="value", names=list(series), **titles)


def _time_part(found: Validation, best: Row) -> Part:
    hours = found.over_time(best["policy"])
    caption = f"Means of an hour; n = {plural(best['n'], 'job')}."

    def drawing(name: str, title: str, key: str, axis: str, times: float = 1) -> Drawing:
        both = {"recorded": hours[f"recorded_{key}"], "replayed": hours[key]}
        return Drawing(name, title, caption, partial(_over_time, hours["time"], both, axis, times))

    drawings = [
        drawing("use", "GPUs in use", "utilization", "Share of all GPUs, %", 100),
        drawing("queue", "Jobs waiting", "queue", "Jobs waiting"),
    ]
    return Part("Over time", "", [], drawings)


def _size_part(found: Validation, best: Row) -> Part:
    rows = found.by_size(best["policy"])
    table = rows_table("GPUs of the job", _GROUPS, rows, "size", size_text)
    return Part("By size of the job", "", [("Waits by size", table)])


def _hour_part(found: Validation, best: Row) -> Part:
    clock = f"{clean(found.zone or 'UTC')} time" if found.epoch else "hours after time 0, modulo 24"
    rows = found.by_hour(best["policy"])
    table = rows_table("Submitted at", _GROUPS, rows, "hour", "{}:00".format)
    lead = f"{clock[0].upper()}{clock[1:]}."
    return Part("By hour of submission", lead, [("Waits by hour", table)])
