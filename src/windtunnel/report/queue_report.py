"""A report of why jobs waited."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report.answer_charts import part_bars, part_columns
from windtunnel.report.columns import TOP, rows_table, top_table
from windtunnel.report.format import (
    count,
    duration,
    exact_seconds,
    number,
    percent,
    plural,
    size_text,
)
from windtunnel.report.names import clean, name_text
from windtunnel.report.result import Drawing, Part, Result, notes_of, subtitle_of
from windtunnel.report.sections import Cell, Fact, Line, Table, time_cell
from windtunnel.study.wait_causes import CAUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.report.columns import Columns
    from windtunnel.study.in_front import InFront
    from windtunnel.study.wait_causes import WaitCauses
    from windtunnel.traces.trace import Trace

Row = dict[str, Any]
#: Cause -> what people call it.
WORDS = {
    "dependency": "dependency or hold",
    "quota": "quota or limit",
    "throttle": "array's own limit",
    "order": "order or priority",
    "resources": "all GPUs busy",
    "fragmentation": "fragmentation",
    "reservation": "nodes down or reserved",
    "other": "other",
}
#: Cause -> the rule, in a sentence.
RULES = {
    "dependency": "before the job was eligible: a dependency, a begin time or a hold",
    "quota": "its virtual cluster held so much that the job would have exceeded its quota, or the "
    "log names a limit of its QOS, user or account",
    "throttle": "so many tasks of its array ran as it allows at once (known from the log alone)",
    "order": "jobs behind it held the GPUs that it lacked, or a job before it still waited though "
    "there was room",
    "resources": "too few GPUs were free, even without the jobs that overtook it",
    "fragmentation": "enough GPUs were free, but not on nodes that the job fits on",
    "reservation": "the log says that nodes were down or reserved",
    "other": "there was room and nobody was before it: the scheduler's cycle, or limits, "
    "reservations and broken nodes that are not known here",
}
_BY = {"vc": "Virtual cluster", "user": "User"}
_NO_STARTS = "No GPU job that the cluster can hold has a recorded start, so that no wait is known."


def queue_answer(found: WaitCauses, trace: Trace, job: InFront | None = None) -> Result:
    """Return the answer to "why did jobs wait?".

    Args:
        found: the waits.
        trace: whose they are.
        job: one job to report on first; None = none.
    """
    total = found.total()
    waited = sum(total.values())
    shown = [cause for cause in CAUSES if total[cause] > 0]
    parts = [] if job is None else [_job_part(job)]
    parts += [_causes_part(found, total, waited), _size_part(found, shown)]
    parts.append(_hour_part(found, trace, shown))
    parts += [part for column in _BY if (part := _name_part(found, column, shown)) is not None]
    front = _front_part(found)
    wait = found.wait
    facts = [
        Fact("Jobs that waited", count((wait >= 1).sum()), note=f"of {count(len(wait))} started"),
        Fact("Mean wait", duration(float(wait.mean()) if len(wait) else None)),
        Fact("Waited in all", f"{number(waited / 3600)} h", f"{waited:,.0f} s"),
    ]
    return Result(
        title=f"Why jobs waited: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, plural(found.cluster.num_gpus, "GPU")),
        headline=_headline(total, waited) if len(found.rows) else _NO_STARTS,
        facts=facts,
        parts=[*parts, *([] if front is None else [front])],
        notes=notes_of(
            trace,
            [f"Cluster: {clean(found.cluster.describe(), 200)}."],
            found.notes,
            [f"GPU jobs {why}: {count(n)}." for why, n in found.left_out.items()],
        ),
    )


def queue_data(found: WaitCauses, trace: Trace, job: InFront | None = None) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``num_jobs`` (counted here), ``wait`` and ``causes`` (s in all), ``by_size``,
    ``by_hour``, ``by_vc``, ``by_user`` (rows with waits, and the mean s of each cause),
    ``in_front_by_vc``, ``in_front_by_user``, ``left_out``, ``rules``, ``zone`` (of the hours),
    ``job`` (null, or the job that was asked about: `windtunnel.study.in_front.InFront`).
    """
    about = trace.metadata
    return {
        "num_jobs": len(found.rows),
        "wait": float(found.wait.sum()),
        "causes": found.total(),
        "by_size": found.by_size(),
        "by_hour": found.by_hour(about.epoch, about.zone),
        "by_vc": found.by_name("vc"),
        "by_user": found.by_name("user"),
        "in_front_by_vc": found.in_front("vc"),
        "in_front_by_user": found.in_front("user"),
        "left_out": found.left_out,
        "rules": RULES,
        "zone": about.zone or "UTC",
        "job": None if job is None else {**asdict(job), "running_gpus": job.running_gpus,
                                         "waiting_gpus": job.waiting_gpus},
    }  # fmt: skip


def _job_part(job: InFront) -> Part:
    asked = f"{job.num_gpus:g} GPU{'s' * (job.num_gpus != 1)}"
    why = "" if job.reason is None else f" The log's reason: {clean(job.reason)}."
    if not job.in_line:
        fate = f"waited {duration(job.wait)}" if job.wait is not None else "never started"
        kind = "without GPUs" if not job.num_gpus else f"for {asked}"
        lead = f"Job {clean(job.job_id)} {kind} {fate}; it stood in no line for GPUs.{why}"
        return Part(f"Job {clean(job.job_id)}", lead, [], tells=True)
    lead = f"Job {clean(job.job_id)} asked for {asked}. When it joined the line, "
    if job.left is not None:
        lead = (
            f"Job {clean(job.job_id)} asked for {asked} and left the queue after "
            f"{duration(job.left - job.at)} without a start. When it joined the line, "
        )
    elif job.wait is None:
        lead = f"Job {clean(job.job_id)} asks for {asked} and has not started. At the log's end, "
    lead += (
        f"{plural(len(job.running), 'job')} held {job.running_gpus:g} GPUs and "
        f"{plural(len(job.waiting), 'job')} waited before it for {job.waiting_gpus:g}."
    )
    if job.causes is not None and job.wait:
        parts = [f"{WORDS[name]} {duration(s)}" for name, s in job.causes.items() if s > 0]
        lead += f" It waited {duration(job.wait)}: {', '.join(parts)}."
    lead += why

    def before(time: float) -> str:
        return duration(job.at - time)

    def after(time: float | None) -> str:
        return duration(None if time is None else time - job.at)

    running: Columns = (
        *_WHO,
        ("ran for", "start_time", before),
        ("ran on for", "end_time", after),
    )
    waiting: Columns = (*_WHO, ("waited for", "since", before))
    tables = [
        ("Held GPUs then", rows_table("Job", running, job.running[:TOP], "job_id")),
        ("Waited before it", rows_table("Job", waiting, job.waiting[:TOP], "job_id")),
    ]
    shown = [(caption, table) for caption, table in tables if table.lines]
    return Part(f"In front of job {clean(job.job_id)}", lead, shown, tells=True)


_WHO: Columns = (
    ("user", "user", name_text),
    ("virtual cluster", "vc", name_text),
    ("GPUs", "num_gpus", "{:g}".format),
)


def _headline(total: dict[str, float], waited: float) -> str:
    if waited <= 0:
        return "No job waited."
    ranked = sorted(total, key=lambda cause: -total[cause])
    first = ranked[0]
    text = f"{percent(total[first] / waited)} of all waiting was for {_reason(first)}"
    second = ranked[1]
    if total[second] > 0:
        text += f", {percent(total[second] / waited)} for {_reason(second)}"
    return text + "."


def _reason(cause: str) -> str:
    reasons = {
        "dependency": "dependencies, begin times and holds",
        "quota": "quotas and limits",
        "throttle": "arrays' own limits",
        "reservation": "nodes that were down or reserved",
        "order": "the order of the queue (others were served first)",
        "resources": "GPUs that were all busy",
        "other": "no reason that the log shows (there was room)",
    }
    return reasons.get(cause, WORDS[cause])


def _causes_part(found: WaitCauses, total: dict[str, float], waited: float) -> Part:
    mean = {cause: seconds / max(1, len(found.rows)) for cause, seconds in total.items()}
    lines = [
        Line(
            WORDS[cause],
            [
                Cell(number(total[cause] / 3600), exact_seconds(total[cause])),
                Cell(percent(total[cause] / waited if waited else None)),
                time_cell(mean[cause]),
            ],
            RULES[cause],
        )
        for cause in CAUSES
    ]
    table = Table("Cause", ["hours in all", "of all waiting", "mean of all jobs"], lines)
    lead = "Each instant of a wait has one cause, so the causes add up to the wait."
    terms = [(WORDS[cause], RULES[cause]) for cause in CAUSES]
    return Part("The causes", lead, [("Waiting by cause", table)], terms=terms)


def _columns(shown: Sequence[str]) -> Columns:
    return (
        ("jobs", "num_jobs", count),
        ("waited", "num_waited", count),
        ("mean wait", "avg_wait", time_cell),
        ("median", "p50_wait", time_cell),
        ("P90", "p90_wait", time_cell),
        *((WORDS[cause], cause, time_cell) for cause in shown),
    )


def _bars(rows: Sequence[Row], name: str, shown: Sequence[str]) -> list[Row]:
    return [
        {name: row[name], "part": WORDS[cause], "minutes": row[cause] / 60}
        for row in rows
        for cause in shown
    ]


def _size_part(found: WaitCauses, shown: Sequence[str]) -> Part:
    rows = found.by_size()
    table = rows_table("GPUs of the job", _columns(shown), rows, "size", size_text)
    draw = partial(
        part_bars,
        _bars(rows, "size", shown),
        of="size",
        parts=[WORDS[cause] for cause in shown],
        value="minutes",
        title="Mean wait, minutes",
        corner="GPUs of the job",
    )
    caption = f"Means over all jobs of a size; n = {plural(len(found.rows), 'job')}."
    drawing = Drawing("by-size", "Mean wait by size of the job", caption, draw)
    return Part(
        "By size of the job",
        "The columns behind P90 are the mean wait's parts, by cause.",
        [("Waits by size of the job", table)],
        [drawing] if shown else [],
    )


def _hour_part(found: WaitCauses, trace: Trace, shown: Sequence[str]) -> Part:
    about = trace.metadata
    rows = found.by_hour(about.epoch, about.zone)
    zone = clean(about.zone or "UTC")
    clock = f"{zone} time" if about.epoch is not None else "hours since time 0, modulo 24"
    draw = partial(
        part_columns,
        [{**row, "hour": int(row["hour"])} for row in _bars(rows, "hour", shown)],
        at="hour",
        parts=[WORDS[cause] for cause in shown],
        value="minutes",
        title="Mean wait, minutes",
        corner=f"Hour of submission, {clock}",
    )
    caption = f"Means over the jobs submitted in an hour; n = {plural(len(found.rows), 'job')}."
    drawing = Drawing("by-hour", "Mean wait by hour of submission", caption, draw)
    table = rows_table("Submitted at", _columns(shown), rows, "hour", "{:>2}:00".format)
    return Part(
        "By hour of the day",
        f"The hour in which jobs were submitted, {clock}.",
        [("Waits by hour of submission", table)],
        [drawing] if shown else [],
    )


def _name_part(found: WaitCauses, column: str, shown: Sequence[str]) -> Part | None:
    jobs = found.recorded.jobs
    if jobs[column].null_count == jobs.num_rows:
        return None
    rows = found.by_name(column)[:TOP]
    nouns = "virtual clusters" if column == "vc" else "users"
    table = rows_table(_BY[column], _columns(shown), rows, column)
    lead = f"The {nouns} whose jobs waited longest in sum."
    return Part(f"Who waited: {nouns}", lead, [(f"Waits by {nouns}", table)])


def _front_part(found: WaitCauses) -> Part | None:
    tables = []
    for column, words in _BY.items():
        rows = found.in_front(column)
        jobs = found.recorded.jobs
        if not rows or jobs[column].null_count == jobs.num_rows:
            continue
        table = top_table(words, _FRONT, rows, column, _front_sum)
        tables.append((f"Who held the GPUs, by {words.lower()}", table))
    if not tables:
        return None
    lead = "GPUs that their jobs held, on average over all the time that other jobs spent waiting."
    return Part("Who was in front", lead, tables)


_FRONT: Columns = (
    ("GPUs held", "gpus", number),
    ("of all GPUs", "share", percent),
    ("jobs", "num_jobs", count),
)


def _front_sum(rows: Sequence[Row]) -> Row:
    return {key: sum(row[key] for row in rows) for key in ("gpus", "share", "num_jobs")}
