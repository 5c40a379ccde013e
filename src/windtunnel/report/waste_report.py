"""A report of where the GPU hours went that made nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.characterize.waste import LOST
from windtunnel.report.answer_charts import part_bars
from windtunnel.report.columns import TOP, most, rows_table, top_table
from windtunnel.report.format import count, duration, exact_seconds, gpu_time, percent, plural
from windtunnel.report.names import clean, labels, name_text
from windtunnel.report.result import Drawing, Part, Result, left_out_notes, notes_of, subtitle_of
from windtunnel.report.sections import Cell, Fact, Line, Table, hours_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.characterize.waste import Waste
    from windtunnel.report.columns import Columns
    from windtunnel.traces.trace import Trace

Row = dict[str, Any]
#: Kind -> what people call it.
WORDS = {
    "completed": "completed",
    "failed_early": "failed early",
    "failed": "failed later",
    "cancelled": "cancelled",
    "timeout": "hit the limit",
    "node_fail": "node failed",
    "preempted": "preempted",
    "running": "still running",
    "pending": "still waiting",
    "unknown": "end unknown",
}
_BY = {"user": "User", "vc": "Virtual cluster"}
_CHECKPOINTS = (
    "Lost is all GPU time of jobs that did not complete; what their checkpoints saved of it, a "
    "trace does not tell."
)
_NO_TELEMETRY = (
    "What was allocated but idle is not known without telemetry: --telemetry names DCGM or "
    "Prometheus exports."
)


def waste_answer(found: Waste, trace: Trace) -> Result:
    """Return the answer to "where did the GPU hours go that made nothing?"."""
    kinds = found.kinds().to_pylist()
    whole = sum(row["gpu_time"] for row in kinds)
    lost = sum(row["gpu_time"] for row in kinds if row["kind"] in LOST)
    parts = [_kinds_part(kinds, found)]
    parts += [part for column in _BY if (part := _by_part(found, column)) is not None]
    parts += _idle_parts(found)
    return Result(
        title=f"Wasted GPU hours: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace, gpu_time(whole)),
        headline=_headline(found, kinds, whole, lost),
        facts=_facts(found, whole, lost),
        parts=parts,
        notes=notes_of(trace, _notes(found)),
    )


def waste_data(found: Waste) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``gpu_time`` and ``lost`` (GPU-s), ``kinds``, ``by_user``, ``by_vc``, ``limits``,
    ``idle``, ``worst`` (jobs with most idle GPU time) and ``unused_gpus`` (null where not known),
    ``early`` and ``tail`` (s), ``left_out`` (reason -> jobs that are in no sum of GPU time).
    """
    kinds = found.kinds().to_pylist()
    return {
        "gpu_time": float(found.recorded.gpu_time.sum()),
        "lost": sum(row["gpu_time"] for row in kinds if row["kind"] in LOST),
        "kinds": kinds,
        "by_user": found.by("user").to_pylist(),
        "by_vc": found.by("vc").to_pylist(),
        "limits": found.limits(),
        "idle": found.idleness(),
        "worst": None if found.idle is None else found.worst().to_pylist(),
        "unused_gpus": found.tasks,
        "early": found.early,
        "tail": found.tail,
        "left_out": found.recorded.left_out,
    }


def _headline(found: Waste, kinds: Sequence[Row], whole: float, lost: float) -> str:
    if whole == 0:
        return "No job held a GPU for any time."
    unknown = sum(row["share"] or 0.0 for row in kinds if row["kind"] == "unknown")
    if unknown >= 1:
        return f"Jobs held {gpu_time(whole)}; how they ended, the trace does not tell."
    worst = max((row for row in kinds if row["kind"] in LOST), key=_held, default=None)
    text = f"Of {gpu_time(whole)} that jobs held, {percent(lost / whole)} went to jobs that did "
    text += "not complete"
    if worst is not None and worst["gpu_time"] > 0:
        part = "most" if worst["gpu_time"] > lost / 2 else "the largest part"
        text += f", {part} of it ({percent(worst['share'])} of all) to jobs that "
        text += _verb(worst["kind"])
    if unknown > 0:
        text += f"; how the jobs ended that held {percent(unknown)} is not known"
    idle = found.idleness()
    if idle is not None and idle["gpu_time"] > 0:
        text += f"; where telemetry looks, {percent(idle['idle'] / idle['gpu_time'])} was idle"
    return text + "."


def _verb(kind: str) -> str:
    verbs = {"node_fail": "lost a node", "cancelled": "were cancelled"}
    verbs |= {"preempted": "were preempted"}
    return verbs.get(kind, WORDS[kind])


def _held(row: Row) -> float:
    return float(row["gpu_time"])


def _facts(found: Waste, whole: float, lost: float) -> list[Fact]:
    kinds = {row["kind"]: row for row in found.kinds().to_pylist()}
    early = kinds.get("failed_early", {"num_jobs": 0, "gpu_time": 0.0})
    facts = [
        Fact("Held by jobs", gpu_time(whole), f"{whole:,.0f} GPU s"),
        Fact("Not completed", gpu_time(lost), note=percent(lost / whole) if whole else ""),
        Fact(
            f"Failed within {duration(found.early)}",
            plural(early["num_jobs"], "job"),
            note=gpu_time(early["gpu_time"]),
        ),
    ]
    limits = found.limits()
    if limits["n"]:
        note = f"of the time asked for; median of {plural(limits['n'], 'job')}"
        facts.append(Fact("Time limits used", percent(limits["p50_used"]), note=note))
    if found.tasks is not None and found.tasks["asked"]:
        share = found.tasks["used"] / found.tasks["asked"]
        note = f"of the GPUs asked for, n = {plural(found.tasks['n'], 'task')}"
        facts.append(Fact("GPUs used", percent(share), note=note))
    idle = found.idleness()
    if idle is not None:
        note = f"of {plural(idle['num_jobs'], 'job')} with telemetry"
        facts.append(Fact("Allocated but idle", gpu_time(idle["idle"]), note=note))
    return facts


def _kinds_part(kinds: Sequence[Row], found: Waste) -> Part:
    columns: Columns = (*_HELD, ("of all", "share", percent))
    table = rows_table("Jobs that", columns, kinds, "kind", WORDS.__getitem__)
    lead = f"Early is within {duration(found.early)} of the start. {_CHECKPOINTS}"
    return Part("How the jobs ended that held the GPUs", lead, [("By how jobs ended", table)])


def _by_part(found: Waste, column: str) -> Part | None:
    jobs = found.recorded.jobs
    if jobs[column].null_count == jobs.num_rows:
        return None
    rows = found.by(column).to_pylist()
    with_idle = any(row["idle"] is not None for row in rows)
    with_limits = any(row["limit_used"] is not None for row in rows)
    shown = [kind for kind in LOST if any(row[kind] > 0 for row in rows)]
    columns: Columns = [
        *_HELD,
        ("lost", "lost", hours_cell),
        ("share lost", "lost_share", percent),
        *((WORDS[kind], kind, hours_cell) for kind in shown),
        *([("idle", "idle", hours_cell)] if with_idle else []),
        *([("limit used", "limit_used", percent)] if with_limits else []),
    ]
    table = top_table(_BY[column], columns, rows, column, _summed)
    by = "virtual clusters" if column == "vc" else "users"
    drawn = Drawing(
        f"lost-by-{column}",
        f"GPU hours of jobs that did not complete, by {_BY[column].lower()}",
        f"{most(len(rows), by)}; n = {plural(jobs.num_rows, 'job')}.",
        lambda: _chart(rows[:TOP], column, shown),
    )
    drawings = [drawn] if any(row["lost"] > 0 for row in rows) else []
    return Part(
        f"Whose they are: {by}",
        "Most lost GPU time first; all columns but jobs and shares are GPU hours.",
        [(f"By {_BY[column].lower()}", table)],
        drawings,
    )


def _summed(rows: Sequence[Row]) -> Row:
    """Return rows of the table by user or virtual cluster as one; shares that do not add up go."""
    row: Row = {"limit_used": None}
    for key in ("num_jobs", "gpu_time", "lost", *LOST):
        row[key] = sum(part[key] for part in rows)
    known = [part["idle"] for part in rows if part["idle"] is not None]
    row["idle"] = sum(known) if known else None
    row["lost_share"] = row["lost"] / row["gpu_time"] if row["gpu_time"] else None
    return row


def _chart(rows: Sequence[Row], column: str, shown: Sequence[str]) -> Any:
    names = labels([row[column] for row in rows], 24)
    bars = [
        {"who": name, "part": WORDS[kind], "hours": row[kind] / 3600}
        for name, row in zip(names, rows, strict=True)
        for kind in shown
    ]
    return part_bars(
        bars, of="who", parts=[WORDS[kind] for kind in shown], value="hours", title="GPU hours"
    )


def _idle_parts(found: Waste) -> list[Part]:
    idle = found.idleness()
    if idle is None:
        return []
    rows = [
        Line("idle samples, of all", [Cell(count(idle["num_jobs"])), hours_cell(idle["idle"])]),
        Line("never busy", [Cell(count(idle["num_never_used"])), hours_cell(idle["never_used"])]),
        Line(
            f"busy, then idle for {duration(found.tail)} or more at the end",
            [Cell(count(idle["num_then_idle"])), hours_cell(idle["then_idle"])],
        ),
    ]
    table = Table("What telemetry saw", ["jobs", "GPU hours"], rows)
    tables = [("Idle GPUs", table)]
    worst = found.worst().to_pylist()
    if worst:
        tables.append(("Jobs with most idle GPU time", rows_table("Job", _WORST, worst, "job_id")))
    lead = (
        f"{count(idle['unused_devices'])} of {count(idle['devices'])} GPUs of jobs never had a "
        "busy sample. Idle hours are a job's share of idle samples times all GPU hours it held. "
        "The rows overlap: a job that was never busy is idle, too."
    )
    return [Part("Allocated but idle", lead, tables)]


def _tail(seconds: float | None) -> Cell:
    return Cell(duration(seconds) if seconds else "", exact_seconds(seconds))


_HELD: Columns = (("jobs", "num_jobs", count), ("GPU hours", "gpu_time", hours_cell))
_WORST: Columns = (
    ("user", "user", name_text),
    ("GPUs", "num_gpus", "{:g}".format),
    ("idle", "idle", hours_cell),
    ("of its time", "idle_share", percent),
    ("idle at the end", "tail", _tail),
    ("GPUs never busy", "unused_devices", count),
)


def _notes(found: Waste) -> list[str]:
    notes = left_out_notes(found.recorded)
    limits, idle = found.limits(), found.idleness()
    if limits["n"]:
        notes.append(
            f"Of {plural(limits['n'], 'job')} with a time limit, {count(limits['num_under_half'])} "
            f"used less than half of it; {gpu_time(limits['asked'])} were asked for and "
            f"{gpu_time(limits['used'])} held."
        )
    if idle is None:
        return [*notes, _NO_TELEMETRY]
    for number, words in (
        (idle["unknown_jobs"], "jobs with telemetry that are not in the trace"),
        (idle["left_out"], "samples that belong to no job"),
    ):
        if number:
            notes.append(f"Left out: {count(number)} {words}.")
    return notes
